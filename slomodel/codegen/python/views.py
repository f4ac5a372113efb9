"""NumPy expressions for views: permuted and broadcast axes, slices, flat positions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

from slomodel.ir.dims import Dim, Shape
from slomodel.ir.expr import Affine, Axes, Einsum, Expr, Index, Lookup, Multiset, affine

PARTS = "_parts"
"""The function of a generated module that lists the values of a `Multiset` index."""

PARTS_SOURCE = '''
def _parts(size, degree, start, stop):
    """For each sorted tuple of numbers below `size`: the place of its part `start:stop`."""
    parts = combinations_with_replacement(range(size), stop - start)
    place = {part: k for k, part in enumerate(parts)}
    every = combinations_with_replacement(range(size), degree)
    return np.array([place[whole[start:stop]] for whole in every], dtype=int)
'''


INSIDE = "_inside"
"""The function of a generated module that checks the indices of a table."""

INSIDE_SOURCE = '''
def _inside(table, size):
    """The table, whose elements must be indices into an axis of this size."""
    if table.size and not 0 <= table.min() <= table.max() < size:
        raise IndexError(f"indices {table.min()} to {table.max()} leave an axis of size {size}")
    return table
'''


HELPERS = {PARTS: PARTS_SOURCE, INSIDE: INSIDE_SOURCE}
"""The functions that a generated module defines where it uses them."""


def listed(index: Multiset, sizes: Mapping[str, int]) -> NDArray[np.intp]:
    """The values of an index along its axis."""
    numbers = range(index.size.size(sizes))
    parts = combinations_with_replacement(numbers, index.stop - index.start)
    place = {part: k for k, part in enumerate(parts)}
    every = combinations_with_replacement(numbers, index.degree)
    return np.array([place[whole[index.start : index.stop]] for whole in every], dtype=np.intp)


TextOf = Callable[[Dim], str]


def axes_view(node: Einsum, base: str, shape: str) -> str:
    """The operand `base` with its axes permuted and broadcast as in the node."""
    own = node.inputs[0]
    kept = [label for label in node.output if label in own]
    order = tuple(own.index(label) for label in kept)
    text = base if order == tuple(range(len(order))) else f"{base}.transpose{order}"
    if len(kept) == len(node.output):
        return text
    return f"np.broadcast_to({expanded(text, node.output, own)}, {shape})"


def expanded(text: str, output: Axes, own: Axes) -> str:
    """`text` with an axis of size 1 for every output axis it lacks."""
    marks = [":" if label in own else "None" for label in output]
    while marks and marks[-1] == ":":
        marks.pop()
    return f"{text}[{', '.join(marks)}]" if "None" in marks else text


def slice_view(index: tuple[Index, ...], shape: Shape, base: str, text_of: TextOf) -> str:
    """The elements `index(o)` of `base` for every o of `shape`, by basic slicing."""
    items, axes = [], []
    for one in affine(index):
        runs = [axis for axis, coefficient in enumerate(one.coefficients) if coefficient]
        if runs:
            axes.append(runs[0])
            items.append(_slice(one, one.coefficients[runs[0]], shape[runs[0]], text_of))
        else:
            items.append(text_of(one.offset))
    forward = [item.removesuffix("!") for item in items]
    text = f"{base}[{', '.join(forward)}]"
    if any(item.endswith("!") for item in items):
        turned = [("::-1" if item.endswith("!") else ":") for item in items if ":" in item]
        text += f"[{', '.join(turned)}]"
    order = tuple(axes.index(axis) for axis in range(len(axes)))
    return text if order == tuple(range(len(order))) else f"{text}.transpose{order}"


def _slice(one: Affine, step: int, size: Dim, text_of: TextOf) -> str:
    """`lo:hi:step` of a run; a mark at the end says that the slice has to be reversed."""
    low = one.offset if step > 0 else one.offset + (size - 1) * step
    if abs(step) == 1:
        text = f"{text_of(low)}:{text_of(low + size)}"
    else:
        high = low + (size - 1) * abs(step) + 1
        text = f"{text_of(low)}:{text_of(high)}:{abs(step)}"
    return text if step > 0 else text + "!"


def flat_positions(
    index: Sequence[Index],
    iterated: Shape,
    indexed: Shape,
    text_of: TextOf,
    table_text: Callable[[Expr], str],
) -> str:
    """The position in C order, in an array of shape `indexed`, of every element of `iterated`."""
    terms = []
    for k, one in enumerate(index):
        stride = "*".join(f"({text_of(dim)})" for dim in indexed[k + 1 :])
        if isinstance(one, Lookup):
            place = _looked_up(one, len(iterated), text_of(indexed[k]), table_text)
        elif isinstance(one, Multiset):
            marks = _only(one.axis, len(iterated))
            part = f"{text_of(one.size)}, {one.degree}, {one.start}, {one.stop}"
            place = f"{PARTS}({part})[{marks}]"
        else:
            parts = [f"({text_of(one.offset)})"]
            for axis, coefficient in enumerate(one.coefficients):
                if coefficient:
                    marks = _only(axis, len(iterated))
                    parts.append(f"{coefficient}*np.arange({text_of(iterated[axis])})[{marks}]")
            place = f"({' + '.join(parts)})"
        terms.append(f"{place}*{stride}" if stride else place)
    return " + ".join(terms)


def _looked_up(one: Lookup, rank: int, size: str, table_text: Callable[[Expr], str]) -> str:
    """The values of a table, broadcastable along its axes in an array of the given rank."""
    text = table_text(one.table)
    if one.table.dtype != "whole":
        text = f"np.rint({text}).astype(int)"
    text = f"{INSIDE}({text}, {size})"
    order = sorted(range(len(one.axes)), key=one.axes.__getitem__)
    if order != list(range(len(order))):
        text += f".transpose({order})"
    marks = [":" if axis in one.axes else "None" for axis in range(rank)]
    return f"{text}[{', '.join(marks)}]" if "None" in marks else text


def _only(axis: int, rank: int) -> str:
    """Subscripts that make a vector broadcastable along one axis of an array of the given rank."""
    return ", ".join(":" if other == axis else "None" for other in range(rank))
