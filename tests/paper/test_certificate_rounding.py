"""At the resolution of f rounding is not reported as a violation; a wrong constant is."""

import mpmath
import numpy as np
import pytest
from marks import only
from numpy.random import Generator

import slomodel
from slomodel.solve.verify.inequalities import bregman

# Each a sum of terms that cancel near its minimisers.
CANCELLING = (
    "var x\nminimize x^4 - 4*x^3 + 6*x^2 - 4*x + 1",
    "var x, y\nminimize x^4 - 8*x^3 + 24*x^2 - 32*x + 16 + (x*y - 1)^2",
    "var x[3]\nminimize sumsq(x)^2 - 3*sumsq(x)",
)


def quartic(generator: Generator) -> str:
    """A quartic in x and y that is bounded below, with coefficients of many sizes."""
    c = generator.normal(size=8) * 10.0 ** generator.uniform(-2.0, 2.0, 8)
    terms = ("x^2*y", "x*y", "x", "y^2", "y", "1")
    written = [f"{a:.17g}*{t}" for a, t in zip(c[2:], terms, strict=True)]
    return "var x, y\nminimize " + " + ".join(
        [f"{abs(c[0]):.17g}*x^4 + {abs(c[1]):.17g}*y^4", *written]
    )


def polynomials(seed: int, count: int) -> list[slomodel.Model]:
    generator = np.random.default_rng(seed)
    texts = [*CANCELLING, *(quartic(generator) for _ in range(count))]
    return [slomodel.compile(text, backend="numpy") for text in texts]


@pytest.mark.slow
@pytest.mark.parametrize("method", only("tgd", ["bpg", "gd", "tgd", "std-armijo"]))
def test_runs_to_the_floor_break_no_promise(method: str) -> None:
    generator = np.random.default_rng(3)
    options = {"D": 1.0} if method == "tgd" else {}
    for model in polynomials(0, 8):
        near = model.solve("auto", generator.normal(size=model.n)).x
        for _ in range(2):
            # A ball takes a proof, so that few epochs lead to the floor.
            x0 = near + 0.1 * generator.normal(size=model.n)
            found = model.solve(method, x0, gtol=1e-15, max_iter=400, verify=True, **options)
            assert found.certificate.holds, found.certificate.summary
            assert found.certificate.lines[0].checked > 0


@pytest.mark.slow
def test_a_constant_too_small_by_5_is_still_reported() -> None:
    """Far from the floor the excess is no rounding, however large the terms of f are."""
    generator = np.random.default_rng(4)
    broken = 0
    for model in polynomials(1, 6):
        x0 = generator.normal(size=model.n)
        L = model.solve("bpg", x0, max_iter=1).epochs[0].L1
        # The bounds are loose, so that the least L is sought that some step shows to be wrong.
        for factor in (5.0, 25.0, 125.0):
            found = model.solve("bpg", x0, L=L / factor, p=4, max_iter=60, verify=True)
            broken += not found.certificate.holds
    assert broken >= 9


def test_a_tight_constant_too_small_by_5_is_reported() -> None:
    """‖x‖⁴/4 + ‖x‖²/2 is h itself, beside a constant that the values lose their digits to."""
    model = slomodel.compile("var x[3]\nminimize sumsq(x)^2/4 + sumsq(x)/2 - sum(x) + 1e3")
    right = model.solve("bpg", [3.0, -2.0, 1.0], L=1.0, p=4, max_iter=300, gtol=1e-15, verify=True)
    assert right.certificate.holds, right.certificate.summary
    wrong = model.solve("bpg", [3.0, -2.0, 1.0], L=0.2, p=4, max_iter=20, verify=True)
    assert wrong.certificate.lines[0].violated > 0


@pytest.mark.parametrize("p", [2.0, 2.5, 3.0, 4.0, 7.0, 12.0])
def test_bregman_distance_against_many_digits(p: float) -> None:
    generator = np.random.default_rng(7)
    for apart in (1e-12, 1e-6, 1e-3, 0.3, 1.0, 1e3):
        for scale in (1e-6, 1.0, 1e6):
            y = scale * generator.normal(size=3)
            x = y + apart * scale * generator.normal(size=3)
            with mpmath.workdps(80):
                X, Y = ([mpmath.mpf(float(a)) for a in v] for v in (x, y))
                a, b = (mpmath.fsum(one * one for one in v) for v in (X, Y))
                slope = mpmath.fsum(one * (other - one) for other, one in zip(X, Y, strict=True))
                beyond = a ** (mpmath.mpf(p) / 2) - b ** (mpmath.mpf(p) / 2)
                exact = beyond / p - b ** (mpmath.mpf(p) / 2 - 1) * slope + (a - b) / 2 - slope
                assert abs(bregman(p, x, y) / exact - 1) < 32 * p * np.finfo(float).eps
    zero = np.zeros(3)
    assert bregman(p, zero, zero) == 0.0
    assert bregman(p, np.array([2.0, 0.0, 0.0]), zero) == pytest.approx(2.0**p / p + 2.0)
    assert bregman(p, zero, np.array([2.0, 0.0, 0.0])) == pytest.approx(2.0**p * (1 - 1 / p) + 2.0)
