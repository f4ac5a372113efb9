"""Cases that break bounds: kinks, edges of domains, overflow, cancellation, odd input."""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

import slomodel
from slomodel.bounds import Bounds

pytestmark = [
    pytest.mark.filterwarnings("ignore::slomodel.NonsmoothWarning"),
    pytest.mark.filterwarnings("ignore::slomodel.ModelWarning"),
]

INF = math.inf
TINIEST = 5e-324


@dataclass(frozen=True)
class Case:
    """A ball, the least constants over it as far as known, and how much larger a bound may be.

    `L1` and `L2` are what no bound may be below, `upper1` and `upper2` what a bound has to reach;
    inf there means that none is asked for.
    """

    text: str
    centre: list[float]
    radius: float
    L1: float
    L2: float
    upper1: float = INF
    upper2: float = INF
    data: dict[str, object] = field(default_factory=dict)

    def bounds(self) -> Bounds:
        model = slomodel.compile(self.text, data=self.data)
        return model.bounds(self.centre, self.radius)


def tight(
    text: str, centre: list[float], radius: float, L1: float, L2: float, loose: float = 1.0 + 1e-12
) -> Case:
    """A bound may be larger by a factor; one that is 0 has to be 0."""
    return Case(text, centre, radius, L1, L2, loose * L1, loose * L2)


