"""Intervals for every node of a graph over boxes of its inputs.

All arrays have `batch` leading axes (cells of a subdivision, directions), each of the common size
or 1, so that many boxes are enclosed at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import singledispatch
from operator import itemgetter
from types import MappingProxyType

import numpy as np

from slomodel.bounds.arithmetic.interval import (
    Interval,
    around,
    interval,
    meet,
    point,
    total,
    truths,
)
from slomodel.bounds.arithmetic.interval_einsum import contract
from slomodel.bounds.arithmetic.rounding import Array, Truths
from slomodel.bounds.part import ObjectivePart, once_per_part
from slomodel.bounds.ranges.liveness import (
    Live,
    Sizes,
    fixed_choices,
    has_neutral,
    live_elements,
    may_have_dead,
    neutral,
)
from slomodel.bounds.ranges.matrices import range_of_operation
from slomodel.bounds.ranges.range_cache import cache_in_use
from slomodel.bounds.ranges.recurrences import states_over
from slomodel.bounds.ranges.values import value_range
from slomodel.bounds.stopping import pause
from slomodel.errors import MissingRule
from slomodel.functions import eq
from slomodel.ir.dims import concrete
from slomodel.ir.expr import (
    Const,
    Einsum,
    Expr,
    Extreme,
    Gather,
    Input,
    Iota,
    Map,
    MatrixOperation,
    Recur,
    Reshape,
    Scan,
    Scatter,
    tables,
)
from slomodel.ir.walk import postorder
from slomodel.reference import aligned, positions


def enclose(
    roots: Sequence[Expr],
    boxes: Mapping[Input, Interval],
    sizes: Sizes,
    batch: int = 0,
    known: Mapping[Expr, Interval] = MappingProxyType({}),
    live: Live = MappingProxyType({}),
) -> dict[Expr, Interval]:
    """An interval for each node under the roots.

    Hypothesis: each input lies in its box. Conclusion: each node's exact value lies in its
    interval, elementwise; where a node is undefined in part of the box (outside a domain), the
    values elsewhere do. Nodes that are `known`, and those below them, are not enclosed again. The
    conclusion does not hold for elements that are dead by `live` (`live_under` of these roots or of
    more): they are set to `neutral`. Raises MissingRule for a kind of node without a rule.
    """
    result: dict[Expr, Interval] = dict(known)
    with np.errstate(all="ignore"):
        for node in postorder(*roots):
            if node in result:
                continue
            pause()
            if isinstance(node, Input):
                result[node] = neutral(node, boxes[node], live)
                continue
            own = _ranges_of(node, [result[o] for o in node.operands], sizes, batch)
            if isinstance(node, Recur):
                result |= zip(node.states, own, strict=True)
            else:
                result[node] = neutral(node, own[0], live)
    return result


def _ranges_of(
    node: Expr, operands: list[Interval], sizes: Sizes, batch: int
) -> Sequence[Interval]:
    """The interval of a node, or those of all states of a loop."""

    def compute() -> Sequence[Interval]:
        if isinstance(node, Recur):
            return states_of(node, operands, sizes, batch)
        return (range_of(node, operands, sizes, batch),)

    cache = cache_in_use()
    return cache.ranges(node, operands, sizes, batch, compute) if cache else compute()


def _of_a_step(
    node: Expr, operands: list[Interval], sizes: Sizes, batch: int
) -> Sequence[Interval]:
    """`_ranges_of` within a step of a loop, where the states of inner loops alone are looked up."""
    if isinstance(node, Recur):
        return _ranges_of(node, operands, sizes, batch)
    return (range_of(node, operands, sizes, batch),)


def states_of(
    node: Recur, operands: list[Interval], sizes: Sizes, batch: int
) -> Sequence[Interval]:
    """The intervals of all states of a loop."""
    return states_over(node, operands, sizes, batch, _of_a_step)


def enclose_narrowed(
    roots: Sequence[Expr],
    boxes: Mapping[Input, Interval],
    sizes: Sizes,
    narrower: Mapping[Expr, Interval],
    live: Live = MappingProxyType({}),
) -> dict[Expr, Interval]:
    """`enclose` over a subset of the box on which some nodes also lie in `narrower` intervals."""
    result = enclose(roots, boxes, sizes, live=live)
    known = {node: meet(result[node], a) for node, a in narrower.items()}
    return enclose(roots, boxes, sizes, known=known, live=live) if known else result


def live_under(
    roots: Sequence[Expr], boxes: Mapping[Input, Interval], sizes: Sizes
) -> dict[Expr, Truths]:
    """The elements of nodes that the roots depend on, for all values of the variables.

    `boxes` are those of the data, without batch axes. Empty where no dead element would be
    replaced.
    """
    order = postorder(*roots)
    if not any(has_neutral(node) for node in order):
        return {}
    if not fixed_choices(order) and not may_have_dead(order):
        return {}
    return elements_read(roots, boxes, sizes)


def elements_read(
    roots: Sequence[Expr], boxes: Mapping[Input, Interval], sizes: Sizes
) -> dict[Expr, Truths]:
    """`live_under` for any graph; all elements of nodes without an entry are live."""
    order = postorder(*roots)
    given: dict[Expr, Array] = {node: box.lo for node, box in boxes.items()}
    return live_elements(order, roots, enclose(fixed_choices(order), boxes, sizes), sizes, given)


@once_per_part
def live_in(part: ObjectivePart, *roots: Expr) -> Live:
    """`live_under` of a part's objective, or of the given derivatives of it."""
    return live_under(roots or (part.objective,), boxed(part.values), part.sizes)


