"""Origin of a NaN or infinity, as a sentence: first sub-expression, element and operands."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from slomodel.errors import Span
from slomodel.ir.dims import concrete
from slomodel.ir.expr import Expr, Input, Map, MatrixOperation
from slomodel.ir.walk import postorder, users
from slomodel.problem import Problem
from slomodel.reference import Array, NonFinite, evaluate_all, first_nonfinite, inside_loop, read
from slomodel.reference.matrices import outside_domain

_MOST_ORIGINS = 3


_IN_WORDS = {
    "add": "the sum",
    "sub": "the difference",
    "mul": "the product",
    "div": "the quotient",
    "square": "the square",
    "pow": "the power x^p",
    "xlogy": "x log(y)",
    "xlog1py": "x log(1 + y)",
    "powlog": "x^p log(x)",
    "xlogx": "x log(x)",
    "xlogx1p": "(1 + x) log(1 + x)",
    "hypot": "the length",
    "logaddexp": "logsumexp",
}
"""Descriptions of functions that have no name in the language."""


def nonfinite_origin(
    problem: Problem,
    roots: Sequence[Expr],
    values: Mapping[Input, Array],
    sizes: Mapping[str, int],
) -> str | None:
    """Where a NaN or infinity first appears: sub-expression, line, element and operands."""
    # Only the first root if it suffices: derivatives can be much larger graphs.
    result = first_nonfinite(roots[:1], values, sizes) or first_nonfinite(roots, values, sizes)
    if result is None:
        return None
    if isinstance(result.node, Input):
        what = f"{result.node.role} `{_element(result.node.name, result.element)}`"
        return _named(problem, f"{what} is {result.value}.")
    inside = inside_loop(result, sizes)
    if inside is None:
        text = _described(result, sizes)
    else:
        inner, step = inside
        text = f"{_described(inner, sizes)} at step {step} of a recurrence"
    text = f"{text}{_place(problem, result.node)}{_origins(result, values, sizes)}."
    return _named(problem, text)


def _described(nonfinite: NonFinite, sizes: Mapping[str, int]) -> str:
    """The operation that is not finite, with its operands and the element."""
    if isinstance(nonfinite.node, Map):
        name = nonfinite.node.function.name
        name = _IN_WORDS.get(name, name)
        operands = " and ".join(_shown(nonfinite, k) for k in range(len(nonfinite.operands)))
    elif isinstance(nonfinite.node, MatrixOperation):
        name = nonfinite.node.function.partition("_")[0].replace("inverse", "inv")
        batch = nonfinite.element[: nonfinite.node.operands[0].rank - 2]
        problem = outside_domain(nonfinite.node.function, nonfinite.operands[0][batch])
        operands = f"a matrix that is not {problem}" if problem else "a matrix"
    else:
        name, operands = "a sum of products", _largest(nonfinite, sizes)
    where = f" at element {list(nonfinite.element)}" if nonfinite.element else ""
    of = f" of {operands}" if operands else ""
    return f"{name}{of} is {nonfinite.value}{where}"


def _named(problem: Problem, text: str) -> str:
    """The text with elements of the vector of all variables replaced by the variables' names."""
    if problem.vector is None:
        return text
    names = [variable.name for variable in problem.variables]
    element = rf"{re.escape(problem.vector.name)}\[(\d+)\]"
    return re.sub(element, lambda match: names[int(match[1])], text)


def _element(name: str, element: tuple[int, ...]) -> str:
    return f"{name}[{', '.join(map(str, element))}]" if element else name


def _shown(nonfinite: NonFinite, k: int) -> str:
    """The value of operand k that enters the non-finite element, as text."""
    array, node = nonfinite.operands[k], nonfinite.node
    at = nonfinite.element
    if isinstance(node, Map):
        at = tuple(nonfinite.element[axis] for axis in node.axes[k])
    operand = node.operands[k]
    value = f"{array[at] if len(at) == array.ndim else array.shape}"
    if not isinstance(operand, Input) or operand.role == "step":
        return value
    return f"{_element(operand.name, at)} = {value}"


