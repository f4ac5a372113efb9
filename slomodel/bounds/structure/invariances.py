"""Linear and affine maps of the variables under which a model is proved to be invariant.

Candidates are the axes of variables that have a common dim. That a map leaves f as it is follows
from the graph (`axis_actions`, `shifts`), for all x and whatever the data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import prod

import numpy as np
from numpy.typing import NDArray

import slomodel.functions as table
from slomodel.bounds.part import ObjectivePart
from slomodel.bounds.structure.axis_actions import Group, Letter, Letters, is_invariant
from slomodel.bounds.structure.shifts import Shift, is_shift_invariant
from slomodel.ir import build
from slomodel.ir.dims import concrete
from slomodel.ir.expr import Expr, Input

Array = NDArray[np.float64]
_MOST_AXES = 4
"""Axes of variables that are multiplied together."""
_MOST_CANDIDATES = 400
"""Largest number of group actions that are tried, each a walk over the graph."""
_MOST_NODES = 1000
"""Largest number of nodes for that: 400 walks over these take about a second."""
_GROUPS: tuple[Group, ...] = ("linear", "rotation", "scaling", "permutation", "sign")
_WORDS = {
    "linear": "regular matrices",
    "rotation": "rotations and reflections",
    "scaling": "positive scalings",
    "permutation": "permutations",
    "sign": "changes of signs",
    "shift": "shifts",
}
_IMPLIED: dict[str, tuple[str, ...]] = {
    "linear": ("rotation", "scaling", "permutation", "sign"),
    "rotation": ("permutation", "sign"),
}
"""Subgroups that need no statement of their own."""
Place = tuple[Input, int]
"""A variable and one of its axes; -1 for a variable without axes."""


@dataclass(frozen=True, slots=True)
class Invariance:
    """f(gx) = f(x) for all g of a group, which act along axes of variables.

    `kind` is a `Group` or "shift"; `places` are variables and axes, `letters` "g" or "inverse" for
    each of them, of a shift "g" for + and "inverse" for -.
    """

    kind: str
    places: tuple[Place, ...]
    letters: tuple[Letter, ...]

    @property
    def text(self) -> str:
        """The invariance in words."""
        named = []
        for (variable, axis), letter in zip(self.places, self.letters, strict=True):
            where = f" along axis {axis}" if variable.rank > 1 else ""
            if letter == "inverse":
                where += " by the opposite" if self.kind == "shift" else " by the inverse"
            named.append(f"`{variable.name}`{where}")
        return f"{_WORDS[self.kind]} of {' and '.join(named)}"

    def generators(self, part: ObjectivePart, x: Array) -> Array:
        """The directions (n, d) of one-parameter subgroups at x; d = 0 for finite groups."""
        shifts = self.kind == "shift"
        result = self._shifts(part, len(x)) if shifts else self._turned(part, x, False)
        columns = list(result)
        return np.stack(columns, axis=1) if columns else np.zeros((len(x), 0))

    def moved(self, part: ObjectivePart, error: Array) -> Array:
        """Bounds (n, d) on how far the generators move where x does by at most `error` (n,)."""
        if self.kind == "shift":
            return np.zeros_like(self.generators(part, error))
        columns = list(self._turned(part, error, True))
        return np.stack(columns, axis=1) if columns else np.zeros((len(error), 0))

    def _turned(self, part: ObjectivePart, x: Array, as_sizes: bool) -> Iterator[Array]:
        """The generators of matrices, or the sums of the magnitudes of their terms for x >= 0."""
        (k,) = {concrete(variable.shape, part.sizes)[axis] for variable, axis in self.places}
        pairs: Sequence[tuple[int, int]] = ()
        if self.kind == "linear":
            pairs = [(p, q) for p in range(k) for q in range(k)]
        elif self.kind == "rotation":
            pairs = list(combinations(range(k), 2))
        elif self.kind == "scaling":
            pairs = [(p, p) for p in range(k)]
        for p, q in pairs:
            moved = np.zeros(len(x))
            for start, own, axis, letter in self._arrays(part, x):
                change = np.moveaxis(np.zeros(own.shape), axis, 0)
                at = np.moveaxis(own, axis, 0)
                if letter == "g":
                    change[q] += at[p]
                    if self.kind == "rotation":
                        change[p] -= at[q]
                else:
                    change[p] -= at[q]
                whole = np.moveaxis(change, 0, axis).ravel()
                moved[start : start + own.size] += np.abs(whole) if as_sizes else whole
            yield moved

    def _shifts(self, part: ObjectivePart, n: int) -> Iterator[Array]:
        zero = np.zeros(n)
        known = list(self._arrays(part, zero))
        start, own, axis, _ = known[0]
        left = own.shape if axis < 0 else (*own.shape[:axis], *own.shape[axis + 1 :])
        for place in range(prod(left)):
            moved = np.zeros(n)
            unit = np.zeros(left)
            unit.flat[place] = 1.0
            for start, own, axis, letter in known:
                wide = unit if axis < 0 else np.expand_dims(unit, axis)
                sign = 1.0 if letter == "g" else -1.0
                moved[start : start + own.size] += sign * np.broadcast_to(wide, own.shape).ravel()
            yield moved

    def _arrays(self, part: ObjectivePart, x: Array) -> Iterator[tuple[int, Array, int, Letter]]:
        """Where the array of each place starts in x, the array, the axis and the letter."""
        starts, start = {}, 0
        for variable in part.variables:
            shape = np.shape(part.values[variable])
            starts[variable] = start, shape
            start += prod(shape)
        for (variable, axis), letter in zip(self.places, self.letters, strict=True):
            begin, shape = starts[variable]
            yield begin, x[begin : begin + prod(shape)].reshape(shape), axis, letter


def invariances(part: ObjectivePart) -> tuple[Invariance, ...]:
    """The invariances that the rules prove of the part's objective."""
    result: list[Invariance] = []
    if len(part.objective.operands) == 0:
        return ()
    for group in _GROUPS:
        for places, letters in _candidates(part, group):
            own = Invariance(group, places, letters)
            if not _is_known(own, result) and is_invariant(
                part.objective, group, _acted(places, letters)
            ):
                result.append(own)
    for places, letters in _shifted(part):
        own = Invariance("shift", places, letters)
        shifts = _as_shifts(places, letters)
        if not _is_known(own, result) and is_shift_invariant(part.objective, shifts):
            result.append(own)
    return tuple(result)


