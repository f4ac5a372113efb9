"""Parts of an elementwise graph for pattern matching: operands along the axes of a whole."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from slomodel.functions import add, div, exp, mul, neg, pow, sqrt, square, sub
from slomodel.functions.compound import limited
from slomodel.ir import build
from slomodel.ir.dims import Shape
from slomodel.ir.exact import is_exact
from slomodel.ir.expr import Axes, Const, Einsum, Expr, Input, Map, is_map
from slomodel.ir.function import ScalarFunction

_MOST_TERMS = 10_000
_MOST_FACTORS = 6
"""Operands of a contraction whose products are examined; more are rare."""


class Part(NamedTuple):
    """A node whose axis k is axis `axes[k]` of the whole that it is a part of.

    A tuple, as rules construct and compare millions of parts of a long model.
    """

    node: Expr
    axes: Axes

    def along(self, shape: Shape) -> Expr:
        """The node broadcast to the shape of the whole; scalars stay scalars."""
        return build.broadcast(self.node, self.axes, shape) if self.node.rank else self.node

    def inner(self, function: ScalarFunction) -> Part | None:
        """`x` if the part is `function(x)`, else None."""
        node = self.node
        if isinstance(node, Map) and node.function is function:
            return Part(node.operands[0], self.axes)
        return None

    def parts(self) -> list[Part]:
        """The operands of a part that is a `Map`."""
        node, axes = self
        assert isinstance(node, Map)
        if not axes:
            return [Part(operand, ()) for operand in node.operands]
        return [
            Part(operand, tuple([axes[k] for k in own]))
            for operand, own in zip(node.operands, node.axes, strict=True)
        ]


def parts_of(node: Map) -> list[Part]:
    return [Part(operand, own) for operand, own in zip(node.operands, node.axes, strict=True)]


def whole(node: Expr) -> Part:
    return Part(node, tuple(range(node.rank)))


class Term(NamedTuple):
    """`coefficient * core`; without a core a constant."""

    coefficient: float
    core: Part | None


def scaled(part: Part, sign: float = 1.0) -> Term:
    """The term of a part: constant factors and signs are taken out while their product is exact.

    Patterns compare coefficients: 3·(0.58 x) and 1.74 x must not match only because 3·0.58 rounds
    to 1.74, as a factor of 1e16 may multiply their difference.
    """
    coefficient = sign
    while True:
        node = part.node
        if isinstance(node, Const) and _is_exact(mul, coefficient, node.value):
            return Term(coefficient * node.value, None)
        if not is_map(node, neg, mul, div):
            return Term(coefficient, part)
        if not is_map(node, neg) and not any(isinstance(one, Const) for one in node.operands):
            return Term(coefficient, part)
        operands = part.parts()
        constants = [k for k, one in enumerate(operands) if isinstance(one.node, Const)]
        if is_map(node, neg):
            coefficient, part = -coefficient, operands[0]
        elif is_map(node, mul) and constants:
            number = _value(operands[constants[0]])
            if not _is_exact(mul, coefficient, number):
                return Term(coefficient, part)
            coefficient *= number
            part = operands[1 - constants[0]]
        elif constants == [1] and _is_exact(div, coefficient, _value(operands[1])):
            coefficient /= _value(operands[1])
            part = operands[0]
        else:
            return Term(coefficient, part)


def _is_exact(function: ScalarFunction, one: float, other: float) -> bool:
    """Whether a product or quotient is exact in doubles; one with NaN or infinity, and a quotient
    by 0, are not.
    """
    if not math.isfinite(other):
        return False
    if math.fabs(other) == 1.0 or (function is mul and math.fabs(one) == 1.0):
        return True
    if function is div and not other:
        return False
    value = one * other if function is mul else one / other
    return is_exact(function, (Const(one), Const(other)), value)


def _value(part: Part) -> float:
    assert isinstance(part.node, Const)
    return part.node.value


def two_terms(node: Map) -> list[Term]:
    """The two terms of a sum or difference."""
    left, right = parts_of(node)
    return [scaled(left), scaled(right, -1.0 if node.function is sub else 1.0)]


def summands(node: Expr, closed: Collection[Expr] = (), most: int = _MOST_TERMS) -> list[Part]:
    """The terms of a sum; the node alone where it is not a sum, or has more than `most` terms.

    Sums that are among the nodes `closed` are not expanded.
    """
    result: list[Part] = []
    stack = [whole(node)]
    while stack:
        part = stack.pop()
        if is_map(part.node, add) and (part.node is node or part.node not in closed):
            stack += reversed(part.parts())
        else:
            result.append(part)
        if len(result) + len(stack) > most:
            return [whole(node)]
    return result


def linear_terms(
    part: Part, most: int, split: Callable[[Part], Sequence[Part]] = lambda _: ()
) -> list[Term] | None:
    """The terms of a sum or difference with their coefficients; None if there are more than `most`.

    `split` gives the terms of further parts, as of a quotient of a sum.
    """
    result: list[Term] = []
    stack = [(part, 1.0)]
    while stack:
        one, factor = stack.pop()
        term = scaled(one, factor)
        core = term.core
        if core is not None and is_map(core.node, add, sub):
            left, right = core.parts()
            minus = -1.0 if is_map(core.node, sub) else 1.0
            stack += [(right, minus * term.coefficient), (left, term.coefficient)]
        elif core is not None and (inner := split(core)):
            stack += [(one, term.coefficient) for one in inner]
        else:
            result.append(term)
        if len({one.core for one in result}) + len(stack) > most:
            return None
    return result


def factors(part: Part) -> list[Part]:
    """The factors of a product: two, or three if the first is a product; else the part itself."""
    if not is_map(part.node, mul):
        return [part]
    left, right = part.parts()
    return [*(left.parts() if is_map(left.node, mul) else [left]), right]


def product_with(parts: Sequence[Part], k: int, instead: Expr, shape: Shape) -> Expr:
    """The product of the parts in order, with the node `instead` in place of part k."""
    wide = [instead if j == k else part.along(shape) for j, part in enumerate(parts)]
    result = wide[0]
    for one in wide[1:]:
        result = mul(result, one)
    return result


@dataclass(frozen=True, slots=True)
class ExponentialSum:
    """`sum(exp(x))` over `axes` of x; `order` permutes the other axes to those of the result."""

    x: Expr
    axes: Axes
    order: Axes


def exponential_sum(node: Expr) -> ExponentialSum | None:
    """A contraction read as a sum of exponentials; None if it is not one or already shifted."""
    if not isinstance(node, Einsum) or len(node.operands) != 1:
        return None
    (labels,), operand = node.inputs, node.operands[0]
    plain = len(set(labels)) == len(labels) == len(node.dims) > len(node.output)
    if not plain or len(set(node.output)) != len(node.output) or not is_map(operand, exp):
        return None
    x = operand.operands[0]
    if is_shifted(x):
        return None
    kept = [label for label in labels if label in node.output]
    axes = tuple(k for k, label in enumerate(labels) if label not in node.output)
    return ExponentialSum(x, axes, tuple(kept.index(label) for label in node.output))


def is_shifted(x: Expr) -> bool:
    """True for exponents from which their largest has been subtracted."""
    x = x.operands[0] if is_map(x, limited) else x
    shift = x.operands[1] if is_map(x, sub) else None
    return isinstance(shift, Map) and shift.function.name == "stop_gradient"


def exponent_of_power(node: Expr) -> float | None:
    """p of a node x^p with a number p."""
    if is_map(node, sqrt):
        return 0.5
    if is_map(node, square):
        return 2.0
    if is_map(node, pow) and isinstance(node.operands[1], Const):
        return float(node.operands[1].value)
    return None


def is_scale(exponent: Expr) -> bool:
    """True for exponents that are constants for derivatives: exp of them undoes a scaling."""
    stack = [exponent]
    has_scale = False
    while stack:
        node = stack.pop()
        if is_map(node, add, sub, mul, neg):
            stack += node.operands
        elif is_map(node, limited):
            stack.append(node.operands[0])
        elif isinstance(node, Map) and node.function.name == "stop_gradient":
            has_scale = True
        elif not isinstance(node, Const):
            return False
    return has_scale


def with_better_products(
    node: Einsum, better: Callable[[Map], Expr | None], done: Mapping[Expr, Expr] | None = None
) -> Expr | None:
    """A contraction with a better form of the product of two operands along the same axes.

    None where no product has one. `done` maps the other operands to those of the result.
    """
    pairs = combinations(zip(node.operands, node.inputs, strict=True), 2)
    for (one, labels), (other, own) in pairs if len(node.operands) <= _MOST_FACTORS else ():
        product = mul(one, other) if labels == own and one.rank else None
        form = better(product) if isinstance(product, Map) else None
        if form is not None:
            rest = list(zip(node.operands, node.inputs, strict=True))
            rest.remove((one, labels))
            rest.remove((other, own))
            operands = [form, *(one if done is None else done[one] for one, _ in rest)]
            inputs = [labels, *(own for _, own in rest)]
            return build.einsum(operands, inputs, node.output, node.dims)
    return None


def varies(node: Expr) -> bool:
    """True when a variable is among the node's inputs."""
    return reaches_variable()(node)


def product_of(factors: Sequence[Expr]) -> Expr:
    """The product of expressions; 1 if there are none."""
    result: Expr = Const(1.0)
    for factor in factors:
        result = mul(result, factor)
    return result


class Reaches:
    """Whether a wanted node is at or below a node, cached: each node is visited once.

    Paths to it lead through nodes that satisfy `passes` alone.
    """

    def __init__(
        self, wanted: Callable[[Expr], bool], passes: Callable[[Expr], bool] = lambda _: True
    ) -> None:
        self._wanted = wanted
        self._passes = passes
        self._known: dict[Expr, bool] = {}

    def __call__(self, node: Expr) -> bool:
        known = self._known
        stack = [] if node in known else [node]
        while stack:
            one = stack[-1]
            if self._wanted(one) or any(known.get(operand) for operand in one.operands):
                known[one] = self._wanted(one) or self._passes(one)
            elif waiting := [o for o in one.operands if o not in known and self._passes(one)]:
                stack.append(waiting[-1])
                continue
            else:
                known[one] = False
            stack.pop()
        return known[node]


def reaches_variable() -> Reaches:
    """Whether a variable is among a node's inputs."""
    return Reaches(lambda node: isinstance(node, Input) and node.role == "variable")