def _largest(nonfinite: NonFinite, sizes: Mapping[str, int]) -> str:
    """The largest element that enters a sum, by name if possible."""
    node, shown = nonfinite.node, []
    chosen = np.zeros(concrete(node.shape, sizes), dtype=bool)
    chosen[nonfinite.element] = True
    for k, (operand, array) in enumerate(zip(node.operands, nonfinite.operands, strict=True)):
        used = read(node, k, chosen, list(nonfinite.operands), sizes)
        if used.any() and operand not in node.operands[:k]:
            magnitudes = np.where(used, np.abs(np.nan_to_num(array)), -1.0)
            at = tuple(map(int, np.unravel_index(int(magnitudes.argmax()), array.shape)))
            name = ""
            if isinstance(operand, Input) and operand.role != "step":
                name = f"{_element(operand.name, at)} = "
            shown.append(f"{name}{array[at]}")
    return f"numbers up to {', '.join(shown)}" if shown else ""


def _origins(nonfinite: NonFinite, values: Mapping[Input, Array], sizes: Mapping[str, int]) -> str:
    """The inputs of which only one or two elements enter the non-finite element."""
    arrays = evaluate_all([nonfinite.node], values, sizes)
    chosen = np.zeros(arrays[nonfinite.node].shape, dtype=bool)
    chosen[nonfinite.element] = True
    used = {nonfinite.node: chosen}
    for node in reversed(postorder(nonfinite.node)):
        taken = [arrays[operand] for operand in node.operands]
        for k, operand in enumerate(node.operands):
            which = read(node, k, used[node], taken, sizes)
            used[operand] = used[operand] | which if operand in used else which
    shown = [
        f"{_element(node.name, at)} = {arrays[node][at]}"
        for node, which in used.items()
        if isinstance(node, Input) and node not in nonfinite.node.operands and which.sum() <= 2
        for at in (tuple(map(int, row)) for row in np.argwhere(which))
    ]
    return f", where {', '.join(shown[:_MOST_ORIGINS])}" if shown else ""


def _place(problem: Problem, node: Expr) -> str:
    """The source of the node, or of the node whose derivative it belongs to."""
    above = users(postorder(problem.objective))
    if node is problem.objective or node in above:
        span = _nearest(problem, [node], above)
        of = "a term like " if node in problem.gathered else ""
    else:
        span, of = _differentiated(problem, node, above), "the derivative of "
    if span is None:
        return ""
    text = " ".join(span.text.split())
    return f", in {of}`{text if len(text) <= 60 else text[:57] + '…'}` (line {span.line})"


def _nearest(
    problem: Problem, layer: Sequence[Expr], above: Mapping[Expr, Sequence[Expr]]
) -> Span | None:
    """The first span among given nodes of the objective and their users."""
    seen = set(layer)
    while layer:
        for one in layer:
            if one in problem.spans:
                return problem.spans[one]
        layer = [user for one in layer for user in above.get(one, []) if user not in seen]
        seen.update(layer)
    return None


def _differentiated(
    problem: Problem, node: Expr, above: Mapping[Expr, Sequence[Expr]]
) -> Span | None:
    """The span of the function whose derivative contains the node; None if that is ambiguous.

    A derivative contains the function itself (1/2/sqrt(t)) or its operand (p t^(p-1)).
    """
    inner = [operand for operand in node.operands if operand in above]
    functions = [operand for operand in inner if isinstance(operand, Map)]
    if not functions:
        every = (user for operand in inner for user in above[operand])
        result = list(dict.fromkeys(user for user in every if isinstance(user, Map)))
        functions = result if len(result) == 1 else [f for f in result if _same_function(f, node)]
    return _nearest(problem, functions, above)


def _same_function(one: Map, other: Expr) -> bool:
    return isinstance(other, Map) and one.function is other.function
