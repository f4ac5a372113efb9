"""What a person is told of a model: its shapes and smoothness, and where a NaN comes from."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from slomodel.calculus.kinked_products import remaining_kinks
from slomodel.calculus.piecewise import continuity_order
from slomodel.errors import Diagnostic, ModelSyntaxError, ModelWarning, NonsmoothWarning, Span
from slomodel.front.data.bind import Binding
from slomodel.front.elaboration.smoothness import lower_limits, nonsmooth_warnings, smoothness_of
from slomodel.functions import differentiated, where
from slomodel.ir.dims import Shape, concrete, show_shape
from slomodel.ir.expr import Expr, Extreme, Input, Map
from slomodel.ir.function import ANALYTIC
from slomodel.ir.walk import dependents, postorder, users
from slomodel.problem import NONSMOOTH, Problem
from slomodel.reference import NonFinite, evaluate_all, first_nonfinite, read
from slomodel.rewrite import Change, work_once

Array = NDArray[np.generic]

_MOST_ORIGINS = 3
_TOLD = 1000
"""Fewer operations are not worth a line."""


def smoothness(
    problem: Problem, arrays: Mapping[str, NDArray[np.float64]] = MappingProxyType({})
) -> int:
    """How often the objective is continuously differentiable: the least over its functions.

    `arrays` are data by name; the values of others are unknown. A lower bound: the join of a
    `where` may be smoother than is proved.
    """
    variables: set[Expr] = set(problem.inputs)
    order = differentiated(problem.objective)
    moving = dependents(order, variables.__contains__)
    kinks = remaining_kinks(problem.objective, order, moving)
    limits = lower_limits(problem.data, problem.checks, arrays)
    classes = [
        _order(node, moving, limits) if isinstance(node, Map) else 0
        for node in order
        if isinstance(node, (Map, Extreme)) and node in moving and node in kinks.nodes
        if node.dtype == "real"
    ]
    return min([kinks.order, *classes])


def _order(node: Map, moving: set[Expr], limits: Mapping[Expr, float]) -> int:
    """How often a function is differentiable where it stands; a fixed choice is no kink."""
    if node.function is not where:
        return smoothness_of(node, limits)
    return max(0, continuity_order(node, moving)) if node.operands[0] in moving else ANALYTIC


def smoothness_class(problem: Problem, arrays: Mapping[str, NDArray[np.float64]]) -> str:
    """The smoothness as people write it."""
    degree = smoothness(problem, arrays)
    if degree >= ANALYTIC:
        return "smooth (derivatives of every order on its domain)"
    if degree < 0:
        return "discontinuous (it jumps)"
    return f"C{degree}" if degree > 0 else "nonsmooth (it has kinks)"


def kinks_of_data(problem: Problem, binding: Binding) -> list[Diagnostic]:
    """Warnings of kinks that the numbers of data make: a delta below 0 of `huber`."""
    span = problem.spans.get(problem.objective) or next(iter(problem.spans.values()), None)
    if span is None or not kinks_depend_on_data(problem):
        return []
    found = nonsmooth_warnings(
        *(problem.objective, problem.spans, span, problem.data, problem.checks, binding.arrays)
    )
    return [one for one in found if one not in problem.warnings]


def kinks_depend_on_data(problem: Problem) -> bool:
    """Whether there is a function whose class of smoothness depends on data."""
    order = postorder(problem.objective)
    return any(isinstance(n, Map) and n.function.smoothness_above is not None for n in order)


def warn(found: Sequence[Diagnostic], strict: bool) -> None:
    """Issue a model's warnings; ModelSyntaxError for kinks where `strict`."""
    kinks = [warning for warning in found if warning.code == NONSMOOTH]
    if strict and kinks:
        raise ModelSyntaxError(*(replace(kink, severity="error") for kink in kinks))
    for warning in found:
        category = NonsmoothWarning if warning.code == NONSMOOTH else ModelWarning
        warnings.warn(warning.render(), category, stacklevel=3)


