"""A warning about arrays whose first elements are never read, as by sums that count from 1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from slomodel.errors import Diagnostic, Span
from slomodel.ir.dims import Dim, Shape
from slomodel.ir.expr import Affine, Expr, Gather, Input, Recur, affine, is_listed
from slomodel.ir.walk import postorder, users
from slomodel.problem import Problem


def with_unread_warnings(problem: Problem) -> Problem:
    """The problem with a warning for each array whose leading elements no index reaches."""
    roots = (problem.objective, *(check.condition for check in problem.checks))
    order = postorder(*roots)
    uses = users(order)
    # A recurrence reads from its first computed step on.
    excused = set(postorder(*(node for node in order if isinstance(node, Recur))))
    spans = {variable.node: variable.span for variable in problem.variables}
    spans |= {declared.node: declared.span for declared in problem.data}
    result = [
        _remark(node, axis, least, spans[node])
        for node in spans
        if node not in excused
        for axis, least in _unread(node, uses.get(node, []))
    ]
    return replace(problem, warnings=(*problem.warnings, *result)) if result else problem


def _unread(node: Input, uses: list[Expr]) -> Iterator[tuple[int, int]]:
    """Axes whose first elements are never read, with the least index that is."""
    if not uses or not all(isinstance(use, Gather) and not is_listed(use) for use in uses):
        return
    taken = [(affine(use.index), use.shape) for use in uses if isinstance(use, Gather)]
    for axis, dim in enumerate(node.shape):
        least = [_least(index[axis], shape) for index, shape in taken]
        known = [one for one in least if one is not None]
        # A single element, such as `x[3]`, is intended; a range that starts at 1 rarely is.
        runs = any(any(index[axis].coefficients) for index, _ in taken)
        if runs and len(known) == len(least) and min(known) > 0 and not dim.is_literal:
            yield axis, min(known)


def _least(index: Affine, iterated: Shape) -> int | None:
    """The least value of an index if it is the same number for all sizes; otherwise None."""
    least: Dim = index.offset
    for coefficient, dim in zip(index.coefficients, iterated, strict=True):
        if coefficient < 0:
            least = least + (dim - 1) * coefficient
    return least.const if least.is_literal else None


def _remark(node: Input, axis: int, least: int, span: Span | None) -> Diagnostic:
    place = ["0" if k == axis else "…" for k in range(node.rank)]
    element = f"`{node.name}[{', '.join(place)}]`"
    message = f"{node.role} {element} is never read: indices count from 0, and the least is {least}"
    remedy = "write `for i in n`, or a Sum from 0 to n - 1, to read all elements"
    return Diagnostic("W204", message, span, help=remedy, severity="warning")