def _is_known(own: Invariance, known: Sequence[Invariance]) -> bool:
    """Whether a known invariance acts on some of the same places and implies this one."""
    for one in known:
        implied = own.kind == one.kind or own.kind in _IMPLIED.get(one.kind, ())
        if implied and set(one.places) <= set(own.places):
            return True
    return False


def _acted(places: Sequence[Place], letters: Sequence[Letter]) -> dict[Input, Letters]:
    acted: dict[Input, list[Letter]] = {}
    for (variable, axis), letter in zip(places, letters, strict=True):
        acted.setdefault(variable, [""] * variable.rank)[axis] = letter
    return {variable: tuple(own) for variable, own in acted.items()}


def _candidates(
    part: ObjectivePart, group: Group
) -> Iterator[tuple[tuple[Place, ...], tuple[Letter, ...]]]:
    """Axes of variables with a common dim, the fewest first, and what multiplies them."""
    by_dim: dict[object, list[Place]] = {}
    for variable in part.variables:
        for axis, dim in enumerate(variable.shape):
            if dim.size(part.sizes) > 1 or group in ("scaling", "sign"):
                by_dim.setdefault(dim, []).append((variable, axis))
    count = 0
    choices: tuple[Letter, ...] = ("g", "inverse") if group in ("linear", "scaling") else ("g",)
    for size in range(1, _MOST_AXES + 1):
        for places in by_dim.values():
            for chosen in combinations(places, size):
                for rest in product(choices, repeat=size - 1):
                    count += 1
                    if count > _MOST_CANDIDATES:
                        return
                    yield chosen, ("g", *rest)


def _shifted(part: ObjectivePart) -> Iterator[tuple[tuple[Place, ...], tuple[Letter, ...]]]:
    """Axes of one or two variables along which a common shift is constant."""
    places: list[Place] = []
    for variable in part.variables:
        places += [(variable, axis) for axis in range(variable.rank)] or [(variable, -1)]
    for place in places:
        yield (place,), ("g",)
    for first, second in combinations(places, 2):
        if first[0] is not second[0] and _left(first) == _left(second):
            yield (first, second), ("g", "g")
            yield (first, second), ("g", "inverse")


def _left(place: Place) -> tuple[object, ...]:
    variable, axis = place
    return tuple(dim for k, dim in enumerate(variable.shape) if k != axis)


def _as_shifts(places: Sequence[Place], letters: Sequence[Letter]) -> dict[Expr, Shift]:
    variable, axis = places[0]
    left = tuple(dim for k, dim in enumerate(variable.shape) if k != axis)
    by = build.data("shift", left)
    return {
        variable: Shift(
            by if letter == "g" else table.neg(by),
            tuple(k for k in range(variable.rank) if k != axis),
        )
        for (variable, axis), letter in zip(places, letters, strict=True)
    }
