"""Elementwise formulas as functions of one quantity, and their Laurent series in it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

from slomodel.functions import abs, add, div, le, mul, pow, sub, where
from slomodel.functions.compound import graph_values
from slomodel.ir import build
from slomodel.ir.expr import Const, Expr, Map, is_map
from slomodel.ir.walk import postorder
from slomodel.rewrite.replacement import remade
from slomodel.rewrite.series.laurent import SERIES, Laurent, NoSeries, constant, identity, series_of

_FEW_TERMS, TERMS = 8, 48
"""Terms that show whether the leading ones cancel, and those of the series that is computed."""
_MOST_NODES = 40
"""Nodes of a formula that is expanded: rational arithmetic takes about a millisecond for each."""
_MOST_TRIED = 3
"""ExpansionQuantities for a node, so that the work stays in proportion to the graph."""
_LARGEST_EXPONENT = 64
"""Larger powers have coefficients whose exact fractions are long."""
_EDGES = (1.5, 1.0, 0.75, 0.5, 0.375, 0.25, 0.1875, 0.125, 0.0625)
"""The largest |u| at which the series is used, tried in this order; none is used if none suits."""
_NEGLIGIBLE = 1e-18
"""Terms below this fraction of the first are below its rounding."""
_MOST_POLYNOMIAL_TERMS = 32
"""Multiplications for each element that a series may take."""
ARITHMETIC = frozenset((add, sub, mul, div))


def is_series_function(node: Expr) -> bool:
    """Whether a node is a function with a series that is not a polynomial."""
    if not isinstance(node, Map) or node.function.name in ("neg", "square"):
        return False
    return node.function.name in SERIES or is_map(node, pow)


class ExpansionQuantities:
    """The quantities of which nodes are functions with constants.

    `norms`: norms by their squares, which are functions of them.
    """

    def __init__(self, norms: Mapping[Expr, Expr]) -> None:
        self._of: dict[Expr, dict[Expr, bool]] = {}
        self._norms = norms
        self.leading = LeadingTerms(norms)

    def of(self, node: Expr) -> Mapping[Expr, bool]:
        """The deepest few of these quantities, and the node itself; none of a constant.

        Each with whether a function with an infinite series is among those from it to the node.
        """
        if node not in self._of:
            is_next = all(operand in self._of for operand in node.operands)
            for one in (node,) if is_next else postorder(node):
                if one not in self._of:
                    self._of[one] = self._found(one)
        return self._of[node]

    def _found(self, node: Expr) -> dict[Expr, bool]:
        if is_constant(node):
            return {}
        result: dict[Expr, bool] = {}
        near = _near_zero(node)
        if near is not None or is_elementwise(node):
            is_function = near is None and is_series_function(node)
            mapped = [self._of[operand] for operand in _parts(node) if self._of[operand]]
            for u in mapped[0] if mapped else ():
                if len(result) < _MOST_TRIED and all(u in other for other in mapped):
                    result[u] = is_function or any(other[u] for other in mapped)
        if node in self._norms:
            result[self._norms[node]] = False
        result[node] = False
        return result


class LeadingTerms:
    """The first terms of series, computed once for each node and quantity."""

    def __init__(self, norms: Mapping[Expr, Expr]) -> None:
        self._of: dict[Expr, dict[Expr, tuple[Laurent, frozenset[Expr]] | None]] = {}
        self.squares = {norm: square for square, norm in norms.items()}

    def of(self, node: Expr, u: Expr) -> Laurent:
        """The series in u of a node that is a function of it. Raises NoSeries."""
        known = self._of.setdefault(u, self._known(u))
        stack = [node]
        while stack:
            one = stack[-1]
            waiting = [] if one in known or is_constant(one) else _parts(one)
            waiting = [operand for operand in waiting if operand not in known]
            if waiting:
                stack += waiting
                continue
            if one not in known:
                known[one] = self._found(one, known)
            stack.pop()
        result = known[node]
        if result is None:
            raise NoSeries
        return result[0]

    def _known(self, u: Expr) -> dict[Expr, tuple[Laurent, frozenset[Expr]] | None]:
        """The series of u and of its square."""
        return {
            one: (series, frozenset((one,)))
            for one, series in known_series(u, self.squares.get(u), _FEW_TERMS).items()
        }

    def _found(
        self, node: Expr, known: Mapping[Expr, tuple[Laurent, frozenset[Expr]] | None]
    ) -> tuple[Laurent, frozenset[Expr]] | None:
        """The series, and the nodes under the node; None without a series or of too many nodes."""
        try:
            if is_constant(node):
                return constant(_fraction(node), _FEW_TERMS), frozenset((node,))
            assert isinstance(node, Map)
            parts = [known[operand] for operand in _parts(node)]
            whole = [part for part in parts if part is not None]
            under = frozenset((node,)).union(*(nodes for _, nodes in whole))
            if len(whole) < len(parts) or len(under) > _MOST_NODES:
                return None
            return _series_of(node, [own for own, _ in whole]), under
        except NoSeries:
            return None


def is_elementwise(node: Expr) -> bool:
    """Whether a node is a function with a series of operands along its own axes, and constants."""
    if not isinstance(node, Map):
        return False
    own = tuple(range(node.rank))
    known = node.function in ARITHMETIC or node.function is pow or node.function.name in SERIES
    return known and all(
        axes == own or is_constant(operand)
        for operand, axes in zip(node.operands, node.axes, strict=True)
    )


def known_series(u: Expr, square_of_u: Expr | None, terms: int) -> dict[Expr, Laurent]:
    """The series u, and that of its square."""
    known = {u: identity(terms)}
    if square_of_u is not None:
        known[square_of_u] = identity(terms) * identity(terms)
    return known


def expanded(
    node: Expr, u: Expr, terms: int, square_of_u: Expr | None = None
) -> dict[Expr, Laurent]:
    """The Laurent series in u of the nodes under a node. Raises NoSeries."""
    known = known_series(u, square_of_u, terms)
    stack = [node]
    while stack:
        one = stack[-1]
        if one in known:
            stack.pop()
            continue
        if is_constant(one):
            known[one] = constant(_fraction(one), terms)
            continue
        waiting = [operand for operand in _parts(one) if operand not in known]
        if waiting:
            stack += waiting
            continue
        assert isinstance(one, Map)
        known[one] = _series_of(one, [known[operand] for operand in _parts(one)])
        stack.pop()
    return known


def _near_zero(node: Expr) -> Expr | None:
    """The choice near u = 0 of a node that is one formula for small |u| and another beyond."""
    if not is_map(node, where):
        return None
    condition, near, _far = node.operands
    is_small = is_map(condition, le) and is_map(condition.operands[0], abs)
    is_small = is_small and isinstance(condition.operands[1], Const)
    return near if is_small and near.shape == node.shape else None


def _parts(node: Expr) -> tuple[Expr, ...]:
    """The operands of which a series is computed: of a choice the one near 0."""
    near = _near_zero(node)
    return node.operands if near is None else (near,)


def is_constant(node: Expr) -> bool:
    """Whether a node is a number, or a function of numbers, as log(2)."""
    return isinstance(node, Const) or (
        isinstance(node, Map) and all(isinstance(operand, Const) for operand in node.operands)
    )


def _fraction(node: Expr) -> Fraction:
    value = float(graph_values(node, {}))
    if not math.isfinite(value):
        raise NoSeries
    return Fraction(value)


def _series_of(node: Map, operands: Sequence[Laurent]) -> Laurent:
    function = node.function
    if function is where:
        return operands[0]
    if function in (add, sub):
        left, right = operands
        result = left + (right.scaled(Fraction(-1)) if function is sub else right)
    elif function is mul:
        result = operands[0] * operands[1]
    elif function is div:
        result = operands[0] * operands[1].reciprocal()
    elif function is pow:
        exponent = node.operands[1]
        if not isinstance(exponent, Const) or math.fabs(exponent.value) > _LARGEST_EXPONENT:
            raise NoSeries
        result = operands[0].power(Fraction(exponent.value))
    else:
        result = series_of(function.name, operands[0])
    if result.is_zero:
        raise NoSeries
    return result


def edge_of(series: Laurent, farthest: float = _EDGES[0]) -> float | None:
    """The largest |u| at which few terms of the series are enough, none larger than the first."""
    sizes = [math.fabs(float(c)) for c in series.coefficients]
    for edge in (edge for edge in _EDGES if edge <= farthest):
        terms = [size * edge**k for k, size in enumerate(sizes)]
        kept = [k for k, term in enumerate(terms) if term > _NEGLIGIBLE * terms[0]]
        if max(kept) > len(terms) // 2 + 16 or sum(terms[1:]) > 2.0 * terms[0]:
            continue
        if sum(1 for k in kept if sizes[k]) <= _MOST_POLYNOMIAL_TERMS:
            return edge
    return None


def with_quantities(node: Expr, instead: Mapping[Expr, Expr]) -> Expr:
    """The node with other quantities in place of some."""
    done: dict[Expr, Expr] = dict(instead)
    for one in postorder(node):
        if one not in done:
            operands = tuple(done[operand] for operand in one.operands)
            done[one] = one if operands == one.operands else remade(one, operands)
    return build.broadcast(done[node], (), node.shape) if not done[node].rank else done[node]
