"""A graph under construction: a pool of nodes with their values, to build further nodes on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from slomodel import functions as fn
from slomodel.ir import build
from slomodel.ir.dims import Dim, Shape, concrete, literal, named
from slomodel.ir.expr import Expr, Input
from slomodel.ir.function import ScalarFunction
from slomodel.ir.walk import postorder
from slomodel.reference import Array, meaning

Reals = NDArray[np.float64]
T = TypeVar("T")

LARGEST = 4.0
MAX_RANK = 3


@dataclass
class Maker:
    """A source of random nodes: `pool` holds those to build on, `unused` those without users.

    `allowed` are the scalar functions to choose from; without `ties` each of them stays away
    from the places where its derivative switches.
    """

    draw: st.DrawFn
    sizes: dict[str, int]
    rng: np.random.Generator
    allowed: Sequence[ScalarFunction]
    ties: bool
    pool: list[Expr] = field(default_factory=list)
    unused: dict[Expr, None] = field(default_factory=dict)
    inputs: dict[Input, Reals] = field(default_factory=dict)
    known: dict[Expr, Array] = field(default_factory=dict)

    def one_of(self, options: Sequence[T]) -> T:
        return self.draw(st.sampled_from(options))

    def whole(self, least: int, most: int) -> int:
        return self.draw(st.integers(least, most))

    def chance(self) -> bool:
        return self.draw(st.booleans())

    def value(self, root: Expr) -> Array:
        """The value of a node; each node is evaluated once."""
        with np.errstate(all="ignore"):
            for node in postorder(root):
                if node not in self.known:
                    operands = [self.known[operand] for operand in node.operands]
                    self.known[node] = meaning(node, operands, self.sizes)
        return self.known[root]

    def size(self, dim: Dim) -> int:
        return dim.size(self.sizes)

    def dim(self) -> Dim:
        return self.one_of([named("n"), named("m"), named("p"), literal(2)])

    def shape(self) -> Shape:
        return tuple(self.dim() for _ in range(self.whole(0, MAX_RANK)))

    def numbers(self, shape: Shape) -> Reals:
        return np.asarray(self.rng.uniform(-1.5, 1.5, concrete(shape, self.sizes)))

    def zeros_and_ones(self, shape: Shape) -> Reals:
        return np.asarray(self.rng.integers(0, 2, concrete(shape, self.sizes)), dtype=np.float64)

    def input(self, node: Input, value: Reals) -> Input:
        """An input with its value, not in the pool."""
        self.inputs[node] = self.known[node] = value
        return node

    def data(self, shape: Shape, value: Reals) -> Input:
        return self.input(build.data(f"d{len(self.inputs)}", shape), value)

    def whole_data(self, shape: Shape, size: int) -> Input:
        """Data of whole numbers below `size`, to index with."""
        value = self.rng.integers(0, size, concrete(shape, self.sizes)).astype(np.float64)
        name = f"d{len(self.inputs)}"
        return self.input(Input(name, "data", shape, "whole"), value)

    def add(self, node: Expr) -> None:
        """Into the pool, scaled by a power of two where it is large."""
        largest = float(np.max(np.abs(self.value(node)), initial=0.0))
        assert np.isfinite(largest), "a step left its domain"
        if largest > LARGEST:
            node = fn.mul(2.0 ** -np.ceil(np.log2(largest / LARGEST)), node)
        self.pool.append(node)
        self.unused[node] = None

    def pick(self, least_rank: int = 0, most_rank: int = MAX_RANK) -> Expr:
        """A node of the pool with that many axes, or one constructed by a sum or a broadcast."""
        options = [node for node in self.pool if least_rank <= node.rank <= most_rank]
        node = self.one_of(options or self.pool)
        self.unused.pop(node, None)
        if node.rank > most_rank:
            return build.sum_over(node, tuple(range(most_rank, node.rank)))
        missing = tuple(self.dim() for _ in range(least_rank - node.rank))
        return build.broadcast(node, tuple(range(node.rank)), node.shape + missing)

    def objective(self) -> Expr:
        """The sum, plain or of squares, of all nodes without users."""
        terms = [build.inner(node, node) if self.chance() else total(node) for node in self.unused]
        result = terms[0]
        for term in terms[1:]:
            result = fn.add(result, term)
        return result


def total(node: Expr) -> Expr:
    """The sum of all elements."""
    return build.sum_over(node, tuple(range(node.rank)))
