"""The sizes of dims, from the shapes of data, labels and defaults; they have to agree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from slomodel.errors import Diagnostic, ShapeError
from slomodel.front.data.labels import Labels
from slomodel.ir.dims import Dim, show_shape
from slomodel.problem import DataDeclaration, DimDeclaration, Problem, entries_dim

Array = NDArray[np.float64]

_AGREE = "give arrays whose sizes agree"


def inferred_sizes(
    problem: Problem,
    arrays: Mapping[str, Array],
    shapes: Mapping[str, tuple[int, ...]],
    dims: Mapping[str, int],
    labels: Labels,
) -> dict[str, int]:
    """Sizes from `dims`, labels, the shapes of arrays and from defaults, in this order.

    `shapes` are those of sparse data.
    """
    sizes = {name: int(size) for name, size in dims.items()}
    origin = {name: f"dims={{{name!r}: {size}}}" for name, size in sizes.items()}
    for dim_name, own in labels.items():
        if sizes.setdefault(dim_name, len(own)) != len(own):
            given = f"{sizes[dim_name]} in {origin[dim_name]}"
            message = f"dim `{dim_name}` has {len(own)} labels, but is {given}"
            raise ShapeError(Diagnostic("E311", message, help=_AGREE))
        origin.setdefault(dim_name, f"the labels of `{dim_name}`")
    axes = [
        (declaration, dim, size)
        for declaration in problem.data
        if declaration.name in arrays
        for dim, size in zip(
            declaration.declared_shape,
            shapes.get(declaration.name, arrays[declaration.name].shape),
            strict=True,
        )
    ]
    for declaration, dim, size in axes:
        name = single_name(dim)
        if name is None:
            continue
        result = size - dim.const
        if result < 0:
            raise _no_size(declaration, dim, name, size)
        if sizes.setdefault(name, result) != result:
            raise _conflict(problem, declaration, name, result, sizes[name], origin[name])
        origin.setdefault(name, f"data `{declaration.name}`")
    _solve(axes, sizes)
    for dim_declaration in problem.dims:
        if dim_declaration.default is not None:
            sizes.setdefault(dim_declaration.name, dim_declaration.default)
    _solve(axes, sizes)
    _multiply(problem.dims, sizes, origin)
    _solve(axes, sizes)
    # In the order of declaration, so that generated text does not depend on the order of the data.
    known = {dim.name: sizes[dim.name] for dim in problem.dims if dim.name in sizes}
    entries = {entries_dim(name).terms[0][0]: arrays[name].size for name in shapes}
    return known | entries


def _solve(axes: Iterable[tuple[DataDeclaration, Dim, int]], sizes: dict[str, int]) -> None:
    """Add the sizes that axes such as [n - k + 1] determine, one unknown size at a time."""
    count = -1
    while count != len(sizes):
        count = len(sizes)
        for declaration, dim, size in axes:
            unknown = [(name, factor) for name, factor in dim.terms if name not in sizes]
            if len(unknown) != 1:
                continue
            ((name, factor),) = unknown
            known = sum(own * sizes[one] for one, own in dim.terms if one in sizes)
            result, rest = divmod(size - dim.const - known, factor)
            if rest or result < 0:
                raise _no_size(declaration, dim, name, size)
            sizes[name] = result


def _multiply(
    dims: Iterable[DimDeclaration], sizes: dict[str, int], origin: Mapping[str, str]
) -> None:
    """Add the sizes that are products of others; one that is given has to agree."""
    for declaration in dims:
        name, formula = declaration.name, declaration.formula
        if formula is None or not formula.names <= sizes.keys():
            continue
        value = formula.value(sizes)
        if value.denominator != 1 or value < 0:
            message = f"dim `{name}` would be {value}, which is not a size"
            raise ShapeError(Diagnostic("E311", message, declaration.span, help=_AGREE))
        if sizes.setdefault(name, int(value)) != value:
            given = f"{sizes[name]} in {origin.get(name, 'the data')}"
            message = f"dim `{name}` is {value} by its definition, but {given}"
            raise ShapeError(Diagnostic("E311", message, declaration.span, help=_AGREE))


def _no_size(declaration: DataDeclaration, dim: Dim, name: str, size: int) -> ShapeError:
    shape = show_shape(declaration.declared_shape)
    message = f"data `{declaration.name}` {shape} has {size} along `{dim}`"
    remedy = f"no size `{name}` makes `{dim}` equal to {size}"
    return ShapeError(Diagnostic("E311", message, declaration.span, help=remedy))


def single_name(dim: Dim) -> str | None:
    """The name of a dim that is one name plus a number; None for others."""
    return dim.terms[0][0] if len(dim.terms) == 1 and dim.terms[0][1] == 1 else None


def _conflict(
    problem: Problem, declaration: DataDeclaration, name: str, size: int, known: int, origin: str
) -> ShapeError:
    shape = show_shape(declaration.declared_shape)
    own = f"data `{declaration.name}` {shape}"
    message = f"dim `{name}` is {size} in {own}, but {known} in {origin}"
    partly = _partly_dropped(problem)
    remedy = f'write `drop missing` after every `"{partly}"`' if partly else _AGREE
    return ShapeError(Diagnostic("E311", message, declaration.span, help=remedy))


def _partly_dropped(problem: Problem) -> str:
    """A table that some data read without the rows with missing values and others with all."""
    files = [one.file for one in problem.data if one.file is not None]
    all_rows = {file.path for file in files if file.complete is None}
    return next(
        (one.path for one in files if one.complete is not None and one.path in all_rows), ""
    )


def check_shapes(problem: Problem, arrays: Mapping[str, Array], sizes: Mapping[str, int]) -> None:
    """Raise ShapeError for an array whose axes are not as long as declared."""
    for declaration in problem.data:
        array = arrays.get(declaration.name)
        if array is None:
            continue
        for k, dim in enumerate(declaration.shape):
            if not is_known(dim, sizes):
                continue
            if dim.size(sizes) != array.shape[k]:
                shape = show_shape(declaration.shape)
                message = (
                    f"axis {k} of data `{declaration.name}` {shape} needs {dim.size(sizes)} "
                    f"elements, and an array of shape {array.shape} was given"
                )
                raise ShapeError(Diagnostic("E311", message, declaration.span, help=_AGREE))


def is_known(dim: Dim, sizes: Mapping[str, int]) -> bool:
    """Whether the sizes of all names in a dim are known."""
    return all(name in sizes for name, _ in dim.terms)
