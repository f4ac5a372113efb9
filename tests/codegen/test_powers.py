"""Powers with constant exponents as products, against exact powers over the whole range."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

import slomodel
from slomodel import functions as fn
from slomodel.codegen.lower import lower
from slomodel.codegen.python.numpy_target import NUMPY
from slomodel.ir import build
from slomodel.ir.dims import named
from slomodel.ir.expr import Map
from slomodel.ir.walk import postorder
from slomodel.reference import evaluate

EXPONENTS = [k / 2.0 for k in range(-64, 65)]
LARGEST = np.finfo(float).max


def by_products(exponent: float, values: np.ndarray) -> np.ndarray:
    x = build.variable("x", (named("n"),))
    (made,) = lower([fn.pow(x, build.const(exponent))], {"n": values.size}, NUMPY.spells)
    functions = {node.function for node in postorder(made) if isinstance(node, Map)}
    assert functions <= {fn.mul, fn.square, fn.div, fn.sqrt}
    with np.errstate(all="ignore"):
        return evaluate([made], {x: values})[0]


def exact(x: float, exponent: float) -> float:
    """The double nearest to the power; mpmath rounds to subnormal numbers twice, fractions once."""
    with mpmath.workprec(200):
        power = mpmath.power(mpmath.mpf(x), mpmath.mpf(exponent))
        sign, mantissa, binary, _ = power._mpf_
        if power == 0 or binary + mantissa.bit_length() > 1024:
            return float(power)
        found = Fraction(int(mantissa)) * Fraction(2) ** binary
        return -float(found) if sign else float(found)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("exponent", [p for p in EXPONENTS if abs(p) > 1.0])
def test_their_error_is_that_of_their_roundings_over_the_whole_range(exponent: float) -> None:
    """Up to the ends where the power over- or underflows, subnormal results and operands too."""
    rng = np.random.default_rng(int(2 * exponent) + 64)
    ends = [np.log2(5e-324) / exponent, 1024.0 / exponent, -1022.0 / exponent, 0.0]
    near = np.exp2(np.concatenate([end + rng.uniform(-1.0, 1.0, 25) / 8 for end in ends]))
    values = np.concatenate([near, np.exp2(rng.uniform(-1074.0, 1024.0, 25)), [5e-324, LARGEST]])
    values = values[np.isfinite(values) & (values > 0.0)]
    if not exponent % 1.0:
        values = np.concatenate([values, -values])
    found = by_products(exponent, values)
    wanted = np.array([exact(float(x), exponent) for x in values])
    beyond = np.isinf(found) | np.isinf(wanted)
    assert np.all(np.minimum(abs(found), abs(wanted))[beyond] > LARGEST * (1.0 - 1e-14))
    np.testing.assert_array_equal(np.sign(found), np.sign(wanted) * (found != 0.0))
    found, wanted = found[~beyond], wanted[~beyond]
    relative = (abs(exponent) + 3.0) * 2.0**-53
    assert np.all(abs(found - wanted) <= relative * abs(wanted) + 5e-324)


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_their_values_at_the_ends_are_those_of_pow(exponent: float) -> None:
    whole = not exponent % 1.0
    values = np.array([0.0, np.inf, np.nan, 1.0, *([-0.0, -np.inf, -1.0] if whole else [])])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(by_products(exponent, values), values**exponent)


def test_other_powers_stay() -> None:
    x = build.variable("x", (named("n"),))
    for exponent in (4.25, 33.0, -33.0, 1.0 / 3.0, np.inf, np.nan):
        (made,) = lower([fn.pow(x, build.const(exponent))], {"n": 3}, NUMPY.spells)
        assert isinstance(made, Map)
        assert made.function is fn.pow


DISTANCES = """dim n = 9
data q[n]
var P[n, 2]
minimize sum(q[i] * q[j] / sqrt(sumsq(P[i, :] - P[j, :]) + 0.01) + norm2(P[i, :] - P[j, :])
    for i in n, j in range(i))"""
ATOMS = """dim n = 9
var P[n, 3]
let r2[i in n, j in n] = sumsq(P[i, :] - P[j, :])
minimize sum(4 * (r2[i, j]^-6 - r2[i, j]^-3) for i in n, j in n if i < j)"""


@pytest.mark.filterwarnings("ignore::slomodel.NonsmoothWarning")
@pytest.mark.parametrize(("source", "divisions"), [(DISTANCES, 2), (ATOMS, 2)])
def test_potentials_share_their_divisions_with_their_derivatives(
    source: str, divisions: int
) -> None:
    data = {"q": np.arange(1.0, 10.0)} if "data" in source else None
    model, right = (slomodel.compile(source, data=data, backend=b) for b in ("c", "numpy"))
    x, v = np.random.default_rng(0).normal(size=(2, model.n))
    x[2:4] = x[:2] if source is DISTANCES else x[2:4]  # two points at one place
    for own, other in zip(model.value_and_gradient(x), right.value_and_gradient(x), strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-12, atol=1e-12 * np.abs(other).max())
    own, other = model.hvp(x, v), right.hvp(x, v)
    np.testing.assert_allclose(own, other, rtol=1e-11, atol=1e-12 * np.abs(other).max())
    text = model.source("c")
    text = text[text.index("double value_and_gradient") : text.index("void prepare_hvp")]
    assert text.count(" / ") == divisions
