"""Minibatches: value and gradient on random samples, for optimisers of other packages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from slomodel.errors import Diagnostic, DomainError
from slomodel.front.data.points import Point, Vector
from slomodel.front.data.sizes import single_name
from slomodel.model.blocks.evaluate import evaluated
from slomodel.model.blocks.samples import SampleSum, entries_along, is_sum_over
from slomodel.model.model import Model
from slomodel.problem import Problem
from slomodel.solve import Solution
from slomodel.solve.options import whole


class Minibatches:
    """Estimates of an objective and its gradient from samples; see `minibatches`.

    The objective is a sum g over N samples plus a part h without samples. A batch of m samples
    gives (N/m) g on the batch plus h, whose mean over all batches is the objective.
    """

    def __init__(self, model: Model, size: int, seed: int, dim: str | None) -> None:
        model._binding.require_data()
        problem, given = model._problem, model._recipe.data
        result = [
            one.name
            for one in problem.dims
            if dim in (None, one.name)
            and is_sum_over(problem, one.name)
            and not entries_along(problem, one.name)
        ]
        if len(result) != 1:
            raise _no_samples(problem, result, dim)
        (self.dim,) = result
        self.total = model._binding.sizes[self.dim]
        self.size = whole("size", size, 1)
        if self.size > self.total:
            message = f"a batch of {size} is larger than `{self.dim}`, which is {self.total}"
            raise DomainError(Diagnostic("E602", message, help="take a smaller size"))
        self._seed = whole("seed", seed, 0)
        names = {one.name: [single_name(axis) for axis in one.shape] for one in problem.data}
        self._axes = {
            name: axes.index(self.dim)
            for name, axes in names.items()
            if self.dim in axes and name in given
        }
        self._arrays = {name: np.asarray(given[name]) for name in self._axes}
        sizes = model._binding.sizes
        self._parts = SampleSum(
            *(model._recipe, problem, self.dim, self.total, self._axes.keys(), sizes)
        )
        self._whole = model
        self._epoch = (-1, np.arange(0))
        self._model = self._parts.bound(self._at(self._chosen(0)))

    @property
    def batches(self) -> int:
        """The number of batches in an epoch, in which each sample is taken at most once."""
        return self.total // self.size

    def value_and_gradient(self, x: Point | Solution, step: int) -> tuple[float, Vector]:
        """The estimates of the objective and of its gradient at x (n,) from the batch of a step.

        The batches of an epoch are disjoint; `step` counts from 0, and determines the batch.
        """
        point = self._whole._point(x)
        self._model = self._model.bind(**self._at(self._chosen(whole("step", step, 0))))
        value, gradient = evaluated(self._model, "value_and_gradient", point, None)
        factor = self.total / self.size
        assert gradient is not None
        value, gradient = factor * value, factor * gradient
        if self._parts.rest is not None:
            more, slope = evaluated(self._parts.rest, "value_and_gradient", point, None)
            assert slope is not None
            value, gradient = value + more, gradient + slope
        return value, gradient

    def value(self, x: Point | Solution, step: int) -> float:
        """The estimate of the objective at x (n,) from the batch of a step."""
        return self.value_and_gradient(x, step)[0]

    def _chosen(self, step: int) -> NDArray[np.int64]:
        """The positions of the samples in the batch of a step, in increasing order."""
        epoch, k = divmod(step, self.batches)
        if self._epoch[0] != epoch:
            order = np.random.default_rng([self._seed, epoch]).permutation(self.total)
            self._epoch = (epoch, order)
        return np.sort(self._epoch[1][k * self.size : (k + 1) * self.size])

    def _at(self, chosen: NDArray[np.int64]) -> Mapping[str, NDArray[np.generic]]:
        return {
            name: np.take(array, chosen, axis=self._axes[name])
            for name, array in self._arrays.items()
        }


def minibatches(model: Model, size: int, seed: int = 0, *, dim: str | None = None) -> Minibatches:
    """Value and gradient of a model on random samples of a size, for optimisers of other packages.

    The objective has to be a sum or mean over the samples along a dim, which `dim` names if there
    are several, plus a part without samples. `value_and_gradient(x, step)` of the result estimates
    it without bias from the batch that `seed` and the step determine.
    """
    if not isinstance(model, Model):
        remedy = "slomodel.minibatches(slomodel.compile(text, data=…), 100)"
        message = "minibatches are those of a compiled model with data"
        raise DomainError(Diagnostic("E602", message, help=remedy))
    return Minibatches(model, size, seed, dim)


def _no_samples(problem: Problem, dims: Sequence[str], dim: str | None) -> DomainError:
    if dims:
        names = " and ".join(f"`{one}`" for one in dims)
        message, remedy = f"samples may be along {names}", f"give dim={dims[0]!r}"
    else:
        where = "any dim" if dim is None else f"`{dim}`"
        message = f"the objective is not a sum or mean over samples along {where}"
        remedy = "slomodel.over_blocks states the reason; model.solve() takes all data at once"
    return DomainError(Diagnostic("E604", message, help=remedy))
