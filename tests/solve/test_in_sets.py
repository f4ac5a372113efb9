"""Runs in sets: optimality against SciPy, feasibility of every evaluation, endings and refusals."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize, nnls
from solve.objectives import Vector

from slomodel.errors import DomainError, StartWarning
from slomodel.solve import Functions, Solution, Status, solve
from slomodel.solve.facts import ObjectiveFacts, Product
from slomodel.solve.plain_functions import CurvedFunctions
from slomodel.solve.sets.ball import EuclideanBall
from slomodel.solve.sets.box import Box
from slomodel.solve.sets.convex_set import Set
from slomodel.solve.sets.product import ProductSet, SetPart
from slomodel.solve.sets.simplex import Simplex
from slomodel.solve.sets.sphere import Sphere

METHODS: list[tuple[str, dict[str, object]]] = [
    ("auto", {}),
    ("pgd", {"lipschitz": "sampled"}),
    ("tgd", {"lipschitz": "sampled"}),
    ("gd", {"lipschitz": "sampled"}),
    *(
        ("norm-armijo", {"direction": direction})
        for direction in (
            "gradient",
            "lbfgs",
            "newton-cg",
            "newton",
            "gauss-newton",
            "lbfgs/newton",
        )
    ),
    ("norm-armijo", {"direction": "gradient", "initial_step": "full"}),
]


def feasible(where: Set, x: Vector) -> bool:
    """Whether x (n,) is in the set: exactly in a box, and up to rounding in others."""
    if isinstance(where, ProductSet):
        return all(feasible(one.set, x[one.of]) for one in where.parts)
    return where.contains(x, 0.0 if isinstance(where, Box) else 4e-16)


@dataclass
class LeastSquares:
    """½‖Ax − b‖², which raises an error at a point outside the set."""

    A: Vector
    b: Vector
    where: Set

    facts = ObjectiveFacts(curvature=True, squares=True, degree=2)
    eps = float(np.finfo(float).eps)

    @property
    def n(self) -> int:
        return self.A.shape[1]

    def load(self, product: Product) -> None:
        pass

    def value(self, x: Vector) -> float:
        assert feasible(self.where, x)
        return 0.5 * float(np.sum((self.A @ x - self.b) ** 2))

    def value_and_gradient(self, x: Vector, out: Vector | None = None) -> tuple[float, Vector]:
        g = self.A.T @ (self.A @ x - self.b)
        return self.value(x), g

    def hvp(self, x: Vector, v: Vector) -> Vector:
        assert feasible(self.where, x)
        return self.A.T @ (self.A @ v)

    gauss_newton = hvp


def problem(where: Set, n: int = 8) -> LeastSquares:
    rng = np.random.default_rng(5)
    return LeastSquares(rng.standard_normal((3 * n, n)), 3.0 * rng.standard_normal(3 * n), where)


NONNEGATIVE = Box(np.zeros(8), np.full(8, np.inf))
SIMPLEX = Simplex((8,))
BALL = EuclideanBall(np.full(8, 0.1), 0.3)
ROWS = Simplex((2, 4))
MIXED = ProductSet(
    (
        SetPart(0, 3, Box(np.array([-np.inf, 0.0, 0.2]), np.array([0.1, np.inf, 0.2]))),
        SetPart(3, 6, Simplex((3,))),
        SetPart(6, 8, EuclideanBall(np.zeros(2), 0.3)),
    )
)
SETS = {"x >= 0": NONNEGATIVE, "simplex": SIMPLEX, "ball": BALL, "rows": ROWS, "mixed": MIXED}


def least(where: Set) -> float:
    """The least value over the set, by SciPy's SLSQP."""
    f = problem(where)
    ones = [(0, 8)] if where is SIMPLEX else [(0, 4), (4, 8)]
    if where is NONNEGATIVE:
        return 0.5 * float(nnls(f.A, f.b)[1]) ** 2
    bounds = [(0.0, 1.0)] * 8
    constraints: list[dict[str, object]] = [
        {"type": "eq", "fun": lambda x, a=a, b=b: x[a:b].sum() - 1.0} for a, b in ones
    ]
    if where is BALL:
        bounds = [(None, None)] * 8
        constraints = [{"type": "ineq", "fun": lambda x: 0.09 - np.sum((x - 0.1) ** 2)}]
    if where is MIXED:
        bounds = [(None, 0.1), (0.0, None), (0.2, 0.2), *[(0.0, 1.0)] * 3, *[(None, None)] * 2]
        constraints = [
            {"type": "eq", "fun": lambda x: x[3:6].sum() - 1.0},
            {"type": "ineq", "fun": lambda x: 0.09 - np.sum(x[6:] ** 2)},
        ]
    found = minimize(
        lambda x: 0.5 * float(np.sum((f.A @ x - f.b) ** 2)),
        where.interior_point(),
        jac=lambda x: f.A.T @ (f.A @ x - f.b),
        method="SLSQP",
        bounds=bounds,
        constraints=constraints,
        options={"ftol": 1e-15, "maxiter": 500},
    )
    return float(found.fun)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize(("method", "options"), METHODS)
