"""The nodes of the expression graph: few kinds, interned, immutable, closed under differentiation.

Two equal expressions are one object, so equality is identity and every graph is a DAG.
Shapes hold symbolic dims; the shape and type of a node are known on construction. Construct nodes
by `slomodel.ir.build`, which checks; the classes here only store.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, TypeAlias, Union

import numpy as np

from slomodel.ir.dims import Dim, Shape
from slomodel.ir.function import ScalarFunction
from slomodel.ir.loop import Loop
from slomodel.ir.node import DType, Expr, interned, own_fields

if TYPE_CHECKING:
    import sympy as sp

__all__ = [
    "Affine",
    "Axes",
    "Const",
    "Einsum",
    "Exact",
    "Expr",
    "Extreme",
    "Gather",
    "Index",
    "Input",
    "Iota",
    "Listed",
    "Listing",
    "Lookup",
    "Map",
    "MatrixFunction",
    "MatrixOperation",
    "Multiset",
    "Recur",
    "Reshape",
    "Role",
    "Scan",
    "Scatter",
    "Triangle",
    "Which",
    "affine",
    "decimal",
    "is_listed",
    "remake",
]

Role = Literal["variable", "data", "direction", "step"]
"""Inputs of role "step" occur only in loops of recurrences: they stand for what a step reads."""
Which = Literal["max", "min"]
Listed = Literal["parent", "offset", "select", "order", "below", "upto"]
MatrixFunction = Literal[
    "cholesky",
    "det",
    "inverse",
    "inverse_posdef",
    "inverse_symmetric",
    "logdet",
    "logdet_posdef",
    "solve",
    "solve_lower",
    "solve_symmetric",
    "solve_upper",
    "det_lu",
    "inverse_cholesky",
    "inverse_lu",
    "logdet_lu",
    "lu",
    "solve_cholesky",
    "solve_lu",
    "solve_lu_transposed",
]
"""The functions of matrices; those after "solve_upper" occur only in lowered graphs."""
Axes = tuple[int, ...]
Exact: TypeAlias = Union[Fraction, "sp.Expr"]
"""A real number without rounding."""


@dataclass(frozen=True, slots=True)
class Affine:
    """The index `offset + sum(coefficients[k] * o[k])` into an operand axis, at output index o."""

    offset: Dim
    coefficients: tuple[int, ...]

    @classmethod
    def along(cls, axis: int, rank: int, start: Dim | None = None) -> Affine:
        """The index `start + o[axis]`, from 0 if no start is given."""
        return cls(Dim() if start is None else start, tuple(int(k == axis) for k in range(rank)))

    @classmethod
    def identity(cls, rank: int) -> list[Affine]:
        """The index o of an array with the same axes."""
        return [cls.along(axis, rank) for axis in range(rank)]

    @classmethod
    def shifted(cls, rank: int, axis: int, start: Dim) -> list[Affine]:
        """The index o, except that it begins at `start` along one axis."""
        index = cls.identity(rank)
        index[axis] = cls.along(axis, rank, start)
        return index


@dataclass(frozen=True, slots=True)
class Multiset:
    """The rank of a part of a sorted multi-index among all sorted multi-indices of that length.

    Output axis `axis` runs over the sorted tuples of `degree` numbers below `size`, in
    lexicographic order. The index is the rank of the part `start:stop` of the tuple among the
    sorted tuples of length stop - start. For a part of one entry it is that entry.
    """

    axis: int
    size: Dim
    degree: int
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Lookup:
    """The index `table[o[axes[0]], o[axes[1]], …]`, read from a table at output indices o.

    The elements of `table` are whole numbers that depend on data alone; its axis k runs along
    output axis `axes[k]`.
    """

    axes: Axes
    table: Expr


Index = Affine | Multiset | Lookup
"""An index into one operand axis as a function of the output's indices."""


