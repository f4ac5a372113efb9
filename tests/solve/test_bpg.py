"""The subproblem of bpg to full precision, and its constant from bounds."""

import math

import mpmath
import numpy as np
import pytest

import slomodel
from slomodel.errors import DomainError
from slomodel.solve.constants.relative import least_constant
from slomodel.solve.methods.bpg import norm_of_step


@pytest.mark.parametrize("p", [2.0, 2.5, 3.0, 4.0, 6.0, 12.0])
@pytest.mark.parametrize("r", [0.0, 1e-200, 1e-9, 0.3, 1.0, 2.0, 7.5, 1e8, 1e150])
def test_norm_of_step(r: float, p: float) -> None:
    s = norm_of_step(r, p)
    if r == 0.0:
        assert s == 0.0
        return
    with mpmath.workdps(60):
        exact = mpmath.findroot(
            lambda u: u + mpmath.log(1 + mpmath.exp((p - 2) * u)) - mpmath.log(r), math.log(s)
        )
        assert abs(mpmath.mpf(s) / mpmath.exp(exact) - 1) < 1e-15


@pytest.mark.parametrize(
    ("coefficients", "power"),
    [([3.0], 0.0), ([0.0, 6.0], 1.0), ([2.0, 0.0, 12.0], 2.0), ([5.0, 1.0, 3.0, 0.0, 30.0], 4.0)],
)
def test_constant_of_a_known_majorant(coefficients: list[float], power: float) -> None:
    def bound(t: float) -> float:
        return float(np.polynomial.Polynomial(coefficients)(t))

    t = np.r_[0.0, np.geomspace(1e-4, 1e7, 20_001)]
    wanted = float(np.max(np.polynomial.Polynomial(coefficients)(t) / (1.0 + t**power)))
    found = least_constant(bound, len(coefficients) - 1, power)
    assert wanted * (1.0 - 1e-9) <= found <= 2.5 * wanted
    assert least_constant(bound, len(coefficients) - 1, power - 0.5) == math.inf or power == 0.0


@pytest.mark.parametrize(
    ("text", "degree"),
    [
        ("var x, y\nminimize 100*(y - x^2)^2 + (1 - x)^2", 4),
        ("var x\nminimize x^6 - 3*x^2 + x", 6),
        ("var x, y\nminimize (x - 3*y)^2 + y^2 - x", 2),
    ],
)
def test_constant_from_bounds(text: str, degree: int) -> None:
    model = slomodel.compile(text)
    x0 = np.full(model.n, 0.4)
    found = model.solve("bpg", x0, max_iter=50)
    (epoch,) = found.epochs
    L = epoch.L1
    assert L is not None
    assert (found.parameters["p"], epoch.source, found.violations) == (degree, "analytic", 0)
    # L·∇²h − ∇²f and L·∇²h + ∇²f are positive semidefinite, with ∇²h ≥ 1 + ‖x‖^(p−2).
    generator = np.random.default_rng(2)
    for scale in np.geomspace(1e-2, 1e4, 200):
        x = scale * generator.normal(size=model.n)
        curvature = np.linalg.norm(model.hessian(x), 2)
        assert curvature <= L * (1.0 + np.linalg.norm(x) ** (degree - 2))


def test_refused_with_the_reason() -> None:
    exponential = slomodel.compile("var x\nminimize exp(x) + exp(-x)")
    with pytest.raises(DomainError, match="not seen to be a polynomial"):
        exponential.solve("bpg", [1.0])
    with pytest.raises(DomainError, match="bpg needs p"):
        exponential.solve("bpg", [1.0], L=3.0)
    assert exponential.solve("bpg", [1.0], L=3.0, p=4).success
    functions = slomodel.compile("var x\nminimize x^4 - x")
    with pytest.raises(DomainError, match="lipschitz is for the constant of a ball"):
        functions.solve("gd", [1.0], L=3.0, lipschitz="sampled")
    with pytest.raises(DomainError, match="less than the degree"):
        functions.solve("bpg", [1.0], p=3)


@pytest.mark.parametrize("method", ["pgd", "tgd", "norm-armijo"])
def test_steps_below_the_spacing_of_x_are_not_precision(method: str) -> None:
    model = slomodel.compile("var x\nminimize x^2")
    options = {"delta_bar": 1.0} if method == "norm-armijo" else {"D": 1.0}
    found = model.solve(method, [1e17], **options)
    assert (found.status, found.success) == ("line_search_stalled", False)
    assert "too short" in found.message
