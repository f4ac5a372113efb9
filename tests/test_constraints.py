"""Models with constraints: minima of known problems, multipliers, statuses, results, files."""

import json
import math
import re
import warnings
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.testing import assert_allclose
from scipy.optimize import linprog, minimize

import slomodel
from benchmarks.constraint_cases import CHAIN, HS43, HS71, KNOWN
from slomodel.cli import main
from slomodel.errors import DomainError
from slomodel.solve import State, Status


def solved(text: str, start: object = None, **options: object) -> slomodel.Solution:
    return slomodel.compile(text).solve(x0=start, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", KNOWN)
def test_known_problems_are_solved_in_few_evaluations(name: str) -> None:
    text, start, value, most = KNOWN[name]
    found = solved(text, start)
    assert found.status is Status.converged, found.message
    assert abs(found.fun - value) <= 1e-6 * max(1.0, abs(value))
    assert found.violation <= 1e-9
    assert found.nfev <= most
    excess = slomodel.compile(text).constraints(found.x)
    assert max(float(np.max(one)) for one in excess.values()) <= 1e-9


@pytest.mark.parametrize(
    ("objective", "constraint"), [(1e6, 1.0), (1e-6, 1.0), (1.0, 1e4), (1e3, 1e-3)]
)
def test_a_run_does_not_depend_on_units(objective: float, constraint: float) -> None:
    """The multipliers at the known solution (0, 1, 2, -1) of HS43 are 1, 0 and 2."""
    text = HS43.replace("minimize ", f"minimize {objective} * (").replace(
        "7 * x[3]\n", "7 * x[3])\n"
    )
    for name, side in (("one", 8), ("two", 10), ("three", 5)):
        text = text.replace(f"{name}: ", f"{name}: {constraint} * (")
        text = text.replace(f" <= {side}", f") <= {side * constraint}")
    found = solved(text, [0.0] * 4)
    assert found.status is Status.converged, found.message
    assert_allclose(found.x, [0.0, 1.0, 2.0, -1.0], atol=1e-6)
    multipliers = [float(found.multipliers[name]) for name in ("one", "two", "three")]
    wanted = np.array([-1.0, 0.0, -2.0]) * objective / constraint
    assert_allclose(multipliers, wanted, atol=1e-4 * objective / constraint)
    assert found.nfev <= 20


def test_multipliers_that_grow_do_not_make_a_problem_unbounded() -> None:
    """The gradients of the constraints are opposite at the solution (1, 0), and it has none."""
    text = "var x, y minimize -x subject to y <= (1 - x)^3, y >= 0"
    found = solved(text, [0.2, 0.1])
    assert found.status is not Status.unbounded
    assert found.fun == pytest.approx(-1.0, abs=0.01)


def test_multipliers_are_rates_of_the_optimum() -> None:
    """The optimum of HS71 with its right sides moved, by SLSQP and by differences."""
    start = [1.0, 5.0, 5.0, 1.0]
    found = solved(HS71, start)
    assert_allclose(found.multipliers["product"], 0.552293660, rtol=1e-6)
    assert_allclose(found.multipliers["square"], -0.161468566, rtol=1e-6)
    assert_allclose(found.multipliers["x"][0], 1.08787123, rtol=1e-6)
    assert found.active["product"]
    assert found.active["x"].tolist() == [True, False, False, False]
    h = 1e-5
    moved = HS71.replace("25", f"{25 + h}")
    rate = (solved(moved, start).fun - found.fun) / h
    assert_allclose(rate, found.multipliers["product"], rtol=1e-4)
    # For a maximum they are the rates of the objective as written.
    text = "var x, y maximize 3*x - x^2/2 + y subject to cap: x <= 2*y, low: y + x <= 3"
    best = solved(text)
    rates = [
        (solved(text.replace(old, new)).fun - best.fun) / h
        for old, new in (("2*y", f"2*y + {h}"), ("<= 3", f"<= 3 + {h}"))
    ]
    assert_allclose([best.multipliers["cap"], best.multipliers["low"]], rates, atol=1e-5)


def test_nonconvex_equations() -> None:
    k = np.arange(1, 20) / 20
    x0 = {"u": 2 * k, "v": 0.5 * k - 3 * k * (1 - k)}
    found = slomodel.compile(CHAIN).solve(x0=x0)
    assert found.success, found.message
    assert abs(found.fun + 6.644544538) < 1e-8


@pytest.mark.parametrize("method", ["norm-armijo", "tgd", "bpg"])
def test_every_method_solves_the_subproblems(method: str) -> None:
    """The constants of tgd and bpg are those that are proved for the augmented Lagrangian."""
    text = "var x[3] init 0 minimize sumsq(x - 2) subject to sum(x) == 1"
    found = solved(text, None, method=method)
    assert found.success, found.message
    assert_allclose(found.x, 1 / 3, atol=1e-6)
    assert found.parameters["penalty"] > 0


def test_lengths_that_are_given_limit_the_tolerances_of_the_subproblems() -> None:
    text = "var x[2] minimize (x[0] - 2)^2 + x[1]^2 subject to x[0] + x[1] == 1"
    found = solved(text, [0.5, 0.4], method="tgd", D=0.4, lipschitz="sampled", gtol=1e-3, ctol=1e-4)
    assert found.status is Status.converged, found.message
    assert_allclose(found.x, [1.5, -0.5], atol=1e-3)


def test_the_inequalities_of_the_theorems_hold_in_the_subproblems() -> None:
    text = "var x[2] init 0.1 minimize x[0]^2 - x[1]^2 + x[1]^4 subject to x[0] + x[1] == 0.5"
    found = solved(text, None, method="norm-armijo", direction="lbfgs", verify=True)
    assert found.success, found.message
    assert found.violation <= 1e-9
    assert found.certificate is not None
    assert found.certificate.holds, found.certificate.summary


def test_a_linear_program() -> None:
    rng = np.random.default_rng(0)
    A, c = rng.uniform(size=(5, 8)), rng.uniform(size=8)
    text = "dim m, n data A[m, n], c[n] var x[n] >= 0 minimize dot(c, x) subject to A @ x >= 1"
    found = slomodel.compile(text, data={"A": A, "c": c}).solve()
    wanted = linprog(c, A_ub=-A, b_ub=-np.ones(5))
    assert_allclose(found.fun, wanted.fun, rtol=1e-8)
    assert_allclose(found.multipliers["constraint 1"], -wanted.ineqlin.marginals, atol=1e-7)


@pytest.mark.parametrize("seed", [3, 5])
def test_circles_that_must_not_overlap_do_not_end_at_one_point(seed: int) -> None:
    """Seven points in a square: where two coincide no gradient of their distance parts them."""
    start = np.random.default_rng(100 + seed).uniform(0.1, 0.9, 14)
    text = """var p[7, 2] in [0, 1], r in [0, 1] maximize r
        subject to sumsq(p[i, :] - p[j, :]) >= r^2 for i in range(7), j in range(i + 1, 7)"""
    found = solved(text, [*start, 0.1])
    assert found.status.success, found.message
    assert found.violation <= 1e-9
    assert found.fun > 0.49


@pytest.mark.parametrize(
    ("declared", "wanted"),
    [("p[4] > 0", True), ("p[4] in simplex", False), ("p[4] in ball(2)", True)],
)
def test_sets_and_constraints_together(declared: str, wanted: bool) -> None:
    total = "sum(p) == 1, " if wanted else ""
    text = f"var {declared} minimize sumsq(p - 0.1) subject to {total}sum(i * p[i] for i in 4) >= 2"
    found = solved(text)
    assert found.success, found.message
    assert_allclose(found.x, [0.1, 0.2, 0.3, 0.4], atol=1e-7)


def test_statuses_are_true() -> None:
    disjoint = "var x[2] init 0 minimize sum(x) subject to sumsq(x) <= 1, (x[0]-3)^2 + x[1]^2 <= 1"
    found = solved(disjoint)
    assert found.status is Status.infeasible
    assert not found.success
    assert_allclose(found.x, [1.5, 0.0], atol=1e-4)
    falls = "var x[2] init 1 minimize x[0] - x[1]^2 subject to x[0]^2 + x[1] <= 4"
    found = solved(falls, [1.0, -1.0])
    assert found.status is Status.unbounded
    assert found.violation == 0.0
    found = solved("var x init -1 minimize x^2 subject to here: log(x) >= 1")
    assert found.status is Status.nonfinite_start
    assert "here" in found.message
    text = "var x[2] init 3 minimize sumsq(x) subject to x[0] * x[1] == 2"
    assert solved(text, max_iter=1).status is Status.max_iter
    assert solved(text, max_nfev=2).status is Status.max_nfev


VALLEY = "(3*x[0] - 2*x[1])^2/2"
# Text, start, and how the problem ends: none of these has a solution.
WITHOUT_SOLUTION = [
    ("var x[2] minimize x[0] - x[1] subject to x[0] + x[1] >= 1", [0, 0], Status.unbounded),
    ("var x[2] minimize -x[0]^2 subject to x[0] == x[1]", [1, 1], Status.unbounded),
    ("var x[2] minimize -x[0] - x[1] subject to x[0] * x[1] >= 1", [1, 1], Status.unbounded),
    ("var x[2] >= 0 minimize -x[0]^2 - x[1] subject to x[0] >= x[1]", [1, 1], Status.unbounded),
    (f"var x[2] minimize {VALLEY} - 3*x[0] subject to x[0] - x[1] <= 1", [4, 1], Status.unbounded),
    (
        f"var x[2] minimize {VALLEY} - 3*x[0] subject to x[0] - x[1] <= 1, x[0] - x[1] >= 2",
        [4, 1],
        Status.infeasible,
    ),
    ("var x[2] minimize x[0] subject to sum(x) == 1, sum(x) == 2", [1, 1], Status.infeasible),
    ("var x[2] in [0, 1] minimize x[0] subject to sum(x) >= 3", [1, 1], Status.infeasible),
    ("var x minimize x subject to x^2 == -1", [1], Status.infeasible),
]


@pytest.mark.parametrize(("text", "start", "status"), WITHOUT_SOLUTION)
def test_what_has_no_solution_is_called_so(text: str, start: list[float], status: Status) -> None:
    found = solved(text, start)
    assert found.status is status
    if status is Status.unbounded:
        assert found.fun < -1e3
        assert found.violation <= 1e-9 * max(1.0, float(np.abs(found.x).max()))


@pytest.mark.parametrize("scale", ["1", "1e6"])
def test_a_violation_that_falls_far_out_is_at_no_minimum(scale: str) -> None:
    """From x > 0 it tends to a limit, while the equation holds at -1."""
    text = f"var x minimize x^2 subject to {scale}/x == -{scale}"
    assert solved(text, [1.0]).status not in (Status.infeasible, Status.converged)
    assert_allclose(solved(text, [-3.0]).x, -1.0)


def test_a_minimum_without_multipliers_is_explained() -> None:
    """At (1, 0) the gradients of constraint and bound are opposite, so that -x has no KKT point."""
    text = "var x, y minimize -x subject to touches: y <= (1 - x)^3, y >= 0"
    found = solved(text, [0.0, 0.2])
    assert not found.success
    assert_allclose(found.x, [1.0, 0.0], atol=2e-3)
    assert "gradient of `touches` times its multiplier has grown" in found.message
    assert "has no multipliers" in found.message
    assert "kink" not in found.message


# Curves without straight lines: the constraint, its sides in exact arithmetic, and the start.
CURVES = [
    ("y <= (1 - x)^3", lambda x, y: (y, (1 - x) ** 3), [0, 0]),
    ("y <= 1e4 * (1 - x)^3", lambda x, y: (y, 10_000 * (1 - x) ** 3), [2, -3]),
    ("x^2 == y", lambda x, y: (x * x, y), [1, 2]),
]


@pytest.mark.parametrize(("text", "sides", "start"), CURVES)
def test_a_descent_along_a_curve_without_end(
    text: str, sides: Callable[..., tuple[Fraction, Fraction]], start: list[float]
) -> None:
    found = solved(f"var x, y minimize -x subject to {text}", start, max_iter=5000)
    assert found.status is Status.unbounded, found.message
    assert found.fun < -1e15
    left, right = sides(*map(Fraction, found.x))
    assert left <= right + abs(right) / 10**11


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("subject to y <= (1 - x)^3, y >= -1e6", -101.0),
        ("subject to y >= x^4, x <= 1e5", -1e5),
    ],
)
def test_a_minimum_far_along_a_curve(text: str, value: float) -> None:
    """Where the gradient of the Lagrangian is below any tolerance, x may still be far from it."""
    found = solved(f"var x, y minimize -x {text}", [2, -3])
    assert found.status is Status.converged, found.message
    assert_allclose(found.fun, value, rtol=1e-9)


