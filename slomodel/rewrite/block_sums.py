"""Objectives that are sums over samples: the part of a block of samples, and the rest.

For a dim N the objective is f(x; D) = Σ_b g(x; D_b) + h(x), where D_b are the samples of block b of
the data over N, whatever the partition into blocks. g is a graph over N like f: it is evaluated
with the size of a block in place of N. Where f contains the number of all samples, as a mean does,
g and h read it as a number of data.

Sparse data over N have a list of entries instead, each of which belongs to the sample in whose row
it is stored.

Law: g over all of N plus h is f, exactly. Proof: by induction over the nodes, each of which is free
of N; or has one axis over N or over such a list, and its element i depends on sample i, or on that
of entry i, alone; or is such a sum. Sums of
products over N turn the second kind into the third, linear operations with factors that are free of
N keep the third, and whatever else would mix the kinds is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from slomodel.functions import add, div, eq, mul, neg, sub, where
from slomodel.ir import build
from slomodel.ir.dims import Dim, named
from slomodel.ir.expr import (
    Affine,
    Einsum,
    Expr,
    Extreme,
    Gather,
    Index,
    Input,
    Lookup,
    Map,
    Reshape,
    Scan,
    Scatter,
    remake,
)
from slomodel.ir.walk import postorder


@dataclass(frozen=True, slots=True)
class BlockSum:
    """g and h of an objective, None for 0; `total` is the number of all samples, as data."""

    block: Expr
    rest: Expr | None
    total: Input


@dataclass(frozen=True, slots=True)
class NoBlockSum:
    """A node that is not a sum over samples, and the reason as the end of a sentence."""

    node: Expr
    reason: str


@dataclass(frozen=True, slots=True)
class _Free:
    """A node that does not depend on samples."""

    expr: Expr


@dataclass(frozen=True, slots=True)
class _OfSamples:
    """A node whose element i along `axis` depends on sample i alone."""

    expr: Expr
    axis: int


@dataclass(frozen=True, slots=True)
class _Sum:
    """The sum over blocks of `block`, plus `rest`: of the node's shape, or None for 0."""

    block: Expr | None
    rest: Expr | None


_Kind: TypeAlias = _Free | _OfSamples | _Sum | NoBlockSum


Rows: TypeAlias = Mapping[Dim, Input]
"""For sparse data over samples: the dim of their entries, and the sample of each entry."""


def block_sum(objective: Expr, dim: str, total: Input, rows: Rows) -> BlockSum | NoBlockSum:
    """The objective as a sum over the samples along the dim of this name."""
    split = _Split(named(dim), total, rows)
    kinds: dict[Expr, _Kind] = {}
    for node in postorder(objective):
        kinds[node] = split.kind(node, [kinds[operand] for operand in node.operands])
    result = kinds[objective]
    if isinstance(result, NoBlockSum):
        return result
    if not isinstance(result, _Sum) or result.block is None:
        return NoBlockSum(objective, f"it does not depend on data over `{dim}`")
    return BlockSum(result.block, result.rest, total)


def for_each_block(condition: Expr, dim: str, total: Input, rows: Rows) -> Expr | None:
    """A graph that holds for every block of samples if and only if a condition on data holds.

    None if there is none: each element of the condition has to depend on one sample at most, or it
    says of such elements that none fails, as a sum of `where(…, 0, 1)` that is 0.
    """
    split = _Split(named(dim), total, rows)
    kinds: dict[Expr, _Kind] = {}
    for node in postorder(condition):
        kinds[node] = split.kind(node, [kinds[operand] for operand in node.operands])
    result = kinds[condition]
    if isinstance(result, (_Free, _OfSamples)):
        return result.expr
    if not isinstance(condition, Map) or condition.function is not eq:
        return None
    failures, zero = condition.operands
    own = kinds[failures]
    if zero != build.const(0.0) or not isinstance(own, _Sum) or not _is_count(failures):
        return None
    assert own.block is not None
    return build.apply(eq, own.block, zero)


