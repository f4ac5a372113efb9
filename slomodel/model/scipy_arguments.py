"""A model as the arguments of `scipy.optimize.minimize`: functions, bounds, constraints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from slomodel.errors import Diagnostic, DomainError
from slomodel.front.data.points import Vector
from slomodel.model.compiled_constraints import CompiledConstraints
from slomodel.solve.sets.ball import EuclideanBall
from slomodel.solve.sets.balls import RowBalls
from slomodel.solve.sets.box import Box
from slomodel.solve.sets.convex_set import Set
from slomodel.solve.sets.product import ProductSet, SetPart
from slomodel.solve.sets.reordered import ReorderedSet
from slomodel.solve.sets.simplex import Simplex
from slomodel.solve.sets.sphere import Sphere

if TYPE_CHECKING:
    from scipy.optimize import NonlinearConstraint
    from scipy.sparse.linalg import LinearOperator


def scipy_arguments(
    value: Callable[[Vector], float],
    gradient: Callable[[Vector], Vector],
    hvp: Callable[[Vector, Vector], Vector],
    within: Set | None,
    constraints: CompiledConstraints | None,
    sign: float,
) -> dict[str, object]:
    """`fun`, `jac` and `hessp`, times a sign, with `bounds` and `constraints` where needed."""
    result: dict[str, object] = {
        "fun": lambda x: sign * value(x),
        "jac": lambda x: sign * gradient(x),
        "hessp": lambda x, v: sign * hvp(x, v),
    }
    result |= {} if within is None else for_scipy(within)
    if constraints is not None:
        before = result.get("constraints", [])
        assert isinstance(before, list)
        result["constraints"] = [*before, *nonlinear(constraints)]
    return result


def nonlinear(constraints: CompiledConstraints) -> list[NonlinearConstraint]:
    """The equations and the inequalities c(x) <= 0, with Jacobians and Hessians."""
    from scipy.optimize import NonlinearConstraint

    equations, result = constraints.equations, []
    for of, low in ((equations, 0.0), (~equations, -np.inf)):
        if of.any():
            rows = _Rows(constraints, np.flatnonzero(of))
            own = (rows.values, low, 0.0, rows.jacobian, rows.hessian)
            result.append(NonlinearConstraint(*own))
    return result


@dataclass(frozen=True, slots=True)
class _Rows:
    """Some rows (k,) of the constraints as functions of x (n,)."""

    constraints: CompiledConstraints
    places: NDArray[np.intp]

    def values(self, x: Vector) -> Vector:
        nothing = np.zeros(self.constraints.m)
        _, _, c = self.constraints.evaluate(np.asarray(x, dtype=np.float64), nothing)
        rows: Vector = c[self.places]
        return rows

    def jacobian(self, x: Vector) -> Vector:
        rows: Vector = self.constraints.jacobian(np.asarray(x, dtype=np.float64))[self.places]
        return rows

    def hessian(self, x: Vector, y: Vector) -> LinearOperator:
        """The Hessian of ⟨y, c⟩ (n, n) by its products."""
        from scipy.sparse.linalg import LinearOperator

        constraints = self.constraints
        weights = np.zeros(constraints.m)
        weights[self.places] = y

        def product(v: Vector) -> Vector:
            return constraints.product(x, weights, np.ravel(v), 0.0)[0]

        return LinearOperator((constraints.n, constraints.n), matvec=product, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class SquaredDistances:
    """‖y_i − c_i‖² of some lines y_i of x (n,), at the `positions` (m, K), from their `centres`."""

    positions: NDArray[np.intp]
    centres: Vector
    n: int

    def __call__(self, x: Vector) -> Vector:
        squares: Vector = ((x[self.positions] - self.centres) ** 2).sum(axis=1)
        return squares

    def jacobian(self, x: Vector) -> Vector:
        rows = np.zeros((len(self.positions), self.n))
        slopes = 2.0 * (x[self.positions] - self.centres)
        np.put_along_axis(rows, self.positions, slopes, axis=1)
        return rows

    @staticmethod
    def of(part: SetPart, n: int) -> tuple[SquaredDistances, float, float] | None:
        """The distances with their least and largest value; None for sets without any."""
        order, one = np.arange(part.start, part.stop), part.set
        if isinstance(one, ReorderedSet):
            order, one = order[one.order], one.of
        if not isinstance(one, EuclideanBall | RowBalls | Sphere):
            return None
        length = len(order) if isinstance(one, EuclideanBall) else one.K
        lines = SquaredDistances(order.reshape(-1, length), one.centre.reshape(-1, length), n)
        high = one.radius**2
        return lines, high if isinstance(one, Sphere) else -np.inf, high


def for_scipy(where: Set) -> dict[str, object]:
    """`bounds`, and `constraints` where bounds do not suffice, for `scipy.optimize.minimize`."""
    from scipy.optimize import Bounds, LinearConstraint, NonlinearConstraint

    parts = where.parts if isinstance(where, ProductSet) else ()
    n = parts[-1].stop if parts else len(where.interior_point())
    low, high, constraints = np.full(n, -np.inf), np.full(n, np.inf), []
    for part in parts or (SetPart(0, n, where),):
        one, of = part.set, part.of
        if isinstance(one, Box):
            low[of], high[of] = one.low, one.high
        elif isinstance(one, Simplex):
            low[of] = 0.0
            sums = np.eye(n)[of].reshape(*one.shape, n).sum(axis=one.axis).reshape(-1, n)
            constraints.append(LinearConstraint(sums, 1.0, 1.0))
        elif (result := SquaredDistances.of(part, n)) is not None:
            lines, *ends = result
            constraints.append(NonlinearConstraint(lines, *ends, lines.jacobian))
        else:
            message = "SciPy has no bounds or constraints for semidefinite matrices"
            raise DomainError(Diagnostic("E604", message, help="use Model.solve"))
    bounds: dict[str, object] = {"bounds": Bounds(low, high)}
    return bounds | ({"constraints": constraints} if constraints else {})
