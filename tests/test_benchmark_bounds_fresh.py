"""Targets of proved bounds: what counts as missed, and what a later run reads from a file."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.random import Generator

import slomodel
from benchmarks import bounds_fresh
from benchmarks.bound_targets import RADII, Target
from benchmarks.bounds_fresh import fresh_rows, summary
from benchmarks.fresh_instances import Instance
from benchmarks.strong_ascent import strong_ascent

QUARTIC = slomodel.compile("var x[2] minimize x[0]^4 + x[1]^4")


def one_centre(rng: Generator) -> Iterator[Instance]:
    yield Instance("quartic", QUARTIC, {"centre": np.array([1.0, 0.5])})


def test_ascents_reach_the_constants_of_a_quartic() -> None:
    found = strong_ascent(QUARTIC, np.array([1.0, 0.5]), 0.5, np.random.default_rng(0), starts=3)
    # At (1.5, 0.5) the second derivative is 12·1.5², the third 24·1.5, a mean over a step near it.
    assert found == pytest.approx((27.0, 36.0), rel=1e-5)


def test_what_is_missed_and_what_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def half(model: object, centre: object, radius: float, rng: object) -> tuple[float, float]:
        return 6.0 * (1.0 + radius) ** 2, 12.0 * (1.0 + radius)

    monkeypatch.setattr(bounds_fresh, "strong_ascent", half)
    monkeypatch.setattr(bounds_fresh, "SAMPLES", 1)
    target = Target("quartic", one_centre, (1e3, 1e3, 1e3, 1e3), (1e3, 1e3, 1e3, 0.5))
    monkeypatch.setattr(bounds_fresh, "TARGETS", (target,))
    kept = tmp_path / "kept"
    (row,) = fresh_rows(None, kept)
    lines = kept.read_text()
    assert lines.count("\n") == len(RADII)
    _, line = summary([row])
    assert line[-1] == "1 missed"
    assert line[1 + 2 * len(RADII)] == f"{row.ratios(1)[-1]:.3f} > 0.5"
    (again,) = fresh_rows(None, kept)
    assert kept.read_text() == lines
    assert again.lower == row.lower
