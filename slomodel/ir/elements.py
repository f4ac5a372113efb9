"""Elements of an expression at listed positions, computed without its other elements.

A product U Vᵀ at the entries (i_k, j_k) of a sparse matrix is Σ_r U[i_k, r] V[j_k, r]: the work is
proportional to the number of entries.
"""

from __future__ import annotations

from typing import TypeAlias

from slomodel.ir.dims import Dim
from slomodel.ir.elementwise import apply_along
from slomodel.ir.expr import Affine, Axes, Einsum, Expr, Index, Lookup, Map
from slomodel.ir.linear import einsum, gather

Tables: TypeAlias = tuple[Expr | None, ...]
"""For each axis its positions, an array of whole numbers along the list, or None: all of them."""
_Request: TypeAlias = tuple[Expr, Tables]


def elements_at(node: Expr, tables: Tables) -> Expr:
    """The elements at positions of some axes; the other axes come first, the list's axis last.

    Elementwise functions and sums of products along two or more such axes are computed at the
    positions alone. Along one axis an array is computed as a whole, and then read.
    """
    known: dict[_Request, Expr] = {}
    stack: list[_Request] = [(node, tables)]
    while stack:
        request = stack[-1]
        parts = _parts(request)
        missing = [part for part in parts if part not in known]
        if missing:
            stack += missing
            continue
        stack.pop()
        known[request] = _read(request, [known[part] for part in parts])
    return known[node, tables]


def _parts(request: _Request) -> list[_Request]:
    """The elements of operands that the elements of a node are computed from."""
    node, tables = request
    if sum(one is not None for one in tables) < 2:
        return []
    if isinstance(node, Map):
        pairs = zip(node.operands, node.axes, strict=True)
        return [(operand, tuple(tables[axis] for axis in own)) for operand, own in pairs]
    if isinstance(node, Einsum) and len(set(node.output)) == len(node.output):
        table = dict(zip(node.output, tables, strict=True))
        inputs = zip(node.operands, node.inputs, strict=True)
        return [(operand, tuple(map(table.get, own))) for operand, own in inputs]
    return []


def _read(request: _Request, operands: list[Expr]) -> Expr:
    node, tables = request
    listed = [one for one in tables if one is not None]
    if not listed:
        return node
    size = listed[0].shape[0]
    if len(listed) < 2 or not operands:
        return _gathered(node, tables, size)
    if isinstance(node, Map):
        kept = [axis for axis, one in enumerate(tables) if one is None]
        shape = (*(node.shape[axis] for axis in kept), size)
        number = {axis: k for k, axis in enumerate(kept)}
        axes = [_along(own, tables, number, len(kept)) for own in node.axes]
        return apply_along(node.function, operands, axes, shape)
    assert isinstance(node, Einsum)
    table = dict(zip(node.output, tables, strict=True))
    entry = len(node.dims)
    every = [table.get(label) for label in range(entry)]
    own_labels = {label: label for label in range(entry)}
    inputs = [_along(own, every, own_labels, entry) for own in node.inputs]
    output = (*(label for label in node.output if table[label] is None), entry)
    return _without_unused(operands, inputs, output, (*node.dims, size), every)


def _along(
    own: Axes, tables: list[Expr | None] | Tables, number: dict[int, int], entry: int
) -> Axes:
    """The axes of an operand once those with tables are replaced by the list's axis, the last."""
    kept = tuple(number[axis] for axis in own if tables[axis] is None)
    return kept if len(kept) == len(own) else (*kept, entry)


def _without_unused(
    operands: list[Expr],
    inputs: list[Axes],
    output: Axes,
    dims: tuple[Dim, ...],
    tables: list[Expr | None],
) -> Expr:
    """The contraction over the labels that remain: those with tables no longer occur."""
    kept = [label for label in range(len(dims)) if label == len(tables) or tables[label] is None]
    number = {label: k for k, label in enumerate(kept)}
    renamed = [tuple(number[label] for label in own) for own in inputs]
    sizes = tuple(dims[label] for label in kept)
    return einsum(operands, renamed, tuple(number[label] for label in output), sizes)


def _gathered(node: Expr, tables: Tables, size: Dim) -> Expr:
    kept = [axis for axis, one in enumerate(tables) if one is None]
    shape = (*(node.shape[axis] for axis in kept), size)
    index: list[Index] = []
    for axis, table in enumerate(tables):
        if table is None:
            place = kept.index(axis)
            index.append(Affine.along(place, len(shape)))
        else:
            index.append(Lookup((len(kept),), table))
    return gather(node, index, shape)