def test_every_method_finds_the_minimum_and_stays_in_the_set(
    name: str, method: str, options: dict[str, object]
) -> None:
    where = SETS[name]
    inside: list[bool] = []
    found = solve(
        problem(where),
        where.interior_point(),
        method=method,
        within=where,
        verify=True,
        callback=lambda state: inside.append(feasible(where, state.x)),
        **options,
    )
    assert found.status is Status.converged, found.message
    assert all(inside)
    assert found.fun - least(where) <= 1e-9 * abs(found.fun)
    assert found.certificate is not None
    assert found.certificate.holds, found.certificate.summary
    f = problem(where)
    step = found.x - f.A.T @ (f.A @ found.x - f.b)
    where.project(step, step)
    assert_allclose(found.gradient_norm, np.linalg.norm(step - found.x), atol=1e-12)
    assert "projected gradient" in found.message


@pytest.mark.parametrize("method", ["agp", "bpg", "ngd", "adgd", "std-armijo"])
def test_methods_without_a_theory_for_sets_say_why(method: str) -> None:
    with pytest.raises(DomainError, match=f"{method} cannot be confined to a set: "):
        solve(problem(SIMPLEX), SIMPLEX.interior_point(), method=method, within=SIMPLEX)


@pytest.mark.parametrize(
    "options",
    [
        {"method": "pgd", "D": "auto"},
        {"line_search": "exact"},
        {"direction": "cg"},
        {"direction": "newton-cg/lbfgs"},
    ],
)
def test_options_that_leave_the_set_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(DomainError):
        solve(problem(SIMPLEX), SIMPLEX.interior_point(), within=SIMPLEX, **options)


def test_differences_of_gradients_would_leave_the_set() -> None:
    f = problem(NONNEGATIVE)
    plain = Functions(f.value, lambda x: f.value_and_gradient(x)[1], 8)
    with pytest.raises(DomainError, match="would leave the set"):
        solve(plain, np.ones(8), within=NONNEGATIVE, direction="newton-cg")
    curved = CurvedFunctions(plain, f.hvp)
    found = solve(curved, np.ones(8), within=NONNEGATIVE, direction="newton-cg")
    assert found.status is Status.converged