NORM = math.sqrt(0.5) - 0.6
CASES = {
    "abs across its kink": Case("var x minimize abs(x)", [0.5], 1.0, INF, INF),
    "abs off its kink": tight("var x minimize abs(x)", [2.0], 1.0, 0.0, 0.0),
    "relu across its kink": Case("var x minimize relu(x)", [0.5], 1.0, INF, INF),
    "relu squared across": Case("var x minimize relu(x)^2", [0.5], 1.0, 2.0, INF, 2.0 + 1e-9),
    "relu squared touching": Case("var x minimize relu(x)^2", [1.0], 1.0, 2.0, INF, 2.0 + 1e-9),
    "relu squared off": tight("var x minimize relu(x)^2", [2.0], 1.0, 2.0, 0.0),
    "max across": Case("var x, y minimize max(x, y)", [1.0, 1.0], 0.5, INF, INF),
    "max off": tight("var x, y minimize max(x, y)", [3.0, 0.0], 1.0, 0.0, 0.0),
    "where with a kink of order 2": Case(
        "var x minimize where(x > 0, x^2, 0)", [0.5], 1.0, 2.0, INF
    ),
    "where with a jump": Case("var x minimize where(x > 0, x^2, 1)", [0.5], 1.0, INF, INF),
    "power 1.5": tight("var x minimize x^1.5", [1.0], 0.5, 1.06066, 1.06066, 1.01),
    "power 1.5 touching": Case("var x minimize x^1.5", [1.0], 1.0, INF, INF),
    "power 1.5 leaving": Case("var x minimize x^1.5", [1.0], 1.1, INF, INF),
    "power 2.5 touching": Case(
        "var x minimize x^2.5", [1.0], 1.0, 3.75 * math.sqrt(2.0) * (1 - 1e-15), INF, 5.5
    ),
    "sqrt touching": Case("var x minimize sqrt(x)", [1.0], 1.0, INF, INF),
    "inverse": tight("var x minimize 1/x", [1.0], 0.5, 16.0, 96.0, 1.05),
    "inverse touching": Case("var x minimize 1/x", [1.0], 1.0, INF, INF),
    "log touching": Case("var x minimize log(x)", [1.0], 1.0, INF, INF),
    "log leaving": Case("var x minimize log(x)", [1.0], 2.0, INF, INF),
    "exp past the largest number": Case("var x minimize exp(x)", [800.0], 1.0, INF, INF),
    "exp below the least number": Case(
        "var x minimize exp(-x)", [800.0], 1.0, TINIEST, TINIEST, 1e-300, 1e-300
    ),
    "softplus by hand": Case(
        "var x minimize log(1 + exp(x))", [1000.0], 1.0, TINIEST, TINIEST, 1e-300, 1e-300
    ),
    "ball misses 0, its box does not": Case(
        "var x, y minimize sqrt(x^2 + y^2)",
        [0.5, 0.5],
        0.6,
        (1 - 1e-12) / NORM,
        (1 - 1e-12) * 2.0 / math.sqrt(3.0) / NORM**2,
        9.4,
        120.0,
    ),
    "constant": tight("var x minimize 3 + 0 * x", [1.0], 1.0, 0.0, 0.0),
    "a number": tight("var x[2] minimize 3", [1.0, 2.0], 1.0, 0.0, 0.0),
    "a number, no polynomial": tight("var x minimize atan(2)", [1.0], 1.0, 0.0, 0.0),
    "linear": tight("var x, y minimize 3 * x - y / 7", [1.0, 2.0], 1.0, 0.0, 0.0),
    "square far out": tight("var x minimize x^2", [1e8], 1.0, 2.0, 0.0, 1.0),
    "radius below the spacing of numbers": Case(
        "var x minimize x^4", [1e8], 1e-9, 1.2e17, 2.4e9, 1.2001e17, 2.5e9
    ),
    "huge": tight("var x minimize 1e200 * x^2", [0.5], 1.0, 2e200, 0.0),
    "subnormal": Case("var x minimize 1e-320 * x^2", [0.5], 1.0, 2e-320, 0.0, 3e-320, 0.0),
    "cancelling square": Case(
        "var x minimize (x + 1e8)^2 - x^2 - 2e8 * x", [1.0], 1.0, 0.0, 0.0, 5.0, 5.0
    ),
    "difference of a variable and itself": tight("var x minimize x - x", [1.0], 1.0, 0.0, 0.0),
    "circle": Case("var x minimize sin(x)^2 + cos(x)^2", [1.0], 1.0, 0.0, 0.0, 9.0, 17.0),
    "exponent 2.0": tight("var x minimize x^2.0", [-3.0], 1.0, 2.0, 0.0),
    "root of a negative number": Case("var x minimize (x - 8)^(1/3)", [0.0], 0.1, INF, INF),
    "0^0": tight("var x minimize 0^0 * x^2", [1.0], 1.0, 2.0, 0.0),
    "power of variables leaving": Case("var x, y minimize x^y", [0.5, 1.0], 0.6, INF, INF),
    "saddle": tight("var x, y minimize y^2 - x^2", [1.0, 1.0], 1.0, 2.0, 0.0),
    "product": tight("var x, y minimize x * y", [1.0, 2.0], 1.0, 1.0, 0.0),
    "unused variable": tight("var x, u minimize x^2", [1.0, 2.0], 1.0, 2.0, 0.0),
    "no element": tight("var x, y[0] minimize x^2 + sumsq(y)", [1.0], 1.0, 2.0, 0.0),
    "no unknowns": tight("var y[0] minimize sumsq(y)", [], 1.0, 0.0, 0.0),
    "a million terms": Case(
        "dim N data a[N] var x minimize sum((x - a[k])^2 for k in N)",
        [0.5],
        1.0,
        2e6,
        0.0,
        2e6 * (1 + 1e-6),
        0.0,
        {"a": np.linspace(-1.0, 1.0, 10**6)},
    ),
    "degree 200": Case(
        "var x minimize x^200", [1.0], 0.01, 39800.0 * 1.01**198, 0.0, 39800.0 * 1.02**198
    ),
    "degree 200 past the largest number": Case("var x minimize x^200", [1e3], 1.0, INF, INF),
    "relu of a slope of 1e-13, scaled up": Case(
        "var x minimize 1e13*where(x > 0, 1e-13*x, 0)", [0.0], 1.0, INF, INF
    ),
    "diode, whose slope jumps by 400": Case(
        "var v minimize 1e15*where(v > 0, 1e-14*(exp(v/0.025) - 1), 0)", [0.0], 0.01, INF, INF
    ),
    "choice by two elements": Case(
        "var x[2] minimize where(x[0] > x[1], (x[0]-x[1])^2, 0)", [0, 0], 1.0, 4.0, INF, 4.0 + 1e-9
    ),
    "choice by what jumps itself": Case(
        "var x, y minimize where(y > sign(x), y^3*(y^2 - 1)^3, 0)", [0.0, 0.5], 0.1, INF, INF
    ),
    "choice by a choice by what has no value": Case(
        "var x minimize where(where(log(x) < 5, 1, 0) > 0.5, 0, 1)", [0.5], 1.0, INF, INF
    ),
    "choice past the edge of a root by two roundings": Case(
        "var x minimize where(sqrt(x) > -1, 1, 0)", [1.0], 1.0 + 4e-16, INF, INF
    ),
    "choice past the edge of a power by two roundings": Case(
        "var x minimize where(x^0.3 > -1, 1, 0)", [1.0], 1.0 + 4e-16, INF, INF
    ),
    "choice by a power of a root that has no value": Case(
        "var x minimize where(1/sqrt(x)^4 > 0, x^2, abs(x + 1))", [-1.0], 0.5, INF, INF
    ),
    "exponents that differ by a rounding of their product": Case(
        "var x minimize 1e17*(1/(x^0.1)^3 - x^(-0.30000000000000004))", [2.0], 0.5, 1.5, 1.0
    ),
    "exponents whose product overflows": Case(
        "var x minimize (abs(x)^1e200)^1e200", [0.5], 0.1, 0.0, 0.0
    ),
    "choice by a norm": Case(
        "var x[2] minimize where(norm2(x) > 1, (norm2(x)-1)^2, 0)", [2, 0], 1.5, 2.0, INF, 2.5
    ),
}


