"""Every stable form over the whole range of doubles: value, gradient, Hessian; both backends."""

import warnings

import mpmath as mp
import numpy as np
import pytest

import slomodel
from slomodel.errors import ModelWarning
from tests.rewrite.exact import (
    DIGITS,
    EPS,
    EVERYWHERE,
    POSITIVE,
    TINY,
    Exact,
    allowed,
    as_double,
    as_written,
    derivatives,
)

ONE: list[tuple[str, Exact]] = [
    ("log(1 + exp(x))", lambda x: mp.log1p(mp.exp(x))),
    ("log(exp(-x) + 1)", lambda x: mp.log1p(mp.exp(-x))),
    ("log1p(exp(x))", lambda x: mp.log1p(mp.exp(x))),
    ("max(x, 0) + log(1 + exp(-abs(x)))", lambda x: mp.log1p(mp.exp(x))),
    ("2 * log(1 + exp(-3 * x))", lambda x: 2 * mp.log1p(mp.exp(-3 * x))),
    ("log(cosh(x))", lambda x: mp.log(mp.cosh(x))),
    ("1 / (1 + exp(-x))", lambda x: 1 / (1 + mp.exp(-x))),
    ("(1 + exp(-x))^-1", lambda x: 1 / (1 + mp.exp(-x))),
    ("exp(x) / (1 + exp(x))", lambda x: 1 / (1 + mp.exp(-x))),
    ("3 * exp(x) / (exp(x) + 1)", lambda x: 3 / (1 + mp.exp(-x))),
    ("1 - 1 / (1 + exp(-x))", lambda x: 1 / (1 + mp.exp(x))),
    ("log(1 / (1 + exp(-x)))", lambda x: -mp.log1p(mp.exp(-x))),
    ("log(1 - sigmoid(x))", lambda x: -mp.log1p(mp.exp(x))),
    ("log1p(-sigmoid(x))", lambda x: -mp.log1p(mp.exp(x))),
    ("log1p(-tanh(x)^2)", lambda x: -2 * mp.log(mp.cosh(x))),
    ("logit(sigmoid(x))", lambda x: x),
    ("log(5 * sigmoid(x))", lambda x: mp.log(5) - mp.log1p(mp.exp(-x))),
    ("1 - tanh(x)^2", lambda x: mp.sech(x) ** 2),
    ("1 - tanh(x) * tanh(x)", lambda x: mp.sech(x) ** 2),
    ("cosh(x) - 1", lambda x: 2 * mp.sinh(x / 2) ** 2),
    ("3 * tanh(x)^2 - 3", lambda x: -3 * mp.sech(x) ** 2),
    ("log(1 - tanh(x)^2)", lambda x: -2 * mp.log(mp.cosh(x))),
    ("exp(x) - 1", mp.expm1),
    ("1 - exp(x)", lambda x: -mp.expm1(x)),
    ("-2 + 2 * exp(x)", lambda x: 2 * mp.expm1(x)),
    ("(x + abs(x)) / 2", lambda x: max(x, 0)),
    ("x - min(x, 0)", lambda x: max(x, 0)),
    ("where(x >= 0, x, 0)", lambda x: max(x, 0)),
    ("x + log(1 + exp(-x))", lambda x: mp.log1p(mp.exp(x))),
    ("3 * log(1 + exp(2 * x)) - 6 * x", lambda x: 3 * mp.log1p(mp.exp(-2 * x))),
    ("log(1 + exp(x)^2)", lambda x: mp.log1p(mp.exp(2 * x))),
    ("log(exp(x) + exp(-x))", lambda x: mp.log(2 * mp.cosh(x))),
    ("log((exp(-x) + exp(x)) / 2)", lambda x: mp.log(mp.cosh(x))),
    ("(exp(x) - exp(-x)) / (exp(x) + exp(-x))", mp.tanh),
    ("2 / (1 + exp(-2 * x)) - 1", mp.tanh),
    ("exp(x) / (1 + exp(x))^2", lambda x: 1 / (1 + mp.exp(-x)) / (1 + mp.exp(x))),
    ("(exp(x) - exp(-x)) / 2", mp.sinh),
    ("1 / exp(x)", lambda x: mp.exp(-x)),
    ("asinh(x)", mp.asinh),
    ("sqrt(x^2)", abs),
    ("sqrt(x * x)", abs),
]
ABOVE_MINUS_ONE: list[tuple[str, Exact]] = [
    ("log(1 + x)", mp.log1p),
    ("log(x + 1)", mp.log1p),
    ("(1 + x) * log(1 + x)", lambda x: (1 + x) * mp.log1p(x)),
    ("-2 * (x + 1) * log(x + 1)", lambda x: -2 * (1 + x) * mp.log1p(x)),
]
ABOVE_ZERO: list[tuple[str, Exact]] = [
    ("x * log(x)", lambda x: x * mp.log(x)),
    ("-2 * x * log(x)", lambda x: -2 * x * mp.log(x)),
    ("log(x) * x", lambda x: x * mp.log(x)),
]
CASES = [
    *((text, exact, EVERYWHERE) for text, exact in ONE),
    *((text, exact, (*POSITIVE, -0.5, -1e-9, -1e-300)) for text, exact in ABOVE_MINUS_ONE),
    *((text, exact, POSITIVE) for text, exact in ABOVE_ZERO),
]
BACKENDS = ("numpy", "numexpr")


