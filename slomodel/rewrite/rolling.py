"""Rolling of long sums: like terms that were written out become one term with an axis along them.

The terms of a sum may be added in any order, each with a rounding error of eps times the sum of the
magnitudes; so terms of the same form are collected. In a run of like terms every index increases by
a constant step, and every constant is a number, an arithmetic progression or an entry of a table.
Sums of runs are collected again, so that a double sum gets two axes. Irregular indices are read
from a table too. Terms of another form are unchanged, and a sum with several users is one term of
each of them, since its value is computed once for all.

Every node gets a shape number once, and only groups of at least `LEAST_TERMS` terms with the same
number are compared further; so the work is proportional to the number of nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from slomodel.functions import add, mul, neg, sub
from slomodel.ir import build
from slomodel.ir.dims import literal
from slomodel.ir.expr import Const, Expr, Input, Map, remake
from slomodel.ir.walk import inputs, postorder, users
from slomodel.rewrite.elementwise.matching import scaled, whole
from slomodel.rewrite.like_terms import (
    Integers,
    LikeTerms,
    Run,
    Shapes,
    aligned_terms,
    summed,
)

Reals = NDArray[np.float64]
_Note = TypeVar("_Note")

_Part = tuple[float, Expr | None]
_MOST_RUNS = 8
"""Like terms that need more runs than this read their elements through index tables."""

LEAST_TERMS = 16
"""Fewer like terms are as quick one by one."""


class Rolled:
    """A graph with long sums rolled: `root`, the tables of constants, and remarks on the changes.

    `origins` maps a new node to the node of a first term, or the sum, that it replaces. `visited`
    counts the nodes that were compared; `shapes` has its own count.
    """

    def __init__(self, root: Expr) -> None:
        self.tables: dict[Input, Reals] = {}
        self.origins: dict[Expr, Expr] = {}
        self.remarks: list[str] = []
        self.shapes = Shapes()
        self.visited = 0
        self._table_of: dict[bytes, Input] = {}
        self._done: dict[Expr, Expr] = {}
        self.root = self._roll(root)
        self.tables = {node: self.tables[node] for node in inputs(self.root) if node in self.tables}

    def notes(self, notes: Mapping[Expr, _Note]) -> Mapping[Expr, _Note]:
        """Notes on nodes of the original graph, carried over to the rolled graph."""
        if not self.origins:
            return notes
        result: dict[Expr, _Note] = {}
        for node in postorder(self.root):
            origin = node if node in notes else self.origins.get(node)
            if origin is not None and origin in notes:
                result[node] = notes[origin]
        return result

    def _roll(self, root: Expr) -> Expr:
        order = postorder(root)
        above = users(order)
        inner = {
            node for node in order if _is_sum(node) and len(above[node]) == 1 and node is not root
        }
        inner = {node for node in inner if _is_sum(above[node][0])}
        for node in order:
            if node in inner:
                continue
            rolled = self._sum(node, inner) if _is_sum(node) else None
            self._done[node] = rolled or self._remade(node)
        return self._done[root]

    def _remade(self, node: Expr) -> Expr:
        """The node over its rolled operands."""
        todo = [node]
        while todo:
            one = todo[-1]
            waiting = [o for o in one.operands if o not in self._done]
            if waiting:
                todo += waiting
                continue
            operands = tuple(self._done[o] for o in one.operands)
            self._done[one] = remake(one, operands) if one.operands else one
            todo.pop()
        return self._done[node]

    def _sum(self, node: Expr, inner: set[Expr]) -> Expr | None:
        """A sum with its like terms rolled; None if there are none."""
        terms = _terms(node, inner)
        if len(terms) < LEAST_TERMS:
            return None
        parts = [(c, core if core is None else self._remade(core)) for c, core in terms]
        rest, gathered = self._gathered(parts)
        parts = [*rest, *self._gathered_again(gathered)]
        if len(parts) == len(terms):
            return None
        total = _total(parts)
        self.origins.setdefault(total, node)
        self.remarks.append(f"{len(terms)} terms that were written out become {len(parts)}")
        return total

    def _gathered(self, parts: list[_Part]) -> tuple[list[_Part], list[_Part]]:
        """The unchanged terms, and the new terms that replace like ones."""
        groups: dict[int, list[tuple[float, Expr]]] = {}
        rest: list[_Part] = []
        new: list[_Part] = []
        for coefficient, core in parts:
            if core is None:
                rest.append((coefficient, None))
            else:
                groups.setdefault(self.shapes.number(core), []).append((coefficient, core))
        for group in groups.values():
            if len(group) < LEAST_TERMS:
                rest += group
                continue
            like, visited = aligned_terms(group)
            self.visited += visited
            if like is None:
                remark = f"{len(group)} like terms stay written out: they share most of their parts"
                self.remarks.append(remark)
                rest += group
                continue
            alone, sums = self._like(like)
            rest += alone
            new += sums
        return rest, new

    def _gathered_again(self, sums: list[_Part]) -> list[_Part]:
        """Sums along an axis, rolled again while there are at least `LEAST_TERMS` new ones."""
        result: list[_Part] = []
        while len(sums) >= LEAST_TERMS:
            rest, sums = self._gathered(sums)
            result += rest
        return [*result, *sums]

    def _like(self, like: LikeTerms) -> tuple[list[_Part], list[_Part]]:
        """The unchanged terms among like ones, and the sums that replace the others.

        These are sums over runs, over runs of runs, or over all terms through index tables.
        """
        alone: list[_Part] = []
        sums: list[_Part] = []
        for rows in _runs(like):
            if len(rows) >= LEAST_TERMS:
                sums.append((1.0, summed(Run(like, rows), self._table, self.origins)))
            else:
                alone += [(float(like.numbers[k, 0]), like.cores[k]) for k in rows]
        if len(alone) + len(sums) <= _MOST_RUNS:
            return alone, sums
        count = len(like.cores)
        if sums and not (like.is_single and len(alone) > count // 4):
            sums = self._gathered_again(sums)
        if len(alone) + len(sums) <= _MOST_RUNS or not like.is_single:
            return alone, sums
        run = Run(like, np.arange(count))
        return [], [(1.0, summed(run, self._table, self.origins))]

    def _table(self, values: Reals) -> Expr:
        """The input that holds these numbers, the same one for equal numbers."""
        key = values.tobytes()
        if key not in self._table_of:
            node = build.data(f"constants {len(self.tables) + 1}", (literal(len(values)),))
            self.tables[node] = np.array(values)
            self._table_of[key] = node
        return self._table_of[key]


def _is_sum(node: Expr) -> bool:
    return isinstance(node, Map) and not node.rank and node.function in (add, sub, neg)


def _terms(node: Expr, inner: set[Expr]) -> list[_Part]:
    """The terms of a sum with their constant factors; a constant has no core.

    Sums in `inner` are expanded.
    """
    result: list[_Part] = []
    stack = [(1.0, node)]
    while stack:
        sign, one = stack.pop()
        if one is node or one in inner:
            assert isinstance(one, Map)
            signs = (
                (-sign,) if one.function is neg else (sign, -sign if one.function is sub else sign)
            )
            stack += reversed(list(zip(signs, one.operands, strict=True)))
            continue
        term = scaled(whole(one), sign)
        result.append((term.coefficient, None if term.core is None else term.core.node))
    return result


def _runs(like: LikeTerms) -> list[Integers]:
    """The rows of like terms, divided into runs with equal steps between their offsets."""
    offsets = like.offsets
    count, width = offsets.shape
    order: Integers = np.lexsort(offsets.T[::-1]) if width else np.arange(count)
    steps = np.diff(offsets[order], axis=0)
    # The rows after which the step changes.
    turns = np.flatnonzero(np.any(steps[1:] != steps[:-1], axis=1)) + 1
    result: list[Integers] = []
    begin = 0
    while begin < count:
        after = int(np.searchsorted(turns, begin, side="right"))
        end = int(turns[after]) + 1 if after < len(turns) else count
        result.append(order[begin:end])
        begin = end
    return result


def _total(parts: list[_Part]) -> Expr:
    """The sum of terms, with the constants last."""
    result: Expr | None = None
    constant = 0.0
    for coefficient, core in parts:
        if core is None:
            constant += coefficient
            continue
        one = core if coefficient == 1.0 else build.apply(mul, Const(coefficient), core)
        result = one if result is None else build.apply(add, result, one)
    if result is None:
        return Const(constant)
    return build.apply(add, result, Const(constant)) if constant else result
