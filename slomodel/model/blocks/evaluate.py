"""Evaluation of an objective over blocks, added up in an order that depends on the partition alone.

Each block gives a value and a vector (n,). Groups of eight consecutive results are added, then
groups of eight of these sums, and so on: the result is the same to the last bit wherever and in
whatever order the blocks are evaluated.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from slomodel.errors import DomainError, SlomodelError
from slomodel.model.blocks.data import Block, BlockOfSamples
from slomodel.model.blocks.samples import SampleSum
from slomodel.model.model import Model
from slomodel.solve.objective import EvaluationLost

# Imported where it is needed: it takes long.
if TYPE_CHECKING:
    from slomodel.bounds.data_blocks import TermBounds

Vector: TypeAlias = NDArray[np.float64]
Quantity: TypeAlias = Literal["value", "value_and_gradient", "hvp"]
Result: TypeAlias = tuple[float, Vector | None]
"""A value, 0 for a Hessian product, and a vector (n,), None for a value alone."""

GROUP = 8
_EACH = 3
"""Bytes that a model takes for each byte of its block: the block and working arrays."""


@dataclass(frozen=True, slots=True)
class NumberedBlock:
    """A block: its number, its name in messages, its data, and their size in bytes."""

    number: int
    name: str
    data: BlockOfSamples
    bytes: int


@contextmanager
def reading(block: NumberedBlock) -> Iterator[None]:
    """Name the block in errors about its data."""
    try:
        yield
    except SlomodelError as error:
        first, *others = error.diagnostics
        message = f"{first.message} (in {block.name})"
        raise type(error)(replace(first, message=message), *others) from None


class BlockKernels:
    """The kernels of a block, for one block after another; blocks up to `memory` bytes are cached.

    It can be pickled: each process compiles its own kernels.
    """

    def __init__(self, parts: SampleSum, memory: int) -> None:
        self._parts = parts
        self._memory = memory
        self._start()

    def _start(self) -> None:
        self._model: Model | None = None
        self._kept: dict[int, Model] = {}
        self._used = 0
        self._lock = threading.Lock()

    def __getstate__(self) -> tuple[SampleSum, int]:
        return self._parts, self._memory

    def __setstate__(self, state: tuple[SampleSum, int]) -> None:
        self._parts, self._memory = state
        self._start()

    def __call__(
        self,
        quantity: Quantity,
        block: NumberedBlock,
        x: Vector,
        v: Vector | None,
    ) -> Result:
        """The quantity of a block at x (n,), with v (n,) for a product."""
        with self._lock:
            return evaluated(self._of(block), quantity, x, v)

    def bounds(self, block: NumberedBlock, x: Vector, radius: float, effort: str) -> TermBounds:
        """Proved bounds on the term of a block over a ball around x (n,)."""
        with self._lock:
            return bounds_of(self._of(block), x, radius, effort)

    def _of(self, block: NumberedBlock) -> Model:
        """The model of a block."""
        model = self._kept.get(block.number)
        if model is None:
            with reading(block):
                try:
                    arrays = block.data.read()
                except DomainError as error:
                    # A file is gone: a run ends at its best point.
                    raise EvaluationLost(*error.diagnostics) from None
                model = self._bound(arrays)
            if self._used + _EACH * block.bytes <= self._memory:
                self._kept[block.number] = model
                self._used += _EACH * block.bytes
        return model

    def _bound(self, arrays: Mapping[str, Block]) -> Model:
        """The model of a block; kernels are those of the block before if the sizes are equal."""
        if self._model is None:
            self._model = self._parts.bound(arrays)
        else:
            # From the latest model, so that no other block stays in memory.
            self._model = self._model.bind(**arrays)
        return self._model


def evaluated(model: Model, quantity: Quantity, x: Vector, v: Vector | None) -> Result:
    """A quantity of a model at x (n,)."""
    if quantity == "value":
        return model.value(x), None
    if quantity == "hvp":
        assert v is not None
        return 0.0, model.hvp(x, v)
    return model.value_and_gradient(x)


def bounds_of(model: Model, x: Vector, radius: float, effort: str) -> TermBounds:
    """Proved bounds on a term of a sum over a ball around x (n,)."""
    from slomodel.bounds import effort_of
    from slomodel.bounds.data_blocks import term_bounds

    part = model._part_within(x)
    return term_bounds(replace(part, effort=effort_of(effort)), radius)


def added(results: Iterable[Result]) -> Result:
    """The sum of results in their order, by groups of eight at each level."""
    levels: list[list[Result]] = []
    for result in results:
        carry: Result | None = result
        for level in levels:
            assert carry is not None
            level.append(carry)
            carry = None
            if len(level) < GROUP:
                break
            carry = _sum(level)
            level.clear()
        if carry is not None:
            levels.append([carry])
    rest: Result | None = None
    for level in levels:
        own = level if rest is None else [*level, rest]
        rest = _sum(own) if own else rest
    return (0.0, None) if rest is None else rest


def _sum(group: Sequence[Result]) -> Result:
    value, vector = group[0]
    for other, more in group[1:]:
        value = value + other
        if vector is not None and more is not None:
            vector = vector + more
    return value, vector


class Executor(Protocol):
    """Evaluates a quantity over all blocks, and gives the results in the order of the blocks."""

    def results(self, quantity: Quantity, x: Vector, v: Vector | None) -> Iterator[Result]: ...

    def bounds(self, x: Vector, radius: float, effort: str) -> Iterator[TermBounds]:
        """Proved bounds on the term of each block over a ball around x (n,)."""
        ...


class Streamed:
    """Blocks in this process, one after another."""

    def __init__(self, kernels: BlockKernels, blocks: Sequence[NumberedBlock]) -> None:
        self._kernels = kernels
        self._blocks = blocks

    def results(self, quantity: Quantity, x: Vector, v: Vector | None) -> Iterator[Result]:
        for block in self._blocks:
            yield self._kernels(quantity, block, x, v)

    def bounds(self, x: Vector, radius: float, effort: str) -> Iterator[TermBounds]:
        for block in self._blocks:
            yield self._kernels.bounds(block, x, radius, effort)
