"""Variables in different units: reasons for success, and how runs continue."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from marks import only
from numpy.testing import assert_allclose
from scipy.optimize import least_squares
from solve.objectives import Vector

import slomodel
from slomodel.solve import METHODS, Functions, solve
from slomodel.solve.directions.newton import balance
from slomodel.solve.directions.table import DIRECTIONS
from slomodel.solve.norms import EPS, norm
from slomodel.solve.objective import Evaluator
from slomodel.solve.run_options import RunOptions
from slomodel.solve.stagnation.scaled_descent import rounding_of, spacing, way_down
from slomodel.solve.subroutine import Iterate

Curve = Callable[..., Vector]
T = np.linspace(0.5, 50.0, 40)
# The model of y[i], its parameters, the same in NumPy, true parameters, a start.
FITS: dict[str, tuple[str, str, Curve, tuple[float, ...], tuple[float, ...]]] = {
    "exp": (
        "a * exp(k * t[i])",
        "a, k",
        lambda t, a, k: a * np.exp(k * t),
        (3.0, -0.05),
        (1.0, -0.02),
    ),
    "exp + c": (
        "a * exp(-k * t[i]) + c",
        "a, k, c",
        lambda t, a, k, c: a * np.exp(-k * t) + c,
        (3.0, 0.1, 1.0),
        (1.0, 0.3, 0.5),
    ),
    "gauss": (
        "a * exp(-(t[i] - m)^2 / (2 * s^2))",
        "a, m, s",
        lambda t, a, m, s: a * np.exp(-((t - m) ** 2) / (2.0 * s**2)),
        (3.0, 20.0, 6.0),
        (1.0, 15.0, 10.0),
    ),
    "michaelis": (
        "a * t[i] / (k + t[i])",
        "a, k",
        lambda t, a, k: a * t / (k + t),
        (3.0, 10.0),
        (1.0, 1.0),
    ),
    "two exp": (
        "a * exp(-k * t[i]) + b * exp(-l * t[i])",
        "a, k, b, l",
        lambda t, a, k, b, l: a * np.exp(-k * t) + b * np.exp(-l * t),  # noqa: E741
        (3.0, 0.5, 2.0, 0.05),
        (1.0, 1.0, 1.0, 0.1),
    ),
    "power": ("a * t[i]^p", "a, p", lambda t, a, p: a * t**p, (3.0, 0.5), (1.0, 1.0)),
}
UNITS = only(0, [0, 1, 2, 3])
SPREADS = [0.0, 0.1]
ANY_UNITS = [name for name, rule in DIRECTIONS.items() if rule.any_units]


def units_of(name: str, seed: int) -> Vector:
    """A power of ten for each parameter; ones for the seed 0."""
    count = len(FITS[name][3])
    powers = np.random.default_rng(100 * len(name) + seed).integers(-9, 10, size=count)
    return 10.0 ** (powers * (seed > 0))


@cache
def response(name: str, spread: float) -> Vector:
    curve, true = FITS[name][2], FITS[name][3]
    y: Vector = curve(T, *true) + spread * np.random.default_rng(3).normal(size=T.size)
    return y


@cache
def fit(name: str, seed: int, spread: float) -> slomodel.Model:
    """The residual sum of squares with every parameter in units of its own."""
    text, names, *_ = FITS[name]
    for parameter, unit in zip(names.split(", "), units_of(name, seed), strict=True):
        text = re.sub(rf"\b{parameter}\b", f"({parameter} / {float(unit)!r})", text)
    source = f"dim n\ndata t[n], y[n]\nvar {names}\nminimize sum(({text} - y[i])^2 for i in n)"
    return slomodel.compile(source, data={"t": T, "y": response(name, spread)})


def marquardt(name: str, spread: float, x: Vector) -> tuple[float, Vector]:
    """The least sum of squares that MINPACK finds from x, in units of 1."""
    curve, y = FITS[name][2], response(name, spread)
    with np.errstate(all="ignore"):
        found = least_squares(
            lambda b: curve(T, *b) - y,
            x,
            method="lm",
            x_scale="jac",
            xtol=1e-15,
            ftol=1e-15,
            gtol=1e-15,
        )
    return 2.0 * float(found.cost), found.x


@pytest.mark.parametrize(
    ("t", "a", "k", "x0"),
    [
        (np.arange(1.0, 101.0), 3.0, -0.01, [1.0, 1.0]),
        (np.linspace(0.0, 50.0, 26), 2.0, 0.05, [1.0, 2.0]),
        (np.linspace(0.0, 50.0, 26), -4.0, -0.02, [1.0, 1.0]),
    ],
)
def test_exponential_fits_from_far_away_are_solved(
    t: Vector, a: float, k: float, x0: list[float]
) -> None:
    """The first steps leave a at 1e-43, where its slope is 1e27."""
    source = """
        dim n
        data t[n], y[n]
        var a, k
        minimize sum((a * exp(k * t[i]) - y[i])^2 for i in n)
    """
    model = slomodel.compile(source, data={"t": t, "y": a * np.exp(k * t)})
    found = model.solve(x0=np.array(x0))
    assert found.success, found.message
    assert_allclose(found.x, [a, k], rtol=1e-5)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("method", sorted(METHODS))
def test_no_method_praises_the_point_far_away(method: str) -> None:
    t = np.arange(1.0, 101.0)
    y = 3.0 * np.exp(-0.01 * t)

    def gradient(x: Vector) -> Vector:
        e = np.exp(x[1] * t)
        r = x[0] * e - y
        return np.array([2.0 * r @ e, 2.0 * r @ (x[0] * t * e)])

    plain = Functions(lambda x: float(np.sum((x[0] * np.exp(x[1] * t) - y) ** 2)), gradient, 2)
    needed: dict[str, object] = {"L": 1e90, "p": 4} if method == "bpg" else {}
    needed |= {"max_iter": 300, "max_nfev": 20_000}
    for x0 in ([1.13997965e-43, 9.92998422e-01], [1.0, 1.0]):
        found = solve(plain, x0, method=method, **needed)  # type: ignore[arg-type]
        # adgd's first step ends where every term has underflowed, and the gradient is 0.
        plateau = found.gradient_norm == 0.0
        assert not found.success or plateau or found.fun < 1e-6, found.message


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("seed", UNITS)
@pytest.mark.parametrize("name", FITS)
def test_fits_are_solved_in_any_units(name: str, seed: int, spread: float) -> None:
    units, start = units_of(name, seed), np.array(FITS[name][4])
    found = fit(name, seed, spread).solve(x0=units * start, gtol=1e-14)
    assert found.success, found.message
    least, _ = marquardt(name, spread, np.array(FITS[name][3]))
    assert found.fun <= least * (1.0 + 1e-8) + 1e-18


@pytest.mark.sampled(2)
@pytest.mark.parametrize("direction", [d for d in DIRECTIONS if d not in ("gradient", "cg")])
@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("seed", UNITS)
@pytest.mark.parametrize("name", FITS)
def test_success_is_a_minimum_in_any_units(
    name: str, seed: int, spread: float, direction: str
) -> None:
    units, start = units_of(name, seed), np.array(FITS[name][4])
    model = fit(name, seed, spread)
    found = model.solve(
        "norm-armijo", units * start, direction=direction, gtol=1e-14, max_iter=2000
    )
    least, _ = marquardt(name, spread, found.x / units)
    assert not found.success or found.fun <= least * (1.0 + 1e-6) + 1e-12, found.message


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "options",
    [
        {"method": "auto"},
        *({"method": "norm-armijo", "direction": d} for d in DIRECTIONS),
        {"method": "std-armijo"},
    ],
    ids=lambda options: "-".join(options.values()),
)
@pytest.mark.parametrize("seed", UNITS)
@pytest.mark.parametrize("name", FITS)
def test_minima_are_a_success_in_any_units(name: str, seed: int, options: dict[str, str]) -> None:
    for spread in SPREADS:
        units = units_of(name, seed)
        least, x = marquardt(name, spread, np.array(FITS[name][3]))
        model = fit(name, seed, spread)
        found = model.solve(x0=units * x, gtol=1e-14, max_iter=300, **options)
        assert found.success or found.status == "max_iter", found.message
        assert found.fun <= least * (1.0 + 1e-8) + 1e-18


def at(objective: Functions, x: Vector) -> tuple[Evaluator, Iterate]:
    evaluate = Evaluator(objective, RunOptions())
    g = np.empty_like(x)
    gnorm = evaluate.gradient(x, g)
    return evaluate, Iterate(x, evaluate.value(x), g, gnorm)


def bowl(units: Vector, offset: float = 1.0) -> Functions:
    """offset + ½ zᵀHz of z = x/units − (1, 1, …), the variables of which hang together."""
    n = len(units)
    H = np.eye(n) + 0.5 * np.ones((n, n))
    return Functions(
        lambda x: offset + 0.5 * float((x / units - 1.0) @ H @ (x / units - 1.0)),
        lambda x: H @ (x / units - 1.0) / units,
        n,
    )


@pytest.mark.parametrize("seed", range(6))
def test_way_down_in_any_units(seed: int) -> None:
    units = 10.0 ** np.random.default_rng(seed).integers(-30, 31, size=4)
    off = np.ones(4)
    off[seed % 4] += 1e-3
    evaluate, point = at(bowl(units), units * off)
    noise = 32.0 * EPS * point.f
    way = way_down(evaluate, point, noise, 1e40)
    assert way is not None
    assert way.change < -noise
    assert evaluate.value(point.x + way.step) - point.f == way.change
    evaluate, point = at(bowl(units), units * (1.0 + 1e-8))
    assert way_down(evaluate, point, noise, 1e40) is None


def test_way_down_goes_no_farther_than_asked() -> None:
    evaluate, point = at(bowl(np.ones(3)), np.array([5.0, -3.0, 2.0]))
    way = way_down(evaluate, point, 32.0 * EPS * point.f, 1e-3)
    assert way is not None
    assert norm(way.step) <= 1e-3


def test_another_valley_is_not_a_way_down() -> None:
    """f falls at a distance, but not as the slope here says."""
    steps = Functions(
        lambda x: 1.0 + float((x[0] - 1.0) ** 2) - (10.0 if abs(x[0] - 1.0) > 0.4 else 0.0),
        lambda x: 2.0 * (x - 1.0),
        1,
    )
    evaluate, point = at(steps, np.array([1.0 + 1e-12]))
    assert way_down(evaluate, point, 32.0 * EPS, 10.0) is None


def test_rounding_is_by_component() -> None:
    x, g = np.array([1e-43, 1.0]), np.array([1e27, 0.0])
    assert rounding_of(x, np.abs(g), EPS) == pytest.approx(EPS * 1e-16)
    assert spacing(np.array([1e-43, 1.0, 0.0]), np.array([1.0, -2.0, 5.0])) == 1e-43


@pytest.mark.parametrize("seed", range(8))
def test_balance_follows_any_change_of_units(seed: int) -> None:
    generator = np.random.default_rng(seed)
    B = generator.normal(size=(4, 4))
    H = B + B.T if seed % 2 else B @ B.T
    if seed > 3:
        H[1, 1] = 0.0
    units = 2.0 ** generator.integers(-200, 200, size=4)
    assert_allclose(balance(H / np.outer(units, units)), balance(H) * units, rtol=1e-12)


@pytest.mark.parametrize("direction", ANY_UNITS)
@pytest.mark.parametrize("kink", [0.0, 1e-20, 1.0])
def test_kinks_are_not_narrow_valleys(direction: str, kink: float) -> None:
    if DIRECTIONS[direction].squares:
        return
    f = Functions(
        lambda x: 1.0 + float(np.sum(np.abs(x - kink))) + 0.1 * float(x @ x),
        lambda x: np.sign(x - kink) + 0.2 * x,
        2,
    )
    found = solve(f, [1.3, -0.3], direction=direction)
    assert found.status == "line_search_stalled", found.message
    assert "kink" in found.message
