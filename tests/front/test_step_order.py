"""Recurrences along any index, backwards, and along two indices, against loops in NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import slomodel
from slomodel.errors import SlomodelError

M, N = 4, 5
C = np.random.default_rng(0).normal(size=(M, N))

Row = np.ndarray


def _logsumexp(*values: complex) -> complex:
    return complex(np.log(np.sum(np.exp(values))))


def _unit_first(x: Row) -> complex:
    total = 0j
    for i in range(M):
        p, q = x[2 + i], 0j
        for t in range(N):
            p, q = (x[0] * p + q * C[i, t], q * x[1] + p) if t else (p, q)
            total += p**2 + q**2
    return total


def _backwards(x: Row) -> complex:
    u = np.zeros(N + 1, complex)
    for t in range(N - 1, -1, -1):
        ahead = sum(u[t + 1 + j] * x[1] ** j for j in range(3) if t + 1 + j < N)
        u[t] = x[2 + N - 1 - t] if t >= N - 2 else x[0] * ahead + np.sin(u[t + 2]) + t
    return complex(np.sum(u**2))


def _early_steps(x: Row) -> complex:
    h = [x[1]]
    for t in range(1, N):
        h.append(x[0] * h[t - 1] + C[0, t] if t > 2 else h[t - 1] ** 2)
    return complex(np.sum(np.square(h)))


def _table(x: Row) -> complex:
    D = np.zeros((M, N), complex)
    D[0] = C[0] * x[1]
    for i in range(1, M):
        D[i, 0] = C[i, 0] * x[0]
        for j in range(1, N):
            D[i, j] = x[0] * D[i, j - 1] + x[1] * D[i - 1, j] + 0.1 * D[i - 1, N - 1]
    return complex(np.sum(D**2))


def _first_row_last_column(x: Row) -> complex:
    a, b = x
    D = np.zeros((M, N), complex)
    for i in range(M):
        D[i, N - 1] = a * D[i - 1, N - 1] if i else b
        for j in range(N - 2, -1, -1):
            D[i, j] = a * D[i, j + 1] + b * D[i - 1, j] if i else C[0, j] + b * D[0, j + 1]
    return complex(np.sum(D**2))


def _both_backwards(x: Row) -> complex:
    D = np.zeros((M + 1, N + 1, 2), complex)
    for i in range(M - 1, -1, -1):
        for j in range(N - 1, -1, -1):
            D[i, j] = np.sin(C[i, j] * x[:2]) + x[2] * D[i + 1, j] + x[2] * D[i, j + 1] ** 2
    return complex(np.sum(D[0, 0]))


def _three_tables(x: Row) -> complex:
    """Alignment with affine costs of gaps."""
    o, e, s = x
    P = np.full((M + 1, N + 1), -30 + 0j)
    P[0, 0], X, Y = 0, np.full_like(P, -30), np.full_like(P, -30)
    for i in range(M + 1):
        for j in range(N + 1):
            if i and j:
                before = P[i - 1, j - 1], X[i - 1, j - 1], Y[i - 1, j - 1]
                P[i, j] = s * C[i - 1, j - 1] + _logsumexp(*before)
            if i:
                X[i, j] = _logsumexp(P[i - 1, j] - o, X[i - 1, j] - e)
            if j:
                Y[i, j] = _logsumexp(P[i, j - 1] - o, Y[i, j - 1] - e)
    return _logsumexp(P[M, N], X[M, N], Y[M, N])


BODY = "a * D[i, j-1] + b * D[i-1, j] + 0.1 * D[i-1, n-1]"
CASES: dict[str, tuple[str, int, Callable[[Row], complex]]] = {
    "unit first": (
        """var a, b, z[m]
        let p[i in m, t in n] = a * p[i, t-1] + q[i, t-1] * C[i, t]  first z[i]
        and q[i in m, t in n] = q[i, t-1] * b + p[i, t-1]  first 0
        minimize sumsq(p) + sumsq(q)""",
        2 + M,
        _unit_first,
    ),
    "backwards": (
        """var a, b, z[2]
        let u[t in n] = where(t >= n - 2, z[n - 1 - t],
          a * sum(u[t+1+j] * b^j for j in range(3) if t + 1 + j < n) + sin(u[t+2]) + t)
        minimize sumsq(u) + 0 * sum(C)""",
        4,
        _backwards,
    ),
    "early steps that read earlier ones": (
        """var a, b
        let h[t in n] = where(t > 2, a * h[-1 + t] + C[0, t], where(t == 0, b, h[t-1]^2))
        minimize sumsq(h)""",
        2,
        _early_steps,
    ),
    "a step that reads the first one": (
        """var a, b
        let h[t in n] = where(t > 2, a * h[t-1] + C[0, t], where(t == 1, h[0]^2,
          where(t == 2, h[1]^2, b)))
        minimize sumsq(h)""",
        2,
        _early_steps,
    ),
    "a first row": (
        f"""var a, b
        let D[i in m, j in n] = where(j == 0, C[i, 0] * a, {BODY})  first C[0, j] * b
        minimize sumsq(D)""",
        2,
        _table,
    ),
    "reads at the first row and the last column": (
        """var a, b
        let D[i in m, j in n] = where(j == n - 1, where(i == 0, b, a * D[i-1, n - 1]),
          where(i != 0, a * D[i, j+1] + b * D[i-1, j], C[0, j] + b * D[0, j+1]))
        minimize sumsq(D) + 0 * sum(C)""",
        2,
        _first_row_last_column,
    ),
    "cases in the other order": (
        f"""var a, b
        let D[i in m, j in n] = where(0 == j, where(i < 1, C[0, j] * b, C[i, 0] * a),
          where(i > 0, {BODY}, C[0, j] * b))
        minimize sumsq(D)""",
        2,
        _table,
    ),
    "a later index, both backwards": (
        """var w[2], b
        let D[k in range(2), i in m, j in n] = sin(C[i, j] * w[k])
          + where(i < m - 1, b * D[k, i+1, j], 0) + where(j < n - 1, b * D[k, i, j+1]^2, 0)
        minimize D[0, 0, 0] + D[1, 0, 0]""",
        3,
        _both_backwards,
    ),
    "three tables": (
        """var o, e, s
        let P[i in range(m + 1), j in range(n + 1)] = where(i == 0 and j == 0, 0,
          where(i > 0 and j > 0,
            s * C[i-1, j-1] + logsumexp([P[i-1, j-1], X[i-1, j-1], Y[i-1, j-1]]), -30))
        and X[i in range(m + 1), j in range(n + 1)] =
          where(i > 0, logsumexp([P[i-1, j] - o, X[i-1, j] - e]), -30)
        and Y[i in range(m + 1), j in range(n + 1)] =
          where(j > 0, logsumexp([P[i, j-1] - o, Y[i, j-1] - e]), -30)
        minimize logsumexp([P[m, n], X[m, n], Y[m, n]])""",
        3,
        _three_tables,
    ),
}
QUICK = {
    "unit first": "numpy",
    "backwards": "c",
    "early steps that read earlier ones": "numpy",
    "a first row": "c",
    "cases in the other order": "numpy",
    "a later index, both backwards": "numexpr",
    "three tables": "",
}


@pytest.mark.parametrize(
    ("name", "target"),
    [
        pytest.param(name, target, marks=[pytest.mark.slow] * (target != quick))
        for name, quick in QUICK.items()
        for target in ("numpy", "numexpr", "c")
    ],
)
def test_values_and_derivatives(name: str, target: str) -> None:
    text, n, loop = CASES[name]
    model = slomodel.compile(f"dim m, n  data C[m, n]  {text}", data={"C": C}, backend=target)
    x, v = np.random.default_rng(1).uniform(0.3, 0.9, (2, n))
    f, g = model.value_and_gradient(x)
    slopes = [loop(x + step).imag / 1e-30 for step in 1e-30j * np.eye(n)]
    assert f == pytest.approx(loop(x.astype(complex)).real, rel=1e-12)
    np.testing.assert_allclose(g, slopes, rtol=1e-10, atol=1e-12 * np.abs(slopes).max())
    if target != "c":
        change = (model.gradient(x + 1e-5 * v) - model.gradient(x - 1e-5 * v)) / 2e-5
        np.testing.assert_allclose(model.hvp(x, v), change, rtol=1e-6, atol=1e-7)


REFUSED = {
    "h[t in n] = a * h[t+1]": r"at t = n - 1, `h\[t\+1\]` reads step n: there is none",
    "h[t in n] = a * h[t+1] first a": r"where\(t == n - 1, h0, …\)",
    "h[t in n] = a * C[0, t+1] + h[t+1] first a": "reads step 2, which comes later",
    "h[t in n] = where(t > 0, h[t-1], 0) + where(t < n - 1, h[t+1], 0)": "which comes later",
    "h[i in m, j in n] = h[i-1, j] + h[i, j-1] first a": r"where\(j == 0, h0, …\)",
}


@pytest.mark.parametrize("definition", REFUSED)
def test_refusals_say_what_to_write(definition: str) -> None:
    text = f"dim m, n  data C[m, n]  var a  let {definition}  minimize sum(h) + 0 * sum(C)"
    with pytest.raises(SlomodelError, match=REFUSED[definition]):
        slomodel.compile(text)
