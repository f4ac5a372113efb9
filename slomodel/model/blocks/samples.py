"""The two parts of an objective over samples: g, bound to blocks of data, and h without samples."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from slomodel.errors import Diagnostic, DomainError, Span
from slomodel.front.source import Recipe
from slomodel.ir import build
from slomodel.ir.dims import Dim, named
from slomodel.ir.expr import Input
from slomodel.model.model import Model
from slomodel.problem import Check, DataDeclaration, Problem
from slomodel.rewrite.block_sums import BlockSum, NoBlockSum, block_sum, for_each_block

_AGAIN = ("orthogonal compression",)
"""Passes that prepare much for each block: they would run at each evaluation of the block."""


def number_of_samples(dim: str) -> Input:
    """The number of all samples, as data of the two parts; its name is not an identifier."""
    return build.data(f"size[{dim}]", ())


def with_whole_size(problem: Problem, dim: str, total: int) -> Problem:
    """The problem whose formulas of sizes hold for all samples, though a block has fewer."""
    dims = [
        replace(one, formula=None if one.name == dim else one.formula.at(dim, total))
        if one.formula is not None
        else one
        for one in problem.dims
    ]
    return replace(problem, dims=tuple(dims))


class SampleSum:
    """The parts of an objective that is a sum over the samples along a dim.

    `names` are the data over samples, which `recipe` may lack; `sizes` are those of the other dims.
    `constraints` is a model with objective 0 and the constraints, none of which depends on samples.
    Raises DomainError if the objective is not such a sum.
    """

    def __init__(
        self,
        recipe: Recipe,
        problem: Problem,
        dim: str,
        total: int,
        names: Collection[str],
        sizes: Mapping[str, int],
    ) -> None:
        problem = with_whole_size(problem, dim, total)
        number = number_of_samples(dim)
        result = block_sum(problem.objective, dim, number, entries_along(problem, dim))
        if isinstance(result, NoBlockSum):
            raise not_a_sum(problem, dim, result)
        data = {name: one for name, one in recipe.data.items() if name not in names}
        self.recipe = replace(
            recipe,
            rewrites=tuple(rewrite for rewrite in recipe.rewrites if rewrite not in _AGAIN),
            dims={name: size for name, size in recipe.dims.items() if name != dim},
            data={**data, number.name: float(total)},
        )
        self._samples = named(dim)
        self._rewrites = recipe.rewrites
        declared = (*problem.data, DataDeclaration(number))
        self.problem = replace(
            problem,
            objective=result.block,
            data=declared,
            constraints=(),
            checks=checks_of_samples(problem, dim),
            warnings=(),
        )
        self.rest: Model | None = None
        self.constraints: Model | None = None
        others = {dim.name: sizes[dim.name] for dim in problem.dims if dim.name in sizes}
        few = tuple(one for one in declared if {one.name, one.owner}.isdisjoint(names))
        free = replace(self.problem, data=few, checks=())
        one = {dim: 1} if any(own.name == dim for own in problem.dims) else {}
        alone = replace(self.recipe, dims={**others, **one}, labels={})
        if result.rest is not None:
            self.rest = Model._planned(alone, replace(free, objective=result.rest))
        if problem.constraints:
            own = replace(free, objective=build.const(0.0), constraints=problem.constraints)
            self.constraints = Model._planned(alone, own)

    def is_over_samples(self, node: Input) -> bool:
        """Whether data have an axis along the samples."""
        return self._samples in node.shape

    def __getstate__(self) -> tuple[Recipe, Problem, tuple[str, ...], Dim]:
        """The part that workers of a cluster need: g alone."""
        return self.recipe, self.problem, self._rewrites, self._samples

    def __setstate__(self, state: tuple[Recipe, Problem, tuple[str, ...], Dim]) -> None:
        self.recipe, self.problem, self._rewrites, self._samples = state
        self.rest = self.constraints = None

    def bound(self, arrays: Mapping[str, object], compress: bool = False) -> Model:
        """The model of g on a block; with `compress`, least squares may be compressed."""
        recipe = replace(self.recipe, data={**self.recipe.data, **arrays})
        if compress:
            recipe = replace(recipe, rewrites=self._rewrites)
        return Model._planned(recipe, self.problem)


def checks_of_samples(problem: Problem, dim: str) -> tuple[Check, ...]:
    """The checks that hold for all samples along a dim if they hold for each block of them."""
    number = number_of_samples(dim)
    rows = entries_along(problem, dim)
    pairs = [
        (check, for_each_block(check.condition, dim, number, rows)) for check in problem.checks
    ]
    return tuple(replace(one, condition=made) for one, made in pairs if made is not None)


def is_sum_over(problem: Problem, dim: str) -> bool:
    """Whether the objective is a sum over the samples along a dim."""
    rows = entries_along(problem, dim)
    return isinstance(block_sum(problem.objective, dim, number_of_samples(dim), rows), BlockSum)


def entries_along(problem: Problem, dim: str) -> dict[Dim, Input]:
    """The dims of the entries of sparse data over a dim, and the inputs that say where they are."""
    result: dict[Dim, Input] = {}
    for one in problem.data:
        if one.entries is None:
            continue
        for size, node in zip(one.entries.shape, one.entries.positions, strict=True):
            if size == named(dim):
                result.setdefault(one.shape[0], node)
    return result


def not_a_sum(problem: Problem, dim: str, obstacle: NoBlockSum) -> DomainError:
    """The error for an objective that is not a sum over samples, with the reason."""
    span: Span | None = problem.spans.get(obstacle.node)
    text = f"`{span.text}`" if span is not None and len(span.text) < 60 else "a part of it"
    if isinstance(obstacle.node, Input):
        text = f"`{obstacle.node.name}`"
    message = f"the objective is not a sum over blocks of `{dim}`: {text} {obstacle.reason}"
    remedy = "it must be a sum or mean over samples plus a part without samples"
    return DomainError(Diagnostic("E604", message, span, help=remedy))
