"""A program: the steps, in order, that compute some roots, and where each result lives.

It names no target: every backend prints the same programs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from slomodel.codegen.forms import Form
from slomodel.ir.dims import Shape
from slomodel.ir.expr import Expr, Input, Scatter
from slomodel.ir.function import DType

Stage = Literal["data", "centre", "call"]


@dataclass(frozen=True, slots=True)
class Slot:
    """A preallocated array, used by one node or, one after another, by several."""

    shape: Shape
    dtype: DType


@dataclass(frozen=True, slots=True)
class Step:
    """One node computed into its storage.

    `fused` are the elementwise nodes evaluated with it, in order, `node` last; those of what is put
    into a slice are computed right there. `in_place` names
    the operand whose storage the result takes over. An accumulation reads its start and what is
    added to a part of it; `added` is the scatter that says to which.
    """

    node: Expr
    form: Form
    stage: Stage
    fused: tuple[Expr, ...] = ()
    in_place: Expr | None = None
    added: Scatter | None = None

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
    """Steps that compute `roots`: of stage `data`, of `centre` for a new one, of every call.

    `slot_of` gives the place in `slots` of each array that is computed; scalars have none.
    `outputs` gives for a root that is computed in place the index of its array in the caller's
    result. Nodes that are not computed are views of their operand, inputs or constants; views in
    `copied` are written out.
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
