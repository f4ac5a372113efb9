"""One function written in several ways has the same bound, to within 10 %."""

import numpy as np
import pytest
from marks import slow_unless

import slomodel

RNG = np.random.default_rng(3)
A, T = RNG.standard_normal((12, 3)), RNG.standard_normal(12)
Y = np.sign(RNG.standard_normal(12))
ONE_HOT = np.eye(3)[RNG.integers(0, 3, 12)]
DATA: dict[str, object] = {"A": A, "t": T, "y": Y, "H": ONE_HOT}
HEADS = {
    "A": "data A[12, 3]\n",
    "t": "data t[12]\n",
    "y": "data y[12]\n",
    "H": "data H[12, 3]\n",
}

# By function: names of the data, declarations, and objectives that are equal.
SPELLINGS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "logistic": (
        "Ay",
        "var x[3]\nlet z = y .* (A @ x)\n",
        (
            "sum(softplus(-z))",
            "sum(log1p(exp(-z)))",
            "-sum(log(sigmoid(z)))",
            "sum(log(1 + exp(-z)))",
            "sum(softplus(z) - z)",
        ),
    ),
    "classes, one-hot": (
        "AH",
        "var W[3, 3]\nlet V = A @ W\n",
        (
            "sum(logsumexp(V, axis=1)) - sum(H .* V)",
            "-sum(H .* log(softmax(V, axis=1)))",
            "sum(H[i, k] * (logsumexp(V[i, :]) - V[i, k]) for i in 12, k in 3)",
        ),
    ),
    "distances": (
        "",
        "var p[4, 2]\nlet q[i in 4, j in 2] = p[i, j] + i\n",
        (
            "sum((sqrt(1 + sum((q[i, k] - q[j, k])^2 for k in 2)) - 1)^2 for i in 4, j in 4)",
            "sum((sqrt(1 + (q[i, 0] - q[j, 0])^2 + (q[i, 1] - q[j, 1])^2) - 1)^2"
            " for i in 4, j in 4)",
            "sum((sqrt(1 + sumsq(q[i, :] - q[j, :])) - 1)^2 for i in 4, j in 4)",
        ),
    ),
    "smooth l1": (
        "At",
        "var x[3]\nlet r = A @ x - t\n",
        ("sum(sqrt(r^2 + 0.01))", "sum((r^2 + 0.01)^0.5)", "sum(sqrt(r .* r + 0.1^2))"),
    ),
    "poisson": (
        "At",
        "var x[3]\nlet z = A @ x\n",
        ("sum(exp(z) - t .* z)", "sum(exp(z)) - dot(t, z)", "sum(exp(z)) - sum(t .* (A @ x))"),
    ),
    "least squares": (
        "At",
        "var x[3]\n",
        (
            "sumsq(A @ x - t)",
            "sum((A @ x - t)^2)",
            "norm2(A @ x - t)^2",
            "dot(A @ x - t, A @ x - t)",
        ),
    ),
    "quartic": (
        "At",
        "var x[3]\nlet z = A @ x\n",
        ("sum((z^2 - t)^2)", "sumsq(z .* z - t)", "sum(z^4 - 2 * t .* z^2 + t^2)"),
    ),
    "cauchy": (
        "At",
        "var x[3]\nlet r = A @ x - t\n",
        ("sum(log1p(r^2))", "sum(log(1 + r^2))", "-sum(log(1 / (1 + r .* r)))"),
    ),
    "tanh": (
        "At",
        "var x[3]\nlet z = A @ x\n",
        ("sum((tanh(z) - t)^2)", "sumsq(2 * sigmoid(2 * z) - 1 - t)", "sum((t - tanh(z))^2)"),
    ),
    "entropy": (
        "",
        "var x[3] init 1\nlet z = exp(x)\n",
        ("sum(z .* log(z))", "sum(exp(x) .* x)", "dot(z, x)"),
    ),
    "logsumexp": (
        "A",
        "var x[3]\nlet z = A @ x\n",
        ("logsumexp(z)", "log(sum(exp(z)))", "log(sum(exp(z) / 12)) + log(12)"),
    ),
    "factors": (
        "A",
        "var U[12, 2], V[2, 3] init normal(0, 0.1)\n",
        (
            "sumsq(A - U @ V)",
            "sum((A - U @ V)^2)",
            "sum((A[i, j] - sum(U[i, k] * V[k, j] for k in 2))^2 for i in 12, j in 3)",
        ),
    ),
    "scaled effect": (
        "t",
        "var a[12], s, m init 0.3\n",
        (
            "sumsq(t - m - s * a) / 2 + sumsq(a) / 2",
            "sum((t - m - s * a)^2) / 2 + sum(a^2) / 2",
            "sum((t[i] - m - s * a[i])^2 + a[i]^2 for i in 12) / 2",
        ),
    ),
    "gamma": (
        "t",
        "var a, b\n",
        (
            "sum(a + exp(t - a) + b^2 / 2)",
            "12 * a + sum(exp(t) / exp(a)) + 6 * b^2",
            "12 * a + sum(exp(t)) * exp(-a) + 6 * b^2",
        ),
    ),
    "lattice": (
        "",
        "var u[8]\n",
        (
            "sum(1 - cos(u[i + 1] - u[i]) for i in 7)",
            "7 - sum(cos(u[1:8] - u[0:7]))",
            "2 * sum(sin((u[i + 1] - u[i]) / 2)^2 for i in 7)",
        ),
    ),
    "volatility": (
        "t",
        "var h[12]\n",
        (
            "sum(h + t^2 ./ exp(h)) / 2",
            "sum(log(exp(h)) + t^2 .* exp(-h)) / 2",
            "sum(h) / 2 + sum((t .* exp(-h / 2))^2) / 2",
        ),
    ),
    "classes, index": (
        "A",
        "var W[3, 3]\nlet V = A @ W\n",
        (
            "sum(logsumexp(V[i, :]) - V[i, i % 3] for i in 12)",
            "-sum(log(softmax(V, axis=1)[i, i % 3]) for i in 12)",
            "sum(log(sum(exp(V[i, k] - V[i, i % 3]) for k in 3)) for i in 12)",
            "-sum(log(exp(V[i, i % 3]) / sum(exp(V[i, k]) for k in 3)) for i in 12)",
        ),
    ),
    "mixture": (
        "t",
        "var m[2], l[2]\n",
        (
            "-sum(logsumexp(l[k] - (t[i] - m[k])^2 / 2 for k in 2) for i in 12)",
            "-sum(log(sum(exp(l[k]) * exp(-(t[i] - m[k])^2 / 2) for k in 2)) for i in 12)",
            "-sum(log(sum(exp(l[k] - (t[i] - m[k])^2 / 2) for k in 2)) for i in 12)",
        ),
    ),
    "normal with a scale": (
        "t",
        "var m, s\n",
        (
            "sum(((t - m) / exp(s))^2) / 2 + 12 * s",
            "sumsq(t - m) / exp(s)^2 / 2 + 12 * s",
            "sum((t - m)^2) * exp(-2 * s) / 2 + 12 * s",
            "sum(((t - m) * exp(-s))^2 / 2 + log(exp(s)))",
        ),
    ),
    "shrinkage": (
        "A",
        "var z[3], a, l[3]\n",
        (
            "sumsq(A @ (z .* exp(a) .* exp(l) .* sqrt(4 / (4 + exp(a)^2 * exp(l)^2))) - 1)",
            "sumsq(A @ (z .* exp(a + l) ./ sqrt(1 + exp(2 * a + 2 * l) / 4)) - 1)",
            "sumsq(A @ (z .* exp(a + l - softplus(2 * (a + l) - log(4)) / 2)) - 1)",
        ),
    ),
}
QUICK = ("logistic", "poisson")


def constant(data: str, declared: str, objective: str) -> float:
    """L1 at r = 0.1."""
    text = "".join(HEADS[one] for one in data) + f"{declared}minimize {objective}"
    model = slomodel.compile(text, data={one: DATA[one] for one in data})
    return model.bounds(model.x0() + 0.1, 0.1).L1


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", slow_unless(QUICK.__contains__, SPELLINGS))
def test_all_spellings_have_one_bound(name: str) -> None:
    data, declared, objectives = SPELLINGS[name]
    found = [constant(data, declared, objective) for objective in objectives]
    assert max(found) <= 1.1 * min(found), dict(zip(objectives, found, strict=True))
