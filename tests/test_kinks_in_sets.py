"""Objectives and constraints with kinks, in sets: by their epigraph form, and what it refuses."""

import warnings
from pathlib import Path

import numpy as np
import pytest
import sympy as sp
from scipy.optimize import linprog, minimize

import slomodel
from slomodel.calculus.monotone import FALLING, RISING, directions
from slomodel.errors import NonsmoothWarning, StartWarning
from slomodel.functions import differentiated
from slomodel.ir.expr import Input
from slomodel.ir.walk import dependents
from slomodel.model import epigraph_run
from slomodel.reference import evaluate
from slomodel.solve import Solution, Status
from slomodel.solve.run.kinks import combination, outward_normals
from slomodel.solve.run.monitor import State
from slomodel.solve.sets.ball import EuclideanBall
from slomodel.solve.sets.box import Box
from slomodel.solve.sets.simplex import Simplex

pytestmark = [
    pytest.mark.filterwarnings("ignore::slomodel.errors.NonsmoothWarning"),
    pytest.mark.filterwarnings("ignore::slomodel.errors.ModelWarning"),
]
EPIGRAPH = "epigraph form"


def rows(m: int, n: int, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {"A": rng.standard_normal((m, n)), "b": rng.standard_normal(m)}


def solved(text: str, data: object = None, **options: object) -> Solution:
    model = slomodel.compile(text, data=data, backend="numpy")
    found = model.solve(**options)  # type: ignore[arg-type]
    assert len(found.history.fun) == found.nit + 1
    assert found.fun == pytest.approx(model.value(found.x), rel=1e-14, abs=1e-14)
    return found


LP = {
    "sum(abs(A @ x - b))": "sum",
    "norm1(b - A @ x)": "sum",
    "max(abs(A @ x - b))": "largest",
    "max(max(A @ x - b), max(b - A @ x))": "largest",
    "max(max(A[i, :] @ x - b[i], b[i] - A[i, :] @ x) for i in m)": "largest",
}


@pytest.mark.parametrize("objective", LP)
def test_fits_in_other_norms_are_linear_programs(objective: str) -> None:
    """Compared with HiGHS."""
    data = rows(12, 4)
    A, b = data["A"], data["b"]
    ts = -np.eye(12) if LP[objective] == "sum" else -np.ones((12, 1))
    k = ts.shape[1]
    known = linprog(
        np.r_[np.zeros(4), np.ones(k)],
        A_ub=np.block([[A, ts], [-A, ts]]),
        b_ub=np.r_[b, -b],
        bounds=[(0.0, None)] * 4 + [(None, None)] * k,
    )
    head = "dim m, n data A[m, n], b[m] var x[n] >= 0 "
    found = solved(f"{head} minimize {objective}", data)
    assert found.status is Status.converged
    assert EPIGRAPH in found.message
    assert found.fun == pytest.approx(known.fun, rel=1e-12)
    assert set(found.multipliers) == set(found.active) == {"x"}
    assert found.jac.shape == found.x.shape == (4,)
    upward = solved(f"{head} maximize -({objective})", data)
    assert upward.fun == pytest.approx(-known.fun, rel=1e-12)


def test_a_smallest_value_is_made_as_large_as_possible() -> None:
    data = rows(9, 3)
    text = "dim m, n data A[m, n], b[m] var x[n] in [-1, 1] maximize min(A @ x + b)"
    known = linprog(
        [0.0, 0.0, 0.0, -1.0],
        A_ub=np.c_[-data["A"], np.ones(9)],
        b_ub=data["b"],
        bounds=[(-1.0, 1.0)] * 3 + [(None, None)],
    )
    assert solved(text, data).fun == pytest.approx(-known.fun, rel=1e-12)


def test_kinks_in_constraints() -> None:
    """Turnover is limited: compared with purchases and sales as variables of their own."""
    rng = np.random.default_rng(1)
    data = {"C": np.cov(rng.standard_normal((5, 20))), "mu": rng.uniform(size=5) / 5}
    head = "dim n data C[n, n], mu[n] let w0 = 0.2 var w[n] in simplex"
    own = f"{head} minimize w @ C @ w - mu @ w subject to turnover: sum(abs(w - w0)) <= 0.3"
    other = (
        f"{head} var buy[n] >= 0, sell[n] >= 0 minimize w @ C @ w - mu @ w "
        "subject to w - w0 == buy - sell, sum(buy + sell) <= 0.3"
    )
    found = solved(own, data)
    assert found.status is Status.converged
    assert set(found.multipliers) == {"w", "turnover"}
    assert found.multipliers["turnover"] < 0.0
    assert found.violation <= 1e-9
    assert np.abs(found["w"] - 0.2).sum() <= 0.3 + 1e-9
    assert found.fun == pytest.approx(solved(other, data).fun, rel=1e-9)


def test_kinks_below_monotone_functions() -> None:
    """Nested kinks, weights that are data, powers, exponentials; compared with a simplex search."""
    data = rows(5, 3, 2) | {"lam": np.array([0.3, 0.0, 0.7])}
    text = (
        "dim m, n data A[m, n], b[m], lam[n] var x[n] in [-1, 2] "
        "minimize log(sum(exp(abs(A @ x - b)))) + sum(lam .* abs(x)) + max(0, norm1(x) - 1)^2 "
        "+ max(x[0], max(abs(x[1] - 1), 0.5))"
    )
    found = solved(text, data)
    assert found.status is Status.converged
    assert EPIGRAPH in found.message
    f = slomodel.compile(text, data=data, backend="numpy").value
    best = min(
        minimize(
            f, x, bounds=[(-1.0, 2.0)] * 3, method="Nelder-Mead", options={"maxiter": 2000}
        ).fun
        for x in np.random.default_rng(0).uniform(-1.0, 2.0, (2, 3))
    )
    assert found.fun <= best + 1e-9


def test_kinks_of_symbols_and_in_open_sets() -> None:
    x, y = sp.symbols("x y", nonnegative=True)
    model = slomodel.compile(sp.Abs(x - 2 * y + 1) + sp.Max(x, y - 1, 1) + (x - 3) ** 2 / 10)
    found = model.solve()
    assert (found.status, EPIGRAPH in found.message) == (Status.converged, True)
    assert found.fun == pytest.approx(1.4, rel=1e-9)
    assert found.x == pytest.approx([1.0, 1.0], rel=1e-6)
    found = solved("var s > 0, z >= 0 minimize s + 1/s + 2*abs(s + z - 3)")
    assert (found.status, EPIGRAPH in found.message) == (Status.converged, True)
    assert [found["s"], found["z"]] == pytest.approx([1.0, 2.0], rel=1e-5)
    assert found.unconstrained is not None


def test_without_sets_runs_that_stall_at_kinks_go_on() -> None:
    data = rows(20, 4)
    text = "dim m, n data A[m, n], b[m] var x[n] init 1 minimize sum(abs(A @ x - b)) + sumsq(x)/100"
    found = solved(text, data)
    assert found.status is Status.converged
    assert "stalled at kinks" in found.message
    assert (found.multipliers, found.active) == ({}, {})
    stopped = solved(text, data, verify=True)
    assert found.fun <= stopped.fun


@pytest.mark.parametrize(
    "objective",
    [
        "x^2 - abs(x)",
        "x^2 + w*abs(x)",
        "sin(abs(x) + 4)",
        "abs(max(x, -1) + 0.5)",
        "(max(x, -1))^2",
        "1/(abs(x) - 3)",
        "x^2 + min(x, 0.3)",
    ],
)
def test_other_kinks_are_left_as_they_are(objective: str) -> None:
    """The values of these may lie on the wrong side of their pieces at a lower objective."""
    text = f"data w = -1 var x in [-2, 2] init 0.7 minimize {objective}"
    model = slomodel.compile(text, backend="numpy")
    found = model.solve()
    assert EPIGRAPH not in found.message
    assert found.fun <= model.value([0.7])


@pytest.mark.parametrize("status", ["max_iter", "unbounded", "infeasible"])
def test_other_ends_are_those_of_the_model(status: str) -> None:
    ends = {
        "max_iter": ("var x[3] in [-9, 9] minimize sum(exp(abs(x - 3)))", {"max_iter": 1}),
        "unbounded": ("var x >= 0, y >= 0 minimize abs(x - y) - x", {}),
        "infeasible": ("var x, y minimize x subject to max(x, y) <= 0, x + y >= 1", {}),
    }
    text, options = ends[status]
    assert solved(text, **options).status == status


def test_a_start_outside_is_moved_with_one_warning() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        found = solved("var x[2] in [0, 1] minimize sum(abs(x - 0.5))", x0=[5.0, 0.2])
    assert [one.category for one in seen if one.category is not NonsmoothWarning] == [StartWarning]
    assert found.x == pytest.approx([0.5, 0.5])


TERMS = (
    *("x - y", "exp(-x) + y", "a*x + b*y", "-a*tanh(y)", "(abs(x) + 1)^2", "1/(1 + x^2 + abs(y))"),
    *("sum(w .* abs(v - x))", "x*abs(y)", "max(v) - min(v)", "cumsum(abs(v))[2]", "-(v[1])^3"),
    "sum(v[i] for i in n if i != 1) - y",
    "where(x > 0, x, y)",
)


@pytest.mark.parametrize("text", TERMS)
def test_directions_hold_for_all_numbers(text: str) -> None:
    """Each node whose direction is known is replaced by numbers, that grow."""
    model = slomodel.compile(
        f"dim n = 3 data a = 2, b = -1, w[n] var x, y, v[n] minimize {text}",
        data={"w": [0.0, 1.0, 2.0]},
        backend="numpy",
    )
    problem, rng = model._problem, np.random.default_rng(0)
    order = differentiated(problem.objective)
    varying = dependents(order, set(problem.inputs).__contains__)
    given = {d.node: model._binding.arrays[d.name] for d in problem.data}

    def sign(node: object) -> int:
        (value,) = evaluate([node], given, {"n": 3})  # type: ignore[list-item]
        return 1 if (value >= 0).all() else -1 if (value <= 0).all() else 0

    seen = directions({problem.objective: RISING}, order, varying, sign)
    leaves = {one: seen.get(one, 0) for one in problem.inputs}
    values: dict[Input, np.ndarray] = dict(given)
    for _ in range(20):
        values.update({one: rng.standard_normal([3] * one.rank) for one in problem.inputs})
        (before,) = evaluate([problem.objective], values, {"n": 3})
        for one, direction in leaves.items():
            more = values | {one: values[one] + rng.uniform(0, 2, [3] * one.rank)}
            (after,) = evaluate([problem.objective], more, {"n": 3})
            if direction in (0, RISING):
                assert after >= before - 1e-12
            if direction in (0, FALLING):
                assert after <= before + 1e-12


def test_kinks_without_a_form_are_left_by_steps_on_the_whole_space() -> None:
    """Quantile regression with `where`, against its linear program; no false success."""
    data = rows(24, 5, 3)
    head = "dim m, n data A[m, n], b[m] var x[n] in [-0.4, 0.4] let r = b - A @ x minimize "
    found = solved(f"{head} sum(where(r > 0, 0.9*r, -0.1*r))", data)
    known = solved(f"{head} sum(max(0.9*r, -0.1*r))", data)
    assert EPIGRAPH not in found.message
    assert known.status is Status.converged
    assert found.fun == pytest.approx(known.fun, rel=1e-7)
    assert not found.success or found.fun == pytest.approx(known.fun, rel=1e-9)
    assert (np.abs(found["x"]) <= 0.4).all()


def test_the_graphical_lasso_in_semidefinite_matrices() -> None:
    """Optimality: the slopes S − T⁻¹ are −λ times the signs off the diagonal, or at most λ."""
    S = np.cov(np.random.default_rng(0).standard_normal((4, 40)))
    text = (
        "dim n data S[n, n] var T[n, n] in psd init eye(n) minimize trace(S @ T) - logdet(T) "
        "+ 0.1*sum(abs(T[i, j]) for i in n, j in n if i != j)"
    )
    found = solved(text, {"S": S})
    assert found.status is Status.converged
    T = found["T"]
    slopes = S - np.linalg.inv(T)
    off = ~np.eye(4, dtype=bool)
    assert np.abs(np.diag(slopes)).max() <= 1e-5
    assert np.abs(slopes[off]).max() <= 0.1 + 1e-5
    large = off & (np.abs(T) > 1e-3)
    assert np.abs(slopes + 0.1 * np.sign(T))[large].max() <= 1e-5


GROUPS = """
dim m, g, k
data A[m, g, k], y[m]
var W[g, k] {box}
minimize 0.5*sum((sum(A[i, a, b]*W[a, b] for a in g, b in k) - y[i])^2 for i in m) {more}
"""


@pytest.mark.parametrize(("box", "limited"), [("in [-2, 0.5]", False), ("", True)])
def test_norms_that_are_0_at_the_minimum(box: str, limited: bool) -> None:
    """The lasso of groups, compared with SLSQP on it with the groups that are 0 left out."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((20, 3, 2))
    data = {"A": A, "y": A[:, 1] @ [1.0, -1.0] + 0.1 * rng.standard_normal(20)}
    norms = "sum(norm2(W[a, :]) for a in g)"
    text = GROUPS.format(box=box, more=f"subject to {norms} <= 1" if limited else f"+ 4*{norms}")
    found = solved(text, data)
    assert found.status is Status.converged
    assert "Norms were smoothed" in found.message
    W = found["W"]
    length = np.sqrt((W**2).sum(axis=1))
    kept = length > 1e-6
    assert 0 < kept.sum() < 3
    assert found.violation <= 1e-9

    def f(w: np.ndarray) -> float:
        rows = w.reshape(-1, 2)
        fit = 0.5 * float(((np.einsum("igk,gk->i", A[:, kept], rows) - data["y"]) ** 2).sum())
        return fit + (0.0 if limited else 4.0 * float(np.sqrt((rows**2).sum(axis=1)).sum()))

    held = {
        "type": "ineq",
        "fun": lambda w: 1.0 - np.sqrt((w.reshape(-1, 2) ** 2).sum(axis=1)).sum(),
    }
    known = minimize(
        f,
        W[kept].ravel(),
        method="SLSQP",
        bounds=[(-2.0, 0.5)] * (2 * kept.sum()) if box else None,
        constraints=[held] if limited else [],
        options={"ftol": 1e-14},
    )
    assert found.fun == pytest.approx(known.fun, rel=1e-6)


@pytest.mark.parametrize("d", [2, 3])
def test_a_point_of_least_distances_may_be_one_of_the_points(d: int) -> None:
    x = sp.symbols(f"x:{d}", real=True)
    points = [np.zeros(d), *np.eye(d), np.full(d, -1.2)]
    total = sum(
        sp.sqrt(sum((x - float(a)) ** 2 for x, a in zip(x, p, strict=True))) for p in points
    )
    model = slomodel.compile(total, x, bounds=dict.fromkeys(x, (-2, 2)), backend="numpy")
    found = model.solve(x0=np.linspace(0.3, 0.4, d))
    assert found.success
    assert np.abs(found.x).max() <= 1e-6


def test_normals_of_bounds_count_in_combinations_of_gradients() -> None:
    box = Box(np.zeros(3), np.array([1.0, 1.0, np.inf]))
    x = np.array([0.0, 1.0, 0.5])
    normals = outward_normals(box, x)
    assert normals is not None
    assert normals.tolist() == [[-1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    gradients = np.array([[2.0, -1.0, 1.0], [1.0, -3.0, -1.0]])
    assert np.linalg.norm(combination(gradients, normals)) <= 1e-6
    assert np.linalg.norm(combination(-gradients, normals)) >= 1.0
    simplex = outward_normals(Simplex((3,), 0), np.array([0.0, 0.4, 0.6]))
    assert simplex is not None
    assert np.linalg.norm(combination(np.array([[3.0, 2.0, 2.0]]), simplex)) <= 1e-6
    assert outward_normals(EuclideanBall(np.zeros(3), 1.0), x) is None


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ({"max_iter": 0}, "max_iter"),
        ({"max_nfev": 1}, "max_nfev"),
        ({"callback": lambda state: True}, "user_stopped"),
    ],
)
def test_budgets_hold_for_the_first_newton_step_too(
    options: dict[str, object], status: str
) -> None:
    text = "var x[2] in [0, 1] init 0.2 minimize sum(abs(x - 0.5))"
    found = solved(text, **options)
    assert (found.status, found.nit) == (status, 0)
    assert found.x.tolist() == [0.2, 0.2]


def test_no_end_is_claimed_where_norms_are_still_smoothed() -> None:
    data = rows(12, 4)
    norms = "0.1*norm2(A @ x - b) + 9*norm2(x - 1) + norm2(x)"
    text = f"dim m, n data A[m, n], b[m] var x[n] in [-1, 2] minimize {norms}"
    model = slomodel.compile(text, data=data, backend="numpy")
    whole = model.solve()
    assert whole.success
    assert "Norms were smoothed over" in whole.message
    for k in range(whole.nit - 35, whole.nit, 7):
        found = model.solve(max_iter=k)
        assert found.nit <= k
        assert found.fun <= whole.fun + 1e-6
        left = iter(range(k))
        found = model.solve(callback=lambda _, left=left: next(left, None) is None)
        assert found.fun <= whole.fun + 1e-6
        assert not found.success
    for most in range(whole.nfev - 80, whole.nfev, 20):
        found = model.solve(max_nfev=most)
        assert found.nfev <= most
        assert found.fun <= whole.fun + 1e-6


def test_a_stop_at_the_last_step_of_a_part_is_that_of_the_run() -> None:
    data = {"Q": [[0, -1], [-2, 2], [2, 1], [-2, -2]], "c": [1, 0, -1, -2], "w": [2, 1]}
    text = "minimize norm2(Q @ x/849 - c) + norm2(x - w)"
    text = f"dim m, n data Q[m, n], c[m], w[n] var x[n] {text}"
    model = slomodel.compile(text, data=data, backend="numpy")
    whole = model.solve(x0=[1, -1])
    assert "in 5 runs" in whole.message
    for last in range(whole.nit - 10, whole.nit, 2):
        seen: list[int] = []
        model.solve(x0=[1, -1], callback=lambda now, k=last, a=seen: a.append(now.k) or now.k >= k)
        assert seen == list(range(last + 1))


@pytest.mark.parametrize("text", ["x[0] - x[1], -x[0]", "2*x[0] - x[1] + 1, -3*x[0] + 1"])
def test_kinks_at_which_a_run_stalls_do_not_hide_descent_without_end(text: str) -> None:
    model = slomodel.compile(f"var x[2] minimize max({text}) + norm1(x)/50", backend="numpy")
    found = model.solve(x0=[0, 0])
    assert found.status is Status.unbounded


@pytest.mark.parametrize(
    "text",
    [
        "var x[3] init 1 minimize sum(exp(x) + x^2) subject to sum(x) <= 2.5",
        "var x[3] in [-1, 2] init 1 minimize max(x[i]^2 + i*x[0] for i in range(3))",
    ],
)
@pytest.mark.parametrize("after", [0, 1])
def test_an_interrupt_ends_a_run_at_its_start_too(text: str, after: int) -> None:
    steps = iter(range(after))

    def interrupt(_: object) -> None:
        if next(steps, None) is None:
            raise KeyboardInterrupt

    found = slomodel.compile(text, backend="numpy").solve(callback=interrupt)
    assert found.status is Status.interrupted


PARTS = {
    "norms smoothed after the model itself": (
        "var x[n] in [-1, 2] minimize 2*norm2(A @ x - b) + 9*norm2(x - 1) + norm2(x)"
    ),
    "a form after the model itself": (
        "var x[n] init 1 minimize sum(abs(A @ x - b)) + sumsq(x)/100"
    ),
    "both after the model itself": (
        "var x[n] init 1 minimize sum(norm2(x - A[i, :]) for i in m) + 30*norm2(x) + abs(x[0])"
    ),
    "the model itself after a form": (
        "var x[n] in [-1, 2] init 1 minimize sum(abs(A @ x - b)) + exp(x[0])"
    ),
}


@pytest.mark.parametrize("text", PARTS.values(), ids=list(PARTS))
def test_a_run_of_several_parts_is_one_run(
    text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Callbacks, history, counts and budgets are those of all parts, checkpointed or not."""
    if text == PARTS["the model itself after a form"]:
        monkeypatch.setattr(epigraph_run, "_FINAL", ())
    model = slomodel.compile(
        f"dim m, n data A[m, n], b[m] {text}", data=rows(6, 3), backend="numpy"
    )
    seen: list[State] = []
    whole = model.solve(callback=seen.append)
    assert [one.k for one in seen] == list(range(whole.nit + 1))
    assert [one.fun for one in seen] == whole.history.fun.tolist()
    assert [one.step for one in seen] == whole.history.step.tolist()
    for name in ("time", "nfev", "njev", "nhev", "epoch"):
        counts = [getattr(one, name) for one in seen]
        assert counts == sorted(counts)
    assert seen[-1].nfev <= whole.nfev
    for most in range(0, whole.nit, 1 + whole.nit // 3):
        found = model.solve(max_iter=most, checkpoint=tmp_path / "run")
        assert found.nit == len(found.history.fun) - 1 <= most
        assert found.status is Status.max_iter
        resumed = model.solve(resume=tmp_path / "run")
        assert (resumed.x.tolist(), resumed.status) == (whole.x.tolist(), whole.status)
    calls = iter(range(whole.nit - 1))
    found = model.solve(callback=lambda _: next(calls, None) is None)
    assert found.status is Status.user_stopped