class Input(Expr):
    """A named array: a variable, data, or a direction of differentiation."""

    __slots__ = ("name", "role")
    name: str
    role: Role

    def __new__(cls, name: str, role: Role, shape: Shape, dtype: DType = "real") -> Input:
        return interned(cls, (), shape, dtype, name=name, role=role)


class Const(Expr):
    """One number or truth value. Keyed by type and bits, so that 0.0, -0.0 and False differ.

    `value` is the double that kernels compute with. `written` is the exact number that it is
    rounded from, a Fraction or a SymPy number (1/3, pi, 0.1 + 0.2); None if that is the decimal
    number that the double prints as.
    """

    __slots__ = ("value", "written")
    value: float
    written: Exact | None

    def __new__(cls, value: float, written: Exact | None = None) -> Const:
        if isinstance(value, (bool, np.bool_)):
            truth = bool(value)
            return interned(cls, (), (), "bool", key=repr(truth), value=truth, written=None)
        value = float(value)
        if written is not None and (not np.isfinite(value) or written == decimal(value)):
            written = None
        key = value.hex() if written is None else (value.hex(), written)
        return interned(cls, (), (), "real", key=key, value=value, written=written)

    @property
    def exact(self) -> Exact:
        """The finite number as it was written."""
        return decimal(self.value) if self.written is None else self.written


def decimal(value: float) -> Fraction:
    """The shortest decimal number that rounds to a finite double; 1/10 for 0.1."""
    return Fraction(int(value)) if value.is_integer() else Fraction(repr(value))


class Iota(Expr):
    """The numbers 0, 1, …, dim - 1 as real numbers: shape [dim]."""

    __slots__ = ()

    def __new__(cls, dim: Dim) -> Iota:
        return interned(cls, (), (dim,), "real")


class Map(Expr):
    """A scalar function applied elementwise.

    `axes[k]` lists, in increasing order, the output axis of each axis of operand k; the operand is
    broadcast along the others. Every output axis belongs to some operand.
    """

    __slots__ = ("axes", "function")
    function: ScalarFunction
    axes: tuple[Axes, ...]

    def __new__(
        cls,
        function: ScalarFunction,
        operands: tuple[Expr, ...],
        axes: tuple[Axes, ...],
        shape: Shape,
    ) -> Map:
        return interned(cls, operands, shape, function.result, axes=axes, function=function)


class Einsum(Expr):
    """The sum, over the labels absent from `output`, of the product of `operands`.

    Labels are 0, 1, … with sizes `dims[label]`. More general than
    `numpy.einsum`: an output label that no operand has broadcasts; a summed label that no operand
    has multiplies by its size; a label that occurs twice in the output puts the result on a
    diagonal, with zeros elsewhere; the empty product is 1 (so `Einsum` without operands is a size,
    an array of ones, or an identity matrix). One operand of truth values may be permuted or
    broadcast.
    """

    __slots__ = ("dims", "inputs", "output")
    inputs: tuple[Axes, ...]
    output: Axes
    dims: Shape

    def __new__(
        cls, operands: tuple[Expr, ...], inputs: tuple[Axes, ...], output: Axes, dims: Shape
    ) -> Einsum:
        shape = tuple(dims[label] for label in output)
        dtype = operands[0].dtype if operands else "real"
        return interned(cls, operands, shape, dtype, dims=dims, inputs=inputs, output=output)


class Gather(Expr):
    """`out[o] = operand[index(o)]`: slices, shifts, elements, diagonals, windows, lookups.

    The first operand is indexed; the tables of the index, if any, are the others.
    """

    __slots__ = ("index",)
    index: tuple[Index, ...]

    def __new__(cls, operand: Expr, index: tuple[Index, ...], shape: Shape) -> Gather:
        return interned(cls, (operand, *tables(index)), shape, operand.dtype, index=index)


class Scatter(Expr):
    """`out[index(o)] += operand[o]` into zeros of `shape`: the adjoint of `Gather`.

    The first operand is added; the tables of the index, if any, are the others.
    """

    __slots__ = ("index",)
    index: tuple[Index, ...]

    def __new__(cls, operand: Expr, index: tuple[Index, ...], shape: Shape) -> Scatter:
        return interned(cls, (operand, *tables(index)), shape, "real", index=index)


