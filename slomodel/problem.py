"""The result of a front end: one scalar objective over named arrays, with all declarations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from slomodel.errors import Diagnostic, SourceText, Span
from slomodel.ir.dims import Dim, Shape, SizePolynomial, named
from slomodel.ir.expr import Expr, Input

NONSMOOTH = "W201"
"""Code of the warning about a kink in a model."""

Sense = Literal["minimize", "maximize"]
InitKind = Literal["number", "uniform", "normal", "zeros", "ones", "eye", "data", "list", "inside"]


@dataclass(frozen=True, slots=True)
class Init:
    """How a variable is initialised: `parameters` are (value), (a, b), (mu, s) or empty.

    `array` names the data array if `kind` is `data`. For a `list`, the parameters are the elements
    of an array of shape `lengths` in C order. `inside` is a point of the variable's set, drawn at
    random, as for a variable with a set and without `init`.
    """

    kind: InitKind = "normal"
    parameters: tuple[float, ...] = (0.0, 1.0)
    array: str = ""
    lengths: tuple[int, ...] = ()


SetKind = Literal[
    "open_box",
    "open_simplex",
    "ordered",
    "cholesky_factor",
    "correlation",
    "box",
    "simplex",
    "ball",
    "sphere",
    "psd",
]
OPEN_SETS: tuple[SetKind, ...] = (
    "open_box",
    "open_simplex",
    "ordered",
    "cholesky_factor",
    "correlation",
)
"""Sets that are images of a whole space under a smooth change of variables."""


@dataclass(frozen=True, slots=True)
class DeclaredSet:
    """The set that a variable is declared in; `text` is its spelling.

    - `open_box`, `box`: elements between `low` and `high`, open or closed; None is infinite, so
      that half-lines are boxes with one end.
    - `open_simplex`, `simplex`: positive or nonnegative elements with sum 1 along `axis`.
    - `ordered`: increasing elements along `axis`.
    - `ball`, `sphere`: distance at most, or exactly, `radius` from `center` in the Euclidean norm,
      for each line along `axis`, or with `entire` for the array as a whole.
    - `cholesky_factor`: lower triangular matrices with a positive diagonal.
    - `correlation`: positive definite matrices with diagonal 1. `psd`: symmetric positive
      semidefinite ones.

    `low`, `high` and `center` have the variable's shape or none, and `axis` counts from 0. The
    numbers of a closed set are those of data; in an open one they may depend on variables declared
    before. `unbounded`: some elements of ends that are data are infinite. `by_constraint`: the box
    comes from constraints that bound the variable as a whole.
    """

    kind: SetKind
    text: str
    low: Expr | None = None
    high: Expr | None = None
    radius: Expr | None = None
    center: Expr | None = None
    axis: int = 0
    entire: bool = False
    span: Span | None = None
    unbounded: bool = False
    by_constraint: bool = False

    @property
    def is_open(self) -> bool:
        return self.kind in OPEN_SETS

    @property
    def numbers(self) -> tuple[Expr, ...]:
        """The graphs that the set depends on."""
        result = (self.low, self.high, self.radius, self.center)
        return tuple(one for one in result if one is not None)


@dataclass(frozen=True, slots=True)
class FileReference:
    """The file of a declaration's values: path relative to the model, and key in it.

    `complete` names the columns of a table that must have a value in a row, which is left out
    otherwise; None if no row is left out.
    """

    path: str
    key: str
    span: Span | None = None
    complete: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Variable:
    """A declared variable: its node in the graph, its start, and its set if one is declared."""

    node: Input
    init: Init = field(default_factory=Init)
    span: Span | None = None
    set: DeclaredSet | None = None

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def shape(self) -> Shape:
        return self.node.shape


@dataclass(frozen=True, slots=True)
class StoredEntries:
    """Where the entries of sparse data of a shape stand: one array of positions for each axis."""

    shape: Shape
    positions: tuple[Input, ...]


def entries_dim(name: str) -> Dim:
    """The dim along which the entries of sparse data are stored; its name is not an identifier."""
    return named(f"entries[{name}]")


def position_names(name: str, rank: int) -> tuple[str, ...]:
    """The names of the positions of the entries of sparse data, as in SciPy: `A.row`, `A.col`."""
    if rank == 2:
        return f"{name}.row", f"{name}.col"
    return tuple(f"{name}.coords{axis}" for axis in range(rank))


@dataclass(frozen=True, slots=True)
class DataDeclaration:
    """A declared data array or scalar; optional at bind if it has a default or a file.

    `may_be_missing`: every use, if any, is below `masked`, so that the data may contain NaN.
    `may_be_infinite`: every use is an end of a box or a constraint, where ±inf stands for no bound.
    `values` are those of constant arrays that were written out in the objective. `domain` is the
    size of the axis into which index data point; with the attribute `one_based` their values count
    from 1. Sparse data are an array along their `entries`, whose positions are declared apart, as
    index data that are part of `owner`.
    """

    node: Input
    default: float | None = None
    file: FileReference | None = None
    attributes: frozenset[str] = frozenset()
    may_be_missing: bool = False
    span: Span | None = None
    values: NDArray[np.float64] | None = field(default=None, compare=False)
    domain: Dim | None = None
    may_be_infinite: bool = False
    entries: StoredEntries | None = None
    owner: str = ""

    @property
    def declared_shape(self) -> Shape:
        """The shape as declared; that of the node, but for sparse data."""
        return self.node.shape if self.entries is None else self.entries.shape

    @property
    def positions(self) -> tuple[DataDeclaration, ...]:
        """The declarations of the positions of the entries of sparse data."""
        if self.entries is None:
            return ()
        pairs = zip(self.entries.positions, self.entries.shape, strict=True)
        return tuple(
            DataDeclaration(node, span=self.span, domain=dim, owner=self.name)
            for node, dim in pairs
        )

    @property
    def first(self) -> int:
        """The value of index data that stands for the first element of an axis."""
        return int("one_based" in self.attributes)

    @property
    def has_labels(self) -> bool:
        """Whether its elements are given as labels of the positions along its dim."""
        return "labels" in self.attributes

    @property
    def is_whole(self) -> bool:
        """Whether its elements are whole numbers, which may be used as indices."""
        return self.domain is not None or "whole" in self.attributes

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def shape(self) -> Shape:
        return self.node.shape


@dataclass(frozen=True, slots=True)
class DimDeclaration:
    """A named size with its default, if any, or with the polynomial that determines it."""

    name: str
    default: int | None = None
    span: Span | None = None
    formula: SizePolynomial | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """A condition on data, tested at bind: a graph of type bool over data alone.

    For a condition that the compiler added, `fault` is the message if it does not hold, and
    `remedy` may say what to do.
    """

    condition: Expr
    text: str
    span: Span | None = None
    fault: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Bound:
    """An index that must lie inside an axis once sizes are known: 0 <= least, most < size.

    If `count` is 0 there is nothing to check.
    """

    least: Dim
    most: Dim
    size: Dim
    count: Dim
    text: str
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class TupleCount:
    """The size of a dim that depends on data: the number of tuples in an index set.

    `count` is a scalar graph over data alone, which may use the dims of earlier counts.
    """

    dim: str
    count: Expr


Place: TypeAlias = tuple[int, int]
"""Where a condition begins and ends in the text of a model."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The list of those index tuples of `cells` for which conditions hold, `dim` in number."""

    dim: str
    cells: Shape
    conditions: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class LookupBound:
    """An index table computed from data, whose elements must lie inside an axis of given size."""

    table: Expr
    size: Dim
    text: str
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Constraint:
    """An array `value` that must vanish if `is_equation`, and must not be positive otherwise.

    It is `orientation` times the difference of the sides: 1 for `g <= h`, −1 for `g >= h`. A
    constraint with two ends is two of the same name.
    """

    name: str
    text: str
    value: Expr
    is_equation: bool
    orientation: int
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """A scalar objective with its declarations; sizes and data are supplied later.

    `spans` maps nodes that a user wrote to their source; `warnings` are diagnostics of severity
    `warning`. `vector`, if given, replaces all variables in the objective and the constraints,
    which are then scalars, in order. `remarks` report how the terms of long sums were rolled; a
    node in `gathered` stands for many terms and has the span of the first. `definitions` are the
    graphs of the model's definitions by name, whether or not the objective uses them. `joins` are
    choices between formulas for one function, at which the objective has no kink; `plain` has the
    objective without them, by the objective.
    """

    objective: Expr
    variables: tuple[Variable, ...]
    data: tuple[DataDeclaration, ...] = ()
    dims: tuple[DimDeclaration, ...] = ()
    checks: tuple[Check, ...] = ()
    bounds: tuple[Bound, ...] = ()
    lookups: tuple[LookupBound, ...] = ()
    counts: tuple[TupleCount, ...] = ()
    selections: tuple[Selection, ...] = ()
    name: str = "model"
    sense: Sense = "minimize"
    objective_name: str = "objective"
    source: SourceText | None = None
    spans: Mapping[Expr, Span] = field(default_factory=dict)
    warnings: tuple[Diagnostic, ...] = ()
    vector: Input | None = None
    remarks: tuple[str, ...] = ()
    gathered: frozenset[Expr] = frozenset()
    definitions: Mapping[str, Expr] = field(default_factory=dict)
    constraints: tuple[Constraint, ...] = ()
    joins: frozenset[Expr] = frozenset()
    plain: Mapping[Expr, Expr] = field(default_factory=dict)

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The inputs that the objective reads as variables, in the order of the flat vector."""
        if self.vector is not None:
            return (self.vector,)
        return tuple(variable.node for variable in self.variables)

    def at(self, parts: Mapping[str, NDArray[np.float64]]) -> dict[Input, NDArray[np.float64]]:
        """The variables' arrays, given by name, as values of the inputs."""
        if self.vector is not None:
            return {self.vector: np.array([parts[one.name] for one in self.variables])}
        return {variable.node: parts[variable.name] for variable in self.variables}
