"""Like terms: the structure that they share, and one expression with an axis along all of them.

Two expressions are alike when they differ only in their constants and in the literal offsets of
the elements that they read. `Shapes` numbers the equivalence classes of this relation in one pass
over a graph, so that like terms have equal numbers. `aligned_terms` then walks like terms in
parallel: a *column* holds the node that each term has at one place, and a column whose nodes are
all the same is common to the terms and not walked further. Equal columns are one place, so the cost
is the number of terms times the number of places in a term.
"""

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
    Lookup,
    Map,
    affine,
    is_listed,
)

Integers = NDArray[np.int64]
Reals = NDArray[np.float64]
Table = Callable[[Reals], Expr]
"""Construct an input that holds the given numbers."""
Column = tuple[Expr, ...]

# With an axis along the terms, a subexpression that several terms share is computed once for each
# of them. Neighbours in a grid share a few; beyond this ratio the written form is less work.
_MOST_REPEATED = 16


class Shapes:
    """Shape numbers of nodes, which are equal for like nodes. Each node is visited once."""

    def __init__(self) -> None:
        self.visited = 0
        self._numbers: dict[Hashable, int] = {}
        self._known: dict[Expr, int] = {}

    def number(self, root: Expr) -> int:
        stack = [root]
        while stack:
            node = stack[-1]
            if node in self._known:
                stack.pop()
                continue
            inner = _is_inner(node)
            waiting = [o for o in node.operands if o not in self._known] if inner else []
            if waiting:
                stack += waiting
                continue
            self.visited += 1
            key = self._key(node)
            self._known[node] = self._numbers.setdefault(key, len(self._numbers))
            stack.pop()
        return self._known[root]

    def _key(self, node: Expr) -> Hashable:
        if isinstance(node, Const) and node.dtype == "real":
            return None
        if _is_inner(node):
            return (_kind(node), *(self._known[operand] for operand in node.operands))
        if _is_element(node):
            assert isinstance(node, Gather)
            return (node.operands[0], _without_offsets(node), node.shape)
        return node


def _is_inner(node: Expr) -> bool:
    return isinstance(node, (Map, Einsum)) and bool(node.operands)


def _is_element(node: Expr) -> bool:
    return isinstance(node, Gather) and not is_listed(node)


def _kind(node: Expr) -> Hashable:
    if isinstance(node, Map):
        return (node.function, node.axes, node.shape)
    assert isinstance(node, Einsum)
    return (node.inputs, node.output, node.dims)


def _without_offsets(node: Gather) -> tuple[Affine, ...]:
    return tuple(Affine(Dim(one.offset.terms), one.coefficients) for one in affine(node.index))


@dataclass(frozen=True, slots=True)
class _Number:
    """A constant that differs from term to term: a column of `numbers`."""

    column: int


@dataclass(frozen=True, slots=True)
class _Element:
    """An element that the terms read; its offsets are columns of `offsets` from `start` on."""

    node: Gather
    start: int


_Operand = int | _Number | _Element | Expr
"""A place in a term: an inner node by number, a leaf that varies, or a node common to all."""


@dataclass(frozen=True, slots=True)
class LikeTerms:
    """Like terms, one per row of `numbers` (their constants) and `offsets` (their literal offsets).

    The coefficient of a term is its first constant. `nodes` are the inner nodes of the first term,
    each with its operands as places, operands before their users; `root` is the whole term.
    `is_single` says that every index is only an offset.
    """

    cores: Column
    nodes: tuple[tuple[Expr, tuple[_Operand, ...]], ...]
    root: _Operand
    numbers: Reals
    offsets: Integers
    is_single: bool


