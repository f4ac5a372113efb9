"""A program: the ordered steps that compute some roots, and the storage of each result.

It does not depend on the target: every backend prints the same programs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal

from slomodel.functions import add
from slomodel.ir.dims import Dim, Shape
from slomodel.ir.expr import (
    Affine,
    Const,
    Einsum,
    Expr,
    Extreme,
    Gather,
    Index,
    Input,
    Iota,
    Listing,
    Map,
    MatrixOperation,
    Recur,
    Scan,
    Scatter,
    Triangle,
    affine,
)
from slomodel.ir.loop import Update
from slomodel.ir.node import DType

Stage = Literal["data", "centre", "call"]


class Form(Enum):
    """How a lowered node is computed."""

    INPUT = "input"
    CONSTANT = "constant"
    COUNT = "count"
    ONES = "ones"
    ELEMENTWISE = "elementwise"
    SUM = "sum"
    PRODUCT = "product"
    AXES = "axes"
    SLICE = "slice"
    TAKE = "take"
    PUT = "put"
    ACCUMULATE = "accumulate"
    RESHAPE = "reshape"
    EXTREME = "extreme"
    SCAN = "scan"
    RECUR = "recur"
    TRIANGLE = "triangle"
    MATRIX = "matrix"
    LISTING = "listing"


ALONE = (Form.COUNT, Form.ONES, Form.SCAN, Form.RECUR, Form.MATRIX)
"""Forms that are a block of the loop form by themselves: their nodes share no loop with others."""


def form_of(node: Expr) -> Form:
    """The form of a lowered node, regardless of its users."""
    if isinstance(node, Input):
        return Form.INPUT
    if isinstance(node, Const):
        return Form.CONSTANT
    if isinstance(node, Iota):
        return Form.COUNT
    if isinstance(node, Map):
        return Form.ELEMENTWISE
    if isinstance(node, Einsum):
        return _form_of_einsum(node)
    if isinstance(node, (Extreme, Scan)):
        return Form.EXTREME if isinstance(node, Extreme) else Form.SCAN
    if isinstance(node, Recur):
        return Form.RECUR
    if isinstance(node, (MatrixOperation, Triangle)):
        return Form.MATRIX if isinstance(node, MatrixOperation) else Form.TRIANGLE
    if isinstance(node, Listing):
        return Form.LISTING
    if isinstance(node, Gather):
        return Form.SLICE if is_slice(node.index) else Form.TAKE
    return Form.PUT if isinstance(node, Scatter) else Form.RESHAPE


def _form_of_einsum(node: Einsum) -> Form:
    if len(node.operands) == 2:
        return Form.PRODUCT
    if not node.operands:
        return Form.ONES
    return Form.AXES if set(node.output) == set(range(len(node.dims))) else Form.SUM


def is_slice(index: tuple[Index, ...]) -> bool:
    """Whether each output axis runs along one axis of the operand, and no two along the same."""
    if not all(isinstance(one, Affine) for one in index):
        return False
    runs = [[axis for axis, c in enumerate(one.coefficients) if c] for one in affine(index)]
    axes = [axis for run in runs for axis in run]
    return all(len(run) <= 1 for run in runs) and len(axes) == len(set(axes))


def scattered(node: Expr, single: set[Expr]) -> Scatter | None:
    """The operand of an addition that is a slice inside zeros: it can be added in place.

    `single` are the nodes with one use.
    """
    if not isinstance(node, Map) or node.function is not add or not node.rank:
        return None
    whole = tuple(range(node.rank))
    if node.axes != (whole, whole):
        return None
    for operand in reversed(node.operands):
        if isinstance(operand, Scatter) and is_slice(operand.index) and operand in single:
            return operand
    return None


@dataclass(frozen=True, slots=True)
class Slot:
    """A preallocated array, used by one node or by several in succession."""

    shape: Shape
    dtype: DType


def together(order: Sequence[Expr]) -> list[Expr]:
    """A postorder in which all states of a loop follow the first, even those that nothing reads."""
    result: dict[Expr, None] = {}
    for node in order:
        result.update(dict.fromkeys(node.states if isinstance(node, Recur) else (node,)))
    return list(result)


@dataclass(frozen=True, slots=True)
class UpdateGroup:
    """Updates of a loop that are executed one after the other from step `start` on.

    `program` computes their values, its roots, before the first of them is stored.
    """

    start: Dim
    updates: tuple[Update, ...]
    program: Program


@dataclass(frozen=True, slots=True)
class Step:
    """One node computed into its storage.

    `fused` are the elementwise nodes evaluated with it, in order, `node` last; if their value is
    written to a slice, it is computed there. `in_place` is the operand whose storage the result
    reuses. An accumulation reads its initial value and the array that is added to a slice of it;
    `added` is the scatter that determines the slice. `groups` are the parts of one step of a loop.
    """

    node: Expr
    form: Form
    stage: Stage
    fused: tuple[Expr, ...] = ()
    in_place: Expr | None = None
    added: Scatter | None = None
    groups: tuple[UpdateGroup, ...] = ()

    @property
    def writes(self) -> tuple[Expr, ...]:
        """The nodes that are computed: the states of a loop, or one node."""
        return self.node.states if isinstance(self.node, Recur) else (self.node,)

    @property
    def reads(self) -> tuple[Expr, ...]:
        if self.added is not None:
            start = next(o for o in self.node.operands if o is not self.added)
            return start, self.added.operands[0]
        inside = self.fused or (self.node,)
        every = dict.fromkeys(operand for node in inside for operand in node.operands)
        return tuple(operand for operand in every if operand not in inside)


@dataclass(frozen=True, slots=True)
class Program:
    """Steps that compute `roots`, in stages: once per data, once per centre, and every call.

    `slot_of` maps each computed array to its index in `slots`; scalars are not in it. `outputs`
    maps a root that is computed in place to the index of its array in the caller's result. Nodes
    that are not computed are views of their operand, inputs or constants; views in `copied` are
    written out.
    """

    roots: tuple[Expr, ...]
    steps: tuple[Step, ...]
    slots: tuple[Slot, ...]
    slot_of: Mapping[Expr, int]
    outputs: Mapping[Expr, int] = field(default_factory=dict)
    arguments: tuple[Input, ...] = ()
    centre: tuple[Input, ...] = ()
    forms: Mapping[Expr, Form] = field(default_factory=dict)
    copied: frozenset[Expr] = frozenset()
