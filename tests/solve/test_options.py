"""Options are checked before anything runs; each error states what is accepted."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from solve.objectives import Counting, parabola

import slomodel
from slomodel.errors import DomainError, ShapeError, SlomodelError
from slomodel.solve import METHODS, Functions, solve


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


@pytest.mark.parametrize("method", ["norm-armijo", "auto", "std-armijo"])
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


@pytest.mark.parametrize("method", ["pgd", "tgd"])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("D", 0.0),
        ("D", np.inf),
        ("D", "Auto"),
        ("d", -0.1),
        ("d", True),
        ("lipschitz", -1.0),
        ("lipschitz", np.nan),
        ("lipschitz", "sample"),
        ("lipschitz", True),
        ("lipschitz", [1.0, 2.0]),
        ("samples", 0),
        ("samples", 10.0),
        ("safety", 0.0),
    ],
)
def test_balls_and_constants_out_of_range(method: str, name: str, value: object) -> None:
    text = refused(DomainError, method=method, **{name: value})
    assert text.startswith(f"error[E602]: {name}: expected ")
    assert f"found {value!r}" in text


@pytest.mark.parametrize("name", ["samples", "safety"])
@pytest.mark.parametrize("given", [3.0, lambda centre, radius: 3.0])
def test_constants_that_are_given_are_not_sampled(name: str, given: object) -> None:
    text = refused(DomainError, method="pgd", lipschitz=given, **{name: 5})
    assert f"{name} is for sampled constants" in text
    assert f"leave {name} or lipschitz out" in text


@pytest.mark.parametrize("method", ["pgd", "tgd"])
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"D": "auto"}, "samples prove nothing"),
        ({"D": "auto", "lipschitz": "sampled"}, "samples prove nothing"),
        ({"D": "auto", "lipschitz": 1.0, "d": 0.1}, "d is the margin of a fixed D"),
        ({"lipschitz": "analytic"}, "needs a compiled model"),
        ({"lipschitz": "proved"}, "expected one of auto, analytic, sampled, found 'proved'"),
    ],
)
def test_proofs_that_cannot_be_had(method: str, options: dict[str, object], said: str) -> None:
    assert said in refused(DomainError, method=method, **options)


@pytest.mark.parametrize(
    ("method", "options", "expected"),
    [
        ("pgd", {"D": 0.04, "gtol": 0.1}, "D: expected a number ≥ √ε/2 = 0.05, found 0.04"),
        ("pgd", {"D": 1.0, "d": 0.5}, "D: expected a number ≥ √ε/2 + 2d = 1.05, found 1.0"),
        ("tgd", {"D": 1.0, "d": 0.5}, "D: expected a number ≥ √ε/2 + 2d = 1.05, found 1.0"),
        ("tgd", {"D": 1.0, "d": 0.05}, "d: expected a number ≥ √ε = 0.1, found 0.05"),
        ("tgd", {"D": 0.2}, "d: expected a number ≥ √ε = 0.1, found 0.05"),
    ],
)
def test_balls_too_small_for_the_tolerance(
    method: str, options: dict[str, float], expected: str
) -> None:
    # The tolerance is known once f(x0) and its gradient are: here its scale is 1.
    with pytest.raises(DomainError) as caught:
        solve(parabola(), [0.0, 0.0], method=method, **{"gtol": 0.1, "lipschitz": 2.0} | options)
    assert expected in str(caught.value)


@pytest.mark.parametrize("method", ["pgd", "tgd"])
@pytest.mark.parametrize("gtol", [1e-6, 0.3, 7.0])
def test_default_balls_suit_every_tolerance(method: str, gtol: float) -> None:
    found = solve(parabola(centre=50.0), [3.0, 4.0], method=method, gtol=gtol)
    assert found.status == "converged"
    assert found.parameters["D"] == max(1.0, 4.0 * gtol)
    assert found.parameters["d"] == (0.0 if method == "pgd" else found.parameters["D"] / 4.0)
    given = solve(parabola(centre=50.0), [3.0, 4.0], method=method, gtol=gtol, lipschitz=2.0)
    assert given.parameters["D"] == max(5.0, 4.0 * gtol)
    assert given.parameters["lipschitz"] == 2.0


def test_parameters_of_the_other_methods() -> None:
    found = solve(parabola(), [3.0, 4.0], method="std-armijo", theta=0.3)
    assert found.parameters == {"delta_bar": 1.0, "theta": 0.3, "sigma": 0.3}
    sampled = solve(parabola(), [3.0, 4.0], method="pgd", safety=1.5)
    assert {name: sampled.parameters[name] for name in ("lipschitz", "samples", "safety")} == {
        "lipschitz": "sampled",
        "samples": 30,
        "safety": 1.5,
    }


@pytest.mark.parametrize("name", ["starts", "workers"])
def test_several_starts_are_for_models(name: str) -> None:
    assert f"{name} is for models, Model.solve" in refused(DomainError, **{name: 4})


def test_options_that_are_not_set_are_not_options() -> None:
    plain = solve(parabola(), [0.0, 0.0])
    unset = solve(parabola(), [0.0, 0.0], verify=False, checkpoint=None, delta_bar=None)
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
    assert (auto["direction"], auto["initial_step"]) == ("lbfgs/newton", "unit")
    assert auto["chosen_for"] == "plain functions of 2 unknowns"
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


@pytest.mark.parametrize("in_set", ["", " in [0, 1]", " in simplex", " > 0"])
@pytest.mark.parametrize("body", ["sumsq(x)", "sum(x^4)", "sum(sin(x))"])
@pytest.mark.parametrize("second_order", [False, True])
def test_no_unknowns_are_solved_at_once(in_set: str, body: str, second_order: bool) -> None:
    model = slomodel.compile(f"dim n var x[n]{in_set} minimize {body}", dims={"n": 0})
    found = model.solve(second_order=second_order)
    assert (found.status, found.fun, found.nit) == ("converged", 0.0, 0)


@pytest.mark.parametrize("constraint", ["sum(x) <= 1", "sum(x) == 1"])
def test_no_unknowns_under_a_constraint_are_feasible_or_not(constraint: str) -> None:
    text = f"dim n var x[n] minimize sum(x^4) subject to {constraint}"
    found = slomodel.compile(text, dims={"n": 0}).solve()
    assert found.success is ("<=" in constraint)
    assert found.status == ("converged" if found.success else "infeasible")


@pytest.mark.parametrize("value", ["yes", 1, None])
def test_verify_is_true_or_false(value: object) -> None:
    with pytest.raises(DomainError, match="verify: expected True or False, found"):
        solve(parabola(), [1.0, 2.0], verify=value)


@pytest.mark.parametrize("answer", [None, "1", [1.0, 2.0], np.zeros(0), 1j])
def test_a_function_that_gives_no_number(answer: object) -> None:
    objective = Functions(lambda x: answer, lambda x: 2.0 * x, 2)
    with pytest.raises(DomainError, match=r"fun\(x\): expected a real number, found"):
        solve(objective, [1.0, 2.0])


def test_a_number_in_an_array_is_a_number() -> None:
    objective = Functions(lambda x: np.array([[x @ x]]), lambda x: 2.0 * x, 2)
    assert solve(objective, [1.0, 2.0]).success


@pytest.mark.parametrize("jac", [[1.0], [1.0, 2.0, 3.0], 1.0])
def test_a_gradient_of_another_shape(jac: object) -> None:
    objective = Functions(lambda x: float(x @ x), lambda x: jac, 2)
    with pytest.raises(ShapeError, match=r"jac\(x\): expected shape \(2,\), found"):
        solve(objective, [1.0, 2.0])
