"""What a bound is asked of: an objective with numbers for its data, a centre, and what is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from slomodel.bounds.enclosure import DerivativeBounds, Enclosure, both_ends
from slomodel.calculus import NOTHING, Known, gradient
from slomodel.errors import Span
from slomodel.ir.exact import without_rounding
from slomodel.ir.expr import Expr, Input

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Setting:
    """An objective over its variables at a centre; everything but x is a number.

    `values` holds an array for every variable (the centre) and every data input. Strategies that
    need work done once a centre keep it in `kept`, by their own name.
    """

    objective: Expr
    variables: tuple[Input, ...]
    values: Mapping[Input, Array]
    sizes: Mapping[str, int]
    known: Known = NOTHING
    spans: Mapping[Expr, Span] = field(default_factory=dict)
    kept: dict[str, object] = field(default_factory=dict)

    @cached_property
    def gradient(self) -> tuple[Expr, ...]:
        """The gradient by variable, as graphs; no constant in them is rounded."""
        with without_rounding():
            return gradient(self.objective, self.variables, self.known)

    def rewritten(
        self, done: Mapping[Expr, Expr], known: Known, kept: dict[str, object]
    ) -> Setting:
        """The setting with another graph of the same objective; `done` maps old nodes to new."""
        spans = {done[node]: span for node, span in self.spans.items() if node in done}
        return replace(
            self,
            objective=done[self.objective],
            known=known,
            spans={**spans, **self.spans},
            kept=kept,
        )

    @property
    def n(self) -> int:
        """The number of unknowns."""
        return sum(int(np.size(self.values[variable])) for variable in self.variables)


@dataclass(frozen=True)
class Candidate:
    """What one strategy claims for a ball: upper bounds, `inf` where it has none, and why.

    `rule` names the strategy and the inequality; `trace` are the lines that explain the number.
    Those of L2 are `rule2` and `trace2` where they are others. `hessian` is at least ‖H(c)‖, where
    that is known: what it would claim for L1 at the centre. `enclosure` is what both constants
    were closed from.
    """

    rule: str
    L1: float
    L2: float
    reason: str = ""
    trace: tuple[str, ...] = ()
    rule2: str = ""
    trace2: tuple[str, ...] = ()
    hessian: float | None = None
    enclosure: Enclosure | None = None

    @property
    def enclosed(self) -> Enclosure:
        """The derivatives' bounds; those of the constants alone where the rule has no others."""
        if self.enclosure is not None:
            return self.enclosure
        return Enclosure(over=DerivativeBounds(both_ends(self.L1), self.L2), reason=self.reason)
