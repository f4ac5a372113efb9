"""Intervals that hold all values of a scalar function's derivatives over intervals.

At a kink these are the derivatives of the pieces on its sides; `kinks` says where there may be one.
"""

from __future__ import annotations

from functools import cache, partial

import numpy as np

from slomodel.bounds.interval import Interval, point
from slomodel.bounds.rounding import Array
from slomodel.bounds.values import elementwise, in_blocks, over_turns, value_range
from slomodel.calculus import jvp
from slomodel.functions.compound import still
from slomodel.ir.build import const, variable
from slomodel.ir.expr import Const, Expr, Input
from slomodel.ir.function import ScalarFunction

Orders = int | tuple[int, ...]


def derivative_range(function: ScalarFunction, orders: Orders, *operands: Interval) -> Interval:
    """All values of a derivative over the operands: of order k, or of an order by each operand.

    Hypothesis: every operand's value lies in its interval. Conclusion: so does the derivative's,
    wherever it exists. A function that states where its derivatives turn is enclosed to a few
    steps of the last place; another by propagating intervals through the derivative's graph.
    Where a derivative is not bounded, an end is infinite.
    """
    by = (orders,) if isinstance(orders, int) else orders
    if len(by) != function.arity:
        raise ValueError(f"{function} has {function.arity} operands, not {len(by)}")
    if not any(by):
        return value_range(function, *operands)
    inputs, graph = _derivative(function, by)
    shape = np.broadcast_shapes(*(operand.shape for operand in operands))
    if isinstance(graph, Const):
        return point(np.full(shape, float(graph.value)))
    turns = None if function.monotony is None else function.monotony
    if len(by) == 1 and turns is not None and by[0] < len(turns.turns):
        (a,) = operands

        def values(x: Array) -> Interval:
            return elementwise(graph, {inputs[0]: point(x)})

        return in_blocks(partial(over_turns, values, turns, by[0]), [a])

    def whole(*parts: Interval) -> Interval:
        return elementwise(graph, dict(zip(inputs, parts, strict=True)))

    result = in_blocks(whole, operands)
    return result.each(lambda array: np.broadcast_to(array, shape))


@cache
def _derivative(function: ScalarFunction, by: tuple[int, ...]) -> tuple[tuple[Input, ...], Expr]:
    """The derivative as a graph of scalars, and the inputs that stand for the operands."""
    types = function.operand_types or ("real",) * function.arity
    inputs = tuple(
        variable(f"x{k}", ()) if dtype == "real" else Input(f"x{k}", "variable", (), "bool")
        for k, dtype in enumerate(types)
    )
    graph: Expr = const(0.0) if function is still else function(*inputs)
    for one, order in zip(inputs, by, strict=True):
        for _ in range(order):
            (graph,) = jvp((graph,), {one: const(1.0)})
    return inputs, graph
