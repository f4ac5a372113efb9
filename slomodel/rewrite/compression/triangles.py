"""Pieces of data stacked into one matrix, and its triangular factor as their replacement."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from slomodel.functions import add, mul, where
from slomodel.ir import build
from slomodel.ir.dims import Dim, Shape, literal, number_of_elements
from slomodel.ir.expr import Affine, Expr
from slomodel.rewrite.compression.samples import At


@dataclass(frozen=True, slots=True)
class Stack:
    """Pieces over samples of shape `shape`, as a matrix with one row per sample.

    Each element of a piece is a column. The sum over samples of the square of a linear form in the
    pieces equals a sum over the `rows` rows of the triangular factor.
    """

    pieces: tuple[At, ...]
    shape: Shape
    sizes: Mapping[str, int]

    @property
    def columns(self) -> int:
        """The number of samples."""
        return number_of_elements(self.shape, self.sizes)

    @property
    def rows(self) -> int:
        """The number of elements per sample, which is the number of rows of the factor."""
        return sum(number_of_elements(piece.own_shape, self.sizes) for piece in self.pieces)

    @property
    def filled(self) -> list[Expr]:
        """Each piece along its own axes and all samples, scaled."""
        return [_filled(piece, self.shape) for piece in self.pieces]

    @property
    def factors(self) -> dict[At, Expr]:
        """The replacement of each piece: its own axes, then one of size `rows`."""
        samples = _product(self.shape, self.sizes)
        widths = [_product(one.own_shape, self.sizes) for one in self.pieces]
        starts = [Dim()]
        for width in widths:
            starts.append(starts[-1] + width)
        size = starts.pop()
        matrix: Expr | None = None
        for one, start, width in zip(self.filled, starts, widths, strict=True):
            block = build.reshape(_samples_first(one, len(self.shape)), (samples, width))
            part = build.scatter(block, _columns(start), (samples, size))
            matrix = part if matrix is None else build.apply(add, matrix, part)
        assert matrix is not None
        factor = build.triangle(matrix)
        result: dict[At, Expr] = {}
        for piece, start, width in zip(self.pieces, starts, widths, strict=True):
            own = build.gather(factor, _columns(start), (size, width))
            result[piece] = build.reshape(build.transpose(own, (1, 0)), (*piece.own_shape, size))
        return result


def _columns(start: Dim) -> tuple[Affine, Affine]:
    """The index of a block of columns."""
    return Affine(Dim(), (1, 0)), Affine(start, (0, 1))


def _product(dims: Sequence[Dim], sizes: Mapping[str, int]) -> Dim:
    """The product of dims, symbolic if at most one of them is named."""
    named = [dim for dim in dims if not dim.is_literal]
    if len(named) > 1:
        return literal(number_of_elements(tuple(dims), sizes))
    rest = math.prod(dim.const for dim in dims if dim.is_literal)
    return (named[0] if named else literal(1)) * rest


def _filled(piece: At, shape: Shape) -> Expr:
    own = piece.own
    samples = tuple(range(len(own), len(own) + len(shape)))
    labels = tuple(
        own.index(axis) if axis in own else samples[piece.place.index(axis)]
        for axis in range(piece.node.rank)
    )
    full = (*piece.own_shape, *shape)
    whole = tuple(range(len(full)))
    value = build.einsum([piece.node], [labels], whole, full)
    for scale in piece.scales:
        if scale.dtype == "bool":
            zero = build.const(0.0)
            value = build.apply_along(where, (scale, value, zero), (samples, whole, ()), full)
        else:
            value = build.apply_along(mul, (value, scale), (whole, samples), full)
    return value


def _samples_first(value: Expr, count: int) -> Expr:
    first = value.rank - count
    return build.transpose(value, (*range(first, value.rank), *range(first)))