@cache
def bounds_of(name: str) -> Bounds:
    return CASES[name].bounds()


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", CASES)
def test_no_bound_is_too_small(name: str) -> None:
    case = CASES[name]
    found = bounds_of(name)
    assert found.L1 >= case.L1
    assert found.L2 >= case.L2
    if math.inf in (found.L1, found.L2):
        assert found.reason
        assert found.reason in found.explain()
    assert (found.source, found.rigor) == ("analytic", "certified")


@pytest.mark.sampled(7)
@pytest.mark.parametrize("name", CASES)
def test_bounds_are_found_where_they_exist(name: str) -> None:
    case = CASES[name]
    found = bounds_of(name)
    assert case.upper1 >= found.L1, found.explain()
    assert case.upper2 >= found.L2, found.explain()


# Models whose least constants are known from below only, and how loose a bound may be.
SAMPLED = {
    "power of variables": ("var x, y minimize x^y", [2.0, 1.0], 0.5, 10.0, 30.0),
    "quotient": ("var x, y minimize x^2 / y", [1.0, 1.0], 0.9, 10.0, 30.0),
    "form, vector first": ("var x[2], W[2,2] minimize x' @ W @ x", [1, 2, 3, 4, 5, 6], 1.0, 3, 3),
    "form, matrix first": ("var W[2,2], x[2] minimize x' @ W @ x", [3, 4, 5, 6, 1, 2], 1.0, 3, 3),
}


@pytest.mark.parametrize("name", SAMPLED)
def test_against_samples(name: str) -> None:
    text, centre, radius, loose_L1, loose_L2 = SAMPLED[name]
    model = slomodel.compile(text)
    found, seen = model.bounds(centre, radius), model.sample_bounds(centre, radius)
    assert seen.L1 * (1 - 1e-6) <= found.L1 <= loose_L1 * seen.L1, found.explain()
    assert seen.L2 * (1 - 1e-6) <= found.L2 <= loose_L2 * seen.L2, found.explain()


HARD = """
data J, K, a, b, r1, slope
var x1, x2
fn r(z) = 1 / (2 + log(1 + z^2))
fn g(z) = where(z <= 1, r1 + slope * (z - 1), where(z < J, r(z), a * (z - K)^2 + b))
minimize g(x1) + (x1^2 + 1) * x2^2
"""


