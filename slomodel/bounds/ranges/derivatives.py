"""Intervals that contain all values of a scalar function's derivatives over intervals.

At a kink these are the derivatives of the adjacent pieces; `kinks` reports where kinks may be.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval, point
from slomodel.bounds.arithmetic.rounding import Array
from slomodel.bounds.ranges.point_values import values_at
from slomodel.bounds.ranges.values import elementwise, in_blocks, over_critical_points, value_range
from slomodel.calculus import jvp
from slomodel.functions.compound import stop_gradient
from slomodel.ir.build import const, variable
from slomodel.ir.exact import without_rounding
from slomodel.ir.expr import Const, Expr, Input
from slomodel.ir.function import ScalarFunction

Orders = int | tuple[int, ...]


def derivative_range(function: ScalarFunction, orders: Orders, *operands: Interval) -> Interval:
    """Range of a derivative over the operands: of order k, or of one order per operand.

    Hypothesis: every operand's value lies in its interval. Conclusion: so does the derivative's,
    wherever it exists. Functions whose records state the critical points of the derivative are
    enclosed to within a few ulps; for others intervals are propagated through the derivative's
    graph. Where a derivative is unbounded, an endpoint is infinite.
    """
    by = (orders,) if isinstance(orders, int) else orders
    if len(by) != function.arity:
        raise ValueError(f"{function} has {function.arity} operands, not {len(by)}")
    if not any(by):
        return value_range(function, *operands)
    if len(by) == 1 and _is_stated(function, by[0]):
        return derivative_ranges(function, by, operands[0])[0]
    inputs, graph = _derivative(function, by)
    shape = np.broadcast_shapes(*(operand.shape for operand in operands))
    if isinstance(graph, Const):
        return point(np.full(shape, float(graph.value)))

    def whole(*parts: Interval) -> list[Interval]:
        result = elementwise(graph, dict(zip(inputs, parts, strict=True)))
        wide = np.broadcast_shapes(*(part.shape for part in parts))
        return [result.broadcast(wide)]

    return in_blocks(whole, operands)[0]


def derivative_ranges(
    function: ScalarFunction, orders: Sequence[int], a: Interval
) -> list[Interval]:
    """`derivative_range` of a univariate function for several orders, with less work."""
    together = [k for k in orders if k > 0 and _is_stated(function, k)]
    result = {}
    if together:
        rule = partial(_at_critical_points, function, together)
        result = dict(zip(together, in_blocks(rule, [a]), strict=True))
    return [result[k] if k in result else derivative_range(function, k, a) for k in orders]


def _is_stated(function: ScalarFunction, k: int) -> bool:
    """Whether the critical points of the k-th derivative are stated, and it is not constant."""
    stated = function.monotonicity
    if function.arity > 1 or stated is None or k >= len(stated.critical_points):
        return False
    return not isinstance(_derivative(function, (k,))[1], Const)


def _at_critical_points(
    function: ScalarFunction, orders: Sequence[int], a: Interval
) -> list[Interval]:
    assert function.monotonicity is not None
    graphs = [_derivative(function, (k,))[1] for k in orders]
    (argument,) = _derivative(function, (orders[0],))[0]
    ends = [_at_points(graphs, argument, end) for end in (a.lo, a.hi)]
    result = []
    for place, k in enumerate(orders):

        def values(x: Array, place: int = place) -> Interval:
            for end, known in zip((a.lo, a.hi), ends, strict=True):
                if x is end:
                    return known[place]
            return _at_points([graphs[place]], argument, x)[0]

        result.append(over_critical_points(values, function.monotonicity, k, a))
    return result


def _at_points(graphs: Sequence[Expr], argument: Input, x: Array) -> list[Interval]:
    values = values_at(graphs, argument, x)
    return values or [elementwise(graph, {argument: point(x)}) for graph in graphs]


@cache
def _derivative(function: ScalarFunction, by: tuple[int, ...]) -> tuple[tuple[Input, ...], Expr]:
    """The derivative as a graph of scalars, and the inputs that represent the operands."""
    types = function.operand_types or ("real",) * function.arity
    inputs = tuple(
        variable(f"x{k}", ()) if dtype == "real" else Input(f"x{k}", "variable", (), "bool")
        for k, dtype in enumerate(types)
    )
    with without_rounding():
        graph: Expr = const(0.0) if function is stop_gradient else function(*inputs)
        for one, order in zip(inputs, by, strict=True):
            for _ in range(order):
                (graph,) = jvp((graph,), {one: const(1.0)})
    return inputs, graph
