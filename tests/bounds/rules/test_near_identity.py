"""Operations on matrices that vary: exact examples, and no point of the ball that shows more."""

import re
from collections.abc import Callable

import numpy as np
import pytest
from bounds.settings import claimed, setting

from slomodel.bounds.rules import curved_terms as curved_rule
from slomodel.bounds.rules.curved_terms import curved_terms

K, M = 2, 3
RNG = np.random.default_rng(5)
B, S, Y = RNG.standard_normal((K, M)), RNG.standard_normal((K, K)), RNG.standard_normal(K)
S = S @ S.T
DATA = {"B": B, "S": S, "y": Y}
SHAPES = {"B": "B[k, m]", "S": "S[k, k]", "y": "y[k]"}


def _weighted(x: np.ndarray) -> np.ndarray:
    return B @ np.diag(np.exp(x)) @ B.T + np.eye(K)


def _unsymmetric(x: np.ndarray) -> np.ndarray:
    return np.eye(K) * 2.0 + np.sin(x[0]) * S + np.outer(x[1:], Y)


def _logdet(A: np.ndarray) -> float:
    return float(np.linalg.slogdet(A)[1])


WEIGHTED = "var x[m]\nlet A = B @ diag(exp(x)) @ B' + diag(ones(k))\n"
UNSYMMETRIC = (
    "var t, x[k]\nlet A[i in k, j in k] = where(i == j, 2, 0) + sin(t) * S[i, j] + x[i] * y[j]\n"
)
KINDS: dict[str, tuple[str, Callable[[np.ndarray], float]]] = {
    "determinant": (
        WEIGHTED + "minimize logdet(A) - trace(inv(A) @ S)",
        lambda x: _logdet(_weighted(x)) - np.trace(np.linalg.solve(_weighted(x), S)),
    ),
    "fraction": (
        WEIGHTED + "minimize dot(y, solve(A, y))",
        lambda x: Y @ np.linalg.solve(_weighted(x), Y),
    ),
    "unsymmetric": (
        UNSYMMETRIC + "minimize exp(logdet(A) / 9) + sumsq(solve(A, y .* x))",
        lambda x: (
            np.exp(_logdet(_unsymmetric(x)) / 9.0)
            + np.sum(np.linalg.solve(_unsymmetric(x), Y * x[1:]) ** 2)
        ),
    ),
    "fixed": (
        "var x[k]\nlet z = solve(S + diag(ones(k)), x)\nminimize sum(exp(z)) - dot(y, z .* z .* z)",
        lambda x: np.sum(np.exp(z := np.linalg.solve(S + np.eye(K), x))) - np.dot(Y, z**3),
    ),
}


def hessian(f: Callable[[np.ndarray], float], x: np.ndarray) -> np.ndarray:
    """H(x) (n, n) by second differences, to about 1e-7 of its size."""
    h, n = 3e-4, len(x)
    e = h * np.eye(n)
    both = [[f(x + e[i] + e[j]) + f(x - e[i] - e[j]) for j in range(n)] for i in range(n)]
    across = [[f(x + e[i] - e[j]) + f(x - e[i] + e[j]) for j in range(n)] for i in range(n)]
    return (np.array(both) - np.array(across)) / (4.0 * h * h)


@pytest.mark.parametrize("kind", KINDS)
def test_no_point_shows_more(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curved_rule, "_MOST_CELLS", 0)
    text, f = KINDS[kind]
    n = K if kind == "fixed" else M
    centre = 0.3 * np.cos(np.arange(n) + 1.0)
    used = [name for name in DATA if re.search(rf"\b{name}\b", text)]
    sizes = f"k = {K}, m = {M}" if "[m]" in text else f"k = {K}"
    head = f"dim {sizes}\ndata {', '.join(SHAPES[name] for name in used)}\n"
    one = setting(head + text, centre, **{name: DATA[name] for name in used})
    at_centre = hessian(f, centre)
    rng = np.random.default_rng(0)
    for radius, near in ((1e-3, 1.1), (0.2, 1e4)):
        found = claimed(curved_terms, one, radius)
        assert found is not None
        norm = np.linalg.norm(at_centre, 2)
        assert near * norm > found.L1, "the terms do not describe this objective closely"
        for _ in range(4):
            d = rng.standard_normal(n)
            d *= radius / np.linalg.norm(d)
            H = hessian(f, centre + d)
            assert np.linalg.norm(H, 2) <= found.L1 + 1e-5 * norm
            assert np.linalg.norm(H - at_centre, 2) <= radius * found.L2 + 1e-5 * norm


def test_exact_for_a_logarithm_of_one_element() -> None:
    """log x at 1 over the radius ½ has L1 = 4 and L2 = 16."""
    one = setting("var x[1]\nlet A[i in 1, j in 1] = x[i]\nminimize logdet(A)", np.ones(1))
    found = claimed(curved_terms, one, 0.5)
    assert found is not None
    assert pytest.approx(4.0, rel=1e-9) == found.L1
    assert pytest.approx(16.0, rel=1e-9) == found.L2


def test_a_matrix_that_becomes_singular_has_no_bound() -> None:
    one = setting("var x[1]\nlet A[i in 1, j in 1] = x[i]\nminimize logdet(A)", np.ones(1))
    found = claimed(curved_terms, one, 1.0)
    assert found is not None
    assert np.inf == found.L1


@pytest.mark.parametrize("function", ["logdet(A)", "sumsq(solve(A, x))"])
def test_without_an_equation_the_rule_does_not_apply(function: str) -> None:
    """At a singular matrix, and at one with a negative determinant."""
    scale = 0.0 if "solve" in function else 1.0
    text = "let A[i in 2, j in 2] = where(i == j, x[i], 0)"
    one = setting(f"var x[2]\n{text}\nminimize {function}", np.array([-scale, 1.0]))
    assert curved_terms(one, 0.1) is None


def test_a_determinant_of_few_rows_is_a_product() -> None:
    """x_0 x_1 for a diagonal matrix: its cumulative product is written out, and H is constant."""
    text = "let A[i in 2, j in 2] = where(i == j, x[i], 0)"
    found = claimed(curved_terms, setting(f"var x[2]\n{text}\nminimize det(A)", [-1.0, 1.0]), 0.1)
    assert found is not None
    assert 1.0 <= found.L1 <= 3.0
