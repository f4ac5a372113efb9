"""Derivatives of scalar functions along rays: at points, their ranges, and their magnitudes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from slomodel.calculus.jvp import jvp
from slomodel.calculus.rays.collected import collected
from slomodel.calculus.rays.functions import (
    Value,
    as_midrad,
    as_range,
    extended,
    inside_domain,
    may_hold,
    over_critical_points,
    steps_of,
    truth_of,
    value_range,
)
from slomodel.calculus.rays.numbers import MidRad, Range
from slomodel.functions import (
    add,
    div,
    gt,
    land,
    lnot,
    maximum,
    mul,
    neg,
    square,
    sub,
    where,
)
from slomodel.ir.build import variable
from slomodel.ir.exact import as_doubles, without_rounding
from slomodel.ir.expr import Const, Expr, Input, Map
from slomodel.ir.function import Monotonicity, RangeRule, ScalarFunction
from slomodel.ir.walk import postorder

_SECOND_ORDER = 0.125
"""Ulps that cover the products of errors of a product of two numbers."""
_ROOM = 1.0 + 2.0**-44
"""Factor that covers 200 roundings."""


@dataclass(frozen=True, slots=True)
class PartialFunction:
    """A function of operand `varying` alone; the other operands are known numbers."""

    function: ScalarFunction
    varying: int
    constants: tuple[Const | None, ...]


@cache
def derivative_graph(one: PartialFunction, k: int) -> tuple[tuple[Input, ...], Expr]:
    """The inputs that stand for the operands, and the k-th derivative as a graph of scalars."""
    inputs = tuple(variable(f"x{j}", ()) for j in range(one.function.arity))
    arguments = [own if c is None else c for c, own in zip(one.constants, inputs, strict=True)]
    with without_rounding():
        graph = one.function(*arguments)
        for _ in range(k):
            (graph,) = jvp((graph,), {inputs[one.varying]: Const(1.0)})
    return inputs, collected(graph) if k > 1 else graph


def derivative_at(one: PartialFunction, k: int, operands: Sequence[MidRad]) -> MidRad | None:
    """The k-th derivative at numbers; None for 0 everywhere."""
    inputs, graph = derivative_graph(one, k)
    if isinstance(graph, Const):
        return None if graph.value == 0.0 else MidRad(graph)
    if all(operand.rad is None for operand in operands):
        steps = _relative_steps(graph)
        if steps is not None:
            given = {x: operand.mid for x, operand in zip(inputs, operands, strict=True)}
            value = _computed_value(graph, given)
            return MidRad(value).rounded(steps=steps) if steps else MidRad(value)
    return as_midrad(extended(graph, dict(zip(inputs, operands, strict=True)))[graph])


def _computed_value(graph: Expr, operands: Mapping[Input, Expr]) -> Expr:
    """A graph of scalars at other numbers."""
    result: dict[Expr, Expr] = {}
    for node in postorder(graph):
        if isinstance(node, Map):
            result[node] = node.function(*(result[operand] for operand in node.operands))
        else:
            result[node] = operands[node] if isinstance(node, Input) else node
    return result[graph]


def _relative_steps(node: Expr) -> float | None:
    """The relative error in ulps of a product of functions of exact numbers; None for others.

    Of k factors with errors of d_j ulps it is Σ d_j + k - 1 ulps, less than one more with all
    products of errors.
    """
    if isinstance(node, (Const, Input)):
        return 0.0
    assert isinstance(node, Map)
    function, operands = node.function, node.operands
    if function.result == "bool" or any(one.dtype == "bool" for one in operands):
        return None
    steps = [_relative_steps(operand) for operand in operands]
    if any(step is None for step in steps):
        return None
    lost = sum(one for one in steps if one is not None)
    if function is neg:
        return lost
    if function in (mul, div):
        return lost + 1.0 + _SECOND_ORDER
    if function is square:
        return 2.0 * lost + 1.0 + _SECOND_ORDER
    if lost:
        return None
    if function in (add, sub):
        return 1.0
    stated = function.ranges is RangeRule.FORM or isinstance(function.ranges, Monotonicity)
    return steps_of(function) if stated and function.error_scale is None else None


def coefficient_at(one: PartialFunction, k: int, operands: Sequence[MidRad]) -> MidRad | None:
    """The k-th derivative over k! at numbers; None for 0 everywhere."""
    derivative = derivative_at(one, k, operands)
    if derivative is None or k < 2:
        return derivative
    count = float(math.factorial(k))
    rad = None if derivative.rad is None else div(derivative.rad, count)
    return MidRad(div(derivative.mid, count)).rounded(rad)


def coefficient_range(one: PartialFunction, k: int, operands: Sequence[Range]) -> Range | None:
    """The range of the k-th derivative over k!, as `derivative_range` bounds the derivative."""
    result = derivative_range(one, k, operands)
    return result if result is None or k < 2 else result.times(1.0 / math.factorial(k))


def largest_coefficient(one: PartialFunction, k: int, operands: Sequence[Range]) -> Expr | None:
    """Upper bound on |k-th derivative|/k! over the operands; None for 0 everywhere.

    It is unbounded where the operands may leave the domain, or the (k - 1)-th derivative may be
    discontinuous.
    """
    inputs, graph = derivative_graph(one, k)
    if one.function.kinks:
        result = derivative_range(one, k, operands)
        size: Expr = Const(0.0) if result is None else result.magnitude
    elif isinstance(graph, Const) and graph.value == 0.0:
        return None
    else:
        size = _Sizes(dict(zip(inputs, operands, strict=True))).largest(graph)
        size = where(inside_domain(one.function, operands), size, math.inf)
    return mul(_ROOM / math.factorial(k), size)


class _Sizes:
    """Bounds on the magnitudes of nodes of a graph of scalars, those of products by their factors.

    The products are rounded to nearest: `_ROOM` covers their errors.
    """

    def __init__(self, operands: Mapping[Input, Value]) -> None:
        self._operands = operands
        self._found: dict[Expr, Value] = {}

    def _range(self, node: Expr) -> Range:
        if node not in self._found:
            self._found.update(extended(node, self._operands))
        return as_range(self._found[node])

    def largest(self, node: Expr) -> Expr:
        """The largest magnitude of a node."""
        if isinstance(node, Const):
            return Const(math.fabs(node.value))
        if isinstance(node, Map):
            function, operands = node.function, node.operands
            if function is mul:
                return mul(*map(self.largest, operands))
            if function is div:
                return mul(self.largest(operands[0]), self.inverse(operands[1]))
            if function is square:
                return square(self.largest(operands[0]))
            if function is neg:
                return self.largest(operands[0])
            if function is where:
                return self._largest_of_either(node)
            stated = function.monotonicity
            if stated is not None and stated.image[0] >= 0.0:
                return self._range(node).hi
        return self._range(node).magnitude

    def _largest_of_either(self, node: Map) -> Expr:
        condition, *branches = node.operands
        a, b = map(self.largest, branches)
        if condition not in self._found:
            self._found.update(extended(condition, self._operands))
        holds = truth_of(self._found[condition])
        if holds.is_known:
            return where(holds.certain, a, b)
        # The magnitude of a branch that is not taken may be NaN.
        return where(holds.certain, a, where(lnot(holds.possible), b, maximum(a, b)))

    def inverse(self, node: Expr) -> Expr:
        """The largest magnitude of the reciprocal of a node."""
        if isinstance(node, Map):
            function, operands = node.function, node.operands
            if function is mul:
                return mul(*map(self.inverse, operands))
            if function is square:
                return square(self.inverse(operands[0]))
            if function is neg:
                return self.inverse(operands[0])
        over = self._range(node)
        distance = maximum(over.lo, neg(over.hi))
        return where(gt(distance, 0.0), div(1.0, distance), math.inf)


def derivative_range(one: PartialFunction, k: int, operands: Sequence[Range]) -> Range | None:
    """The range of the k-th derivative over the operands, of which one varies; None for 0.

    It is unbounded where the (k - 1)-th derivative may be discontinuous.
    """
    result = _derivative_range(one, k, operands)
    if not k or not one.function.kinks:
        return result
    result = Range(Const(0.0), Const(0.0)) if result is None else result
    return result.where(_smooth(one.function, k - 1, operands))


def _derivative_range(one: PartialFunction, k: int, operands: Sequence[Range]) -> Range | None:
    inputs, graph = derivative_graph(one, k)
    if isinstance(graph, Const):
        return None if graph.value == 0.0 else Range(graph, graph)
    if not k:
        return as_range(value_range(one.function, *operands))
    stated = one.function.monotonicity
    if one.function.arity == 1 and stated and k < len(stated.critical_points):
        (argument,) = inputs

        def values(x: Expr) -> Range:
            return as_range(extended(graph, {argument: MidRad(x)})[graph])

        result = over_critical_points(values, stated, k, operands[0])
    else:
        result = as_range(extended(graph, dict(zip(inputs, operands, strict=True)))[graph])
    return result.where(inside_domain(one.function, operands))


def _smooth(function: ScalarFunction, order: int, operands: Sequence[Range]) -> Expr:
    """Where the function is certainly C^order over the operands."""
    holds: Expr = Const(True)
    for kink in function.kinks:
        if kink.order < order:
            if kink.at is None:
                return Const(False)
            holds = land(holds, lnot(may_hold(kink.at, operands).possible))
    return holds


@cache
def largest_derivative(function: ScalarFunction, k: int) -> float | None:
    """Upper bound on |k-th derivative| of a function of one number everywhere; None if unknown.

    From the images of the functions in its graph, or from its stated critical points: beyond the
    outermost ones it is monotone, hence bounded by its values there and at infinity. That it tends
    to 0 is indicated by its magnitudes at 1e3 and 1e6, and proved for every function to which this
    applies by SymPy's limits in tests/calculus/test_rays.py.
    """
    if function.arity != 1 or function.kinks or any(map(math.isfinite, sum(function.domain, ()))):
        return None
    (argument,), graph = derivative_graph(PartialFunction(function, 0, (None,)), k)
    stated = function.monotonicity
    if stated is None or stated.poles:
        return None
    if stated.period or k >= len(stated.critical_points):
        return _size_by_images(graph)

    def size(x: float) -> float:
        with as_doubles():
            result = as_midrad(extended(graph, {argument: MidRad(Const(x))})[graph]).magnitude
        return result.value if isinstance(result, Const) else math.inf

    if not all(size(1e6 * sign) <= size(1e3 * sign) + 1e-100 for sign in (1.0, -1.0)):
        return None
    points = (*stated.critical_points[k], 1e3, -1e3)
    largest = max(map(size, points)) * (1.0 + 1e-9)
    return largest if math.isfinite(largest) else None


def _size_by_images(graph: Expr) -> float | None:
    """Upper bound on the magnitude of a product of constants and functions with bounded images."""
    if isinstance(graph, Const):
        return math.fabs(graph.value)
    if not isinstance(graph, Map):
        return None
    if graph.function in (neg, mul):
        sizes = [_size_by_images(operand) for operand in graph.operands]
        known_sizes = [size for size in sizes if size is not None]
        return math.prod(known_sizes) if len(known_sizes) == len(sizes) else None
    stated = graph.function.monotonicity
    image = (-math.inf, math.inf) if stated is None else stated.image
    largest = max(map(math.fabs, image))
    return largest if math.isfinite(largest) else None
