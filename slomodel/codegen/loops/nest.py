"""The loop form: axes, index arrays, loads, values, reductions and stores, as frozen values.

It stands between the schedule and the text. `construct` makes it of a program, and C and CUDA are
printers of it: what they need to know of a node is here, and names of arrays are all that they add.
An index i runs over the axes of a nest, the first one outermost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from slomodel.ir.dims import Shape
from slomodel.ir.expr import Expr, Index
from slomodel.ir.function import ScalarFunction


@dataclass(frozen=True, slots=True)
class Output:
    """The part of the result (n,) for variable number k."""

    k: int


@dataclass(frozen=True, slots=True)
class IndexArray:
    """Whole numbers, `size` of them, that are known before any call.

    They are the positions in C order, in an array of shape `indexed`, that `index` gives for every
    element of `iterated`: as they come, or for sums over equal positions (compressed rows) the
    `order` that sorts them and the `starts` of the runs of each position in that order.
    """

    size: int
    index: tuple[Index, ...]
    iterated: Shape
    indexed: Shape
    kind: Literal["positions", "order", "starts"] = "positions"


@dataclass(frozen=True, slots=True)
class IndexTable:
    """Whole numbers that are part of the text."""

    values: tuple[int, ...]


Integers = IndexArray | IndexTable | Expr
"""An array of whole numbers; an `Expr` is one that a caller gives as such."""


@dataclass(frozen=True, slots=True)
class IndexRead:
    """A part of a position that is read from an index array: `integers[position] * stride`."""

    integers: Integers
    position: Position
    stride: int = 1


@dataclass(frozen=True, slots=True)
class Position:
    """The number `offset + Σ strides[k]·i[k] + Σ lookups`: a place in memory, or a bound.

    Axes beyond the last stride count with 0.
    """

    offset: int = 0
    strides: tuple[int, ...] = ()
    lookups: tuple[IndexRead, ...] = ()

    @property
    def is_affine(self) -> bool:
        return not self.lookups

    @property
    def is_fixed(self) -> bool:
        """True for the same number at every index."""
        return not self.lookups and not any(self.strides)


@dataclass(frozen=True, slots=True)
class Axis:
    """The numbers from `start` up to `stop`, which may depend on the indices of outer axes."""

    stop: Position
    start: Position = Position()

    @classmethod
    def of(cls, size: int) -> Axis:
        """The axis 0, …, size - 1."""
        return cls(Position(size))

    @property
    def is_fixed(self) -> bool:
        return self.stop.is_fixed and self.start.is_fixed

    @property
    def size(self) -> int:
        """The length of a fixed axis."""
        assert self.is_fixed, "the length depends on outer indices"
        return self.stop.offset - self.start.offset


@dataclass(frozen=True, slots=True)
class Element:
    """The element of an array, seen as flat, at a position."""

    array: Expr | Output
    position: Position


@dataclass(frozen=True, slots=True)
class Scalar:
    """The value of a node of rank 0 that is not a view."""

    node: Expr


@dataclass(frozen=True, slots=True)
class Computed:
    """What an earlier statement, of this number, computed at the same index."""

    statement: int


@dataclass(frozen=True, slots=True)
class Count:
    """The index along an axis as a real."""

    axis: int


Operand = Element | Scalar | Computed | Count


@dataclass(frozen=True, slots=True)
class Apply:
    """A scalar function of operands; None stands for the operand itself."""

    function: ScalarFunction | None
    operands: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Store:
    """`target = value`."""

    target: Element | Scalar
    value: Operand


Reduction = Literal["sum", "max", "min"]


@dataclass(frozen=True, slots=True)
class Reduce:
    """The product of operands taken along into a target: added, or the larger or smaller kept.

    The axes that the position of the target does not depend on are those reduced.
    """

    op: Reduction
    operands: tuple[Operand, ...]
    target: Element | Scalar


Statement = Apply | Store | Reduce


@dataclass(frozen=True, slots=True)
class Fill:
    """An array whose `size` elements are one number."""

    array: Expr | Output
    size: int
    value: float


@dataclass(frozen=True, slots=True)
class Copy:
    """The elements of `source` over `shape`, in C order, as an array of their own."""

    array: Expr | Output
    shape: tuple[int, ...]
    source: Element | Scalar


@dataclass(frozen=True, slots=True)
class Nest:
    """Loops over axes round statements; `fills` are what the targets of reductions hold before."""

    axes: tuple[Axis, ...]
    statements: tuple[Statement, ...]
    fills: tuple[Fill | Copy, ...] = ()

    @property
    def is_blocked(self) -> bool:
        """True where a loop can go by blocks: its axes are fixed and its positions affine."""
        return all(axis.is_fixed for axis in self.axes) and all(
            _is_plain(one) for statement in self.statements for one in operands(statement)
        )

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(axis.size for axis in self.axes)


def operands(statement: Statement) -> tuple[Operand, ...]:
    """What a statement reads, and at last what it writes."""
    if isinstance(statement, Apply):
        return statement.operands
    if isinstance(statement, Store):
        return statement.value, statement.target
    return *statement.operands, statement.target


def places(statement: Statement) -> list[Element]:
    """The elements that a statement reads and writes, the one that it writes last."""
    return [one for one in operands(statement) if isinstance(one, Element)]


def _is_plain(operand: Operand) -> bool:
    if isinstance(operand, Count):
        return False
    return not isinstance(operand, Element) or operand.position.is_affine


@dataclass(frozen=True, slots=True)
class Recurrence:
    """`y[i] = a[i]·y[i - 1] + b[i]` along one axis, from `y[0] = b[0]`, for all of the others."""

    shape: tuple[int, ...]
    axis: int
    target: Element
    factor: Element | Scalar
    term: Element | Scalar


@dataclass(frozen=True, slots=True)
class Contraction:
    """`result = Σ left·right` over the summed labels: a product of matrices for each of a batch.

    The positions of the three have a stride for each label; `sizes` are the labels' lengths.
    """

    sizes: tuple[int, ...]
    batch: tuple[int, ...]
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    summed: tuple[int, ...]
    left: Element | Scalar
    right: Element | Scalar
    result: Element


@dataclass(frozen=True, slots=True)
class AlongAxis:
    """Where along an axis of a result the elements of a slice lie: `offset + step·i[axis]`.

    Without an axis it is the one place `offset`.
    """

    offset: int
    axis: int | None = None
    step: int = 0


@dataclass(frozen=True, slots=True)
class PlacedSlice:
    """An array, or number, over `shape`, that is added to a slice; a run for each axis of that."""

    shape: tuple[int, ...]
    operand: Element | Scalar
    runs: tuple[AlongAxis, ...]


@dataclass(frozen=True, slots=True)
class Collection:
    """An array of which each element adds up, in order, what the slices have there."""

    array: Expr
    shape: tuple[int, ...]
    slices: tuple[PlacedSlice, ...]


Block = Nest | Fill | Copy | Recurrence | Contraction | Collection


def depth(target: Element | Scalar) -> int:
    """How many axes, from the outermost on, have to be known for the place of a target."""
    return 0 if isinstance(target, Scalar) else _depth(target.position)


def _depth(position: Position) -> int:
    own = max((k + 1 for k, stride in enumerate(position.strides) if stride), default=0)
    return max(own, *(_depth(one.position) for one in position.lookups), 0)