def compiled(text: str, backend: str) -> slomodel.Model:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return slomodel.compile(text, backend=backend)


def measured(model: slomodel.Model, point: np.ndarray) -> tuple[float, float, float]:
    """Value, and first and second derivative along ones."""
    ones = np.ones_like(point)
    first, second = model.gradient(point), model.hvp(point, ones)
    return model.value(point), float(first.sum()), float(second.sum())


@pytest.mark.sampled(24)
@pytest.mark.parametrize(("text", "exact", "points"), CASES, ids=[case[0] for case in CASES])
def test_one_variable(text: str, exact: Exact, points: tuple[float, ...]) -> None:
    """Off the kinks, on both backends."""
    models = [compiled(f"var x minimize {text}", backend) for backend in BACKENDS]
    kinked = "derivatives of every" not in models[0].explain()
    for x in points:
        if kinked and abs(x) < TINY:
            continue
        wanted = derivatives(exact, (x,), 3)
        for model in models:
            for order, got in enumerate(measured(model, np.array([x]))):
                want, limit = as_double(wanted[order]), allowed(wanted, order, (x,))
                assert got == want or abs(got - want) <= limit, (order, x, got, want)


TWO: list[tuple[str, Exact]] = [
    ("log(exp(x) + exp(y))", lambda x, y: mp.log(mp.exp(x) + mp.exp(y))),
    ("log(1 + exp(x) + exp(y))", lambda x, y: mp.log1p(mp.exp(x) + mp.exp(y))),
    ("log(1 + exp(-y * x))", lambda x, y: mp.log1p(mp.exp(-y * x))),
    ("sqrt(x^2 + y^2)", lambda x, y: mp.sqrt(x * x + y * y)),
    ("sqrt(y * y + x * x)", lambda x, y: mp.sqrt(x * x + y * y)),
    ("log(exp(x) / (exp(x) + exp(y)))", lambda x, y: -mp.log1p(mp.exp(y - x))),
    ("y / (1 + exp(x))", lambda x, y: y / (1 + mp.exp(x))),
    ("y * exp(x) / (1 + exp(x))", lambda x, y: y / (1 + mp.exp(-x))),
]
PAIRS = [(x, y) for x in EVERYWHERE[1::4] for y in EVERYWHERE[2::6] if abs(x) != abs(y)]


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("text", "exact"), TWO, ids=[case[0] for case in TWO])
def test_two_variables_have_no_worse_value(text: str, exact: Exact) -> None:
    """Accurate, or where that underflows or overflows on the way as good as what was written."""
    models = [compiled(f"var x, y minimize {text}", backend) for backend in BACKENDS]
    for point in PAIRS:
        value, moved = sensitivity(exact, point)
        want = as_double(value)
        limit = 6 * EPS * (abs(want) + as_double(moved)) + 2e-323
        written = as_written(text, point)
        if np.isfinite(written):
            limit = max(limit, abs(written - want))
        for model in models:
            got = model.value(np.array(point))
            assert got == want or abs(got - want) <= limit, (point, got, want)


def sensitivity(exact: Exact, point: tuple[float, ...]) -> tuple[mp.mpf, mp.mpf]:
    """The value, and how much relative changes of the numbers change it."""
    with mp.workdps(DIGITS):
        numbers = [mp.mpf(value) for value in point]
        value, moved = exact(*numbers), mp.mpf(0)
        for k, x in enumerate(numbers):
            step = abs(x) * mp.mpf(10) ** -200
            near = exact(*(z + step * (k == j) for j, z in enumerate(numbers)))
            moved += abs(near - value) * mp.mpf(10) ** 200
    return value, moved


