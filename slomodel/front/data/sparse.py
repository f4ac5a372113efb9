"""Sparse data: stored entries with their positions, from SciPy's matrices, files or arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from slomodel.codegen.runtime import on_host
from slomodel.errors import DomainError
from slomodel.front.data.arrays import as_model_array, axes_error, load_sparse
from slomodel.front.data.loaders import StoredArray, Table
from slomodel.front.data.user_arrays import user_array
from slomodel.problem import DataDeclaration, Problem

Array: TypeAlias = NDArray[np.float64]


def sparse_data(
    problem: Problem, data: Mapping[str, object], folder: Path | None
) -> tuple[dict[str, Array], dict[str, tuple[int, ...]]]:
    """The entries and positions of the sparse data that are given, and the shapes of these data.

    Entries are in C order of their positions, and those at one position are added up.
    """
    arrays: dict[str, Array] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    for one in problem.data:
        if one.entries is None or (one.name not in data and one.file is None):
            continue
        try:
            stored = _stored(one, data.get(one.name), folder)
        except DomainError as error:
            placed = (replace(d, span=d.span or one.span) for d in error.diagnostics)
            raise DomainError(*placed) from None
        shapes[one.name] = stored.shape
        arrays[one.name] = np.asarray(stored.values, dtype=np.float64)
        for node, place in zip(one.entries.positions, stored.positions, strict=True):
            arrays[node.name] = np.asarray(place, dtype=np.float64)
    return arrays, shapes


def given_again(
    declared: DataDeclaration, arrays: Mapping[str, Array], sizes: Mapping[str, int]
) -> StoredArray:
    """Sparse data of a binding in the form in which they can be given again."""
    assert declared.entries is not None
    shape = tuple(dim.size(sizes) for dim in declared.entries.shape)
    places = tuple(arrays[node.name] for node in declared.entries.positions)
    return StoredArray(arrays[declared.name], places, shape)


def _stored(declared: DataDeclaration, value: object, folder: Path | None) -> StoredArray:
    name, rank = declared.name, len(declared.declared_shape)
    if value is None or isinstance(value, Path):
        value = load_sparse(name, value, declared.file, folder)
    result = value if isinstance(value, StoredArray) else _entries(name, value)
    if len(result.shape) != rank:
        raise axes_error(name, result.shape, [str(dim) for dim in declared.declared_shape])
    own = "the entries of"
    values = as_model_array(name, result.values, [own], allow_nonfinite=declared.may_be_missing)
    return _in_order(StoredArray(values, result.positions, result.shape))


def _entries(name: str, value: object) -> StoredArray:
    """The stored entries of a SciPy array, or those of an array that are not 0."""
    from scipy.sparse import coo_array, issparse

    if issparse(value):
        matrix = coo_array(value)
        return StoredArray(matrix.data, tuple(matrix.coords), matrix.shape)
    given = value.values if isinstance(value, Table) else on_host(value)
    raw = user_array(f"data `{name}`", given)
    places = np.nonzero(raw)
    return StoredArray(raw[places], places, raw.shape)


def _are_sorted(places: Sequence[Array]) -> bool:
    """Whether each position is before the next one in C order."""
    if not places[0].size:
        return True
    later = np.zeros(places[0].size - 1, dtype=bool)
    for place in places[::-1]:
        later = (place[1:] > place[:-1]) | ((place[1:] == place[:-1]) & later)
    return bool(later.all())


def _in_order(array: StoredArray) -> StoredArray:
    """The entries in C order, with those at one position added up."""
    sorted_places: list[Array] = [
        np.asarray(position, dtype=np.float64) for position in array.positions
    ]
    values: Array = np.asarray(array.values, dtype=np.float64)
    if not _are_sorted(sorted_places):
        order = np.lexsort(sorted_places[::-1])
        sorted_places = [place[order] for place in sorted_places]
        values = values[order]
    if values.size:
        is_new = np.ones(values.size, dtype=bool)
        is_new[1:] = np.any([one[1:] != one[:-1] for one in sorted_places], axis=0)
        if not is_new.all():
            starts = np.flatnonzero(is_new)
            values = np.add.reduceat(values, starts)
            sorted_places = [one[starts] for one in sorted_places]
    return StoredArray(values, tuple(sorted_places), tuple(map(int, array.shape)))
