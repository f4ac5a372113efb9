"""The passes in the order they run in, and their running: the same objective with less work.

A pass is proved in its file. Here its result is weighed: one that is no less work is not taken.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from slomodel.errors import Diagnostic, DomainError
from slomodel.ir.expr import Expr, Input
from slomodel.rewrite.compression import compression
from slomodel.rewrite.contraction_order import contraction_order
from slomodel.rewrite.facts import Facts
from slomodel.rewrite.prepared import prepared
from slomodel.rewrite.symmetry import Joint, symmetry
from slomodel.rewrite.work import work, work_of_call

Run = Callable[[Expr, Facts], tuple[Expr, tuple[str, ...]]]


@dataclass(frozen=True, slots=True)
class Pass:
    """A graph to a graph of the same value; with it a sentence on each thing that was changed."""

    name: str
    run: Run


PASSES: tuple[Pass, ...] = (
    Pass("orthogonal compression", compression),
    Pass("contraction order", contraction_order),
)
SYMMETRY = "symmetry"
"""The pass that comes last and takes the gradient along."""


@dataclass(frozen=True, slots=True)
class Change:
    """What a pass did, with the operations of a value and gradient before and after it."""

    name: str
    notes: tuple[str, ...]
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Optimized:
    """An objective after the passes, and the facts for which it equals the one before.

    `joint` is the objective with its gradient, if both were rewritten together. `prepared` maps its
    new data inputs to the graphs that they are computed from.
    """

    objective: Expr
    changes: tuple[Change, ...]
    facts: Facts
    joint: Joint | None = None
    prepared: Mapping[Input, Expr] = field(default_factory=dict)


def chosen(rewrites: bool | Collection[str]) -> tuple[str, ...]:
    """The names of the passes that a caller asks for. Raises DomainError for a name not there."""
    names = (*(one.name for one in PASSES), SYMMETRY)
    if isinstance(rewrites, bool):
        return names if rewrites else ()
    remedy = f"give True, False or some of {', '.join(names)}"
    if isinstance(rewrites, str) or not isinstance(rewrites, Collection):
        kind = type(rewrites).__name__
        message = f"rewrites= takes True, False or names of passes, not an object of {kind}"
        raise DomainError(Diagnostic("E602", message, help=remedy))
    unknown = [name for name in rewrites if name not in names]
    if unknown:
        message = f"no pass is called {unknown[0]!r}"
        raise DomainError(Diagnostic("E602", message, help=remedy))
    return tuple(name for name in names if name in rewrites)


def optimized(
    objective: Expr,
    facts: Facts,
    names: Collection[str],
    variables: Sequence[Input] = (),
    taken: Collection[str] = (),
) -> Optimized:
    """The objective after the passes of these names. All sizes have to be known.

    `variables` are those of the gradient, in order. New data gets no name that is `taken`.
    """
    changes: list[Change] = []
    before: float | None = None
    for one in PASSES:
        if one.name not in names:
            continue
        made, notes = one.run(objective, facts)
        if made is objective:
            continue
        before = work_of_call(objective, facts.sizes) if before is None else before
        after = work_of_call(made, facts.sizes)
        if after < before:
            changes.append(Change(one.name, notes, before, after))
            objective, before = made, after
    joint = symmetry(objective, variables, facts) if SYMMETRY in names else None
    if joint is not None:
        before = work_of_call(objective, facts.sizes, facts.known)
        after = work((joint.objective, *joint.gradient), joint.sizes)
        if after < before:
            changes.append(Change(SYMMETRY, joint.notes, before, after))
        else:
            joint = None
    slopes = joint.gradient if joint is not None else ()
    (value, *rest), parts = prepared((joint.objective if joint else objective, *slopes), taken)
    joint = None if joint is None else replace(joint, objective=value, gradient=tuple(rest))
    return Optimized(objective if joint else value, tuple(changes), facts, joint, parts)
