"""Runs with sparse Hessians, and least squares whose affine unknowns are eliminated."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import slomodel
from slomodel.solve import coloured_hessian
from slomodel.solve.coloured_hessian import coloured
from slomodel.solve.directions.levenberg_marquardt import damping_of
from slomodel.solve.directions.sparse_newton import positive_band, positive_factor

CHAIN = """
dim n = 60
var x[n] init -1.2
minimize sum(100*(x[i+1] - x[i]^2)^2 + (1 - x[i])^2 for i in range(n - 1))
"""


def test_pivots_show_definiteness() -> None:
    """A factor exists exactly if the least eigenvalue, by LAPACK, is positive."""
    from scipy.sparse import csc_array

    rng = np.random.default_rng(0)
    kinds = set()
    for k in range(40):
        matrix = np.where(rng.random((12, 12)) < 0.2, rng.normal(size=(12, 12)), 0.0)
        matrix = matrix + matrix.T + np.diag(rng.uniform(-0.5, 3.0, 12) + 0.1 * k)
        least = float(np.linalg.eigvalsh(matrix)[0])
        factor = positive_factor(csc_array(matrix), 0.0)
        assert (factor is not None) == (least > 0.0)
        kinds.add(least > 0.0)
        shifted = positive_factor(csc_array(matrix), 0.5 - least)
        b = rng.normal(size=12)
        solved = np.linalg.solve(matrix + (0.5 - least) * np.eye(12), b)
        np.testing.assert_allclose(shifted.solve(b), solved, rtol=1e-9, atol=1e-9)
    assert kinds == {True, False}


@pytest.mark.parametrize("width", [0, 1, 4])
def test_a_band_is_found_in_any_order_and_solved_as_the_matrix(width: int) -> None:
    """The unknowns are shuffled; the least eigenvalue is that of the whole matrix, by LAPACK."""
    from scipy.sparse import csr_array

    rng = np.random.default_rng(width)
    n = 15
    band = np.triu(np.tril(rng.normal(size=(n, n)), width), -width)
    order = rng.permutation(n)
    matrix = (band + band.T + 2.0 * np.eye(n))[np.ix_(order, order)]
    structure = coloured(csr_array(matrix != 0.0))
    assert structure is not None
    assert structure.band is not None
    assert structure.band.width <= 2 * width
    entries = matrix[structure.rows, structure.columns]
    least = float(np.linalg.eigvalsh(matrix)[0])
    assert positive_band(structure.band, entries, -1e-9 - least) is None
    factor = positive_band(structure.band, entries, 0.5 - least)
    assert factor is not None
    b = rng.normal(size=n)
    solved = np.linalg.solve(matrix + (0.5 - least) * np.eye(n), b)
    np.testing.assert_allclose(factor.solve(b), solved, rtol=1e-9, atol=1e-9)


def test_colours_are_not_looked_for_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take longer than what shows that they, or the factor, would be too many."""
    from scipy.sparse import csr_array

    chain = csr_array(np.eye(20) + np.eye(20, k=1) + np.eye(20, k=-1))
    assert coloured(chain, 5, factored=True) is not None
    monkeypatch.setattr(coloured_hessian, "_of", None)
    assert coloured(csr_array(np.ones((20, 20))), 5) is None
    monkeypatch.setattr(coloured_hessian, "MOST_FILL", 30.0)
    assert coloured(chain, 5, factored=True) is None


def test_a_sparse_hessian_replaces_many_steps() -> None:
    """A convex quartic chain with curvatures from 1 to 1e6: pairs alone need thousands."""
    text = """
    dim n = 250
    var x[n] init 1
    minimize sum(exp(14*i/n)*(x[i+1] - x[i] - 0.01)^2 + (x[i] - 0.5)^4 for i in range(n - 1))
    """
    model = slomodel.compile(text)
    found = model.solve(gtol=1e-8)
    dense = model.solve(x0=found, gtol=1e-8, direction="newton", max_iter=20)
    assert found.status == "converged"
    assert found.fun <= dense.fun * (1.0 + 1e-9)
    assert found.nfev + found.njev + 2 * found.nhev < 400


def test_a_run_with_a_sparse_hessian_is_resumed_bit_for_bit(tmp_path: Path) -> None:
    model = slomodel.compile(CHAIN, backend="numpy")
    whole = model.solve()
    assert whole.nhev > 0
    for k in (20, 45, 47):
        file = tmp_path / f"{k}.npz"
        model.solve(max_iter=k, checkpoint=file)
        resumed = model.solve(resume=file, max_iter=100_000)
        assert resumed.x.tolist() == whole.x.tolist()
        assert (resumed.nit, resumed.nhev) == (whole.nit, whole.nhev)


def test_steps_of_limited_length() -> None:
    """The damping gives the wanted length of (S² + λ)⁻¹ S b, and 0 where that is shorter."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        s, b = 10.0 ** rng.uniform(-6, 3, 5), rng.normal(size=5)
        longest = float(np.linalg.norm(b / s))
        assert damping_of(s, b, 2.0 * longest) == 0.0
        limit = longest * 10.0 ** rng.uniform(-4, -0.1)
        damping = damping_of(s, b, limit)
        assert abs(np.linalg.norm(s * b / (s * s + damping)) / limit - 1.0) <= 0.11


@pytest.mark.parametrize(
    ("text", "affine"),
    [
        ("var a, k\nminimize sum((a*exp(k*t[i]) - y[i])^2 for i in m)", [1, 0]),
        ("var a, b, k\nminimize sum((a + b*exp(k*t[i]) - y[i])^2 for i in m)", [1, 1, 0]),
        ("var c[3]\nminimize sum((c[0] + c[1]*exp(c[2]*t[i]) - y[i])^2 for i in m)", [1, 1, 0]),
        ("var c[2]\nminimize sum((c[0]*t[i] + c[1] - y[i])^2 for i in m)", [1, 1]),
        ("var k\nminimize sum((exp(k*t[i]) - y[i])^2 for i in m)", [0]),
        ("var a, b\nminimize sum((a*b*t[i] - y[i])^2 for i in m)", None),
    ],
)
def test_affine_unknowns(text: str, affine: list[int] | None) -> None:
    t = np.linspace(0.0, 1.0, 9)
    data = {"t": t, "y": 2.0 * np.exp(-t)}
    model = slomodel.compile(f"dim m\ndata t[m], y[m]\n{text}", data=data)
    found = model._objective().affine_unknowns().astype(int).tolist()
    # Of two unknowns that multiply each other, one is affine for the given other.
    assert found == affine if affine is not None else sorted(found) == [0, 1]


def test_affine_unknowns_are_eliminated() -> None:
    """From any scale of the amplitudes the run is about as short as from the best ones."""
    t = np.linspace(0.0, 5.0, 40)
    text = "dim m\ndata t[m], y[m]\nvar a, b, k\n"
    text += "minimize sum((a + b*exp(-k*t[i]) - y[i])^2 for i in m)"
    model = slomodel.compile(text, data={"t": t, "y": 2.0 + 30.0 * np.exp(-0.7 * t)})
    for a, b in ((0.0, 1.0), (1e6, -1e6), (1e-6, 1e-3)):
        found = model.solve(x0=np.array([a, b, 3.0]))
        np.testing.assert_allclose(found.x, [2.0, 30.0, 0.7], rtol=1e-6)
        assert found.nfev <= 15
        assert found.jac.tolist() == model.gradient(found.x).tolist()