def explanation(problem: Problem, binding: Binding, changes: Sequence[Change] = ()) -> str:
    """Variables, data, sizes, smoothness and what was rewritten, one a line."""
    lines = [f"model {problem.name}: {problem.sense} {problem.objective_name}"]
    sizes = [f"{dim.name} = {binding.sizes.get(dim.name, '?')}" for dim in problem.dims]
    if sizes:
        lines.append(f"dims       {', '.join(sizes)}")
    if problem.vector is not None:
        lines.append(f"variables  {problem.vector.name}: {len(problem.variables)} numbers")
    else:
        named = ((variable.name, show_shape(variable.shape)) for variable in problem.variables)
        lines += [f"variable   {name} {shape}" for name, shape in named]
    for declaration in problem.data:
        state = "missing" if declaration.name in binding.missing else "given"
        lines.append(f"data       {declaration.name} {show_shape(declaration.shape)}, {state}")
    lines.append(f"unknowns   {_unknowns(problem, binding.sizes)}")
    lines.append(f"smoothness {smoothness_class(problem, binding.arrays)}")
    lines += [f"rewritten  sums: {remark}" for remark in problem.remarks]
    once = 0.0 if binding.unsized else work_once(problem.objective, binding.sizes)
    if once >= _TOLD:
        lines.append(f"once       {once:.3g} operations on data alone are done once a bind")
    for change in changes:
        saved = f"{change.before:.3g} operations a gradient become {change.after:.3g}"
        lines.append(f"rewritten  {change.name}: {saved}")
        lines += [f"           {note}" for note in change.notes]
    return "\n".join(lines)


def facts(problem: Problem, binding: Binding) -> dict[str, object]:
    """The same as data for JSON: an unknown size is null, and its name in a shape."""
    shapes = {v.name: _known(v.shape, binding.sizes) for v in problem.variables}
    counts = [concrete(v.shape, binding.sizes) for v in problem.variables if not binding.unsized]
    return {
        "model": problem.name,
        "sense": problem.sense,
        "objective": problem.objective_name,
        "dims": {dim.name: binding.sizes.get(dim.name) for dim in problem.dims},
        "variables": shapes,
        "data": {d.name: _known(d.shape, binding.sizes) for d in problem.data},
        "missing": list(binding.missing),
        "n": None if binding.unsized else sum(map(math.prod, counts)),
        "smoothness": smoothness_class(problem, binding.arrays),
        "warnings": [warning.facts() for warning in problem.warnings],
    }


def _known(shape: Shape, sizes: Mapping[str, int]) -> list[int | str]:
    return [
        dim.size(sizes) if all(name in sizes for name, _ in dim.terms) else str(dim)
        for dim in shape
    ]


def _unknowns(problem: Problem, sizes: Mapping[str, int]) -> str:
    """How many numbers are optimised; sizes that are not known stand there by name."""
    counts: dict[tuple[str, ...], int] = {}
    for variable in problem.variables:
        factors = _known(variable.shape, sizes)
        named = [f"({one})" if " " in one else one for one in factors if isinstance(one, str)]
        number = math.prod(one for one in factors if isinstance(one, int))
        counts[tuple(named)] = counts.get(tuple(named), 0) + number
    total = counts.pop((), 0)
    products = ["*".join([str(n)] * (n != 1) + list(named)) for named, n in counts.items() if n]
    return " + ".join([*products, str(total)] if total or not products else products)


_IN_WORDS = {
    "add": "the sum",
    "sub": "the difference",
    "mul": "the product",
    "div": "the quotient",
    "square": "the square",
    "powlog": "x^p log(x)",
    "xlogx": "x log(x)",
    "xlogx1p": "(1 + x) log(1 + x)",
    "hypot": "the length",
    "logaddexp": "logsumexp",
}
"""What readers call functions that the language has no name for."""


def nonfinite_sentence(
    problem: Problem,
    roots: Sequence[Expr],
    values: Mapping[Input, Array],
    sizes: Mapping[str, int],
) -> str | None:
    """Where a NaN or infinity first appears: the sub-expression, its line, element and operands."""
    # The first root alone where it tells: derivatives can be much larger.
    found = first_nonfinite(roots[:1], values, sizes) or first_nonfinite(roots, values, sizes)
    if found is None:
        return None
    if isinstance(found.node, Input):
        what = f"{found.node.role} `{_element(found.node.name, found.element)}`"
        return _named(problem, f"{what} is {found.value}.")
    if isinstance(found.node, Map):
        name = found.node.function.name
        name = _IN_WORDS.get(name, name)
        operands = " and ".join(_shown(found, k) for k in range(len(found.operands)))
    else:
        name, operands = "a sum of products", _largest(found, sizes)
    where = f" at element {list(found.element)}" if found.element else ""
    of = f" of {operands}" if operands else ""
    text = f"{name}{of} is {found.value}{where}"
    text = f"{text}{_place(problem, found.node)}{_origins(found, values, sizes)}."
    return _named(problem, text)


