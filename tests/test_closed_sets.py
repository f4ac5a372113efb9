"""Models with variables in closed sets: values, minima of known problems, results, starts."""

import json
import math
import warnings
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.testing import assert_allclose
from scipy.optimize import minimize, nnls

import slomodel
from benchmarks.set_cases import CASES, Case
from slomodel.cli import main
from slomodel.errors import DomainError, ShapeError, StartWarning
from slomodel.solve import Status
from slomodel.solve.constrained.newton_steps import recession


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_of_known_problems(name: str) -> None:
    case = Case(name)
    model, facts = case.model(), CASES[name]
    points = case.array("points")
    for k, (x, value) in enumerate(zip(points, facts["values"], strict=True)):
        f, g = model.value_and_gradient(x)
        assert abs(f - value) <= 1e-9 * max(abs(value), 1e-6)
        if "first5" in facts:
            cosines = float(np.sum(g * np.cos(np.arange(1, len(g) + 1))))
            assert_allclose(g[:5], facts["first5"], atol=1e-9 * facts["norm"])
            assert_allclose(cosines, facts["cos"], atol=1e-9 * facts["norm"] * len(g) ** 0.5)
        else:
            wanted = case.array("gradients")[k]
            assert np.abs(g - wanted).max() <= 1e-9 * np.linalg.norm(wanted)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CASES)
def test_known_problems_are_solved_from_their_starts(name: str) -> None:
    """Every accepted point is feasible, boxes to the bit, and the theorems' inequalities hold."""
    case = Case(name)
    model = case.model()
    where = model._within
    assert where is not None
    outside: list[int] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StartWarning)
        found = model.solve(
            x0=case.array("start"),
            verify=True,
            callback=lambda s: None if where.contains(s.x, 1e-15) else outside.append(s.k),
        )
    assert found.success, found.message
    assert case.is_right(found.fun, float(found.history.fun[0])), found.fun
    assert outside == []
    assert found.certificate is not None
    assert found.certificate.holds, found.certificate.summary
    stationary = np.concatenate([a.ravel() for a in found.multipliers.values()])
    if len(stationary) == model.n and "scaling" not in case.tags:
        assert np.linalg.norm(found.jac - stationary) <= 1e-4 * max(1.0, np.linalg.norm(found.jac))


@pytest.mark.parametrize(
    ("name", "values", "products"),
    [("biggsb1", 5, 2000), ("one_sided", 45, 150), ("poisson_deblur", 110, 450)],
)
def test_slow_problems_of_pairs_take_few_evaluations(name: str, values: int, products: int) -> None:
    """Newton steps and sparse factors: pairs alone took 384 values, and products alone 7288."""
    case = Case(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StartWarning)
        found = case.model().solve(x0=case.array("start"))
    assert found.success
    assert found.nfev <= values
    assert found.nhev <= products


@pytest.mark.parametrize("seed", range(3))
def test_a_long_chain_between_bounds(seed: int) -> None:
    """The minimiser of a tridiagonal quadratic by sparse factors: its optimality conditions."""
    rng, n = np.random.default_rng(seed), 400
    low = np.minimum(np.cumsum(rng.standard_normal(n)), -1.0)
    high = low + rng.uniform(0.0, 40.0, n)
    text = """
        dim n
        data low[n], high[n], force[n]
        var x[n] in [low, high] init 0
        minimize sumsq(x[1:] - x[:-1]) / 2 + 1e-6 * sumsq(x) - dot(force, x)
    """
    given = {"low": low, "high": high, "force": 1e-2 * rng.standard_normal(n)}
    found = slomodel.compile(text, data=given).solve(x0=0.5 * (low + high), gtol=1e-9)
    assert found.success
    assert found.nfev <= 4
    assert found.nhev <= 4 * n
    inside = (low < found.x) & (found.x < high)
    assert_allclose(found.jac[inside], 0.0, atol=1e-8)
    assert (found.jac[found.x == low] >= -1e-8).all()
    assert (found.jac[found.x == high] <= 1e-8).all()
    assert 0 < inside.sum() < n


@pytest.mark.sampled(2)
@pytest.mark.parametrize("method", ["pgd", "tgd"])
@pytest.mark.parametrize("name", ["nnls_random", "tr_ball", "topic_weights"])
def test_the_papers_methods_solve_some_with_proved_constants(name: str, method: str) -> None:
    case = Case(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StartWarning)
        found = case.model().solve(method, x0=case.array("start"), verify=True)
    assert found.success, found.message
    assert case.is_right(found.fun, float(found.history.fun[0]))
    assert found.certificate is not None
    assert found.certificate.holds, found.certificate.summary


