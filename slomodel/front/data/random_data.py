"""Random data that satisfy a model's declarations: shapes, attributes and checks."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from slomodel.errors import Diagnostic, DomainError, SlomodelError
from slomodel.front.data.bind import bind
from slomodel.functions import ge, land, lt
from slomodel.ir import build
from slomodel.ir.dims import concrete, number_of_elements
from slomodel.ir.expr import Const
from slomodel.ir.walk import inputs, postorder
from slomodel.problem import Check, DataDeclaration, Problem
from slomodel.reference import evaluate

Array = NDArray[np.float64]

_FIRST_SIZES = (4, 7, 12, 30)
"""Sizes to try if none are given; the k-th dim is larger by k, so that no two are equal."""
_MOST_LABELS = 3
_MOST_ELEMENTS = 10**8
_MOST_TRIES = 500
_MOST_DRAWN = 10
"""Upper limit, exclusive, of random counts."""
_LARGEST_DRAWN = 1e300
_STORED = 0.25
"""Fraction of the elements of sparse data that are not 0."""
_DECIDED_BY_SIZES = ("E313", "E314", "E315")


def random_data(
    problem: Problem,
    given: Mapping[str, object],
    dims: Mapping[str, int],
    rng: np.random.Generator,
) -> dict[str, Array]:
    """Random arrays for the data that have no default and are not in `given`.

    Sizes are those of `dims`, else the defaults, else small ones. Raises DomainError if no data are
    found that satisfy the model's checks.
    """
    for first in _FIRST_SIZES:
        sizes = _sizes(problem, dims, first)
        try:
            drawn = _drawn(problem, given, sizes, rng)
            bind(problem, {**given, **drawn}, sizes, None)
        except SlomodelError as error:
            last = error
            if error.diagnostics[0].code not in _DECIDED_BY_SIZES:
                raise
        else:
            return drawn
    raise last


def _sizes(problem: Problem, dims: Mapping[str, int], first: int) -> dict[str, int]:
    """The given or declared sizes; the others count upwards from `first`.

    A dim of labels is small: each label has to occur in the data.
    """
    sizes = dict(dims)
    chosen = {dim.name for dim in problem.dims if dim.name not in dims and dim.default is None}
    for k, dim in enumerate(problem.dims):
        default = first + k if dim.default is None else dim.default
        sizes.setdefault(dim.name, default)
    for one in problem.data:
        if one.has_labels and str(one.domain) in chosen:
            count = number_of_elements(one.shape, sizes)
            sizes[str(one.domain)] = min(_MOST_LABELS, count, sizes[str(one.domain)])
    return sizes


def _drawn(
    problem: Problem,
    given: Mapping[str, object],
    sizes: Mapping[str, int],
    rng: np.random.Generator,
) -> dict[str, Array]:
    _check_total(problem, sizes)
    free = [d for d in problem.data if d.name not in given and d.default is None and not d.owner]
    arrays = {d.name: _values(d, sizes, rng, None) for d in free}
    fixed = {name: np.asarray(value, dtype=np.float64) for name, value in given.items()}
    for declared in problem.data:
        if declared.default is not None and declared.name not in given:
            shape = concrete(declared.shape, sizes)
            fixed[declared.name] = np.full(shape, declared.default)
    # Checks of sparse data are left to `bind`.
    stored = {d.name for d in problem.data if d.entries is not None or d.owner}
    every = tuple(
        check for check in (*problem.checks, *_inside(problem, sizes)) if not _shares(check, stored)
    )
    for check in every:
        named = {node.name for node in inputs(check.condition)}
        own = [d for d in free if d.name in named]
        before = [c for c in every[: every.index(check)] if _shares(c, named)]
        _satisfy([check, *before], own, {**fixed, **arrays}, arrays, sizes, rng)
    return arrays


def _inside(problem: Problem, sizes: Mapping[str, int]) -> list[Check]:
    """The checks that indices computed from data stay inside their axes."""
    result: list[Check] = []
    for lookup in problem.lookups:
        dims = [dim for node in postorder(lookup.table) for dim in node.shape]
        if {name for dim in dims for name, _ in dim.terms} <= sizes.keys():
            low = build.apply(ge, lookup.table, build.const(0.0))
            high = build.apply(lt, lookup.table, build.const(float(lookup.size.size(sizes))))
            result.append(Check(build.apply(land, low, high), lookup.text, lookup.span))
    return result


def _check_total(problem: Problem, sizes: Mapping[str, int]) -> None:
    total = sum(number_of_elements(d.declared_shape, sizes) for d in problem.data if not d.owner)
    if total > _MOST_ELEMENTS:
        message = f"the data has {total} elements, and {_MOST_ELEMENTS} are drawn at most"
        raise DomainError(Diagnostic("E319", message, help="give smaller sizes with --set"))


def _shares(check: Check, names: set[str]) -> bool:
    return any(node.name in names for node in inputs(check.condition))


def _satisfy(
    checks: list[Check],
    free: list[DataDeclaration],
    known: dict[str, Array],
    arrays: dict[str, Array],
    sizes: Mapping[str, int],
    rng: np.random.Generator,
) -> None:
    """Draw the free data repeatedly until the checks hold, and store them in `arrays`."""
    constants = sorted({c for check in checks for c in _constants(check) if math.isfinite(c)})
    for _ in range(_MOST_TRIES if free else 1):
        if all(_holds(check, known, sizes) for check in checks):
            arrays |= {d.name: known[d.name] for d in free}
            return
        for declared in free:
            known[declared.name] = _values(declared, sizes, rng, constants)
    check = checks[0]
    message = check.fault or f"no data was found that satisfies the check `{check.text}`"
    remedy = "give scalars and sizes with --set, or draw such data by hand"
    code = "E318" if free else "E314"
    raise DomainError(Diagnostic(code, message, check.span, help=remedy))


def _constants(check: Check) -> list[float]:
    """The constants in a condition's comparisons."""
    nodes = postorder(check.condition)
    return [float(node.value) for node in nodes if isinstance(node, Const)]


