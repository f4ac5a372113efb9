"""`scipy.optimize.minimize(method=slomodel.scipy_method(…))` on plain Python functions."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse.linalg
from marks import only

import slomodel
from slomodel.errors import DomainError
from slomodel.solve.scipy_method import scipy_method

ROSEN, SLOPE = scipy.optimize.rosen, scipy.optimize.rosen_der
X0 = np.full(4, -1.2)


def minimize(method: str = "norm-armijo", **keywords: object) -> scipy.optimize.OptimizeResult:
    chosen = {"fun": ROSEN, "x0": X0, "jac": SLOPE, **keywords}
    return scipy.optimize.minimize(method=scipy_method(method), **chosen)


@pytest.mark.parametrize("method", only("norm-armijo", ["auto", "norm-armijo", "std-armijo"]))
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
    "bounds",
    [
        [(None, 0.5), (0.2, None), (-1, 1), (0.3, 0.3)],
        scipy.optimize.Bounds([-np.inf, 0.2, -1, 0.3], [0.5, np.inf, 1, 0.3]),
        scipy.optimize.Bounds(-1.0, 0.5),
    ],
)
def test_bounds_are_kept(bounds: object) -> None:
    x0 = np.array([0.0, 0.3, 0.5, 0.3])
    found = minimize("auto", x0=x0, bounds=bounds, tol=1e-9)
    peer = scipy.optimize.minimize(
        ROSEN, x0, jac=SLOPE, method="L-BFGS-B", bounds=bounds, tol=1e-12
    )
    np.testing.assert_allclose(found.x, peer.x, atol=1e-5)
    assert found.fun <= peer.fun + 1e-10
    with pytest.raises(DomainError, match="agp cannot be confined to a set"):
        minimize("agp", x0=x0, bounds=bounds)


@pytest.mark.parametrize(
    ("keywords", "told"),
    [
        ({"jac": None}, "a gradient is needed"),
        ({"bounds": [(0, 1)] * 3}, "bounds: expected a Bounds, or 4 pairs of numbers"),
        ({"bounds": [(2, 1)] * 4}, "a number between both ends"),
        ({"constraints": [{"type": "eq", "fun": sum}]}, "constraints are not handled"),
        ({"options": {"nonsense": 1}}, "nonsense"),
    ],
)
def test_what_is_refused(keywords: dict[str, object], told: str) -> None:
    with pytest.raises(DomainError, match=told):
        minimize(**keywords)


def test_an_unknown_method_is_refused_at_once() -> None:
    with pytest.raises(DomainError, match="no method is called 'bfgs'"):
        scipy_method("bfgs")


def hess(x: np.ndarray) -> np.ndarray:
    return np.asarray(scipy.optimize.rosen_hess(x))


@pytest.mark.parametrize("direction", ["newton", "newton-cg"])
@pytest.mark.parametrize(
    "second",
    [
        {"hessp": scipy.optimize.rosen_hess_prod},
        {"hess": hess},
        {"hess": lambda x: scipy.sparse.csr_array(hess(x))},
        {"hess": lambda x: scipy.sparse.linalg.aslinearoperator(hess(x))},
    ],
    ids=["hessp", "dense", "sparse", "operator"],
)
def test_second_derivatives(direction: str, second: dict[str, object]) -> None:
    result = minimize(options={"direction": direction, "gtol": 1e-9}, **second)
    np.testing.assert_allclose(result.x, 1.0, atol=1e-6)
    assert result.nhev > 0
    assert result.njev == result.nit + 1
    differenced = minimize(options={"direction": direction, "gtol": 1e-9})
    np.testing.assert_allclose(differenced.x, result.x, atol=1e-6)
    assert differenced.nhev == 0


def test_a_matrix_is_requested_once_a_point() -> None:
    points: list[bytes] = []

    def counted(x: np.ndarray) -> np.ndarray:
        points.append(x.tobytes())
        return hess(x)

    result = minimize(hess=counted, options={"direction": "newton"})
    assert result.success
    assert len(points) == len(set(points)) == result.nit
    assert result.nhev == 4 * result.nit


def test_approximations_that_scipy_makes_are_left_to_it() -> None:
    result = minimize(hess=scipy.optimize.BFGS(), options={"direction": "newton"})
    assert (result.success, result.nhev) == (True, 0)


def test_extra_arguments_reach_the_second_derivatives() -> None:
    found = scipy.optimize.minimize(
        lambda x, a: float(a * x @ x),
        [5.0, 5.0],
        args=(3.0,),
        jac=lambda x, a: 2.0 * a * x,
        hessp=lambda x, v, a: 2.0 * a * v,
        method=scipy_method("norm-armijo"),
        options={"direction": "newton-cg"},
    )
    assert (found.success, found.nit) == (True, 1)


def test_a_model_with_scipys_methods_and_with_these() -> None:
    model = slomodel.compile(
        "var x[4] init -1.2\nminimize sum(100*(x[i+1]-x[i]^2)^2 + (1-x[i])^2 for i in 3)"
    )
    for method in ("trust-ncg", "trust-krylov", "Newton-CG", scipy_method("auto")):
        result = scipy.optimize.minimize(**model.scipy(), x0=X0, method=method)
        np.testing.assert_allclose(result.x, 1.0, atol=1e-3)
        assert result.nhev > 0
    highest = slomodel.compile("var x[2] init 1\nmaximize -sumsq(x - 3)")
    result = scipy.optimize.minimize(**highest.scipy(), x0=np.zeros(2), method="trust-ncg")
    np.testing.assert_allclose(result.x, 3.0)
