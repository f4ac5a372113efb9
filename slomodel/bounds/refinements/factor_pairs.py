"""‖U V - Y‖² of two matrices: the third derivative at the centre by a form in few variables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from slomodel.bounds.arithmetic.midpoint_radius import Bounded
from slomodel.bounds.arithmetic.rounding import (
    SMALLEST_NORMAL,
    Array,
    gamma,
    up_add,
    up_div,
    up_ldexp,
    up_mul,
    up_norm,
)
from slomodel.bounds.norms.quartic_norm import Places, Quartic, largest_quartic
from slomodel.bounds.part import ObjectivePart
from slomodel.bounds.ranges.enclose import boxed, enclose
from slomodel.bounds.refinements.series import Series
from slomodel.bounds.structure.gram_form import as_written
from slomodel.bounds.structure.matrix_chains import matrix_factors
from slomodel.bounds.structure.sums_of_squares import difference, sums_of_squares
from slomodel.ir.expr import Expr, Input

_MOST_BETWEEN = 12
"""Largest inner dimension k: the quartic form has 2k variables."""
_STARTS = 8
"""Random starts of the power iteration for μ and ν; whatever they are, they prove a bound."""
_STEPS = 60
"""Steps of that iteration, each a product with both factors."""
_LEAST_FRACTION = 1e-3
"""Least ratio of one of μ, ν to the other: their quotients stay of moderate magnitude."""


def pairs_of_factors(part: ObjectivePart, series: Series) -> Series | None:
    """The series with a smaller part of degree 3."""
    size = float(up_div(third_of_pair(part), 6.0))
    if size >= series.sizes.get(3, 0.0):
        return None
    return replace(series, sizes={**series.sizes, 3: size})


def third_of_pair(part: ObjectivePart) -> float:
    """Upper bound on ‖D³f(c)‖ of f = w ‖U V - Y‖² plus a quadratic; inf for other objectives.

    For U (p, k) and V (k, q) the part of degree 3 is f_3(A, B) = 2 w ⟨U B + A V, A B⟩, and so for
    all μ, ν > 0

        |f_3| <= 2 |w| (‖U B‖ + ‖A V‖) ‖A B‖ <= |w| ((μ + ν) ‖A B‖² + ‖U B‖²/μ + ‖A V‖²/ν).

    With K = AᵀA and G = B Bᵀ the right-hand side is linear in each of them, ‖A B‖² = tr K G, ‖U B‖²
    = tr UᵀU G and ‖A V‖² = tr V Vᵀ K, and so it is largest for given traces at K = y yᵀ, G = z zᵀ:
    over unit (A, B) at most the largest value of a quartic form of unit (y, z) in 2k variables,

        (μ + ν) (y·z)² + (|U z|²/μ + |Vᵀy|²/ν) (|y|² + |z|²).

    Then ‖D³f(c)‖ = 6 max |f_3| (Banach). Equality where μ = ‖U B‖/‖A B‖, ν = ‖A V‖/‖A B‖.
    """
    part = as_written(part)
    for squares in sums_of_squares(part):
        factors = matrix_factors(difference(squares.residual, part.varying)[0], True)
        pair = _pair(part, factors or [])
        if pair is not None:
            weight = enclose([squares.weight], boxed(part.values), part.sizes)
            w = float(np.max(weight[squares.weight].magnitude))
            return float(up_mul(up_mul(6.0, w), _largest(*pair)))
    return float(np.inf)


def _pair(part: ObjectivePart, factors: list[tuple[Expr, bool]]) -> tuple[Array, Array] | None:
    """U (p, k) and Vᵀ (q, k), two matrix variables, k small."""
    if len(factors) != 2 or factors[0][0] is factors[1][0]:
        return None
    result = []
    for (one, turned), is_last in zip(factors, (False, True), strict=True):
        if not isinstance(one, Input) or one not in part.variables or one.rank != 2:
            return None
        array = np.asarray(part.values[one], dtype=np.float64)
        result.append(array if turned == is_last else array.T)
    U, V = result[0], result[1]
    return (U, V) if U.shape[1] <= _MOST_BETWEEN else None


def _largest(U: Array, V: Array) -> float:
    """Upper bound on the maximum of the quartic form over unit (y, z), for nearly optimal μ, ν."""
    k = U.shape[1]
    size = max(float(np.abs(U).max(initial=0.0)), float(np.abs(V).max(initial=0.0)))
    if size == 0.0:
        return 0.0
    e = int(np.frexp(size)[1])
    U, V = np.ldexp(U, -e), np.ldexp(V, -e)
    mu, nu = _multipliers(U, V)
    places = Places.of(2 * k)
    eye, zero = np.eye(k), np.zeros((k, k))
    both = places.vector(0.5 * np.block([[zero, eye], [eye, zero]]))
    D = places.vector(np.block([[V.T @ V / nu, zero], [zero, U.T @ U / mu]]))
    whole = places.vector(np.eye(2 * k))
    G = (mu + nu) * np.outer(both, both) + 0.5 * (np.outer(D, whole) + np.outer(whole, D))
    G = places.evenly(G)
    lengths = float(up_norm(U)), float(up_norm(V))
    sizes = up_add(up_mul(lengths[0], lengths[0]) / mu, up_mul(lengths[1], lengths[1]) / nu)
    sizes = up_mul(up_add(sizes, mu + nu), 8.0 * k)
    slack = up_mul(gamma(len(U) + len(V) + 160), sizes)
    form = Quartic(Bounded(G, float(slack)), 2 * k)
    return float(up_ldexp(largest_quartic(form), e))


def _multipliers(U: Array, V: Array) -> tuple[float, float]:
    """μ and ν at the largest (y·z)(|U z| + |Vᵀy|) that shifted power steps reach."""
    k = U.shape[1]
    x = np.repeat(np.random.default_rng(0).standard_normal((_STARTS, 1, k)), 2, axis=1)
    for _ in range(_STEPS):
        x /= np.linalg.norm(x, axis=(1, 2), keepdims=True)
        y, z = x[:, 0], x[:, 1]
        left, right = y @ V.T, z @ U.T
        lengths = [np.linalg.norm(a, axis=1, keepdims=True) for a in (left, right)]
        lengths = [np.maximum(length, SMALLEST_NORMAL) for length in lengths]
        inner = np.sum(y * z, axis=1, keepdims=True)
        whole = lengths[0] + lengths[1]
        slopes = [z * whole + inner * (left @ V) / lengths[0]]
        slopes.append(y * whole + inner * (right @ U) / lengths[1])
        values = (inner * whole)[:, 0]
        x = np.stack(slopes, axis=1) + np.abs(values)[:, None, None] * x
    best = int(np.argmax(values))
    nu, mu = (float(a[best, 0] / inner[best, 0]) for a in lengths)
    least = _LEAST_FRACTION * max(mu, nu)
    return max(mu, least), max(nu, least)
