"""Guards: where an adjoint can be nonzero, for nodes below a branch of `where`.

The adjoint of a branch that is not taken is zero, but zero times an infinite derivative of that
branch is NaN. The reverse sweep therefore carries a guard for each node that is only used below
branches: a truth value per element that says whether a taken branch uses it. Elements outside the
guard are set to zero once, at the end of a chain of elementwise operations, before they can reach a
live element.

Testing whether the adjoint is zero instead would lose second derivatives at points where a live
adjoint happens to vanish. `None` stands for "live everywhere".
"""

from __future__ import annotations

import math
from functools import singledispatch

from slomodel.functions import gt, land, lor, mul, neg, where
from slomodel.ir import build
from slomodel.ir.expr import (
    Const,
    Einsum,
    Expr,
    Extreme,
    Gather,
    Map,
    MatrixOperation,
    Recur,
    Reshape,
    Scan,
    Scatter,
)

Guard = Expr | None


def union(guards: list[Guard]) -> Guard:
    """The union of the guards of several uses: an element is live if any use is."""
    result = guards[0]
    for guard in guards[1:]:
        if result is None or guard is None:
            return None
        if guard is not result:
            result = build.apply(lor, result, guard)
    return result


def intersection(outer: Guard, inner: Expr) -> Expr:
    """The intersection of two guards of the same shape."""
    return inner if outer is None else build.apply(land, outer, inner)


def restrict(guard: Guard, node: Expr) -> Expr:
    """`node` where the guard holds, 0 elsewhere; both have the same shape."""
    if guard is None or _vanishes_outside(guard, node):
        return node
    return build.apply(where, guard, node, build.const(0.0))


def _vanishes_outside(guard: Expr, node: Expr) -> bool:
    """Whether a node is a multiple of one that `restrict` returned for this guard."""
    while isinstance(node, Map) and node.function in (mul, neg) and node.rank:
        *factor, rest = node.operands
        finite = all(isinstance(f, Const) and math.isfinite(f.value) for f in factor)
        if not finite or rest.shape != node.shape:
            return False
        node = rest
    if not isinstance(node, Map) or node.function is not where:
        return False
    condition, _, other = node.operands
    return condition is guard and other is build.const(0.0)


def _count(guard: Expr) -> Expr:
    return build.apply(where, guard, build.const(1.0), build.const(0.0))


def _positive(count: Expr) -> Expr:
    return build.apply(gt, count, build.const(0.0))


@singledispatch
def guard_of_operand(node: Expr, k: int, guard: Expr) -> Expr:
    """The guard of operand k, of its shape: whether live elements of `node` use an element."""
    raise TypeError(f"no guard rule for {type(node).__name__}")


@guard_of_operand.register
def _(node: Map, k: int, guard: Expr) -> Expr:
    dropped = tuple(axis for axis in range(node.rank) if axis not in node.axes[k])
    return _positive(build.sum_over(_count(guard), dropped)) if dropped else guard


@guard_of_operand.register
def _(node: Einsum, k: int, guard: Expr) -> Expr:
    return _positive(build.einsum([_count(guard)], [node.output], node.inputs[k], node.dims))


@guard_of_operand.register
def _(node: Gather, k: int, guard: Expr) -> Expr:
    return _positive(build.scatter(_count(guard), node.index, node.operands[0].shape))


@guard_of_operand.register
def _(node: Scatter, k: int, guard: Expr) -> Expr:
    return build.gather(guard, node.index, node.operands[0].shape)


@guard_of_operand.register
def _(node: Reshape, k: int, guard: Expr) -> Expr:
    return build.reshape(guard, node.operands[0].shape)


@guard_of_operand.register
def _(node: Extreme, k: int, guard: Expr) -> Expr:
    return build.spread(guard, node)


@guard_of_operand.register
def _(node: Scan, k: int, guard: Expr) -> Expr:
    """For a scan: an element is used by all results from its own position on."""
    return _positive(build.backward_scan(build.ones(node.shape), _count(guard), node.axis))


@guard_of_operand.register(MatrixOperation)
@guard_of_operand.register(Recur)
def _(node: MatrixOperation | Recur, k: int, guard: Expr) -> Expr:
    """For a recurrence or an operation on matrices: all elements count as used if one may be."""
    every = _positive(build.sum_over(_count(guard), tuple(range(node.rank))))
    return build.broadcast(every, (), node.operands[k].shape)
