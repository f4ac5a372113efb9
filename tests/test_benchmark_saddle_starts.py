"""The benchmark of starts beside a saddle: its optimum and its runs."""

import numpy as np
import pytest

from benchmarks.saddle_starts import FILE, WANTED, End, beside_saddle, cells, solvers


def test_the_optimum_is_attained_by_the_leading_directions() -> None:
    model, optimum = beside_saddle()
    with np.load(FILE.parent / "data" / "ijcnn1_6000.npz", allow_pickle=False) as archive:
        X = archive["X"]
    _, vectors = np.linalg.eigh(X @ X.T)
    leading = vectors[:, -4:]
    weights = {
        "W1": np.eye(20, 4) @ leading.T,
        "W2": np.eye(10, 20),
        "W3": np.eye(4, 10),
        "W4": np.eye(10, 4),
        "W5": leading @ np.eye(4, 10),
    }
    assert model.value(weights) == pytest.approx(optimum, rel=1e-12)
    start = model.x0(0)
    assert 0.0 < start.max() < 1e-3
    assert np.linalg.norm(model.gradient(start)) < 1e-9 * optimum


def gaps(name: str, seeds: range) -> list[float]:
    model, optimum = beside_saddle()
    ends = [solvers()[name](model, model.x0(seed), 10.0) for seed in seeds]
    return [end.fun / optimum - 1.0 for end in ends if end is not None]


@pytest.mark.slow
def test_negative_curvature_leads_to_the_optimum() -> None:
    assert abs(gaps("newton-cg + second order", range(1))[0]) < WANTED


@pytest.mark.slow
@pytest.mark.parametrize("name", ["auto", "gradient", "lbfgs", "cg", "newton-cg"])
def test_from_eight_of_ten_starts_at_least(name: str) -> None:
    found = gaps(f"{name} + second order", range(10))
    assert sum(abs(gap) < WANTED for gap in found) >= 8


def test_runs_are_reported() -> None:
    model, optimum = beside_saddle()
    every = solvers()
    for name in ("lbfgs + second order", "SciPy CG"):
        end = every[name](model, model.x0(0), 0.2)
        assert end is not None
        assert optimum * (1.0 - 1e-12) < end.fun <= model.value(model.x0(0))
    assert every["newton"](model, model.x0(0), 0.2) is None
    row = cells("some", [End(2.0, 1.0, "converged"), End(1.0, 3.0, "max_time")], 1.0)
    assert row == ("some", "1 of 2", *("0.0e+00", "5.0e-01", "1.0e+00", "2.00"), row[-1])
    assert row[-1] == "converged 1, max_time 1"
