"""Bindings for predictions: the data of new rows in place of those that were fitted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from slomodel.front.data.bind import Binding, bind
from slomodel.front.source import Recipe
from slomodel.ir.dims import Shape
from slomodel.problem import Problem


def rebound(
    problem: Problem, recipe: Recipe, binding: Binding, data: Mapping[str, object]
) -> Binding:
    """The binding with new data, without the fitted data of other sizes.

    The dims of variables keep their sizes, and labels keep their positions. Data along a dim whose
    size changes are missing afterwards, unless they are given. Raises DomainError or ShapeError for
    data that do not fit.
    """
    # Files that the model names hold the data that were fitted.
    problem = replace(problem, data=tuple(replace(one, file=None) for one in problem.data))
    fixed = {name for one in problem.variables for name in _names(one.shape)}
    fixed |= binding.labels.keys()
    dims = {name: size for name, size in binding.sizes.items() if name in fixed}
    own = {one.name for one in problem.dims}
    dims = {name: size for name, size in dims.items() if name in own}
    labels = {name: list(one) for name, one in binding.labels.items()}
    alone = bind(problem, data, dims, None, labels)
    kept: dict[str, object] = {}
    for one in problem.data:
        known = recipe.data.get(one.name)
        if one.name in data or known is None:
            continue
        same = all(
            alone.sizes.get(name, binding.sizes.get(name)) == binding.sizes.get(name)
            for name in _names(one.shape)
        )
        if same:
            kept[one.name] = known
    rest = {name: size for name, size in recipe.dims.items() if name not in alone.sizes}
    return bind(problem, {**kept, **data}, {**rest, **dims}, None, labels)


def _names(shape: Shape) -> set[str]:
    return {name for dim in shape for name, _ in dim.terms}
