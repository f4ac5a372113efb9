"""Small graphs written by element: each array as scalars, so that a step needs no inner loops."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce, singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slomodel.codegen.loops.access import Numbers
from slomodel.functions import add, maximum, minimum, mul
from slomodel.ir import build
from slomodel.ir.dims import concrete, number_of_elements
from slomodel.ir.expr import (
    Const,
    Einsum,
    Expr,
    Extreme,
    Gather,
    Input,
    Iota,
    Map,
    Reshape,
    Scan,
    Scatter,
    is_listed,
)
from slomodel.ir.walk import postorder
from slomodel.reference.values import positions

MOST = 300
"""The largest number of scalar operations of a graph that is written by element."""
LONG = 32
"""Elements from which on a loop over vectors is as fast as scalars, and compiled far sooner."""

Elements = NDArray[np.object_]
"""An array of scalar nodes."""


def by_element(
    roots: Sequence[Expr], numbers: Numbers
) -> tuple[list[Elements], dict[Input, tuple[Expr, tuple[int, ...]]]] | None:
    """The elements of the roots as scalar graphs, and the element that each new input stands for.

    None for a graph that is too large, has long arrays, or reads elements at positions that depend
    on data.
    """
    order = postorder(*roots)
    if not all(map(_has_rule, order)) or sum(_work(node, numbers) for node in order) > MOST:
        return None
    maps = (node for node in order if isinstance(node, Map))
    if any(number_of_elements(node.shape, numbers) >= LONG for node in maps):
        return None
    inputs: dict[Input, tuple[Expr, tuple[int, ...]]] = {}
    result: dict[Expr, Elements] = {}
    for node in order:
        shape = concrete(node.shape, numbers)
        if isinstance(node, Input):
            own = np.empty(shape, object)
            for at in np.ndindex(shape):
                one = Input(f"{node.name}{list(at)}", "step", (), node.dtype)
                own[at], inputs[one] = one, (node, at)
            result[node] = own
        else:
            result[node] = elements_of(node, [result[o] for o in node.operands], numbers)
    return [result[root] for root in roots], inputs


def _has_rule(node: Expr) -> bool:
    kinds = (Input, Const, Iota, Map, Einsum, Gather, Scatter, Reshape, Extreme, Scan)
    return isinstance(node, kinds) and not is_listed(node)


def _work(node: Expr, numbers: Numbers) -> int:
    if isinstance(node, (Const, Input, Gather, Reshape)):
        return 0
    if isinstance(node, Einsum):
        return number_of_elements(node.dims, numbers) * (len(node.operands) > 1 or _sums(node))
    wide = node.operands[0] if isinstance(node, (Extreme, Scatter)) else node
    return number_of_elements(wide.shape, numbers)


def _sums(node: Einsum) -> bool:
    return set(node.output) != set(range(len(node.dims)))


@singledispatch
def elements_of(node: Expr, operands: list[Elements], numbers: Numbers) -> Elements:
    """The elements of a node from those of its operands."""
    raise TypeError(f"no elements of {type(node).__name__}")


def _filled(shape: tuple[int, ...], value: Expr) -> Elements:
    result = np.empty(shape, object)
    result.fill(value)
    return result


@elements_of.register
def _(node: Const, operands: list[Elements], numbers: Numbers) -> Elements:
    return _filled((), node)


@elements_of.register
def _(node: Iota, operands: list[Elements], numbers: Numbers) -> Elements:
    filled = _filled(concrete(node.shape, numbers), Const(0.0))
    for k in range(len(filled)):
        filled[k] = Const(float(k))
    return filled


@elements_of.register
def _(node: Map, operands: list[Elements], numbers: Numbers) -> Elements:
    filled = _filled(concrete(node.shape, numbers), Const(0.0))
    for at in np.ndindex(filled.shape):
        own = [
            one[tuple(at[a] for a in axes)] for one, axes in zip(operands, node.axes, strict=True)
        ]
        filled[at] = build.apply(node.function, *own)
    return filled


@elements_of.register
def _(node: Einsum, operands: list[Elements], numbers: Numbers) -> Elements:
    sizes = concrete(node.dims, numbers)
    shape = tuple(sizes[label] for label in node.output)
    terms: dict[tuple[int, ...], list[Expr]] = {}
    for at in np.ndindex(sizes):
        factors = [
            one[tuple(at[k] for k in own)] for one, own in zip(operands, node.inputs, strict=True)
        ]
        product = reduce(lambda a, b: build.apply(mul, a, b), factors) if factors else Const(1.0)
        terms.setdefault(tuple(at[k] for k in node.output), []).append(product)
    filled = _filled(shape, Const(0.0))
    for place, own in terms.items():
        filled[place] = _total(own)
    return filled


def _total(terms: Sequence[Expr]) -> Expr:
    return reduce(lambda a, b: build.apply(add, a, b), terms)


@elements_of.register
def _(node: Gather, operands: list[Elements], numbers: Numbers) -> Elements:
    array = operands[0]
    where = positions(node.index, concrete(node.shape, numbers), array.shape, numbers, {})
    return _as_array(array[where], concrete(node.shape, numbers))


@elements_of.register
def _(node: Scatter, operands: list[Elements], numbers: Numbers) -> Elements:
    array = operands[0]
    filled = _filled(concrete(node.shape, numbers), Const(0.0))
    where = positions(node.index, array.shape, filled.shape, numbers, {})
    for at, moved in zip(np.ndindex(array.shape), scalars(array), strict=True):
        place = tuple(int(one[at]) for one in where)
        filled[place] = build.apply(add, filled[place], moved)
    return filled


@elements_of.register
def _(node: Reshape, operands: list[Elements], numbers: Numbers) -> Elements:
    return _as_array(operands[0].reshape(-1), concrete(node.shape, numbers))


def _as_array(values: Any, shape: tuple[int, ...]) -> Elements:
    result = np.empty(shape, object)
    result[...] = np.reshape(np.asarray(values, object), shape)
    return result


@elements_of.register
def _(node: Extreme, operands: list[Elements], numbers: Numbers) -> Elements:
    function, start = (maximum, -np.inf) if node.which == "max" else (minimum, np.inf)
    moved = np.moveaxis(operands[0], node.axes, range(len(node.axes)))
    shape = concrete(node.shape, numbers)
    flat = moved.reshape((-1, *shape))
    filled = _filled(shape, Const(start))
    for at in np.ndindex(shape):
        own = [flat[(k, *at)] for k in range(len(flat))]
        if own:
            filled[at] = reduce(lambda a, b: build.apply(function, a, b), own)
    return filled


@elements_of.register
def _(node: Scan, operands: list[Elements], numbers: Numbers) -> Elements:
    factor, term = (np.moveaxis(operand, node.axis, 0) for operand in operands)
    result = _as_array(term, term.shape)
    for i in range(1, len(result)):
        for at in np.ndindex(result.shape[1:]):
            carried = build.apply(mul, factor[(i, *at)], result[(i - 1, *at)])
            result[(i, *at)] = build.apply(add, carried, term[(i, *at)])
    return np.moveaxis(result, 0, node.axis)


def scalars(elements: Elements) -> list[Expr]:
    """The scalar nodes in C order."""
    return list(elements.reshape(-1))
