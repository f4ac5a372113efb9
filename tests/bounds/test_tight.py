"""Every rule is exact somewhere: a result that is 1 % smaller would be false."""

import math

import numpy as np
import pytest
from bounds.settings import claimed, setting

from slomodel.bounds.rules.table import RULES, BoundRule

S2 = math.sqrt(3.0) / 18.0  # the largest |σ''|
A = np.array([[3.0, 4.0]])

# By strategy: text, centre, radius, data and the constants themselves.
EXACT: dict[str, tuple[str, list[float], float, dict[str, object], float, float]] = {
    "interval_entries": ("var x minimize exp(x)", [0.0], 1.0, {}, math.e, math.e),
    "gradient_jets": ("var x minimize exp(x)", [0.0], 1.0, {}, math.e, math.e),
    "curved_terms": ("var x minimize exp(x)", [0.0], 1.0, {}, math.e, math.e),
    "power_series": ("var x minimize exp(x)", [0.0], 1.0, {}, math.e, math.e),
    "entries_over_the_ball": ("var x minimize exp(x)", [0.0], 1.0, {}, math.e, math.e),
    "majorant_series": ("var x minimize x^4", [2.0], 1.0, {}, 108.0, 72.0),
    "linear_predictors": (
        "data A[1, 2] var x[2] minimize sum(softplus(A @ x))",
        [0.0, 0.0],
        3.0,
        {"A": A},
        25.0 / 4.0,
        125.0 * S2,
    ),
    "symmetric_powers": (
        "data T[2, 2] var x[1, 2] minimize sumsq(T - x' @ x)",
        [0.0, 0.0],
        2.0,
        {"T": -np.eye(2)},
        4.0 + 12.0 * 2.0**2,
        24.0 * 2.0,
    ),
    "radial_functions": (
        "var x[4] minimize log(sumsq(x))",
        [2.0, 0.0, 0.0, 0.0],
        1.0,
        {},
        2.0,
        4.0,
    ),
    "log_sum_exp": (
        "var x[2] minimize logsumexp(x)",
        [0.0, 0.0],
        3.0,
        {},
        0.5,
        2.0 * math.sqrt(2.0) * S2,
    ),
    # D² is 1/cosh², and D³ is largest where tanh² is 1/3.
    "averages": (
        "dim T = 2 data s[2] var x let h[t in T] = logaddexp(h[t-1], s[t] * x) first x "
        "minimize h[1]",
        [0.0],
        1.0,
        {"s": np.array([0.0, -1.0])},
        1.0,
        4.0 / (3.0 * math.sqrt(3.0)),
    ),
    "layered_networks": (
        "data X[1, 1] var v[1], W[1, 1] minimize sumsq(v @ tanh(W @ X))",
        [1.0, 0.0],
        0.0,
        {"X": np.ones((1, 1))},
        2.0,
        4.0 * math.sqrt(4.0 / 3.0),
    ),
}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.bound.__name__)
def test_one_percent_less_would_be_too_little(rule: BoundRule) -> None:
    text, centre, radius, data, L1, L2 = EXACT[rule.bound.__name__]
    found = claimed(rule.bound, setting(text, centre, **data), radius)
    assert found is not None
    for value, exact in ((found.L1, L1), (found.L2, L2)):
        assert exact * (1.0 - 1e-15) <= value
        assert 0.99 * value < exact or value == exact == 0.0


# By strategy a setting and those of its inequalities that are exact there. Of x⁴/24 both constants
# are 2 over the ball; (v w)²/2 has a fourth derivative alone, 12 a² b², of norm 3.
INEQUALITIES: dict[str, tuple[str, list[float], float, dict[str, object], dict[str, float]]] = {
    "linear_predictors": (
        "var x minimize x^4 / 24",
        [1.0],
        1.0,
        {},
        {
            "H elementwise": 2.0,
            "H(c) + r D³f(c) + r²/2 D⁴f by ends": 2.0,
            "sum of |φ‴| elementwise": 2.0,
            "D³f by midpoints and radii": 2.0,
            "‖D³f(c)‖ + r sup ‖D⁴f‖": 2.0,
        },
    ),
    "layered_networks": (
        "data X[1, 1] var v[1], W[1, 1] minimize sumsq(v @ (W @ X)) / 2",
        [0.0, 0.0],
        2.0,
        {"X": np.ones((1, 1))},
        {"‖H(c)‖ + r ‖D³f(c)‖ + r²/2 sup ‖D⁴f‖": 6.0, "‖D³f(c)‖ + r sup ‖D⁴f‖": 6.0},
    ),
    # Where w = 0, H is (3 · 2)² along w and D³f is 6 · 3 · 2² a² b, largest for a² = 2/3.
    "layered_networks at a point": (
        "data X[1, 1] var W[1, 1], v[1] minimize sumsq(v @ sin(W @ X)) / 2",
        [0.0, 3.0],
        0.0,
        {"X": np.array([[2.0]])},
        {"sup ‖H‖": 36.0, "sup ‖D³f‖": 48.0 / np.sqrt(3.0)},
    ),
}


@pytest.mark.parametrize("name", INEQUALITIES)
def test_every_inequality_of_a_strategy_is_exact_somewhere(name: str) -> None:
    """Their values in its explanation, rounded up to six digits, are not 1 % off."""
    text, centre, radius, data, exact = INEQUALITIES[name]
    (rule,) = (rule for rule in RULES if name.startswith(rule.bound.__name__))
    found = claimed(rule.bound, setting(text, centre, **data), radius)
    assert found is not None
    lines = [line.removeprefix("or ") for line in (*found.trace, *found.trace2)]
    told = dict(line.split(" ≤ ") for line in lines if line.count(" ≤ ") == 1)
    told[found.rule.split(": ")[-1]] = found.L1
    told[found.rule2.split(": ")[-1]] = found.L2
    for inequality, value in exact.items():
        assert 0.99 * float(told[inequality]) < value <= float(told[inequality]), inequality
