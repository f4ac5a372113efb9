"""Functions of differences of indices: one value for each difference, and not one for each pair.

An array K_ij = k(i - j, x) over n rows and m columns has n + m - 1 different values: a Toeplitz
matrix, as the kernel of a Gaussian process or of a blur on a regular grid. They are computed as the
vector k_d, and K_ij is its element d = i - j + m - 1. The difference of two indices is exact, so
that every element is the same number as before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from slomodel.functions import add, sub
from slomodel.ir import build
from slomodel.ir.expr import Affine, Axes, Expr, Iota, Map, remake
from slomodel.ir.walk import dependents, postorder
from slomodel.rewrite.facts import Facts
from slomodel.rewrite.work import is_varying_input


@dataclass(frozen=True, slots=True)
class _ByDifference:
    """The values of an array by i - j, i along axis `rows` and j along `columns`.

    `values` has the differences, from the least on, along its first axis, and then the other axes
    of the array in their order. `is_costly`: they need a function that takes long.
    """

    rows: int
    columns: int
    values: Expr
    is_costly: bool


def differences(root: Expr, facts: Facts) -> tuple[Expr, tuple[str, ...]]:
    """The graph with functions of differences computed once for each, and a note on each array."""
    order = postorder(root)
    if not any(isinstance(node, Iota) for node in order):
        return root, ()
    varying = dependents(order, is_varying_input)
    known: dict[Expr, _ByDifference] = {}
    done: dict[Expr, Expr] = {}
    notes: list[str] = []
    for node in order:
        result = _of_map(node, known, done) if isinstance(node, Map) and node.rank > 1 else None
        if result is not None:
            known[node] = result
        if result is not None and result.is_costly and node in varying:
            done[node] = _as_array(node, result)
        else:
            done[node] = remake(node, tuple(done[operand] for operand in node.operands))
    for node in order:
        inner = [one for one in node.operands if one in known and one in varying]
        for one in inner:
            if known[one].is_costly and node not in known:
                rows, columns = (one.shape[k] for k in (known[one].rows, known[one].columns))
                notes.append(f"a function of differences of indices, {rows} by {columns}")
    return (done[root], tuple(dict.fromkeys(notes))) if notes else (root, ())


def _of_map(
    node: Map, known: Mapping[Expr, _ByDifference], done: Mapping[Expr, Expr]
) -> _ByDifference | None:
    pair = _pair(node)
    if pair is not None:
        return _ByDifference(*pair, _differences(node, pair[0]), False)
    places = {
        (own[known[one].rows], own[known[one].columns])
        for one, own in zip(node.operands, node.axes, strict=True)
        if one in known
    }
    if len(places) != 1:
        return None
    ((rows, columns),) = places
    others = [axis for axis in range(node.rank) if axis not in (rows, columns)]
    place = {axis: k + 1 for k, axis in enumerate(others)}
    operands: list[Expr] = []
    axes: list[Axes] = []
    costly = node.function.costly
    for one, own in zip(node.operands, node.axes, strict=True):
        if one in known:
            rest = [axis for axis in own if axis in place]
            operands.append(known[one].values)
            axes.append((0, *(place[axis] for axis in rest)))
            costly = costly or known[one].is_costly
        elif rows in own or columns in own:
            return None
        else:
            operands.append(done[one])
            axes.append(tuple(place[axis] for axis in own))
    count = node.shape[rows] + node.shape[columns] - 1
    shape = (count, *(node.shape[axis] for axis in others))
    values = build.apply_along(node.function, operands, axes, shape)
    return _ByDifference(rows, columns, values, costly)


def _pair(node: Map) -> tuple[int, int] | None:
    """The axes of i and j if a node is i - j."""
    if node.function is not sub or node.rank != 2:
        return None
    if not all(isinstance(operand, Iota) for operand in node.operands):
        return None
    ((rows,), (columns,)) = node.axes
    return rows, columns


def _differences(node: Map, rows: int) -> Expr:
    """The vector 1 - m, …, n - 1 of all differences."""
    n, m = node.shape[rows], node.shape[1 - rows]
    least = build.apply(sub, build.const(1.0), build.size_of(m))
    return build.apply(add, build.iota(n + m - 1), least)


def _as_array(node: Expr, by_difference: _ByDifference) -> Expr:
    others = [
        axis for axis in range(node.rank) if axis not in (by_difference.rows, by_difference.columns)
    ]
    along = {by_difference.rows: 1, by_difference.columns: -1}
    index = [
        Affine(
            node.shape[by_difference.columns] - 1, tuple(along.get(k, 0) for k in range(node.rank))
        )
    ]
    index += [Affine.along(axis, node.rank) for axis in others]
    return build.gather(by_difference.values, index, node.shape)
