"""The result of a front end: one scalar objective over named arrays, with all declarations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from slomodel.errors import Diagnostic, SourceText, Span
from slomodel.ir.dims import Dim, Shape
from slomodel.ir.expr import Expr, Input

NONSMOOTH = "W201"
"""Code of the warning that a model has a kink."""

Sense = Literal["minimize", "maximize"]
InitKind = Literal["number", "uniform", "normal", "zeros", "ones", "eye", "data"]


@dataclass(frozen=True, slots=True)
class Init:
    """How a variable is initialised: `parameters` are (value), (a, b), (mu, s) or empty.

    `array` names the data array if `kind` is `data`.
    """

    kind: InitKind = "normal"
    parameters: tuple[float, ...] = (0.0, 1.0)
    array: str = ""


@dataclass(frozen=True, slots=True)
class FileReference:
    """The file of a declaration's values: path relative to the model, and key in it."""

    path: str
    key: str
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Variable:
    """A declared variable; its node is `node`."""

    node: Input
    init: Init = field(default_factory=Init)
    span: Span | None = None

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def shape(self) -> Shape:
        return self.node.shape


@dataclass(frozen=True, slots=True)
class DataDeclaration:
    """A declared data array or scalar; optional at bind if it has a default or a file.

    `may_be_missing`: every use, if any, is under `masked`, so that NaN is allowed in it. `values`
    are those of constant arrays that were written out in the objective. `domain` is the size of the
    axis that index data index; with the attribute `one_based` they are given from 1 on.
    """

    node: Input
    default: float | None = None
    file: FileReference | None = None
    attributes: frozenset[str] = frozenset()
    may_be_missing: bool = False
    span: Span | None = None
    values: NDArray[np.float64] | None = field(default=None, compare=False)
    domain: Dim | None = None

    @property
    def first(self) -> int:
        """The position that is given for the first element of the axis that index data index."""
        return int("one_based" in self.attributes)

    @property
    def is_whole(self) -> bool:
        """Whether its elements are whole numbers, which may index."""
        return self.domain is not None or "whole" in self.attributes

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def shape(self) -> Shape:
        return self.node.shape


@dataclass(frozen=True, slots=True)
class DimDeclaration:
    """A named size with its default, if any."""

    name: str
    default: int | None = None
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """A condition on data, tested at bind: a graph of type bool over data alone.

    `fault` is the message of a condition that the compiler added, if it does not hold.
    """

    condition: Expr
    text: str
    span: Span | None = None
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Bound:
    """An index that must lie inside an axis once sizes are known: 0 <= least, most < size.

    Nothing is indexed if `count` is 0.
    """

    least: Dim
    most: Dim
    size: Dim
    count: Dim
    text: str
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class TupleCount:
    """The size of a dim that data decide: how many tuples an index set has.

    `count` is a scalar graph over data alone; it may use the dims of counts before it.
    """

    dim: str
    count: Expr


@dataclass(frozen=True, slots=True)
class LookupBound:
    """A table of indices, computed from data, whose elements must lie inside an axis of a size."""

    table: Expr
    size: Dim
    text: str
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """A scalar objective with its declarations; sizes and data come later.

    `spans` maps nodes that a user wrote to their source; `warnings` are diagnostics of severity
    `warning`. `vector`, if given, replaces all variables in the objective, which are then scalars,
    in order. `remarks` report how the terms of long sums were rolled; a node of `gathered` has the
    span of the first of many.
    """

    objective: Expr
    variables: tuple[Variable, ...]
    data: tuple[DataDeclaration, ...] = ()
    dims: tuple[DimDeclaration, ...] = ()
    checks: tuple[Check, ...] = ()
    bounds: tuple[Bound, ...] = ()
    lookups: tuple[LookupBound, ...] = ()
    counts: tuple[TupleCount, ...] = ()
    name: str = "model"
    sense: Sense = "minimize"
    objective_name: str = "objective"
    source: SourceText | None = None
    spans: Mapping[Expr, Span] = field(default_factory=dict)
    warnings: tuple[Diagnostic, ...] = ()
    vector: Input | None = None
    remarks: tuple[str, ...] = ()
    gathered: frozenset[Expr] = frozenset()

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The inputs that the objective reads as variables, in the order of the flat vector."""
        if self.vector is not None:
            return (self.vector,)
        return tuple(variable.node for variable in self.variables)

    def at(self, parts: Mapping[str, NDArray[np.float64]]) -> dict[Input, NDArray[np.float64]]:
        """Arrays of the variables by name as values of the inputs."""
        if self.vector is not None:
            return {self.vector: np.array([parts[one.name] for one in self.variables])}
        return {one.node: parts[one.name] for one in self.variables}
