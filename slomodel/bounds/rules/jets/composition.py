"""Jets of elementwise functions, from ranges of the functions' derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval
from slomodel.bounds.arithmetic.rounding import Array, up_add
from slomodel.bounds.arithmetic.upper_bounds import rounded_up
from slomodel.bounds.rules.jets.arrays import ORDER, Jet, spread, times
from slomodel.bounds.rules.jets.mixed_norms import Norm, flattened, is_entrywise, measure


@dataclass(frozen=True, slots=True)
class ScalarDerivatives:
    """Bounds on φ over the ball, elementwise: upper bounds on |φ^(k)| and the range of φ'.

    A bound is 0 or at least `FLOOR`: its product with bounds on the inner derivatives must not
    underflow, as a later factor may be 1e300.
    """

    sizes: tuple[Array, ...]
    slope: Interval

    @classmethod
    def of(cls, ranges: Sequence[Interval]) -> ScalarDerivatives:
        """The bounds that follow from the ranges of φ and of its derivatives up to `ORDER`."""
        return cls(tuple(rounded_up(one.magnitude) for one in ranges), ranges[1])

    def largest(self, k: int) -> float:
        return float(np.max(self.sizes[k], initial=0.0))

    def norm(self, k: int, norm: Norm) -> float:
        return measure(self.sizes[k], None, norm)


@dataclass(frozen=True, slots=True)
class Inner:
    """Jets of u along the axes of φ(u): in the required norm, entrywise, and of single entries.

    `rows` has rows as maxima, so that the longest row counts; `columns` likewise.
    """

    own: Jet
    flat: Jet
    rows: Jet
    columns: Jet
    entry: Jet


def composed(derivatives: ScalarDerivatives, inner: Inner, norm: Norm) -> Jet:
    """Faà di Bruno: D^k φ(u) = Σ over partitions of the k slots of φ^(parts)(u) Π D^part u.

    An entrywise norm of an elementwise product is at most that norm of one factor times the largest
    entries of the others, for any choice of the factor, including φ^(parts). A spectral norm is at
    most the entrywise one; for two factors at most the longest row of one times the longest column
    of the other; and for a single factor with φ' in m ± d everywhere, at most |m| times the
    spectral norm plus d times the entrywise one.
    """
    flat_norm = flattened(norm)
    lengths = [derivatives.norm(k, flat_norm) for k in range(ORDER + 1)]
    largest = [derivatives.largest(k) for k in range(ORDER + 1)]
    pair = _Pair(inner, is_entrywise(norm))
    linear = [_scale(derivatives, inner, norm, largest[1], lengths[1], k) for k in (1, 2, 3)]
    e = inner.entry
    second = np.minimum(_x(largest[2], pair.of(1, 1)), _x(lengths[2], times(e[1], e[1])))
    mixed = np.minimum(_x(largest[2], pair.of(2, 1)), _x(lengths[2], times(e[2], e[1])))
    triple = np.minimum(
        _x(largest[3], pair.triple()), _x(lengths[3], times(times(e[1], e[1]), e[1]))
    )
    return (
        rounded_up(np.asarray(lengths[0])),
        rounded_up(linear[0]),
        rounded_up(second + linear[1]),
        rounded_up(triple + spread(mixed) + linear[2]),
    )


def _x(factor: float, a: Array) -> Array:
    return times(np.asarray(factor), a)


@dataclass(frozen=True, slots=True)
class _Pair:
    """Norms of elementwise products of two or three derivatives of u."""

    inner: Inner
    entrywise: bool

    def of(self, i: int, j: int) -> Array:
        """The product of D^i u and D^j u, the slots of the first in front."""
        flat, entry = self.inner.flat, self.inner.entry
        result = [times(flat[i], entry[j]), times(entry[i], flat[j])]
        if not self.entrywise:
            rows, columns = self.inner.rows, self.inner.columns
            result += [times(rows[i], columns[j]), times(columns[i], rows[j])]
        return np.asarray(np.minimum.reduce(result))

    def triple(self) -> Array:
        """The product of three D u: one entrywise factor, or a row and a column, times entries."""
        flat, entry = self.inner.flat[1], self.inner.entry[1]
        result = [times(times(a, b), c) for a, b, c in _orders(flat, entry, entry)]
        if not self.entrywise:
            rows, columns = self.inner.rows[1], self.inner.columns[1]
            result += [times(times(a, b), c) for a, b, c in _orders(rows, columns, entry)]
        return np.asarray(np.minimum.reduce(result))


def _orders(a: Array, b: Array, c: Array) -> list[tuple[Array, Array, Array]]:
    return [(a, b, c), (a, c, b), (b, a, c), (b, c, a), (c, a, b), (c, b, a)]


def _scale(
    derivatives: ScalarDerivatives, inner: Inner, norm: Norm, largest: float, length: float, k: int
) -> Array:
    """The norm of φ'(u) D^k u."""
    result = [_x(largest, inner.flat[k]), _x(length, inner.entry[k])]
    if not is_entrywise(norm) and derivatives.slope.lo.size:
        slope = derivatives.slope
        low, high = (
            (float(np.min(slope.lo)), float(np.max(slope.hi))) if slope.lo.size else (0.0, 0.0)
        )
        middle = 0.5 * low + 0.5 * high
        spread_ = max(float(up_add(high, -middle)), float(up_add(middle, -low)))
        if np.isfinite(middle):
            sizes = rounded_up(np.array([abs(middle), spread_]))
            result.append(_x(sizes[0], inner.own[k]) + _x(sizes[1], inner.flat[k]))
        rows = measure(derivatives.sizes[1], None, norm.replace("r", "m").replace("c", "r"))
        columns = measure(derivatives.sizes[1], None, norm.replace("c", "m"))
        result += [_x(rows, inner.columns[k]), _x(columns, inner.rows[k])]
    return np.asarray(np.minimum.reduce(result))
