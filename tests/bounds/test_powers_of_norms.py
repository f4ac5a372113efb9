"""Powers of norms have the class that they have, and finite bounds near the largest curvature."""

from __future__ import annotations

import math

import numpy as np
import pytest
from marks import every

import slomodel
from slomodel.errors import SourceText
from slomodel.front.elaboration.elaborate import elaborate
from slomodel.front.lints.kinks import smoothness
from slomodel.front.text.parse import parse
from slomodel.ir.function import ANALYTIC

# what is minimised over x[2], the order of smoothness, and L1 and L2 over the unit ball at 0
CASES = [
    ("norm2(x)^3", 2, 6.0, 6.0),
    ("sumsq(x)^1.5", 2, 6.0, 6.0),
    ("(x[0]^2 + x[1]^2)^1.5", 2, 6.0, 6.0),
    ("sqrt(x[0]^2 + x[1]^2)^3", 2, 6.0, 6.0),
    ("norm2(x)^2 * norm2(x)", 2, 6.0, 6.0),
    ("sumsq(x) * norm2(x)", 2, 6.0, 6.0),
    ("-norm2(x)^3 / 6", 2, 1.0, 1.0),
    ("norm2(2 * x)^3", 2, 48.0, 48.0),
    ("norm2(x)^3 / 3 + sumsq(x - 1)", 2, 4.0, 2.0),
    ("norm2(x)^2.5", 2, 3.75, math.inf),
    ("sumsq(x)^1.25", 2, 3.75, math.inf),
    ("norm2(x)^5", 4, 20.0, 60.0),
    ("norm2(x)^4", ANALYTIC, 12.0, 24.0),
    ("sumsq(x)^0.75", 1, math.inf, math.inf),
    ("abs(x[0])^3", 2, 6.0, 6.0),
    ("x[0] * abs(x[0])", 1, 2.0, math.inf),
    ("max(x[0], 0)^3", 2, 6.0, 6.0),
    ("abs(x[0]) * x[0]^2", 2, 6.0, 6.0),
    ("(x[0]^2)^1.5", 2, 6.0, 6.0),
    ("sqrt(x[0]^2)^3", 2, 6.0, 6.0),
    ("abs(x[0]^3)", 2, 6.0, 6.0),
    ("(abs(x[0])^3)^2", ANALYTIC, 30.0, 120.0),
]


@pytest.mark.sampled(4)
@pytest.mark.filterwarnings("ignore:the variable")
@pytest.mark.parametrize(("text", "order", "L1", "L2"), every(3, CASES))
def test_class_and_bounds(text: str, order: int, L1: float, L2: float) -> None:
    model = slomodel.compile(
        f"var x[2] init 0.5\nminimize {text} + 0 * sum(x)", strict=True, backend="numpy"
    )
    source = SourceText(f"var x[2]\nminimize {text}")
    assert smoothness(elaborate(parse(source), source)) == order
    found = model.bounds(np.zeros(2), 1.0)
    for claimed, exact in ((found.L1, L1), (found.L2, L2)):
        assert exact * (1 - 1e-15) <= claimed
        assert claimed <= exact * 1.01
    if math.isfinite(L1):
        assert np.isfinite(model.hvp(np.zeros(2), np.ones(2))).all()
    np.testing.assert_array_equal(np.isfinite(model.gradient(np.zeros(2))), True)


def test_norms_keep_their_kinks() -> None:
    for text in ("norm2(x)", "norm2(x) * (x[0] + 1)", "sqrt(x[0]^2 + x[1]^2)"):
        with pytest.warns(slomodel.ModelWarning, match="a norm has a kink"):
            model = slomodel.compile(f"var x[2] minimize {text}")
        assert math.inf == model.bounds(np.zeros(2), 1.0).L1
