"""Elements of arrays of exponentials, read below logarithms and in quotients, in place.

With p = sigmoid(x), log(1 - p[g[i]]) is to be as accurate as log(1 - sigmoid(x[g[i]])). Functions
of read elements are applied before they are read, log(1 - p)[g[i]], as there are often more
readings than elements; where elements of several places meet, as in log(p[i] + p[i+1]), and where
few elements are read, the exponentials are those at these places. The law: the same values.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from slomodel.functions import (
    abs,
    add,
    cosh,
    div,
    erf,
    erfc,
    exp,
    expm1,
    log,
    log1p,
    log2,
    log10,
    mul,
    neg,
    normcdf,
    pow,
    sigmoid,
    sinh,
    sqrt,
    square,
    sub,
    tanh,
    where,
)
from slomodel.ir import build
from slomodel.ir.expr import (
    Affine,
    Axes,
    Const,
    Einsum,
    Expr,
    Extreme,
    Gather,
    Index,
    Lookup,
    Map,
    Recur,
    Scan,
    is_map,
    reads_axis,
)
from slomodel.ir.walk import postorder, users
from slomodel.rewrite.elementwise.matching import is_shifted
from slomodel.rewrite.replacement import remade

_LOGARITHMS = (log, log1p, log2, log10)
_EXPONENTIALS = (exp, expm1, sigmoid, normcdf, erf, erfc, cosh, sinh, tanh)
_PASSED = (abs, add, div, mul, neg, pow, sqrt, square, sub, where)


@dataclass(frozen=True, slots=True)
class _ReadLater:
    """Elements of `array` at an index, not read yet; `is_done`: a logarithm is taken of them."""

    array: Expr
    index: tuple[Index, ...]
    is_done: bool


def with_elements_read(root: Expr) -> Mapping[Expr, Expr]:
    """Maps each node under the root to the node with its readings moved."""
    order = postorder(root)
    marked = _marked(order)
    done: dict[Expr, Expr] = {}
    waiting: dict[Expr, _ReadLater] = {}
    for node in order:
        if node in marked:
            assert isinstance(node, Gather)
            array = done[node.operands[0]]
            if node.rank < array.rank:
                done[node] = _at(array, node.index, node)
                continue
            waiting[node] = _ReadLater(array, node.index, False)
        elif any(operand in waiting for operand in node.operands):
            through = _through(node, waiting)
            if through is not None:
                waiting[node] = through
        if node in waiting:
            one = waiting[node]
            whole = build.gather(one.array, one.index, node.shape)
            done[node] = whole if one.is_done else _at(one.array, one.index, node)
            continue
        operands = tuple(done[operand] for operand in node.operands)
        done[node] = node if operands == node.operands else remade(node, operands)
    return done


def _marked(order: list[Expr]) -> set[Expr]:
    """The readings of arrays with exponentials that are below logarithms."""
    own: set[Expr] = set()
    found: list[Gather] = []
    for node in order:
        if _is_exponential(node):
            own.add(node)
        elif isinstance(node, Map) and not is_map(node, *_LOGARITHMS):
            if any(operand in own for operand in node.operands):
                own.add(node)
        elif isinstance(node, Gather) and node.operands[0] in own:
            own.add(node)
            if all(isinstance(one, Affine | Lookup) for one in node.index):
                found.append(node)
    above = users(order) if found else {}
    reached = {node: _reached(node, above) for node in found}
    every = {*found, *(one for ones in reached.values() for one in ones)}
    return {node for node, ones in reached.items() if _is_taken_apart(ones, every)}


def _is_exponential(node: Expr) -> bool:
    if is_map(node, pow):
        return isinstance(node.operands[0], Const)
    # Elements of softmax have a rule of their own.
    is_scaled = is_map(node, exp) and is_shifted(node.operands[0])
    return is_map(node, *_EXPONENTIALS) and not is_scaled


def _reached(node: Gather, above: Mapping[Expr, list[Expr]]) -> set[Expr]:
    """The logarithms and terms that elements are in, and for those of a slice sums too.

    In sums over elements that are looked up, more exponentials than the array has are the work.
    """
    is_slice = all(isinstance(one, Affine) for one in node.index)
    stack: list[Expr] = [node]
    seen: set[Expr] = set()
    while stack:
        for one in above[stack.pop()]:
            is_passed = isinstance(one, Gather) or is_map(one, *_PASSED)
            is_sum = is_slice and isinstance(one, Einsum | Extreme | Recur | Scan)
            if one in seen or not (is_passed or is_sum or is_map(one, *_LOGARITHMS)):
                continue
            seen.add(one)
            if not is_map(one, *_LOGARITHMS):
                stack.append(one)
    return seen


def _is_taken_apart(reached: Collection[Expr], every: Collection[Expr]) -> bool:
    """Whether a logarithm is taken of some elements, or a quotient of these and others."""
    return any(
        is_map(one, *_LOGARITHMS) or (is_map(one, div) and all(k in every for k in one.operands))
        for one in reached
    )


def _through(node: Expr, waiting: Mapping[Expr, _ReadLater]) -> _ReadLater | None:
    """A function of elements at one index and of numbers, before they are read."""
    if not isinstance(node, Map):
        return None
    own = [waiting.get(operand) for operand in node.operands]
    first = next(one for one in own if one is not None)
    operands: list[Expr] = []
    axes: list[Axes] = []
    for operand, one, places in zip(node.operands, own, node.axes, strict=True):
        if one is None and not isinstance(operand, Const):
            return None
        if one is not None and (
            one.index != first.index
            or one.array.shape != first.array.shape
            or places != tuple(range(node.rank))
        ):
            return None
        operands.append(operand if one is None else one.array)
        axes.append(() if one is None else tuple(range(first.array.rank)))
    array = build.apply_along(node.function, operands, axes, first.array.shape)
    is_done = is_map(node, *_LOGARITHMS) or any(one is not None and one.is_done for one in own)
    return _ReadLater(array, first.index, is_done)


def _at(array: Expr, index: tuple[Index, ...], node: Expr) -> Expr:
    """Elements of an array, by the same functions of those of the arrays that it is made of."""
    known: dict[tuple[Expr, tuple[Index, ...]], tuple[Expr, Axes]] = {}
    shape = node.shape
    stack = [(array, tuple(index))]
    while stack:
        key = own, places = stack[-1]
        if key in known:
            stack.pop()
            continue
        below = _operands(own, places)
        missing = [one for one in below if one not in known]
        if missing:
            stack += missing
            continue
        stack.pop()
        axes = _axes_read(places, len(shape))
        if isinstance(own, Map) and own.rank:
            parts = [known[one] for one in below]
            narrow = [tuple(axes.index(k) for k in along) for _, along in parts]
            size = tuple(shape[k] for k in axes)
            value = build.apply_along(own.function, [part for part, _ in parts], narrow, size)
        elif own.rank:
            narrow_index = [_along(one, axes) for one in places]
            value = build.gather(own, narrow_index, tuple(shape[k] for k in axes))
        else:
            value = own
        known[key] = value, axes
    value, axes = known[array, tuple(index)]
    return build.broadcast(value, axes, shape)


def _operands(own: Expr, places: tuple[Index, ...]) -> list[tuple[Expr, tuple[Index, ...]]]:
    if not isinstance(own, Map) or not own.rank:
        return []
    return [
        (operand, tuple(places[k] for k in along))
        for operand, along in zip(own.operands, own.axes, strict=True)
    ]


def _axes_read(index: tuple[Index, ...], rank: int) -> Axes:
    """The axes of the result along which an index differs."""
    return tuple(axis for axis in range(rank) if any(reads_axis(one, axis) for one in index))


def _along(one: Index, axes: Axes) -> Index:
    """An index as a function of some of the axes of the result."""
    if isinstance(one, Affine):
        return Affine(one.offset, tuple(one.coefficients[k] for k in axes))
    assert isinstance(one, Lookup)
    return Lookup(tuple(axes.index(k) for k in one.axes), one.table)