def _named(problem: Problem, text: str) -> str:
    """A text in which elements of the vector of all variables have the names of those."""
    if problem.vector is None:
        return text
    names = [variable.name for variable in problem.variables]
    element = rf"{re.escape(problem.vector.name)}\[(\d+)\]"
    return re.sub(element, lambda found: names[int(found[1])], text)


def _element(name: str, element: tuple[int, ...]) -> str:
    return f"{name}[{', '.join(map(str, element))}]" if element else name


def _shown(found: NonFinite, k: int) -> str:
    """The value of operand k at the element that is not finite."""
    array, node = found.operands[k], found.node
    at = found.element
    if isinstance(node, Map):
        at = tuple(found.element[axis] for axis in node.axes[k])
    operand = node.operands[k]
    value = f"{array[at] if len(at) == array.ndim else array.shape}"
    return f"{_element(operand.name, at)} = {value}" if isinstance(operand, Input) else value


def _largest(found: NonFinite, sizes: Mapping[str, int]) -> str:
    """The largest of the elements that a sum is made of, by its name where it has one."""
    node, shown = found.node, []
    chosen = np.zeros(concrete(node.shape, sizes), dtype=bool)
    chosen[found.element] = True
    for k, (operand, array) in enumerate(zip(node.operands, found.operands, strict=True)):
        used = read(node, k, chosen, list(found.operands), sizes)
        if used.any() and operand not in node.operands[:k]:
            magnitudes = np.where(used, np.abs(np.nan_to_num(array)), -1.0)
            at = tuple(map(int, np.unravel_index(int(magnitudes.argmax()), array.shape)))
            name = f"{_element(operand.name, at)} = " if isinstance(operand, Input) else ""
            shown.append(f"{name}{array[at]}")
    return f"numbers up to {', '.join(shown)}" if shown else ""


def _origins(found: NonFinite, values: Mapping[Input, Array], sizes: Mapping[str, int]) -> str:
    """The inputs of which one or two elements went into the element that is not finite."""
    arrays = evaluate_all([found.node], values, sizes)
    chosen = np.zeros(arrays[found.node].shape, dtype=bool)
    chosen[found.element] = True
    used = {found.node: chosen}
    for node in reversed(postorder(found.node)):
        taken = [arrays[operand] for operand in node.operands]
        for k, operand in enumerate(node.operands):
            which = read(node, k, used[node], taken, sizes)
            used[operand] = used[operand] | which if operand in used else which
    shown = [
        f"{_element(node.name, at)} = {arrays[node][at]}"
        for node, which in used.items()
        if isinstance(node, Input) and node not in found.node.operands and which.sum() <= 2
        for at in (tuple(map(int, row)) for row in np.argwhere(which))
    ]
    return f", where {', '.join(shown[:_MOST_ORIGINS])}" if shown else ""


def _place(problem: Problem, node: Expr) -> str:
    """What the text has there: the node, or that of which the node is a derivative."""
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
    """The span of the first of some nodes of the objective, or of their users, that has one."""
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
    """The span of the function whose derivative a node is part of; None where that is not clear.

    A derivative is made of the function itself (1/2/sqrt(t)) or of its operand (p t^(p-1)).
    """
    inner = [operand for operand in node.operands if operand in above]
    functions = [operand for operand in inner if isinstance(operand, Map)]
    if not functions:
        every = (user for operand in inner for user in above[operand])
        found = list(dict.fromkeys(user for user in every if isinstance(user, Map)))
        functions = found if len(found) == 1 else [f for f in found if _same_function(f, node)]
    return _nearest(problem, functions, above)


def _same_function(one: Map, other: Expr) -> bool:
    return isinstance(other, Map) and one.function is other.function
