"""‖Y - Σ_i x_i^⊗k‖²: a majorant in the vectors' lengths, and D³f at the centre."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import comb, factorial

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval, point, whole_power
from slomodel.bounds.arithmetic.interval_einsum import contract
from slomodel.bounds.arithmetic.midpoint_radius import Bounded
from slomodel.bounds.arithmetic.rounding import Array, up_add, up_div, up_mul, up_norm
from slomodel.bounds.arithmetic.upper_bounds import rounded_up
from slomodel.bounds.centre import hessian_at_centre
from slomodel.bounds.enclosure import Enclosure
from slomodel.bounds.norms.cubic_norm import MOST_COLUMNS_CUBIC, cubic_norm
from slomodel.bounds.norms.polynomial import Polynomial, largest_value
from slomodel.bounds.norms.spectral_norm import spectral_norm
from slomodel.bounds.part import ObjectivePart, once_per_part
from slomodel.bounds.ranges.enclose import boxed, enclose
from slomodel.bounds.refinements.series import Series
from slomodel.bounds.rules.majorant_series import refined
from slomodel.bounds.structure.gram_form import as_written
from slomodel.bounds.structure.sums_of_squares import PowerSum, power_sum

_MOST_VECTORS = 10
"""Largest number of vectors, the variables of the majorant."""
_MOST_ENTRIES = 2**20
"""Largest number of entries of the tensors left by each vector: 8 MB for each order."""

Monomials = dict[tuple[int, ...], float]


@dataclass(frozen=True, slots=True)
class Centre:
    """The vectors c (m, d) at the centre, α = c cᵀ, and R = Y - Σ c_i^⊗k contracted with them.

    `residual` holds, by q, the symmetric parts of R(c_i, .., c_i) with q arguments left (m, d, ..,
    d).
    """

    order: int
    c: Interval
    alpha: Interval
    residual: dict[int, Interval]

    @property
    def count(self) -> int:
        return int(self.c.shape[0])


def symmetric_powers(part: ObjectivePart, radius: float) -> Enclosure | None:
    """L1 and L2 of f = w ‖Y - Σ x_i^⊗k‖² plus a quadratic, by the series of `majorant_series`.

    With x = c + h, R = Y - Σ c_i^⊗k and Δ_i = x_i^⊗k - c_i^⊗k, f/w = ‖R‖² - 2 Σ ⟨R, Δ_i⟩ + Σ_ij
    ⟨Δ_i, Δ_j⟩. The first sum has the parts C(k, q) R(c_i^(k-q), h_i^q), at most C(k, q) times the
    norm of a form in q vectors. With α = c_i·c_j, β = c_i·h_j, β' = h_i·c_j and γ = h_i·h_j

        ⟨Δ_i, Δ_j⟩ = (α + β + β' + γ)^k - (α + β)^k - (α + β')^k + α^k,

    a sum of products with γ or with β β', all with positive coefficients: |α|, ‖c_i‖ t_j, ‖c_j‖ t_i
    and t_i t_j in their place give a majorant in t_i = ‖h_i‖. Only the symmetric part of Y matters.
    """
    series = symmetric_terms(part)
    return None if series is None else series.enclosure(radius)


@once_per_part
def symmetric_terms(part: ObjectivePart) -> Series | None:
    """The series of a part; None where the objective is not such a sum."""
    if part.n == 0:
        return None
    result = power_sum(part)
    centre = _centre(as_written(part), result) if result else None
    if result is None or centre is None:
        return None
    weight = enclose([result.weight], boxed(as_written(part).values), part.sizes)
    w = float(np.max(weight[result.weight].magnitude))
    sizes, parts = {}, {}
    own = _majorant(centre)
    for k in sorted({sum(key) for key in own if sum(key) >= 2}):
        keys = [key for key in own if sum(key) == k]
        values = np.array([own[key] for key in keys])
        parts[k] = Polynomial(np.array(keys), rounded_up(rounded_up(values * w), 2))
        sizes[k] = largest_value(parts[k])
    if 3 in sizes:
        sizes[3] = min(sizes[3], float(up_div(up_mul(w, _third_norm(centre)), 6.0)))
    hessian = hessian_at_centre(part)
    if result.rest < 2:
        hessian = min(hessian, float(up_mul(2.0, sizes.get(2, 0.0))))
    names = tuple(f"{result.vectors.name}_{i}" for i in range(centre.count))
    return refined(part, Series(names, parts, sizes, hessian))


def _centre(part: ObjectivePart, sum_of_powers: PowerSum) -> Centre | None:
    """The values at the centre; None where they are too expensive."""
    x = np.asarray(part.values[sum_of_powers.vectors], dtype=np.float64)
    x = x[np.newaxis] if x.ndim == 1 else (x.T if sum_of_powers.turned else x)
    k, (m, d) = sum_of_powers.order, x.shape
    if m > _MOST_VECTORS or m * d**k > _MOST_ENTRIES:
        return None
    c = point(np.ascontiguousarray(x))
    axes = tuple(range(1, k + 1))
    powers = contract([(c, (0, axis)) for axis in axes], axes, (m, *([d] * k)))
    R = point(np.zeros((d,) * k))
    if sum_of_powers.target is not None:
        values = enclose([sum_of_powers.target], boxed(part.values), part.sizes)
        R = _symmetric_part(values[sum_of_powers.target])
    residual = {}
    left = (R - powers).broadcast((m, *([d] * k)))
    for q in range(k, 0, -1):
        residual[q] = left
        labels = tuple(range(q + 1))
        left = contract([(left, labels), (c, (0, q))], labels[:-1], (m, *([d] * q)))
    return Centre(k, c, contract([(c, (0, 2)), (c, (1, 2))], (0, 1), (m, m, d)), residual)


def _symmetric_part(Y: Interval) -> Interval:
    """The mean over all permutations of the axes, one axis at a time: Σ over j of the swaps (i j),
    i <= j, is a sum over representatives of the cosets.
    """
    for j in range(1, len(Y.shape)):
        swaps = [Y.each(partial(np.swapaxes, axis1=i, axis2=j)) for i in range(j)]
        same = all(np.array_equal(s.lo, Y.lo) and np.array_equal(s.hi, Y.hi) for s in swaps)
        if same and Y.is_point:
            continue
        mean = Y
        for swap in swaps:
            mean = mean + swap
        Y = mean / point(float(j + 1))
    return Y


def _form_norm(a: Interval) -> float:
    """Upper bound on the norm of a symmetric form of any order."""
    mid, order, d = a.mid, len(a.shape), a.shape[0]
    slack = float(up_norm(a.rad))
    if order == 3 and d <= MOST_COLUMNS_CUBIC:
        return cubic_norm(Bounded(mid, slack))
    rows = d ** (order // 2)
    return float(up_add(spectral_norm(mid.reshape(rows, -1)), slack))


def _majorant(centre: Centre) -> Monomials:
    """Upper bounds on the parts of f/w, by their exponents in the lengths of the h_i."""
    k, m = centre.order, centre.count
    result: Monomials = {}

    def add(powers: dict[int, int], value: float) -> None:
        key = tuple(powers.get(i, 0) for i in range(m))
        result[key] = float(up_add(result.get(key, 0.0), value))

    for q in range(1, k + 1):
        for i in range(m):
            form = centre.residual[q].each(partial(np.take, indices=i, axis=0))
            add({i: q}, float(up_mul(2.0 * comb(k, q), _form_norm(form))))
    lengths = [float(x) for x in np.atleast_1d(up_norm(centre.c.magnitude, 1))]
    for i in range(m):
        for j in range(m):
            alpha = float(centre.alpha.magnitude[i, j])
            for (p, q), value in _pair(k, alpha, lengths[i], lengths[j]).items():
                add({i: p + q} if i == j else {i: p, j: q}, value)
    return result


def _pair(k: int, alpha: float, first: float, second: float) -> Monomials:
    """Majorant of ⟨Δ_i, Δ_j⟩ by powers of t_i and t_j: k!/(a! b! b'! g!) α^a β^b β'^b' γ^g."""
    result: Monomials = {}
    for g in range(k + 1):
        for b in range(k + 1 - g):
            for other in range(k + 1 - g - b):
                if not (g or (b and other)):
                    continue
                a = k - g - b - other
                count = factorial(k) // (factorial(a) * factorial(b) * factorial(other))
                value = float(count // factorial(g))
                for base, power in ((alpha, a), (first, b), (second, other)):
                    for _ in range(power):
                        value = float(up_mul(value, base))
                key = (other + g, b + g)
                result[key] = float(up_add(result.get(key, 0.0), value))
    return result


def _third_norm(centre: Centre) -> float:
    """Upper bound on ‖D³f(c)‖/w; inf for many unknowns.

    Written by hand, as the graph of D³f holds tensors of dᵏ elements along n² directions: it takes
    36 times as long for 12 unknowns of order 3 and 155 times for 24, measured by
    `benchmarks/centre_derivatives.py`.

    f_3(h)/w = -2 C(k, 3) Σ R(c_i^(k-3), h_i³) + Σ_ij 2 k(k-1) α^(k-2) γ β + k(k-1)(k-2) α^(k-3) β²
    β', with (i, j) and (j, i) combined, and D³f is 6 times its symmetric form.
    """
    k, (m, d) = centre.order, centre.c.shape
    n = m * d
    if n > MOST_COLUMNS_CUBIC:
        return float(np.inf)
    c, sizes = centre.c, (m, m, d, d, d)
    every = (0, 1, 2, 3, 4)
    first = whole_power(centre.alpha, k - 2) * point(2.0 * k * (k - 1))
    eye = point(np.eye(d))
    blocks = contract([(first, (0, 1)), (eye, (2, 3)), (c, (0, 4))], every, sizes)
    own = point(np.zeros((m, d, d, d)))
    if k > 2:
        second = whole_power(centre.alpha, k - 3) * point(float(k * (k - 1) * (k - 2)))
        factors = [(second, (0, 1)), (c, (0, 3)), (c, (0, 4)), (c, (1, 2))]
        blocks = blocks + contract(factors, every, sizes)
        own = centre.residual[3] * point(-2.0 * comb(k, 3))
    diagonal = np.arange(m)
    own = own + blocks.each(lambda array: array[diagonal, diagonal])
    mid, rad = _placed(blocks.mid, own.mid), _placed(blocks.rad, own.rad)
    return float(up_mul(6.0, cubic_norm(Bounded(mid, float(up_norm(rad))))))


def _placed(blocks: Array, own: Array) -> Array:
    """The array (n, n, n) with blocks[i, j] at (i, j, j), those with i = j from `own`."""
    m, d = own.shape[:2]
    result = np.zeros((m, d, m, d, m, d))
    for j in range(m):
        result[:, :, j, :, j, :] = blocks[:, j]
        result[j, :, j, :, j, :] = own[j]
    return result.reshape(m * d, m * d, m * d)
