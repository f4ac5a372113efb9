"""Polynomials in the lengths of directions with coefficients >= 0 per sample, and partitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import factorial

import numpy as np
from numpy.typing import NDArray

from slomodel.bounds.arithmetic.rounding import Array
from slomodel.bounds.arithmetic.upper_bounds import rounded_up

Key = tuple[int, ...]
Exponents = NDArray[np.int64]
_MOST_DEGREE = 16
"""Base of the code of a monomial: more than any exponent in the derivatives of order 4."""


@dataclass(frozen=True, slots=True)
class SamplePolynomials:
    """Distinct exponents (M, 2 L) of s_1..s_L, t_1..t_L, and the coefficients (M, N)."""

    exponents: Exponents
    c: Array


@cache
def partitions(k: int) -> dict[Key, int]:
    """The number of partitions of k slots, keyed by the increasing sizes of their parts."""
    result: dict[Key, int] = {}

    def extend(sizes: Key, left: int) -> None:
        if left == 0:
            count = factorial(k)
            for size in sizes:
                count //= factorial(size)
            for size in set(sizes):
                count //= factorial(sizes.count(size))
            result[sizes] = count
        for size in range(sizes[-1] if sizes else 1, left + 1):
            extend((*sizes, size), left - size)

    extend((), k)
    return result


def single(place: int, places: int, c: Array) -> SamplePolynomials:
    """c (N,) times a single length."""
    return SamplePolynomials(np.eye(places, dtype=np.int64)[[place]], c[np.newaxis])


def added(polynomials: Sequence[SamplePolynomials]) -> SamplePolynomials:
    """The sum, with equal monomials combined."""
    exponents = np.concatenate([p.exponents for p in polynomials])
    c = np.concatenate([p.c for p in polynomials])
    codes = exponents @ _MOST_DEGREE ** np.arange(exponents.shape[1])
    _, first, place = np.unique(codes, return_index=True, return_inverse=True)
    if len(first) == len(codes):
        return SamplePolynomials(exponents, c)
    order = np.argsort(place, kind="stable")
    starts = np.searchsorted(place[order], np.arange(len(first)))
    return SamplePolynomials(
        exponents[first], rounded_up(np.add.reduceat(c[order], starts, axis=0), len(codes))
    )


def times(p: SamplePolynomials, q: SamplePolynomials) -> SamplePolynomials:
    exponents = p.exponents[:, np.newaxis] + q.exponents
    c = rounded_up(p.c[:, np.newaxis] * q.c)
    return added(
        [SamplePolynomials(exponents.reshape(-1, p.exponents.shape[1]), c.reshape(-1, c.shape[2]))]
    )


def scaled(c: Array, p: SamplePolynomials) -> SamplePolynomials:
    return SamplePolynomials(p.exponents, rounded_up(c * p.c))


def products(u: Sequence[SamplePolynomials], k: int) -> list[tuple[Key, SamplePolynomials]]:
    """For each kind of partition of k slots, its count times the product of the parts' bounds."""
    result = []
    for parts, count in partitions(k).items():
        first, *others = parts
        product = u[first]
        for part in others:
            product = times(product, u[part])
        result.append((parts, scaled(np.asarray(float(count)), product)))
    return result