@pytest.mark.parametrize("start", [[0.0, 0.0], [1.0, 2.0], [5.0, -9.0]])
def test_a_face_of_solutions(start: list[float]) -> None:
    found = solved("var x[2] minimize x[0] + x[1] subject to x[0] + x[1] >= 1", start)
    assert found.success
    assert_allclose(found.fun, 1.0, atol=1e-9)
    assert np.abs(found.x).max() <= 100.0


@pytest.mark.parametrize(
    ("text", "start", "least"),
    [
        ("var x[2] minimize x[0]^2 - x[1]^2 subject to sumsq(x) <= 1", [0.3, 0.0], -1.0),
        ("var x[2] minimize x[0]^2 - x[1]^2 subject to sumsq(x) == 1", [1.3, 0.0], -1.0),
        ("var x[3] minimize x[0] * x[1] + x[2]^2 subject to sumsq(x) == 1", [0.0, 0, 1], -0.5),
    ],
)
def test_saddles_are_left(text: str, start: list[float], least: float) -> None:
    # `scaled=False` keeps the test of the gradient alone, which saddles satisfy.
    assert solved(text, start, scaled=False).fun > least + 0.5
    for found in (solved(text, start), solved(text, start, second_order=True)):
        assert found.success
        assert_allclose(found.fun, least, atol=1e-6)


