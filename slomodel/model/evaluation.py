"""Evaluation of a compiled model: points, kernels, values and derivatives."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from slomodel.codegen.entry import EntryName
from slomodel.codegen.kernels import Compiled, Evaluate, Kernels
from slomodel.codegen.runtime import empty_on_device, is_on_device
from slomodel.errors import Diagnostic, DomainError, MissingRule, TargetLimit
from slomodel.front.data.bind import Binding
from slomodel.front.data.points import FLOAT64, Point, Vector, VectorLayout, start, vector_layout
from slomodel.front.source import Recipe
from slomodel.ir.expr import Expr, Input
from slomodel.ir.walk import postorder
from slomodel.model.closed_sets import closed_set, is_closed, moved_inside
from slomodel.model.hessian_sparsity import hessian_pattern
from slomodel.model.plans import Plans
from slomodel.model.quantities import Quantities
from slomodel.model.residuals import Residuals
from slomodel.model.unconstrained import ChangeOfVariables, UserCoordinates
from slomodel.model.waiting import waiting
from slomodel.problem import Problem
from slomodel.reference import evaluate
from slomodel.rewrite.work import work
from slomodel.solve import Solution, Status
from slomodel.solve.coloured_hessian import ColouredHessian, coloured
from slomodel.solve.facts import Pattern
from slomodel.solve.options import whole
from slomodel.solve.sets.convex_set import Set

_MOST_ROWS = 5_000
"""Largest n for a dense Hessian, which then takes 200 MB."""

_MOST_DRAWS = 100
"""Starts drawn in search of one with a finite objective; as many as Stan draws."""


class Evaluating:
    """A compiled objective over a flat vector x (n,) and its derivatives."""

    def __init__(
        self,
        problem: Problem,
        binding: Binding,
        compiled: Compiled,
        plans: Plans,
        recipe: Recipe,
        change: ChangeOfVariables | None = None,
    ) -> None:
        """`change` is the change of variables to which an unconstrained model belongs."""
        self._problem = problem
        self._binding = binding
        self._compiled = compiled
        self._plans = plans
        self._recipe = recipe.self_contained(problem, binding)
        self._change = change
        self._sized = None if binding.unsized else vector_layout(problem, binding.sizes)
        self._kernels = Kernels(compiled, binding.arrays)
        self._few_colours: dict[int, ColouredHessian | None] = {}

    @property
    def name(self) -> str:
        return self._problem.name

    @property
    def backend(self) -> str:
        """The target whose kernels run: `c`, `numexpr` or `numpy`."""
        return self._compiled.target.name

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of the data that have no values yet."""
        return self._binding.missing

    @property
    def variables(self) -> dict[str, tuple[int, ...]]:
        """The shape of each variable by name. Raises ShapeError where a size is unknown."""
        return dict(self._vectors.shapes)

    @property
    def definitions(self) -> dict[str, tuple[int, ...]]:
        """The shape of each definition (`let`) by name. Raises ShapeError for an unknown size."""
        self._binding.require_counts()
        return {name: self._quantities.shape(name) for name in self._problem.definitions}

    @property
    def labels(self) -> dict[str, tuple[str, ...]]:
        """The labels of each dim that data index by labels, in the order of its positions."""
        return dict(self._binding.labels)

    @property
    def axis_labels(self) -> dict[str, tuple[tuple[str, ...], ...]]:
        """The labels along each axis of the variables and definitions with labelled axes.

        An axis without labels has ().
        """
        known = self._binding.labels
        if not known:
            return {}
        shapes = {variable.name: variable.shape for variable in self._problem.variables}
        shapes |= {name: node.shape for name, node in self._problem.definitions.items()}
        axes = {
            name: tuple(known.get(str(dim), ()) for dim in shape) for name, shape in shapes.items()
        }
        return {name: own for name, own in axes.items() if any(own)}

    @property
    def constants(self) -> dict[str, Vector]:
        """Tables of numbers written out in long sums, by their names in `source()`."""
        written = [d for d in self._problem.data if d.values is not None]
        return {d.name: np.array(self._binding.arrays[d.name]) for d in written}

    @property
    def data(self) -> dict[str, Vector]:
        """Copies of the data that have values, by name; index data count from 0."""
        arrays = self._binding.arrays
        own = [d.name for d in self._problem.data if d.values is None and d.name in arrays]
        return {name: np.array(arrays[name]) for name in own}

    @property
    def n(self) -> int:
        """The number of unknowns."""
        return self._vectors.n

    def pack(self, values: Mapping[str, ArrayLike]) -> Vector:
        """The vector x (n,) of named arrays. Raises ShapeError for a wrong name or shape."""
        return self._vectors.pack(values)

    def unpack(self, x: Point | Solution) -> dict[str, Vector]:
        """Copies of the named arrays in a vector x (n,)."""
        return self._vectors.unpack(self._point(x))

    def x0(self, seed: int = 0) -> Vector:
        """A start (n,), drawn from the distributions in the model's `init`s."""
        whole("seed", seed, 0)
        self._binding.require_sizes()
        coordinates = self._coordinates
        if coordinates is not None:
            return coordinates.start(seed)
        if self._change is not None:
            coordinates = UserCoordinates(self._change, self._binding)
            return coordinates.to_free(coordinates.start(seed), "the start")
        return moved_inside(self._problem, self._binding, start(self._problem, self._binding, seed))

    def _from_a_draw(self, run: Callable[[Vector | None], Solution], seed: int) -> Solution:
        """A run from x0(seed), or from the next seed whose x0 has a finite objective and gradient.

        `run(None)` is from x0(seed).
        """
        solution = run(None)
        if solution.status is not Status.nonfinite_start:
            return solution
        first = self.x0(seed)
        for other in range(seed + 1, seed + _MOST_DRAWS):
            x = self.x0(other)
            if np.array_equal(x, first):
                break  # Nothing is drawn.
            value, gradient = self.value_and_gradient(x)
            if np.isfinite(value) and np.isfinite(gradient).all():
                again = run(x)
                remark = f"x0({seed}) has no finite objective: started at x0({other})."
                return replace(again, message=f"{again.message} {remark}")
        return solution

    @property
    def within(self) -> Set | None:
        """The closed set of x (n,); None if there is none."""
        return self._within

    @cached_property
    def _within(self) -> Set | None:
        """The set in which the closed sets of variables keep x (n,); None if there are none."""
        return closed_set(self._problem, self._binding)

    @cached_property
    def _smooth(self) -> bool:
        """Whether the objective is proved continuously differentiable, for these data."""
        return self._plans.smooth(self._binding)

    def _in_closed_sets(self, x: Vector) -> dict[str, Vector]:
        """The arrays of the variables in closed sets in a vector x (n,)."""
        closed = {variable.name for variable in self._problem.variables if is_closed(variable)}
        arrays = self._vectors.unpack(x)
        return {name: array for name, array in arrays.items() if name in closed}

    def value(self, x: Point | Solution) -> float:
        """The objective at x (n,)."""
        return self._function("value")(self._given(x))

    def gradient(self, x: Point | Solution) -> Vector:
        """The gradient at x, both (n,); a fresh array."""
        return self.value_and_gradient(x)[1]

    def value_and_gradient(
        self, x: Point | Solution, out: Vector | None = None
    ) -> tuple[float, Vector]:
        """The objective and its gradient at x (n,), with common subexpressions evaluated once.

        The gradient is a fresh array, or `out` if that is given.
        """
        # Fast path for the usual arguments: the general checks take microseconds.
        fresh, sized = self._kernels.own.fresh, self._sized
        if (
            (out is None and fresh is not None and sized is not None)
            and (type(x) is np.ndarray and x.dtype is FLOAT64)
            and x.shape == sized.shape
        ):
            return fresh(x)
        point = self._given(x)
        gradient = self._empty(point) if out is None else self._vectors.receiver(out)
        return self._function("value_and_gradient")(point, gradient), gradient

    def hvp(self, x: Point | Solution, v: Point) -> Vector:
        """The product of the Hessian at x and v, all (n,)."""
        point = self._given(x)
        product = self._empty(point)
        self._function("hvp")(point, self._given(v, "v"), product)
        return product

    def constraints(self, x: Point | Solution) -> dict[str, Vector]:
        """How far each constraint is violated at x (n,), by name: not at all where it is <= 0.

        For an equation it is the difference of its sides, which must be 0.
        """
        self._binding.require_data()
        limits = self._problem.constraints
        values = self._values(self._point(x))
        result: dict[str, Vector] = {}
        arrays = evaluate([limit.value for limit in limits], values, self._binding.sizes)
        for one, array in zip(limits, arrays, strict=True):
            excess = np.asarray(array, dtype=np.float64)
            result[one.name] = np.asarray(np.maximum(result.get(one.name, excess), excess))
        return result

    @overload
    def hessian(self, x: Point | Solution, *, sparse: Literal[False] = False) -> Vector: ...
    @overload
    def hessian(self, x: Point | Solution, *, sparse: Literal[True]) -> Pattern: ...

    def hessian(self, x: Point | Solution, *, sparse: bool = False) -> Vector | Pattern:
        """The Hessian (n, n) at x (n,), from n products with unit vectors; for n up to 5,000.

        With `sparse` it is a csc_array with the entries of `hessian_sparsity`, from as many
        products as its pattern needs: unknowns without a common entry share one.
        """
        point = self._point(x)
        if sparse:
            own = self._coloured
            return own.matrix(own.entries(lambda v, out: np.copyto(out, self.hvp(point, v))))
        if point.size > _MOST_ROWS:
            message = f"a Hessian of {point.size} rows is too large; the limit is {_MOST_ROWS}"
            raise DomainError(Diagnostic("E320", message, help="use hvp(x, v), its product with v"))
        matrix: Vector = np.array([self.hvp(point, unit) for unit in np.eye(point.size)])
        return 0.5 * (matrix + matrix.T)

    def hessian_sparsity(self) -> Pattern:
        """The pattern of the Hessian: a Boolean csr_array (n, n), symmetric, with its diagonal.

        Entries that are not stored are 0 at every x, by the operations and indices of the model;
        stored ones may be 0 too. Raises DomainError for more than 5,000 unknowns if it is dense.
        """
        self._binding.require_data()
        if self._pattern is not None:
            return self._pattern.copy()
        if self.n > _MOST_ROWS:
            message = "the pattern of the Hessian has too many entries to be stored"
            raise DomainError(Diagnostic("E320", message, help="use hvp(x, v), its product with v"))
        from scipy.sparse import csr_array

        return csr_array(np.ones((self.n, self.n), dtype=bool))

    @cached_property
    def _pattern(self) -> Pattern | None:
        return hessian_pattern(self._compiled, self._binding.arrays)

    @cached_property
    def _operations(self) -> float:
        """Operations of a value and gradient."""
        own = self._compiled.derivatives
        return work((own.objective, *own.gradient), self._compiled.numbers)

    def _in_few_colours(self, most: int) -> ColouredHessian | None:
        """The pattern of the Hessian in at most `most` colours; cached for further runs."""
        if most not in self._few_colours:
            pattern = self._pattern
            found = None if pattern is None else coloured(pattern, most, factored=True)
            self._few_colours[most] = found
        return self._few_colours[most]

    @cached_property
    def _coloured(self) -> ColouredHessian:
        result = coloured(self.hessian_sparsity())
        assert result is not None
        return result

    def evaluate(self, name: str, x: Point | Solution) -> Vector:
        """The value of a definition, a variable or the objective by name at x (n,).

        Definitions that the objective does not use have values too. The arithmetic is that of
        NumPy in float64 on every backend.
        """
        return self._quantities.value(name, self.unpack(x))

    def shape_of(self, name: str) -> tuple[int, ...]:
        """The shape of a definition or variable. Raises DomainError for an unknown name."""
        return self._quantities.shape(name)

    @cached_property
    def _quantities(self) -> Quantities:
        return Quantities(self._problem, self._binding)

    def residuals(self, x: Point) -> Vector:
        """r (m,) at x (n,) for an objective Σ r², up to a constant, as the compiler reads it.

        Each residual is multiplied by the square root of its weight. Raises MissingRule for an
        objective that is not a sum of squares with nonnegative weights.
        """
        return self._required_squares().residuals(self._vectors.vector(x))

    def jacobian(self, x: Point) -> Vector:
        """The Jacobian (m, n) of `residuals` at x (n,), from n products with unit vectors."""
        return self._required_squares().jacobian(self._vectors.vector(x))[1]

    def _required_squares(self) -> Residuals:
        self._binding.require_data()
        if self._squares is None:
            message = "the objective is not seen to be a sum of squares with nonnegative weights"
            raise MissingRule(Diagnostic("E604", message, help="write it as sum((…)^2 …)"))
        return self._squares

    @cached_property
    def _squares(self) -> Residuals | None:
        """The residuals, if the objective is a sum of squares with nonnegative weights."""
        if not self._compiled.derivatives.squares or self._compiled.target.on_device:
            return None
        result = Residuals(self._compiled, self._binding.arrays, self.n)
        return result if result.exists else None

    @cached_property
    def _coordinates(self) -> UserCoordinates | None:
        """The layouts in x and in u; None for a model without open sets."""
        change = self._plans.change(self._binding)
        return None if change is None else UserCoordinates(change, self._binding)

    def _function(self, name: EntryName) -> Evaluate:
        self._binding.require_data()
        return self._kernel(name)

    def _kernel(self, name: EntryName) -> Evaluate:
        """The kernel of this name for the calling thread; a long compilation is displayed."""
        result = self._kernels.made(name)
        if result is None:
            with waiting(f"compiling {name} of {self.name} for {self.backend}"):
                try:
                    result = self._kernels.function(name)
                except MemoryError as error:
                    problem, sizes = self._problem, self._binding.sizes
                    raise memory_ran_out(error, problem, sizes) from None
        return result

    @property
    def _vectors(self) -> VectorLayout:
        if self._sized is None:
            self._binding.require_sizes()
        assert self._sized is not None
        return self._sized

    def _point(self, x: Point | Solution, what: str = "x") -> Vector:
        """The vector (n,) of a point: a vector, named arrays or a Solution."""
        return self._vectors.vector(self._of_solution(x), what)

    def _of_solution(self, x: Point | Solution) -> Point:
        """The point of a Solution in this model's variables; other points as they are."""
        if not isinstance(x, Solution):
            return x
        return x.x if self._change is None or x.unconstrained is None else x.unconstrained

    def _given(self, x: Point | Solution, what: str = "x") -> Vector:
        """`x` as a vector (n,) for the kernels; an array of their kind is not copied."""
        on_device = self._compiled.target.on_device
        if (
            (type(x) is np.ndarray and x.dtype == self._compiled.precision)
            and x.shape == self._vectors.shape
            and not on_device
        ):
            return x
        x = self._of_solution(x)
        return (self._vectors.device_vector if on_device else self._vectors.vector)(x, what)

    def _empty(self, point: Vector) -> Vector:
        """An uninitialised array (n,), on the same device as `point`."""
        kind = self._compiled.precision
        return empty_on_device(self.n, kind) if is_on_device(point) else np.empty(self.n, kind)

    def _values(self, x: Vector) -> dict[Input, Vector]:
        values = self._problem.at(self.unpack(x))
        return values | {d.node: self._binding.arrays[d.name] for d in self._problem.data}


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
