"""Quadratic programs of Newton steps: their optimality conditions, and linear ones by HiGHS."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import linprog, minimize

import slomodel
from slomodel.solve.norms import Vector
from slomodel.solve.quadratics.interior_point import interior_solution, quadratic_step
from slomodel.solve.quadratics.quadratic_program import QuadraticProgram, QuadraticStep


def random_program(seed: int, rank: int) -> QuadraticProgram:
    """A feasible bounded program with n = 8, 2 equations, 5 inequalities and B of a given rank."""
    rng = np.random.default_rng(seed)
    root, A = rng.standard_normal((rank, 8)), rng.standard_normal((7, 8))
    inside = rng.uniform(-0.5, 0.5, 8)
    equations = np.arange(7) < 2
    c = -A @ inside - np.where(equations, 0.0, rng.uniform(0.0, 0.5, 7))
    high = np.where(rng.uniform(size=8) < 0.5, 1.0, 2.0)
    return QuadraticProgram(
        root.T @ root, rng.standard_normal(8), A, c, equations, np.full(8, -1.0), high
    )


def step_of(program: QuadraticProgram) -> QuadraticStep:
    return quadratic_step(program, program.equations.copy(), 1.0)


def slope(program: QuadraticProgram, step: QuadraticStep) -> Vector:
    slopes: Vector = program.g + program.B @ step.d + program.A.T @ step.y
    return slopes


@pytest.mark.parametrize("rank", [0, 3, 8])
@pytest.mark.parametrize("seed", range(6))
def test_a_convex_program_satisfies_its_optimality_conditions(seed: int, rank: int) -> None:
    """They are sufficient: feasible, multipliers of the right signs, and 0 where not active."""
    program = random_program(seed, rank)
    step = step_of(program)
    assert step.solves
    assert step.convex
    residual = program.c + program.A @ step.d
    assert_allclose(residual[:2], 0.0, atol=1e-9)
    assert residual.max() <= 1e-9
    assert (step.y[2:] >= -1e-9).all()
    assert_allclose(residual[2:] * step.y[2:], 0.0, atol=1e-8)
    assert (step.d >= program.low).all()
    assert (step.d <= program.high).all()
    z = slope(program, step)
    at_low, at_high = step.d <= program.low, step.d >= program.high
    assert (z[at_low & ~at_high] >= -1e-8).all()
    assert (z[at_high & ~at_low] <= 1e-8).all()
    assert_allclose(z[~(at_low | at_high)], 0.0, atol=1e-8)
    if rank == 0:
        bounds = list(zip(program.low, program.high, strict=True))
        own = {"A_ub": program.A[2:], "b_ub": -program.c[2:]}
        peer = linprog(program.g, **own, A_eq=program.A[:2], b_eq=-program.c[:2], bounds=bounds)
        assert_allclose(program.g @ step.d, peer.fun, atol=1e-8)


def test_programs_without_a_solution_have_no_interior_one() -> None:
    program = random_program(0, 0)
    nothing = np.full(8, np.inf)
    free = QuadraticProgram(
        program.B, program.g, program.A[:0], program.c[:0], program.equations[:0], -nothing, nothing
    )
    assert interior_solution(free) is None
    apart = np.vstack([program.A[2], -program.A[2]])
    sides, inequalities = np.array([1.0, 1.0]), np.zeros(2, dtype=bool)
    empty = QuadraticProgram(
        program.B, program.g, apart, sides, inequalities, program.low, program.high
    )
    assert interior_solution(empty) is None


def test_a_diet_is_found_at_once() -> None:
    """A linear program whose first guess, all foods 0, satisfies no constraint."""
    rng = np.random.default_rng(0)
    contents, cost = np.abs(rng.normal(2.0, 1.0, (6, 12))), rng.uniform(0.5, 3.0, 12)
    need = 0.4 * contents.sum(axis=1)
    text = """
        dim nutrients, foods
        data N[nutrients, foods], cost[foods], need[nutrients]
        var x[foods] in [0, 3] init 1
        minimize dot(cost, x)
        subject to enough: N @ x >= need
    """
    found = slomodel.compile(text, data={"N": contents, "cost": cost, "need": need}).solve()
    peer = linprog(cost, A_ub=-contents, b_ub=-need, bounds=(0.0, 3.0))
    assert found.success
    assert found.nfev <= 3
    assert_allclose(found.fun, peer.fun, rtol=1e-9)
    assert_allclose(found.multipliers["enough"], -peer.ineqlin.marginals, atol=1e-8)


def test_the_least_ball_around_points() -> None:
    """Each point on the sphere or inside, and the centre a convex combination of those on it."""
    points = np.random.default_rng(0).standard_normal((40, 3))
    text = """
        dim N, d
        data P[N, d]
        var c[d] init 0, r >= 0 init 3
        minimize r
        subject to cover: sum((P[i, k] - c[k])^2 for k in d) <= r^2 for i in N
    """
    found = slomodel.compile(text, data={"P": points}).solve()
    assert found.success
    assert found.nfev <= 10
    away = np.linalg.norm(points - found["c"], axis=1)
    assert away.max() <= found["r"] + 1e-9
    weights = -2.0 * found["r"] * found.multipliers["cover"]
    assert (weights >= -1e-9).all()
    assert_allclose(weights.sum(), 1.0, atol=1e-6)
    assert_allclose(weights @ points, found["c"], atol=1e-6)


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("least", [0.5, 2.0])
def test_constraints_are_judged_at_vertices_of_simplices(n: int, least: float) -> None:
    """No direction is left in the face of a vertex, whether it satisfies the constraints or not."""
    text = "dim n data c[n], least var x[n] in simplex minimize dot(c, x) subject to x[0] >= least"
    data = {"c": np.arange(n) - 1.0, "least": least}
    found = slomodel.compile(text, data=data).solve(x0=np.eye(n)[0])
    assert found.status == ("converged" if least <= 1.0 else "infeasible")


def test_a_quadratic_program_over_a_simplex_takes_one_step() -> None:
    """The equations of simplices are those of the program, so that its faces need no search."""
    rng = np.random.default_rng(7)
    B = rng.standard_normal((12, 3))
    text = """
    dim n, k
    data B[n, k], mu[n]
    var w[n] in simplex, b[n] >= 0, s[n] >= 0
    minimize sumsq(B' @ w) + 0.1*sumsq(w) - dot(mu, w) + 0.01*(sum(b) + sum(s))
    subject to trade: w - 1/12 == b - s, turnover: sum(b) + sum(s) <= 0.4, cap: w <= 0.25
    """
    model = slomodel.compile(text, data={"B": B, "mu": rng.uniform(size=12)})
    found = model.solve()
    assert found.success, found.message
    assert found.nfev <= 3
    given = model.scipy()
    kinds = {key: given[key] for key in ("jac", "bounds", "constraints")}
    start = np.concatenate([np.full(12, 1 / 12), np.zeros(24)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of SciPy, about options that it does not read
        wanted = minimize(given["fun"], start, method="SLSQP", options={"ftol": 1e-12}, **kinds)
    assert_allclose(found.fun, wanted.fun, atol=1e-6)


def test_newton_steps_stop_short_of_bounds_at_which_derivatives_are_infinite() -> None:
    """Transport with an entropy: T = diag(u) exp(-C/0.1) diag(v), the sums by Sinkhorn's steps."""
    rng = np.random.default_rng(3)
    a, b, C = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(5)), rng.uniform(size=(3, 5))
    text = """
    dim m, n
    data C[m, n], a[m], b[n]
    var T[m, n] >= 0
    minimize sum(C .* T) + 0.1*sum(xlogy(T, T))
    subject to rows: sum(T[i,j] for j in n) == a[i] for i in m
    subject to columns: sum(T[i,j] for i in m) == b[j] for j in n
    """
    found = slomodel.compile(text, data={"C": C, "a": a, "b": b}).solve()
    assert found.success, found.message
    assert found.nfev <= 25
    K, v = np.exp(-C / 0.1), np.ones(5)
    for _ in range(500):
        u = a / (K @ v)
        v = b / (K.T @ u)
    assert_allclose(found.variables["T"], u[:, None] * K * v, atol=1e-8)


