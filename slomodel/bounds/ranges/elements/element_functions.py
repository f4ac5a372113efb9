"""Derivatives of functions of a few arguments, and combinations that bound their Hessians."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations_with_replacement, product

import slomodel.functions as table
from slomodel.bounds.arithmetic.interval import Interval, hull, point
from slomodel.bounds.arithmetic.rounding import Array
from slomodel.calculus import jvp
from slomodel.ir.build import const
from slomodel.ir.expr import Expr, Input

Slots = tuple[int, ...]


def derivative_graphs(
    value: Expr, arguments: Sequence[Input], least: int = 2, most: int = 4
) -> dict[Slots, Expr]:
    """The partial derivatives of orders `least` to `most` as graphs of scalars."""
    result: dict[Slots, Expr] = {(): value}
    count = len(arguments)
    for order in range(1, most + 1):
        for slots in combinations_with_replacement(range(count), order):
            (result[slots],) = jvp((result[slots[:-1]],), {arguments[slots[-1]]: const(1.0)})
    return {slots: graph for slots, graph in result.items() if len(slots) >= least}


@dataclass(frozen=True, slots=True)
class ElementDerivatives:
    """φ, its derivatives by sorted slots, and per argument p the sums φ_pp ± Σ_q δ_pq φ_pq, q ≠ p,
    for all choices of signs; with the derivatives of all these where known.
    """

    value: Expr
    derivatives: Mapping[Slots, Expr]
    row_sums: tuple[tuple[Expr, ...], ...]
    ratios: Mapping[Input, Interval]
    slopes: Mapping[Expr, tuple[Expr, ...]]

    @property
    def graphs(self) -> tuple[Expr, ...]:
        """All graphs whose ranges are required."""
        return (*self.derivatives.values(), *self.sums)

    @property
    def sums(self) -> tuple[Expr, ...]:
        return tuple(one for sums in self.row_sums for one in sums)

    def named(self, values: Sequence[Interval]) -> tuple[dict[Slots, Interval], list[Interval]]:
        """The ranges of `graphs` by slots, and those of the row sums by argument."""
        ranges = iter(values)
        derivatives = {slots: next(ranges) for slots in self.derivatives}
        return derivatives, [reduce(hull, [next(ranges) for _ in sums]) for sums in self.row_sums]


def functions_of(
    value: Expr, graphs: Mapping[Slots, Expr], count: int, ratios: Mapping[Slots, Array]
) -> ElementDerivatives:
    """`ElementDerivatives` of `count` arguments; no row sums without ratios δ_pq (m,), p ≠ q."""
    inputs = {pair: Input(f"ratio {pair}", "data", ()) for pair in ratios}

    def row_sum(p: int, signs: Sequence[int], *by: int) -> Expr:
        result = graphs[tuple(sorted((p, p, *by)))]
        others = [q for q in range(count) if q != p]
        for q, sign in zip(others, signs, strict=True):
            term = table.mul(inputs[p, q], graphs[tuple(sorted((p, q, *by)))])
            result = table.add(result, term) if sign > 0 else table.sub(result, term)
        return result

    slopes = {}
    for slots, graph in graphs.items():
        own = [graphs.get(tuple(sorted((*slots, p)))) for p in range(count)]
        if all(own):
            slopes[graph] = tuple(one for one in own if one is not None)
    sums: list[tuple[Expr, ...]] = []
    for p in range(count if ratios else 0):
        every = list(product((1, -1), repeat=count - 1))
        sums.append(tuple(row_sum(p, signs) for signs in every))
        for graph, signs in zip(sums[-1], every, strict=True):
            slopes[graph] = tuple(row_sum(p, signs, r) for r in range(count))
    data = {one: point(ratios[pair]) for pair, one in inputs.items()}
    return ElementDerivatives(value, graphs, tuple(sums), data, slopes)
