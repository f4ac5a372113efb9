"""Recurrences of the language against loops in NumPy, their derivatives by complex steps."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pytest

import slomodel
from slomodel.errors import SlomodelError
from tests.work_counts import counting

pytestmark = pytest.mark.filterwarnings("ignore::slomodel.NonsmoothWarning")
rng = np.random.default_rng(3)
T, K = 7, 3
Y, H0 = rng.normal(size=T), 0.7
F = np.array([[0.5, 0.3, 0.1], [-0.2, 0.4, 0.3], [0.1, 0.1, 0.6]])


@dataclass(frozen=True)
class Case:
    """A text with data, and its objective by a loop; x is drawn at random."""

    text: str
    n: int
    loop: Callable[[np.ndarray], complex]
    data: Mapping[str, object]


def _garch(x):
    mu, omega, a, b = x
    e, h = Y - mu, [H0]
    for t in range(1, T):
        h.append(omega + a * e[t - 1] ** 2 + b * h[-1])
    return sum(np.log(h) + e**2 / np.array(h)) / 2


def _second_order(x):
    h = [x[0], x[1]]
    for t in range(2, T):
        h.append(x[2] * h[-1] + x[3] * np.sin(h[-2]) + Y[t])
    return sum(np.array(h) ** 2)


def _seasonal(x):
    s = list(x[:3])
    for t in range(3, T):
        s.append(x[3] * s[t - 3] * Y[t] + 0.1 * s[t - 1] ** 2)
    return sum(np.exp(s))


def _logsumexp(v):
    return np.log(sum(np.exp(v)))


def _forward(x):
    mu, w = x[:K], x[K:].reshape(K, K)
    e = -((Y[:, None] - mu) ** 2) / 2
    f = e[0] + np.log(1 / K)
    for t in range(1, T):
        f = np.array([e[t, k] + _logsumexp(f + w[:, k]) for k in range(K)])
    return _logsumexp(f)


def _pendulum(x):
    q, w = [1.0 + 0 * x[0]], [0 * x[0]]
    for t in range(1, T + 1):
        w.append(w[-1] + 0.1 * (np.sin(q[-1]) + x[t - 1] - 0.1 * w[-1]))
        q.append(q[-1] + 0.1 * w[-1])
    return sum(1 - np.cos(q)) + 5 * w[T] ** 2


def _smoothing(x):
    level, slope, season, e = [x[0]], [x[1]], list(x[2:5]), []
    al, be, ga = x[5:]
    for t in range(T):
        if t:
            level.append(level[-1] + slope[-1] + al * e[-1])
            slope.append(slope[-1] + al * be * e[-1])
        if t >= 3:
            season.append(season[t - 3] + ga * (1 - al) * e[t - 3])
        e.append(Y[t] - level[t] - slope[t] - season[t])
    return sum(np.array(e) ** 2)


def _vector(x):
    z, total = x[:K], 0
    for t in range(T):
        z = F @ np.tanh(z) + x[K:] * Y[t] if t else z
        total = total + sum(z**2)
    return total


def _covariance(x):
    P, total = x[0] * np.eye(2), 0
    A = np.array([[1.0, 1.0], [0.0, 0.9]]) * x[1]
    for t in range(T):
        if t:
            P = A @ P @ A.T + x[2] * np.eye(2)
        total = total + np.log(P[0, 0]) + Y[t] ** 2 / P[1, 1]
    return total


def _lags_by_index(x):
    e = list(Y[:3])
    for t in range(3, T):
        own = sum(x[i] * e[t - 1 - i] for i in range(3))
        e.append(Y[t] - own - sum(x[2 + j] * np.sin(e[t - j]) for j in (1, 2)))
    return sum(np.square(e))


def _batch(x):
    h, total = x[:K], 0
    for t in range(T):
        h = x[K:] * h + Y[t] ** 2 if t else h
        total = total + sum(np.exp(-h))
    return total


def _threshold(x):
    h, total = x[0], 0
    for t in range(1, T):
        h = x[1] * h if h.real > 0.1 else x[2] + Y[t]
        total = total + h**2
    return total


def _moving_average(x):
    c, th = x[0], x[1:]
    e = []
    for t in range(T):
        e.append(Y[t] - c - sum(th[j] * e[t - 1 - j] for j in range(3) if j < t))
    return sum(np.square(e))


def _filtered(x):
    th, s = x[:3], [[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]]
    f = [[0.0, 0.0]] * 3
    for t in range(3, T):
        s.append([np.tanh(Y[t] + sum(th[j] * s[t - 3 + j][k] for j in range(3))) for k in (0, 1)])
        f.append([sum(th[j] * s[t - j][k] for j in range(3)) for k in (0, 1)])
    return sum(np.square(f).ravel()) + sum(np.square(s).ravel())


CASES = {
    "garch": Case(
        """dim T  data y[T], h0  var mu, omega, a, b
        let e = y - mu
        let h[t in T] = omega + a * e[t-1]^2 + b * h[t-1]  first h0
        minimize sum(log(h) + e^2 ./ h) / 2""",
        4,
        _garch,
        {"y": Y, "h0": H0},
    ),
    "two lags": Case(
        """dim T  data y[T]  var a, b, c, d
        let h[t in T] = c * h[t-1] + d * sin(h[t-2]) + y[t]  first a, b
        minimize sumsq(h)""",
        4,
        _second_order,
        {"y": Y},
    ),
    "a lag that is a dim": Case(
        """dim T, m  data y[T]  var s0[m], c
        let s[t in T] = c * s[t-m] * y[t] + 0.1 * s[t-1]^2  first s0[t] for t in m
        minimize sum(exp(s))""",
        4,
        _seasonal,
        {"y": Y},
    ),
    "forward algorithm": Case(
        """dim T, K  data y[T]  var mu[K], w[K, K]
        let e[t in T, k in K] = -(y[t] - mu[k])^2 / 2
        let f[t in T, k in K] = e[t, k] + logsumexp(f[t-1, :] + w[:, k])
            first e[0, k] + log(1 / K)
        minimize logsumexp(f[T-1, :])""",
        12,
        _forward,
        {"y": Y},
    ),
    "semi-implicit Euler": Case(
        """dim T  data h = 0.1  var u[T]
        let w[t in range(T + 1)] = w[t-1] + h * (sin(q[t-1]) + u[t-1] - 0.1 * w[t-1])  first 0
        and q[t in range(T + 1)] = q[t-1] + h * w[t]  first 1
        minimize sum(1 - cos(q)) + 5 * w[T]^2""",
        T,
        _pendulum,
        {},
    ),
    "exponential smoothing": Case(
        """dim T, m  data y[T]  var l0, b0, s0[m], al, be, ga
        let e[t in T] = y[t] - l[t] - b[t] - s[t]
        and l[t in T] = l[t-1] + b[t-1] + al * e[t-1]    first l0
        and b[t in T] = b[t-1] + al * be * e[t-1]        first b0
        and s[t in T] = s[t-m] + ga * (1 - al) * e[t-m]  first s0[t] for t in m
        minimize sumsq(e)""",
        8,
        _smoothing,
        {"y": Y},
    ),
    "an array": Case(
        """dim T, K  data y[T], F[K, K]  var z0[K], b[K]
        let z[t in T] = F @ tanh(z[t-1, :]) + b * y[t]  first z0
        minimize sumsq(z)""",
        6,
        _vector,
        {"y": Y, "F": F},
    ),
    "a matrix": Case(
        """dim T  data y[T], A[2, 2]  var p, a, q
        let P[t in T] = (a * A) @ P[t-1, :, :] @ (a * A)' + q * eye(2)  first p * eye(2)
        minimize sum(log(P[t, 0, 0]) + y[t]^2 / P[t, 1, 1] for t in T)""",
        3,
        _covariance,
        {"y": Y, "A": [[1.0, 1.0], [0.0, 0.9]]},
    ),
    "lags by index": Case(
        """dim T  data y[T]  var phi[3], th[2]
        let e[t in T] = y[t] - sum(phi[i] * e[t-1-i] for i in range(3))
            - sum(th[j-1] * sin(e[t-j]) for j in range(1, 3))  first y[0], y[1], y[2]
        minimize sumsq(e)""",
        5,
        _lags_by_index,
        {"y": Y},
    ),
    "a batch": Case(
        """dim T, K  data y[T]  var h0[K], rho[K]
        let h[t in T, k in K] = rho[k] * h[t-1, k] + y[t]^2  first h0[k]
        minimize sum(exp(-h))""",
        6,
        _batch,
        {"y": Y},
    ),
    "cases": Case(
        """dim T  data y[T], h0  var mu, omega, a, b
        let h[t in T] = where(t == 0, h0, omega + a * (y[t-1] - mu)^2 + b * h[t-1])
        minimize sum(log(h) + (y - mu)^2 ./ h) / 2""",
        4,
        _garch,
        {"y": Y, "h0": H0},
    ),
    "a window with a condition": Case(
        """dim T, q = 3  data y[T]  var c, th[q]
        let e[t in T] = y[t] - c - sum(th[j] * e[t-1-j] for j in q if j < t)
        minimize sumsq(e)""",
        4,
        _moving_average,
        {"y": Y},
    ),
    "windows of arrays": Case(
        """dim T, q = 3  data y[T]  var th[q]
        let s[t in T, k in 2] = tanh(y[t] + sum(th[j] * s[t-q+j, k] for j in q))
            first (1 + k) / 10, (3 + k) / 10, (5 + k) / 10
        and f[t in T, k in 2] = sum(th[j] * s[t-j, k] for j in q) first 0, 0, 0
        minimize sumsq(f) + sumsq(s)""",
        3,
        _filtered,
        {"y": Y},
    ),
    "a choice": Case(
        """dim T  data y[T]  var a, b, c
        let h[t in T] = where(h[t-1] > 0.1, b * h[t-1], c + y[t])  first a
        minimize sumsq(h[1:])""",
        3,
        _threshold,
        {"y": Y},
    ),
}


def _sizes(case: Case) -> dict[str, int]:
    named = {"m": 3, "K": K, "T": T}
    head = case.text.split("data")[0].split("var")[0]
    return {name: size for name, size in named.items() if name in head.replace("dim", "")}


# Compilations by the C compiler that meet no construct of their own.
SLOW_ON_C = ("two lags", "a batch", "cases", "a lag that is a dim", "a choice", "an array")


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("name", "target"),
    [
        pytest.param(n, t, marks=[pytest.mark.slow] * (t == "c" and n in SLOW_ON_C))
        for n in CASES
        for t in ("numpy", "numexpr", "c")
    ],
)
def test_values_and_derivatives(name: str, target: str) -> None:
    case = CASES[name]
    model = slomodel.compile(case.text, data=case.data, dims=_sizes(case), backend=target)
    x = np.random.default_rng(1).uniform(0.3, 0.9, case.n)
    f, g = model.value_and_gradient(x)
    steps = 1e-30j * np.eye(case.n)
    expected = np.array([case.loop(x + step).imag / 1e-30 for step in steps])
    assert f == pytest.approx(case.loop(x).real, rel=1e-13)
    np.testing.assert_allclose(g, expected, rtol=1e-11, atol=1e-12 * np.abs(expected).max())
    v = np.random.default_rng(2).normal(size=case.n)
    near, far = (
        (model.gradient(x + h * v) - model.gradient(x - h * v)) / (2 * h) for h in (1e-4, 2e-4)
    )
    product = (4 * near - far) / 3
    np.testing.assert_allclose(model.hvp(x, v), product, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize(("steps", "target"), [(1, "c"), (1, "numpy"), (2, "numpy")])
def test_few_steps(steps: int, target: str) -> None:
    text = """dim T  data y[T]  var a, b
    let h[t in T] = a * h[t-1] + y[t]  first b
    minimize sumsq(h)"""
    y = np.arange(1.0, steps + 1.0)
    model = slomodel.compile(text, data={"y": y}, backend=target)
    h = [3.0]
    for t in range(1, steps):
        h.append(2.0 * h[-1] + y[t])
    assert model.value([2.0, 3.0]) == pytest.approx(sum(np.square(h)))


@pytest.mark.parametrize(("first", "steps"), [("b", 0), ("b, a", 1)])
def test_fewer_steps_than_first_values(first: str, steps: int) -> None:
    text = f"""dim T  data y[T]  var a, b
    let h[t in T] = a * h[t-1] + y[t]  first {first}
    minimize sumsq(h) + a^2"""
    with pytest.raises(SlomodelError, match=f"E315.*first value.*\n(.*\n)*.*`T` is {steps}"):
        slomodel.compile(text, data={"y": np.zeros(steps)}, backend="numpy")


def test_a_long_recurrence_compiles_as_quickly_as_a_short_one() -> None:
    case, steps = CASES["garch"], 100_000
    y = np.random.default_rng(0).normal(size=steps)
    with counting() as calls:
        model = slomodel.compile(case.text, data={"y": y, "h0": 1.0}, backend="c")
        f, g = model.value_and_gradient([0.1, 0.2, 0.1, 0.7])
    assert calls.count < 500_000
    assert np.isfinite(f)
    assert np.isfinite(g).all()
    assert len(model.source("c")) < 40_000


def test_bounds_of_short_and_long_recurrences() -> None:
    text = """dim T  var a, b
    let h[t in T] = sin(a) * h[t-1] + b  first b
    minimize sumsq(h)"""
    x = np.array([0.6, 0.5])

    def loop(y: np.ndarray) -> complex:
        h = [y[1]]
        for _ in range(3):
            h.append(np.sin(y[0]) * h[-1] + y[1])
        return sum(np.square(h))

    def gradient(y: np.ndarray) -> np.ndarray:
        return np.array([loop(y + step).imag / 1e-30 for step in 1e-30j * np.eye(2)])

    e = 1e-5 * np.eye(2)
    hessian = np.array([(gradient(x + one) - gradient(x - one)) / 2e-5 for one in e])
    short = slomodel.compile(text, dims={"T": 4}, backend="numpy").bounds(x, 1e-3)
    assert np.linalg.norm(hessian, 2) <= short.L1 <= 2 * np.linalg.norm(hessian, 2)
    long = slomodel.compile(text, dims={"T": 50_000}, backend="numpy").bounds(x, 1e-3)
    assert np.isinf(long.L1)
    assert "recurrence of line 2 has 50000 steps" in str(long)


REFUSED = {
    "h[t in T] = a * h[t+1] first a": "at t = 1, `h[t+1]` reads step 2, which comes later",
    "h[t in T] = a * h[t] first a": "at t = 1, `h[t]` reads the element that it defines",
    "h[t in T] = a * h[t-2] first a": "at t = 1, `h[t-2]` reads step -1: there is none",
    "h[t in T] = a * h[t-1]": "at t = 0, `h[t-1]` reads step -1: there is none",
    "h[t in T] = a * h[1] first a": "a fixed number of steps before `t`",
    "h[t in T] = a * h[T-1-t] first a": "a fixed number of steps before `t`",
    "h[t in T] = sum(h) first a": "is being computed step by step",
    "h[t in T] = sum(h[:t]) first a": "reads several steps of `h`",
    "h[t in T] = a * y[t] first a": "nothing here depends on an earlier step",
    "h = a first a": "has no index of time",
    "h[t in range(1, T)] = a * h[t-1] first a": "counts its steps from 0, one by one",
    "h[t in T] = q[t] and q[t in T] = h[t] first a": "`q`, which reads `h`",
    "h[t in T] = h[t-1] first a and q[t in range(2*T)] = h[t]": "run over the same steps",
    "h[t in T] = h[t-1] * y first a": "`h` is a number|the first values are scalar",
}


@pytest.mark.parametrize("definition", REFUSED)
def test_what_cannot_be_computed_step_by_step_is_refused(definition: str) -> None:
    text = f"dim T data y[T] var a let {definition} minimize sum(h) + a^2"
    with pytest.raises(
        SlomodelError, match="|".join(map(re.escape, REFUSED[definition].split("|")))
    ):
        slomodel.compile(text)


def test_elements_past_the_end_are_refused() -> None:
    with pytest.raises(SlomodelError, match="E210"):
        slomodel.compile("dim T var a let h[t in T] = a * h[t-1] first a minimize h[T]")


def test_too_few_first_values_for_a_lag_of_data_sizes() -> None:
    text = """dim T, m  var a
    let h[t in T] = a * h[t-m]  first a, a
    minimize sumsq(h)"""
    with pytest.raises(SlomodelError, match="`h` has 2 first values, and `h\\[t-m\\]` needs m"):
        slomodel.compile(text, dims={"m": 3, "T": 8})
    model = slomodel.compile(text, dims={"m": 2, "T": 8})
    assert model.value([0.5]) == pytest.approx(2 * (0.25 + 0.25**2 + 0.25**3 + 0.25**4))


@pytest.mark.parametrize("size", [2, 30])
def test_large_steps_run_in_loops_and_small_ones_by_element(size: int) -> None:
    text = """dim T, K  data y[T], A[K, K]  var z0[K], mu[K]
    let z[t in T] = softmax(A @ z[t-1, :] + y[t] * mu) + 0.1 * max(z[t-1, :])  first z0
    let f[t in T, k in K] = z[t, k] + logsumexp(f[t-1, :] + A[:, k])  first z0[k]
    minimize logsumexp(f[T-1, :]) + sumsq(z)"""
    draw = np.random.default_rng(size)
    data = {"y": Y, "A": draw.normal(size=(size, size)) / size}
    x, v = draw.normal(size=2 * size), draw.normal(size=2 * size)
    models = [slomodel.compile(text, data=data, backend=b) for b in ("numpy", "c")]
    values, slopes = zip(*(model.value_and_gradient(x) for model in models), strict=True)
    assert values[1] == pytest.approx(values[0], rel=1e-13)
    np.testing.assert_allclose(slopes[1], slopes[0], rtol=1e-10, atol=1e-13)
    products = [model.hvp(x, v) for model in models]
    np.testing.assert_allclose(products[1], products[0], rtol=1e-10, atol=1e-12)


def test_kinks_inside_a_step_are_reported() -> None:
    text = "dim T var a, b let h[t in T] = abs(h[t-1]) + b first a minimize sumsq(h)"
    with pytest.warns(slomodel.NonsmoothWarning, match="`abs` has a kink at 0"):
        model = slomodel.compile(text, dims={"T": 4})
    assert "nonsmooth" in model.explain()


@pytest.mark.parametrize("target", ["numpy", "c"])
def test_a_number_that_is_not_finite_is_traced_to_its_step(target: str) -> None:
    text = "dim T var a let h[t in T] = log(h[t-1]) first a minimize sumsq(h)"
    model = slomodel.compile(text, dims={"T": 5}, backend=target)
    found = model.trace_nonfinite([1.5])
    assert found is not None
    assert found.startswith("log of -0.902")
    assert "is nan at step 3 of a recurrence, in `log(h[t-1])` (line 1)" in found


def test_a_step_has_stable_forms() -> None:
    text = """dim T  data y[T]  var a
    let h[t in T] = log(exp(y[t]) + exp(h[t-1]))  first a
    minimize h[T-1]"""
    y = np.array([0.0, 800.0, 790.0])
    for target in ("numpy", "c"):
        f, g = slomodel.compile(text, data={"y": y}, backend=target).value_and_gradient([795.0])
        shifted = np.exp(np.array([795.0, 800.0, 790.0]) - 800.0)
        assert f == pytest.approx(800.0 + np.log(shifted.sum()), rel=1e-14)
        assert g[0] == pytest.approx(shifted[0] / shifted.sum(), rel=1e-12)


@pytest.mark.parametrize("target", ["numpy", "c"])
def test_products_where_only_some_places_of_the_adjoint_move(target: str) -> None:
    text = """dim T  data w[T]  var x[T]
    let h[t in T] = sin(h[t-1]) + x[t]^2  first x[0]
    minimize sum(w .* h)"""
    w = np.arange(1.0, T + 1.0)
    model = slomodel.compile(text, data={"w": w}, backend=target)
    x, v = rng.normal(size=T), rng.normal(size=T)
    difference = (model.gradient(x + 1e-5 * v) - model.gradient(x - 1e-5 * v)) / 2e-5
    for _ in range(3):  # working arrays of before must not be read
        np.testing.assert_allclose(model.hvp(x, v), difference, rtol=1e-7, atol=1e-7)


def test_devices_refuse_a_loop_over_time() -> None:
    text = "dim T  var a let h[t in T] = sin(h[t-1]) first a minimize sumsq(h)"
    model = slomodel.compile(text, dims={"T": 4}, backend="numpy")
    with pytest.raises(slomodel.TargetLimit, match="a recurrence runs step by step"):
        model.source("cuda")


@pytest.mark.parametrize(
    ("text", "code", "told"),
    [
        (
            "dim T, K var p[K], c let z[t in T, k in K] = c * z[t-1, k] first p minimize sum(z)",
            "E209",
            "first a[k]",
        ),
    ],
)
def test_misplaced_first_values_are_explained(text: str, code: str, told: str) -> None:
    with pytest.raises(slomodel.SlomodelError, match=code) as caught:
        slomodel.compile(text)
    assert told in str(caught.value)