NONNEGATIVE = "dim n, N data A[N, n], b[N] var x[n] >= 0 minimize sumsq(A @ x - b)"


def data() -> dict[str, object]:
    rng = np.random.default_rng(0)
    return {"A": rng.standard_normal((20, 6)), "b": rng.standard_normal(20)}


def test_multipliers_and_active_bounds(tmp_path: Path) -> None:
    model = slomodel.compile(NONNEGATIVE, data=data())
    found = model.solve(gtol=1e-10)
    A, b = data()["A"], data()["b"]
    x = nnls(A, b)[0]
    assert_allclose(found.x, x, atol=1e-9)
    assert np.array_equal(found.active["x"], x == 0.0)
    assert_allclose(found.multipliers["x"], np.where(x == 0.0, 2 * A.T @ (A @ x - b), 0), atol=1e-8)
    found.save(tmp_path / "run.npz")
    again = slomodel.load_solution(tmp_path / "run.npz")
    assert np.array_equal(again.active["x"], found.active["x"])
    assert np.array_equal(again.multipliers["x"], found.multipliers["x"])


def test_a_maximum_has_the_multipliers_of_the_objective_as_written() -> None:
    found = slomodel.compile("var x[2] in [0, 1] maximize 3 * x[0] - x[1]").solve()
    assert_allclose(found.x, [1.0, 0.0])
    assert_allclose(found.multipliers["x"], [3.0, -1.0])


@pytest.mark.parametrize(
    ("text", "x", "fun"),
    [
        ("var x >= 1 minimize x^2", [1.0], 1.0),
        ("var x <= -1 minimize x^2", [-1.0], 1.0),
        ("var p[3] in simplex minimize sumsq(p)", [1 / 3, 1 / 3, 1 / 3], 1 / 3),
        ("var P[2, 3] in simplex(axis=0) minimize sumsq(P)", [0.5] * 6, 1.5),
        ("var x[2] in ball(2, center=1) minimize x[0]", [-1.0, 1.0], -1.0),
        ("var x[2] in sphere(3) minimize x[0] + (x[1] - 1)^2 / 100", None, -2.99),
        ("var X[2, 2] in psd minimize sumsq(X - [[1, 2], [2, -3]])", None, None),
        ("var x in [-1, 1] var y > 0 minimize y - log(y) + (x - 2)^2", [1.0, 1.0], 2.0),
        ("var x[3] in [2, 2] minimize sumsq(x)", [2.0, 2.0, 2.0], 12.0),
    ],
)
def test_small_models_of_each_set(text: str, x: list[float] | None, fun: float | None) -> None:
    model = slomodel.compile(text)
    found = model.solve()
    assert found.success, found.message
    if x is not None:
        assert_allclose(found.x, x, atol=1e-5)
    if fun is not None:
        assert_allclose(found.fun, fun, atol=1e-5 if "sphere" not in text else 1e-2)
    if "psd" in text:
        values, vectors = np.linalg.eigh([[1.0, 2.0], [2.0, -3.0]])
        nearest = (vectors * np.maximum(values, 0.0)) @ vectors.T
        assert_allclose(found.variables["X"], nearest, atol=1e-6)


