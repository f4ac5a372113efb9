"""Variables in open sets: the changes of variables, and that users see x everywhere."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray
from scipy.special import expit, softmax

import slomodel
from slomodel.cli import main
from slomodel.errors import DomainError, SlomodelError

Array = NDArray[np.float64]
RNG = np.random.default_rng(5)
U = RNG.normal(size=24)


def cholesky(u: Array) -> Array:
    """The factor (3, 3) of 6 free elements, as a user would write it."""
    a, b, c = np.exp(u[:3])
    return np.array([[a, 0, 0], [u[3], b, 0], [u[4], u[5], c]])


def correlation(u: Array) -> Array:
    """A correlation matrix (3, 3) from three partial correlations."""
    r, s, t = np.tanh(u)
    rows = [[1, 0, 0], [r, np.sqrt(1 - r * r), 0]]
    rows.append([s, t * np.sqrt(1 - s * s), np.sqrt((1 - s * s) * (1 - t * t))])
    return np.array(rows) @ np.array(rows).T


# A declaration, the number of unknowns, and x(u) in NumPy.
SETS: list[tuple[str, int, Callable[[Array], Array]]] = [
    ("x > 0", 1, lambda u: np.exp(u[0])),
    ("x[4] > -2", 4, lambda u: np.exp(u) - 2),
    ("x[4] < 3", 4, lambda u: 3 - np.exp(u)),
    ("x[4] in (0, 1)", 4, expit),
    ("x[4] in (-1, 4)", 4, lambda u: -1 + 5 * expit(u)),
    ("x[4] in (-inf, inf)", 4, lambda u: u),
    ("x[4] in (0, inf)", 4, np.exp),
    ("x[2, 2] in (low, 9)", 4, lambda u: LOW + (9 - LOW) * expit(u.reshape(2, 2))),
    ("x[2, 2] > low[0, :][None, :]", 4, lambda u: LOW[0] + np.exp(u.reshape(2, 2))),
    ("x[4] in open_simplex", 3, lambda u: softmax([*u, 0.0])),
    ("x[2, 3] in open_simplex", 4, lambda u: softmax(np.c_[u.reshape(2, 2), [0, 0]], axis=1)),
    ("x[3, 2] in open_simplex(axis=0)", 4, lambda u: softmax(np.r_[u, 0, 0].reshape(3, 2), axis=0)),
    ("x[4] in ordered", 4, lambda u: np.cumsum([u[0], *np.exp(u[1:])])),
    (
        "x[2, 3] in ordered(axis=0)",
        6,
        lambda u: np.cumsum([u[:3], np.exp(u[3:])], axis=0),
    ),
    ("x[3, 3] in cholesky_factor", 6, cholesky),
    ("x[3, 3] in correlation", 3, correlation),
]
LOW = np.array([[0.5, -1.0], [2.0, 3.0]])


@pytest.fixture(params=SETS, ids=[text for text, *_ in SETS], scope="module")
def case(request: pytest.FixtureRequest) -> tuple[slomodel.Model, Array, Array]:
    """A model with one variable, a point u, and x(u) by hand."""
    text, count, of = request.param
    scalar = "[" not in text.split()[0]
    objective = "exp(-x / 3) + x^2" if scalar else "sum(exp(-x / 3)) + sumsq(x)"
    source = f"data low[2, 2] var {text} minimize {objective} + 0 * sum(low)"
    model = slomodel.compile(source, data={"low": LOW}, backend="numpy")
    u = U[:count]
    return model, u, np.asarray(of(u)).ravel()


def test_x_of_u_is_the_one_by_hand(case: tuple[slomodel.Model, Array, Array]) -> None:
    model, u, x = case
    assert model.unconstrained.n == len(u)
    assert model.n == len(x)
    np.testing.assert_allclose(model.from_unconstrained(u), x, rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(model.to_unconstrained(x), u, rtol=1e-12, atol=1e-13)


def test_the_objective_in_u_is_that_in_x(case: tuple[slomodel.Model, Array, Array]) -> None:
    model, u, x = case
    free = model.unconstrained
    wanted = np.sum(np.exp(-x / 3)) + np.sum(x**2)
    assert free.value(u) == pytest.approx(wanted, rel=1e-14)
    assert model.value(x) == pytest.approx(wanted, rel=1e-14)
    assert max(free.check_gradient(u).values()) < 1e-14
    # The chain rule through a numerical Jacobian of x(u).
    steps = 1e-6 * np.eye(len(u))
    jacobian = np.array(
        [(model.from_unconstrained(u + s) - model.from_unconstrained(u - s)) / 2e-6 for s in steps]
    )
    np.testing.assert_allclose(free.gradient(u), jacobian @ model.gradient(x), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("text", ["x > 0", "x[3] in open_simplex", "x[2, 2] in correlation"])
def test_bounds_in_u_hold(text: str) -> None:
    objective = "(x - 1)^2" if text == "x > 0" else "sumsq(x - 1)"
    free = slomodel.compile(f"var {text} minimize {objective}", backend="numpy").unconstrained
    u, radius = U[: free.n], 0.1
    found = free.bounds(u, radius)
    sampled = free.sample_bounds(u, radius, samples=50)
    assert sampled.L1 <= found.L1 < 5 * sampled.L1
    assert sampled.L2 <= found.L2 < 10 * sampled.L2


def test_hessian_products_are_differences_of_gradients(
    case: tuple[slomodel.Model, Array, Array],
) -> None:
    free, u = case[0].unconstrained, case[1]
    along = np.cos(np.arange(len(u)))
    difference = (free.gradient(u + 1e-5 * along) - free.gradient(u - 1e-5 * along)) / 2e-5
    np.testing.assert_allclose(free.hvp(u, along), difference, rtol=1e-7, atol=1e-7)


def test_a_start_without_init_is_inside(case: tuple[slomodel.Model, Array, Array]) -> None:
    model = case[0]
    starts = [model.x0(seed) for seed in range(2)]
    for x in starts:
        again = model.from_unconstrained(model.to_unconstrained(x))
        np.testing.assert_allclose(again, x, rtol=1e-11, atol=1e-12)
    assert not np.array_equal(starts[0], starts[1])


EVERYTHING = """
dim K = 3, n = 3
data y[4]
var  lo > 0 init 1, hi > lo init 3, t in (lo, hi) init 2
var  p[K] in open_simplex init 1, m[K] in ordered init 0, s[K] > 0 init 1
var  L[n, n] in cholesky_factor init 2, C[n, n] in correlation init eye
minimize (lo - 1)^2 + (hi - 4)^2 + (t - 2)^2 - 0.1 * log(hi - t) - 0.1 * log(t - lo)
  - sum(logsumexp(log(p[k]) - ((y[i] - m[k]) / s[k])^2 / 2 - log(s[k]) for k in K) for i in 4)
  + sumsq(m) / 8 + sumsq(s) / 8 + sum(1 / s[k]^2 for k in K) - 2 * sum(log(p)) + sumsq(L @ L' - C)
"""
Y = np.array([-1.0, 0.2, 0.9, 2.5])


def everything(backend: str = "numpy") -> slomodel.Model:
    return slomodel.compile(EVERYTHING, data={"y": Y}, backend=backend)


def test_the_report_names_the_sets() -> None:
    lines = everything().explain().splitlines()
    assert "variable   t scalar in (lo, hi)" in lines
    assert "unknowns   30" in lines
    assert "solver     moves 20 unconstrained variables" in lines


def test_starts_by_number() -> None:
    start = everything().unpack(everything().x0())
    np.testing.assert_allclose(start["p"], np.full(3, 1 / 3))
    np.testing.assert_allclose(start["m"], [0, 1, 2])
    np.testing.assert_allclose(start["L"], 2 * np.eye(3))
    np.testing.assert_allclose(start["C"], np.eye(3))


@pytest.mark.parametrize("backend", ["numpy", "numexpr", "c"])
def test_every_target_computes_the_same(backend: str) -> None:
    model, other = everything(backend), everything("numpy")
    u = model.to_unconstrained(model.x0()) + 0.1 * U[: model.unconstrained.n]
    value, gradient = model.unconstrained.value_and_gradient(u)
    assert value == pytest.approx(model.value(model.from_unconstrained(u)), rel=1e-13)
    np.testing.assert_allclose(gradient, other.unconstrained.gradient(u), rtol=1e-11, atol=1e-12)
    assert max(model.unconstrained.check_gradient(u).values()) < 1e-13


def test_a_run_is_seen_in_x(tmp_path: Path) -> None:
    model, seen = everything(), []
    solution = model.solve(callback=lambda state: seen.append(state.x), gtol=1e-5)
    assert solution.success
    assert seen[0] == pytest.approx(model.x0())
    assert all(x.shape == (model.n,) for x in seen)
    np.testing.assert_array_equal(seen[-1], solution.x)
    found = solution.variables
    assert found["lo"] < found["t"] < found["hi"]
    assert found["p"].sum() == pytest.approx(1.0)
    assert np.all(np.diff(found["m"]) > 0)
    np.testing.assert_allclose(np.diag(found["C"]), 1.0)
    assert solution.unconstrained is not None
    gradient = model.unconstrained.gradient(solution.unconstrained)
    np.testing.assert_allclose(solution.jac, gradient, rtol=1e-9, atol=1e-12)
    assert solution.gradient_norm == pytest.approx(np.linalg.norm(solution.jac))
    solution.save(tmp_path / "run.npz")
    loaded = slomodel.load_solution(tmp_path / "run.npz")
    np.testing.assert_array_equal(loaded.x, solution.x)
    assert loaded.unconstrained is not None
    np.testing.assert_array_equal(loaded.unconstrained, solution.unconstrained)
    # A run from there has no decrease yet by which to judge, and goes on for a few steps.
    for start in (loaded, solution.variables):
        again = model.solve(x0=start, gtol=1e-5)
        assert again.history.fun[0] == pytest.approx(solution.fun, rel=1e-12)
        assert solution.fun - 1e-8 * abs(solution.fun) < again.fun <= solution.fun
        assert again.success


def test_a_run_is_resumed_bit_for_bit(tmp_path: Path) -> None:
    model, file = everything(), tmp_path / "run.ckpt"
    whole = model.solve(max_iter=12)
    model.solve(max_iter=5, checkpoint=file)
    rest = model.solve(max_iter=12, resume=file)
    np.testing.assert_array_equal(rest.x, whole.x)
    again = model.solve(max_iter=12, resume=file, x0=model.x0())
    np.testing.assert_array_equal(again.x, whole.x)


def test_several_starts() -> None:
    model = slomodel.compile("var s[2] > 0, a minimize sumsq(s) - sum(log(s)) + a^2")
    solution = model.solve(starts=3)
    assert len(solution.runs) == 3
    np.testing.assert_allclose(solution.x, [np.sqrt(0.5), np.sqrt(0.5), 0], atol=1e-5)


def test_maxima_are_reported_as_written() -> None:
    model = slomodel.compile("var p in (0, 1) init 0.9 maximize 3 * log(p) + log(1 - p)")
    solution = model.solve()
    assert solution.x == pytest.approx([0.75], abs=1e-6)
    assert solution.fun == pytest.approx(3 * np.log(0.75) + np.log(0.25))


def test_pickles_and_binds() -> None:
    model = everything()
    u = model.to_unconstrained(model.x0())
    for one in (model, model.unconstrained):
        copy = pickle.loads(pickle.dumps(one))
        assert copy.n == one.n
        assert copy.unconstrained.value(u) == model.unconstrained.value(u)
    other = model.bind(y=Y + 1)
    assert other.unconstrained.value(u) == pytest.approx(other.value(model.x0()))


def test_a_model_without_open_sets_is_its_own() -> None:
    model = slomodel.compile("var x[3] minimize sumsq(x)")
    assert model.unconstrained is model
    assert model.solve().unconstrained is None
    np.testing.assert_array_equal(model.to_unconstrained([1, 2, 3]), [1, 2, 3])


OUTSIDE: list[tuple[str, object, str]] = [
    ("s > 0", -1.0, r"`s > 0`: s is -1"),
    ("s > 0", 0.0, r"s is 0"),
    ("s > 0", np.nan, r"s is nan"),
    ("s[2] in (0, 1)", [0.5, 2.0], r"s\[1\] is 2"),
    ("s[3] in open_simplex", [0.5, 0.2, 0.2], r"s has the sum 0.9 along axis 0"),
    ("s[3] in open_simplex", [0.5, -0.2, 0.7], r"s\[1\] is -0.2"),
    ("s[2, 2] in ordered", [[0, 1], [1, 1]], r"s does not increase at \[1, 1\]"),
    ("s[2, 2] in cholesky_factor", [[1, 1], [1, 1]], r"s\[0, 1\] is 1"),
    ("s[2, 2] in cholesky_factor", [[1, 0], [1, 0]], r"s\[1, 1\] is 0"),
    ("s[2, 2] in correlation", [[1, 2], [2, 1]], r"s is not positive definite"),
    ("s[2, 2] in correlation", [[1, 0.2], [0, 1]], r"s is not symmetric"),
    ("s[2, 2] in correlation", [[1, 0], [0, 2]], r"s\[1, 1\] is 2"),
]


@pytest.mark.parametrize(("text", "value", "message"), OUTSIDE)
def test_points_outside_are_refused(text: str, value: object, message: str) -> None:
    objective = "s^2" if text == "s > 0" else "sumsq(s)"
    model = slomodel.compile(f"var {text} minimize {objective}", backend="numpy")
    point = {"s": np.asarray(value, dtype=np.float64)}
    for action in (lambda: model.solve(x0=point), lambda: model.to_unconstrained(point)):
        with pytest.raises(DomainError, match=f"E321.*{message}"):
            action()


def test_starts_outside_are_refused() -> None:
    with pytest.raises(SlomodelError, match="E321"):
        slomodel.compile("var s > 0 init 0 minimize s^2")
    model = slomodel.compile("data c var s > 0 init c minimize s^2", data={"c": -1})
    with pytest.raises(DomainError, match=r"(?s)E321.*the start .*s is -1.*or none"):
        model.solve()


def test_a_start_by_an_init_of_later_names_is_explained() -> None:
    with pytest.raises(SlomodelError, match=r"(?s)E321.*all names since.*`p in \(0, 1\) init …`"):
        slomodel.compile("var p in (0, 1), s > 0 init 1 minimize p + s")


@pytest.mark.parametrize("declared", [one for one, _, _ in SETS if "low" not in one])
def test_the_unconstrained_model_starts_where_the_model_does(declared: str) -> None:
    inside = {"(-1, 4)": "", "< 3": " init 2", "simplex": "", "ordered": " init 1"}
    init = next((own for key, own in inside.items() if key in declared), " init 0.5")
    init = " init eye" if "correlation" in declared or "cholesky" in declared else init
    for own in (init, ""):
        model = slomodel.compile(f"var y init 3, {declared}{own} minimize sumsq(x) + y^2")
        bound = model.unconstrained.bind()
        for one in (model.unconstrained, bound):
            start = model.from_unconstrained(one.x0(4))
            np.testing.assert_allclose(start, model.x0(4), rtol=1e-12)


def test_an_end_at_the_end_of_a_half_line_is_remarked() -> None:
    """The density of a group's effects has no upper bound where their spread tends to 0."""
    text = (
        "dim J var th[J], mu init 0 var tau > 0 init 1 "
        "maximize normal_lpdf(th, mu, tau) - sumsq(th - 1)"
    )
    found = slomodel.compile(text, dims={"J": 8}, backend="numpy").solve()
    assert not found.success
    assert "`tau` is at the edge of its set" in found.message
    # The advice to declare sets is for variables without one; the trace is in the user's variables.
    assert "Keep the variables" not in found.message
    assert "tau = -" not in found.message


@pytest.mark.parametrize(
    "text",
    [
        "p in (0, 1) init 0.9 minimize (p - 2)^2",
        "p[3] in open_simplex minimize (p[0] - 2)^2",
        "p[2, 2] in correlation minimize (p[0, 1] - 2)^2",
        "p[3] in ordered minimize (p[0] - 1)^2 + p[1]^2 + (p[2] - 5)^2",
    ],
)
def test_an_end_at_the_edge_is_remarked(text: str) -> None:
    message = slomodel.compile(f"var {text}", backend="numpy").solve(gtol=1e-7).message
    assert message.endswith("a better one from another start.")
    assert "`p` is at the edge of its set" in message


@pytest.mark.parametrize(
    ("text", "u", "wanted"),
    [
        ("var s > 0 minimize log(s)^2", [-800.0], 640000.0),
        ("var p in (0, 1) minimize -log(p) - log(1 - p)", [800.0], 800.0),
        ("var p in (0, 1) minimize -log(p) - log(1 - p)", [-800.0], 800.0),
        ("var p[3] in open_simplex minimize -sum(log(p))", [900.0, 0.0], 1800.0),
    ],
)
def test_logarithms_at_the_edge_are_finite(text: str, u: list[float], wanted: float) -> None:
    assert slomodel.compile(text).unconstrained.value(u) == pytest.approx(wanted)


def test_a_saved_run_at_the_edge_is_a_start(tmp_path: Path) -> None:
    """An infimum that is not attained: x is rounded to the edge, and u is not."""
    file, out = tmp_path / "edge.slo", tmp_path / "run.npz"
    file.write_text("var p in (0, 1) init 0.5 minimize 1 - p\n")
    options = ["--gtol", "1e-30", "--max-iter", "50", "--out", str(out)]
    first = CliRunner().invoke(main, ["solve", str(file), *options])
    assert slomodel.load_solution(out).x == 1.0, first.output
    again = CliRunner().invoke(main, ["solve", str(file), "--max-iter", "2", "--x0", str(out)])
    assert "outside" not in again.output


@pytest.mark.parametrize("backend", ["numpy", "numexpr", "c"])
def test_ends_that_are_data_may_be_infinite(backend: str) -> None:
    low = np.array([0.0, -np.inf, 1.0, -np.inf])
    high = np.array([1.0, 2.0, np.inf, np.inf])
    text = "dim n data lo[n], hi[n] var x[n] in (lo, hi) minimize sumsq(x - 3)"
    model = slomodel.compile(text, data={"lo": low, "hi": high}, backend=backend)
    free, u = model.unconstrained, U[:4]
    x = np.array([expit(u[0]), 2 - np.exp(u[1]), 1 + np.exp(u[2]), u[3]])
    np.testing.assert_allclose(model.from_unconstrained(u), x, rtol=1e-15)
    np.testing.assert_allclose(model.to_unconstrained(x), u, rtol=1e-13)
    slopes = np.array([x[0] * (1 - x[0]), x[1] - 2, x[2] - 1, 1])
    np.testing.assert_allclose(free.gradient(u), 2 * (x - 3) * slopes, rtol=1e-13)
    # Where the other forms overflow.
    assert free.gradient([800, -800, -800, 800]) == pytest.approx([0, 0, 0, 1594])
    if backend == "numpy":  # bounds are of the graph, whatever the backend
        found, sampled = free.bounds(u, 0.1), free.sample_bounds(u, 0.1, samples=20)
        assert sampled.L1 <= found.L1 < 2 * sampled.L1
    np.testing.assert_allclose(model.solve().x, [1, 2, 3, 3], atol=1e-5)
    # Finite ends have the plain form, also after a bind.
    other = model.bind(lo=np.zeros(4), hi=np.full(4, 4.0))
    assert "where" not in other.unconstrained.source("graph")
    np.testing.assert_allclose(other.solve().x, 3.0, atol=1e-5)


def test_a_random_start_lies_between_ends_that_were_moved() -> None:
    model = slomodel.compile("var a in [0, 1], b in (0, a) minimize (a - b)^2 + a - log(b)")
    for seed in range(5):
        start = model.unpack(model.x0(seed))
        assert 0 < start["b"] < start["a"] < 1
    assert model.solve().success


@pytest.mark.parametrize("seed", range(8))
def test_no_step_jumps_to_where_a_change_of_variables_is_flat(seed: int) -> None:
    """Steps along negative curvature ended at correlations of 1 from one start in four."""
    R = np.array([[1.0, 0.5, 0.2], [0.5, 1.0, 0.1], [0.2, 0.1, 1.0]])
    text = "dim n\ndata R[n, n]\nvar C[n, n] in correlation\nminimize sumsq(C - R)"
    assert slomodel.compile(text, data={"R": R}).solve(seed=seed).fun < 1e-10


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ("x[3]", [0, 0, 0]),
        ("x[3] > 0", [1, 1, 1]),
        ("x[3] in (0, 2)", [1, 1, 1]),
        ("x[3] in ordered", [0, 1, 1]),
        ("x[3] in open_simplex", [1, 1]),
        ("x[2, 2] in cholesky_factor", [1, 1, 0]),
        ("x[3, 3] in correlation", [1, 1, 1]),
    ],
)
def test_unknowns_on_a_logarithmic_scale(declared: str, expected: list[int]) -> None:
    model = slomodel.compile(f"var {declared}\nvar y\nminimize sumsq(x) + y^2")
    coordinates = model._coordinates
    marks = np.zeros(4) if coordinates is None else coordinates.logarithmic()
    assert marks.tolist() == [*expected, 0]


@pytest.mark.parametrize("init", ["normal(2, 3)", "uniform(-1, 1)"])
def test_random_starts_of_ordered_variables_increase(init: str) -> None:
    text = f"var x[4, 2] in ordered(axis=0) init {init} minimize sumsq(x - 1)"
    model = slomodel.compile(text, backend="numpy")
    start = model.x0(seed=3).reshape(4, 2)
    assert (np.diff(start, axis=0) > 0).all()
    free = slomodel.compile(text.replace("in ordered(axis=0) ", ""), backend="numpy")
    np.testing.assert_array_equal(np.sort(free.x0(seed=3).reshape(4, 2), axis=0), start)
    np.testing.assert_allclose(
        model.from_unconstrained(model.unconstrained.x0(seed=3)), start.ravel()
    )
