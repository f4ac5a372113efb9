"""`scipy.optimize.minimize(method=slomodel.scipy_method(…))` on plain Python functions."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize

from slomodel.errors import DomainError
from slomodel.solve.scipy_method import scipy_method

ROSEN, SLOPE = scipy.optimize.rosen, scipy.optimize.rosen_der
X0 = np.full(4, -1.2)


def minimize(method: str = "norm-armijo", **keywords: object) -> scipy.optimize.OptimizeResult:
    chosen = {"fun": ROSEN, "x0": X0, "jac": SLOPE, **keywords}
    return scipy.optimize.minimize(method=scipy_method(method), **chosen)


@pytest.mark.parametrize("method", ["auto", "norm-armijo", "std-armijo"])
def test_it_minimises(method: str) -> None:
    result = minimize(method, tol=1e-9, options={"maxiter": 50_000})
    assert result.success
    assert isinstance(result, scipy.optimize.OptimizeResult)
    np.testing.assert_allclose(SLOPE(result.x), 0.0, atol=1e-6)
    assert result.fun == ROSEN(result.x)


def test_options_of_the_method_and_a_gradient_that_comes_with_the_value() -> None:
    result = minimize(
        fun=lambda x: (ROSEN(x), SLOPE(x)), jac=True, options={"direction": "lbfgs", "gtol": 1e-8}
    )
    np.testing.assert_allclose(result.x, 1.0, atol=1e-6)


def test_extra_arguments_and_an_x0_of_whole_numbers() -> None:
    result = scipy.optimize.minimize(
        lambda x, a, b: float(np.sum(a * (x - b) ** 2)),
        [5, 5],
        args=(2.0, 0.5),
        jac=lambda x, a, b: 2 * a * (x - b),
        method=scipy_method("norm-armijo"),
    )
    np.testing.assert_allclose(result.x, 0.5, atol=1e-5)


def test_callbacks_of_both_kinds() -> None:
    points: list[np.ndarray] = []
    minimize(callback=points.append, options={"maxiter": 5})
    assert len(points) == 5
    assert len({point.tobytes() for point in points}) == 5
    seen: list[float] = []

    def told(intermediate_result: scipy.optimize.OptimizeResult) -> None:
        seen.append(intermediate_result.fun)
        if len(seen) == 3:
            raise StopIteration

    result = minimize(callback=told)
    assert len(seen) == 3
    assert (str(result.status), result.success) == ("user_stopped", False)
    assert seen == sorted(seen, reverse=True)


def test_a_function_that_changes_its_argument_does_no_harm() -> None:
    def fun(x: np.ndarray) -> float:
        x -= 1.0
        return float(x @ x)

    result = minimize(fun=fun, jac=lambda x: 2 * (x - 1.0))
    np.testing.assert_allclose(result.x, 1.0, atol=1e-6)


@pytest.mark.parametrize(
    ("keywords", "told"),
    [
        ({"jac": None}, "a gradient is needed"),
        ({"bounds": [(0, 1)] * 4}, "bounds and constraints are not handled"),
        ({"constraints": [{"type": "eq", "fun": sum}]}, "bounds and constraints are not handled"),
        ({"options": {"nonsense": 1}}, "nonsense"),
    ],
)
def test_what_is_refused(keywords: dict[str, object], told: str) -> None:
    with pytest.raises(DomainError, match=told):
        minimize(**keywords)


def test_an_unknown_method_is_refused_at_once() -> None:
    with pytest.raises(DomainError, match="no method is called 'bfgs'"):
        scipy_method("bfgs")
