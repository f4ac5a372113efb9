"""Edge cases where obvious formulas give NaN or a wrong number: value, gradient, Hessian."""

import math
import warnings

import numpy as np
import pytest

import slomodel
from slomodel.errors import ModelWarning

BACKENDS = ("numpy", "numexpr", pytest.param("c", marks=pytest.mark.slow))
Numbers = list[float]
Case = tuple[str, Numbers, float, Numbers, list[Numbers]]
INF = math.inf
ZERO2, ZERO3 = [[0.0] * 2] * 2, [[0.0] * 3] * 3
TWICE = [[2.0, 0.0], [0.0, 2.0]]

# A norm and its square are one thing: 0 at 0 with gradient 0.
NORMS: list[Case] = [
    *(
        (text, [0.0, 0.0], 0.0, [0.0, 0.0], TWICE)
        for text in (
            *("norm2(v)^2", "sqrt(sumsq(v))^2", "sumsq(v)", "norm2(v)^2.0", "norm2(v)*norm2(v)"),
            *("fro(v)^2", "square(norm2(v))", "sum(v[i]^2 for i in 2)", "dot(v, v)", "v @ v"),
        )
    ),
    *(
        (text, [0.0, 0.0], 0.0, [0.0, 0.0], ZERO2)
        for text in ("norm2(v)", "sqrt(sumsq(v))", "fro(v)", "sqrt(v[0]^2 + v[1]^2)", "norm1(v)")
    ),
    *(
        (text, [0.0], 0.0, [0.0], [[0.0]])
        for text in ("norm2(x * ones(3))", "fro(x * ones(2, 2))", "norm2(-x * c)", "sqrt(x^2)")
    ),
    ("norm2(v)", [3.0, 4.0], 5.0, [0.6, 0.8], [[0.128, -0.096], [-0.096, 0.072]]),
    ("norm2(x * ones(4))", [-3.0], 6.0, [-2.0], [[0.0]]),
]
POWERS: list[Case] = [
    ("x^1.875", [0.0], 0.0, [0.0], [[INF]]),
    ("x^2.0", [0.0], 0.0, [0.0], [[2.0]]),
    *((text, [-3.0], 9.0, [-6.0], [[2.0]]) for text in ("x^2.0", "x^2", "x * x", "x^two")),
    ("x^0", [0.0], 1.0, [0.0], [[0.0]]),
    ("x^zero", [0.0], 1.0, [0.0], [[0.0]]),
    ("sum(x^k for k in range(3))", [0.0], 1.0, [1.0], [[2.0]]),
    ("sum(x^k for k in 4)", [-1.0], 0.0, [2.0], [[-4.0]]),
    ("x^one", [0.0], 0.0, [1.0], [[0.0]]),
]
BRANCHES: list[Case] = [
    ("where(x > 0, sqrt(x), 0)", [-1.0], 0.0, [0.0], [[0.0]]),
    ("where(x < 1, x, sqrt(x))", [0.0], 0.0, [1.0], [[0.0]]),
    ("where(x > 0, x * log(x), 0)", [0.0], 0.0, [0.0], [[0.0]]),
    ("where(x > 0, x * log(x), x^2)", [-1.0], 1.0, [-2.0], [[2.0]]),
    ("sum(where(v > 0, log(v), v))", [-1.0, 1.0], -1.0, [1.0, 1.0], [[0.0, 0.0], [0.0, -1.0]]),
    ("sum(log(v[i]) for i in 2 if i > 0)", [-1.0, 1.0], 0.0, [0.0, 1.0], [[0, 0], [0, -1.0]]),
    ("sumsq(masked(v - nan, keep))", [9.0, 1.0], 4.0, [0.0, -4.0], [[0.0, 0.0], [0.0, 2.0]]),
    ("sum(masked(log(v), keep))", [-1.0, 1.0], 0.0, [0.0, 1.0], [[0.0, 0.0], [0.0, -1.0]]),
]
# One derivative at a kink: 0 for abs and for every spelling of relu.
KINKS: list[Case] = [
    (text, [0.0], 0.0, [0.0], [[0.0]])
    for text in (
        *("abs(x)", "norm1(x * ones(1))", "relu(x)", "max(x, 0)", "max(0, x)", "-min(-x, 0)"),
        *("where(x > 0, x, 0)", "where(x >= 0, x, 0)", "where(x <= 0, 0, x)", "clip(x, 0, 5)"),
        *("(x + abs(x)) / 2", "x * where(x > 0, 1, 0)", "x - min(x, 0)"),
    )
]
STABLE: list[Case] = [
    ("log(1 + exp(x))", [1000.0], 1000.0, [1.0], [[0.0]]),
    ("log(1 + exp(x))", [-1000.0], 0.0, [0.0], [[0.0]]),
    *((f, [-40.0], 4.248354255291589e-18, [4.248354255291589e-18], [[4.248354255291589e-18]])
      for f in ("log(1 + exp(x))", "softplus(x)", "log1p(exp(x))")),
    ("log(sum(exp(v)))", [1000.0, 1000.0], 1000.6931471805599, [0.5, 0.5],
     [[0.25, -0.25], [-0.25, 0.25]]),
    ("log(sum(exp(v)))", [-1000.0, -1000.0], -999.3068528194401, [0.5, 0.5],
     [[0.25, -0.25], [-0.25, 0.25]]),
    ("log(cosh(x))", [1000.0], 999.3068528194401, [1.0], [[0.0]]),
    ("tanh(x)", [20.0], 1.0, [1.699341702116636e-17], [[-3.398683404233271e-17]]),
    ("1 - tanh(x)^2", [20.0], 1.699341702116636e-17, [-3.398683404233271e-17],
     [[6.797366808466543e-17]]),
    ("1 / (1 + exp(-x))", [-1000.0], 0.0, [0.0], [[0.0]]),
    ("exp(x) - 1", [1e-20], 1e-20, [1.0], [[1.0]]),
    ("log(1 + x)", [1e-20], 1e-20, [1.0], [[-1.0]]),
]  # fmt: skip
ONE_ZERO = [[0.0, 3.0, 2.0], [3.0, 0.0, 0.0], [2.0, 0.0, 0.0]]
TWO_ZEROS = [[0.0, 3.0, 0.0], [3.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
PRODUCTS: list[Case] = [
    case
    for text in ("prod(w[i] for i in 3)", "prod(w)", "w[0] * w[1] * w[2]", "prod(w[i] for i in m)")
    for case in (
        (text, [0.0, 2.0, 3.0], 0.0, [6.0, 0.0, 0.0], ONE_ZERO),
        (text, [0.0, 0.0, 3.0], 0.0, [0.0, 0.0, 0.0], TWO_ZEROS),
        (text, [0.0, 0.0, 0.0], 0.0, [0.0, 0.0, 0.0], ZERO3),
    )
]
CASES = [*NORMS, *POWERS, *BRANCHES, *KINKS, *STABLE, *PRODUCTS]
DATA = {"c": [1, 1], "nan": [np.nan, 3], "keep": [0, 1], "one": 1, "two": 2, "zero": 0}


def compiled(text: str, n: int, backend: str) -> slomodel.Model:
    name = "x" if "x" in text.replace("exp", "").replace("max", "") else "v" if n == 2 else "w"
    shape = {"x": "", "v": "[2]", "w": "[m]" if "in m" in text else "[3]"}[name]
    declared = "dim m = 3 data c[2], nan[2], keep[2] mask, one, two, zero"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return slomodel.compile(
            f"{declared} var {name}{shape} minimize {text}", data=DATA, backend=backend
        )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("case", CASES, ids=[f"{case[0]} at {case[1]}" for case in CASES])
def test_value_gradient_and_hessian(case: Case, backend: str) -> None:
    text, at, value, gradient, hessian = case
    model = compiled(text, len(at), backend)
    assert model.value(at) == pytest.approx(value, rel=1e-14, abs=0)
    np.testing.assert_allclose(model.gradient(at), gradient, rtol=1e-14, atol=0)
    columns = [model.hvp(at, unit) for unit in np.eye(len(at))]
    if not np.isinf(hessian[0][0]):
        np.testing.assert_allclose(np.transpose(columns), hessian, rtol=1e-13, atol=1e-15)
    else:
        assert columns[0].tolist() == hessian[0]


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_entropy_at_both_its_ends(backend: str) -> None:
    """Its value is 0, its slopes are infinite."""
    model = compiled("-x * log(x) - (1 - x) * log(1 - x)", 1, backend)
    assert [model.value([0.0]), model.value([1.0])] == [0.0, 0.0]
    assert [*model.gradient([0.0]), *model.gradient([1.0])] == [INF, -INF]
    assert model.value([0.5]) == pytest.approx(math.log(2.0), rel=1e-15)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_power_by_base_and_exponent(backend: str) -> None:
    model = compiled("v[0]^v[1]", 2, backend)
    assert model.value([0.0, 1.0]) == 0.0
    assert model.gradient([0.0, 1.0]).tolist() == [1.0, 0.0]


@pytest.mark.parametrize("text", ["sqrt(x)", "x^0.5", "x^0.7", "x^one / x^0.5"])
def test_roots_at_zero_have_no_derivative(text: str) -> None:
    """A start there has a status that names them."""
    model = compiled(text, 1, "numpy")
    found = model.solve(x0=[0.0])
    assert found.status is slomodel.Status.nonfinite_start
    assert "(line 1)" in found.message
    assert "x = 0.0" in found.message


def test_a_bound_over_a_ball_that_touches_a_kink_is_infinite() -> None:
    for text in ("abs(x)", "norm2(x * c)", "max(x, 0)", "where(x > 0, x, 0)", "x^1.875"):
        model = compiled(text, 1, "numpy")
        touching = model.bounds([0.5], 1.0)
        assert touching.L1 == INF
        assert touching.reason


@pytest.mark.parametrize(
    ("text", "point", "constant"),
    [
        *((text, [0.0, 0.0], 2.0) for text in ("norm2(v)^2", "sqrt(sumsq(v))^2", "sumsq(v)")),
        ("where(x < 5, x^2, sqrt(x))", [0.0], 2.0),
        ("where(x > -5, x^2, log(x))", [0.0], 2.0),
        ("x^0 + x^2.0", [0.0], 2.0),
        ("x^two", [0.0], 2.0),
        ("sum(x^k for k in range(3))", [0.0], 2.0),
        ("sumsq(masked(v - nan, keep))", [0.0, 0.0], 2.0),
        ("sum(v[i]^2 for i in 2 if i > 0)", [0.0, 0.0], 2.0),
        ("abs(x)^2", [0.0], 2.0),
        ("huber(x)", [0.0], 1.0),
        ("log(1 + exp(x))", [0.0], 0.25),
        ("log(cosh(1000 * x)) / 1e6", [0.0], 1.0),
    ],
)
def test_bounds_over_the_unit_ball(text: str, point: Numbers, constant: float) -> None:
    """Tight, or nearly: a branch that is not taken and data under a mask leave no trace."""
    found = compiled(text, len(point), "numpy").bounds(point, 1.0)
    assert constant <= found.L1 <= 1.01 * constant


@pytest.mark.parametrize("backend", BACKENDS)
def test_norms_are_not_scaled_and_lengths_of_two_numbers_are(backend: str) -> None:
    norm = compiled("norm2(v)", 2, backend)
    assert norm.value([1e-170, 1e-170]) == 0.0
    assert norm.gradient([1e-170, 1e-170]).tolist() == [0.0, 0.0]
    assert norm.value([1e200, 1e200]) == INF
    assert "up to v[0] = 1e+200 is inf, in `norm2(v)`" in str(norm.trace_nonfinite([1e200, 1e200]))
    length = compiled("sqrt(v[0]^2 + v[1]^2)", 2, backend)
    for size in (1e-300, 1e-170, 1.0, 1e200, 1e300):
        assert length.value([3 * size, 4 * size]) == pytest.approx(5 * size, rel=1e-15)
        np.testing.assert_allclose(length.gradient([3 * size, 4 * size]), [0.6, 0.8], rtol=1e-15)


UNDECIDED = [
    "where(x > 0, x * log(x), 0)",
    "where(x > 0, 1 / x, 0)",
    "where(x > 0, abs(x), x^2)",
    "where(x < 0, 0, abs(x))",
    "where(x^2 <= 0, relu(x)^2, abs(x))",
    "where(x > 0, sin(x) / x, x)",
]


@pytest.mark.parametrize("text", UNDECIDED)
def test_a_join_at_which_a_branch_has_no_derivative_is_a_kink(text: str) -> None:
    """Told of the join, or of the function that is not differentiable there."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = slomodel.compile(f"var x minimize {text}")
    assert any(one.category is slomodel.NonsmoothWarning for one in caught)
    assert np.isfinite(model.value([0.5]))
