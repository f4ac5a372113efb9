"""Written sums whose indices are irregular: a table gives the index of each term."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest
import sympy as sp

import slomodel


def edges(n: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Distinct ordered pairs of different numbers below n."""
    pairs = [(i, j) for i in range(n) for j in range(n) if i != j]
    chosen = np.random.default_rng(n).permutation(len(pairs))[:count]
    ends = np.array([pairs[k] for k in chosen])
    return ends[:, 0], ends[:, 1]


def over_edges(n: int, count: int) -> sp.Expr:
    x = sp.symbols(f"x0:{n}")
    pairs = zip(*edges(n, count), strict=True)
    return sp.Add(*[sp.sin(x[int(i)] * 2 - x[int(j)]) * x[int(j)] for i, j in pairs])


def in_text(n: int, count: int) -> str:
    terms = [f"sin(2 * x[{i}] - x[{j}]) * x[{j}]" for i, j in zip(*edges(n, count), strict=True)]
    return f"var x[{n}]\nminimize {' + '.join(terms)}"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("backend", ["numexpr", "numpy", "c"])
@pytest.mark.parametrize("written", [over_edges, in_text])
def test_indices_without_a_rule_are_a_table(written: object, backend: str) -> None:
    model = slomodel.compile(written(30, 200), backend=backend)
    # SymPy takes signs out of sines, so there are two forms of terms.
    assert re.search("200 terms that were written out become [12]$", model.explain(), re.M)
    rng = np.random.default_rng(6)
    x, v = rng.standard_normal(30), rng.standard_normal(30)
    i, j = edges(30, 200)

    def slope(z: np.ndarray) -> np.ndarray:
        turned = np.cos(2 * z[i] - z[j]) * z[j]
        found = np.zeros_like(z)
        np.add.at(found, i, 2 * turned)
        np.add.at(found, j, np.sin(2 * z[i] - z[j]) - turned)
        return found

    np.testing.assert_allclose(model.value(x), (np.sin(2 * x[i] - x[j]) * x[j]).sum(), rtol=1e-12)
    np.testing.assert_allclose(model.gradient(x), slope(x), rtol=1e-11, atol=1e-12)
    bent = slope(x + 1e-20j * v).imag / 1e-20
    np.testing.assert_allclose(model.hvp(x, v), bent, rtol=1e-10, atol=1e-11)
    assert max(model.check_gradient().values()) < 1e-13
    again = pickle.loads(pickle.dumps(model))
    assert again.value(x) == model.value(x)


def test_a_table_of_indices_does_not_make_the_source_longer() -> None:
    few, many = (slomodel.compile(in_text(60, n), backend="numpy") for n in (1100, 1900))
    assert len(few.source().splitlines()) == len(many.source().splitlines())
    assert abs(len(few.source()) - len(many.source())) < 40
    standalone: dict[str, object] = {}
    exec(many.source(), standalone)
    x = np.linspace(-1.0, 1.0, 60)
    assert standalone["value"](x, many.constants) == many.value(x)


def test_bounds_hold_over_a_table_of_indices() -> None:
    rng = np.random.default_rng(8)
    x = sp.symbols("x0:20")
    pairs = [(int(a), int(b)) for a, b in zip(*edges(20, 80), strict=True)]
    for term in (
        lambda a, b: (x[a] - 2 * x[b]) ** 2,
        lambda a, b: sp.sin(x[a]) * x[b],
        lambda a, b: (x[a] * x[b] - 1) ** 2,
    ):
        model = slomodel.compile(sp.Add(*[term(a, b) for a, b in pairs]))
        assert "become 1" in model.explain()
        for radius in (0.01, 1.0):
            centre = rng.standard_normal(20)
            L1 = model.bounds(centre, radius).L1
            for _ in range(3):
                step = rng.standard_normal(20)
                point = centre + radius * step / np.linalg.norm(step)
                assert np.abs(np.linalg.eigvalsh(model.hessian(point))).max() <= L1


def test_one_element_of_an_array_of_two_axes() -> None:
    i, j = edges(12, 60)
    terms = [f"exp(A[{a}, {b}] - y[{a}])" for a, b in zip(i, j, strict=True)]
    text = f"data y[12]\nvar A[12, 12]\nminimize {' + '.join(terms)}"
    rng = np.random.default_rng(1)
    A, y = rng.standard_normal((12, 12)), rng.standard_normal(12)
    model = slomodel.compile(text, data={"y": y})
    assert "become 1" in model.explain()
    np.testing.assert_allclose(model.value(A.ravel()), np.exp(A[i, j] - y[i]).sum(), rtol=1e-13)


@pytest.mark.parametrize("first", ["E[t, i]", "E[t, i] + 0 * x"])
def test_windows_in_recurrences_of_data(first: str) -> None:
    text = f"""dim T = 3, S = 2
    data E[T, S]
    var x
    let A[t in T, i in S] = where(
        t == 0, {first}, sum(A[t - 1, j] for j in S if j < i + 1 and j > i - 2))
    minimize A[T - 1, S - 1] + x^2"""
    E = np.array([[0.1, 0.7], [0.3, 0.2], [0.0, 0.0]])
    model = slomodel.compile(text, data={"E": E}, backend="numpy")
    assert model.value(np.zeros(1)) == pytest.approx(0.9, rel=1e-14)