def aligned_terms(terms: Sequence[tuple[float, Expr]]) -> tuple[LikeTerms | None, int]:
    """Terms `coefficient * core` with cores of one shape number, aligned; and the nodes visited.

    None if they share subexpressions to an extent that an axis along them would mean more work.
    """
    aligned = _Alignment()
    cores = tuple(core for _, core in terms)
    root = aligned.walk(cores)
    if root is None:
        return None, aligned.visited
    numbers = [[coefficient for coefficient, _ in terms], *aligned.numbers]
    offsets = aligned.offsets
    like = LikeTerms(
        cores,
        tuple(aligned.nodes),
        root,
        np.array(numbers, dtype=np.float64).T,
        np.array(offsets, dtype=np.int64).T.reshape(len(terms), len(offsets)),
        aligned.is_single,
    )
    return like, aligned.visited


class _Alignment:
    """The columns of some terms, which are walked in parallel, operands first."""

    def __init__(self) -> None:
        self.nodes: list[tuple[Expr, tuple[_Operand, ...]]] = []
        self.numbers: list[list[float]] = []
        self.offsets: list[list[int]] = []
        self.is_single = True
        self.visited = 0
        self._place: dict[Column, int] = {}

    def walk(self, cores: Column) -> _Operand | None:
        """The place of the whole terms; None if they share too many subexpressions."""
        seen: set[Expr] = set()
        stack = [cores] if _is_walked(cores) else []
        while stack:
            column = stack[-1]
            if column in self._place:
                stack.pop()
                continue
            operands = list(zip(*(node.operands for node in column), strict=True))
            waiting = [
                operand
                for operand in operands
                if operand not in self._place and _is_walked(operand)
            ]
            if waiting:
                stack += reversed(waiting)
                continue
            stack.pop()
            self.visited += len(column)
            seen.update(column)
            # The last column, that of the terms themselves, has one node per term.
            if self.visited > _MOST_REPEATED * (len(seen) + len(column)):
                return None
            taken = tuple(self._operand(one) for one in operands)
            self._place[column] = len(self.nodes)
            self.nodes.append((column[0], taken))
        return self._operand(cores)

    def _operand(self, column: Column) -> _Operand:
        if column in self._place:
            return self._place[column]
        first = column[0]
        if isinstance(first, Const) and first.dtype == "real":
            self.numbers.append([one.value for one in column if isinstance(one, Const)])
            return _Number(len(self.numbers))
        if not _is_element(first):
            return first
        assert isinstance(first, Gather)
        start = len(self.offsets)
        rows = [[one.offset.const for one in affine(_index(node))] for node in column]
        self.offsets += [list(own) for own in zip(*rows, strict=True)]
        bare = _without_offsets(first)
        self.is_single &= not any(one.offset.terms or any(one.coefficients) for one in bare)
        return _Element(first, start)


def _index(node: Expr) -> tuple[Index, ...]:
    assert isinstance(node, Gather)
    return node.index


def _is_walked(column: Column) -> bool:
    """Whether a column holds inner nodes that differ between the terms."""
    return _is_inner(column[0]) and column.count(column[0]) < len(column)


@dataclass(frozen=True, slots=True)
class Run:
    """A selection `rows` of like terms, in this order."""

    like: LikeTerms
    rows: Integers


def summed(run: Run, table: Table, origins: dict[Expr, Expr]) -> Expr:
    """The sum of the terms of a run, as a sum along one axis.

    `origins` receives, for each new node, the node of the first term that it replaces.
    """
    return _Batch(run, table, origins).sum()


