"""Checkpoints written by an earlier version in the middle of a run resume that run."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import slomodel
from slomodel.solve.run.checkpoint import read_checkpoint

FILES = sorted((Path(__file__).parent.parent / "data" / "checkpoints").glob("*.npz"))


@cache
def model() -> slomodel.Model:
    text = """
        var x[4] init -1.2
        minimize sum(100*(x[i+1] - x[i]^2)^2 + (1 - x[i])^2 for i in range(3))
    """
    return slomodel.compile(text, backend="numpy")


# The steps of these depend on bounds, which may have become tighter since.
PROVED = [path for path in FILES if path.stem in {"pgd-analytic", "tgd-certified"}]


LONG = ("agp", "norm-armijo-gradient")
RESUMED = [
    pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if path.stem in LONG else [])
    for path in FILES
    if path not in PROVED
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("path", RESUMED)
def test_an_old_checkpoint_is_taken_up_as_it_was_left(path: Path) -> None:
    found = model().solve(resume=path, max_iter=20)
    saved = read_checkpoint(path).trajectory
    options = {**saved.run.trajectory(), **saved.options, "max_iter": 20}
    whole = model().solve(saved.method, **options)
    assert len(FILES) > 20
    assert (found.nit, found.nfev, found.status) == (whole.nit, whole.nfev, whole.status)
    # Another BLAS rounds otherwise: what is lost by forgetting a memory is far more.
    for name in ("fun", "gradient_norm", "step"):
        one, other = getattr(found.history, name), getattr(whole.history, name)
        assert_allclose(one, other, rtol=1e-6, atol=1e-12, err_msg=name)
    if whole.certificate is not None:
        assert found.certificate is not None
        ours, theirs = found.certificate.lines, whole.certificate.lines
        assert [line.checked for line in ours] == [line.checked for line in theirs]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("path", PROVED, ids=lambda path: path.stem)
def test_the_epoch_in_progress_keeps_its_proved_constant(path: Path) -> None:
    rows = read_checkpoint(path).rows
    found = model().solve(resume=path, max_iter=(most := len(rows) + 4))
    assert found.history.fun[: len(rows)].tolist() == rows[:, 1].tolist()
    with np.load(path) as archive:
        region = json.loads(str(archive["text"]))["code"][1]["run"][3]["region"][3]
    last = np.flatnonzero(found.history.epoch == found.history.epoch[len(rows)])
    last = last[last > 0]
    gnorm, step = found.history.gradient_norm[last - 1], found.history.step[last]
    # x - g/L1 inside the ball; the step that ends the epoch may be cut short by the boundary.
    expected = np.minimum(gnorm / region["L1"], region["ball"][3]["D"])
    ends = last[-1] < found.nit
    inside = slice(None, -1 if ends and len(last) > 1 else None)
    assert_allclose(step[inside], expected[inside], rtol=1e-9)
    assert found.nit == most
    assert np.all(np.diff(found.history.fun) < 0.0)
    assert found.certificate is not None
    assert found.certificate.holds