SUMS: list[tuple[str, Exact]] = [
    ("log(sum(exp(x)))", lambda *x: mp.log(sum(map(mp.exp, x)))),
    ("log(mean(exp(x)))", lambda *x: mp.log(sum(map(mp.exp, x)) / len(x))),
    ("log(1 + sum(exp(x[i]) for i in 3))", lambda *x: mp.log1p(sum(map(mp.exp, x)))),
    ("log(sum(exp(2 * x)) / 7)", lambda *x: mp.log(sum(mp.exp(2 * z) for z in x) / 7)),
    ("logsumexp(x)", lambda *x: mp.log(sum(map(mp.exp, x)))),
    ("(exp(x) / sum(exp(x)))[1]", lambda *x: mp.exp(x[1]) / sum(map(mp.exp, x))),
    ("softmax(x)[1]", lambda *x: mp.exp(x[1]) / sum(map(mp.exp, x))),
    *(
        (text, lambda *x: x[1] - mp.log(sum(map(mp.exp, x))))
        for text in (
            *("log(softmax(x))[1]", "log(softmax(x)[1])", "log(exp(x[1]) / sum(exp(x)))"),
            "log((exp(x) / sum(exp(x)))[1])",
        )
    ),
    (
        "dot(exp(x), b) / sum(exp(x))",
        lambda *x: sum(k * mp.exp(z) for k, z in enumerate(x)) / sum(map(mp.exp, x)),
    ),
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("text", "exact"), SUMS, ids=[case[0] for case in SUMS])
def test_sums_of_exponentials(text: str, exact: Exact) -> None:
    """Values and gradients, of exponents of every size and with ties."""
    models = [compiled(f"data b[3] var x[3] minimize {text}", backend) for backend in BACKENDS]
    models = [model.bind(b=[0.0, 1.0, 2.0]) for model in models]
    rng = np.random.default_rng(0)
    points = [scale * rng.normal(size=3) for scale in (1e-300, 1e-9, 1.0, 300.0, 1e3, 1e6, 1e100)]
    points += [np.full(3, value) for value in (0.0, 1000.0, -1000.0, 1e300, -46.0)]
    for point in points:
        value, slopes = slopes_of(exact, point)
        size = sum(abs(float(x) * s) for x, s in zip(point, slopes, strict=True))
        limit = 8 * EPS * as_double(abs(value) + size) + 1e-322
        gradient = np.array([as_double(slope) for slope in slopes])
        off = 20 * EPS * max(1.0, min(np.abs(point).max(), 1e3)) * np.abs(gradient).max() + 1e-300
        for model in models:
            assert abs(model.value(point) - as_double(value)) <= limit, (point, as_double(value))
            # The derivative of a mean by its largest exponent is a difference of numbers near 2.
            if not text.startswith("dot"):
                assert np.abs(model.gradient(point) - gradient).max() <= off, point


def slopes_of(exact: Exact, point: np.ndarray) -> tuple[mp.mpf, list[mp.mpf]]:
    with mp.workdps(1100):
        numbers = [mp.mpf(float(value)) for value in point]
        value, step = exact(*numbers), mp.mpf(10) ** -350
        near = [exact(*(z + step * (j == k) for j, z in enumerate(numbers))) for k in range(3)]
        return value, [(one - value) / step for one in near]


@pytest.mark.parametrize("backend", BACKENDS)
def test_published_values(backend: str) -> None:
    """Softplus, log-sum-exp, logcosh and tanh' where plain formulas give inf, NaN or 0."""
    softplus = compiled("var x minimize log(1 + exp(x))", backend)
    assert measured(softplus, np.array([1000.0])) == (1000.0, 1.0, 0.0)
    assert measured(softplus, np.array([-1000.0])) == (0.0, 0.0, 0.0)
    assert softplus.value([-40.0]) == pytest.approx(4.248354255291561e-18, rel=1e-12)
    total = compiled("var x[2] minimize log(sum(exp(x)))", backend)
    assert total.value([1000.0, 1000.0]) == pytest.approx(1000.6931471805599, rel=1e-15)
    assert total.gradient([1000.0, 1000.0]).tolist() == [0.5, 0.5]
    assert total.value([-1000.0, -1000.0]) == pytest.approx(-999.3068528194401, rel=1e-15)
    assert compiled("var x minimize log(cosh(x))", backend).value([1000.0]) == 999.3068528194401
    tanh = compiled("var x minimize tanh(x)", backend)
    assert tanh.gradient([20.0])[0] == pytest.approx(1.699341702116636e-17, rel=1e-14)


@pytest.mark.parametrize(("text", "exact"), TWO, ids=[case[0] for case in TWO])
def test_two_variables_have_their_gradients(text: str, exact: Exact) -> None:
    model = compiled(f"var x, y minimize {text}", "numpy")
    for point in (pair for pair in PAIRS[::5] if max(map(abs, pair)) < 700.0):
        gradient = model.gradient(np.array(point))
        with mp.workdps(DIGITS):
            numbers = [mp.mpf(value) for value in point]
            for k, x in enumerate(numbers):
                step = (abs(x) or 1) * mp.mpf(10) ** -400
                near = exact(*(z + step * (k == j) for j, z in enumerate(numbers)))
                want = as_double((near - exact(*numbers)) / step)
                assert gradient[k] == pytest.approx(want, rel=1e-13, abs=1e-300), (point, k)
