"""Values of a graph in extended precision, with rounding unit 2^-64, where NumPy has it.

Every array that is not a position or a truth value is of type `longdouble`, so that each operation
is rounded once. For graphs of functions that NumPy has in that type (`calculus/rays/extended.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isqrt
from string import ascii_letters
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slomodel.ir.dims import concrete
from slomodel.ir.expr import Einsum, Expr, Input
from slomodel.ir.walk import postorder
from slomodel.reference.values import Sizes, meaning

Array = NDArray[Any]
_BITS = 63
"""Bits of a significand after its first one."""


def has_extended_precision() -> bool:
    """Whether `longdouble` is more precise than doubles by 11 bits or more."""
    return int(np.finfo(np.longdouble).nmant) >= _BITS


class ExtendedValues:
    """The values of fixed roots, of which the nodes that read no varying input are computed once.

    The arrays of the others are freed after their last use.
    """

    def __init__(
        self,
        roots: Sequence[Expr],
        given: Mapping[Input, Array],
        varying: Sequence[Input],
        sizes: Sizes,
    ) -> None:
        self._roots, self._sizes = tuple(roots), sizes
        order = postorder(*roots)
        moving: set[Expr] = set()
        for node in order:
            if node in varying or any(operand in moving for operand in node.operands):
                moving.add(node)
        still = [node for node in order if node not in moving]
        fixed = _computed(still, {node: _wide(one) for node, one in given.items()}, sizes)
        self._order = [node for node in order if node in moving]
        read = {operand for node in self._order for operand in node.operands} | set(roots)
        self._fixed = {node: one for node, one in fixed.items() if node in read}
        last = {operand: node for node in self._order for operand in node.operands}
        self._done: dict[Expr, list[Expr]] = {}
        for operand, node in last.items():
            if operand in moving and operand not in roots:
                self._done.setdefault(node, []).append(operand)

    def __call__(self, values: Mapping[Input, Array]) -> list[Array]:
        """The roots, for values of the inputs that vary."""
        every: dict[Expr, Array] = {**self._fixed}
        every.update((node, _wide(one)) for node, one in values.items())
        with np.errstate(all="ignore"):
            for node in self._order:
                if node not in every:
                    every[node] = _value(node, [every[o] for o in node.operands], self._sizes)
                for operand in self._done.get(node, ()):
                    del every[operand]
        return [every[root] for root in self._roots]


def _computed(
    order: Sequence[Expr], given: Mapping[Expr, Array], sizes: Sizes
) -> dict[Expr, Array]:
    """The values of nodes in evaluation order."""
    every: dict[Expr, Array] = dict(given)
    with np.errstate(all="ignore"):
        for node in order:
            if node not in every:
                every[node] = _value(node, [every[o] for o in node.operands], sizes)
    return every


def _value(node: Expr, operands: list[Array], sizes: Sizes) -> Array:
    if isinstance(node, Einsum) and _is_sum(node):
        return _contracted(node, operands, sizes)
    return _wide(meaning(node, operands, sizes))


def _is_sum(node: Einsum) -> bool:
    return len(set(node.output)) < len(node.dims)


def _contracted(node: Einsum, operands: Sequence[Array], sizes: Sizes) -> Array:
    """A sum of products by parts of about √k elements along each summed axis of length k.

    Its terms then pass through 2√k additions instead of k, in any order within each of both sums.
    """
    shape = concrete(node.dims, sizes)
    width = {k: isqrt(shape[k] - 1) + 1 for k in _summed(node) if shape[k] > 1}
    letters = [ascii_letters[k] for k in range(len(shape))]
    both = {k: letters[k] + ascii_letters[len(shape) + k] for k in width}
    present = {label for labels in node.inputs for label in labels}
    alone = [label for label in range(len(shape)) if label not in present]
    arrays = [*operands, *(np.ones(shape[label], np.longdouble) for label in alone)]
    inputs = [*node.inputs, *((label,) for label in alone)]
    parts = [_in_parts(one, own, width) for one, own in zip(arrays, inputs, strict=True)]
    spec = ",".join("".join(both.get(k, letters[k]) for k in own) for own in inputs)
    spec += "->" + "".join(letters[k] for k in (*node.output, *width))
    result = np.einsum(spec, *parts, optimize="greedy" if len(parts) > 2 else False)
    return np.asarray(result.sum(axis=tuple(range(len(node.output), result.ndim))))


def _summed(node: Einsum) -> list[int]:
    return [label for label in range(len(node.dims)) if label not in node.output]


def _in_parts(array: Array, labels: Sequence[int], width: Mapping[int, int]) -> Array:
    """Each axis of a label with a width w as two, of which the second has length w."""
    for axis in reversed(range(len(labels))):
        w = width.get(labels[axis])
        if w is not None:
            lack = -array.shape[axis] % w
            padding = [(0, lack if k == axis else 0) for k in range(array.ndim)]
            array = np.pad(array, padding)
            first, last = array.shape[:axis], array.shape[axis + 1 :]
            array = array.reshape(*first, array.shape[axis] // w, w, *last)
    return array


def _wide(array: object) -> Array:
    """The array in extended precision; truth values and positions stay as they are."""
    result = np.asarray(array)
    return result.astype(np.longdouble) if result.dtype == np.float64 else result
