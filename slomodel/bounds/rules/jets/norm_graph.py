"""The data of the propagation of norms that depend on the centre only."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from slomodel.bounds.arithmetic.interval import Interval
from slomodel.bounds.arithmetic.rounding import Array
from slomodel.bounds.part import ObjectivePart, once_per_part
from slomodel.bounds.ranges.enclose import boxed, enclose, live_under
from slomodel.bounds.ranges.liveness import Live
from slomodel.bounds.ranges.smoothness import place
from slomodel.bounds.rules.jets.mixed_norms import Norm, below, frobenius, measure
from slomodel.bounds.rules.jets.norm_rules import NormContext, Rule, demanded, norm_rule
from slomodel.bounds.rules.jets.normal_form import normal_form
from slomodel.errors import MissingRule
from slomodel.ir.expr import Expr, Input
from slomodel.ir.walk import dependents, postorder

_MOST_NORMS = 48
"""Largest number of norms per node; requests for further ones are answered by larger norms."""
_MOST_BLOCKS = 10
"""Largest number of blocks: arrays by four blocks have 10⁴ entries per node."""


@dataclass(slots=True)
class Prepared:
    """The gradient's graph with, for each node that depends on x, the norms that are required.

    `blocks` numbers the variables by name; beyond `_MOST_BLOCKS` several share a number, which
    bounds them together. `centre` and `measured` cache values and norms of nodes at the centre.
    Elements that the gradient does not depend on are set to 0 (`neutral`), which changes a node but
    not the gradient.
    """

    part: ObjectivePart
    roots: tuple[Expr, ...]
    values: dict[Input, Array]
    order: list[Expr]
    scope: NormContext
    blocks: dict[str, int]
    live: Live
    rules: dict[tuple[Expr, Norm], Rule] = field(default_factory=dict)
    norms: dict[Expr, list[Norm]] = field(default_factory=dict)
    centre: dict[Expr, Interval] = field(default_factory=dict)
    measured: dict[tuple[Expr, Norm], float] = field(default_factory=dict)

    @property
    def count(self) -> int:
        return max(self.blocks.values(), default=-1) + 1

    @property
    def block_names(self) -> tuple[str, ...]:
        """The names of the variables of each block, joined if there are several."""
        result = [[name for name, k in self.blocks.items() if k == b] for b in range(self.count)]
        return tuple("+".join(sorted(names)) for names in result)

    @property
    def numbers(self) -> int:
        """The total number of elements of all nodes."""
        return sum(prod(self.scope.shape(node)) for node in self.order)

    def at_centre(self, node: Expr, norm: Norm) -> float:
        """Upper bound on the norm of a node at the centre."""
        key = (node, norm)
        if key not in self.measured:
            value = self.enclosed(node)[node]
            self.measured[key] = measure(value.mid, value.rad, norm)
        return self.measured[key]

    def enclosed(self, *nodes: Expr) -> dict[Expr, Interval]:
        """Intervals at the centre of these nodes and of those below them; computed on first use."""
        if any(node not in self.centre for node in nodes):
            self.centre = enclose(nodes, {}, self.part.sizes, known=self.centre, live=self.live)
        return self.centre

    def root_norm(self, root: Expr) -> Norm:
        return frobenius(self.scope.shape(root))

    def available(self, node: Expr, norm: Norm) -> Norm:
        """The norm itself, or a larger one that is propagated."""
        own = self.norms[node]
        if norm in own:
            return norm
        return next(other for other in own if below(norm, other))


def _unruled(part: ObjectivePart, node: Expr) -> str:
    """The reason for a gap at a node of the gradient, by what has such a node in the objective."""
    equal = (one for one in part.order if type(one) is type(node))
    where = place(next(equal, node), part.spans, part.objective)
    return f"{where} has no bound on its derivatives over so large a ball"


@once_per_part
def prepare(part: ObjectivePart) -> Prepared:
    """The graph of a part's gradient with the required norms.

    Raises MissingRule where a node has no rule.
    """
    roots, values = normal_form(part.gradient, part.variables, part.values, part.sizes)
    order = postorder(*roots)
    varying = dependents(order, set(part.variables).__contains__)
    names = sorted(variable.name for variable in part.variables)
    blocks = {name: min(k, _MOST_BLOCKS - 1) for k, name in enumerate(names)}
    scope = NormContext(part.sizes, varying, part.tables)
    boxes = boxed(values)
    live = live_under(roots, boxes, part.sizes)
    prepared = Prepared(part, roots, values, order, scope, blocks, live)
    _want(prepared)
    prepared.centre = enclose(list(values), boxes, part.sizes, live=live)
    return prepared


def _want(prepared: Prepared) -> None:
    """Collect the norms of every node that bound those of the roots, users before operands."""
    wanted: dict[Expr, dict[Norm, None]] = {}

    def demand(node: Expr, norm: Norm) -> None:
        own = wanted.setdefault(node, {frobenius(prepared.scope.shape(node)): None})
        if len(own) < _MOST_NORMS:
            own[norm] = None

    for root in prepared.roots:
        demand(root, prepared.root_norm(root))
    for node in reversed(prepared.order):
        if node not in wanted:
            continue
        # Larger norms first, so that they are available to bound the smaller ones.
        own = sorted(wanted[node], key=lambda norm: (norm.count("m"), norm.count("c")))
        prepared.norms[node] = own
        if node not in prepared.scope.varying or isinstance(node, Input):
            continue
        for norm in own:
            try:
                rule = norm_rule(node, norm, prepared.scope)
            except MissingRule as gap:
                raise MissingRule(_unruled(prepared.part, node)) from gap
            prepared.rules[node, norm] = rule
            for operand, word in demanded(rule):
                demand(operand, word)
