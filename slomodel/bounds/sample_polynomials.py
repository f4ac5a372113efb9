"""Polynomials in the lengths of directions with coefficients >= 0 by sample, and partitions."""

from __future__ import annotations

from math import factorial

from slomodel.bounds.jet_arrays import settled
from slomodel.bounds.rounding import Array

Key = tuple[int, ...]
Samples = dict[Key, Array]
"""By exponents of s_1..s_L, t_1..t_L the coefficients (N,)."""


def partitions(k: int) -> dict[Key, int]:
    """By increasing sizes of the parts, how many partitions of k slots have these."""
    found: dict[Key, int] = {}

    def extend(sizes: Key, left: int) -> None:
        if left == 0:
            count = factorial(k)
            for size in sizes:
                count //= factorial(size)
            for size in set(sizes):
                count //= factorial(sizes.count(size))
            found[sizes] = count
        for size in range(sizes[-1] if sizes else 1, left + 1):
            extend((*sizes, size), left - size)

    extend((), k)
    return found


def times(p: Samples, q: Samples) -> Samples:
    result: Samples = {}
    for a, x in p.items():
        for b, y in q.items():
            key = tuple(i + j for i, j in zip(a, b, strict=True))
            part = settled(x * y)
            result[key] = settled(result[key] + part) if key in result else part
    return result


def added(p: Samples, q: Samples) -> Samples:
    result = dict(p)
    for key, x in q.items():
        result[key] = settled(result[key] + x) if key in result else x
    return result


def scaled(c: Array, p: Samples) -> Samples:
    return {key: settled(c * x) for key, x in p.items()}


def products(u: list[Samples], k: int) -> list[tuple[Key, Samples]]:
    """For each kind of partition of k slots its number times the product of the parts' bounds."""
    found = []
    for parts, count in partitions(k).items():
        first, *others = parts
        product = {key: settled(count * x) for key, x in u[first].items()}
        for part in others:
            product = times(product, u[part])
        if product:
            found.append((parts, product))
    return found
