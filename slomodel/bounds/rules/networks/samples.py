"""The bounds of a cell of a network per sample, or their maxima over groups of samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slomodel.bounds.arithmetic.rounding import Array, up_mul
from slomodel.bounds.arithmetic.upper_bounds import FLOOR, floored, rounded_up
from slomodel.bounds.norms.power_sums import Groups, Moments
from slomodel.bounds.norms.spectral_norm import stack_norm
from slomodel.bounds.rules.networks.values import Cell, Values, over_cell


@dataclass(frozen=True, slots=True)
class Bundle:
    """Numbers per sample or group (K,), stacked.

    By layer after the first, and number q of parts: the weights w and the largest D_q (L - 1, 4,
    K). By layer: ‖z‖ and, for q = 2, 3, 4, the sums of ‖z - z(c)‖^q (L, K). For the loss: ‖g'‖, the
    largest |g^(q)| (4, K) and the number of samples.
    """

    rho: Array
    norms: Array
    weights: Array
    largest: Array
    lengths: Array
    moved: dict[int, Array]
    slopes: Array
    sizes: Array
    count: Array
    moments: tuple[Moments, ...]

    @property
    def layers(self) -> int:
        return len(self.lengths)


def by_sample(values: Values, cell: Cell, groups: Groups | None = None) -> Bundle:
    """Bounds on the layers of a network over a cell, per sample.

    Norms ‖W diag(D)‖ use the largest D of each of the `groups` of samples.
    """
    weights, largest = [], []
    for k, level in enumerate(values.levels[1:], 1):
        sizes, rho = cell.sizes[k - 1], cell.rho[k]
        most = np.stack([np.max(size, axis=0) for size in sizes])
        columns = [_row_norms(level.W, sizes[0], groups)]
        for size in sizes[1:]:
            columns.append(np.max(rounded_up(level.column_norms[:, np.newaxis] * size), axis=0))
        weights.append(rounded_up(np.stack(columns) + floored(up_mul(np.asarray(rho), most))))
        largest.append(most)
    moved = np.stack(cell.moved)
    return Bundle(
        cell.rho,
        np.array([level.norm for level in values.levels]),
        np.stack(weights),
        np.stack(largest),
        np.stack(cell.lengths),
        {q: power(moved, q) for q in (2, 3, 4)},
        cell.loss[0],
        np.stack(cell.loss),
        np.ones(values.samples),
        values.moments,
    )


def in_groups(own: Bundle, moments: tuple[Moments, ...]) -> Bundle:
    """Maxima over each group, and sums of the quantities that are added up over samples.

    Every bound here is a sum of c_i times these sums, with c_i increasing in the maxima.
    """
    groups = moments[0].groups
    assert groups is not None
    order, starts = groups
    sizes = np.diff(np.append(starts, len(order)))
    longest = int(np.max(sizes))

    def most(a: Array) -> Array:
        return np.asarray(np.maximum.reduceat(a[..., order], starts, axis=-1))

    def total(a: Array) -> Array:
        return rounded_up(np.add.reduceat(a[..., order], starts, axis=-1), longest)

    return Bundle(
        own.rho,
        own.norms,
        most(own.weights),
        most(own.largest),
        most(own.lengths),
        {q: total(a) for q, a in own.moved.items()},
        most(own.slopes),
        most(own.sizes),
        total(own.count),
        moments,
    )


def grouped(values: Values, halvings: int, finer: int = 0) -> tuple[Moments, ...]:
    """Sums over 2^halvings groups of samples that are similar at the centre, cached; they are
    unions of 2^finer groups if `finer` is given.
    """
    key = (halvings, finer)
    if key not in values.groupings:
        groups = groups_of(over_cell(values, np.zeros(len(values.levels))), halvings)
        below = grouped(values, finer) if finer else (None,) * len(values.moments)
        pairs = zip(values.moments, below, strict=True)
        values.groupings[key] = tuple(Moments(one.rows, groups, finest) for one, finest in pairs)
    return values.groupings[key]


def groups_of(cell: Cell, halvings: int) -> Groups:
    """2^halvings groups of similar samples, each halved along the feature that varies most in it.

    Returns the samples in the order of their groups, and the start of each group.
    """
    every = [*cell.loss, *(np.max(size, axis=0) for sizes in cell.sizes for size in sizes)]
    every += [np.linalg.norm(sizes[0], axis=0) for sizes in cell.sizes]
    rows = np.stack([*every, *cell.lengths])
    with np.errstate(all="ignore"):
        features = np.log(rows / np.max(rows, axis=1, keepdims=True)).T
    features = np.ascontiguousarray(np.maximum(np.nan_to_num(features, nan=0.0), -3.0))
    parts: list[NDArray[np.intp]] = [np.arange(len(features))]
    for _ in range(halvings):
        halves = []
        for part in parts:
            inside = features[part]
            spread = np.max(inside, axis=0) - np.min(inside, axis=0)
            middle = len(part) // 2
            place = np.argpartition(inside[:, int(np.argmax(spread))], middle)
            halves += [part[place[:middle]], part[place[middle:]]]
        parts = halves
    starts = np.cumsum([0, *(len(part) for part in parts[:-1])])
    return np.concatenate(parts), starts


def _row_norms(W: Array, size: Array, groups: Groups | None) -> Array:
    """‖W diag(size_i)‖ for every sample (N,), which increases in `size`."""
    if groups is not None:
        order, starts = groups
        place = np.empty(len(order), dtype=np.intp)
        place[order] = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(order))))
        largest = np.maximum.reduceat(size[:, order], starts, axis=1)
        return _row_norms(W, largest, None)[place]
    entries = rounded_up(floored(np.abs(W))[np.newaxis] * size.T[:, np.newaxis, :])
    return rounded_up(stack_norm(np.sign(W) * entries) + W.size * FLOOR)


def power(a: Array, q: int) -> Array:
    result = a
    for _ in range(q - 1):
        result = rounded_up(result * a)
    return result
