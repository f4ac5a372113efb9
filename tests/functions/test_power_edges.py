"""`x^p` of two variables at x = 0: a derivative is its limit from x > 0, as SymPy finds it."""

import numpy as np
import pytest
import sympy as sp

import slomodel
import slomodel.functions as fn
from slomodel.calculus import gradient, hessian_vector
from slomodel.ir.build import variable
from slomodel.reference import evaluate

EXPONENTS = [-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0]


def limits(p: float) -> tuple[np.ndarray, np.ndarray]:
    """The gradient (2,) and the Hessian (2, 2) of x^p by (x, p) as x > 0 goes to 0."""
    x, exponent = sp.symbols("x p", positive=True)
    by = (x, exponent)

    def limit(*names: sp.Symbol) -> float:
        derivative = sp.diff(x**exponent, *names).subs(exponent, sp.Rational(p))
        return float(sp.limit(sp.expand(derivative), x, 0, "+"))

    return np.array([limit(a) for a in by]), np.array([[limit(a, b) for b in by] for a in by])


def found(backend: str, p: float) -> tuple[np.ndarray, np.ndarray]:
    """The gradient, and the products with the unit vectors."""
    at, units = np.array([0.0, p]), np.eye(2)
    if backend != "reference":
        model = slomodel.compile("var x, p minimize x^p", backend=backend)
        return model.gradient(at), np.array([model.hvp(at, unit) for unit in units])
    x, q, along_x, along_q = (variable(name, ()) for name in ("x", "q", "u", "v"))
    roots = gradient(fn.pow(x, q), [x, q])
    products = hessian_vector(fn.pow(x, q), {x: along_x, q: along_q})
    values = {x: at[0], q: at[1]}
    columns = [evaluate(products, {**values, along_x: u, along_q: v}) for u, v in units]
    return np.array(evaluate(roots, values)), np.array(columns)


@pytest.mark.sampled(2)
@pytest.mark.filterwarnings("ignore::slomodel.errors.ModelWarning")
@pytest.mark.parametrize("backend", ["reference", "numpy", "numexpr", "c"])
@pytest.mark.parametrize("p", EXPONENTS)
def test_what_is_defined_is_right_and_the_rest_is_not_finite(p: float, backend: str) -> None:
    """An infinite entry makes a product not finite, also where the direction is 0 there."""
    slopes, hessian = limits(p)
    with np.errstate(all="ignore"):
        got_slopes, got = found(backend, p)
        products = np.array([hessian @ unit for unit in np.eye(2)])
    np.testing.assert_array_equal(got_slopes, slopes)
    np.testing.assert_array_equal(np.isfinite(got), np.isfinite(products))
    np.testing.assert_array_equal(got[np.isfinite(got)], products[np.isfinite(got)])
    if np.isfinite(slopes).all():
        np.testing.assert_array_equal(got[0, 1], hessian[0, 1])
