"""Norms by blocks through the gradient's graph: a rule for every node, and sound bounds."""

import math

import numpy as np
import pytest
from bounds.fuzz import cases
from bounds.settings import claimed, setting
from graph_steps import inside

import slomodel.functions as table
from slomodel.bounds import ObjectivePart
from slomodel.bounds.rules.gradient_jets import gradient_jets
from slomodel.ir import build
from slomodel.ir.function import ScalarFunction

pytestmark = pytest.mark.filterwarnings("ignore::slomodel.NonsmoothWarning")
INF = math.inf
NUMBERS = tuple(build.variable(name, ()) for name in "xyz")
POINT = (0.9, 0.3, 0.6)
REAL = [
    value
    for value in vars(table).values()
    if isinstance(value, ScalarFunction) and value.result == "real" and not value.operand_types
]


def ask(one: ObjectivePart, radius: float) -> tuple[float, float]:
    found = claimed(gradient_jets, one, radius)
    assert found is not None
    assert found.reason or math.isfinite(found.L1 + found.L2)
    return found.L1, found.L2


@pytest.mark.sampled(3)
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.parametrize("function", REAL, ids=lambda one: one.name)
def test_every_function_has_a_rule(function: ScalarFunction) -> None:
    inputs = NUMBERS[: function.arity]
    moved = [inside(function, k, table.mul(0.7, x)) for k, x in enumerate(inputs)]
    asked = ObjectivePart(
        function(*moved), inputs, {x: np.array(v) for x, v in zip(inputs, POINT, strict=False)}, {}
    )
    found = cases(asked, np.random.default_rng(0), (0.0, 0.05), ask)
    assert found or function in (table.clip, table.floor)
    for case in found:
        assert not case.violates("L1")
        assert not case.violates("L2")


@pytest.mark.parametrize(
    ("text", "centre", "radius", "L1", "L2", "loose"),
    [
        ("var x minimize exp(x)", [0.0], 1.0, math.e, math.e, 1e-9),
        ("var x minimize x^4", [2.0], 1.0, 108.0, 72.0, 1e-9),
        ("var x minimize softplus(x)", [0.0], 3.0, 0.25, math.sqrt(3.0) / 18.0, 1e-9),
        # C² with a third derivative that jumps: nothing is known of it from the centre.
        ("var x minimize relu(x)^3", [-0.1], 1.0, 5.4, 6.0, 1e-9),
        ("var x minimize relu(x)^3", [-2.0], 1.0, 0.0, 0.0, 0.0),
        ("var x minimize relu(x)^4", [-0.1], 1.0, 12 * 0.9**2, 24 * 0.9, 1e-9),
        ("var x, y minimize x * y", [1.0, 2.0], 1.0, 1.0, 0.0, 1e-9),
        ("var x, y, z minimize x * y * z", [0.0, 0.0, 0.0], 1.0, 2 / 3**0.5, 2 / 3**0.5, 1e-9),
        ("var x[3] minimize sumsq(x)^2", [0.0, 0.0, 0.0], 1.0, 12.0, 24.0, 1e-9),
        (
            "data A[2, 2] var x[2] minimize sum(softplus(A @ x))",
            [0.0, 0.0],
            0.0,
            1.0,
            0.0,
            1e-6,
        ),
    ],
)
def test_known_constants(
    text: str, centre: list[float], radius: float, L1: float, L2: float, loose: float
) -> None:
    data = {"A": np.diag([2.0, 1.0])} if "data" in text else {}
    found = claimed(gradient_jets, setting(text, centre, **data), radius)
    assert found is not None
    assert L1 * (1 - 1e-15) <= found.L1 <= L1 * (1 + loose)
    assert L2 * (1 - 1e-15) <= found.L2 <= L2 * (1 + loose) + 1e-12


@pytest.mark.parametrize(
    ("text", "centre", "radius", "words"),
    [
        ("var x\nminimize x^2\n  + abs(x)", [0.5], 1.0, "`abs(x)` in line 3 has a kink"),
        ("var x minimize log(x)", [1.0], 2.0, "`log(x)` in line 1 has no value"),
        ("var x[9] minimize sum(1/x)", [1.0] * 9, 1.0, "`1/x` in line 1 has no value"),
        ("var x[9] minimize max(x)", [1.0] * 9, 1.0, "`max(x)` in line 1 has a kink"),
        ("var x[9] minimize sum(exp(x))", [800.0] * 9, 1.0, "unbounded value"),
    ],
)
def test_no_bound_and_why(text: str, centre: list[float], radius: float, words: str) -> None:
    found = claimed(gradient_jets, setting(text, centre), radius)
    assert found is not None
    assert (found.L1, found.L2) == (INF, INF)
    assert words in found.reason


def test_l1_alone_where_the_second_derivative_jumps() -> None:
    found = claimed(gradient_jets, setting("var x[9] minimize sumsq(relu(x))", [0.0] * 9), 1.0)
    assert found is not None
    assert 2.0 <= found.L1 <= 2.0 * (1 + 1e-9)
    assert found.L2 == INF
    assert "has a second derivative that jumps" in found.reason


@pytest.mark.parametrize("radius", [0.0, 1e-3, 1.0])
def test_a_net_in_matrices_is_bounded_block_by_block(radius: float) -> None:
    """No point found is above the bounds, and for small balls L1 is within a quarter of one."""
    rng = np.random.default_rng(0)
    text = """dim N, d = 4, h = 3
    data X[N, d], y[N]
    var W[h, d], v[h]
    minimize sum((tanh(X @ W') @ v - y)^2) / N"""
    x0 = 0.5 * rng.standard_normal(15)
    asked = setting(text, list(x0), X=rng.standard_normal((20, 4)), y=rng.standard_normal(20))
    (case,) = cases(asked, rng, (radius,), ask)
    assert not case.violates("L1")
    assert not case.violates("L2")
    if radius < 1.0:
        assert case.ratio("L1") > 0.8
