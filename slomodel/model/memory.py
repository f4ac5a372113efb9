"""Errors for arrays that do not fit in memory: how large, and at which place of the model."""

from __future__ import annotations

import math
from collections.abc import Mapping

from slomodel.errors import Diagnostic, TargetLimit
from slomodel.ir.expr import Expr
from slomodel.ir.walk import postorder
from slomodel.problem import Problem


def memory_ran_out(
    error: MemoryError, problem: Problem | None = None, sizes: Mapping[str, int] | None = None
) -> TargetLimit:
    """The error for memory that ran out, at the largest array of the model if that is given.

    A target may allocate several arrays at once, so the size in the message may be that of more.
    """
    result = str(error).partition(" and data type")[0] or "no more can be had"
    message = f"memory ran out: {result[:1].lower()}{result[1:]}"
    remedy = "give smaller sizes, or write the sum without an array that large"
    largest = None if problem is None else _largest(problem, sizes or {})
    if problem is None or largest is None:
        return TargetLimit(Diagnostic("E707", message, help=remedy))
    node, shape = largest
    place = problem.spans[node]
    remedy = f"`{place.text}` has {' x '.join(map(str, shape))} elements: {remedy}"
    return TargetLimit(Diagnostic("E707", message, place, help=remedy))


def _largest(problem: Problem, sizes: Mapping[str, int]) -> tuple[Expr, tuple[int, ...]] | None:
    """The largest array that the text of the objective shows, with its shape."""
    found: tuple[Expr, tuple[int, ...]] | None = None
    most = 1
    for node in postorder(problem.objective):
        is_known = all(name in sizes for dim in node.shape for name, _ in dim.terms)
        if node in problem.spans and is_known:
            shape = tuple(dim.value(sizes) for dim in node.shape)
            if math.prod(shape) > most:
                found, most = (node, shape), math.prod(shape)
    return found
