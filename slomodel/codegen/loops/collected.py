"""Sums of slices on a device, computed for each element of the result.

Threads that add to the same element would have to wait for each other. Instead, each element of
the result sums its contributions in the order of the program.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from slomodel.codegen.program import Form, Program, Step, is_slice
from slomodel.ir.expr import Expr, Index, Scatter, affine

Term = tuple[Expr, tuple[Index, ...] | None]
"""An array and the slice that it is added to; None for an array of the whole shape."""


@dataclass(frozen=True, slots=True)
class Collected:
    """The sums of slices of a program.

    `partial` are those that another sum continues; they are not computed separately.
    """

    steps: dict[Expr, Step]
    partial: frozenset[Expr]
    _terms: dict[Expr, list[Term]] = field(default_factory=dict)

    @classmethod
    def of(cls, program: Program) -> Collected:
        steps = {step.node: step for step in program.steps}
        starts = {step.in_place for step in program.steps if step.in_place is not None}
        partial = frozenset(start for start in starts if _is_sum_of_slices(steps[start]))
        return cls(steps, partial)

    def holds(self, node: Expr) -> bool:
        """Whether a node is an array to whose slices others are added."""
        return node in self.steps and _is_sum_of_slices(self.steps[node])

    def terms(self, node: Expr) -> list[Term]:
        """The terms of an array that is summed from slices, in order."""
        if node not in self._terms:
            result: list[Term] = []
            start: Expr | None = node
            while start is not None:
                term, start = self._last(start)
                result += term
            self._terms[node] = result[::-1]
        return self._terms[node]

    def _last(self, node: Expr) -> tuple[list[Term], Expr | None]:
        """The last terms of a sum, in reverse order, and the sum that they are added to, if any."""
        step = self.steps[node]
        if step.added is None:
            assert isinstance(node, Scatter)
            return [(node.operands[0], node.index)], None
        start, term = step.reads
        last: list[Term] = [(term, step.added.index)]
        return (last, start) if start in self.partial else ([*last, (start, None)], None)


def _is_sum_of_slices(step: Step) -> bool:
    if step.form is Form.ACCUMULATE:
        return True
    if step.form is not Form.PUT:
        return False
    node = step.node
    assert isinstance(node, Scatter)
    if not is_slice(node.index):
        return False
    named = {axis for one in affine(node.index) for axis, c in enumerate(one.coefficients) if c}
    return len(named) == node.operands[0].rank
