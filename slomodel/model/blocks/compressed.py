"""Least squares over blocks by tall-skinny QR: one small factor in place of all blocks.

A sum of squares that orthogonal compression writes over the R of a QR factorisation of its data
depends on R through RᵀR alone. For blocks D_1, …, D_B of the data, with factors R_b, the R of the
stacked R_b has RᵀR = Σ R_bᵀR_b = Σ D_bᵀD_b: it is a factor of all data. So each block is read
once, and every evaluation is that of a few rows.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from slomodel.codegen.entry import EntryName
from slomodel.codegen.kernels import Compiled, Evaluate
from slomodel.ir import build
from slomodel.ir.dims import concrete
from slomodel.ir.expr import Expr, Input, Triangle
from slomodel.ir.walk import inputs, postorder, substitute
from slomodel.model.blocks.evaluate import (
    NumberedBlock,
    Quantity,
    Result,
    Streamed,
    Vector,
    reading,
)
from slomodel.model.blocks.samples import SampleSum
from slomodel.model.cluster import Client
from slomodel.model.model import Model
from slomodel.reference import evaluate

if TYPE_CHECKING:
    from slomodel.bounds.data_blocks import TermBounds

Arrays: TypeAlias = Mapping[str, NDArray[np.float64]]
Factors: TypeAlias = list[NDArray[np.float64]] | None
"""Triangular factors of the data of a block, one for each sum of squares."""


class Compressed:
    """The kernels of the compressed sum of squares, over the factors of all blocks."""

    def __init__(self, compiled: Compiled, arrays: Arrays, n: int, blocks: Streamed) -> None:
        self._compiled = compiled
        self._arrays = arrays
        self._n = n
        self._blocks = blocks
        self._made: dict[EntryName, Evaluate] = {}

    def results(self, quantity: Quantity, x: Vector, v: Vector | None) -> Iterator[Result]:
        """The quantity over all blocks at once."""
        if quantity not in self._made:
            self._made[quantity] = self._compiled.maker(quantity)(self._arrays)
        result = self._made[quantity]
        if quantity == "value":
            yield result(x), None
            return
        out = np.empty(self._n)
        if v is None:
            yield result(x, out), out
        else:
            result(x, v, out)
            yield 0.0, out

    def bounds(self, x: Vector, radius: float, effort: str) -> Iterator[TermBounds]:
        """The bounds of the blocks as given: those of a factor would need its rounding errors."""
        return self._blocks.bounds(x, radius, effort)


class BlockFactors:
    """The triangular factors of the data of one block after another.

    It can be pickled: each process prepares the compression once, for the largest block, whose rows
    are enough for it.
    """

    def __init__(self, parts: SampleSum, largest: NumberedBlock) -> None:
        self._parts = parts
        self._largest = largest
        self._start()

    def _start(self) -> None:
        self._prepared: Model | None = None
        self._lock = threading.Lock()

    def __getstate__(self) -> tuple[SampleSum, NumberedBlock]:
        return self._parts, self._largest

    def __setstate__(self, state: tuple[SampleSum, NumberedBlock]) -> None:
        self._parts, self._largest = state
        self._start()

    @property
    def model(self) -> Model:
        """The model of the largest block, with its least squares compressed."""
        if self._prepared is None:
            with reading(self._largest):
                self._prepared = self._parts.bound(self._largest.data.read(), compress=True)
        return self._prepared

    def __call__(self, block: NumberedBlock) -> Factors:
        """One factor for each sum of squares; None if the block is compressed in another way."""
        with self._lock:
            model, kernels = self.model, self.model._compiled
            if block.number != self._largest.number:
                with reading(block):
                    model = model.bind(**block.data.read())
                if model._compiled.numbers == kernels.numbers and model._compiled is not kernels:
                    return None  # other signs of weights, which are not compressed in the same way
            nodes = [node.operands[0] for node in triangles_of(kernels)]
            rows = [np.asarray(one, dtype=np.float64) for one in evaluate(nodes, *_values(model))]
        return [np.asarray(np.linalg.qr(row, mode="r")) for row in rows]


def triangles_of(compiled: Compiled) -> list[Triangle]:
    """The factors among the prepared quantities of compiled kernels."""
    return [node for node in postorder(*compiled.prepared.values()) if isinstance(node, Triangle)]


def compressed(
    parts: SampleSum, blocks: Sequence[NumberedBlock], streamed: Streamed, client: Client | None
) -> Compressed | None:
    """The compressed objective over all blocks, each of which is read once, here or on a cluster.

    None unless all that depends on samples is in sums of squares that are compressed, in the same
    way for each block.
    """
    largest = max(blocks, key=lambda one: one.bytes)
    if largest.data.lazy:
        # So that workers do not wait for each other.
        largest = replace(largest, data=largest.data.with_blocks(largest.data.read()))
    factorise = BlockFactors(parts, largest)
    model = factorise.model
    kernels = model._compiled
    over = {node for node in kernels.given if parts.is_over_samples(node)}
    triangles = triangles_of(kernels)
    factors: dict[Expr, Input] = {
        node: build.data(f"factor {k}", node.shape) for k, node in enumerate(triangles)
    }
    replaced = substitute(tuple(kernels.prepared.values()), factors)
    graphs = dict(zip(kernels.prepared, replaced, strict=True))
    known = kernels.derivatives
    read = inputs(known.objective, *known.gradient, *graphs.values())
    if not triangles or not over.isdisjoint(read):
        return None
    stacked = _stacked(_factors_of_each(factorise, blocks, client))
    if stacked is None:
        return None
    values, sizes = _values(model)
    values |= dict(zip(factors.values(), stacked, strict=True))
    result = evaluate(list(graphs.values()), values, sizes)
    arrays = {
        # The kernels take the data over samples without reading them: zeros occupy no memory.
        node.name: np.zeros(concrete(node.shape, kernels.numbers))
        if node in over
        else model._binding.arrays[node.name]
        for node in kernels.given
    }
    arrays |= {
        node.name: np.ascontiguousarray(one) for node, one in zip(graphs, result, strict=True)
    }
    return Compressed(kernels, arrays, model.n, streamed)


def _factors_of_each(
    factorise: BlockFactors, blocks: Sequence[NumberedBlock], client: Client | None
) -> Iterator[Factors]:
    if client is None:
        return map(factorise, blocks)
    from slomodel.model.blocks.distributed_blocks import ClusterTasks, each

    return ClusterTasks(factorise, client).run(_factored, (), each(blocks))


def _factored(factorise: BlockFactors, _point: tuple[()], block: NumberedBlock) -> Factors:
    """The task of a worker: the factors of a block."""
    return factorise(block)


def _stacked(factors: Iterator[Factors]) -> list[NDArray[np.float64]] | None:
    """The factors of all blocks; None if one is not finite or is missing.

    They are combined in the order of the blocks, so that the bits depend on the blocks alone.
    """
    total: list[NDArray[np.float64]] = []
    for own in factors:
        if own is None:
            return None
        if total:
            pairs = zip(total, own, strict=True)
            own = [np.asarray(np.linalg.qr(np.concatenate(pair), mode="r")) for pair in pairs]
        total = own
        if not all(np.isfinite(one).all() for one in total):
            return None
    return total


def _values(model: Model) -> tuple[dict[Input, NDArray[np.float64]], Mapping[str, int]]:
    """The data of a model as values of their nodes, and the sizes of its dims."""
    arrays = model._binding.arrays
    return {node: arrays[node.name] for node in model._compiled.given}, model._binding.sizes
