"""Nonlinear regression problems of NIST: certified parameters from both starts, also rescaled."""

from __future__ import annotations

import numpy as np
import pytest

import slomodel
from slomodel.solve.compiled import steps
from tests.nist_problems import NAMES, model_of, recorded

# Values and parameters times these: a method must not depend on units.
SCALES = [(1.0, 1.0), (1.7, 3.0)]


def test_all_nine_are_here() -> None:
    assert len(NAMES) == 9


@pytest.mark.parametrize("name", NAMES)
def test_recorded_values_at_the_starts(name: str) -> None:
    for start in recorded(name)["starts"]:
        value, gradient = model_of(name).value_and_gradient(start["b"])
        assert value == pytest.approx(start["rss"], rel=1e-10)
        np.testing.assert_allclose(gradient, start["gradient"], rtol=1e-8)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "options", [{"method": "auto"}, {"direction": "gauss-newton"}], ids=["auto", "gauss-newton"]
)
@pytest.mark.parametrize("scales", SCALES, ids=["as given", "rescaled"])
@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize("name", NAMES)
def test_certified_parameters(
    name: str, start: int, scales: tuple[float, float], options: dict[str, str]
) -> None:
    problem, (of_y, of_b) = recorded(name), scales
    x0 = of_b * np.array(problem["starts"][start]["b"])
    found = model_of(name, of_y, of_b).solve(x0=x0, gtol=1e-14, **options)
    assert found.success, found.message
    certified = problem["certified"]
    np.testing.assert_allclose(found.x / of_b, certified["b"], rtol=1e-6)
    assert found.fun / of_y**2 == pytest.approx(certified["rss"], rel=1e-8)


def test_the_noise_of_small_residuals_is_measured_where_a_step_is_rejected() -> None:
    """Residuals of 1e-5 from data of 1: f has fewer digits than eps·f says."""
    x0 = np.array(recorded("Lanczos3")["starts"][0]["b"])
    found = model_of("Lanczos3").solve(x0=x0, gtol=1e-9)
    assert found.success
    assert found.nfev < 60


@pytest.mark.parametrize("compiled", [True, False])
def test_terms_that_are_equal_but_for_rounding_determine_nothing(
    compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Columns that differ in the last digits once sent linear unknowns to ±1e12."""
    t = 0.1 * np.arange(1, 14)
    y = np.exp(-t) - 5.0 * np.exp(-10.0 * t) + 3.0 * np.exp(-4.0 * t)
    sums = " + ".join(f"c[{k}]*exp(-k[{k}]*t)" for k in range(3))
    text = f"dim m\ndata t[m], y[m]\nvar k[3], c[3]\nminimize sum(({sums} - y)^2)"
    model = slomodel.compile(text, data={"t": t, "y": y})
    if not compiled:
        monkeypatch.setattr(steps, "library", lambda: None)
    seen: list[float] = []
    start = [1.0, 2.0, 1.0 + 1e-13, 1.0, -1.0, 1.0]
    found = model.solve(x0=start, callback=lambda state: seen.append(np.abs(state.x).max()))
    assert found.success
    assert found.fun < 1e-12
    assert found.nit < 30
    assert max(seen) < 1e3


@pytest.mark.parametrize(
    ("direction", "start", "scales"), [("newton-cg", 0, SCALES[0]), ("lbfgs", 1, SCALES[1])]
)
def test_units_that_hide_the_way_down_are_not_precision(
    direction: str, start: int, scales: tuple[float, float]
) -> None:
    """Parameters from 1e1 down to 1e-7: along −g f shows nothing far from a minimum."""
    problem, (of_y, of_b) = recorded("Hahn1"), scales
    x0 = of_b * np.array(problem["starts"][start]["b"])
    model = model_of("Hahn1", of_y, of_b)
    found = model.solve("norm-armijo", x0, direction=direction, gtol=1e-14, max_nfev=100_000)
    above = found.fun / of_y**2 / problem["certified"]["rss"] - 1.0
    assert not (found.success and above > 1e-6), found.message
    if found.status == "line_search_stalled":
        assert "rescale the variables" in found.message
        further = model.solve("norm-armijo", found.x, direction="gauss-newton", gtol=1e-14)
        assert further.fun < found.fun
