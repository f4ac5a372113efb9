"""Errors for arrays that do not fit in memory: how large, and at which place of the model."""

from __future__ import annotations

import math
from collections.abc import Mapping

from slomodel.errors import Diagnostic, Span, TargetLimit
from slomodel.ir.walk import postorder
from slomodel.problem import Problem


def memory_ran_out(
    error: MemoryError, problem: Problem | None = None, sizes: Mapping[str, int] | None = None
) -> TargetLimit:
    """The error for memory that ran out, at the largest array of the model if that is given."""
    result = str(error).partition(" and data type")[0] or "no more can be had"
    message = f"memory ran out: {result[:1].lower()}{result[1:]}"
    remedy = "give smaller sizes, or write the sum without an array that large"
    place = None if problem is None else _largest(problem, sizes or {})
    return TargetLimit(Diagnostic("E707", message, place, help=remedy))


def _largest(problem: Problem, sizes: Mapping[str, int]) -> Span | None:
    """Where the largest array of the objective is written; None if nothing is larger than x."""
    known = [
        (math.prod(dim.value(sizes) for dim in node.shape), node)
        for node in postorder(problem.objective)
        if node in problem.spans
        and all(name in sizes for dim in node.shape for name, _ in dim.terms)
    ]
    size, node = max(known, key=lambda one: one[0], default=(0, None))
    return None if node is None or size <= 1 else problem.spans[node]
