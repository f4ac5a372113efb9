"""Directional derivatives by a forward sweep, and Hessian-vector products from it.

`where` needs no guard here: where a branch is not taken, neither is its tangent. Where the branch
that is taken is constant, its tangent is 0, and stays so beside the infinite derivative of a
function at an end of its domain, as of sqrt(where(i == 0, 0, x)).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import singledispatch
from weakref import WeakKeyDictionary

from slomodel.calculus.gradient import gradient, ties, total
from slomodel.calculus.matrices import tangent_of_operation
from slomodel.calculus.recurrence import states_along
from slomodel.functions import add, div, mul, neg, pow, sqrt, where
from slomodel.functions.translate import partial
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
    is_map,
)
from slomodel.ir.function import ScalarFunction
from slomodel.ir.walk import dependents, inputs, postorder

Tangents = Sequence[Expr | None]


def jvp(roots: Sequence[Expr], tangents: Mapping[Expr, Expr]) -> tuple[Expr, ...]:
    """The derivative of each root along `tangents`, which maps nodes to nodes of the same shape."""
    order = postorder(*roots)
    active = dependents(order, tangents.__contains__)
    known: dict[Expr, Expr | None] = dict(tangents)
    for node in order:
        if node in active and node not in known:
            known[node] = tangent(node, [known.get(operand) for operand in node.operands])
    results = [known.get(root) for root in roots]
    return tuple(
        result if result is not None else build.zeros(root.shape)
        for root, result in zip(roots, results, strict=True)
    )


def hessian_vector(objective: Expr, directions: Mapping[Expr, Expr]) -> tuple[Expr, ...]:
    """Hessian-vector products: variables as keys, directions as values; in key order."""
    return jvp(gradient(objective, list(directions)), directions)


@singledispatch
def tangent(node: Expr, tangents: Tangents) -> Expr | None:
    """The tangent of a node from the tangents of its operands; None stands for zero."""
    raise TypeError(f"no derivative rule for {type(node).__name__}")


@tangent.register
def _(node: Map, tangents: Tangents) -> Expr | None:
    operands = build.aligned(node)
    moved = [
        None if t is None else build.broadcast(t, axes, node.shape)
        for t, axes in zip(tangents, node.axes, strict=True)
    ]
    if node.function is where:
        if moved[1] is None and moved[2] is None:
            return None
        branches = [build.const(0.0) if t is None else t for t in moved[1:]]
        return build.apply(where, operands[0], *branches)
    if node.function is div and moved[1] is not None and not _has_short_partial(node, moved):
        return _of_quotient(node, operands[1], moved[0], moved[1])
    terms = []
    for k, varying in enumerate(moved):
        derivative = None if varying is None else partial(node.function, k, operands)
        if varying is not None and derivative is not None:
            terms.append(_scaled(derivative, varying, _has_infinite_slopes(node.function, k)))
    return total(terms) if terms else None


def _has_short_partial(quotient: Map, moved: Sequence[Expr | None]) -> bool:
    """Whether c/b is left to its derivative -c/b^2, which is the same in all directions.

    Of a root b the square is in range. Other constants c than 1, as data, are mostly factors of
    quotients that are small where b^2 is out of range, and a second factor costs a tenth of the
    product.
    """
    above, divisor = quotient.operands
    return moved[0] is None and (above != build.const(1.0) or is_map(divisor, sqrt))


def _of_quotient(node: Expr, divisor: Expr, above: Expr | None, below: Expr) -> Expr:
    """(a' - (a/b) b') / b: 1/b^2 leaves the range of doubles where b'/b does not."""
    reciprocal = build.apply(div, build.const(1.0), divisor)
    change = build.apply(neg, _scaled(node, below, True))
    if above is None:
        return _scaled(reciprocal, change, True)
    return build.apply(mul, reciprocal, build.apply(add, above, change))


def _has_infinite_slopes(function: ScalarFunction, k: int) -> bool:
    """Whether the derivative by operand k may be infinite where the value is finite."""
    ends = function.domain[k] if function.domain else (-math.inf, math.inf)
    return function in (div, pow) or any(map(math.isfinite, ends))


def _scaled(derivative: Expr, varying: Expr, may_be_infinite: bool) -> Expr:
    """The product, which is 0 where a choice of 0 and another tangent is 0."""
    choice = _choice_of_zero(varying) if may_be_infinite else None
    if choice is None or isinstance(derivative, Const):
        return build.apply(mul, derivative, varying)
    condition, *branches = choice
    zero = build.const(0.0)
    kept = [b if b is zero else _scaled(derivative, b, may_be_infinite) for b in branches]
    return build.apply(where, condition, *kept)


def _choice_of_zero(node: Expr) -> list[Expr] | None:
    """The operands of a choice by data one branch of which is 0; None of other nodes.

    Where a variable chooses, the branch may be taken at a single point, at which 0 is no limit.
    """
    if not isinstance(node, Map) or node.function is not where:
        return None
    condition, *branches = node.operands
    if build.const(0.0) not in branches or _varies(condition):
        return None
    return build.aligned(node)


def _varies(condition: Expr) -> bool:
    """Whether a condition depends on variables or on states of a recurrence."""
    if condition not in _varying:
        _varying[condition] = any(one.role != "data" for one in inputs(condition))
    return _varying[condition]


# Cached, since each product beside a choice needs it.
_varying: WeakKeyDictionary[Expr, bool] = WeakKeyDictionary()


@tangent.register
def _(node: Einsum, tangents: Tangents) -> Expr | None:
    terms = []
    for k, varying in enumerate(tangents):
        if varying is not None:
            operands = [*node.operands[:k], varying, *node.operands[k + 1 :]]
            terms.append(build.einsum(operands, node.inputs, node.output, node.dims))
    return total(terms) if terms else None


@tangent.register
def _(node: Gather, tangents: Tangents) -> Expr | None:
    varying = tangents[0]
    if varying is None:
        return None
    choice = _choice_of_zero(varying)
    if choice is None:
        return build.gather(varying, node.index, node.shape)
    moved = [build.gather(one, node.index, node.shape) if one.rank else one for one in choice]
    return build.apply(where, *moved)


@tangent.register
def _(node: Scatter, tangents: Tangents) -> Expr | None:
    varying = tangents[0]
    return None if varying is None else build.scatter(varying, node.index, node.shape)


@tangent.register
def _(node: Reshape, tangents: Tangents) -> Expr | None:
    varying = tangents[0]
    return None if varying is None else build.reshape(varying, node.shape)


@tangent.register
def _(node: Extreme, tangents: Tangents) -> Expr | None:
    varying = tangents[0]
    if varying is None:
        return None
    tied, count = ties(node)
    moved = build.apply(where, tied, varying, build.const(0.0))
    return build.apply(div, build.sum_over(moved, node.axes), count)


@tangent.register
def _(node: Scan, tangents: Tangents) -> Expr | None:
    terms = []
    if tangents[0] is not None:
        before = build.shifted(node, node.axis, 1)
        terms.append(build.apply(mul, tangents[0], before))
    if tangents[1] is not None:
        terms.append(tangents[1])
    if not terms:
        return None
    return build.scan(node.operands[0], total(terms), node.axis)


@tangent.register
def _(node: Recur, tangents: Tangents) -> Expr | None:
    if all(varying is None for varying in tangents):
        return None
    return states_along(node, tangents, jvp)[node.state]


@tangent.register
def _(node: MatrixOperation, tangents: Tangents) -> Expr | None:
    return tangent_of_operation(node, tangents)
