"""What a compiled model reports about itself: its formula, its compilation, and checks of it."""

from __future__ import annotations

import numpy as np

from slomodel.codegen.automatic import Automatic
from slomodel.front.data.points import Point, Vector
from slomodel.front.explanation import explanation
from slomodel.front.lints.gradient_check import gradient_deviation
from slomodel.front.nonfinite import nonfinite_origin
from slomodel.html import table
from slomodel.ir.dims import show_shape
from slomodel.model.evaluation import Evaluating
from slomodel.model.proving import Proving
from slomodel.solve import Solution


class Reporting(Proving):
    """A model that reports on itself, and is checked against the reference interpreter."""

    def latex(self) -> str:
        """Objective, definitions and functions as LaTeX, in index notation."""
        return self._recipe.latex()

    def _repr_latex_(self) -> str | None:
        return self._recipe.notebook()

    def _repr_html_(self) -> str | None:
        """The formula and a table of names, for notebooks; None leaves it to LaTeX."""
        formula, binding = self._recipe.formula(), self._binding
        if formula is None:
            return None
        given = {True: "given", False: "missing"}
        rows = [
            ("variable", variable.name, show_shape(variable.shape), "")
            for variable in self._problem.variables
        ]
        rows += [
            ("data", one.name, show_shape(one.shape), given[one.name in binding.arrays])
            for one in self._problem.data
        ]
        rows += [("size", name, str(size), "") for name, size in binding.sizes.items()]
        return formula + table((self.name or "model", "", "", ""), rows)

    def explain(self) -> str:
        """Report on the compilation: shapes, smoothness, rewrites, and where kernels run."""
        report = explanation(self._problem, self._binding, self._plans.changes(self._binding))
        change = self._plans.change(self._binding)
        if change is not None and self._binding.has_all_sizes:
            report += f"\nsolver     moves {self.unconstrained.n} unconstrained variables"
        target = self._compiled.target
        reason = (target.reason or target.note) if isinstance(target, Automatic) else None
        return f"{report}\nbackend    {self.backend}" + (f": {reason}" if reason else "")

    def check_gradient(self, x: Point | Solution | None = None) -> dict[str, float]:
        """Largest deviation of the gradient at x (default `x0()`), for each variable.

        It is relative to the gradient's norm, and measured against complex steps through the
        reference interpreter, which shares no code with the kernels. About 1e-15 is expected; at
        kinks it may be large.
        """
        vector = self.x0() if x is None else self._point(x)
        parts = self.unpack(self.gradient(vector))
        gradient = self._problem.at(parts)
        values, sizes = self._values(vector), self._binding.sizes
        rng = np.random.default_rng(0)
        return gradient_deviation(self._problem.objective, values, sizes, gradient, rng)

    def trace_nonfinite(self, x: Point | Solution) -> str | None:
        """Origin of a NaN or infinity in the value or gradient at x (n,); None if all are finite.

        The sentence names the first sub-expression that computes one from finite numbers, its line,
        the element and its operands.
        """
        self._binding.require_data()
        vector = self._point(x)
        value, gradient = self.value_and_gradient(vector)
        finite = np.isfinite(value) and np.all(np.isfinite(gradient))
        return None if finite else _origin(self, vector)

    def _diagnose_free(self, u: Vector) -> str | None:
        """Origin of a NaN or infinity at the solver's u (m,), in the user's variables if it can be.

        A value may be finite in them where the change of variables has none.
        """
        users, inner = self._coordinates, self.unconstrained
        with np.errstate(all="ignore"):
            result = None if users is None else _origin(self, users.to_user(u))
        return result or _origin(inner, u)


def _origin(model: Evaluating, x: Vector) -> str | None:
    """Origin of a NaN or infinity in the value or gradient of a model at x (n,)."""
    roots = (model._problem.objective, *model._plans.written.gradient)
    return nonfinite_origin(model._problem, roots, model._values(x), model._binding.sizes)