def _holds(check: Check, known: Mapping[str, Array], sizes: Mapping[str, int]) -> bool:
    values = {node: known[node.name] for node in inputs(check.condition)}
    return bool(np.all(evaluate([check.condition], dict(values), sizes)[0]))


def _values(
    declared: DataDeclaration,
    sizes: Mapping[str, int],
    rng: np.random.Generator,
    constants: list[float] | None,
) -> Array:
    """Normal random numbers; with `constants`, random numbers around these."""
    shape = concrete(declared.declared_shape, sizes)
    if declared.entries is not None:
        return rng.normal(size=shape) * (rng.random(shape) < _STORED)
    if declared.is_whole:
        return _whole_values(declared, sizes, rng, shape, spread=constants is None)
    if "mask" in declared.attributes:
        return rng.integers(0, 2, shape).astype(np.float64)
    if constants is None:
        values: Array = np.asarray(rng.normal(size=shape))
    else:
        values = _around([*constants, 0.0, 1.0], shape, rng)
    if "symmetric" in declared.attributes:
        # One element per multiset of indices, so that permutations agree to the last bit.
        values = values[tuple(np.sort(np.indices(shape), axis=0))]
    return values


def _whole_values(
    declared: DataDeclaration,
    sizes: Mapping[str, int],
    rng: np.random.Generator,
    shape: tuple[int, ...],
    spread: bool,
) -> Array:
    """Random positions along the axis into which index data point, or counts.

    They are smaller if not `spread`, since checks tend to hold for positions near 0.
    """
    most = _MOST_DRAWN if declared.domain is None else declared.domain.size(sizes)
    if most < 1:
        return np.zeros(shape)  # refused at bind unless there are no elements
    if declared.has_labels:
        # Every label occurs, where there are enough elements.
        return (rng.permutation(math.prod(shape)) % most).reshape(shape).astype(np.float64)
    if not spread:
        most = int(rng.integers(1, most + 1))
    values = rng.integers(0, most, shape) + declared.first
    return values.astype(np.float64)


def _around(constants: list[float], shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Random numbers above, below or between given numbers, or those numbers themselves."""
    low, high = np.clip(np.sort(rng.choice(constants, 2)), -_LARGEST_DRAWN, _LARGEST_DRAWN)
    scale = 10.0 ** rng.integers(-2, 3)
    kinds = (
        lambda: low + scale * rng.uniform(0.1, 1.0, shape),
        lambda: low - scale * rng.uniform(0.1, 1.0, shape),
        lambda: rng.uniform(low, high, shape),
        lambda: rng.choice(constants, shape),
        lambda: rng.choice([low, high], shape),
        lambda: rng.integers(0, 10, shape),
    )
    return np.asarray(kinds[rng.integers(len(kinds))](), dtype=np.float64)