def boxed(values: Mapping[Input, Array], batch: int = 0) -> dict[Input, Interval]:
    """Known arrays as point boxes, with batch axes of size 1."""
    return {
        node: point(np.asarray(array, dtype=np.float64)[(np.newaxis,) * batch])
        for node, array in values.items()
    }


def variable_box(part: ObjectivePart, variable: Input, radius: float) -> Interval:
    """The elements of a variable over the ball of this radius, cut by its limits."""
    box = around(part.values[variable], radius)
    limits = part.limits.get(variable)
    return box if limits is None else meet(box, limits)


def boxes_over(part: ObjectivePart, radius: float) -> dict[Input, Interval]:
    """The data as point boxes and every variable over the ball, cut by its limits."""
    boxes = boxed(part.values)
    boxes.update({variable: variable_box(part, variable, radius) for variable in part.variables})
    return boxes


@singledispatch
def range_of(node: Expr, operands: list[Interval], sizes: Sizes, batch: int) -> Interval:
    """The interval of one node from those of its operands."""
    raise MissingRule(f"no interval rule for {type(node).__name__}")


@range_of.register
def _(node: Const, operands: list[Interval], sizes: Sizes, batch: int) -> Interval:
    return point(np.full((1,) * batch, float(node.value)))


@range_of.register
def _(node: Iota, operands: list[Interval], sizes: Sizes, batch: int) -> Interval:
    array = np.arange(node.shape[0].size(sizes), dtype=np.float64)
    return point(array[(np.newaxis,) * batch])


@range_of.register
def _(node: Map, operands: list[Interval], sizes: Sizes, batch: int) -> Interval:
    if node.function is eq and isinstance(node.operands[1], Extreme):
        extreme = node.operands[1]
        if extreme.operands[0] is node.operands[0]:
            return _tied(operands[0], extreme, batch)
    wide = [aligned_interval(operand, node, k, batch) for k, operand in enumerate(operands)]
    result = value_range(node.function, *wide)
    shape = result.shape[:batch] + concrete(node.shape, sizes)
    if result.shape == shape:
        return result
    return result.broadcast(shape)


def aligned_interval(a: Interval, node: Map, k: int, batch: int = 0) -> Interval:
    """Operand k of a node, with axes of length 1 where the node has axes that it lacks."""
    axes = node.axes[k]
    if len(axes) == node.rank:
        return a
    return a.each(lambda array: aligned(array, axes, node.rank, batch))


@range_of.register
def _(node: Einsum, operands: list[Interval], sizes: Sizes, batch: int) -> Interval:
    labelled = list(zip(operands, node.inputs, strict=True))
    return contract(labelled, node.output, concrete(node.dims, sizes), batch)


@range_of.register
def _(node: Gather, operands: list[Interval], sizes: Sizes, batch: int) -> Interval:
    shape = operands[0].shape[batch:]
    own = _tables(node, operands, batch)
    where = positions(node.index, concrete(node.shape, sizes), shape, sizes, own)
    return operands[0].each(lambda array: np.asarray(array[(slice(None),) * batch + where]))


