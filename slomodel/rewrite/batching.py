"""Like terms as one: what they have in common, and the same with an axis along all of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slomodel.functions import add, mul
from slomodel.ir import build
from slomodel.ir.dims import Dim, literal
from slomodel.ir.expr import (
    Affine,
    Const,
    Einsum,
    Expr,
    Gather,
    Index,
    Input,
    Listed,
    Map,
    affine,
    is_listed,
)

Integers = NDArray[np.int64]
Reals = NDArray[np.float64]
Table = Callable[[Reals], Expr]
"""Makes of numbers without a rule an input that holds them."""

_Place = int | Expr
"""An operand: the number of a node of the term, or a node outside."""


@dataclass(frozen=True, slots=True)
class Term:
    """A term by its nodes: `key` is equal for like terms, which differ in what follows.

    `numbers` are its constants, `offsets` its literal indices, both in the order of their use.
    `single` says that each of those is all of an index.
    """

    key: Hashable
    numbers: tuple[float, ...]
    offsets: tuple[int, ...]
    core: Expr
    single: bool


def term(core: Expr, coefficient: float) -> Term:
    """The term `coefficient * core`."""
    numbers, offsets, single = [coefficient], [], True
    tokens: list[Hashable] = []
    for node, operands in _nodes(core):
        tokens.append(_kind(node))
        for operand in operands:
            if isinstance(operand, int):
                tokens.append(operand)
            elif isinstance(operand, Const) and operand.dtype == "real":
                numbers.append(operand.value)
                tokens.append(None)
            elif _is_element(operand):
                assert isinstance(operand, Gather)
                index, at = _index(operand)
                single &= not any(one.offset.terms or any(one.coefficients) for one in index)
                offsets += at
                tokens.append((operand.operands[0], index, operand.shape))
            else:
                tokens.append(operand)
    return Term(tuple(tokens), tuple(numbers), tuple(offsets), core, single)


def _nodes(core: Expr) -> list[tuple[Expr | None, tuple[_Place, ...]]]:
    """The maps and contractions of a term, operands first; last `None` over the whole."""
    if not _is_inner(core):
        return [(None, (core,))]
    place: dict[Expr, int] = {}
    result: list[tuple[Expr | None, tuple[_Place, ...]]] = []
    stack = [core]
    while stack:
        node = stack[-1]
        waiting = [o for o in node.operands if _is_inner(o) and o not in place]
        if waiting:
            stack += reversed(waiting)
            continue
        stack.pop()
        if node not in place:
            place[node] = len(result)
            result.append((node, tuple(place.get(o, o) for o in node.operands)))
    return [*result, (None, (place[core],))]


def _is_inner(node: Expr) -> bool:
    return isinstance(node, (Map, Einsum)) and bool(node.operands)


def _is_element(node: Expr) -> bool:
    return isinstance(node, Gather) and not is_listed(node)


def _kind(node: Expr | None) -> Hashable:
    if isinstance(node, Map):
        return (node.function, node.axes, node.shape)
    if isinstance(node, Einsum):
        return (node.inputs, node.output, node.dims)
    return None


def _index(node: Gather) -> tuple[tuple[Affine, ...], list[int]]:
    """The index with its literal offsets taken out, and those."""
    bare, offsets = [], []
    for one in affine(node.index):
        bare.append(Affine(Dim(one.offset.terms), one.coefficients))
        offsets.append(one.offset.const)
    return tuple(bare), offsets


@dataclass(frozen=True, slots=True)
class Run:
    """Like terms; `offsets` and `numbers` have a row a term, in the order of `first`."""

    first: Term
    offsets: Integers
    numbers: Reals

    @property
    def count(self) -> int:
        return len(self.numbers)


def summed(run: Run, table: Table, origins: dict[Expr, Expr]) -> Expr:
    """The sum of the terms of a run, by one axis along them.

    `origins` gets, for the nodes made, those of the first term.
    """
    return _Batch(run, table, origins).sum()


class _Batch:
    def __init__(self, run: Run, table: Table, origins: dict[Expr, Expr]) -> None:
        self.run = run
        self.dim = literal(run.count)
        self.table = table
        self.origins = origins
        self.numbers = iter(range(run.numbers.shape[1]))
        self.offsets = iter(run.offsets.T)

    def sum(self) -> Expr:
        coefficient, varies = self._constant()
        made: list[tuple[Expr, bool]] = []
        for node, operands in _nodes(self.run.first.core):
            taken = [made[o] if isinstance(o, int) else self._leaf(o) for o in operands]
            if isinstance(node, Map):
                made.append(self._map(node, taken))
            elif isinstance(node, Einsum):
                made.append(self._einsum(node, taken))
            else:
                made.append(taken[0])
            if node is not None and made[-1][1]:
                self.origins.setdefault(made[-1][0], self.origins.get(node, node))
        core, batched = made[-1]
        if varies:
            labels = [(0,), (0,) if batched else ()]
            return build.einsum([coefficient, core], labels, (), (self.dim,))
        total = build.einsum([core], [(0,) if batched else ()], (), (self.dim,))
        return total if coefficient is Const(1.0) else build.apply(mul, coefficient, total)

    def _constant(self) -> tuple[Expr, bool]:
        """The next constant: one number, a progression, or a table."""
        values = self.run.numbers[:, next(self.numbers)]
        first = float(values[0])
        if bool(np.all(values == first)) and len({v.hex() for v in values[:2].tolist()}) == 1:
            return build.const(first), False
        step = float(values[1]) - first
        if bool(np.all(first + step * np.arange(self.run.count) == values)):
            places = build.iota(self.dim)
            scaled = build.apply(mul, build.const(step), places)
            return build.apply(add, build.const(first), scaled), True
        return self.table(values), True

    def _leaf(self, node: Expr) -> tuple[Expr, bool]:
        if isinstance(node, Const) and node.dtype == "real":
            return self._constant()
        if not _is_element(node):
            return node, False
        assert isinstance(node, Gather)
        offsets = [next(self.offsets) for _ in node.index]
        if all(bool(np.all(own == own[0])) for own in offsets):
            return node, False
        pairs = zip(affine(node.index), offsets, strict=True)
        index = [self._index(one, own) for one, own in pairs]
        return build.gather(node.operands[0], index, (self.dim, *node.shape)), True

    def _index(self, one: Affine, offsets: Integers) -> Index:
        """An index for each term: by steps, or from a list where it is of one element."""
        steps = np.diff(offsets)
        if bool(np.all(steps == steps[0])):
            return Affine(one.offset, (int(steps[0]), *one.coefficients))
        table = self.table(offsets.astype(np.float64))
        assert isinstance(table, Input)
        return Listed(0, tuple(offsets.tolist()), table)

    def _map(self, node: Map, taken: Sequence[tuple[Expr, bool]]) -> tuple[Expr, bool]:
        if not any(batched for _, batched in taken):
            operands = [one for one, _ in taken]
            return build.apply_along(node.function, operands, node.axes, node.shape), False
        axes = [
            (*((0,) if batched else ()), *(axis + 1 for axis in own))
            for (_, batched), own in zip(taken, node.axes, strict=True)
        ]
        operands = [one for one, _ in taken]
        return build.apply_along(node.function, operands, axes, (self.dim, *node.shape)), True

    def _einsum(self, node: Einsum, taken: Sequence[tuple[Expr, bool]]) -> tuple[Expr, bool]:
        operands = [one for one, _ in taken]
        if not any(batched for _, batched in taken):
            return build.einsum(operands, node.inputs, node.output, node.dims), False
        label = len(node.dims)
        inputs = [
            (*((label,) if batched else ()), *own)
            for (_, batched), own in zip(taken, node.inputs, strict=True)
        ]
        output = (label, *node.output)
        return build.einsum(operands, inputs, output, (*node.dims, self.dim)), True
