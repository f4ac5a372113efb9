"""Jets: upper bounds M_k on the norms of derivatives of order k = 0..3 by blocks of variables.

M_k has an axis of length B, the number of blocks, for each derivative: M_k[b1..bk] is an upper
bound on ‖D_{b1..bk} u(x)[v_1..v_k]‖ over the ball and over unit vectors v_i of the blocks. All M_k
are symmetric. Operations here take and return upper bounds, rounded up as in `rounded_up`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from slomodel.bounds.arithmetic.rounding import Array
from slomodel.bounds.arithmetic.upper_bounds import rounded_up

ORDER = 3
"""The highest order of derivatives."""
Jet = tuple[Array, ...]


def times(a: Array, b: Array) -> Array:
    """a ⊗ b: all products, 0 where a factor is 0."""
    with np.errstate(all="ignore"):
        product = np.multiply.outer(a, b)
        if not np.isfinite(product).all():
            product = np.where(np.isnan(product), 0.0, product)
    return np.asarray(product)


def scaled(factor: float, a: Array) -> Array:
    return times(np.asarray(factor), a)


def constant(value: float, blocks: int) -> Jet:
    """The jet of a constant node."""
    return (rounded_up(np.asarray(value)), *(np.zeros((blocks,) * k) for k in range(1, ORDER + 1)))


def variable(value: float, block: int, blocks: int) -> Jet:
    """The jet of a block: its derivative along itself is the identity, of norm at most 1."""
    first = np.zeros(blocks)
    first[block] = 1.0
    return (rounded_up(np.asarray(value)), first, *constant(0.0, blocks)[2:])


def least(jets: Sequence[Jet]) -> Jet:
    """The entrywise minimum of several jets that bound the same node."""
    result = jets[0]
    for other in jets[1:]:
        result = tuple(np.minimum(a, b) for a, b in zip(result, other, strict=True))
    return result


def multiple(factor: float, jet: Jet) -> Jet:
    return jet if factor == 1.0 else tuple(rounded_up(scaled(factor, a)) for a in jet)


def total(jets: Sequence[Jet]) -> Jet:
    """The jet of a sum."""
    if len(jets) == 1:
        return jets[0]
    return tuple(rounded_up(np.sum(list(orders), axis=0)) for orders in zip(*jets, strict=True))


def largest(jets: Sequence[Jet]) -> Jet:
    """The jet of a node that equals one of several at each point."""
    return tuple(np.maximum.reduce(orders) for orders in zip(*jets, strict=True))


def spread(a: Array) -> Array:
    """a[b1, b2, b3] + a[b1, b3, b2] + a[b2, b3, b1] for `a` symmetric in its first two axes."""
    return np.asarray(a + a.transpose(0, 2, 1) + a.transpose(2, 0, 1))


def product(pairs: Sequence[tuple[Jet, Jet]]) -> Jet:
    """Leibniz: D^k(uv) = Σ over subsets S of the slots of D^S u D^(rest) v; each term's norm is
    bounded by the least over the pairs of norms.
    """

    def both(i: int, j: int) -> Array:
        result = [times(u[i], v[j]) for u, v in pairs]
        return result[0] if len(result) == 1 else np.minimum.reduce(result)

    def turned(i: int, j: int) -> Array:
        """The term with the j slots of v first."""
        result = [times(v[j], u[i]) for u, v in pairs]
        return result[0] if len(result) == 1 else np.minimum.reduce(result)

    mixed = both(1, 1)
    return (
        rounded_up(both(0, 0)),
        rounded_up(both(1, 0) + both(0, 1)),
        rounded_up(both(2, 0) + (mixed + mixed.T) + both(0, 2)),
        rounded_up(both(3, 0) + spread(both(2, 1)) + spread(turned(1, 2)) + both(0, 3)),
    )


def shift(a: Array, radii: Array, radius: float) -> Array:
    """Upper bound on the norm of Σ_b a[.., b] h_b for ‖h_b‖ <= radii[b], ‖h‖ <= radius."""
    if radius == 0.0:
        return np.zeros(a.shape[:-1])
    with np.errstate(all="ignore"):
        by_block = np.sum(np.where(a == 0.0, 0.0, a * radii), axis=-1)
        size = np.max(a, axis=-1, initial=0.0, keepdims=True)
        ratio = np.where(size > 0.0, a / np.where(size > 0.0, size, 1.0), 0.0)
        length = size[..., 0] * np.sqrt(np.sum(ratio * ratio, axis=-1))
        whole = np.where(size[..., 0] == np.inf, np.inf, length * radius)
    return rounded_up(np.asarray(np.minimum(by_block, whole)))


def centred(jet: Jet, centre: Sequence[Array], orders: int, radii: Array, radius: float) -> Jet:
    """The jet capped by M_k <= M_k(c) + the shift by M_(k+1), for k < `orders`.

    Hypothesis: the node is C^(orders - 1) with a derivative of order `orders` almost everywhere on
    the ball, so D^k u(x) = D^k u(c) + ∫ D^(k+1) u [x - c].
    """
    result = list(jet)
    for k in range(min(orders, ORDER) - 1, -1, -1):
        if k < len(centre):
            moved = rounded_up(centre[k] + shift(result[k + 1], radii, radius))
            result[k] = np.minimum(result[k], moved)
    return tuple(result)