def test_a_start_outside_is_moved_to_the_nearest_point_with_a_warning() -> None:
    with pytest.warns(StartWarning, match="moved by 5"):
        found = solve(
            problem(NONNEGATIVE),
            np.array([-3.0, 1, 1, -4.0, 1, 1, 1, 1]),
            within=NONNEGATIVE,
            max_iter=0,
        )
    assert_allclose(found.x, [0, 1, 1, 0, 1, 1, 1, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solve(problem(SIMPLEX), np.full(8, 0.1250000000000001), within=SIMPLEX)


def test_fixed_variables_stay_exactly_where_they_are() -> None:
    low = np.array([0.0, 0.7, -1.0, 0.1, 0.0, 0.0, 0.0, 0.3])
    high = np.array([1.0, 0.7, -1.0, 0.1, 1.0, 1.0, 1.0, 0.3])
    where = Box(low, high)
    found = solve(problem(where), where.interior_point(), method="auto", within=where)
    assert found.status is Status.converged
    fixed = low == high
    assert np.array_equal(found.x[fixed], low[fixed])
    everything = Box(low, low)
    assert solve(problem(everything), low, within=everything).status is Status.converged


def linear(c: Vector) -> Functions:
    return Functions(lambda x: float(c @ x), lambda x: c.copy(), len(c))


@pytest.mark.parametrize("method", ["auto", "norm-armijo"])
def test_an_objective_without_a_minimum_over_the_set_is_unbounded(method: str) -> None:
    where = Box(np.zeros(3), np.full(3, np.inf))
    found = solve(linear(np.array([1.0, -1.0, 0.0])), np.ones(3), method=method, within=where)
    assert found.status is Status.unbounded
    vertex = solve(linear(np.array([1.0, 2.0, 0.0])), np.ones(3), method=method, within=where)
    assert vertex.status is Status.converged
    assert_allclose(vertex.x, [0.0, 0.0, 1.0])


def test_a_wrong_gradient_is_not_success() -> None:
    where = Box(np.zeros(2), np.full(2, 10.0))
    f = Functions(lambda x: float(np.sum((x - 3.0) ** 2)), lambda x: 6.0 - 2.0 * x, 2)
    found = solve(f, np.ones(2), method="auto", within=where)
    assert found.status in (Status.not_descent, Status.line_search_stalled)


def test_a_kink_is_not_success_either() -> None:
    where = Box(np.zeros(2), np.full(2, 10.0))
    f = Functions(
        lambda x: abs(x[0] - 1.0) + x[1],
        lambda x: np.array([1.0 if x[0] > 1.0 else -1.0, 1.0]),
        2,
    )
    found = solve(f, np.array([3.3, 2.0]), method="auto", within=where)
    assert found.status is not Status.converged


def resumed(tmp_path: Path, options: dict[str, object]) -> tuple[Solution, Solution]:
    """A run at once, and the same run in two parts."""
    where, file = MIXED, tmp_path / "run.npz"
    run: Callable[..., Solution] = solve
    f, x0 = problem(where), where.interior_point()
    whole = run(f, x0, within=where, **options)
    run(f, x0, within=where, checkpoint=file, max_iter=4, **options)
    return whole, run(f, None, within=where, resume=file, max_iter=100_000, **options)


@pytest.mark.parametrize(("method", "options"), METHODS)
def test_a_run_in_a_set_is_resumed_to_the_bit(
    tmp_path: Path, method: str, options: dict[str, object]
) -> None:
    whole, parts = resumed(tmp_path, {"method": method, **options})
    assert np.array_equal(whole.x, parts.x)
    assert whole.nit == parts.nit


@pytest.mark.parametrize("high", [1e6, np.inf])
def test_nothing_is_unbounded_in_a_bounded_set(high: float) -> None:
    cube = Functions(
        lambda x: float(x[1] ** 2 - x[0] ** 3),
        lambda x: np.array([-3.0 * x[0] ** 2, 2.0 * x[1]]),
        2,
    )
    box = Box(np.array([-3.0, -1.0]), np.array([high, 1.0]))
    found = solve(cube, np.array([3.0, 0.5]), within=box, max_iter=140)
    assert found.status is (Status.max_iter if high == 1e6 else Status.unbounded)


@pytest.mark.parametrize("far", [1e3, 1e9])
def test_steps_grow_toward_a_minimum_far_from_the_start(far: float) -> None:
    found = solve(
        Functions(lambda x: float((x[0] - far) ** 2), lambda x: 2.0 * (x - far), 1),
        np.array([3.0]),
        method="auto",
        within=Box(np.zeros(1), np.full(1, np.inf)),
    )
    assert found.x[0] == pytest.approx(far, rel=1e-9)
    assert found.nit < 40


@dataclass
class WithHessian:
    """Plain functions with products that the methods may use as those of a compiled objective."""

    of: CurvedFunctions

    facts = ObjectiveFacts(curvature=True)
    eps = float(np.finfo(float).eps)

    @property
    def n(self) -> int:
        return self.of.n

    def load(self, product: Product) -> None:
        pass

    def value(self, x: Vector) -> float:
        return self.of.value(x)

    def value_and_gradient(self, x: Vector, out: Vector | None = None) -> tuple[float, Vector]:
        return self.of.value_and_gradient(x, out)

    def hvp(self, x: Vector, v: Vector) -> Vector:
        return self.of.hvp(x, v)


@pytest.mark.parametrize("direction", ["newton", "newton-cg", "auto"])
@pytest.mark.parametrize("where", [Sphere(10, 2.0, np.zeros(10)), EuclideanBall(np.zeros(10), 2.0)])
def test_newton_steps_converge_fast_along_a_curved_boundary(where: Set, direction: str) -> None:
    T = np.random.default_rng(3).standard_normal((10, 10)) * 8.0
    T += T.T
    f = WithHessian(
        CurvedFunctions(
            Functions(
                lambda x: 0.5 * float(x @ T @ x) + float(np.sum(x**4)),
                lambda x: T @ x + 4.0 * x**3,
                10,
            ),
            lambda x, v: T @ v + 12.0 * x**2 * v,
        )
    )
    options: dict[str, object] = {} if direction == "auto" else {"direction": direction}
    found = solve(f, np.full(10, 0.4**0.5), method="auto", within=where, **options)
    assert found.status is Status.converged
    # The tangential gradient vanishes, by ∇f = −λx with λ ≥ 0.
    g = f.value_and_gradient(found.x)[1]
    multiplier = -float(g @ found.x) / 4.0
    assert multiplier >= 0.0
    assert_allclose(g, -multiplier * found.x, atol=1e-4)
    assert found.nfev <= (40 if direction == "auto" else 20)


@pytest.mark.parametrize("n", [50, 320])
def test_least_squares_of_a_nearly_singular_matrix(n: int) -> None:
    """Decay rates from sums of exponentials: the condition of AᵀA is beyond all digits."""
    rates, rng = np.linspace(0.0, 8.0, n), np.random.default_rng(0)
    A = np.exp(-np.outer(np.linspace(0.1, 5.0, 2 * n), rates))
    b = A @ np.exp(-((rates - 3.0) ** 2)) + 1e-4 * rng.normal(size=2 * n)
    where = Box(np.zeros(n), np.full(n, np.inf))
    found = solve(LeastSquares(A, b, where), np.zeros(n), method="auto", within=where)
    _, distance = nnls(A, b, maxiter=100 * n)
    assert found.status is Status.converged, found.message
    assert found.nfev <= 20
    assert found.fun - 0.5 * distance**2 <= 1e-13 * float(b @ b)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_units_of_the_objective_do_not_prolong_a_run(scale: float) -> None:
    """Nonnegative logistic regression, against its conditions of optimality."""
    rng = np.random.default_rng(2)
    A, signs = rng.standard_normal((60, 12)), np.sign(rng.standard_normal(60))

    def margins(x: Vector) -> Vector:
        return signs * (A @ x)

    f = CurvedFunctions(
        Functions(
            lambda x: scale * float(np.logaddexp(0.0, -margins(x)).sum() + x @ x),
            lambda x: scale * (2.0 * x - A.T @ (signs / (1.0 + np.exp(margins(x))))),
            12,
        ),
        lambda x, v: scale * (2.0 * v + A.T @ ((A @ v) / (4.0 * np.cosh(0.5 * margins(x)) ** 2))),
    )
    found = solve(
        WithHessian(f), np.ones(12), method="auto", within=Box(np.zeros(12), np.full(12, np.inf))
    )
    assert found.status is Status.converged, found.message
    g = found.jac / scale
    assert np.abs(np.minimum(found.x, g)).max() < 1e-4
    assert found.nfev <= 20


def test_a_model_that_does_not_pay_is_seldom_tried() -> None:
    """Products with the Hessian are of little use for a factorisation that is not unique."""
    rng = np.random.default_rng(1)
    V = rng.random((60, 8)) @ rng.random((8, 40)) + 0.2 * rng.random((60, 40))

    def split(x: Vector) -> tuple[Vector, Vector]:
        return x[:480].reshape(60, 8), x[480:].reshape(8, 40)

    def residual(x: Vector) -> Vector:
        W, H = split(x)
        return W @ H - V

    def gradient(x: Vector) -> Vector:
        (W, H), R = split(x), residual(x)
        return np.concatenate([(R @ H.T).ravel(), (W.T @ R).ravel()])

    def product(x: Vector, v: Vector) -> Vector:
        (W, H), (dW, dH), R = split(x), split(v), residual(x)
        dR = dW @ H + W @ dH
        parts = dR @ H.T + R @ dH.T, W.T @ dR + dW.T @ R
        return np.concatenate([part.ravel() for part in parts])

    plain = Functions(lambda x: 0.5 * float(np.sum(residual(x) ** 2)), gradient, 800)
    f = WithHessian(CurvedFunctions(plain, product))
    within, x0 = Box(np.zeros(800), np.full(800, np.inf)), rng.random(800)
    found = solve(f, x0, method="auto", within=within, max_nfev=400)
    assert found.fun < 2.82
    assert found.nhev <= 2 * found.nfev


def random_set(rng: np.random.Generator) -> Set:
    """A product of up to three sets of two to four elements each."""
    parts, start = [], 0
    for _ in range(rng.integers(1, 4)):
        n = int(rng.integers(2, 5))
        low = np.where(rng.uniform(size=n) < 0.3, -np.inf, rng.normal(0.0, 3.0, n))
        width = np.where(rng.uniform(size=n) < 0.2, 0.0, rng.uniform(0.0, 2.0, n))
        high = np.where(np.isfinite(low), low + width, rng.normal(0.0, 3.0, n))
        sets: list[Set] = [
            Box(low, np.where(rng.uniform(size=n) < 0.3, np.maximum(high, np.inf), high)),
            Simplex((n,)),
            EuclideanBall(rng.normal(0.0, 1.0, n), float(rng.uniform(0.1, 2.0))),
            Sphere(n, float(rng.uniform(0.1, 2.0)), rng.normal(0.0, 1.0, n)),
        ]
        parts.append(SetPart(start, start + n, sets[rng.integers(4)]))
        start += n
    return ProductSet(tuple(parts))


@pytest.mark.parametrize("seed", range(12))
def test_every_iterate_of_every_method_is_feasible_in_random_sets(seed: int) -> None:
    """Of a function with many minima, whose evaluation outside the set is an error."""
    rng = np.random.default_rng(seed)
    where = random_set(rng)
    n = len(where.interior_point())
    A, b = rng.standard_normal((2 * n, n)), rng.standard_normal(2 * n)

    def value(x: Vector) -> float:
        assert near(where, x)
        return float(np.sum(np.sin(A @ x - b)) + 0.05 * x @ x)

    f = Functions(value, lambda x: A.T @ np.cos(A @ x - b) + 0.1 * x, n)
    start = rng.normal(0.0, 3.0, n)
    where.project(start, start)
    for method, options in METHODS:
        if "newton" in str(options) or (method in ("pgd", "tgd", "gd") and not where.convex):
            continue
        seen: list[bool] = []
        solve(
            f,
            start,
            method=method,
            within=where,
            max_iter=30,
            callback=lambda state, seen=seen: seen.append(near(where, state.x)),
            **options,
        )
        assert seen
        assert all(seen)


def near(where: Set, x: Vector) -> bool:
    """As `feasible`, with the rounding of centres that are not 0."""
    if isinstance(where, ProductSet):
        return all(near(one.set, x[one.of]) for one in where.parts)
    return where.contains(x, 0.0 if isinstance(where, Box) else 1e-14)
