"""Errors of sums of products Σ_i w_i a_i ⊗ b_i ⊗ .. of inexact rows or numbers."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval
from slomodel.bounds.arithmetic.rounding import (
    SMALLEST,
    Array,
    gamma,
    underflow,
    up_add,
    up_div,
    up_mul,
    up_norm,
    up_sum,
)

RELATIVE_ERROR = 1e-12
"""η: magnitudes are enlarged until the relative error of each number is at most this."""
_OWN = 32
"""Bound on the number of roundings in the error bounds themselves, for up to four factors."""


def errors_by_term(
    weights: Array, lengths: Sequence[Array], errors: Sequence[Array], roundings: int, entries: int
) -> Array:
    """Upper bounds (m,) on each term's contribution to the error of Σ w_i a_i ⊗ b_i ⊗ .. in norm.

    `lengths` (m,), for each of at most four factors, are upper bounds on the lengths of the
    computed rows â_i and of the exact ones, which are within `errors` (m,) of them. `roundings`
    counts those that a product passes through, including those of the sums; `entries` is the number
    of elements of the result.

    By telescoping ‖a ⊗ b ⊗ .. - â ⊗ b̂ ⊗ ..‖ <= Σ_j e_j Π_(k≠j) l_k, and by the rules (2) to (4) of
    `bounded` the rounding error is at most γ Σ |w_i||â_i| ⊗ |b̂_i| ⊗ .., elementwise, and γ Σ |w_i|
    Π l_k in norm. A product that underflows loses η/2, and later factors (of |w_i|, l_k and a
    number of at most 2) enlarge this by at most 2 Π max(1, ·): for up to eight products in every
    element that is less than 8 η `entries` Π max(1, ·) in norm; for the products formed here, of
    the same factors, less than 24.
    """
    size = np.abs(weights)
    with np.errstate(all="ignore"):
        own = gamma(roundings) * prod(lengths, start=np.ones(1))
        for k, error in enumerate(errors):
            if error.any():
                own = own + prod((*lengths[:k], *lengths[k + 1 :]), start=error)
        own = own * size * (1.0 + gamma(_OWN))
        most = prod(max(1.0, float(np.max(one, initial=0.0))) for one in (size, *lengths))
        own = own + 32.0 * SMALLEST * max(entries, 1) * most
    own[np.isnan(own)] = np.inf
    own[size == 0.0] = 0.0
    return own


def error_of_sum(
    weights: Array, lengths: Sequence[Array], errors: Sequence[Array], roundings: int, entries: int
) -> float:
    """Upper bound on the error of the whole sum; see `errors_by_term`."""
    return float(up_sum(errors_by_term(weights, lengths, errors, roundings, entries)))


def error_of_gram(M: Array, factor: float = 1.0) -> float:
    """Upper bound on the error for one matrix; see `errors_of_grams`."""
    return float(errors_of_grams(M[np.newaxis], factor)[0])


def errors_of_grams(M: Array, factor: float = 1.0) -> Array:
    """Upper bounds (s,) on the ‖·‖_F errors of G, assembled from factor · M Mᵀ, M (s, p, k).

    An element of G is a sum of up to three elements of M Mᵀ, each of which occurs in G once for
    each of these three, times numbers of at most 2: at most 6 |M||M|ᵀ in ‖·‖_F, which is at most 6
    ‖M‖_F². It passes through k + 8 roundings, including those of the numbers and of the sums, and
    each product of two elements may lose η to underflow.
    """
    p, k = M.shape[1:]
    magnitude = np.asarray(up_norm(M, (1, 2)))
    rate, lost = up_mul(6.0 * factor, gamma(k + 8)), underflow(p * (k + 4))
    rounding = up_mul(np.asarray(rate), up_mul(magnitude, magnitude))
    return np.asarray(up_add(rounding, np.asarray(up_mul(8.0 * max(factor, 1.0), lost))))


def magnitudes(a: Interval) -> Array:
    """Numbers M with |x| <= M and |x - mid| <= η M for all x in the interval with this midpoint."""
    return np.asarray(up_add(np.abs(a.mid), up_div(a.rad, np.asarray(RELATIVE_ERROR))))


def error_of_polynomial(at_magnitudes: float, factors: int, terms: int) -> float:
    """Upper bound on |p(x) - fl(p(mid))|, p a sum of products of numbers, from p(M) as computed.

    With coefficients c and at most `factors` factors in a product, Π x is within ((1 + η)^k - 1) Π
    M of Π mid, at most 1.005 k η Π M for k η <= 0.01; by the rules (3) and (4) of `bounded` the
    error of the computed p(mid) is at most γ Σ|c| Π M, for products and sums of `terms` roundings
    in all. p(M) is the sum of |c| Π M, computed with a relative error of at most γ.
    """
    assert factors * RELATIVE_ERROR <= 0.01
    relative = up_add(up_mul(1.005, up_mul(float(factors), RELATIVE_ERROR)), gamma(terms))
    return float(up_mul(up_mul(relative, up_add(1.0, gamma(2 * terms))), at_magnitudes))