class Reshape(Expr):
    """The same elements in C order in another shape of the same total size."""

    __slots__ = ()

    def __new__(cls, operand: Expr, shape: Shape) -> Reshape:
        return interned(cls, (operand,), shape, operand.dtype)


class Extreme(Expr):
    """The largest or smallest element along `axes` (increasing); NaN if one of them is NaN.

    The largest of no elements is -inf, the smallest inf.
    """

    __slots__ = ("axes", "which")
    which: Which
    axes: Axes

    def __new__(cls, operand: Expr, which: Which, axes: Axes) -> Extreme:
        shape = tuple(dim for k, dim in enumerate(operand.shape) if k not in axes)
        return interned(cls, (operand,), shape, "real", axes=axes, which=which)


class Scan(Expr):
    """`y[i] = a[i] * y[i - 1] + b[i]` along an axis, from 0; both operands have the result's shape.

    Cumulative products are scans, and so are their derivatives.
    """

    __slots__ = ("axis",)
    axis: int

    def __new__(cls, factor: Expr, term: Expr, axis: int) -> Scan:
        return interned(cls, (factor, term), factor.shape, "real", axis=axis)


class Recur(Expr):
    """State number `state` of a loop over steps, stacked along a new first axis (see `Loop`).

    The states of one loop are nodes over the same operands, and are computed together.
    """

    __slots__ = ("loop", "state")
    loop: Loop
    state: int

    def __new__(cls, operands: tuple[Expr, ...], loop: Loop, state: int) -> Recur:
        shape = (loop.length, *loop.shapes[state])
        return interned(cls, operands, shape, "real", loop=loop, state=state)

    @property
    def states(self) -> tuple[Recur, ...]:
        """All states of the loop."""
        return tuple(Recur(self.operands, self.loop, k) for k in range(len(self.loop.shapes)))


class Triangle(Expr):
    """The upper triangular R (k, k) of a QR factorisation of a matrix A (m, k): RᵀR = AᵀA.

    The signs of its rows are arbitrary. Its operand depends on data alone: it has no derivative.
    """

    __slots__ = ()

    def __new__(cls, operand: Expr) -> Triangle:
        size = operand.shape[1]
        return interned(cls, (operand,), (size, size), "real")


class MatrixOperation(Expr):
    """A function of a square matrix A (…, n, n), for every index of the batch axes that lead.

    All operands have the same batch axes. B and the solutions X are matrices (…, n, m).

    - "cholesky": the lower triangular L with positive diagonal and LLᵀ = A, from the lower triangle
      of a symmetric A; NaN in all elements if A is not positive definite.
    - "solve": X with AX = B; "solve_symmetric" for symmetric A; "solve_lower", "solve_upper":
      for triangular A, of which only that triangle is read.
    - "inverse" of A; "inverse_symmetric" of a symmetric A; "inverse_posdef": NaN unless positive
      definite.
    - "det", "logdet" (…): the determinant, and its logarithm, which is NaN if it is negative.
      "logdet_posdef" for symmetric A: NaN unless positive definite.

    Lowered graphs share factorisations: "lu" (…, n + 1, n) is LU of the rows of A exchanged by the
    row n, the index of the row with which each was exchanged. Functions named after a factor read
    it in place of A; "solve_cholesky" (L, A, B) and "inverse_cholesky" (L, A) factor A otherwise
    where L is NaN, and "inverse_cholesky" (L) is NaN there.
    """

    __slots__ = ("function",)
    function: MatrixFunction

    def __new__(cls, function: MatrixFunction, operands: tuple[Expr, ...]) -> MatrixOperation:
        first = operands[0].shape
        if function.startswith("solve"):
            shape = operands[-1].shape
        elif function.startswith(("det", "logdet")):
            shape = first[:-2]
        elif function == "lu":
            shape = (*first[:-2], first[-2] + 1, first[-1])
        else:
            shape = (*first[:-2], first[-1], first[-1])
        return interned(cls, operands, shape, "real", function=function)


