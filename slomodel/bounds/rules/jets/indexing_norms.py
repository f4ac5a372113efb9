"""Norms of nodes that only rearrange elements: `Gather`, `Scatter` and `Reshape`."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from slomodel.bounds.arithmetic.rounding import up_sqrt
from slomodel.bounds.rules.jets.mixed_norms import Norm, Sizes, canonical, flattened
from slomodel.bounds.rules.jets.product_norms import Options
from slomodel.ir.expr import Affine

LARGEST_COUNT = 10_000_000
"""Beyond this many positions, multiplicities are bounded by the number of positions."""


def gathered(index: Sequence[Affine], iterated: Sizes, indexed: Sizes, norm: Norm) -> Options:
    """‖w‖ for w[o] = u[index(o)], o over `iterated`, u of shape `indexed`.

    Once the maxima are fixed, if each axis of u depends on at most one axis of w, w is a submatrix
    of u with the axes on the sides of those they depend on, repeated ν times along the axes that
    none depends on: ‖w‖ <= √ν ‖u‖. Otherwise Σ|w|² contains each element of u at most μ times:
    ‖w‖ <= ‖w‖_F <= √μ ‖u‖_F, both with the maxima fixed.
    """
    live = [axis for axis in range(len(iterated)) if norm[axis] != "m"]
    free = [
        [axis for axis, c in enumerate(one.coefficients) if c and norm[axis] != "m"]
        for one in index
    ]
    if all(len(own) <= 1 for own in free):
        letters = "".join(norm[own[0]] if own else "m" for own in free)
        spare = set(live).difference(*free)
        repeated = prod(iterated[axis] for axis in spare)
        factor = float(up_sqrt(float(repeated))) if repeated > 1 else 1.0
        return Options(factor, ((canonical(letters, indexed),),))
    letters = "".join("r" if own else "m" for own in free)
    times = _multiplicity(index, iterated, indexed, live)
    return Options(float(up_sqrt(float(times))), ((canonical(letters, indexed),),))


def scattered(index: Sequence[Affine], iterated: Sizes, indexed: Sizes, norm: Norm) -> Options:
    """‖w‖ for w[index(o)] += u[o], u of shape `iterated`, w of shape `indexed`.

    If each axis of w depends on at most one axis of u, and one on each longer than 1, no two
    elements collide and w is u padded with zeros; an axis of u that rows and columns of w depend on
    gives blocks on a diagonal.
    Otherwise an element of w is a sum of at most μ elements of u: ‖w‖ <= ‖w‖_F <= √μ ‖u‖_F
    (Cauchy–Schwarz), where an axis of u stays a maximum if it alone determines an axis of w that is
    one; entry by entry, |w| <= μ max|u|.
    """
    uses = [[axis for axis, c in enumerate(one.coefficients) if c] for one in index]
    spare = set(range(len(iterated))).difference(*uses)
    if all(len(own) <= 1 for own in uses) and all(iterated[axis] <= 1 for axis in spare):
        letters = []
        for axis in range(len(iterated)):
            sides = {norm[k] for k, own in enumerate(uses) if own == [axis]}
            letters.append(sides.pop() if len(sides) == 1 else "m")
        return Options(1.0, ((canonical("".join(letters), iterated),),))
    times = _multiplicity(index, iterated, indexed, list(range(len(iterated))))
    if "r" not in norm:
        return Options(float(times), ((canonical("m" * len(iterated), iterated),),))
    fixed = {own[0] for k, own in enumerate(uses) if len(own) == 1 and norm[k] == "m"}
    letters = ["m" if axis in fixed else "r" for axis in range(len(iterated))]
    result = canonical("".join(letters), iterated)
    return Options(float(up_sqrt(float(times))), ((result,),))


def listed(places: Sequence[NDArray[np.intp]], indexed: Sizes) -> float:
    """√μ, rounded up, where μ is the largest multiplicity of an element among the places."""
    if not places or not places[0].size:
        return 1.0
    flat = np.ravel_multi_index(tuple(places), indexed)
    return float(up_sqrt(float(np.unique(flat, return_counts=True)[1].max())))


def _multiplicity(
    index: Sequence[Affine], iterated: Sizes, indexed: Sizes, live: Sequence[int]
) -> int:
    """Most times that one element is indexed while the axes not in `live` are fixed."""
    count = prod(iterated[axis] for axis in live)
    if count > LARGEST_COUNT or count == 0:
        return max(count, 1)
    grid = np.indices([iterated[axis] for axis in live], dtype=np.int64)
    place = np.zeros(grid.shape[1:], dtype=np.int64)
    for one, size in zip(index, indexed, strict=True):
        moved = sum(
            (one.coefficients[axis] * grid[k] for k, axis in enumerate(live)),
            start=np.zeros_like(place),
        )
        span = 2 * size + 2 * sum(
            abs(c) * n for c, n in zip(one.coefficients, iterated, strict=True)
        )
        place = place * (span + 1) + moved
    return int(np.max(np.unique(place, return_counts=True)[1]))


def reshaped(before: Sizes, after: Sizes, norm: Norm) -> Options:
    """‖w‖ for w the elements of u in C order, u of shape `before`, w of shape `after`.

    Both shapes split into runs of axes with equal products. A run of w all on one side is that side
    in u. A run of maxima and one other side takes elements out of the run of u on that side, so the
    norm is not less there; rows and columns within one run leave only the Frobenius norm.
    """
    runs = _runs(before, after)
    if runs is None:
        return Options(1.0, ((canonical("r" * len(before), before),),))
    letters = ["m"] * len(before)
    mixed = False
    for own, other in runs:
        sides = {norm[axis] for axis in other if after[axis] != 1} - {"m"}
        mixed = mixed or len(sides) > 1
        for axis in own:
            letters[axis] = min(sides, default="m")
    word = "".join(letters)
    if mixed:
        word = flattened(word)
    return Options(1.0, ((canonical(word, before),),))


def _runs(before: Sizes, after: Sizes) -> list[tuple[list[int], list[int]]] | None:
    """Consecutive axes of both shapes with equal products; None for arrays without elements."""
    if 0 in before or 0 in after:
        return None
    runs: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(before) or j < len(after):
        own, other = [], []
        left = right = 1
        while True:
            if (left <= right and i < len(before)) or j == len(after):
                left *= before[i]
                own.append(i)
                i += 1
            else:
                right *= after[j]
                other.append(j)
                j += 1
            if left == right:
                break
        runs.append((own, other))
    return runs
