"""The loop form: axes, index arrays, loads, values, reductions and stores, as frozen values.

It stands between the schedule and the text: `construct` builds it from a program, and the C and
CUDA targets print it. It holds everything that they need to know about a node; they add only the
names of arrays. An index i runs over the axes of a nest, of which the first is the outermost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from slomodel.codegen.loops.access import Access
from slomodel.codegen.loops.index_pieces import IndexPiece
from slomodel.codegen.loops.runs import Runs
from slomodel.codegen.loops.workspace import Memory
from slomodel.ir.dims import Shape
from slomodel.ir.expr import Expr, Index, MatrixFunction
from slomodel.ir.function import ScalarFunction

SHORTEST_ROW = 8
"""Elements of a row that fill a vector register."""


@dataclass(frozen=True, slots=True)
class Output:
    """The part of the result (n,) for variable number k."""

    k: int


@dataclass(frozen=True, slots=True)
class IndexArray:
    """`size` integers that are computed before any call.

    `index` maps every element of shape `iterated` to a position, in C order, in an array of shape
    `indexed`. The array holds these positions or, for sums over equal positions (compressed rows),
    the `order` that sorts them or the index in that order where each position `starts`.
    """

    size: int
    index: tuple[Index, ...]
    iterated: Shape
    indexed: Shape
    kind: Literal["positions", "order", "starts"] = "positions"


@dataclass(frozen=True, slots=True)
class IndexTable:
    """Integers that are printed in the text."""

    values: tuple[int, ...]


Integers = IndexArray | IndexTable | Expr
"""An array of integers; an `Expr` is integer data."""


@dataclass(frozen=True, slots=True)
class IndexRead:
    """The part of a position that is read from an index array: `integers[position] * stride`.

    `run` describes long runs of the array, if it has any.
    `pieces` are all parts of the array in which it grows by 1, if that is known.
    """

    integers: Integers
    position: Position
    stride: int = 1
    run: Runs | None = None
    pieces: tuple[IndexPiece, ...] = ()


@dataclass(frozen=True, slots=True)
class Position:
    """The integer `offset + Σ strides[k]·i[k] + Σ lookups`: a place in memory, or a loop bound.

    Missing strides count as 0.
    """

    offset: int = 0
    strides: tuple[int, ...] = ()
    lookups: tuple[IndexRead, ...] = ()

    @property
    def is_affine(self) -> bool:
        return not self.lookups

    @property
    def is_fixed(self) -> bool:
        """Whether the position is the same at every index."""
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
    """The element at a position of an array that is read as flat, in C order."""

    array: Expr | Output
    position: Position


@dataclass(frozen=True, slots=True)
class Scalar:
    """The value of a node of rank 0 that is not a view."""

    node: Expr


def strides_of(one: Element | Scalar, rank: int) -> tuple[int, ...]:
    """The strides along all axes; those of a scalar are 0."""
    return (0,) * rank if isinstance(one, Scalar) else one.position.strides


@dataclass(frozen=True, slots=True)
class Computed:
    """The result of an earlier statement, given by its number, at the same index."""

    statement: int


@dataclass(frozen=True, slots=True)
class Count:
    """The index along an axis as a real number."""

    axis: int


Operand = Element | Scalar | Computed | Count


@dataclass(frozen=True, slots=True)
class Apply:
    """A scalar function of operands; without a function, the operand itself."""

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
    """Combine the product of the operands with a target by addition, maximum or minimum.

    The reduction runs along the axes on which the position of the target does not depend.
    """

    op: Reduction
    operands: tuple[Operand, ...]
    target: Element | Scalar


Statement = Apply | Store | Reduce


@dataclass(frozen=True, slots=True)
class Fill:
    """An array whose `size` elements are all equal to `value`."""

    array: Expr | Output
    size: int
    value: float


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy, in C order, of the elements of `source` over `shape`."""

    array: Expr | Output
    shape: tuple[int, ...]
    source: Element | Scalar


@dataclass(frozen=True, slots=True)
class RowParts:
    """Of row i, the elements from `low + low_step * i` to `high + high_step * i`, cut to a row.

    The ends are then moved outwards to multiples of `width`, but not out of the row.
    """

    low: int
    low_step: int
    high: int
    high_step: int
    width: int


@dataclass(frozen=True, slots=True)
class Nest:
    """Statements inside loops over axes; `fills` initialise the targets of reductions.

    Outside of the parts `rows` of a loop over a matrix its statements add nothing, and no other
    loop reads what they store.

    The elements that the statements of an index read are those before any of its stores: a stored
    array may take the memory of one that is read at the same index.
    """

    axes: tuple[Axis, ...]
    statements: tuple[Statement, ...]
    fills: tuple[Fill | Copy, ...] = ()
    rows: RowParts | None = None

    @property
    def is_blocked(self) -> bool:
        """Whether the axes are fixed and the positions simple, so that blocks can be used.

        Simple positions are affine, or look up index data at affine positions.
        """
        every = [operand for statement in self.statements for operand in operands(statement)]
        if not all(axis.is_fixed for axis in self.axes):
            return False
        if any(isinstance(one, Element) and one.position.lookups for one in every):
            # Short rows are looked up most quickly as a whole.
            *outer, row = self.shape or (0,)
            if not row or (outer and row < SHORTEST_ROW):
                return False
        return all(map(_is_plain, every))

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(axis.size for axis in self.axes)


def operands(statement: Statement) -> tuple[Operand, ...]:
    """The operands that a statement reads, followed by its target."""
    if isinstance(statement, Apply):
        return statement.operands
    if isinstance(statement, Store):
        return statement.value, statement.target
    return *statement.operands, statement.target


