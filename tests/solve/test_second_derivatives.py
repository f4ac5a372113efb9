"""Directions that use the Hessian, and conjugate gradients, against dense linear algebra."""

from dataclasses import dataclass

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from solve.objectives import Vector

from slomodel.errors import DomainError
from slomodel.solve import METHODS, Functions, solve
from slomodel.solve.directions.conjugate_gradient import ConjugateGradient
from slomodel.solve.directions.direction import SecantPair
from slomodel.solve.directions.newton import Newton, balance
from slomodel.solve.directions.newton_cg import NewtonCG
from slomodel.solve.directions.table import DIRECTIONS
from slomodel.solve.norms import norm
from slomodel.solve.objective import Evaluator
from slomodel.solve.run_options import RunOptions
from slomodel.solve.subroutine import Iterate


class Rosenbrock:
    """SciPy's, with its Hessian."""

    n = 6

    def value(self, x: Vector) -> float:
        return float(scipy.optimize.rosen(x))

    def value_and_gradient(self, x: Vector, out: Vector | None = None) -> tuple[float, Vector]:
        return self.value(x), scipy.optimize.rosen_der(x)

    def hvp(self, x: Vector, v: Vector) -> Vector:
        return scipy.optimize.rosen_hess_prod(x, v)


@dataclass
class Quadratic:
    """½ xᵀHx."""

    H: Vector

    @property
    def n(self) -> int:
        return len(self.H)

    def value(self, x: Vector) -> float:
        return 0.5 * float(x @ self.H @ x)

    def value_and_gradient(self, x: Vector, out: Vector | None = None) -> tuple[float, Vector]:
        return self.value(x), self.H @ x

    def hvp(self, x: Vector, v: Vector) -> Vector:
        return self.H @ v


def symmetric(seed: int, eigenvalues: list[float]) -> Vector:
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(len(eigenvalues),) * 2))[0]
    H = Q @ np.diag(eigenvalues) @ Q.T
    return 0.5 * (H + H.T)


def point_of(problem: Quadratic, x: Vector) -> Iterate:
    f, g = problem.value_and_gradient(x)
    return Iterate(x, f, g, norm(g))


def proposed(rule: type[Newton | NewtonCG], H: Vector, x: Vector) -> Vector:
    problem = Quadratic(H)
    at = point_of(problem, x)
    v = np.empty_like(x)
    vnorm = rule(Evaluator(problem, RunOptions()), at, 1.0).propose(at, v)
    assert vnorm == pytest.approx(norm(v))
    return v


@pytest.mark.parametrize("rule", [Newton, NewtonCG])
@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_the_step_to_the_minimum_of_a_quadratic(
    rule: type[Newton | NewtonCG], scale: float
) -> None:
    H = scale * symmetric(3, [0.5, 1.0, 2.0, 7.0, 9.0])
    x = np.array([1.0, -2.0, 0.3, 0.0, 4.0])
    loosest = 0.5 if rule is NewtonCG else 1e-10
    v = proposed(rule, H, x)
    assert norm(H @ (x + v)) <= loosest * norm(H @ x)
    assert (H @ x / scale) @ v < 0.0