def hard_instance(joint: float) -> slomodel.Model:
    """The paper's f_{Δ,ε} with Δ = 1, d = 4 and its second joint at `joint`."""

    def r(z: float) -> float:
        return 1.0 / (2.0 + math.log1p(z * z))

    def slope(z: float) -> float:
        return -(r(z) ** 2) * 2.0 * z / (1.0 + z * z)

    a, b = -slope(joint) / 2.0, r(joint) + slope(joint) / 2.0
    data = {"J": joint, "K": joint + 1.0, "a": a, "b": b, "r1": r(1.0), "slope": slope(1.0)}
    return slomodel.compile(HARD, data=data)


@pytest.mark.parametrize(("x1", "radius"), [(-1.0, 1.0), (4.0, 1.0), (12.0, 1.0)])
def test_the_hard_instance_inside_a_piece(x1: float, radius: float) -> None:
    model = hard_instance(9.0)
    found, seen = model.bounds([x1, 0.5], radius), model.sample_bounds([x1, 0.5], radius)
    assert seen.L1 * (1 - 1e-6) <= found.L1 <= 3.0 * seen.L1, found.explain()
    assert seen.L2 * (1 - 1e-6) <= found.L2 <= 5.0 * seen.L2, found.explain()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("x1", [1.0, 1.2, 9.0, 8.8])
def test_the_hard_instance_across_a_joint(x1: float) -> None:
    model = hard_instance(9.0)
    found, seen = model.bounds([x1, 0.5], 0.5), model.sample_bounds([x1, 0.5], 0.5)
    assert found.L1 >= seen.L1 * (1 - 1e-6)
    assert found.L2 == INF
    assert found.reason


def test_numbers_beyond_doubles_are_decided_by_rationals() -> None:
    """x⁴ at 10⁸: the ball's edge lies between two doubles, and L1 is that of the edge."""
    edge = Fraction(10**8) + Fraction(1e-9)
    found = slomodel.compile("var x minimize x^4").bounds([1e8], 1e-9)
    assert found.L1 == INF or Fraction(found.L1) >= 12 * edge**2


@pytest.mark.parametrize("centre", [[1, 2], np.array([1.0, 2.0], np.float32), [True, False]])
def test_numbers_of_other_types(centre: object) -> None:
    model = slomodel.compile("var x[2] minimize 3 * x[0] - x[1]")
    assert model.bounds(centre, 1).L1 == 0.0
    assert model.bounds(centre, np.float32(0.5)).L2 == 0.0


def test_bad_arguments_are_refused() -> None:
    model = slomodel.compile("var x[2] minimize sumsq(x)")
    for radius in (-1.0, -1e-300, math.nan, "1", None, True, 1j):
        with pytest.raises(slomodel.DomainError, match="radius: expected a number ≥ 0"):
            model.bounds([1.0, 2.0], radius)
    for centre in ([math.nan, 1.0], [1.0, INF], [1j, 2.0], ["a", "b"]):
        with pytest.raises(slomodel.DomainError):
            model.bounds(centre, 1.0)
    for centre in ([1.0], [[1.0, 2.0]], 3.0, [1.0, 2.0, 3.0]):
        with pytest.raises(slomodel.ShapeError):
            model.bounds(centre, 1.0)
    for value in (math.nan, INF):
        with pytest.raises(slomodel.DomainError):
            slomodel.compile("data a var x minimize a * x^2", data={"a": value})


def test_the_whole_space() -> None:
    linear = slomodel.compile("var x[2] minimize 3 * x[0] - x[1]").bounds([1.0, 2.0], INF)
    assert (linear.L1, linear.L2) == (0.0, 0.0)
    quartic = slomodel.compile("var x minimize x^4").bounds([1.0], INF)
    assert (quartic.L1, quartic.L2) == (INF, INF)
    assert quartic.reason


def test_a_function_that_the_language_lacks_is_refused_when_it_is_read() -> None:
    with pytest.raises(slomodel.ModelSyntaxError, match="unknown function `bessel`"):
        slomodel.compile("var x, y minimize bessel(y, x)")