def test_full_steps_end_exactly_at_the_bounds_that_they_reach() -> None:
    """x + (lo - x) may differ from lo by rounding; the bound would not count as active."""
    rng = np.random.default_rng(1)
    A, lo = rng.standard_normal((8, 8)), rng.standard_normal(8)
    text = """
    dim n
    data A[n, n], b[n], lo[n], hi[n]
    var x[n] in [lo, hi]
    minimize sumsq(A @ x - b)
    subject to total: sum(x) == sum(lo) + 0.7
    """
    hi = lo + 0.6
    model = slomodel.compile(text, data={"A": A, "b": lo, "lo": lo, "hi": hi}, backend="numpy")
    for _ in range(8):
        b = 3.0 * rng.standard_normal(8)
        found = model.bind(b=b).solve(x0=rng.uniform(lo, hi))
        assert found.success, found.message
        held = (found.x == lo) | (found.x == hi)
        assert not np.any(~held & (np.minimum(found.x - lo, hi - found.x) < 1e-12))
        rest = 2.0 * A.T @ (A @ found.x - b) - found.multipliers["total"]
        assert_allclose(found.multipliers["x"], np.where(held, rest, 0.0), atol=1e-6)
        assert (found.active["x"] == held).all()


def test_a_degenerate_linear_program_of_many_unknowns_takes_one_step() -> None:
    """Transport, of which one equation depends on the others, and most solutions have zeros."""
    n, rng = 18, np.random.default_rng(1)
    a, b, x, y = (rng.dirichlet(np.ones(n)) for _ in range(4))
    C = np.abs(x[:, None] - y)
    text = """dim n data C[n, n], a[n], b[n] var P[n, n] >= 0 minimize sum(C .* P)
        subject to sum(P[i, j] for j in n) == a[i] for i in n
        subject to sum(P[i, j] for i in n) == b[j] for j in n"""
    found = slomodel.compile(text, data={"C": C, "a": a, "b": b}).solve()
    rows = np.kron(np.eye(n), np.ones(n)), np.kron(np.ones(n), np.eye(n))
    wanted = linprog(C.ravel(), A_eq=np.vstack(rows), b_eq=np.r_[a, b])
    assert found.status is slomodel.Status.converged, found.message
    assert_allclose(found.fun, wanted.fun, rtol=1e-9)
    assert found.nfev <= 4