def places(statement: Statement) -> list[Element]:
    """The elements of arrays that a statement reads, followed by the one that it writes."""
    return [operand for operand in operands(statement) if isinstance(operand, Element)]


def _is_plain(operand: Operand) -> bool:
    if isinstance(operand, Count):
        return False
    return not isinstance(operand, Element) or all(
        isinstance(lookup.integers, Expr) and lookup.position.is_affine
        for lookup in operand.position.lookups
    )


@dataclass(frozen=True, slots=True)
class Recurrence:
    """`y[i] = a[i]·y[i - 1] + b[i]`, `y[0] = b[0]`, along one axis for each index of the others."""

    shape: tuple[int, ...]
    axis: int
    target: Element
    factor: Element | Scalar
    term: Element | Scalar


@dataclass(frozen=True, slots=True)
class Contraction:
    """`result = Σ left·right` over the summed labels: a batch of matrix products.

    Labels are numbers, of sizes `sizes`; the three positions have a stride for each label.
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
class MatrixCall:
    """An operation on (`rows`, `rows`) matrices, for every index of the batch.

    Positions have a stride for each batch axis, and those of operands for row and column too;
    right sides have `columns` columns, if there are any. `is_number`: the result has no rows.
    """

    function: MatrixFunction
    batch: tuple[int, ...]
    rows: int
    columns: int | None
    operands: tuple[Element | Scalar, ...]
    result: Element | Scalar
    is_number: bool


@dataclass(frozen=True, slots=True)
class AlongAxis:
    """The positions of a slice along one axis of a result: `offset + step·i[axis]`.

    Without an axis it is the single position `offset`.
    """

    offset: int
    axis: int | None = None
    step: int = 0


@dataclass(frozen=True, slots=True)
class PlacedSlice:
    """An array, or number, over `shape` that is added to a slice.

    `runs` holds one entry for each axis of the result; it is empty if the slice is the whole array.
    """

    shape: tuple[int, ...]
    operand: Element | Scalar
    runs: tuple[AlongAxis, ...]


@dataclass(frozen=True, slots=True)
class Collection:
    """A sum of slices, computed for each element of the result in the order of the slices."""

    array: Expr
    shape: tuple[int, ...]
    slices: tuple[PlacedSlice, ...]


@dataclass(frozen=True, slots=True)
class MovingPosition:
    """A position that is, at each step, `stride * step` elements past the first one."""

    first: Element | Scalar
    stride: int


@dataclass(frozen=True, slots=True)
class Begin:
    """The initial contents of a state: `source` at the first `count` positions, then zeros.

    The zeros are written only if `cleared`; otherwise every later position is assigned.
    """

    array: Expr
    shape: tuple[int, ...]
    count: int
    source: Element | Scalar | None
    cleared: bool


StatePlace = tuple[int, int, int]
"""The number of a state, an element of it, and the offset of its position from the step."""

WrittenPlace = tuple[int, int | None, int]
"""The same of what is written, where None stands for all elements: they are written as an array."""


@dataclass(frozen=True, slots=True)
class StepBody:
    """A part of one step, executed from step `start` on.

    `reads` are the positions of its inputs, and `targets` those of the results: `Output(k)` in its
    blocks is target k. `once` are blocks that run before all steps; its temporary arrays lie in
    `memory`. At the end `values[k]`, of shape `shapes[k]`, is added to target k if k is in `adds`,
    and otherwise stored there; None for a value that was computed in place. `read_places` are the
    positions of inputs that are single elements of states, `written_places` those of the targets.
    """

    start: int
    reads: Mapping[Expr, MovingPosition]
    targets: tuple[MovingPosition, ...]
    once: tuple[Block, ...]
    blocks: tuple[Block, ...]
    values: tuple[Element | Scalar | None, ...]
    shapes: tuple[tuple[int, ...], ...]
    adds: frozenset[int]
    memory: Memory
    read_places: Mapping[Expr, StatePlace]
    written_places: tuple[WrittenPlace, ...]


@dataclass(frozen=True, slots=True)
class LogProducts:
    """y_k = e_k + log Σ_j exp(y_j + P_jk) for `count` states: e by step and state, and P."""

    count: int
    terms: Element
    weights: Element


@dataclass(frozen=True, slots=True)
class TimeLoop:
    """Bodies executed at the steps `first`, …, `length` - 1, in this order or backwards.

    If every step is the log-sum-exp of the only state before it and of a term, `log_sums` is the
    place of these terms, from step `first` on; `log_products` likewise for several states.
    """

    length: int
    backwards: bool
    first: int
    begins: tuple[Begin, ...]
    bodies: tuple[StepBody, ...]
    log_sums: Element | None = None
    log_products: LogProducts | None = None


Block = Nest | Fill | Copy | Recurrence | Contraction | MatrixCall | Collection | TimeLoop


def located(access: Access) -> Element | Scalar:
    """The element of a node at an index over its axes, or the number that all elements equal."""
    if not access.base.rank:
        return Scalar(access.base)
    return Element(access.base, Position(access.offset, access.strides))


def depth(target: Element | Scalar) -> int:
    """The number of outer axes that the position of a target depends on."""
    return 0 if isinstance(target, Scalar) else _depth(target.position)


def _depth(position: Position) -> int:
    own = max((k + 1 for k, stride in enumerate(position.strides) if stride), default=0)
    return max(own, *(_depth(lookup.position) for lookup in position.lookups), 0)
