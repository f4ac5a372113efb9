"""Recurrences and products whose states leave the range of doubles, below logarithms."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import mpmath
import numpy as np
import pytest

import slomodel

mp = mpmath.mp
Numbers = Sequence[mpmath.mpf]
Exact = Callable[[Numbers, np.ndarray], mpmath.mpf]
T = 120
P = np.array([[0.9, 0.08, 0.02], [0.1, 0.8, 0.1], [0.05, 0.05, 0.9]])
Y = 4.0 * np.random.default_rng(0).normal(size=T)
HEAD = "dim T, K\ndata y[T]\ndata P[K, K]\nvar m[K]\n"
EMISSION = "let e[t in T, k in K] = exp(-(y[t] - m[k])^2 / 2)\n"
START = np.array([-1.0, 0.2, 1.5])


def _forward(m: Numbers, scale: float = 1.0, s: float = 1.0) -> list[mpmath.mpf]:
    f = [mp.exp(-((Y[0] - one) ** 2) / (2 * s)) for one in m]
    for y in Y[1:]:
        f = [
            scale * mp.exp(-((y - m[k]) ** 2) / (2 * s)) * mp.fsum(f[j] * P[j, k] for j in range(3))
            for k in range(3)
        ]
    return f


def _viterbi(m: Numbers) -> mpmath.mpf:
    f = [mp.exp(-((Y[0] - one) ** 2) / 2) for one in m]
    for y in Y[1:]:
        f = [
            mp.exp(-((y - m[k]) ** 2) / 2) * max(f[j] * P[j, k] for j in range(3)) for k in range(3)
        ]
    return mp.log(max(f))


def _determinant(m: Numbers) -> mpmath.mpf:
    """That of a symmetric matrix with three diagonals, by its leading minors."""
    one, two = mp.mpf(1), m[2] + 1e3
    for y in Y[2:]:
        one, two = two, (1000 + m[0] * y) * two - (m[1] + 3) ** 2 * one
    return mp.log(two)


STEP = "e[t, k] * sum(P[j, k] * f[t-1, j] for j in K)"
FORWARD = HEAD + EMISSION + f"let f[t in T, k in K] = {STEP} first e[0, k]\n"
PAIR = (
    "let p[t in T, k in K] = sum(P[j, k] * f[t-1, j] for j in K) first 1\n"
    "and f[t in T, k in K] = e[t, k] * p[t, k] first e[0, k]\n"
)
MODELS: dict[str, tuple[str, Callable[[Numbers], mpmath.mpf]]] = {
    "sum": (FORWARD + "minimize -log(sum(f[T-1, :]))", lambda m: -mp.log(mp.fsum(_forward(m)))),
    "product of matrices": (
        HEAD + EMISSION + "let f[t in T, k in K] = e[t, k] * (f[t-1, :] @ P)[k] first e[0, k]\n"
        "minimize log10(3 * sum(f[T-1, :])^2)",
        lambda m: mp.log10(3 * mp.fsum(_forward(m)) ** 2),
    ),
    "two states": (
        HEAD + EMISSION + PAIR + "minimize log(sqrt(f[T-1, 0] * f[T-1, 2]) / 7)",
        lambda m: mp.log(mp.sqrt(_forward(m)[0] * _forward(m)[2]) / 7),
    ),
    "probability": (
        FORWARD + "minimize f[T-1, 0] / sum(f[T-1, :])",
        lambda m: _forward(m)[0] / mp.fsum(_forward(m)),
    ),
    "beside other terms": (
        FORWARD + "minimize log(sum(f[T-1, :]) + exp(-900 - m[0]) + exp(-900 - m[1]))",
        lambda m: mp.log(mp.fsum(_forward(m)) + mp.exp(-900 - m[0]) + mp.exp(-900 - m[1])),
    ),
    "overflow": (
        HEAD + EMISSION + f"let f[t in T, k in K] = 1e40 * {STEP} first e[0, k]\n"
        "minimize log2(sum(f[T-1, :]))",
        lambda m: mp.log(mp.fsum(_forward(m, 1e40)), 2),
    ),
    "largest": (
        HEAD + EMISSION + "let f[t in T, k in K] = e[t, k] * max(P[j, k] * f[t-1, j] for j in K)"
        " first e[0, k]\nminimize log(max(f[T-1, k] for k in K))",
        _viterbi,
    ),
    "far tails": (
        FORWARD.replace("/ 2)", "/ 2e-2)") + "minimize -log(sum(f[T-1, :]))",
        lambda m: -mp.log(mp.fsum(_forward(m, s=1e-2))),
    ),
    "two lags": (
        "dim T\ndata y[T]\nvar m[3]\n"
        "let d[t in T] = (1000 + m[0] * y[t]) * d[t-1] - (m[1] + 3)^2 * d[t-2]"
        " first 1, m[2] + 1e3\n"
        "minimize log(d[T-1])",
        _determinant,
    ),
}


def _agrees(model: slomodel.Model, exact: Callable[[Numbers], mpmath.mpf], x: np.ndarray) -> None:
    """Value, gradient and Hessian product against differences in many digits."""
    v = np.array([1.0, -0.5, 0.3, *np.linspace(-1, 1, x.size - 3)])
    with mpmath.workdps(60):
        h = mp.mpf(10) ** -15
        at = [mp.mpf(one) for one in x]

        def moved(k: int, along: int = 0) -> mpmath.mpf:
            return exact(
                [one + (h * (i == k) + along * h * mp.mpf(v[i])) for i, one in enumerate(at)]
            )

        middle, after, before = exact(at), moved(-1, 1), moved(-1, -1)
        slopes = [float((moved(k) - middle) / h) for k in range(x.size)]
        curved = [
            float((moved(k, 1) - moved(k, -1) - after + before) / (2 * h * h))
            for k in range(x.size)
        ]
    assert model.value(x) == pytest.approx(float(middle), rel=1e-13)
    size = np.abs(slopes).max()
    np.testing.assert_allclose(model.gradient(x), slopes, rtol=1e-11, atol=1e-12 * size)
    # Of second derivatives of probabilities, squares of slopes cancel.
    atol = 1e-11 * max(np.abs(curved).max(), size) + 1e-15 * size**2
    np.testing.assert_allclose(model.hvp(x, v), curved, rtol=1e-9, atol=atol)


@pytest.mark.filterwarnings("ignore::slomodel.NonsmoothWarning")
@pytest.mark.parametrize("name", MODELS)
def test_states_beyond_the_range_of_doubles(name: str) -> None:
    text, exact = MODELS[name]
    data = {"y": Y, "P": P}
    model = slomodel.compile(
        text, data={key: data[key] for key in data if f"data {key}[" in text}, backend="numpy"
    )
    _agrees(model, exact, START)


def test_series_side_by_side_have_scales_of_their_own() -> None:
    text = """dim T, N, K
    data P[K, K]
    var e[N, K]
    let f[t in T, i in N, k in K] = exp(e[i, k]) * sum(P[j, k] * f[t-1, i, j] for j in K) first 1
    minimize sum(log(sum(f[T-1, i, :])) for i in N)"""
    e = np.array([[-7.0, -6.0, -7.5], [0.3, 0.1, -0.2], [9.0, 9.5, 8.0]])
    model = slomodel.compile(text, data={"P": P}, dims={"T": T, "N": 3}, backend="c")

    def exact(x: Numbers) -> mpmath.mpf:
        total = mp.mpf(0)
        for i in range(3):
            f = [mp.mpf(1)] * 3
            for _ in range(T - 1):
                f = [
                    mp.exp(x[3 * i + k]) * mp.fsum(f[j] * P[j, k] for j in range(3))
                    for k in range(3)
                ]
            total += mp.log(mp.fsum(f))
        return total

    _agrees(model, exact, e.ravel())


PRODUCTS: dict[str, tuple[str, Callable[[Numbers], mpmath.mpf], str]] = {
    "of probabilities": ("log(prod(sigmoid(x)))", lambda p: mp.log(mp.fprod(p)), "sigmoid"),
    "of signs": (
        "log(prod(-3 * x) / 2)",
        lambda p: mp.log(mp.fprod(-3 * one for one in p) / 2),
        "",
    ),
    "running": (
        "sum(log(cumprod(sigmoid(x))))",
        lambda p: mp.fsum(mp.log(mp.fprod(p[: k + 1])) for k in range(len(p))),
        "sigmoid",
    ),
    "of two kinds": (
        "log(0.3 * prod(sigmoid(x)) + 0.7 * prod(1.1 * sigmoid(x)))",
        lambda p: mp.log(mp.fprod(p) * (mp.mpf("0.3") + mp.mpf("0.7") * mp.mpf("1.1") ** len(p))),
        "sigmoid",
    ),
    "beside one": ("log(1 + prod(3 * x))", lambda p: mp.log(1 + mp.fprod(3 * q for q in p)), ""),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_beyond_the_range_of_doubles(name: str) -> None:
    term, of_factors, function = PRODUCTS[name]
    model = slomodel.compile(f"dim n\nvar x[n]\nminimize {term}", dims={"n": 40}, backend="numpy")

    def exact(x: Numbers) -> mpmath.mpf:
        return of_factors([1 / (1 + mp.exp(-one)) if function else one for one in x])

    x = np.linspace(-60.0, -3.0, 40) if function else np.linspace(-9e8, -2e8, 40)
    _agrees(model, exact, x)


def test_a_product_with_a_factor_0_has_its_derivative() -> None:
    model = slomodel.compile("var x[3]\nminimize log(2 + prod(x))", backend="numpy")
    x = np.array([0.0, 3.0, -2.0])
    np.testing.assert_array_equal(model.gradient(x), [-3.0, 0.0, 0.0])
