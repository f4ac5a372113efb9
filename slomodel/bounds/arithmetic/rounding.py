"""Upper and lower bounds of floating-point results: `up_…` never below, `down_…` never above.

IEEE double arithmetic rounds to nearest, so the error of a result is at most one step of its own
exponent, and that of a sum of N terms in any order at most γ_N Σ|terms|, γ_N = N u / (1 - N u), u =
2^-53 (Higham, Accuracy and Stability of Numerical Algorithms, section 4.2). NaN as an argument
means that no bound is known, and gives ±inf.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil, inf, isnan, nextafter, sqrt
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from slomodel.bounds.stopping import pause

Array = NDArray[np.float64]
Real = TypeVar("Real", float, Array)
Truths = NDArray[np.bool_]
Axis = int | tuple[int, ...] | None

UNIT = 2.0**-53
"""Unit roundoff: half the distance from 1 to the next double."""
# Of doubles: the smallest above 0, the largest, and the smallest with full relative accuracy.
SMALLEST = 5e-324
LARGEST = float(np.finfo(np.float64).max)
SMALLEST_NORMAL = 2.0**-1022
LIBM_ULPS = 4
"""Error bound, in ulps, of NumPy's elementary functions; NumPy's own tests enforce it."""
_STEP = UNIT * (1.0 + 2.0 * UNIT)
"""Relative step beyond a double, as `_step` proves."""
# Proofs over arrays of more elements can be interrupted at each of their operations.
_LONG = 10_000


def up(x: Real) -> Real:
    """A double above x: the next one for a scalar, at most two steps for arrays; NaN gives +inf."""
    if isinstance(x, float):
        return cast("Real", np.float64(inf if isnan(x) else nextafter(x, inf)))
    with np.errstate(all="ignore"):
        y = np.add(x, _step(x))
        if y.size > _LONG:
            pause()
        return cast("Real", y if all_finite(y) else _no_nan(np.nextafter(x, inf), inf))


def down(x: Real) -> Real:
    """A double below x: the next one for a scalar, at most two steps for arrays; NaN gives -inf."""
    if isinstance(x, float):
        return -up(-x)
    with np.errstate(all="ignore"):
        y = np.subtract(x, _step(x))
        if y.size > _LONG:
            pause()
        return cast("Real", y if all_finite(y) else -up(-x))


def all_finite(x: Any) -> bool:
    """Whether no element of an array is inf or NaN."""
    return bool(np.count_nonzero(np.isfinite(x)) == x.size)


def all_nonzero(x: Any) -> bool:
    """Whether no element of an array is 0; NaN is not 0."""
    return bool(np.count_nonzero(x) == x.size)


def outward(lo: Array, hi: Array, *, zeros: bool = False) -> tuple[Array, Array] | None:
    """Bounds on results of one operation that were rounded to nearest to `lo` and `hi`.

    None where one of them is not finite. `zeros`: results of 0 are exact, as those of sums are. To
    be called under np.errstate, once for the whole operation.
    """
    below, above = _step(lo), _step(hi)
    if zeros:
        below, above = below * (lo != 0.0), above * (hi != 0.0)
    low, high = np.asarray(lo - below), np.asarray(hi + above)
    if low.size > _LONG:
        pause()
    return (low, high) if all_finite(high - low) else None


def sum_of_points(a: Array, b: Array) -> tuple[Array, Array] | None:
    """Bounds on a + b, which are a + b itself where that is a double; one array where all are.

    None where a result is not finite. The error of a sum is computed exactly (Knuth, TwoSum). To be
    called under np.errstate.
    """
    s = np.asarray(a + b)
    error = np.asarray(_sum_error(a, b, s))
    if not np.count_nonzero(error):
        return (s, s) if all_finite(s) else None
    e = _step(s)
    low, high = np.asarray(s - e * ~(error >= 0.0)), np.asarray(s + e * ~(error <= 0.0))
    return (low, high) if all_finite(high - low) else None


def _step(x: Any) -> Any:
    """Numbers e with fl(x + e) > x for every finite double x.

    Let s be the step of doubles from 2^k <= |x| < 2^(k+1). Then fl(φ|x|) >= fl(φ 2^k) > s/2 for φ =
    u (1 + 2u), where that does not underflow, so that x + e is nearer to x + s than to x. Where it
    may underflow, either s/2 is a multiple of the smallest double η, which fl(φ|x|) reaches, or s
    is η; hence η is added. Rump, Zimmermann, Boldo, Melquiond, Computing predecessor and successor,
    BIT 2009.
    """
    e = np.abs(x) * _STEP
    e += SMALLEST
    return e


def _no_nan(x: Any, value: float) -> Any:
    bad = np.isnan(x)
    return np.where(bad, value, x)[()] if np.count_nonzero(bad) else x


def gamma(n: float) -> float:
    """γ_n rounded up, the relative error bound of n roundings; +inf for n u >= 1.

    For an integer n, n u is a double, being a product with a power of two, and so is 1 - n u, a
    multiple of u; other n are rounded up to an integer. Only the quotient is rounded.
    """
    part = ceil(n) * UNIT
    return nextafter(part / (1.0 - part), inf) if part < 1.0 else inf


def up_add(a: Real, b: Real) -> Real:
    """Upper bound on a + b, and a + b itself where that is a double.

    s = fl(a + b) has the error e with a + b = s + e exactly (Knuth's TwoSum), so s is an upper
    bound where e <= 0.
    """
    if _are_numbers(a, b):
        return cast("Real", np.float64(_scalar_add(float(a), float(b))))
    with np.errstate(all="ignore"):
        s = np.add(a, b)
        if isinstance(s, float):
            return cast("Real", np.float64(_scalar_add(float(a), float(b))))
        if s.size > _LONG:
            pause()
        enough = _sum_error(a, b, s) <= 0.0
        y = _step(s)
        y *= ~enough
        y += s
        return cast("Real", y if all_finite(y) else np.where(enough, s, up(s)))


def _are_numbers(a: object, b: object) -> bool:
    return isinstance(a, float) and isinstance(b, float)


def _scalar_add(a: float, b: float) -> float:
    s = a + b
    back = s - a
    return s if (a - (s - back)) + (b - back) <= 0.0 else _next(s)


def _next(x: float) -> float:
    """The next double above; +inf for NaN."""
    return inf if isnan(x) else nextafter(x, inf)


def down_add(a: Real, b: Real) -> Real:
    """Lower bound on a + b, and a + b itself where that is a double; as `up_add`."""
    return -up_add(-a, -b)


def _sum_error(a: Real, b: Real, s: Any) -> Any:
    back = np.subtract(s, a)
    return np.subtract(a, s - back) + np.subtract(b, back)


def up_mul(a: Real, b: Real) -> Real:
    """Upper bound on a b; 0 where a or b is 0, also against an infinite factor.

    The zero must be exact: a bound that was rounded to 0 is not valid here.
    """
    if _are_numbers(a, b):
        return cast("Real", np.float64(0.0 if a == 0.0 or b == 0.0 else _next(float(a) * float(b))))
    with np.errstate(all="ignore"):
        zero = np.equal(a, 0.0) | np.equal(b, 0.0)
        return cast("Real", put(zero, 0.0, up(np.multiply(a, b)))[()])


def down_mul(a: Real, b: Real) -> Real:
    """Lower bound on a b; 0 where a or b is exactly 0."""
    return -up_mul(-a, b)


def put(which: Any, value: float, x: Any) -> Any:
    """`value` where `which` holds, else x; x itself if it holds nowhere."""
    return np.where(which, value, x) if np.count_nonzero(which) else x


def up_div(a: Real, b: Real) -> Real:
    """Upper bound on a / b; 0 where a is exactly 0 and b is not; +inf for 0 / 0."""
    if _are_numbers(a, b) and b != 0.0:
        return cast("Real", np.float64(0.0 if a == 0.0 else _next(float(a) / float(b))))
    with np.errstate(all="ignore"):
        zero = np.equal(a, 0.0) & np.not_equal(b, 0.0)
        return cast("Real", put(zero, 0.0, up(np.divide(a, b)))[()])


def up_sqrt(x: Real) -> Real:
    """Upper bound on the square root of x; 0 at 0."""
    if isinstance(x, float):
        root = sqrt(float(x)) if x >= 0.0 else inf
        return cast("Real", np.float64(0.0 if root == 0.0 else _next(root)))
    with np.errstate(all="ignore"):
        return cast("Real", put(np.equal(x, 0.0), 0.0, up(np.sqrt(x)))[()])


def down_sqrt(x: Real) -> Real:
    """Lower bound on the square root of x, never negative."""
    with np.errstate(all="ignore"):
        return cast("Real", np.maximum(down(np.sqrt(np.maximum(x, 0.0))), 0.0))


def nonnegative_sum(computed: Array, roundings: int, lost: float) -> Array:
    """Upper bound on a sum of products >= 0 from its computed value.

    Each product passes through at most `roundings` roundings, and at most `lost` was lost to
    underflow in all: the exact sum is at most (fl + lost) / (1 - γ), and 1 / (1 - γ_k) <= 1 + γ_2k.
    """
    with np.errstate(all="ignore"):
        enlarged = (computed + lost) * (1.0 + gamma(2 * roundings + 8))
        return np.asarray(_no_nan(enlarged, inf))


def up_others(e: Array) -> Array:
    """Upper bounds on Σ_(j≠k) e_j along the first axis, e >= 0."""
    return nonnegative_sum(_others(e), len(e), 0.0)


def down_others(e: Array) -> Array:
    """Lower bounds on Σ_(j≠k) e_j along the first axis, e >= 0, never negative."""
    least = down_mul(_others(e), np.asarray(down(1.0 - gamma(2 * len(e) + 2))))
    return np.maximum(least, 0.0)


def _others(e: Array) -> Array:
    """The sums of those before and after k: nothing cancels, and there are len(e) roundings."""
    result = np.zeros_like(e)
    result[1:] += np.cumsum(e[:-1], axis=0)
    result[:-1] += np.cumsum(e[:0:-1], axis=0)[::-1]
    return result


def up_reduceat(a: Array, starts: NDArray[np.intp]) -> Array:
    """Upper bounds on the sums over the runs of a >= 0 (m,) that begin at `starts`; see `up_sum`.

    Exact zeros are preserved.
    """
    growth = 1.0 + gamma(2 * len(a) + 4)
    return np.asarray(_no_nan(np.add.reduceat(a, starts) * growth, inf))


def underflow(products: int) -> float:
    """Upper bound on the total loss of this many products to underflow: η/2 each."""
    return products * SMALLEST


def up_ldexp(x: Array | float, e: NDArray[np.intp] | int) -> Array:
    """Upper bound on x 2^e, which is rounded only where it is subnormal; +inf for NaN."""
    with np.errstate(all="ignore"):
        result = np.asarray(np.ldexp(x, e))
        small = (np.abs(result) < SMALLEST_NORMAL) & np.not_equal(x, 0.0)
        return np.asarray(_no_nan(np.where(small, up(result), result), inf))


def up_matmul(a: Array, b: Array) -> Array:
    """Upper bound on A B for arrays >= 0, (.., m, k) and (k,) or (k, n); see `nonnegative_sum`."""
    k = b.shape[0]
    with np.errstate(all="ignore"):
        return nonnegative_sum(np.asarray(a @ b), k, underflow(k + 1))


def up_pow(x: float, k: int) -> float:
    """Upper bound on x^k for x >= 0 and an integer k >= 0, by rounded products; 0^0 is 1."""
    result = 1.0
    for _ in range(k):
        result = x if result == 1.0 else up_mul(result, x)
    return float(result)


def up_total(terms: Iterable[Array]) -> Array:
    """Upper bounds on the elementwise sum of arrays; 0 without any."""
    result = np.zeros(())
    for term in terms:
        result = np.asarray(up_add(result, term))
    return result


def up_sum(x: Array, axis: Axis = None) -> Array:
    """Upper bound on the sum along axes: |fl(Σ) - Σ| <= γ_N Σ|x|, and Σ|x| <= fl(Σ|x|)/(1 - γ_N).

    Exact for one term and where all terms are 0. With S = fl(Σ|x|), both roundings of fl(Σ) + γ S
    are at most 3 u S together for N < 2^50, besides η where γ S underflows; and γ_N/(1 - γ_N) + 3 u
    <= γ_(2N+4).
    """
    x = np.asarray(x, dtype=np.float64)
    with np.errstate(all="ignore"):
        total = np.asarray(np.add.reduce(x, axis=axis))
        terms = x.size // max(total.size, 1)
        if terms > 1:
            magnitudes = np.add.reduce(np.abs(x), axis=axis)
            slack = magnitudes * gamma(2 * terms + 4)
            slack += 4.0 * SMALLEST * (magnitudes > 0.0)
            total = np.asarray(total + slack)
        return np.asarray(_no_nan(total, inf))


def down_sum(x: Array, axis: Axis = None) -> Array:
    """Lower bound on the sum along the axes; see `up_sum`."""
    return -up_sum(-np.asarray(x), axis)


_SMALL_SQUARE, _LARGE_SQUARE = 1e-250, 1e290
"""Sums of squares between these are summed as they are: what underflows is negligible."""


def up_norm(x: Array, axis: Axis = None) -> Array:
    """Upper bound on the Euclidean norm along the axes; +inf for an array that is not finite.

    Scaled by a power of two, so that squares neither over- nor underflow harmfully: with y = 2^-e
    |x| <= 1, ‖x‖ = 2^e sqrt(Σ y²), where each square has a relative error of u or an absolute one
    of 2^-1074. Sums of moderate magnitude need no scaling; one factor covers all roundings.
    """
    with np.errstate(all="ignore"):
        if axis is None:
            flat = np.ravel(np.asarray(x, dtype=np.float64), "K")
            square = float(flat @ flat)
            if _SMALL_SQUARE < square < _LARGE_SQUARE:
                return np.asarray(sqrt(square * (1.0 + gamma(2 * flat.size + 16))))
            if square == 0.0 and not flat.any():
                return np.zeros(())
        plain = np.asarray(np.sum(np.square(x), axis=axis))
        if ((plain > _SMALL_SQUARE) & (plain < _LARGE_SQUARE)).all():
            terms = np.size(x) // max(plain.size, 1)
            return np.asarray(np.sqrt(plain * up(1.0 + gamma(2 * terms + 16))))
        y, e, terms = _scaled(x, axis)
        squares = np.sum(np.square(y), axis=axis)
        total = up_mul(squares, np.float64(up(1.0 + gamma(2 * terms + 2))))
        slack = np.where(e == _NO_EXPONENT, 0.0, up(terms * SMALLEST))
        norm = up_sqrt(up_add(total, slack))
        return up_ldexp(norm, np.where(e == _NO_EXPONENT, 0, e))


def down_norm(x: Array, axis: Axis = None) -> Array:
    """Lower bound on the Euclidean norm along the axes, never negative; as `up_norm`."""
    with np.errstate(all="ignore"):
        y, e, terms = _scaled(x, axis)
        squares = np.sum(np.square(y), axis=axis)
        total = down_mul(squares, np.float64(down(1.0 - gamma(2 * terms + 2))))
        norm = down_sqrt(np.asarray(down_add(total, np.float64(-terms * SMALLEST))))
        largest = np.ldexp(np.minimum(norm, LARGEST), np.where(e == _NO_EXPONENT, 0, e))
        return np.asarray(np.where(norm == 0.0, 0.0, np.maximum(_finite_down(largest), 0.0)))


_NO_EXPONENT = -5000
"""In place of the exponent of 0, below that of every double."""


def _scaled(x: Array, axis: Axis) -> tuple[Array, NDArray[np.intp], int]:
    """|x| / 2^e (rounded up), e along the axes with 2^e >= max|x|, and the number of terms."""
    size = np.abs(np.asarray(x, dtype=np.float64))
    size = put(np.isnan(size), np.inf, size)
    largest = np.max(size, axis=axis, keepdims=True, initial=0.0)
    e = np.where(largest == 0.0, _NO_EXPONENT, np.frexp(largest)[1])
    scaled = np.ldexp(size, np.where(largest == 0.0, 0, -e))
    scaled = put((scaled == 0.0) & (size > 0.0), SMALLEST, scaled)
    own = np.asarray(np.squeeze(e, axis=axis) if axis is not None else e.reshape(()))
    return scaled, own, max(size.size // max(own.size, 1), 1)


def _finite_down(x: Array) -> Array:
    return np.where(np.isfinite(x), down(x), LARGEST)


def up_ulps(x: Array, ulps: int = LIBM_ULPS) -> Array:
    """Upper bound on every number within `ulps` steps of x; +inf and NaN give +inf.

    With the step s of |x|, fl(2u (m + 1) |x|) >= (m + 1) s, or s is the smallest double, of which m
    + 1 are added: the additional one is for the rounding of the sum.
    """
    with np.errstate(all="ignore"):
        moved = np.abs(x) * (2.0 * UNIT * (ulps + 1))
        moved += SMALLEST * (ulps + 1)
        moved = np.asarray(moved + x)
        if all_finite(moved):
            return moved
        return np.asarray(_no_nan(np.where(np.isinf(x), x, moved), inf))


def steps_at(x: Array, steps: float) -> Array:
    """`steps` steps of doubles at |x|; NaN for an x that is not finite."""
    with np.errstate(all="ignore"):
        return np.asarray(steps * np.spacing(np.abs(x)))


def down_ulps(x: Array, ulps: int = LIBM_ULPS) -> Array:
    """Lower bound on every number within `ulps` steps of x; -inf and NaN give -inf."""
    return -up_ulps(-np.asarray(x), ulps)
