"""Warnings about values of data: labels that stand for missing ones, and infinite log densities.

A label such as `NA` is written where tables have no value. A term k log(y) with y = 0 in the data
and k of the variables, as in `gamma_lpdf` and `beta_lpdf`, is infinite unless k is 0.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from slomodel.errors import Diagnostic, Span
from slomodel.front.data.bind import Binding
from slomodel.front.data.loaders.csv_file import MISSING_CELLS
from slomodel.functions import where, xlog1py, xlogy
from slomodel.ir.expr import Expr, Extreme, Input, Map
from slomodel.ir.walk import dependents, inputs, postorder
from slomodel.problem import Problem
from slomodel.reference import evaluate

_WRITTEN = MISSING_CELLS - {"none"}
"""`none` is not among them: it also names groups, as those without a treatment."""
_ENDS = {xlogy: 0.0, xlog1py: -1.0}
"""The second operand for which the logarithm of a function is infinite."""


def missing_labels(problem: Problem, binding: Binding, given: Collection[str]) -> list[Diagnostic]:
    """A warning for each dim that has such a label, unless its labels were `given`."""
    result = []
    for dim, labels in binding.labels.items():
        wrong = next((one for one in labels if one.strip().lower() in _WRITTEN), None)
        own = [d for d in problem.data if d.has_labels and str(d.domain) == dim]
        if wrong is None or dim in given or not own:
            continue
        names = ", ".join(f"`{one.name}`" for one in own)
        message = f"`{wrong}` in data {names} is read as a label of `{dim}`, one like the others"
        remedy = (
            "if it stands for a missing value, leave such rows out: `drop missing` after the name "
            f"of a file; if it is a name, labels={{{dim!r}: […]}} says so"
        )
        result.append(Diagnostic("W206", message, own[0].span, help=remedy, severity="warning"))
    return result


def infinite_terms(problem: Problem, binding: Binding) -> list[Diagnostic]:
    """A warning for each infinite term; none where a condition may leave elements out."""
    order = postorder(problem.objective)
    terms = [node for node in order if isinstance(node, Map) and node.function in _ENDS]
    if not terms:
        return []
    varying = dependents(order, lambda n: isinstance(n, Input) and n.role == "variable")
    chosen = [n for n in order if isinstance(n, Extreme) or _is_choice(n)]
    guarded = set(postorder(*(one for node in chosen for one in node.operands)))
    arrays = {d.node: binding.arrays[d.name] for d in problem.data if d.name in binding.arrays}
    result = []
    for node in terms:
        factor, argument = node.operands
        if factor not in varying or argument in varying or node in guarded:
            continue
        if not arrays.keys() >= set(inputs(argument)):
            continue
        with np.errstate(all="ignore"):
            values = evaluate([argument], dict(arrays), binding.sizes)[0]
        if np.any(values == _ENDS[node.function]):
            result.append(_remark(problem, node))
    return list(dict.fromkeys(result))


def _is_choice(node: Expr) -> bool:
    return isinstance(node, Map) and node.function is where


def _remark(problem: Problem, node: Map) -> Diagnostic:
    names = ", ".join(f"`{one.name}`" for one in inputs(node.operands[1]))
    ends = f"data {names} have elements at an end of its support" if names else "it has log(0)"
    message = f"this is infinite unless the factor of log(0) is 0: {ends}"
    remedy = (
        "leave such elements out, move them inside, or model them by a probability of their own"
    )
    span: Span | None = problem.spans.get(node) or problem.spans.get(problem.objective)
    return Diagnostic("W207", message, span, help=remedy, severity="warning")