@pytest.mark.parametrize("seed", [1, 5])
def test_a_chain_from_starts_with_nearly_dependent_gradients(seed: int) -> None:
    found = slomodel.compile(CHAIN).solve(seed=seed)
    assert found.success
    assert_allclose(found.fun, -6.644544538, atol=1e-7)
    assert found.nit <= 200


def test_constraints_of_large_numbers_hold_up_to_rounding() -> None:
    """A violation of one unit in the last place is neither infeasible nor a failure."""
    for scale in (1e8, 1e12):
        text = f"var x init 1 minimize x subject to {scale} * (x^2 - 2) + {scale / 10} * x == 0"
        found = solved(text)
        assert found.success, found.message
        assert_allclose(found.x, [0.5 * (8.01**0.5 - 0.1)], rtol=1e-14)
    text = "var x[2] init 0.5 minimize sumsq(x - 1) subject to sumsq(x) <= 1"
    assert slomodel.compile(text, dtype="float32").solve().success


def test_callback_history_and_counts() -> None:
    states: list[State] = []
    text, start, *_ = KNOWN["hs71"]
    model = slomodel.compile(text)
    found = model.solve(x0=start, callback=states.append)  # type: ignore[arg-type]
    assert [one.k for one in states] == list(range(found.nit + 1))
    assert len(found.history.fun) == found.nit + 1
    assert np.all(np.diff([one.nfev for one in states]) >= 0)
    stopped = model.solve(x0=start, callback=lambda state: state.k == 2)
    assert stopped.status is Status.user_stopped
    assert stopped.nit == 2


