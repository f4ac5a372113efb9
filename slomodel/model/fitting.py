"""From a fit to answers: predictions and the uncertainty of a solution's quantities."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from slomodel.errors import Diagnostic, DomainError
from slomodel.front.data.bind import Binding, bind
from slomodel.front.data.points import Vector
from slomodel.front.data.user_arrays import columns_of
from slomodel.front.source import Recipe
from slomodel.ir.dims import Shape
from slomodel.ir.walk import inputs
from slomodel.model.evaluation import Evaluating
from slomodel.model.inference import Curvature, FittedPoint, Scale, UncertaintyOptions
from slomodel.model.interval_scales import (
    ends_of_variable,
    scale_of_graph,
    scale_of_variable,
)
from slomodel.model.quantities import Quantities
from slomodel.model.unconstrained import UserCoordinates
from slomodel.problem import Problem
from slomodel.solve import Solution, Status
from slomodel.solve.uncertainty import Linearised, Uncertainty

_SLOW = (Status.max_iter, Status.max_time, Status.max_nfev, Status.line_search_stalled)
_MOST_COMPARED = 100
_TINY_STEP = 1e-5
"""Length of a step, relative to the point, that reaches nothing within a usual run."""
_UNLIKE = 1e4


class Fitting(Evaluating, ABC):
    """A compiled objective with the answers that a solution gives: see `Solution`."""

    @property
    @abstractmethod
    def unconstrained(self) -> Evaluating:
        """The model in variables without open sets."""

    def predict(
        self, solution: Solution, name: str | None = None, data: object = None
    ) -> Vector | dict[str, Vector]:
        """A definition on new data, or all that the data determine: `Solution.predict`."""
        binding = self._binding if data is None else self._on_new_rows(data)
        quantities = Quantities(self._problem, binding)
        parts = self.unpack(solution.x)
        if name is not None:
            return quantities.value(name, parts)
        names = self._problem.definitions
        return {one: quantities.value(one, parts) for one in names if quantities.computable(one)}

    def uncertainty_of(
        self,
        solution: Solution,
        scale: Scale = "auto",
        curvature: Curvature = "auto",
        factor: float = 1.0,
        residuals: int | None = None,
    ) -> Uncertainty:
        """The uncertainty of this model's quantities at a solution: `Solution.uncertainty`."""
        if self._problem.constraints:
            message = "standard errors are those of a minimum without constraints"
            remedy = "leave out `subject to`, or declare the sets of variables"
            raise DomainError(Diagnostic("E604", message, help=remedy))
        options = UncertaintyOptions(scale, curvature, factor, residuals)
        self._binding.require_data()
        inner, coordinates = self.unconstrained, self._coordinates
        point = solution.x if solution.unconstrained is None else solution.unconstrained
        if coordinates is not None and point.shape != (inner.n,):
            point = coordinates.to_free(solution.x, "the solution")
        parts = inner.unpack(point)
        fit = FittedPoint(
            inner._problem,
            inner._quantities,
            inner,
            solution,
            point,
            inner._within,
            self.variables,
            self._linearised(parts),
            self._to_user(coordinates),
            named_elements(parts, self.axis_labels),
            frozenset(filter(self._is_joint, self.variables)),
        )
        return fit.uncertainty(options)

    def _with_remark_on_scales(self, solution: Solution) -> Solution:
        remark = self._remark_on_scales(solution)
        return replace(solution, message=f"{solution.message} {remark}") if remark else solution

    def _remark_on_scales(self, solution: Solution) -> str:
        """A sentence on steps that L1 makes tiny, and on the unknown whose scale makes L1 large.

        Empty for runs that ended well, without constants, or with more unknowns than are compared.
        """
        inner = self.unconstrained
        point = solution.x if solution.unconstrained is None else solution.unconstrained
        constants = [epoch.L1 for epoch in solution.epochs if epoch.L1]
        if solution.status not in _SLOW or not constants or not 1 < inner.n <= _MOST_COMPARED:
            return ""
        constant = constants[-1]
        step = solution.gradient_norm / constant
        if not step <= _TINY_STEP * max(1.0, float(np.linalg.norm(point))):
            return ""
        text = f"With L1 = {constant:.3g} a step is {step:.2g} long."
        with np.errstate(all="ignore"):
            curvature = np.abs(np.diag(inner.hessian(point)))
        if np.isfinite(curvature).all() and curvature.max() > _UNLIKE * curvature.min() > 0.0:
            element = named_elements(inner.unpack(point), {})
            most, least = element(int(curvature.argmax())), element(int(curvature.argmin()))
            ratio = float(curvature.max() / curvature.min())
            text += (
                f" The curvature along `{most}` is {ratio:.2g} times that along `{least}`: divide "
                f"the data that multiply `{most}` by about {np.sqrt(ratio):.1g}."
            )
        return f"{text} A smaller D gives a smaller L1, and method='auto' needs none."

    def _to_user(
        self, coordinates: UserCoordinates | None
    ) -> Callable[[Vector], dict[str, Vector]]:
        def to_user(u: Vector) -> dict[str, Vector]:
            return self.unpack(u if coordinates is None else coordinates.to_user(u))

        return to_user

    def _linearised(
        self, parts: Mapping[str, Vector]
    ) -> Callable[[str, Mapping[str, object] | None], Linearised]:
        """Values and Jacobians of quantities by the solver's variables, whose arrays are given."""

        def linearised(name: str, data: Mapping[str, object] | None = None) -> Linearised:
            binding = self._binding if data is None else self._on_new_rows(data)
            change = self._plans.change(self._binding)
            problem = self._problem
            if change is not None:
                problem, binding = change.problem, change.binding(binding)
            result = Quantities(problem, binding, change)
            value, jacobian = result.value(name, parts), result.jacobian(name, parts)
            own = next((one for one in self._problem.variables if one.name == name), None)
            scale = None if own is None else scale_of_variable(own, value, jacobian)
            scale = scale or scale_of_graph(result.graph(name), result, parts, name)
            ends = None if own is None else ends_of_variable(own, result, parts)
            return Linearised(value, jacobian, self._labelled(name, result), scale, ends)

        return linearised

    def _labelled(self, name: str, quantities: Quantities) -> tuple[str, ...]:
        """The names of the elements of a quantity, with labels where its dims have them."""
        known = self._binding.labels
        axes = [known.get(str(dim), ()) for dim in quantities.graph(name).shape]
        return tuple(_element(name, index, axes) for index in np.ndindex(quantities.shape(name)))

    def _on_new_rows(self, data: object) -> Binding:
        given = columns_of(data, [one.name for one in self._problem.data])
        return rebound(self._problem, self._recipe, self._binding, given)

    def _is_joint(self, name: str) -> bool:
        """Whether a variable's elements depend on several of the solver's unknowns each."""
        one = next(v for v in self._problem.variables if v.name == name)
        if one.set is None or not one.set.is_open:
            return False
        ends = inputs(*one.set.numbers)
        return one.set.kind != "open_box" or any(node.role == "variable" for node in ends)


def named_elements(
    parts: Mapping[str, Vector], labels: Mapping[str, tuple[tuple[str, ...], ...]]
) -> Callable[[int], str]:
    """The name of element k of a vector of these arrays."""

    def element(k: int) -> str:
        for name, array in parts.items():
            if k < array.size:
                index = tuple(int(one) for one in np.unravel_index(k, array.shape))
                return _element(name, index, labels.get(name, ((),) * array.ndim))
            k -= array.size
        raise IndexError(k)

    return element


def _element(name: str, index: tuple[int, ...], axes: object) -> str:
    if not index:
        return name
    assert isinstance(axes, list | tuple)
    shown = [axis[k] if axis else str(k) for axis, k in zip(axes, index, strict=True)]
    return f"{name}[{', '.join(shown)}]"


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
    fixed = {name for variable in problem.variables for name in _names(variable.shape)}
    fixed |= binding.labels.keys()
    dims = {name: size for name, size in binding.sizes.items() if name in fixed}
    own = {dim.name for dim in problem.dims}
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