def test_newton_in_units_that_differ_by_1e12() -> None:
    units = np.array([1e-6, 1.0, 1e6])
    H = symmetric(5, [1.0, 2.0, 3.0]) * np.outer(1.0 / units, 1.0 / units)
    x = units * np.array([1.0, -1.0, 2.0])
    assert_allclose(proposed(Newton, H, x), -x, rtol=1e-10)
    assert_allclose(np.diag(balance(H)[:, None] * H * balance(H)), 1.0)


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 6), scale=st.sampled_from([1e-9, 1.0, 1e9]))
def test_they_descend_where_the_hessian_is_indefinite(seed: int, n: int, scale: float) -> None:
    generator = np.random.default_rng(seed)
    B = scale * generator.normal(size=(n, n))
    H, x = B + B.T, generator.normal(size=n)
    if norm(H @ x) == 0.0:
        return
    for rule in (Newton, NewtonCG):
        assert (H @ x) @ proposed(rule, H, x) < 0.0


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 6))
def test_conjugate_gradients_descend_whatever_the_step(seed: int, n: int) -> None:
    generator = np.random.default_rng(seed)
    s, y, g = generator.normal(size=(3, n))
    direction = ConjugateGradient(n)
    direction.learn(SecantPair(s, y, float(s @ y), norm(s), norm(y)))
    v = np.empty(n)
    direction.propose(Iterate(np.zeros(n), 0.0, g, norm(g)), v)
    assert g @ v <= -(7.0 / 8.0 - 1e-12) * (g @ g)


def test_conjugate_gradients_are_conjugate_after_an_exact_step() -> None:
    H = symmetric(1, [1.0, 3.0, 8.0])
    x, direction = np.array([1.0, 2.0, -1.0]), ConjugateGradient(3)
    steps: list[Vector] = []
    for _ in range(3):
        g, v = H @ x, np.empty(3)
        direction.propose(Iterate(x, 0.0, g, norm(g)), v)
        s = -(g @ v) / (v @ H @ v) * v
        y = H @ s
        direction.learn(SecantPair(s, y, float(s @ y), norm(s), norm(y)))
        steps.append(s)
        x = x + s
    assert norm(x) <= 1e-12
    gram = np.array(steps) @ H @ np.array(steps).T
    assert_allclose(gram - np.diag(np.diag(gram)), 0.0, atol=1e-12 * np.abs(gram).max())


@pytest.mark.parametrize("direction", [k for k, rule in DIRECTIONS.items() if not rule.squares])
@pytest.mark.parametrize("method", ["auto", "norm-armijo"])
def test_every_direction_solves_rosenbrock(direction: str, method: str) -> None:
    assert "direction" in METHODS[method].options
    found = solve(Rosenbrock(), np.full(6, -1.2), method=method, direction=direction, gtol=1e-9)
    assert found.success
    assert found.parameters["direction"] == direction
    x = np.abs(scipy.optimize.rosen_der(found.x)).max()
    assert x <= 1e-6
    assert bool(found.nhev) == ("newton" in direction or direction == "bfgs")


def test_newton_needs_few_steps() -> None:
    for direction in ("newton", "newton-cg"):
        found = solve(Rosenbrock(), np.full(6, -1.2), direction=direction, gtol=1e-9)
        assert found.nit < 60
    maximum = solve(
        Quadratic(-symmetric(2, [1.0, 5.0])), [1.0, 2.0], sense="maximize", direction="newton"
    )
    assert maximum.success
    assert maximum.nit <= 3


@pytest.mark.parametrize("direction", ["newton", "newton-cg"])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_plain_functions_are_differenced(direction: str, scale: float) -> None:
    whole = Rosenbrock()
    plain = Functions(
        lambda x: whole.value(x / scale),
        lambda x: whole.value_and_gradient(x / scale)[1] / scale,
        6,
    )
    x0 = np.full(6, -1.2 * scale)
    found = solve(
        plain, x0, direction=direction, gtol=1e-9 / max(scale, 1.0), delta_bar=3.0 * scale
    )
    assert found.success
    assert_allclose(found.x, scale, rtol=1e-6)
    assert found.nhev == 0
    assert found.njev > found.nit + 1 + 2 * min(found.nit, 6)


def test_what_they_need_is_requested() -> None:
    with pytest.raises(DomainError, match=r"a sum of squares that the compiler sees"):
        solve(Quadratic(np.eye(2)), np.ones(2), direction="gauss-newton")
    with pytest.raises(DomainError, match=r"at most 300 unknowns, and these are 301"):
        solve(Quadratic(np.eye(301)), np.ones(301), direction="newton")
