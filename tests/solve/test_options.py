"""What is asked for is checked before anything runs; each failure says what is taken."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from solve.objectives import Counting, parabola

from slomodel.errors import DomainError, MissingRule, ShapeError, SlomodelError
from slomodel.solve import METHODS, METHODS_NOT_YET, solve


def refused(error: type[SlomodelError], **options: object) -> str:
    counted = Counting(parabola())
    with pytest.raises(error) as caught:
        solve(counted, [0.0, 0.0], **options)
    assert counted.values == 0
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("gtol", -1e-6),
        ("gtol", np.nan),
        ("gtol", "1e-6"),
        ("max_iter", -1),
        ("max_iter", 10.0),
        ("max_iter", True),
        ("max_time", -1.0),
        ("max_nfev", 0),
        ("seed", -1),
        ("sense", "maximise"),
        ("delta_bar", 0.0),
        ("delta_bar", np.inf),
        ("theta", 1.0),
        ("theta", True),
        ("sigma", 0.0),
        ("alpha", -1e-4),
        ("direction", "gradients"),
        ("direction", 3),
        ("initial_step", "BB"),
        ("line_search", "wolfe"),
    ],
)
def test_values_out_of_range(name: str, value: object) -> None:
    text = refused(DomainError, **{name: value})
    assert text.startswith(f"error[E602]: {name}: expected ")
    assert f"found {value!r}" in text
    assert "help: " in text


@pytest.mark.parametrize("method", ["norm-armijo", "auto"])
def test_unknown_option_lists_those_taken(method: str) -> None:
    text = refused(DomainError, method=method, detla_bar=1.0)
    assert f"{method} has no option 'detla_bar'" in text
    assert "did you mean 'delta_bar'?" in text
    for name in METHODS[method].options:
        assert name in text


def test_option_of_another_method() -> None:
    assert "norm-armijo has no option 'D'" in refused(DomainError, D=1.0)


def test_unknown_method() -> None:
    text = refused(DomainError, method="norm-armjio")
    assert "did you mean 'norm-armijo'?" in text
    assert "auto, norm-armijo" in text


@pytest.mark.parametrize("method", sorted(METHODS_NOT_YET))
def test_methods_to_come_say_so(method: str) -> None:
    text = refused(MissingRule, method=method)
    assert f"method='{method}'" in text
    assert "not in this version" in text
    assert "use one of auto, norm-armijo" in text


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("direction", "newton"),
        ("direction", "cg"),
        ("line_search", "exact"),
        ("verify", True),
        ("second_order", True),
        ("checkpoint", "run.npz"),
        ("resume", "run.npz"),
        ("starts", 4),
        ("workers", 2),
    ],
)
def test_options_to_come_say_so(name: str, value: object) -> None:
    text = refused(MissingRule, **{name: value})
    assert name in text
    assert "not in this version" in text


def test_options_that_are_not_set_are_no_options() -> None:
    plain = solve(parabola(), [0.0, 0.0])
    unset = solve(
        parabola(), [0.0, 0.0], verify=False, checkpoint=None, starts=None, delta_bar=None
    )
    assert_array_equal(plain.x, unset.x)


def test_defaults() -> None:
    found = solve(parabola(), [3.0, 4.0])
    assert found.method == "norm-armijo"
    assert found.parameters == {
        "delta_bar": 5.0,
        "theta": 0.5,
        "sigma": 0.3,
        "alpha": 1e-4,
        "direction": "gradient",
        "initial_step": "bb",
    }
    assert solve(parabola(), [0.1, 0.1]).parameters["delta_bar"] == 1.0
    auto = solve(parabola(), [3.0, 4.0], method="auto").parameters
    assert (auto["direction"], auto["initial_step"]) == ("lbfgs", "unit")
    steepest = solve(parabola(), [3.0, 4.0], method="auto", direction="gradient").parameters
    assert steepest["initial_step"] == "bb"


@pytest.mark.parametrize("x0", [[0.0], [[0.0, 0.0]], 1.0, [1.0, 2.0, 3.0]])
def test_shape_of_x0(x0: object) -> None:
    with pytest.raises(ShapeError, match=r"x0: expected shape \(2,\)"):
        solve(parabola(), x0)


@pytest.mark.parametrize("x0", [["a", "b"], [1j, 0], [None, 1.0], [[1.0], [1.0, 2.0]]])
def test_type_of_x0(x0: object) -> None:
    with pytest.raises(DomainError, match="x0: expected 2 real numbers"):
        solve(parabola(), x0)


def test_x0_is_not_written_to() -> None:
    x0 = np.zeros(2)
    found = solve(parabola(), x0)
    assert_array_equal(x0, 0.0)
    assert found.x is not x0


def test_an_empty_objective_is_solved_at_once() -> None:
    found = solve(parabola(n=0), np.zeros(0))
    assert (found.status, found.nit) == ("converged", 0)
