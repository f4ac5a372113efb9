"""Definitions by index whose values are arrays, and first steps decided deep inside a body."""

from __future__ import annotations

import numpy as np
import pytest

import slomodel

RNG = np.random.default_rng(4)
N, P, T = 5, 4, 6
DATA = {
    "g": RNG.integers(0, P, N),
    "A": RNG.normal(size=(P, 3)),
    "y": RNG.normal(size=T),
}
HEAD = """dim N, P, T data g[N] in P, A[P, 3], y[T]
var X[P, 3], r[P, 3], a, b, h0[3] init 0.4
fn cross(u[3], v[3]) = [u[1]*v[2] - u[2]*v[1], u[2]*v[0] - u[0]*v[2], u[0]*v[1] - u[1]*v[0]]
fn turned(r[3], u[3]) =
  let w = cross(r, u)
  return u + a * w + b * cross(r, w)
"""
END = " + 0 * (sum(X) + sum(r) + a + b + sum(h0) + sum(A) + sum(y) + sum(g))"
X, R = RNG.normal(size=(P, 3)), RNG.normal(size=(P, 3))
ALPHA, BETA, H0 = 0.7, -0.3, RNG.normal(size=3)


def turned(r: np.ndarray, u: np.ndarray) -> np.ndarray:
    w = np.cross(r, u)
    return np.asarray(u + ALPHA * w + BETA * np.cross(r, w))


ROTATED = np.array([turned(R[k], X[k]) for k in DATA["g"]])


def _outputs(first: np.ndarray) -> float:
    total, h = 0.0, first
    for t in range(T):
        h = np.tanh(h + DATA["y"][t] * R[0])
        total += float(h @ h)
    return total


def _scalar(first: float, start: int) -> float:
    values = [first + ALPHA * t for t in range(start)]
    for t in range(start, T):
        values.append(ALPHA * np.sin(values[t - 1] * BETA + DATA["y"][t]) + values[t - start])
    return float(np.sum(np.square(values)))


MODELS = {
    "a vector for each entry": (
        "let q[i in N] = turned(r[g[i], :], X[g[i], :]) minimize sumsq(q) + sum(q[:, 2] * 3)",
        np.sum(ROTATED**2) + 3 * np.sum(ROTATED[:, 2]),
    ),
    "two indices": (
        "let D[i in N, j in P] = X[g[i], :] - A[j, :] minimize sum(D .^ 3)",
        np.sum((X[DATA["g"]][:, None] - DATA["A"]) ** 3),
    ),
    "the same vector for each": (
        "let D[i in N] = X[0, :] minimize sum(D .^ 3)",
        N * np.sum(X[0] ** 3),
    ),
    "matrices": (
        "let D[t in T] = X .* y[t] + A[t % P, :][None, :] minimize sum(D .^ 3)",
        sum(np.sum((X * DATA["y"][t] + DATA["A"][t % P]) ** 3) for t in range(T)),
    ),
    "inside a function": (
        """fn spread(Z[P, 3]) =
          let D[i in P] = Z[i, :] - sum(Z, axis=0)
          return sum(D .^ 3)
        minimize spread(X)""",
        np.sum((X - X.sum(axis=0)) ** 3),
    ),
    "cases in an argument": (
        """fn step(h[3], u) = tanh(h + u * r[0, :])
        let h[t in T] = step(where(t == 0, h0, h[t-1, :]), y[t]) minimize sumsq(h)""",
        _outputs(H0),
    ),
    "zeros in an argument": (
        """let h[t in T, k in 3] = tanh(where(t > 0, h[t-1, k], 0) + y[t] * r[0, k])
        minimize sumsq(h)""",
        _outputs(np.zeros(3)),
    ),
    "cases at two depths": (
        """let h[t in T] = where(t < 2, b, a * sin(b * h[t-1] + y[t])) + where(t < 2, a * t, h[t-2])
        minimize sumsq(h)""",
        _scalar(BETA, 2),
    ),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore::slomodel.ModelWarning")
def test_value(name: str) -> None:
    text, expected = MODELS[name]
    dims = {"N": N, "P": P, "T": T}
    model = slomodel.compile(HEAD + text + END, data=DATA, dims=dims, backend="numpy")
    x = model.pack({"X": X, "r": R, "a": ALPHA, "b": BETA, "h0": H0})
    assert model.value(x) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("first", ["t == 0", "t == T - 1", "t % 2 == 0"])
@pytest.mark.filterwarnings("ignore::slomodel.ModelWarning")
def test_earlier_numbers_and_arrays_are_of_two_shapes(first: str) -> None:
    text = f"{HEAD}let h[t in T] = where({first}, h[t-1], h0) minimize sum(h)"
    with pytest.raises(slomodel.SlomodelError, match=r"is a number, not \[3\]|reads step -1"):
        slomodel.compile(text, data=DATA, dims={"N": N, "P": P, "T": T})
