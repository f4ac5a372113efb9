"""Bounds on evaluation errors, against many digits."""

import mpmath
import numpy as np

import slomodel
from slomodel.bounds import gradient_error, value_error

TEXT = "var x, y\nminimize x^4 - 4*x^3 + 6*x^2 - 4*x + 1 + (x*y - 1)^2"


def exact(x: float, y: float) -> tuple[mpmath.mpf, mpmath.matrix]:
    x, y = mpmath.mpf(x), mpmath.mpf(y)
    slope = mpmath.matrix([4 * (x - 1) ** 3 + 2 * y * (x * y - 1), 2 * x * (x * y - 1)])
    return (x - 1) ** 4 + (x * y - 1) ** 2, slope


def test_the_errors_of_a_sum_that_cancels() -> None:
    generator = np.random.default_rng(0)
    with mpmath.workdps(60):
        for backend in ("numpy", "numexpr"):
            model = slomodel.compile(TEXT, backend=backend)
            for _ in range(50):
                x = 1.0 + 10.0 ** generator.uniform(-9.0, 1.0) * generator.normal(size=2)
                setting = model._part(x)
                f, g = model.value_and_gradient(x)
                value, slope = exact(*map(float, x))
                off, of_gradient = value_error(setting, f), gradient_error(setting, g)
                size = float(np.polynomial.Polynomial([1, 4, 6, 4, 1])(abs(x[0])))
                size += (abs(x[0] * x[1]) + 1.0) ** 2
                assert abs(mpmath.mpf(f) - value) <= off <= 64.0 * np.finfo(float).eps * size
                true = mpmath.norm(mpmath.matrix(list(map(float, g))) - slope)
                assert true <= of_gradient <= 1e-12 * size


def test_an_error_is_as_large_as_the_number_is_wrong() -> None:
    model = slomodel.compile("var x[2]\nminimize sum(exp(x))")
    setting = model._part(np.array([0.5, -1.0]))
    f, g = model.value_and_gradient([0.5, -1.0])
    assert value_error(setting, f) < 1e-14
    assert 1e-3 <= value_error(setting, f + 1e-3) <= 1.001e-3
    assert gradient_error(setting, g) < 1e-14
    assert 1e-3 <= gradient_error(setting, g + np.array([0.0, 1e-3])) <= 1.001e-3
    assert value_error(setting, np.nan) == np.inf