def test_a_checkpoint_continues_the_same_run(tmp_path: Path) -> None:
    text = "var x[3] init 2 minimize sumsq(x - 1) + sum(x^4) subject to prod(x) == 2, sum(x) <= 9"
    model = slomodel.compile(text)
    whole = model.solve(direction="lbfgs")
    file = tmp_path / "run.npz"
    model.solve(direction="lbfgs", max_iter=whole.nit - 3, checkpoint=file)
    resumed = model.solve(direction="lbfgs", resume=file)
    np.testing.assert_array_equal(resumed.x, whole.x)
    assert resumed.message.split(".")[0] == whole.message.split(".")[0]
    other = slomodel.compile("var x[3] init 2 minimize sumsq(x - 1)")
    with pytest.raises(DomainError):
        other.solve(resume=file)


def test_a_saved_solution_has_its_multipliers(tmp_path: Path) -> None:
    found = solved(HS71, [1.0, 5.0, 5.0, 1.0])
    found.save(tmp_path / "s.npz")
    read = slomodel.load_solution(tmp_path / "s.npz")
    assert read.violation == found.violation
    assert read.multipliers.keys() == {"x", "product", "square"}
    assert_allclose(read.multipliers["product"], found.multipliers["product"])


def test_the_command_line_shows_violation_and_multipliers(tmp_path: Path) -> None:
    (tmp_path / "m.slo").write_text(HS71.replace("[1, 5]", "[1, 5] init 2"))
    run = CliRunner().invoke(main, ["solve", str(tmp_path / "m.slo"), "--json"])
    document = json.loads(run.stdout)
    assert document["violation"] <= 1e-9
    assert_allclose(document["multipliers"]["square"], -0.16146857, rtol=1e-5)
    run = CliRunner().invoke(main, ["solve", str(tmp_path / "m.slo")])
    assert "gradient of the Lagrangian" in run.stdout
    assert "product: 1 of 1 element" in run.stdout
    assert re.search(r"multiplier square +scalar = -0\.161469", run.stdout)
    assert re.search(r"multiplier x +\[4\] = 1\.08787, 0, 0, 0", run.stdout)


