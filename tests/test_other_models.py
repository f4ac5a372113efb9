"""The models beside the nine: hand-written values, and derivatives by complex steps."""

from pathlib import Path

import numpy as np
import pytest
from other_models import OTHER_MODELS

import slomodel

MODELS = Path(__file__).parent.parent / "models"


def compiled(name: str) -> slomodel.Model:
    dims, data, _ = OTHER_MODELS[name]
    return slomodel.compile(MODELS / f"{name}.slo", data=data, dims=dims)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", OTHER_MODELS)
def test_agrees_with_numpy_and_complex_steps(name: str) -> None:
    _, data, by_hand = OTHER_MODELS[name]
    model = compiled(name)
    draw = np.random.default_rng(1)
    x = 0.6 * draw.standard_normal(model.n)
    assert model.value(x) == pytest.approx(by_hand(model.unpack(x), data), rel=1e-13)
    assert max(model.check_gradient(x).values()) < 1e-13
    v = draw.standard_normal(model.n)
    h = 1e-5
    differenced = (model.gradient(x + h * v) - model.gradient(x - h * v)) / (2.0 * h)
    np.testing.assert_allclose(model.hvp(x, v), differenced, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("x1", [-0.5, 1.0, 3.0, 6.38, 6.4, 7.38905609893065, 20.0])
def test_pieces_of_the_hard_instance(x1: float) -> None:
    _, data, by_hand = OTHER_MODELS["hard_instance"]
    model = compiled("hard_instance")
    x = np.array([x1, 0.3])
    assert model.value(x) == pytest.approx(by_hand({"x": x}, data), rel=1e-13)
    assert max(model.check_gradient(x).values()) < 1e-13


def test_hard_instance_is_least_at_the_top_of_its_parabola() -> None:
    solution = compiled("hard_instance").solve(gtol=1e-9)
    assert solution.success
    np.testing.assert_allclose(solution.x, [np.exp(2.0), 0.0], rtol=1e-6)


def test_hard_instance_with_the_joint_out_of_reach() -> None:
    model = slomodel.compile(MODELS / "hard_instance.slo", data={"log_J": 200.0 * np.log(1e6)})
    far = slomodel.compile(MODELS / "hard_instance.slo", data={"log_J": 300.0})
    for x in ([0.0, 0.0], [1e3, 0.1], [1e100, 0.0]):
        value, gradient = model.value_and_gradient(np.array(x))
        expected, slope = far.value_and_gradient(np.array(x))
        assert value == expected
        np.testing.assert_array_equal(gradient, slope)
        assert np.isfinite(gradient).all()