def _is_count(node: Expr) -> bool:
    """Whether a node is the number of elements for which a condition fails."""
    if not isinstance(node, Einsum) or len(node.operands) != 1:
        return False
    (marks,) = node.operands
    is_choice = isinstance(marks, Map) and marks.function is where
    return is_choice and marks.operands[1:] == (build.const(0.0), build.const(1.0))


def _has(dim: Dim, name: Dim) -> bool:
    return any(one in {term for term, _ in name.terms} for one, _ in dim.terms)


@dataclass(frozen=True, slots=True)
class _Split:
    """The rules, for samples along the dim `samples`."""

    samples: Dim
    total: Input
    rows: Rows

    def is_along(self, dim: Dim) -> bool:
        """Whether a dim is that of samples, or of entries that belong to them."""
        return dim == self.samples or dim in self.rows

    def axes(self, node: Expr) -> list[int]:
        """The axes of a node along samples or their entries."""
        return [axis for axis, dim in enumerate(node.shape) if self.is_along(dim)]

    def kind(self, node: Expr, operands: Sequence[_Kind]) -> _Kind:
        """The kind of a node, given those of its operands."""
        for one in operands:
            if isinstance(one, NoBlockSum):
                return one
        if any(_has(dim, self.samples) and dim != self.samples for dim in node.shape):
            return NoBlockSum(node, "reads neighbouring samples")
        if len(self.axes(node)) > 1:
            return NoBlockSum(node, "is over pairs of samples")
        if isinstance(node, Input):
            return self._input(node)
        if isinstance(node, Map):
            return self._map(node, operands)
        if isinstance(node, Einsum):
            return self._einsum(node, operands)
        if isinstance(node, (Gather, Scatter)):
            return self._indexed(node, operands)
        if isinstance(node, (Extreme, Scan)):
            return self._along_axes(node, operands)
        if all(isinstance(operand, _Free) for operand in operands) and not self.axes(node):
            return _Free(_remade(node, operands))
        if isinstance(node, Reshape) and isinstance(operands[0], _Sum):
            return _each(operands[0], lambda expr: build.reshape(expr, node.shape))
        return NoBlockSum(node, "needs all samples at once")

    def _input(self, node: Input) -> _Kind:
        along = self.axes(node)
        if not along:
            return _Free(node)
        if node.role != "data":
            return NoBlockSum(node, "has elements for every sample")
        return _OfSamples(node, along[0])

    def _map(self, node: Map, operands: Sequence[_Kind]) -> _Kind:
        if any(isinstance(one, _Sum) for one in operands):
            return self._linear_map(node, operands)
        exprs = [operand.expr for operand in operands if isinstance(operand, (_Free, _OfSamples))]
        result = build.apply_along(node.function, exprs, node.axes, node.shape)
        places = {
            own[one.axis]
            for one, own in zip(operands, node.axes, strict=True)
            if isinstance(one, _OfSamples)
        }
        places.update(self.axes(node))
        return _OfSamples(result, places.pop()) if places else _Free(result)

    def _linear_map(self, node: Map, operands: Sequence[_Kind]) -> _Kind:
        """A sum, difference or multiple of sums over samples."""
        function, axes, shape = node.function, node.axes, node.shape
        if any(isinstance(operand, _OfSamples) for operand in operands):
            return NoBlockSum(node, "combines samples with a sum over all of them")

        def placed(expr: Expr, k: int) -> Expr:
            return build.broadcast(expr, axes[k], shape)

        if function in (add, sub):
            sides = [_as_sum(one) for one in operands]
            parts: list[Expr | None] = []
            for a, b in ((sides[0].block, sides[1].block), (sides[0].rest, sides[1].rest)):
                left = None if a is None else placed(a, 0)
                right = None if b is None else placed(b, 1)
                if right is not None and (function is sub):
                    right = build.apply(sub, left, right) if left is not None else _negated(right)
                    left = None
                parts.append(_added(left, right))
            return _Sum(*parts)
        if function is neg:
            return _each(_as_sum(operands[0]), _negated)
        free = [k for k, one in enumerate(operands) if isinstance(one, _Free)]
        if (function is mul and len(free) == 1) or (function is div and free == [1]):
            (k,) = free
            factor = operands[k]
            assert isinstance(factor, _Free)
            own = _as_sum(operands[1 - k])

            def scaled(expr: Expr) -> Expr:
                pair = (factor.expr, expr) if k == 0 else (expr, factor.expr)
                return build.apply_along(function, pair, axes, shape)

            return _each(own, scaled)
        return NoBlockSum(node, "is not linear in a sum over all samples")

    def _einsum(self, node: Einsum, operands: Sequence[_Kind]) -> _Kind:
        over = {
            label
            for label, dim in enumerate(node.dims)
            if self.is_along(dim) or _has(dim, self.samples)
        }
        if not all(self.is_along(node.dims[label]) for label in over):
            return NoBlockSum(node, "reads neighbouring samples")
        rows = {
            own[one.axis]
            for one, own in zip(operands, node.inputs, strict=True)
            if isinstance(one, _OfSamples)
        }
        sums = [k for k, one in enumerate(operands) if isinstance(one, _Sum)]
        held = {label for own in node.inputs for label in own}
        counted = [label for label in over if label not in held and label not in node.output]
        if any(node.dims[label] != self.samples for label in counted):
            return NoBlockSum(node, "counts the entries of all samples")
        if len(rows) > 1 or len(sums) > 1 or (rows and sums) or len(over - set(counted)) > 1:
            return NoBlockSum(node, "combines samples with others, or with a sum over all of them")
        exprs = [operand.expr for operand in operands if isinstance(operand, (_Free, _OfSamples))]
        if sums:
            (k,) = sums
            own = operands[k]
            assert isinstance(own, _Sum)
            if over - set(counted):
                return NoBlockSum(node, "combines samples with a sum over all of them")
            return _each(
                own, lambda expr: self._product(node, [*exprs[:k], expr, *exprs[k:]], counted)
            )
        product = self._product(node, exprs, counted)
        shared = (rows or over) - set(counted)
        if not shared:
            return _Free(product)
        (label,) = shared
        if label in node.output:
            return _OfSamples(product, node.output.index(label))
        return _Sum(product, None)

    def _product(self, node: Einsum, operands: Sequence[Expr], counted: Sequence[int]) -> Expr:
        """The node over other operands; a sum over samples that none has is their number."""
        if not counted:
            return build.einsum(operands, node.inputs, node.output, node.dims)
        kept = [label for label in range(len(node.dims)) if label not in counted]
        number = {label: k for k, label in enumerate(kept)}
        inputs = [tuple(number[label] for label in own) for own in node.inputs]
        output = tuple(number[label] for label in node.output)
        dims = [node.dims[label] for label in kept]
        factors = [self.total] * len(counted)
        return build.einsum([*operands, *factors], [*inputs, *[()] * len(factors)], output, dims)

    def _indexed(self, node: Gather | Scatter, operands: Sequence[_Kind]) -> _Kind:
        """A gather or scatter: samples are read at tables over samples, or stay in their places."""
        body, tables = operands[0], dict(zip(node.operands[1:], operands[1:], strict=True))
        if any(isinstance(table, _Sum) for table in tables.values()):
            return NoBlockSum(node, "indexes by a sum over all samples")
        rank = node.rank if isinstance(node, Gather) else node.operands[0].rank
        iterated = node.shape if isinstance(node, Gather) else node.operands[0].shape
        indexed = node.operands[0].shape if isinstance(node, Gather) else node.shape
        here = [axis for axis in range(rank) if self.is_along(iterated[axis])]
        if isinstance(body, _Sum):
            if here or any(isinstance(one, _OfSamples) for one in tables.values()):
                return NoBlockSum(node, "combines samples with a sum over all of them")
            return _each(body, lambda expr: self._again(node, expr, tables))
        assert isinstance(body, (_Free, _OfSamples))
        exprs = self._again(node, body.expr, tables)
        if not here and not any(map(self.is_along, indexed)):
            return _Free(exprs)
        if len(here) != 1:
            return NoBlockSum(node, "reads samples at computed places")
        (axis,) = here
        kept = False
        for one, dim in zip(node.index, indexed, strict=True):
            if self.is_along(dim):
                own = dim == iterated[axis] and _is_unit(one, axis)
                if not own and not self._is_row(one, axis, dim, iterated[axis]):
                    return NoBlockSum(node, "reads samples at other places than their own")
                kept = True
            elif not self._is_rowwise(one, axis, tables):
                return NoBlockSum(node, "depends on the position of a sample")
        if isinstance(node, Gather):
            return _OfSamples(exprs, axis)
        return _OfSamples(exprs, self.axes(node)[0]) if kept else _Sum(exprs, None)

    def _is_row(self, one: Index, axis: int, indexed: Dim, iterated: Dim) -> bool:
        """Whether an index is the sample of the entry along an axis."""
        if indexed != self.samples or not isinstance(one, Lookup):
            return False
        return one.axes == (axis,) and one.table is self.rows.get(iterated)

    def _again(self, node: Gather | Scatter, body: Expr, tables: dict[Expr, _Kind]) -> Expr:
        index: list[Index] = []
        for one in node.index:
            if isinstance(one, Lookup):
                result = tables[one.table]
                assert isinstance(result, (_Free, _OfSamples))
                one = Lookup(one.axes, result.expr)
            index.append(one)
        make = build.gather if isinstance(node, Gather) else build.scatter
        return make(body, index, node.shape)

    def _is_rowwise(self, one: Index, axis: int, tables: dict[Expr, _Kind]) -> bool:
        """Whether an index at a sample depends on no other sample."""
        if isinstance(one, Affine):
            return one.coefficients[axis] == 0
        if isinstance(one, Lookup):
            result = tables[one.table]
            if isinstance(result, _OfSamples):
                return one.axes[result.axis] == axis
            return axis not in one.axes
        return one.axis != axis

    def _along_axes(self, node: Extreme | Scan, operands: Sequence[_Kind]) -> _Kind:
        if any(isinstance(one, _Sum) for one in operands):
            return NoBlockSum(node, "is not linear in a sum over all samples")
        remade = _remade(node, operands)
        rows = {operand.axis for operand in operands if isinstance(operand, _OfSamples)}
        taken = node.axes if isinstance(node, Extreme) else (node.axis,)
        if rows & set(taken) or len(rows) > 1:
            return NoBlockSum(node, "needs all samples at once")
        if not rows:
            return (
                NoBlockSum(node, "needs all samples at once") if self.axes(node) else _Free(remade)
            )
        return _OfSamples(remade, self.axes(node)[0])


def _is_unit(one: Index, axis: int) -> bool:
    """Whether an index is the position along one axis."""
    if not isinstance(one, Affine) or one.offset != Dim():
        return False
    return all(c == (1 if k == axis else 0) for k, c in enumerate(one.coefficients))


def _remade(node: Expr, operands: Sequence[_Kind]) -> Expr:
    result = tuple(operand.expr for operand in operands if isinstance(operand, (_Free, _OfSamples)))
    return remake(node, result) if node.operands else node


def _as_sum(one: _Kind) -> _Sum:
    if isinstance(one, _Sum):
        return one
    assert isinstance(one, _Free)
    return _Sum(None, one.expr)


def _each(one: _Sum, function: Callable[[Expr], Expr]) -> _Sum:
    return _Sum(
        None if one.block is None else function(one.block),
        None if one.rest is None else function(one.rest),
    )


def _negated(expr: Expr) -> Expr:
    return build.apply(neg, expr)


def _added(left: Expr | None, right: Expr | None) -> Expr | None:
    if left is None or right is None:
        return right if left is None else left
    return build.apply(add, left, right)