@pytest.mark.parametrize("method", ["SLSQP", "trust-constr"])
def test_scipy_takes_the_constraints(method: str) -> None:
    model = slomodel.compile(HS71)
    arguments = model.scipy()
    if method == "SLSQP":
        del arguments["hessp"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = minimize(**arguments, x0=[1.0, 5.0, 5.0, 1.0], method=method)
    assert_allclose(found.fun, 17.0140173, rtol=1e-5)


@pytest.mark.parametrize("backend", ["numpy", "numexpr", "c"])
def test_every_backend(backend: str) -> None:
    text, start, value, _ = KNOWN["hs71"]
    found = slomodel.compile(text, backend=backend).solve(x0=start)
    assert_allclose(found.fun, value, rtol=1e-9)


def test_derivatives_of_the_constraints_by_complex_steps() -> None:
    text = """dim n data a[n] var x[n], y minimize sumsq(x)
    subject to 1 <= exp(x / 3) + a * y <= 9
    subject to x[i] * sin(x[j]) <= y for i in n, j in n if i < j"""
    a = np.array([0.3, -1.2, 0.7])
    rows = slomodel.compile(text, data={"a": a})._constraints()
    z = np.array([0.4, -0.7, 1.1, 0.2])

    def values(z: np.ndarray) -> np.ndarray:
        x, y = z[:3], z[3]
        middle = np.exp(x / 3) + a * y
        pairs = [x[i] * np.sin(x[j]) - y for i in range(3) for j in range(i + 1, 3)]
        return np.concatenate([1 - middle, middle - 9, pairs])

    h = 1e-30
    J = np.array([values(z + 1j * h * unit).imag / h for unit in np.eye(4)]).T
    weights = np.arange(1.0, 10.0)
    f, g, c = rows.evaluate(z, weights)
    assert_allclose(c, values(z), rtol=1e-14)
    assert_allclose(f, z[:3] @ z[:3], rtol=1e-14)
    assert_allclose(g, np.append(2 * z[:3], 0.0) + J.T @ weights, rtol=1e-13)
    assert_allclose(rows.jacobian(z), J, rtol=1e-13, atol=1e-15)
    v = np.array([1.0, -2.0, 0.5, 3.0])
    assert_allclose(rows.product(z, weights, v)[1], J @ v, rtol=1e-13)
    t = 1e-5
    slopes = [rows.evaluate(z + s * t * v, weights)[1] for s in (1, -1)]
    assert_allclose(
        rows.product(z, weights, v)[0], (slopes[0] - slopes[1]) / (2 * t), rtol=1e-7, atol=1e-8
    )


def test_what_is_refused_and_what_is_shown() -> None:
    model = slomodel.compile(HS71)
    with pytest.raises(DomainError, match="generated modules"):
        model.source("numpy")
    assert "constraint square: sumsq(x) == 40" in model.explain()
    assert model.constraints([1.0, 5.0, 5.0, 1.0]) == {"product": 0.0, "square": 12.0}
    with pytest.raises(DomainError, match="standard errors"):
        solved(HS71, [1.0, 5.0, 5.0, 1.0]).uncertainty()


def test_of_several_starts_a_feasible_end_is_best() -> None:
    """x^2 (x^2 - 2) <= -0.9 has feasible points near ±1 only: runs that stop early end outside."""
    text = "var x init normal(0, 2) minimize x subject to x^4 - 2*x^2 <= -0.9"
    found = slomodel.compile(text).solve(starts=3, max_nfev=9)
    violated = [one.violation > 1e-9 for one in found.runs]
    assert violated == sorted(violated)


def test_variables_held_at_values() -> None:
    model = slomodel.compile("var x init 1, y init 1 minimize x^2 + y^2 subject to x + y == 3")
    found = model.fix(x=1.0).solve()
    assert_allclose(found.variables["y"], 2.0, rtol=1e-9)
    assert_allclose(model.solve(starts=1).x, 1.5, rtol=1e-9)


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_ends_of_constraints_may_be_infinite(backend: str) -> None:
    """Rows without an end bind nothing: the model with finite ends alone has the same solution."""
    A, target = np.eye(4) + 1.0, np.array([3.0, -1.0, 2.0, 5.0])
    text = """
        dim m, n
        data A[m, n], t[n], lo[m], hi[m]
        var x[n] init 0
        minimize sumsq(x - t)
        subject to range: lo <= A @ x <= hi
    """
    low, high = np.array([1.0, -np.inf, -np.inf, 2.0]), np.array([np.inf, 1.0, np.inf, 2.0])
    given = {"A": A, "t": target}
    model = slomodel.compile(text, data={**given, "lo": low, "hi": high}, backend=backend)
    found = model.solve()
    rows = "A[0, :] @ x >= 1, A[1, :] @ x <= 1, A[3, :] @ x == 2"
    text = text.replace("lo <= A @ x <= hi", rows).replace(", lo[m], hi[m]", "")
    finite = slomodel.compile(text, data=given).solve()
    assert found.success
    assert_allclose(found.x, finite.x, atol=1e-7)
    assert found.multipliers["range"][2] == 0.0
    assert not found.active["range"][2]
    for change in ({"lo": low + np.array([0, 0, 0, 1.0])}, {"hi": high * np.nan}):
        with pytest.raises(DomainError, match="cannot hold"):
            model.bind(**change)


def test_an_infinite_number_elsewhere_in_a_constraint_is_refused() -> None:
    text = "dim n data a[n], hi[n] var x[n] minimize sumsq(x) subject to {}"
    given = {"a": [1.0, np.inf], "hi": [1.0, 2.0]}
    for limits in ("-hi <= x .* a <= hi", "-hi <= x .* x + a <= a"):
        with pytest.raises(DomainError, match="not finite"):
            slomodel.compile(text.format(limits), data=given)


@pytest.mark.parametrize(
    "text",
    [
        "var x[5] >= 0 maximize sum(x) subject to x[0] <= 1",
        "var x[5] minimize sum(x) subject to x[0] + x[1] >= 1",
        "var x[5] >= 0 init 1 minimize -sum(x) subject to x[0] + x[1] <= 1",
        "var x[3] >= 0 init 1 minimize x[0]^2 - x[1] subject to x[0] + x[2] <= 1",
    ],
)
def test_linear_programs_without_a_minimum_are_unbounded(text: str) -> None:
    """Far out a gradient is absorbed by x, which is no sign of a stationary point."""
    assert slomodel.compile(text).solve().status is Status.unbounded


@pytest.mark.parametrize(
    ("text", "least"),
    [
        ("var x[3] init 1\nminimize -x[0]*x[1]*x[2]\nsubject to sumsq(x) <= 3", -1.0),
        (
            "var x[3] init 1\nminimize -x[0]*x[1]*x[2]\nsubject to sum(x) == 0, sumsq(x) <= 1",
            -1.0 / math.sqrt(54.0),
        ),
        ("var x[2] init 1\nminimize x[0]^3 - 3*x[0]*x[1]^2\nsubject to sumsq(x) <= 1", -1.0),
    ],
)
def test_saddles_of_third_order_are_left(text: str, least: float) -> None:
    """The start is a KKT point without curvature, from which f falls by terms of third order."""
    model = slomodel.compile(text, backend="numpy")
    found = model.solve(x0=np.zeros(model.n))
    assert found.success
    assert found.fun == pytest.approx(least, abs=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("name", KNOWN)
def test_the_inequalities_hold_on_known_problems(name: str) -> None:
    """A run that Newton steps alone have ended has no certificate."""
    text, start, least, _ = KNOWN[name]
    found = slomodel.compile(text, backend="numpy").solve(x0=np.array(start), verify=True)
    assert found.success, found.message
    assert found.fun == pytest.approx(least, rel=1e-7, abs=1e-7)
    assert found.certificate is None or found.certificate.holds
