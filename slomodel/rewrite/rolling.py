"""Long sums that were written out: like terms become one term with an axis along all of them.

The terms of a sum may be added in any order, each order rounds by eps times the sum of the
magnitudes; so those of one form are gathered. In a run of them every index goes up by a step of
its own and every constant is a number, a progression or an entry of a table. A sum of runs is
gathered again, so that a double sum gets two axes. Where indices follow no rule their values are
a table too. Terms of another form stay as they are.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from slomodel.functions import add, mul, neg, sub
from slomodel.ir import build
from slomodel.ir.dims import literal
from slomodel.ir.expr import Const, Expr, Gather, Input, Listed, Map, remake
from slomodel.ir.walk import postorder
from slomodel.rewrite.batching import Integers, Run, Term, summed, term
from slomodel.rewrite.matching import scaled, whole

Reals = NDArray[np.float64]
_Note = TypeVar("_Note")

_Part = tuple[float, Expr | None]
_MOST_RUNS = 8
"""Like terms that take more have the places of their elements in a list."""

LEAST_TERMS = 16
"""Fewer are as quick one by one."""


class Rolled:
    """A graph with long sums gathered: `root`, the tables of constants, remarks on what was done.

    `origins` has, for a node that was made, the node of a first term or the sum that it stands for.
    """

    def __init__(self, root: Expr) -> None:
        self.tables: dict[Input, Reals] = {}
        self.origins: dict[Expr, Expr] = {}
        self.remarks: list[str] = []
        self._done: dict[Expr, Expr] = {}
        self.root = self._roll(root)
        self.tables = {
            node: self.tables[node] for node in _tables(self.root) if node in self.tables
        }

    def notes(self, notes: Mapping[Expr, _Note]) -> Mapping[Expr, _Note]:
        """Notes on nodes of the graph as it was, as notes on what is left and what was made."""
        if not self.origins:
            return notes
        found: dict[Expr, _Note] = {}
        for node in postorder(self.root):
            origin = node if node in notes else self.origins.get(node)
            if origin is not None and origin in notes:
                found[node] = notes[origin]
        return found

    def _roll(self, root: Expr) -> Expr:
        order = postorder(root)
        inner = {operand for node in order if _is_sum(node) for operand in node.operands}
        for node in order:
            if _is_sum(node) and node in inner:
                continue
            made = self._sum(node) if _is_sum(node) else None
            self._done[node] = made or self._remade(node)
        return self._done[root]

    def _remade(self, node: Expr) -> Expr:
        """The node over its operands as they have become."""
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

    def _sum(self, node: Expr) -> Expr | None:
        """A sum with its like terms gathered; None where it has none."""
        terms = _terms(node)
        if len(terms) < LEAST_TERMS:
            return None
        parts = [(c, core if core is None else self._remade(core)) for c, core in terms]
        count = len(parts) + 1
        while len(parts) < count:
            count = len(parts)
            parts = self._gathered(parts)
        if count == len(terms):
            return None
        made = _total(parts)
        self.origins.setdefault(made, node)
        self.remarks.append(f"{len(terms)} terms that were written out become {len(parts)}")
        return made

    def _gathered(self, parts: list[_Part]) -> list[_Part]:
        groups: dict[Hashable, list[Term]] = {}
        rest: list[_Part] = []
        for coefficient, core in parts:
            if core is None:
                rest.append((coefficient, None))
            else:
                one = term(core, coefficient)
                groups.setdefault(one.key, []).append(one)
        for like in groups.values():
            if len(like) < LEAST_TERMS:
                rest += [(one.numbers[0], one.core) for one in like]
            else:
                rest += self._like(like)
        return rest

    def _like(self, like: list[Term]) -> list[_Part]:
        """The parts that like terms become: runs, runs of runs, or all by a list of places."""
        parts: list[_Part] = []
        alone = 0
        for run in _runs(like):
            if isinstance(run, Run):
                parts.append((1.0, summed(run, self._table, self.origins)))
            else:
                parts += [(one.numbers[0], one.core) for one in run]
                alone += len(run)
        if len(parts) <= _MOST_RUNS:
            return parts
        listed = like[0].single
        if len(parts) < len(like) and not (listed and alone > len(like) // 4):
            parts = self._gathered(parts)
        if len(parts) <= _MOST_RUNS or not listed:
            return parts
        offsets: Integers = np.array([one.offsets for one in like], dtype=np.int64)
        run = Run(like[0], offsets, np.array([one.numbers for one in like]))
        return [(1.0, summed(run, self._table, self.origins))]

    def _table(self, values: Reals) -> Expr:
        for node, known in self.tables.items():
            if np.array_equal(known, values):
                return node
        node = build.data(f"constants {len(self.tables) + 1}", (literal(len(values)),))
        self.tables[node] = np.array(values)
        return node


def _tables(root: Expr) -> set[Input]:
    """The inputs under a root, those of lists of places too."""
    found: set[Input] = set()
    for node in postorder(root):
        if isinstance(node, Input):
            found.add(node)
        elif isinstance(node, Gather):
            found.update(one.table for one in node.index if isinstance(one, Listed))
    return found


def _is_sum(node: Expr) -> bool:
    return isinstance(node, Map) and not node.rank and node.function in (add, sub, neg)


def _terms(node: Expr) -> list[_Part]:
    """The terms of a sum with their constant factors; a constant has no core."""
    result: list[_Part] = []
    stack = [(1.0, node)]
    while stack:
        sign, one = stack.pop()
        if _is_sum(one):
            assert isinstance(one, Map)
            signs = (
                (-sign,) if one.function is neg else (sign, -sign if one.function is sub else sign)
            )
            stack += reversed(list(zip(signs, one.operands, strict=True)))
            continue
        found = scaled(whole(one), sign)
        result.append((found.coefficient, None if found.core is None else found.core.node))
    return result


def _runs(like: list[Term]) -> list[Run | list[Term]]:
    """Like terms in runs of equal steps between their indices; short ones as they are."""
    offsets: Integers = np.array([one.offsets for one in like], dtype=np.int64)
    numbers = np.array([one.numbers for one in like])
    count, width = offsets.shape
    order = np.lexsort(offsets.T[::-1]) if width else np.arange(count)
    offsets = offsets[order]
    steps = np.diff(offsets, axis=0)
    # The first place after which the step is another one.
    turns = np.flatnonzero(np.any(steps[1:] != steps[:-1], axis=1)) + 1
    result: list[Run | list[Term]] = []
    begin = 0
    while begin < count:
        after = int(np.searchsorted(turns, begin, side="right"))
        end = int(turns[after]) + 1 if after < len(turns) else count
        chosen = order[begin:end]
        if len(chosen) >= LEAST_TERMS:
            result.append(Run(like[chosen[0]], offsets[begin:end], numbers[chosen]))
        else:
            result.append([like[k] for k in chosen])
        begin = end
    return result


def _total(parts: list[_Part]) -> Expr:
    """The sum of terms, the constants last."""
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
