"""Twenty published problems as SymPy expressions: f and gradient at every recorded point."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cutest_problems import PROBLEMS, RECORDED, index_cosines, model_of

RELATIVE = 1e-10


def test_every_problem_is_written() -> None:
    assert set(PROBLEMS) == set(RECORDED)
    assert len(PROBLEMS) == 20


@pytest.mark.sampled(2)
@pytest.mark.parametrize("backend", ["numpy", "numexpr"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_recorded_values(name: str, backend: str) -> None:
    recorded = RECORDED[name]
    model = model_of(name, backend)
    assert model.n == recorded["n"]
    for point in ({"x": recorded["x0"], **recorded["at_x0"]}, *recorded["points"]):
        value, gradient = model.value_and_gradient(point["x"])
        assert value == pytest.approx(point["f"], rel=RELATIVE)
        size = point["grad_norm"]
        assert np.linalg.norm(gradient) == pytest.approx(size, rel=RELATIVE)
        along = gradient @ index_cosines(model.n)
        # The sum of n products of this size cancels.
        scale = size * np.sqrt(model.n)
        assert along == pytest.approx(point["grad_dot_cos"], abs=RELATIVE * scale)
        if "gradient" in point:
            assert np.linalg.norm(gradient - point["gradient"]) <= RELATIVE * size