class _Batch:
    """The places of a run as nodes; those that differ between terms get a first axis along them."""

    def __init__(self, run: Run, table: Table, origins: dict[Expr, Expr]) -> None:
        self._like = run.like
        self._numbers = run.like.numbers[run.rows]
        self._offsets = run.like.offsets[run.rows]
        self._dim = literal(len(run.rows))
        self._table = table
        self._origins = origins
        self._built: list[tuple[Expr, bool]] = []

    def sum(self) -> Expr:
        for node, operands in self._like.nodes:
            taken = [self._operand(operand) for operand in operands]
            built = self._map(node, taken) if isinstance(node, Map) else self._einsum(node, taken)
            self._built.append(built)
            if built[1]:
                self._origins.setdefault(built[0], self._origins.get(node, node))
        core, batched = self._operand(self._like.root)
        coefficient, varies = self._constant(0)
        if varies:
            labels = [(0,), (0,) if batched else ()]
            return build.einsum([coefficient, core], labels, (), (self._dim,))
        total = build.einsum([core], [(0,) if batched else ()], (), (self._dim,))
        return total if coefficient is Const(1.0) else build.apply(mul, coefficient, total)

    def _operand(self, operand: _Operand) -> tuple[Expr, bool]:
        """The operand at a place, and whether it has the axis along the terms."""
        if isinstance(operand, int):
            return self._built[operand]
        if isinstance(operand, _Number):
            return self._constant(operand.column)
        if isinstance(operand, _Element):
            return self._element(operand)
        return operand, False

    def _constant(self, column: int) -> tuple[Expr, bool]:
        """A constant: one number, an arithmetic progression, or a table."""
        values = np.ascontiguousarray(self._numbers[:, column])
        bits = values.view(np.int64)
        first = float(values[0])
        if bool(np.all(bits == bits[0])):
            return build.const(first), False
        step = float(values[1]) - first
        if bool(np.all(first + step * np.arange(len(values)) == values)):
            places = build.iota(self._dim)
            scaled = build.apply(mul, build.const(step), places)
            return build.apply(add, build.const(first), scaled), True
        return self._table(values), True

    def _element(self, element: _Element) -> tuple[Expr, bool]:
        node = element.node
        own = affine(node.index)
        offsets = self._offsets[:, element.start : element.start + len(own)]
        if bool(np.all(offsets == offsets[0])):
            index = [_moved(one, int(k)) for one, k in zip(own, offsets[0], strict=True)]
            return build.gather(node.operands[0], index, node.shape), False
        rows = zip(own, offsets.T, strict=True)
        return build.gather(
            node.operands[0],
            [self._indexed(one, column) for one, column in rows],
            (self._dim, *node.shape),
        ), True

    def _indexed(self, one: Affine, offsets: Integers) -> Index:
        """The index of all terms along the first axis: affine if steps are equal, else a lookup."""
        steps = np.diff(offsets)
        if bool(np.all(steps == steps[0])):
            moved = _moved(one, int(offsets[0]))
            return Affine(moved.offset, (int(steps[0]), *one.coefficients))
        return Lookup((0,), self._table(offsets.astype(np.float64)))

    def _map(self, node: Map, taken: Sequence[tuple[Expr, bool]]) -> tuple[Expr, bool]:
        operands = [one for one, _ in taken]
        if not any(batched for _, batched in taken):
            return build.apply_along(node.function, operands, node.axes, node.shape), False
        axes = [
            (*((0,) if batched else ()), *(axis + 1 for axis in own))
            for (_, batched), own in zip(taken, node.axes, strict=True)
        ]
        return build.apply_along(node.function, operands, axes, (self._dim, *node.shape)), True

    def _einsum(self, node: Expr, taken: Sequence[tuple[Expr, bool]]) -> tuple[Expr, bool]:
        assert isinstance(node, Einsum)
        operands = [one for one, _ in taken]
        if not any(batched for _, batched in taken):
            return build.einsum(operands, node.inputs, node.output, node.dims), False
        label = len(node.dims)
        inputs = [
            (*((label,) if batched else ()), *own)
            for (_, batched), own in zip(taken, node.inputs, strict=True)
        ]
        output = (label, *node.output)
        return build.einsum(operands, inputs, output, (*node.dims, self._dim)), True


def _moved(one: Affine, offset: int) -> Affine:
    """The index with this literal offset."""
    return Affine(Dim(one.offset.terms, offset), one.coefficients)
