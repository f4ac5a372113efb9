"""Checked constructors: the only way to construct nodes outside this package.

They keep the graph canonical: views (transposes, broadcasts) are absorbed into the nodes that use
them, constants are folded with the function's own NumPy definition, and exact identities are
applied. Nothing here may change a value, not even by a rounding error.
"""

from __future__ import annotations

from collections.abc import Sequence

from slomodel.errors import ShapeError
from slomodel.ir.dims import Dim, Shape, show_shape
from slomodel.ir.elementwise import aligned, apply, apply_along
from slomodel.ir.expr import Const, Einsum, Expr, Input, Iota, Listed, Listing, Triangle
from slomodel.ir.linear import (
    broadcast,
    einsum,
    gather,
    inner,
    is_broadcast,
    matmul,
    outer,
    reshape,
    scatter,
    slice_at,
    sum_over,
    transpose,
)
from slomodel.ir.matrices import diagonals, identities, matrix_operation, product, transposed
from slomodel.ir.recur import bodies, recur, steps_of
from slomodel.ir.recurrent import (
    backward_scan,
    extreme,
    flipped,
    product_over,
    scan,
    shifted,
    spread,
)

__all__ = [
    "aligned",
    "apply",
    "apply_along",
    "backward_scan",
    "bodies",
    "broadcast",
    "const",
    "data",
    "diagonals",
    "direction",
    "einsum",
    "extreme",
    "flipped",
    "gather",
    "identities",
    "identity",
    "inner",
    "iota",
    "is_broadcast",
    "listing",
    "matmul",
    "matrix_operation",
    "ones",
    "outer",
    "product",
    "product_over",
    "recur",
    "reshape",
    "scan",
    "scatter",
    "shifted",
    "size_of",
    "slice_at",
    "spread",
    "steps_of",
    "sum_over",
    "transpose",
    "transposed",
    "triangle",
    "variable",
    "zeros",
]


def const(value: float) -> Const:
    """A constant number or truth value, shape ()."""
    return Const(value)


def variable(name: str, shape: Shape) -> Input:
    return Input(name, "variable", shape)


def data(name: str, shape: Shape) -> Input:
    return Input(name, "data", shape)


def direction(name: str, shape: Shape) -> Input:
    return Input(name, "direction", shape)


def iota(dim: Dim) -> Iota:
    """The real numbers 0, 1, …, dim − 1 as a vector (dim,)."""
    return Iota(dim)


def size_of(dim: Dim) -> Expr:
    """The number of elements of an axis, as a scalar."""
    return const(float(dim.const)) if dim.is_literal else Einsum((), (), (), (dim,))


def ones(shape: Shape) -> Expr:
    return broadcast(const(1.0), (), shape)


def zeros(shape: Shape) -> Expr:
    return broadcast(const(0.0), (), shape)


def triangle(operand: Expr) -> Expr:
    """The triangular factor (k, k) of a matrix (m, k) of data (see `Triangle`)."""
    if operand.rank != 2 or operand.dtype != "real":
        raise ShapeError(f"a triangular factor needs a matrix, not {show_shape(operand.shape)}")
    return Triangle(operand)


def listing(what: Listed, operands: Sequence[Expr], dim: Dim, axis: int = 0) -> Expr:
    """Whole numbers (dim,) computed from arrays of data (see `Listing`)."""
    vectors = what != "select"
    for operand in operands:
        if operand.dtype == "bool" or not operand.rank or (vectors and operand.rank > 1):
            raise ShapeError(f"`{what}` lists positions in arrays of numbers, not in {operand!r}")
    return Listing(what, tuple(operands), dim, axis)


def identity(dim: Dim) -> Expr:
    """The identity matrix (dim, dim)."""
    return Einsum((), (), (0, 0), (dim,))
