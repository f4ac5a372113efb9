"""Checkpoints that an earlier version wrote in the middle of a run go on as that run did."""

from functools import cache
from pathlib import Path

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


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_old_checkpoint_is_taken_up_as_it_was_left(path: Path) -> None:
    found = model().solve(resume=path, max_iter=20)
    asked = read_checkpoint(path).asked
    whole = model().solve(asked.method, gtol=asked.gtol, max_iter=20, **asked.options)
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
