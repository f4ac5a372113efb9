"""What a person is told of a model: its shapes and smoothness, and where a NaN comes from."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from slomodel.errors import ModelSyntaxError, ModelWarning, NonsmoothWarning, Span
from slomodel.front.bind import Binding
from slomodel.ir.dims import Shape, concrete, show_shape
from slomodel.ir.expr import Expr, Input, Map
from slomodel.ir.function import ANALYTIC
from slomodel.ir.walk import dependents, postorder, users
from slomodel.problem import NONSMOOTH, Problem
from slomodel.reference import NonFinite, first_nonfinite

Array = NDArray[np.generic]


def smoothness(problem: Problem) -> int:
    """How often the objective is continuously differentiable, the least over its functions.

    A lower bound: the joint of a `where` may be smoother than is claimed here.
    """
    variables: set[Expr] = {variable.node for variable in problem.variables}
    order = postorder(problem.objective)
    moving = dependents(order, variables.__contains__)
    classes = [
        node.function.smoothness
        for node in order
        if isinstance(node, Map) and node in moving and node.dtype == "real"
    ]
    return min(classes, default=ANALYTIC)


def smoothness_class(problem: Problem) -> str:
    """The smoothness as people write it."""
    degree = smoothness(problem)
    if degree >= ANALYTIC:
        return "smooth (derivatives of every order on its domain)"
    return f"C{degree}" if degree > 0 else "nonsmooth (it has kinks)"


def warn(problem: Problem, strict: bool) -> None:
    """Issue the model's warnings; ModelSyntaxError for kinks where `strict`."""
    kinks = [warning for warning in problem.warnings if warning.code == NONSMOOTH]
    if strict and kinks:
        raise ModelSyntaxError(*kinks)
    for warning in problem.warnings:
        category = NonsmoothWarning if warning.code == NONSMOOTH else ModelWarning
        warnings.warn(warning.render(), category, stacklevel=4)


def explanation(problem: Problem, binding: Binding) -> str:
    """Variables, data, sizes and smoothness, one a line."""
    lines = [f"model {problem.name}: {problem.sense} {problem.objective_name}"]
    sizes = [f"{dim.name} = {binding.sizes.get(dim.name, '?')}" for dim in problem.dims]
    if sizes:
        lines.append(f"dims       {', '.join(sizes)}")
    for variable in problem.variables:
        lines.append(f"variable   {variable.name} {show_shape(variable.shape)}")
    for declaration in problem.data:
        state = "missing" if declaration.name in binding.missing else "given"
        lines.append(f"data       {declaration.name} {show_shape(declaration.shape)}, {state}")
    if not binding.unsized:
        count = 0
        for variable in problem.variables:
            count += int(np.prod([dim.size(binding.sizes) for dim in variable.shape], dtype=int))
        lines.append(f"unknowns   {count}")
    lines.append(f"smoothness {smoothness_class(problem)}")
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
        "smoothness": smoothness_class(problem),
    }


def _known(shape: Shape, sizes: Mapping[str, int]) -> list[int | str]:
    return [
        dim.size(sizes) if all(name in sizes for name, _ in dim.terms) else str(dim)
        for dim in shape
    ]


def nonfinite_sentence(
    problem: Problem,
    roots: Sequence[Expr],
    values: Mapping[Input, Array],
    sizes: Mapping[str, int],
) -> str | None:
    """Where a NaN or infinity first appears: the sub-expression, its line, element and operands."""
    found = first_nonfinite(roots, values, sizes)
    if found is None:
        return None
    if isinstance(found.node, Input):
        what = f"{found.node.role} `{_element(found.node.name, found.element)}`"
        return f"{what} is {found.value}."
    place = _place(problem, roots, found.node)
    name = found.node.function.name if isinstance(found.node, Map) else "a sum of products"
    operands = ", ".join(_shown(found, k) for k in range(len(found.operands)))
    where = f" at element {list(found.element)}" if found.element else ""
    of = f" of {operands}" if isinstance(found.node, Map) and operands else ""
    text = f"{name}{of} is {found.value}{where}"
    return f"{text}{place}."


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


def _place(problem: Problem, roots: Sequence[Expr], node: Expr) -> str:
    """The span of the node, or of the nearest user that the text shows."""
    span = _span(problem, roots, node)
    if span is None:
        return ""
    text = " ".join(span.text.split())
    return f", in `{text if len(text) <= 60 else text[:57] + '…'}` (line {span.line})"


def _span(problem: Problem, roots: Sequence[Expr], node: Expr) -> Span | None:
    above = users(postorder(*roots))
    layer, seen = [node], {node}
    while layer:
        for one in layer:
            if one in problem.spans:
                return problem.spans[one]
        layer = [user for one in layer for user in above.get(one, []) if user not in seen]
        seen.update(layer)
    return None
