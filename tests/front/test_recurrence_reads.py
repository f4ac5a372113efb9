"""What a step of a recurrence reads of earlier ones, against loops in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pytest

import slomodel
from slomodel.errors import SlomodelError

T = 6
Y = np.random.default_rng(0).normal(size=T)
W = np.abs(Y) + 0.5
F, H = np.random.default_rng(1).normal(size=(2, 2)) / 2, np.array([1.0, 0.3])


@dataclass(frozen=True)
class Case:
    """A text with data, and its objective by a loop."""

    text: str
    n: int
    loop: Callable[[np.ndarray], complex]
    data: Mapping[str, object]
    dims: Mapping[str, int] = field(default_factory=dict)


PARENT = np.array([0, 0, 1, 1, 0, 4])
TIPS = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
CHILDREN = np.array([[0, 1], [3, 2]])


def _tree(x):
    z = [x[0]]
    for i in range(1, T):
        z.append(z[PARENT[i]] * np.exp(-x[1] * W[i]) + Y[i])
    return sum(np.square(z))


def _pruned(x):
    """The likelihood of a tree with two states, from the tips down."""
    values = list(TIPS)
    for children in CHILDREN:
        parts = [x[0] * sum(values[c]) / 2 + (1 - x[0]) * values[c] for c in children]
        values.append(parts[0] * parts[1])
    return np.log(sum(values[-1]))


def _segments(x):
    cost = np.concatenate([[0], np.cumsum((Y - x[0]) ** 2)])
    f = [0 * x[0]]
    for t in range(1, T):
        f.append(np.log(sum(np.exp(f[s] - x[1] - cost[t] + cost[s]) for s in range(t))))
    return f[-1]


def _children(x):
    """Sums over the children of each node, the last node first."""
    z = np.zeros(T, complex)
    for i in range(T - 1, -1, -1):
        below = [c for c in range(i + 1, T) if PARENT[c] == i]
        z[i] = np.sin(x[0]) * W[i] + x[1] * sum(z[c] ** 2 for c in below)
        z[i] += x[0] * z[i + 1] if i < T - 1 else 0
    return z[0]


def _kalman(x):
    m, P, f = np.zeros(2), np.eye(2), 0
    for t in range(T):
        S, v = H @ P @ H + x[1] ** 2, Y[t] - H @ m
        f += np.log(S) + v**2 / S
        K = P @ H / S
        m = F @ (m + K * v)
        P = F @ (P - np.outer(K, P @ H)) @ F.T + x[0] ** 2 * np.eye(2)
    return f


def _renewal(x):
    cases = [x[1]]
    for t in range(1, T):
        cases.append(x[0] * sum(W[s] * cases[t - s] for s in range(1, t + 1)))
    return sum(np.square(cases))


def _short_renewal(x):
    cases = [x[1]]
    for t in range(1, T):
        cases.append(x[0] * sum(W[s] * cases[t - 1 - s] for s in range(min(3, t))))
    return sum(np.square(cases))


def _rolling(x):
    u = [x[1], 2 * x[1], x[1] ** 2]
    for t in range(3, T):
        u.append(x[0] * sum(u[t - 3 : t]) / 3 + Y[t])
    return sum(np.square(u))


def _arrays(x):
    h = [x[:2], 2 * x[:2]]
    for t in range(2, T):
        h.append(Y[t] * x[:2] + x[2] * (h[-1] + h[-2]))
    return np.sum(np.square(h))


def _excluded(x):
    e, h = [], []
    for t in range(T):
        e.append(Y[t] - (x[0] * np.sin(h[t - 2]) if t > 1 else 0))
        h.append(x[1] * sum(e[t - 2 : t + 1]) if t >= 2 else 0)
    return sum(np.square(e)) + sum(np.square(h))


def _initial(x):
    h = [x[1]]
    for t in range(1, T):
        h.append(x[0] * h[-1] + x[1] * h[0] + Y[t])
    return sum(np.square(h))


def _two_lags(x):
    e = [x[0]]
    for t in range(1, T):
        e.append(Y[t] - sum(x[j] * e[t - 1 - j] for j in range(2) if j < t))
    return sum(np.square(e))


def _rolling_data(x):
    return sum((x[0] * np.mean(Y[t - 2 : t]) + x[1]) ** 2 for t in range(2, T))


ABOVE, LETTERS = np.array([4, 4, 5, 5, 6, 6]), np.array([0, 2, 1, 1])


def _likelihood_of_a_tree(x):
    b, below = np.exp(-x), [np.eye(3)[letter] for letter in LETTERS]
    for v in (4, 5, 6):
        parts = [
            (1 - b[c]) / 3 * sum(below[c]) + b[c] * below[c] for c in range(v) if ABOVE[c] == v
        ]
        below.append(parts[0] * parts[1])
    return np.log(sum(below[6]))


CASES = {
    "arrays without first values": Case(
        """dim T, n  data y[T], F[n, n], H[n]  var q, r
        let K[t in T] = P[t, :, :] @ H / S[t]
        and S[t in T] = quad(P[t, :, :], H) + r^2
        and v[t in T] = y[t] - dot(H, m[t, :])
        and m[t in T] = F @ (m[t-1, :] + K[t-1, :] * v[t-1])  first zeros(n)
        and P[t in T] = F @ (P[t-1, :, :] - outer(K[t-1, :], P[t-1, :, :] @ H)) @ F'
            + q^2 * eye(n)  first eye(n)
        minimize sum(log(S) + v^2 ./ S)""",
        2,
        _kalman,
        {"y": Y, "F": F, "H": H},
    ),
    "a range up to time": Case(
        """dim T  data w[T]  var R, i0
        let I[t in T] = R * sum(w[s] * I[t-s] for s in range(1, t + 1))  first i0
        minimize sumsq(I)""",
        2,
        _renewal,
        {"w": W},
    ),
    "a range up to the least of two": Case(
        """dim T, S  data w[S]  var R, i0
        let I[t in T] = R * sum(w[s] * I[t-1-s] for s in range(min(S, t)))  first i0
        minimize sumsq(I)""",
        2,
        _short_renewal,
        {"w": W[:3]},
        {"T": T},
    ),
    "a slice": Case(
        """dim T, w  data y[T]  var a, b
        let u[t in T] = a * mean(u[t-w:t]) + y[t]  first b, 2 * b, b^2
        minimize sumsq(u)""",
        2,
        _rolling,
        {"y": Y},
        {"w": 3},
    ),
    "a slice of arrays": Case(
        """dim T  data y[T]  var a[2], b
        let h[t in T] = y[t] * a + b * sum(h[t-2:t, :], axis=0)  first a, 2 * a
        minimize sumsq(h)""",
        3,
        _arrays,
        {"y": Y},
    ),
    "excluded by where": Case(
        """dim T  data y[T]  var a, b
        let e[t in T] = y[t] - a * where(t > 1, sin(h[t-2]), 0)
        and h[t in T] = b * where(t >= 2, sum(e[t-2:t+1]), 0)
        minimize sumsq(h) + sumsq(e)""",
        2,
        _excluded,
        {"y": Y},
    ),
    "excluded by if, in a range of a number": Case(
        """dim T  data y[T]  var th[2]
        let e[t in T] = y[t] - sum(th[j] * e[t-1-j] for j in range(2) if t > j)  first th[0]
        minimize sumsq(e)""",
        2,
        _two_lags,
        {"y": Y},
    ),
    "one of the first values": Case(
        """dim T  data y[T]  var a, b
        let h[t in T] = a * h[t-1] + b * h[0] + y[t]  first b
        minimize sumsq(h)""",
        2,
        _initial,
        {"y": Y},
    ),
    "a place from data": Case(
        """dim T  data y[T], w[T], parent[T] in T  var r, s
        let z[i in T] = z[parent[i]] * exp(-s * w[i]) + y[i]  first r
        minimize sumsq(z)""",
        2,
        _tree,
        {"y": Y, "w": W, "parent": PARENT},
    ),
    "two places from data, of arrays": Case(
        """dim tips, inner, nodes = tips + inner
        data tip[tips, 2], left[inner] in nodes, right[inner] in nodes
        var p
        fn moved(v[k]) = p * sum(v) / k + (1 - p) * v
        let L[i in nodes] = moved(L[left[i - tips], :]) .* moved(L[right[i - tips], :])
          first tip[i, :] for i in tips
        minimize log(sum(L[nodes - 1, :]))""",
        1,
        _pruned,
        {"tip": TIPS, "left": CHILDREN[:, 0], "right": CHILDREN[:, 1]},
    ),
    "all earlier steps": Case(
        """dim T  data y[T]  var mu, cost
        let c = cumsum((y - mu)^2)
        let f[t in T] = logsumexp(f[s] - cost - c[t-1] + where(s > 0, c[s-1], 0) for s in range(t))
          first 0
        minimize f[T-1]""",
        2,
        _segments,
        {"y": Y},
    ),
    "all later steps that data choose": Case(
        """dim T  data w[T], parent[T] in T  var a, b
        let z[i in T] = sin(a) * w[i] + where(i < T - 1, a * z[i+1], 0)
          + b * sum(z[c]^2 for c in T if parent[c] == i and c > i)
        minimize z[0]""",
        2,
        _children,
        {"w": W, "parent": PARENT},
    ),
    "children in a range, of arrays": Case(
        """dim V, E, tips  data parent[E] in V, tip[tips] in 3  var r[E]
        let b = exp(-r)
        let L[v in V, k in 3] = where(v < tips, where(tip[min(v, tips - 1)] == k, 1, 0),
          prod(sum(((1 - b[c]) / 3 + where(k == l, b[c], 0)) * L[c, l] for l in 3)
               for c in range(v) if parent[c] == v))
        minimize log(sum(L[V-1, :]))""",
        6,
        _likelihood_of_a_tree,
        {"parent": ABOVE, "tip": LETTERS},
        {"V": 7},
    ),
    "a slice of data": Case(
        """dim T, w  data y[T]  var a, b
        let h[t in range(w, T)] = a * mean(y[t-w:t]) + b
        minimize sumsq(h)""",
        2,
        _rolling_data,
        {"y": Y},
        {"w": 2},
    ),
}


@pytest.mark.parametrize(
    ("name", "target"),
    [
        pytest.param(name, target, marks=[pytest.mark.slow] * (target != "numpy"))
        for name in CASES
        for target in ("numpy", "numexpr", "c")
    ],
)
def test_values_and_derivatives(name: str, target: str) -> None:
    case = CASES[name]
    model = slomodel.compile(case.text, data=case.data, dims=case.dims, backend=target)
    x = np.random.default_rng(1).uniform(0.3, 0.9, case.n)
    f, g = model.value_and_gradient(x)
    slopes = [case.loop(x + step).imag / 1e-30 for step in 1e-30j * np.eye(case.n)]
    assert f == pytest.approx(case.loop(x).real, rel=1e-13)
    np.testing.assert_allclose(g, slopes, rtol=1e-11, atol=1e-12 * np.abs(slopes).max())
    if target != "numpy":
        v = np.random.default_rng(2).normal(size=case.n)
        change = (model.gradient(x + 1e-5 * v) - model.gradient(x - 1e-5 * v)) / 2e-5
        np.testing.assert_allclose(model.hvp(x, v), change, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("where(t > 0, h[t-2], 0)", r"at t = 1, `h\[t-2\]` reads step -1: there is none"),
        ("sum(h[t-s] for s in range(t + 1))", "reads step 0, the element that it defines"),
        ("sum(h[:t])", r"reads several steps of `h`, being computed"),
        ("sum(h[t-2:t])", "reads step -2: there is none"),
        ("h[t+1]", "steps depend on earlier ones, or all of them on later ones"),
        ("sum(h[s] for s in T)", r"restrict the index: `for … in range\(t\)`"),
        ("sum(h[s] for s in T if s <= t)", "reads a step that is not an earlier one"),
        ("where(t > 0, h[place[t]], 0)", r"not an earlier one: place is in \[0, 5\]"),
        ("a + sum(y[t-3:t])", "the index reaches -3"),
    ],
)
def test_reads_outside_are_refused(step: str, message: str) -> None:
    text = f"""dim T  data y[T], place[T] in T  var a
    let h[t in T] = where(t > 0, h[t-1], a) + {step}
    minimize sum(h) + sum(y) + sum(place)"""
    with pytest.raises(SlomodelError, match=message):
        slomodel.compile(text, data={"y": Y, "place": np.arange(T)}, backend="numpy")
