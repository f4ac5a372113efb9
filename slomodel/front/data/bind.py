"""Binding: data, files and defaults become arrays, whose shapes give the sizes of the dims."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from slomodel.errors import Diagnostic, DomainError, ShapeError
from slomodel.front.data.arrays import as_model_array, data_error, dropped_rows, load_reference
from slomodel.front.data.labels import Labels, checked, labels_of, positions_of, texts_of
from slomodel.front.data.sizes import (
    check_shapes,
    inferred_sizes,
    is_known,
    single_name,
)
from slomodel.front.data.sparse import sparse_data
from slomodel.ir.expr import Einsum, Expr, Recur
from slomodel.ir.walk import inputs, postorder
from slomodel.problem import DataDeclaration, Place, Problem, entries_dim
from slomodel.reference import evaluate

Array = NDArray[np.float64]

_LARGEST_SIZE = 10**15
_MOST_TUPLES = 2**30
"""Number of listed tuples at which an index takes 8 GiB."""


@dataclass(frozen=True, slots=True)
class Binding:
    """Arrays of the data and sizes of the dims, as far as they are known.

    `missing` names the data without values, `unsized` the dims without a size, and `unlisted` the
    index sets whose number of tuples depends on missing data. `labels` are those of the dims that
    data index by labels, `needed` the least sizes that given positions require of unsized dims.
    `dropped`: how many rows with missing values are left out, of how many, by the path of the file.
    """

    arrays: Mapping[str, Array]
    sizes: Mapping[str, int]
    missing: tuple[str, ...]
    unsized: tuple[str, ...]
    unlisted: tuple[str, ...] = ()
    labels: Labels = field(default_factory=dict)
    needed: Mapping[str, int] = field(default_factory=dict)
    dropped: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def has_all_sizes(self) -> bool:
        """Whether every array of the model has a known shape."""
        return not self.unsized and not self.unlisted

    def require_sizes(self) -> None:
        """Raise ShapeError while the size of a dim is unknown."""
        if self.unsized:
            names = ", ".join(f"`{name}`" for name in self.unsized)
            first = self.unsized[0]
            size = self.needed.get(first, 10)
            remedy = f"give dims={{{first!r}: {size}}}, or data with such an axis"
            if first in self.needed:
                remedy += "; the positions in the data require at least this size"
            message = f"the size of dim {names} is not known"
            if self.missing:
                listed = ", ".join(f"`{one}`" for one in self.missing)
                message = f"no values for data {listed}, and {message}"
                remedy = (
                    f"give data={{{self.missing[0]!r}: …}}, or dims={{{first!r}: {size}}} alone"
                )
            raise ShapeError(Diagnostic("E706", message, help=remedy))

    def require_data(self) -> None:
        """Raise ShapeError while a data array has no values or a size is unknown."""
        if self.missing:
            listed = ", ".join(f"`{one}`" for one in self.missing)
            first = self.missing[0]
            remedy = f"give compile data={{{first!r}: …}}, or make a model with bind({first}=…)"
            raise ShapeError(Diagnostic("E706", f"no values for data {listed}", help=remedy))
        self.require_sizes()

    def require_counts(self) -> None:
        """Raise ShapeError while a size, or the number of tuples in an index set, is unknown."""
        self.require_sizes()
        if self.unlisted and self.missing:
            listed = ", ".join(f"`{one}`" for one in self.missing)
            message = f"the size of an index set depends on data without values, {listed}"
            remedy = f"give compile data={{{self.missing[0]!r}: …}}"
            raise ShapeError(Diagnostic("E706", message, help=remedy))


def bind(
    problem: Problem,
    data: Mapping[str, object],
    dims: Mapping[str, int],
    base_dir: Path | None,
    labels: object = None,
) -> Binding:
    """Check and cast all data, and infer the sizes.

    `data` holds arrays, numbers or `pathlib.Path`s by name, `dims` sizes and `labels` labels by
    name; `base_dir` is the folder that paths in the model are relative to. Raises DomainError or
    ShapeError.
    """
    _check_names(problem, data, dims)
    texts = {
        one.name: texts_of(one, data.get(one.name), base_dir)
        for one in problem.data
        if one.has_labels and (one.name in data or one.file is not None)
    }
    named = labels_of(problem, texts, checked(labels or {}, problem))
    data = {**data, **positions_of(problem, texts, named)}
    stored, shapes = sparse_data(problem, data, base_dir)
    arrays = stored | {
        declaration.name: array
        for declaration in problem.data
        if declaration.entries is None
        and (array := _array(declaration, data, base_dir)) is not None
    }
    sizes = inferred_sizes(problem, arrays, shapes, dims, named)
    for declaration in problem.data:
        if declaration.name not in arrays and declaration.default is not None:
            arrays |= _filled(declaration, sizes)
    check_shapes(problem, arrays, sizes)
    arrays |= _whole_numbers(problem, arrays, sizes)
    missing = tuple(d.name for d in problem.data if d.name not in arrays and not d.owner)
    unsized = tuple(dim.name for dim in problem.dims if dim.name not in sizes)
    for declaration in problem.data:
        if declaration.name in arrays:
            _check_attributes(declaration, arrays[declaration.name])
            if "symmetric" in declaration.attributes:
                arrays[declaration.name] = _symmetric(arrays[declaration.name])
    _check_lengths(problem, sizes)
    sizes |= _tuple_counts(problem, arrays, sizes)
    _check_bounds(problem, sizes)
    unlisted = _uncounted(problem, sizes)
    _check_lookups(problem, arrays, sizes)
    _check_conditions(problem, arrays, sizes)
    needed = _needed(problem, arrays, unsized)
    read = [one for one in problem.data if one.name not in data]
    dropped = {} if base_dir is None else dropped_rows(read, base_dir)
    return Binding(arrays, sizes, missing, unsized, unlisted, named, needed, dropped)


_MOST_LISTED = 0.1
"""Fraction of the tuples up to which listing them is quicker than a mask, measured on products."""


def dense_conditions(problem: Problem, binding: Binding) -> frozenset[Place]:
    """The places of conditions that hold for enough tuples to make a mask quicker than a list."""
    result: set[Place] = set()
    for selection in problem.selections:
        if selection.dim in binding.sizes and all(
            is_known(dim, binding.sizes) for dim in selection.cells
        ):
            cells = math.prod(dim.size(binding.sizes) for dim in selection.cells)
            if binding.sizes[selection.dim] > _MOST_LISTED * cells:
                result.update(selection.conditions)
    return frozenset(result)


def counted(problem: Problem, binding: Binding) -> Binding:
    """The binding of a problem with the same data and further index sets."""
    sizes = {**binding.sizes, **_tuple_counts(problem, binding.arrays, binding.sizes)}
    return replace(
        binding,
        sizes=sizes,
        unlisted=_uncounted(problem, sizes),
    )


def _uncounted(problem: Problem, sizes: Mapping[str, int]) -> tuple[str, ...]:
    """The dims whose size depends on data and is not known."""
    counts = [count.dim for count in problem.counts]
    counts += [entries_dim(one.name).terms[0][0] for one in problem.data if one.entries]
    return tuple(dim for dim in counts if dim not in sizes)


def _check_names(problem: Problem, data: Mapping[str, object], dims: Mapping[str, int]) -> None:
    known = [declaration.name for declaration in problem.data if not declaration.owner]
    for name in data:
        if name not in known:
            raise data_error("E309", f"the model has no data `{name}`", None, _there(name, known))
    sizes = [dim.name for dim in problem.dims]
    for name, size in dims.items():
        if name not in sizes:
            raise data_error("E309", f"the model has no dim `{name}`", None, _there(name, sizes))
        if not _is_whole(size) or not 0 <= size <= _LARGEST_SIZE:
            message = f"dim `{name}` needs a whole number from 0 to 10^15, not {size!r:.40}"
            raise data_error("E310", message, None, f"write it like dims={{{name!r}: 10}}")


def _is_whole(size: object) -> bool:
    return isinstance(size, (int, np.integer)) and not isinstance(size, bool)


def did_you_mean(name: str, known: Collection[str]) -> str:
    """The beginning of a remedy, `did you mean …? `, if one of the known names is similar."""
    folded = {one.casefold(): one for one in reversed(list(known))}
    close = [folded[one] for one in get_close_matches(str(name).casefold(), folded, n=1)]
    return f"did you mean `{close[0]}`? " if close else ""


def _there(name: str, known: list[str]) -> str:
    listed = ", ".join(f"`{one}`" for one in known) or "none"
    return f"{did_you_mean(name, known)}there is {listed}"


def _array(
    declaration: DataDeclaration, data: Mapping[str, object], base_dir: Path | None
) -> Array | None:
    name = declaration.name
    if name in data:
        value = data[name]
    elif declaration.file is None:
        return declaration.values
    else:
        vector = name if len(declaration.shape) == 1 else ""
        value = load_reference(declaration.file, base_dir, vector)
    dims = [str(dim) for dim in declaration.shape]
    try:
        nonfinite = declaration.may_be_missing or declaration.may_be_infinite
        return as_model_array(name, value, dims, allow_nonfinite=nonfinite)
    except DomainError as error:
        placed = (replace(d, span=d.span or declaration.span) for d in error.diagnostics)
        raise DomainError(*placed) from None


def _filled(declaration: DataDeclaration, sizes: Mapping[str, int]) -> dict[str, Array]:
    """The declared array filled with its default, by name; empty while its shape is unknown."""
    if not all(is_known(dim, sizes) for dim in declaration.shape):
        return {}
    shape = tuple(dim.size(sizes) for dim in declaration.shape)
    assert declaration.default is not None
    return {declaration.name: np.full(shape, declaration.default, dtype=np.float64)}


def _check_attributes(declaration: DataDeclaration, array: Array) -> None:
    name = declaration.name
    if "mask" in declaration.attributes and not np.isin(array, (0.0, 1.0)).all():
        first = tuple(int(k) for k in np.argwhere(~np.isin(array, (0.0, 1.0)))[0])
        place = f"`{name}[{', '.join(map(str, first))}]`" if first else f"`{name}`"
        message = f"mask `{name}` holds {array[first]} in {place}"
        raise data_error("E312", message, declaration.span, "use 0 and 1")
    if "symmetric" in declaration.attributes and array.size:
        for axis in range(array.ndim - 1):
            if array.shape[axis] != array.shape[axis + 1]:
                raise data_error("E312", f"`{name}` of shape {array.shape} cannot be symmetric")
            gap = float(np.abs(array - np.swapaxes(array, axis, axis + 1)).max())
            allowed = 8.0 * float(np.finfo(np.float64).eps) * float(np.abs(array).max())
            if gap > allowed:
                message = f"`{name}` is declared symmetric, but swapping axes {axis} and {axis + 1}"
                remedy = "symmetrise it, or leave `symmetric` out"
                raise data_error(
                    "E312", f"{message} changes it by {gap:.3g}", declaration.span, remedy
                )


def _whole_numbers(
    problem: Problem, arrays: Mapping[str, Array], sizes: Mapping[str, int]
) -> dict[str, Array]:
    """The data declared as whole numbers, checked; index data count from 0."""
    return {
        one.name: _positions(one, arrays[one.name], sizes)
        for one in problem.data
        if one.is_whole and one.name in arrays
    }


def _needed(
    problem: Problem, arrays: Mapping[str, Array], unsized: Collection[str]
) -> dict[str, int]:
    """The least size of each unsized dim that the index data over it require."""
    result: dict[str, int] = {}
    for one in problem.data:
        name = None if one.domain is None else single_name(one.domain)
        if name in unsized and one.name in arrays and arrays[one.name].size:
            assert name is not None
            assert one.domain is not None
            largest = int(arrays[one.name].max()) + 1 - one.first - one.domain.const
            result[name] = max(result.get(name, 0), largest)
    return result


def _positions(declared: DataDeclaration, array: Array, sizes: Mapping[str, int]) -> Array:
    name = declared.name
    wrong = ~np.isfinite(array) | (array != np.floor(array))
    if bool(wrong.any()):
        place, value = _first(name, array, wrong)
        message = f"`{place}` is {value:g}, and `{name}` holds whole numbers"
        raise data_error("E312", message, declared.span, "give whole numbers")
    if declared.domain is None or not is_known(declared.domain, sizes):
        return array
    least = declared.first
    size = declared.domain.value(sizes)
    if size < 0:
        message = f"`{name}` has positions along `{declared.domain}`, which is {size}"
        raise data_error("E315", message, declared.span, "give larger sizes")
    wrong = (array < least) | (array >= size + least)
    if bool(wrong.any()):
        place, value = _first(name, array, wrong)
        message = f"`{place}` is {value:g}, and positions of `{declared.domain}` are "
        message += f"{least} to {size - 1 + least}" if size else "none, as its size is 0"
        remedy = "give positions inside"
        if array.min() >= least and array.max() <= _LARGEST_SIZE:
            remedy += ", or a larger size: " + _larger(declared, array, least)
        if not least and array.min() >= 1 and array.max() <= size:
            remedy = f"all of them fit if they count from 1: declare `{name} … one_based`"
        raise data_error("E312", message, declared.span, remedy)
    return array - least if least else array


def _first(name: str, array: Array, wrong: NDArray[np.bool_]) -> tuple[str, float]:
    """The first marked element: its name and value."""
    first = tuple(int(k) for k in np.argwhere(wrong)[0])
    place = f"{name}[{', '.join(map(str, first))}]" if first else name
    return place, float(array[first])


def _larger(declared: DataDeclaration, array: Array, least: int) -> str:
    """The remedy: the size that the largest position requires."""
    assert declared.domain is not None
    name = single_name(declared.domain)
    wanted = max(int(array.max()) + 1 - least, 0)
    if name is None:
        return f"`{declared.domain}` has to be at least {wanted}"
    return f"dims={{{name!r}: {wanted - declared.domain.const}}}"


def _tuple_counts(
    problem: Problem, arrays: Mapping[str, Array], sizes: Mapping[str, int]
) -> dict[str, int]:
    """The numbers of tuples in the index sets, if the data that determine them are known."""
    nodes = {d.node: arrays[d.name] for d in problem.data if d.name in arrays}
    result: dict[str, int] = {}
    for one in problem.counts:
        known = {**sizes, **result}
        if nodes.keys() >= set(inputs(one.count)) and known.keys() >= set(_sizes_in(one.count)):
            count = float(np.asarray(evaluate([one.count], dict(nodes), known)[0]))
            if not count <= _MOST_TUPLES:
                message = f"an index set of the model has {count:.3g} tuples, more than fit"
                raise data_error("E707", message, None, "bind smaller sizes or shorter ranges")
            result[one.dim] = int(count)
    return result


def _check_lookups(problem: Problem, arrays: Mapping[str, Array], sizes: Mapping[str, int]) -> None:
    """Check that indices computed from data stay inside the axes that they index."""
    nodes = {d.node: arrays[d.name] for d in problem.data if d.name in arrays}
    for lookup in problem.lookups:
        named = {*_sizes_in(lookup.table), *(name for name, _ in lookup.size.terms)}
        if not nodes.keys() >= set(inputs(lookup.table)) or not sizes.keys() >= named:
            continue
        table = np.asarray(evaluate([lookup.table], dict(nodes), sizes)[0], dtype=np.float64)
        size = lookup.size.size(sizes)
        wrong = ~((table >= 0) & (table < size) & (table == np.floor(table)))
        if bool(wrong.any()):
            first = tuple(int(k) for k in np.argwhere(wrong)[0])
            message = f"index `{lookup.text}` takes {table[first]:g} in an axis of size {size}"
            if first:
                message += f", at {first[0] if len(first) == 1 else first}"
            remedy = "indices count from 0: give data that stay inside, or larger sizes"
            if not float(table[first]).is_integer():
                remedy = "give data for which it is a whole number"
            raise ShapeError(Diagnostic("E313", message, lookup.span, help=remedy))


def _symmetric(array: Array) -> Array:
    """Make nearly symmetric data exactly symmetric, by the entry at sorted indices.

    Derivatives and bounds read one permutation of the indices for all. Entries that differ by an
    eps would define another function, and cancellation can make that difference arbitrarily large.
    """
    swaps = (np.swapaxes(array, axis, axis + 1) for axis in range(array.ndim - 1))
    if all(np.array_equal(array, swap, equal_nan=True) for swap in swaps):
        return array
    if array.ndim == 2:
        return np.asarray(np.triu(array) + np.triu(array, 1).T)
    places = np.sort(np.indices(array.shape).reshape(array.ndim, -1), axis=0)
    return np.asarray(array[tuple(places)].reshape(array.shape))


def _check_lengths(problem: Problem, sizes: Mapping[str, int]) -> None:
    """Raise ShapeError for an axis or range, such as `n - 1`, of negative length."""
    order = postorder(problem.objective)
    # The first node of each length with a span, so that the message has a position.
    first = {dim: node for node in reversed(order) for dim in node.shape}
    first |= {dim: node for node in reversed(order) if node in problem.spans for dim in node.shape}
    for dim, node in first.items():
        if is_known(dim, sizes) and dim.value(sizes) < 0:
            short = _too_few_steps(order, problem, sizes)
            if short is not None:
                raise short
            known = ", ".join(f"{name} = {sizes[name]}" for name, _ in dim.terms)
            message = f"an axis or range of length `{dim}` is negative"
            message += f" with {known}" if known else ""
            span = problem.spans.get(node)
            raise ShapeError(Diagnostic("E315", message, span, help="give larger sizes"))


def _too_few_steps(
    order: Sequence[Expr], problem: Problem, sizes: Mapping[str, int]
) -> ShapeError | None:
    """The error for a recurrence with fewer steps than first values, if there is one."""
    for node in order:
        if not isinstance(node, Recur) or node not in problem.spans or not node.loop.updates:
            continue
        length, count = node.loop.length, node.loop.updates[node.state].start
        if is_known(length, sizes) and is_known(count, sizes):
            steps, least = length.value(sizes), count.value(sizes)
            if steps < least:
                message = f"a recurrence needs a step for each of its {least} first values"
                message = message if least > 1 else "a recurrence needs a step for its first value"
                remedy = f"give at least {least}: here `{length}` is {steps}"
                return ShapeError(Diagnostic("E315", message, problem.spans[node], help=remedy))
    return None


def _check_bounds(problem: Problem, sizes: Mapping[str, int]) -> None:
    for bound in problem.bounds:
        own = (bound.count, bound.least, bound.most, bound.size)
        if not all(is_known(dim, sizes) for dim in own) or bound.count.value(sizes) <= 0:
            continue
        least, most = bound.least.value(sizes), bound.most.value(sizes)
        size = bound.size.value(sizes)
        if least < 0 or most >= size:
            values = f"{least}" if least == most else f"{least} to {most}"
            message = f"index `{bound.text}` takes {values} in an axis of size {size}"
            guard = f"{bound.text} < {bound.size}" if least >= 0 else f"{bound.text} >= 0"
            remedy = "give larger sizes, restrict the index with `range(…)`, or guard it: "
            remedy += f"`if {guard}` in a sum, `where({guard}, …, 0)` elsewhere"
            if most < 0:
                remedy = "indices count from 0; only a literal counts from the end, as in `x[-1]`"
            raise ShapeError(Diagnostic("E313", message, bound.span, help=remedy))


def _check_conditions(
    problem: Problem, arrays: Mapping[str, Array], sizes: Mapping[str, int]
) -> None:
    """Raise DomainError for the first failing check among those whose data and sizes are known."""
    nodes = {d.node: arrays[d.name] for d in problem.data if d.name in arrays}
    for check in problem.checks:
        named = _sizes_in(check.condition)
        if not nodes.keys() >= set(inputs(check.condition)) or not sizes.keys() >= set(named):
            continue
        holds = evaluate([check.condition], dict(nodes), sizes)[0]
        if not bool(np.all(holds)):
            values = _values(check.condition, arrays)
            message = f"the check `{check.text}` does not hold"
            if check.fault:
                message = check.fault
                declared = [name for name in named if "[" not in name]
                values = values or [f"{name} = {sizes[name]}" for name in declared]
            message += f": {', '.join(values)}" if values else ""
            remedy = check.remedy or "give data that satisfies it"
            raise data_error("E314", message, check.span, remedy)


def _sizes_in(condition: Expr) -> list[str]:
    """Names of the dims whose sizes a condition depends on."""
    dims = [
        dim
        for node in postorder(condition)
        for dim in (*node.shape, *(node.dims if isinstance(node, Einsum) else ()))
    ]
    return sorted({name for dim in dims for name, _ in dim.terms})


def _values(condition: Expr, arrays: Mapping[str, Array]) -> list[str]:
    return [
        f"{node.name} = {float(arrays[node.name]):.6g}"
        if not node.rank
        else f"{node.name} is in [{arrays[node.name].min():.6g}, {arrays[node.name].max():.6g}]"
        for node in inputs(condition)
        if arrays[node.name].size
    ]
