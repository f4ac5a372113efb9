"""Sums of products of interval arrays, with the semantics of `Einsum`.

The operands' `batch` leading axes, before those of their labels, broadcast: each has the common
size or 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite, prod
from string import ascii_letters

import numpy as np

from slomodel.bounds.arithmetic.interval import (
    Interval,
    around,
    from_zero,
    multiply,
    point,
    total,
    whole_power,
)
from slomodel.bounds.arithmetic.rounding import (
    SMALLEST,
    Array,
    gamma,
    nonnegative_sum,
    up,
    up_add,
    up_mul,
)
from slomodel.ir.expr import Axes

_EVERY_PRODUCT = 2**18
"""Largest number of products that are enclosed one by one; beyond it, midpoints are contracted."""
_EVERY_PRODUCT_OF_POINTS = 2**12
"""The same for points, whose contraction by midpoints has small errors already."""
_FAR_FROM_UNDERFLOW = 1e-280
"""Products no smaller than this have relative errors only."""
_LONG_FACTOR = 2**12
"""Elements from which a product of two factors is left to matrix products, found in 30 us."""
_BATCH_LABEL = len(ascii_letters) - 1

Labelled = tuple[Interval, Axes]


def contract(
    operands: Sequence[Labelled], output: Axes, dims: Sequence[int], batch: int = 0
) -> Interval:
    """Sum of the products of the operands over the labels that `output` lacks.

    An operand that occurs several times with the same labels is raised to that power, so that a
    square is never negative.
    """
    present = {label for _, own in operands for label in own}
    absent = prod(dims[k] for k in range(len(dims)) if k not in present and k not in output)
    kept = tuple(dict.fromkeys(label for label in output if label in present))
    if not operands:
        result = point(np.ones((1,) * batch))
    elif _is_small(operands, dims, batch):
        result = _each_product(operands, kept, len(dims), batch)
    else:
        result = _by_midpoints(operands, kept, dims, batch)
    if absent != 1:
        result = result * point(np.full(result.shape, float(absent)))
    return result.each(lambda array: _placed(array, kept, output, dims, batch))


def largest_sum(
    factors: Sequence[tuple[Array, Axes]], output: Axes, dims: Sequence[int]
) -> np.float64:
    """Upper bound on the largest element of `contract` for arrays >= 0, of which no label repeats.

    Their product is summed in doubles, with one factor for all roundings, where nothing underflows
    and no 0 meets an infinity.
    """
    present = {label for _, own in factors for label in own}
    kept = tuple(label for label in output if label in present)
    absent = prod(dims[k] for k in range(len(dims)) if k not in present and k not in output)
    terms = prod(dims[k] for k in present if k not in output) + len(factors) + 1
    if not factors:
        return np.float64(absent)
    arrays = [np.broadcast_to(array, [dims[k] for k in own]) for array, own in factors]
    with np.errstate(all="ignore"):
        sums = _einsum(arrays, [own for _, own in factors], kept, 0) * float(absent)
        largest = float(np.max(sums, initial=0.0))
        lost = _underflow(arrays, [None] * len(arrays), arrays, terms)
    if lost or not isfinite(largest):
        whole = [(from_zero(array), own) for array, (_, own) in zip(arrays, factors, strict=True)]
        return np.float64(np.max(contract(whole, output, dims).hi, initial=0.0))
    return np.float64(nonnegative_sum(np.asarray(largest), terms, 0.0))


def _is_small(operands: Sequence[Labelled], dims: Sequence[int], batch: int) -> bool:
    if len(operands) == 1:
        return True
    labels = {label for _, own in operands for label in own}
    cells = prod(max(o.shape[k] for o, _ in operands) for k in range(batch))
    most = _EVERY_PRODUCT
    if all(o.is_point for o, _ in operands):
        most = _EVERY_PRODUCT_OF_POINTS
    return cells * prod(dims[label] for label in labels) <= most


def _each_product(operands: Sequence[Labelled], kept: Axes, count: int, batch: int) -> Interval:
    """The sum with every product enclosed individually."""
    powers: dict[tuple[int, int, Axes], int] = {}
    arrays: dict[tuple[int, int, Axes], Interval] = {}
    for operand, own in operands:
        key = (id(operand.lo), id(operand.hi), own)
        powers[key] = powers.get(key, 0) + 1
        arrays[key] = operand
    product: Interval | None = None
    for key, power in powers.items():
        factor = arrays[key].each(_spread_along(key[-1], count, batch))
        factor = whole_power(factor, power) if power > 1 else factor
        product = factor if product is None else multiply(product, factor)
    assert product is not None
    summed = tuple(batch + label for label in range(count) if label not in kept)
    over = [axis for axis in summed if product.shape[axis] != 1]
    if over:
        result = total(product, tuple(over))
        gone = [axis for axis in summed if axis not in over]
        left = [axis - sum(o < axis for o in over) for axis in gone]
        result = result.each(lambda array: np.squeeze(array, tuple(left)))
    else:
        result = product.each(lambda array: np.squeeze(array, summed))
    order = [*range(batch), *(batch + sorted(kept).index(label) for label in kept)]
    return result.each(lambda array: np.transpose(array, order))


def _spread_along(own: Axes, count: int, batch: int) -> Callable[[Array], Array]:
    """A view with one axis per label, of size 1 for labels that the operand lacks."""

    def view(array: Array) -> Array:
        unique = sorted(set(own))
        picked = np.einsum(f"...{_word(own)}->...{_word(unique)}", array)
        missing = tuple(batch + label for label in range(count) if label not in unique)
        return np.expand_dims(np.asarray(picked), missing)

    return view


def _by_midpoints(
    operands: Sequence[Labelled], kept: Axes, dims: Sequence[int], batch: int
) -> Interval:
    """Contraction of the midpoints; radii by telescoping, rounding errors by γ.

    With A_k within e_k of M_k: |ΠA - ΠM| <= Σ_k Π_(j<k)(|M_j| + e_j) e_k Π_(j>k)|M_j|; a sum of P
    products of m factors in any order has an error of at most γ_(P+m) Σ|products| plus underflow.
    """
    labels = [own for _, own in operands]
    mids = [o.mid for o, _ in operands]
    radii = [
        None if o.is_point else o.rad_about(m) for (o, _), m in zip(operands, mids, strict=True)
    ]
    sizes = [np.abs(mid) for mid in mids]
    largest = [s if o.is_point else o.magnitude for (o, _), s in zip(operands, sizes, strict=True)]
    summed = {label for own in labels for label in own} - set(kept)
    terms = prod(dims[label] for label in summed) + len(operands)
    growth = np.asarray(up(1.0 + gamma(2 * terms)))

    def nonnegative(factors: list[Array]) -> Array:
        return np.asarray(up_mul(_einsum(factors, labels, kept, batch), growth))

    with np.errstate(all="ignore"):
        middle: Array = _einsum(mids, labels, kept, batch)
        radius: Array = up_mul(nonnegative(sizes), np.asarray(gamma(2 * terms)))
        for k, own in enumerate(radii):
            if own is not None:
                part = nonnegative([*largest[:k], own, *sizes[k + 1 :]])
                radius = up_add(radius, part)
        slack = _underflow(sizes, radii, largest, terms)
        if slack:
            radius = up_add(radius, np.full(radius.shape, slack))
        return around(middle, radius)


def _einsum(factors: Sequence[Array], labels: Sequence[Axes], kept: Axes, batch: int) -> Array:
    """np.einsum, two factors at a time; batch axes of size 1 are dropped and thereby broadcast."""
    words, arrays = [], []
    used: set[int] = set()
    for factor, own in zip(factors, labels, strict=True):
        wide = [k for k in range(batch) if factor.shape[k] > 1]
        used.update(wide)
        arrays.append(factor.reshape([factor.shape[k] for k in wide] + list(factor.shape[batch:])))
        words.append(_word([_BATCH_LABEL - k for k in wide]) + _word(own))
    front = _word([_BATCH_LABEL - k for k in sorted(used)])
    spec = f"{','.join(words)}->{front}{_word(kept)}"
    # The search for an order takes longer than most products of two factors.
    order = "greedy" if len(arrays) > 2 or max(a.size for a in arrays) > _LONG_FACTOR else False
    result = np.asarray(np.einsum(spec, *arrays, optimize=order))
    return np.expand_dims(result, tuple(k for k in range(batch) if k not in used))


def _word(labels: Sequence[int]) -> str:
    return "".join(ascii_letters[label] for label in labels)


def _underflow(
    sizes: Sequence[Array], radii: Sequence[Array | None], largest: Sequence[Array], terms: int
) -> float:
    """Upper bound on the effect of underflowing products on a sum; usually 0.

    Each underflow loses at most 2^-1074 times the factors that follow.
    """
    least, most = 1.0, 1.0
    for size, radius, whole in zip(sizes, radii, largest, strict=True):
        least *= _least_nonzero(size)
        least *= 1.0 if radius is None else _least_nonzero(radius)
        top = max(float(whole.max(initial=1.0)), 1.0)
        most = up_mul(most, up_mul(top, top))
    if least >= _FAR_FROM_UNDERFLOW:
        return 0.0
    return up_mul(up_mul(float(terms * len(sizes)), SMALLEST), most)


def _least_nonzero(size: Array) -> float:
    """The least of the positive numbers, at most 1."""
    least = float(size.min(initial=1.0))
    return least if least > 0.0 else float(size[size > 0.0].min(initial=1.0))


def _placed(array: Array, kept: Axes, output: Axes, dims: Sequence[int], batch: int) -> Array:
    """The array of the kept labels with its axes ordered as the output, which may repeat labels."""
    front = array.shape[:batch]
    unique = tuple(dict.fromkeys(output))
    missing = tuple(batch + k for k, label in enumerate(unique) if label not in kept)
    order = [kept.index(label) for label in unique if label in kept]
    turned = np.transpose(array, [*range(batch), *(batch + k for k in order)])
    wide = np.broadcast_to(
        np.expand_dims(turned, missing), front + tuple(dims[label] for label in unique)
    )
    if len(unique) == len(output):
        return wide
    out = np.zeros(front + tuple(dims[label] for label in output))
    if not out.size:
        return out
    diagonal = np.einsum(f"...{_word(output)}->...{_word(unique)}", out)
    assert np.shares_memory(diagonal, out)
    diagonal.setflags(write=True)
    diagonal[...] = wide
    return out