class Listing(Expr):
    """Whole numbers of shape [dim] computed from data, by which index sets are listed.

    - "parent", "offset": for counts c (m,), each k repeated c[k] times, and 0, …, c[k] - 1 for it.
    - "select": for an array, the positions along `axis` of the elements that are not 0, in C order.
    - "order": for numbers (m,), the positions that sort them, equal ones in order and NaNs last.
    - "below", "upto": for values (m,) and limits (dim,), how many values are < or <= each limit.

    The length of the first three is a dim whose size depends on the data.
    """

    __slots__ = ("axis", "what")
    what: Listed
    axis: int

    def __new__(cls, what: Listed, operands: tuple[Expr, ...], dim: Dim, axis: int = 0) -> Listing:
        return interned(cls, operands, (dim,), "real", axis=axis, what=what)


KINDS: tuple[type[Expr], ...] = (
    *(Input, Const, Iota, Map, Einsum, Gather, Scatter, Reshape, Extreme, Scan, Recur, Triangle),
    *(Listing, MatrixOperation),
)
"""The classes of nodes."""


def tables(index: tuple[Index, ...]) -> tuple[Expr, ...]:
    """The arrays of whole numbers that an index reads, without repetitions."""
    return tuple(dict.fromkeys(one.table for one in index if isinstance(one, Lookup)))


def tables_of(node: Expr) -> tuple[Expr, ...]:
    """The tables that the index of a gather or scatter reads; empty for other nodes."""
    return tables(node.index) if isinstance(node, (Gather, Scatter)) else ()


def is_listed(node: Expr) -> bool:
    """Whether a node is a gather or scatter with an index that is not affine."""
    index = node.index if isinstance(node, (Gather, Scatter)) else ()
    return not all(isinstance(one, Affine) for one in index)


def affine(index: tuple[Index, ...]) -> tuple[Affine, ...]:
    """The index, known to be affine in every entry. Raises TypeError otherwise."""
    if not all(isinstance(one, Affine) for one in index):
        raise TypeError("this index is not affine")
    return tuple(one for one in index if isinstance(one, Affine))


def reads_axis(one: Index, axis: int) -> bool:
    """Whether an index depends on an axis that it is iterated over."""
    if isinstance(one, Lookup):
        return axis in one.axes
    if isinstance(one, Multiset):
        return one.axis == axis
    return one.coefficients[axis] != 0


def is_map(node: Expr, *functions: ScalarFunction) -> bool:
    """Whether the node is one of these functions of its operands."""
    return isinstance(node, Map) and node.function in functions


def remake(node: Expr, operands: tuple[Expr, ...]) -> Expr:
    """The same node over other operands of the same shapes, without checks."""
    if operands == node.operands:
        return node
    if isinstance(node, Map):
        return Map(node.function, operands, node.axes, node.shape)
    if isinstance(node, Einsum):
        return Einsum(operands, node.inputs, node.output, node.dims)
    if isinstance(node, Gather):
        return Gather(operands[0], _over(node, operands), node.shape)
    if isinstance(node, Scatter):
        return Scatter(operands[0], _over(node, operands), node.shape)
    if isinstance(node, Reshape):
        return Reshape(operands[0], node.shape)
    return interned(type(node), operands, node.shape, node.dtype, **own_fields(node))


def _over(node: Gather | Scatter, operands: tuple[Expr, ...]) -> tuple[Index, ...]:
    """The index of a node with its tables replaced by those among `operands`."""
    if operands[1:] == node.operands[1:]:
        return node.index
    other = dict(zip(node.operands[1:], operands[1:], strict=True))
    return tuple(
        Lookup(one.axes, other[one.table]) if isinstance(one, Lookup) else one for one in node.index
    )
