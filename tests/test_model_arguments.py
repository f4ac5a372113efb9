"""Arguments of a model's methods, and the errors for invalid ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.optimize

import slomodel
from slomodel import DomainError, ShapeError, SlomodelError

MODEL = slomodel.compile("var a[2] init uniform(0, 1), b init 1 minimize sumsq(a - 2) + (b - 1)^4")


def told(error: type[SlomodelError], **keywords: object) -> str:
    with pytest.raises(error) as caught:
        MODEL.solve(**keywords)
    return str(caught.value)


@pytest.mark.parametrize("seed", [-1, 1.5, "a", None, True, np.random.default_rng(0)])
def test_bad_seeds(seed: object) -> None:
    assert told(DomainError, seed=seed).startswith("error[E602]: seed: expected a whole number ≥ 0")
    with pytest.raises(DomainError, match=r"E602.*seed"):
        MODEL.x0(seed)
    assert told(DomainError, seed=seed, x0=np.zeros(3)).startswith("error[E602]: seed")


def test_a_start_from_a_solution() -> None:
    first = MODEL.solve(max_iter=2)
    again = MODEL.solve(x0=first, max_iter=0)
    np.testing.assert_array_equal(again.x, first.x)
    other = slomodel.compile("var a[2] minimize sumsq(a)")
    with pytest.raises(ShapeError, match=r"x0 has shape \(3,\), not \(2,\)"):
        other.solve(x0=first)


@pytest.mark.parametrize("path", ["run.npz", Path("run.npz")])
def test_a_start_from_a_file_name(path: object) -> None:
    text = told(DomainError, x0=path)
    assert "found a text" in text
    assert "x0=slomodel.load_solution('run.npz')" in text


def test_a_start_from_a_method() -> None:
    text = told(DomainError, x0=MODEL.x0)
    assert "found a function" in text
    assert "x0=model.x0()" in text


def test_the_argument_that_is_wrong_is_named() -> None:
    assert "x0 has shape (2,), not (3,)" in told(ShapeError, x0=[0.0, 0.0])
    with pytest.raises(ShapeError, match=r": v has shape \(2,\), not \(3,\)"):
        MODEL.hvp(np.zeros(3), np.zeros(2))
    with pytest.raises(DomainError, match="v holds"):
        MODEL.hvp(np.zeros(3), ["a", "b", "c"])


def read_only() -> np.ndarray:
    array = np.zeros(3)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("out", "error", "said"),
    [
        ([0.0] * 3, DomainError, "out is a list"),
        (
            np.zeros(2),
            ShapeError,
            r"out has shape \(2,\), not \(3,\)(.|\n)*the variables are a \[2\]",
        ),
        (np.zeros((3, 1)), ShapeError, r"out has shape \(3, 1\)"),
        (np.zeros(3, int), DomainError, "out holds int64 values"),
        (np.zeros(3, complex), DomainError, "out holds complex values"),
        (read_only(), DomainError, "out is read-only"),
    ],
)
def test_what_a_gradient_cannot_go_into(out: object, error: type[SlomodelError], said: str) -> None:
    with pytest.raises(error, match=said):
        MODEL.value_and_gradient(np.zeros(3), out=out)


def test_what_a_gradient_can_go_into() -> None:
    x = np.array([1.0, -2.0, 3.0])
    expected = MODEL.gradient(x)
    for out in (np.empty(3), np.empty(6)[::2], np.empty(3, np.float32), x.copy()):
        value, gradient = MODEL.value_and_gradient(x, out=out)
        assert gradient is out
        assert value == MODEL.value(x)
        np.testing.assert_array_equal(out, expected)


def test_callback_and_progress() -> None:
    seen: list[int] = []
    MODEL.solve(method="gd", callback=lambda state: seen.append(state.k), max_iter=2)
    assert seen == [0, 1, 2]
    assert "callback: expected a function" in told(DomainError, callback=3)
    assert "progress: expected True, False or an object" in told(DomainError, progress=3)


def test_an_uncalled_scipy_method() -> None:
    rosen, slope = scipy.optimize.rosen, scipy.optimize.rosen_der
    with pytest.raises(DomainError, match=r"method=slomodel.scipy_method\('norm-armijo'\)"):
        scipy.optimize.minimize(rosen, [0.0, 0.0], jac=slope, method=slomodel.scipy_method)
    with pytest.raises(DomainError, match="takes the name of a method alone"):
        slomodel.scipy_method("auto", gtol=1e-3)
    with pytest.raises(DomainError, match="direction lbfgs"):
        slomodel.scipy_method("lbfgs")


ARRAY = np.zeros(3)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: MODEL.solve(ARRAY), "a start is given by name: x0=…"),
        (lambda: MODEL.solve([0, 0, 0]), "a start is given by name: x0=…"),
        (lambda: MODEL.solve(direction=ARRAY), "direction: expected one of"),
        (lambda: MODEL.bounds(ARRAY, 0.1, effort=ARRAY), "effort: expected one of"),
        (lambda: MODEL.sample_bounds(ARRAY, 0.1, method=ARRAY), "method: expected one of"),
        (lambda: slomodel.compile("var x minimize x^2", backend=ARRAY), "backend: expected one of"),
        (lambda: slomodel.compile("var x minimize x^2", dtype=ARRAY), "dtype: expected one of"),
        (lambda: MODEL.solve(checkpoint=3), "checkpoint: expected the path of a file, found 3"),
        (lambda: MODEL.solve(resume=ARRAY), "path: expected the path of a file"),
    ],
)
def test_an_array_where_a_name_or_a_path_is_expected(call: Callable[[], object], text: str) -> None:
    with pytest.raises(DomainError) as caught:
        call()
    assert text in str(caught.value)