@pytest.mark.parametrize(
    ("declared", "lines", "ball"),
    [
        ("ball(1, axis=1)", 1, True),
        ("ball(1, axis=0)", 0, True),
        ("ball(1)", None, True),
        ("sphere", 1, False),
        ("sphere(axis=0)", 0, False),
        ("sphere(axis=None)", None, False),
    ],
)
def test_balls_and_spheres_of_lines_along_an_axis(
    declared: str, lines: int | None, ball: bool
) -> None:
    """The nearest point has each line of the given one, scaled to the radius where it is outside;
    SciPy finds it with the constraints of `Model.scipy`."""
    A = np.random.default_rng(0).standard_normal((4, 3))
    size = np.sqrt(np.sum(A**2, axis=lines, keepdims=True))
    nearest = A / (np.maximum(size, 1.0) if ball else size)
    text = f"dim m, n data A[m, n] var X[m, n] in {declared} minimize sumsq(X - A)"
    model = slomodel.compile(text, data={"A": A})
    found = model.solve()
    assert_allclose(found["X"], nearest, atol=1e-6)
    assert_allclose(found.active["X"], np.broadcast_to((size > 1.0) | (not ball), A.shape))
    given = model.scipy()
    del given["hessp"]
    peer = minimize(**given, x0=0.9 * nearest.ravel(), method="SLSQP", tol=1e-12)
    assert_allclose(peer.x, nearest.ravel(), atol=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_starts_are_random_points_of_the_set(seed: int) -> None:
    text = (
        "data lo[4], hi[4] var x[4] in [lo, hi] var p[3] in simplex var y[2] in ball(0.5) "
        "var z[3] in sphere var X[2, 2] in psd var w >= 0 init normal(0, 1) "
        "minimize sumsq(x) + sumsq(p) + sumsq(y) + sumsq(z) + sumsq(X) + w"
    )
    model = slomodel.compile(text, data={"lo": [0, -np.inf, 1, -np.inf], "hi": [1, 2, 1, np.inf]})
    x = model.x0(seed)
    assert model._within is not None
    assert model._within.contains(x, 1e-15)
    assert not np.array_equal(x, model.x0(seed + 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.solve(seed=seed).success
    p = model.unpack(x)
    assert (p["p"] > 0).all()
    assert 0 < p["x"][0] < 1


def test_bounds_from_data_are_checked() -> None:
    text = "dim n data lo[n] var x[n] >= lo minimize sumsq(x)"
    model = slomodel.compile(text, data={"lo": [-np.inf, 1.0]})
    assert_allclose(model.solve().x, [0.0, 1.0], atol=1e-6)
    for wrong in (np.nan, np.inf):
        with pytest.raises(DomainError, match="there is no number in the set"):
            slomodel.compile(text, data={"lo": [0.0, wrong]}).solve()
    # Data that the objective uses as well have to be finite.
    both = "dim n data lo[n] var x[n] >= lo minimize sumsq(x - lo)"
    with pytest.raises(DomainError, match="E308"):
        slomodel.compile(both, data={"lo": [-np.inf, 1.0]})
    with pytest.raises(ShapeError, match="no values for data `lo`"):
        slomodel.compile(text, dims={"n": 2}).solve()


def test_a_start_outside_is_moved_with_a_warning() -> None:
    model = slomodel.compile("var x[2] >= 0 minimize sumsq(x - 1)")
    with pytest.warns(StartWarning, match="moved by 3"):
        assert_allclose(model.solve(x0=[-3.0, 1.0], max_iter=0).x, [0.0, 1.0])


def test_the_command_line_says_so_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "m.slo"
    file.write_text("var x[2] in [0, 1]\nminimize sumsq(x)\n", encoding="utf-8")
    np.savez(tmp_path / "start.npz", x=[4.0, 4.0])
    options = ["--x0", str(tmp_path / "start.npz")]
    found = CliRunner().invoke(main, ["solve", str(file), *options])
    assert found.exit_code == 0
    assert found.stderr == (
        "warning: x0 is outside the set of the variables: it is moved by 4.24, into the set\n"
    )


def test_scipy_gets_bounds_and_constraints() -> None:
    model = slomodel.compile(NONNEGATIVE, data=data())
    given = model.scipy()
    found = minimize(given["fun"], np.ones(6), jac=given["jac"], bounds=given["bounds"])
    assert_allclose(found.fun, model.solve().fun, rtol=1e-5)
    text = "var x in [0, 1] var p[3] in simplex var y[2] in ball(0.5) minimize {}"
    text = text.format("(x - 2)^2 + sum((p[i] - i)^2 for i in range(3)) + sumsq(y - 1)")
    both = slomodel.compile(text)
    given = both.scipy()
    del given["hessp"]
    peer = minimize(**given, x0=both.x0(), method="SLSQP", tol=1e-10)
    assert_allclose(both.solve(gtol=1e-9).fun, peer.fun, rtol=1e-7)
    with pytest.raises(DomainError, match="semidefinite matrices"):
        slomodel.compile("var X[2, 2] in psd minimize X[0, 0]").scipy()


def test_the_command_line_reports_bounds(tmp_path: Path) -> None:
    path = tmp_path / "small.slo"
    path.write_text("model small\nvar x[3] in [0, 1]\nminimize x[0] - x[1] + (x[2] - 0.5)^2\n")
    run = CliRunner().invoke(main, ["solve", str(path), "--json"])
    document = json.loads(run.output)
    assert document["at_bounds"] == {"x": 2}
    assert_allclose(document["multipliers"]["x"], [1.0, -1.0, 0.0], atol=1e-6)
    shown = CliRunner().invoke(main, ["solve", str(path)]).output
    assert "projected gradient" in shown
    assert "x: 2 of 3 elements" in shown


def test_several_starts_stay_in_the_set() -> None:
    model = slomodel.compile("var x in [-2, 2] minimize sin(5 * x) + x / 10")
    found = model.solve(starts=5)
    assert found.status is Status.converged
    assert all(-2.0 <= run.x[0] <= 2.0 for run in found.runs)


def test_variables_in_sets_are_held_and_freed() -> None:
    """The others stay in their sets; a value outside is refused, and `free` restores the set."""
    text = "var x in [0, 1], y >= 0 init 1, p[3] in simplex minimize (x + y - 3)^2 + sumsq(p)"
    model = slomodel.compile(text)
    held = model.fix(y=1.0, p=[1.0, 0.0, 0.0])
    found = held.solve()
    assert found.variables.keys() == {"x"}
    assert_allclose(found.x, [1.0])
    assert_allclose(found.multipliers["x"], -2.0)
    freed = held.free("p").solve()
    assert_allclose(freed.variables["p"], 1 / 3, atol=1e-7)
    assert_allclose(held.free().solve().fun, model.solve().fun, atol=1e-8)
    for outside in ({"x": 2.0}, {"p": [0.5, 0.5, 0.5]}, {"y": -1.0}):
        with pytest.raises(DomainError, match="outside the set"):
            model.fix(**outside)


DECONVOLUTION = """dim n, k
data h[k], y[n]
var x[n + k - 1] >= 0
minimize sum((sum(h[j] * x[i + j] for j in k) - y[i])^2 for i in n)"""


@pytest.mark.parametrize("direction", ["newton", "newton-cg"])
def test_an_ill_conditioned_quadratic(direction: str) -> None:
    """Without a change of the model, the faces do not settle for 70,000 products."""
    rng, n = np.random.default_rng(0), 34
    h = np.exp(-0.125 * np.arange(-8.0, 9.0) ** 2) / math.sqrt(8.0 * math.pi)
    spikes = np.where(np.arange(n + 16) % 37 == 0, 1.0 + rng.random(n + 16), 0.0)
    y = np.convolve(spikes, h, mode="valid") + 1e-3 * rng.standard_normal(n)
    model = slomodel.compile(DECONVOLUTION, data={"h": h, "y": y})
    found = model.solve(x0=np.ones(n + 16), direction=direction)
    assert found.success
    assert found.nhev <= 400.0 * math.sqrt(n + 16) + 250.0
    assert found.nfev <= 1000
    matrix = np.array([np.convolve(one, h, mode="valid") for one in np.eye(n + 16)]).T
    least = nnls(matrix, y)[1] ** 2
    assert found.fun <= least + 1e-4 * float(y @ y)


@pytest.mark.parametrize(
    ("text", "least"),
    [
        ("var x[4] in [1e-8, 2e-8] init 1e-8\nminimize sum((1e8*x[i] - 1.5)^2 for i in 4)", 0.0),
        ("var b >= 0 init 1e-8\nminimize exp(1e8*b)", 1.0),
        ("var x[3] in [0, 1e-7] init 5e-8\nminimize sum(cos(4e7*x[i]) for i in 3)", -3.0),
    ],
)
def test_bounds_nearer_than_the_tolerance_are_no_end(text: str, least: float) -> None:
    """There the projected gradient is short everywhere, however steep the objective is."""
    found = slomodel.compile(text, backend="numpy").solve()
    assert found.success
    assert found.fun == pytest.approx(least, abs=1e-6)


@pytest.mark.parametrize("asked", [{}, {"second_order": True}])
@pytest.mark.parametrize(
    ("text", "start", "least"),
    [
        ("var x[2] in [-1, 1] minimize x[0] * x[1]", [0.0, 0.0], -1.0),
        ("var x[3] in [-1, 1] minimize -prod(x)", [0.0] * 3, -1.0),
        ("var x[4] in [-1, 1] minimize -prod(x)", [0.0] * 4, -1.0),
        ("var x[3] in [0, 1] minimize -prod(x)", [0.0] * 3, -1.0),
        ("var p[6] in simplex minimize -sumsq(p)", [1 / 6] * 6, -1.0),
        ("var v[3] in ball(1) minimize -prod(v)", [0.0] * 3, -(3**-1.5)),
        ("var v[3] in sphere minimize v[0]^2 + 2 * v[1]^2 + 3 * v[2]^2", [0.0, 0.0, 1.0], 1.0),
    ],
)
def test_saddles_in_sets_are_left(
    text: str, start: list[float], least: float, asked: dict[str, object]
) -> None:
    """By second derivatives, and by others where the Hessian vanishes, which `auto` alone does."""
    found = slomodel.compile(text).solve(x0=start, **asked)  # type: ignore[arg-type]
    assert found.status is Status.converged, found.message
    assert_allclose(found.fun, least, rtol=1e-9)


def test_equal_factors_are_parted() -> None:
    """The columns of W and the rows of H stay equal along every gradient."""
    X = np.random.default_rng(0).uniform(size=(6, 5))
    text = """dim m, n, r = 2 data X[m, n] var W[m, r] >= 0, H[r, n] >= 0
        minimize sumsq(X - W @ H)"""
    model = slomodel.compile(text, data={"X": X})
    assert model.solve(x0=np.full(22, 0.5)).fun < 0.8


def test_second_order_says_what_it_knows_of_the_last_point() -> None:
    """On the face of the point, of which a vertex has no direction."""
    inside = "var x in [-1, 1], y in [0, 1] minimize x^2 + y - x * y"
    found = slomodel.compile(inside).solve(x0=[0.3, 0.3], second_order=True)
    assert "λ ≥ −√(L2·gtol)" in found.message
    vertex = slomodel.compile("var x in [0, 1], y in [0, 1] minimize x + y")
    assert "no direction is left" in vertex.solve(x0=[0.3, 0.3], second_order=True).message


@pytest.mark.parametrize(
    "text",
    ["var x >= 0 var y minimize (x - y)^2 - x", "var x[3] >= 0 minimize (x[0] - x[1])^2 - x[2]"],
)
def test_a_quadratic_that_falls_along_a_valley_is_unbounded(text: str) -> None:
    """Rounding of f stops the steps before f is below any threshold."""
    model = slomodel.compile(text)
    assert model.solve(x0=np.ones(model.n)).status is Status.unbounded


def test_short_steps_far_out_do_not_hide_a_descent_without_end() -> None:
    """At x = 0 the objective falls with z alone, linearly, and by less than it is rounded."""
    text = "var x >= 0, y <= 3, z minimize x*z - 2*x^2 - 2*y^2 + 2*x - 3*y - 3*z"
    found = slomodel.compile(text, backend="numpy").solve(x0=[1.33, 2.89, -1.35], max_iter=1000)
    assert found.status is Status.unbounded


# Sums of squares with minima along lines, on which rounding errors are left of gradients.
FLAT = [
    "(7*x[0] + 7*x[1] + 2*x[2] - 1)^2/2 subject to (2*x[0] + 9*x[1] - 7*x[2])/1000 <= -4, "
    "4*x[1] + x[2] - 3*x[0] == -2",
    "(5*x[0] + 2*x[1] + 4*x[2] - 4)^2/2 subject to (6*x[0] - 2*x[1] - 2*x[2])/1000 <= -5, "
    "9*x[0] - 3*x[1] + 3*x[2] == -3",
]


@pytest.mark.parametrize("text", FLAT)
def test_minima_along_lines_are_no_descent_without_end(text: str) -> None:
    model = slomodel.compile(f"var x[3] minimize {text}", backend="numpy")
    found = model.solve(x0=[0, 0, 0])
    assert found.success
    assert abs(found.fun) <= 1e-9


@pytest.mark.parametrize(("least", "endless"), [(1e-11, False), (0.0, True)])
def test_small_curvature_ends_a_descent(least: float, endless: bool) -> None:
    V = np.array([[0.8, 0.6], [-0.6, 0.8]])
    H = V @ np.diag([1.0, least]) @ V.T
    nothing, free = np.zeros((0, 2)), np.full(2, np.inf)
    d = recession(1e5 * H, -V[:, 1], nothing, np.zeros(0, dtype=bool), -free, free)
    assert (d is not None) == endless