def _tables(node: Gather | Scatter, operands: list[Interval], batch: int) -> dict[Expr, Array]:
    """The tables that an index reads: data, so all elements of a batch are equal."""
    own = [np.asarray(operand.lo[(0,) * batch]) for operand in operands[1:]]
    return dict(zip(tables(node.index), own, strict=True))


@range_of.register
def _(node: Scatter, operands: list[Interval], sizes: Sizes, batch: int) -> Interval:
    """Each element is the sum of the elements scattered to it, padded with zeros to one length."""
    a = operands[0]
    shape = concrete(node.shape, sizes)
    front = a.shape[:batch]
    own = _tables(node, operands, batch)
    where = positions(node.index, a.shape[batch:], shape, sizes, own)
    flat = np.ravel_multi_index(where, shape).ravel() if shape else np.zeros(a.lo.size, dtype=int)
    order = np.argsort(flat, kind="stable")
    target = flat[order]
    starts = np.searchsorted(target, target)
    rank = np.arange(target.size) - starts
    deepest = int(rank.max(initial=0)) + 1

    def padded(array: Array) -> Array:
        out = np.zeros((*front, int(np.prod(shape, dtype=int)), deepest))
        out[..., target, rank] = array.reshape((*front, order.size))[..., order]
        return out

    spread = a.each(padded)
    summed = spread.each(lambda array: array[..., 0]) if deepest == 1 else total(spread, -1)
    return summed.each(lambda array: array.reshape(front + shape))


@range_of.register
def _(node: MatrixOperation, operands: list[Interval], sizes: Sizes, batch: int) -> Interval:
    return range_of_operation(node.function, operands)


@range_of.register
def _(node: Reshape, operands: list[Interval], sizes: Sizes, batch: int) -> Interval:
    shape = concrete(node.shape, sizes)
    return operands[0].each(lambda array: np.reshape(array, array.shape[:batch] + shape))


@range_of.register
def _(node: Extreme, operands: list[Interval], sizes: Sizes, batch: int) -> Interval:
    pick = np.max if node.which == "max" else np.min
    axes = tuple(batch + axis for axis in node.axes)
    return operands[0].each(lambda array: np.asarray(pick(array, axis=axes)))


@range_of.register
def _(node: Scan, operands: list[Interval], sizes: Sizes, batch: int) -> Interval:
    axis = batch + node.axis
    factor, term = (o.each(lambda array: np.moveaxis(array, axis, -1)) for o in operands)
    length = term.shape[-1]
    shape = np.broadcast_shapes(factor.shape, term.shape)
    lo, hi = np.empty(shape), np.empty(shape)
    before: Interval | None = None
    for i in range(length):
        now = term.each(itemgetter((..., i)))
        if before is not None:
            now = factor.each(itemgetter((..., i))) * before + now
        lo[..., i], hi[..., i] = now.lo, now.hi
        before = now
    return interval(np.moveaxis(lo, -1, axis), np.moveaxis(hi, -1, axis))


@range_of.register
def _(node: Recur, operands: list[Interval], sizes: Sizes, batch: int) -> Interval:
    return states_of(node, operands, sizes, batch)[node.state]


def _tied(a: Interval, extreme: Extreme, batch: int) -> Interval:
    """Which elements attain the extreme: certainly those that no other element can exceed.

    Where elements only touch, each may attain it; ties of measure 0 are ignored.
    """
    a = a if extreme.which == "max" else -a
    axes = tuple(batch + axis for axis in extreme.axes)
    ordered = np.sort(np.moveaxis(a.hi, axes, range(-len(axes), 0)).reshape(_flat(a, axes)), -1)
    largest = np.expand_dims(ordered[..., -1], axes)
    second = ordered[..., -2] if ordered.shape[-1] > 1 else np.full(ordered.shape[:-1], -np.inf)
    others = np.where(a.hi == largest, np.expand_dims(second, axes), largest)
    least = np.max(a.lo, axis=axes, keepdims=True)
    return truths(a.lo >= others, a.hi < least)


def _flat(a: Interval, axes: tuple[int, ...]) -> tuple[int, ...]:
    kept = tuple(size for k, size in enumerate(a.shape) if k not in axes)
    return (*kept, -1)
