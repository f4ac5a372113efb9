"""Random recurrences: values and derivatives of loops against those of their written steps."""

from __future__ import annotations

import numpy as np
import pytest

import slomodel
from slomodel.bounds.structure.recurrences import written_out
from slomodel.calculus import gradient, jvp
from slomodel.ir import build
from slomodel.ir.expr import Expr, Recur
from slomodel.ir.walk import postorder
from slomodel.reference import evaluate
from tests.random_recurrences import K, T, setting_of_seed, text_of

pytestmark = pytest.mark.filterwarnings("ignore::slomodel.errors.ModelWarning")


@pytest.mark.parametrize(
    "seed", [pytest.param(k, marks=[pytest.mark.slow] * (k > 2)) for k in range(6)]
)
def test_derivatives_are_those_of_the_written_steps(seed: int) -> None:
    setting = setting_of_seed(seed)
    steps = written_out(setting, 10**6).objective
    assert steps is not setting.objective
    assert not any(isinstance(node, Recur) for node in postorder(steps))
    draw = np.random.default_rng(seed)
    along = {v: build.direction(f"d {v.name}", v.shape) for v in setting.variables}
    moved = {d: np.asarray(draw.normal(size=np.shape(setting.values[v]))) for v, d in along.items()}

    def numbers(objective: Expr) -> np.ndarray:
        slopes = gradient(objective, setting.variables)
        products = jvp(slopes, along)
        third = jvp(products, along)
        again = gradient(build.sum_over(slopes[0], (0,)), setting.variables)
        roots = [objective, *slopes, *products, *third, *again]
        found = evaluate(roots, {**setting.values, **moved}, setting.sizes)
        return np.concatenate([np.ravel(one) for one in found])

    np.testing.assert_allclose(numbers(setting.objective), numbers(steps), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "seed", [pytest.param(k, marks=[pytest.mark.slow] * (k > 1)) for k in range(8)]
)
def test_targets_agree(seed: int) -> None:
    draw = np.random.default_rng(seed)
    data = {"y": draw.normal(size=T), "A": draw.normal(size=(K, K)), "W": draw.normal(size=(T, K))}
    z, v = draw.normal(size=T + 2 + K), draw.normal(size=T + 2 + K)
    models = [
        slomodel.compile(text_of(seed), data=data, backend=target)
        for target in ("numpy", "numexpr", "c")
    ]
    f, g = models[0].value_and_gradient(z)
    for model in models[1:]:
        for _ in range(2):  # working arrays of before must not be read
            value, slope = model.value_and_gradient(z)
            assert value == pytest.approx(f, rel=1e-12, abs=1e-12)
            np.testing.assert_allclose(slope, g, rtol=1e-9, atol=1e-10)
            np.testing.assert_allclose(model.hvp(z, v), models[0].hvp(z, v), rtol=1e-8, atol=1e-9)
