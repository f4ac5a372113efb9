"""What a bound is asked of: an objective with numbers for its data, a centre, and what is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from typing import Concatenate, ParamSpec, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from slomodel.bounds.effort import DEFAULT, Effort
from slomodel.bounds.enclosure import DerivativeBounds, Enclosure, both_ends
from slomodel.calculus import NOTHING, Known, gradient
from slomodel.errors import Span
from slomodel.ir.exact import without_rounding
from slomodel.ir.expr import Expr, Input

Array = NDArray[np.float64]
Value = TypeVar("Value")
Others = ParamSpec("Others")


@dataclass(frozen=True)
class Setting:
    """An objective over its variables at a centre; everything but x is a number.

    `values` holds an array for every variable (the centre) and every data input. `written` is the
    setting before it was brought into Gram form. `effort` budgets the work of every rule. Work that
    is done once per centre is cached by `once_per_setting`; another setting, also one by `replace`,
    starts with an empty cache.
    """

    objective: Expr
    variables: tuple[Input, ...]
    values: Mapping[Input, Array]
    sizes: Mapping[str, int]
    known: Known = NOTHING
    spans: Mapping[Expr, Span] = field(default_factory=dict)
    written: Setting | None = None
    effort: Effort = DEFAULT
    cache: dict[object, object] = field(default_factory=dict, init=False, repr=False, compare=False)

    @cached_property
    def gradient(self) -> tuple[Expr, ...]:
        """The gradient by variable, as graphs; no constant in them is rounded."""
        with without_rounding():
            return gradient(self.objective, self.variables, self.known)

    def rewritten(
        self, done: Mapping[Expr, Expr], known: Known, written: Setting | None = None
    ) -> Setting:
        """The setting with another graph of the same objective; `done` maps old nodes to new."""
        spans = {done[node]: span for node, span in self.spans.items() if node in done}
        return replace(
            self,
            objective=done[self.objective],
            known=known,
            spans={**spans, **self.spans},
            written=written,
        )

    @cached_property
    def tables(self) -> Mapping[Expr, Array]:
        """The data, as what indices are looked up in."""
        return {node: array for node, array in self.values.items() if node.role == "data"}

    @property
    def n(self) -> int:
        """The number of unknowns."""
        return sum(int(np.size(self.values[variable])) for variable in self.variables)


def once_per_setting(
    compute: Callable[Concatenate[Setting, Others], Value],
) -> Callable[Concatenate[Setting, Others], Value]:
    """The function with its value cached per setting and per hashable further arguments.

    A cached value must depend on nothing else, so that no answer depends on what was asked before.
    """

    @wraps(compute)
    def cached(setting: Setting, /, *args: Others.args, **named: Others.kwargs) -> Value:
        key = (compute, args, tuple(named.items()))
        if key not in setting.cache:
            setting.cache[key] = compute(setting, *args, **named)
        return cast("Value", setting.cache[key])

    return cast("Callable[Concatenate[Setting, Others], Value]", cached)


@dataclass(frozen=True)
class Candidate:
    """What one strategy claims for a ball: upper bounds, `inf` where it has none, and why.

    `rule` names the strategy and the inequality; `trace` are the lines that explain the number.
    Those of L2 are `rule2` and `trace2` where they are others. `hessian` is at least ‖H(c)‖, where
    that is known: what it would claim for L1 at the centre. `enclosure` is what both constants
    were closed from. `is_enough`: where both are finite, rules by norms hardly have smaller ones.
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
    is_enough: bool = False

    @property
    def enclosed(self) -> Enclosure:
        """The derivatives' bounds; those of the constants alone where the rule has no others."""
        if self.enclosure is not None:
            return self.enclosure
        return Enclosure(over=DerivativeBounds(both_ends(self.L1), self.L2), reason=self.reason)