def test_a_minimum_of_a_convex_program_far_from_the_start_is_not_doubted() -> None:
    text = """var x[2] >= 0 init 0 maximize 3 * x[0] + 2 * x[1]
        subject to x[0] + x[1] <= 4000, x[0] <= 3000"""
    found = slomodel.compile(text).solve()
    assert found.status is slomodel.Status.converged, found.message
    assert_allclose(found.variables["x"], [3000.0, 1000.0])
    assert found.nfev <= 10


def test_variables_at_bounds_are_exactly_there() -> None:
    """Production of a year at a limit: bounds that are missed by rounding would not be active."""
    text = """let d = [5, 9, 2, 8, 7, 3, 9, 10]
        var make[8] in [0, 7], stock[8] >= 0, over[8] >= 0
        minimize sum(make) + 0.2 * sum(stock) + 1.5 * sum(over)
        subject to stock[t] == where(t == 0, 3, stock[t-1]) + make[t] + over[t] - d[t]
             for t in range(8)"""
    found = slomodel.compile(text).solve()
    c = [*np.ones(8), *np.full(8, 0.2), *np.full(8, 1.5)]
    flow = np.hstack([np.eye(8), np.eye(8, k=-1) - np.eye(8), np.eye(8)])
    demand = np.array([2.0, 9, 2, 8, 7, 3, 9, 10])
    bounds = [(0, 7)] * 8 + [(0, None)] * 16
    assert_allclose(found.fun, linprog(c, A_eq=flow, b_eq=demand, bounds=bounds).fun)
    rest = c + found.multipliers["constraint 1"] @ flow
    own = np.concatenate([found.multipliers[name] for name in ("make", "stock", "over")])
    assert_allclose(own, rest, atol=1e-9)


def test_a_bar_that_vanishes_has_its_multiplier() -> None:
    """Of two bars in parallel the longer carries nothing: its area is 0, and its rate is not."""
    text = "var a[2] >= 0 init 0.3 minimize 1 / (a[0] + a[1] / 4) subject to a[0] + 2 * a[1] <= 1"
    found = slomodel.compile(text).solve()
    assert_allclose(found.variables["a"], [1.0, 0.0], atol=1e-6)
    assert found.active["a"][1]
    assert_allclose(found.multipliers["a"], [0.0, 1.75], atol=1e-5)
