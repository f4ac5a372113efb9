"""Least squares over blocks by tall-skinny QR: one small factor in place of all blocks.

A sum of squares that orthogonal compression writes over the R of a QR factorisation of its data
depends on R through RᵀR alone. For blocks D_1, …, D_B of the data, with factors R_b, the R of the
stacked R_b has RᵀR = Σ R_bᵀR_b = Σ D_bᵀD_b: it is a factor of all data. So each block is read
once, and every evaluation is that of a few rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
from slomodel.model.model import Model
from slomodel.reference import evaluate

if TYPE_CHECKING:
    from slomodel.bounds.term_sums import TermBounds

Arrays: TypeAlias = Mapping[str, NDArray[np.float64]]


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
        made = self._made[quantity]
        if quantity == "value":
            yield made(x), None
            return
        out = np.empty(self._n)
        if v is None:
            yield made(x, out), out
        else:
            made(x, v, out)
            yield 0.0, out

    def bounds(self, x: Vector, radius: float, effort: str) -> Iterator[TermBounds]:
        """Those of the blocks themselves: a factor has rounding errors, which proofs would need."""
        return self._blocks.bounds(x, radius, effort)


def compressed(
    parts: SampleSum, blocks: Sequence[NumberedBlock], streamed: Streamed
) -> Compressed | None:
    """The compressed objective over all blocks, each of which is read once.

    None unless all that depends on samples is in sums of squares that are compressed, in the same
    way for each block.
    """
    largest = max(blocks, key=lambda one: one.bytes)
    with reading(largest):
        model = parts.bound(largest.data.read(), compress=True)
    kernels = model._compiled
    over = {node for node in kernels.given if parts.is_over_samples(node)}
    triangles = [
        node for node in postorder(*kernels.prepared.values()) if isinstance(node, Triangle)
    ]
    factors: dict[Expr, Input] = {
        node: build.data(f"factor {k}", node.shape) for k, node in enumerate(triangles)
    }
    replaced = substitute(tuple(kernels.prepared.values()), factors)
    graphs = dict(zip(kernels.prepared, replaced, strict=True))
    known = kernels.derivatives
    read = inputs(known.objective, *known.gradient, *graphs.values())
    if not triangles or not over.isdisjoint(read):
        return None
    stacked: list[NDArray[np.float64]] = []
    for block in (largest, *(one for one in blocks if one is not largest)):
        if block is not largest:
            with reading(block):
                model = model.bind(**block.data.read())
            if model._compiled.numbers == kernels.numbers and model._compiled is not kernels:
                return None  # other signs of weights, which are not compressed in the same way
        rows = evaluate([node.operands[0] for node in triangles], *_values(model))
        both = zip(stacked, rows, strict=True) if stacked else ((one,) for one in rows)
        stacked = [np.asarray(np.linalg.qr(np.vstack(one), mode="r")) for one in both]
        if not all(np.isfinite(one).all() for one in stacked):
            return None
    values, sizes = _values(model)
    values |= dict(zip(factors.values(), stacked, strict=True))
    made = evaluate(list(graphs.values()), values, sizes)
    arrays = {
        # The kernels take the data over samples without reading them: zeros occupy no memory.
        node.name: np.zeros(concrete(node.shape, kernels.numbers))
        if node in over
        else model._binding.arrays[node.name]
        for node in kernels.given
    }
    arrays |= {node.name: np.ascontiguousarray(one) for node, one in zip(graphs, made, strict=True)}
    return Compressed(kernels, arrays, model.n, streamed)


def _values(model: Model) -> tuple[dict[Input, NDArray[np.float64]], Mapping[str, int]]:
    """The data of a model as values of their nodes, and the sizes of its dims."""
    arrays = model._binding.arrays
    return {node: arrays[node.name] for node in model._compiled.given}, model._binding.sizes
