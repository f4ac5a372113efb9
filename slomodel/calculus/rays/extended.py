"""The slope of an objective along a ray, as a graph for extended precision, u = 2^-64.

The functions are those whose records state that NumPy and its C library compute them in that type;
the errors of a library are at most 5 units in the last place (glibc's manual, "Errors in Math
Functions"), less than what enclosures allow (`steps_of`). tests/calculus/test_extended_slopes.py
measures them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache

import slomodel.functions as table
from slomodel.calculus.rays.conditions import ROUNDED_ONCE, is_decided_alike
from slomodel.calculus.rays.numbers import MidRad, in_extended_precision
from slomodel.calculus.rays.ray import ray_graph
from slomodel.errors import MissingRule
from slomodel.functions import symbols, to_graph
from slomodel.ir import build
from slomodel.ir.exact import without_rounding
from slomodel.ir.expr import (
    Const,
    Einsum,
    Expr,
    Input,
    Map,
    MatrixOperation,
    Recur,
    Triangle,
    is_map,
)
from slomodel.ir.function import ScalarFunction
from slomodel.ir.walk import postorder, rewrite

_JUMPING = (table.sign, table.floor)


def extended_slope(objective: Expr, directions: Mapping[Input, Input]) -> MidRad:
    """φ'(0) of φ(t) = f(x + t v), from the bounds along a ray of length 0.

    Functions that NumPy has in doubles alone are taken by their definitions. Raises MissingRule,
    with the reason, where a function or a node is not computed in extended precision.
    """
    with without_rounding(), in_extended_precision():
        simple = _by_definitions(objective)
        _require_extended((simple,))
        _require_alike(simple, directions)
        slope = ray_graph(simple, directions, Const(0.0)).at[1]
    _require_extended([one for one in (slope.mid, slope.rad) if one is not None])
    return slope


def is_extended(function: ScalarFunction) -> bool:
    """Whether the function is computed in extended precision."""
    return function.exact or function.extended or function in ROUNDED_ONCE


def _require_extended(roots: Sequence[Expr]) -> None:
    """Raises MissingRule unless every node under the roots has values in extended precision.

    Recurrences would have them too, at a thousand times the time of a kernel.
    """
    for node in postorder(*roots):
        if isinstance(node, (MatrixOperation, Triangle, Recur)):
            raise MissingRule("it has a matrix operation or a recurrence")
        if isinstance(node, Map) and not is_extended(node.function):
            raise MissingRule(f"NumPy has {node.function} in doubles alone")
        if isinstance(node, Einsum) and len(set(node.output)) < len(node.output):
            raise MissingRule("it has a sum on a diagonal")


def _require_alike(objective: Expr, directions: Mapping[Input, Input]) -> None:
    """Raises MissingRule if a condition on data may choose another branch than in doubles."""
    moving: set[Expr] = set(directions)
    for node in postorder(objective):
        if not moving.isdisjoint(node.operands):
            moving.add(node)
        elif (node.dtype == "bool" or is_map(node, *_JUMPING)) and not is_decided_alike(node):
            raise MissingRule("it has a condition on data that rounding may decide")


def _by_definitions(objective: Expr) -> Expr:
    """The objective with functions that NumPy has in doubles alone replaced by what defines them.

    Their stable forms may be off by what doubles do not resolve.
    """

    def rule(node: Expr) -> Expr:
        if not isinstance(node, Map) or is_extended(node.function):
            return node
        _require_exact_numbers(node.function)
        own = symbols(node.function)
        given = dict(zip(own, build.aligned(node), strict=True))
        value = to_graph(node.function.definition(*own), given)
        return value if value.shape == node.shape else build.broadcast(value, (), node.shape)

    (result,) = rewrite((objective,), rule)
    return result


@cache
def _require_exact_numbers(function: ScalarFunction) -> None:
    """Raises MissingRule for a function whose definition has a number that doubles round."""
    own = symbols(function)
    inputs = {one: build.variable(one.name, ()) for one in own}
    with without_rounding():
        form = to_graph(function.definition(*own), inputs)
    for node in postorder(form):
        is_number = isinstance(node, Const) and node.dtype == "real" and math.isfinite(node.value)
        if isinstance(node, Const) and is_number and node.exact != Fraction(node.value):
            raise MissingRule(f"the definition of {function} has a number that is rounded")
