"""Every entry of the table: derivatives, class of smoothness, and values at the edges."""

import mpmath
import numpy as np
import pytest
from scipy import special

from slomodel.functions import (
    DISCONTINUOUS,
    FUNCTIONS,
    TABLE,
    gt,
    maximum,
    partial,
    relu,
    square,
)
from slomodel.ir.build import const, variable
from slomodel.ir.function import ANALYTIC, ScalarFunction
from tests.functions.exact_values import (
    Point,
    columns,
    evaluate_at,
    exact_partial,
    operand_types,
    regular_points,
)

BY_OPERAND = [
    (f, k)
    for f in TABLE.values()
    if f.result == "real"
    for k, kind in enumerate(operand_types(f))
    if kind == "real"
]
PARTIAL_ULPS = 8
TERMS = {TABLE["lbeta"]: lambda a, b: abs(special.psi(a)) + abs(special.psi(b))} | {
    # Of order 3 and more the terms of derivatives are about 1, those of sin(x)/x at most 1/(n + 1).
    TABLE[name]: lambda _x: 1.0
    for name in ("log_bessel_i0_2", "log_bessel_i0_3", "sinc_1", "sinc_2", "sinc")
}
"""The magnitude of the terms of a derivative, where it may be smaller than these."""


def partial_at(function: ScalarFunction, k: int, point: Point) -> float:
    got = evaluate_at(lambda *operands: partial(function, k, operands), function, point)
    return 0.0 if got is None else got


@pytest.mark.sampled(10)
@pytest.mark.parametrize(("function", "k"), BY_OPERAND, ids=str)
def test_partial_is_the_derivative_of_the_definition(function: ScalarFunction, k: int) -> None:
    """Within a few roundings of the result and of the operand (exp(-x^2) magnifies those)."""
    compared = 0
    for point in regular_points(function):
        want = exact_partial(function, k, point)
        if want is None or np.isnan(want):
            continue
        compared += 1
        moved = (*point[:k], point[k] * (1 + 2.0**-51), *point[k + 1 :])
        near = exact_partial(function, k, moved)
        assert near is not None
        least = TERMS[function](*point) if function in TERMS else 0.0
        allowed = PARTIAL_ULPS * np.spacing(max(abs(want), least)) + abs(near - want)
        assert abs(partial_at(function, k, point) - want) <= allowed, (point, want)
    assert compared >= 3


@pytest.mark.parametrize(
    "function", [f for f in TABLE.values() if f.result == "bool" or f.name == "sign"], ids=str
)
def test_partials_of_steps_are_zero(function: ScalarFunction) -> None:
    operands = [
        gt(variable(f"v{k}", ()), 0.0) if kind == "bool" else variable(f"v{k}", ())
        for k, kind in enumerate(operand_types(function))
    ]
    assert [partial(function, k, operands) for k in range(function.arity)] == [None] * len(operands)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("function", "k"), BY_OPERAND, ids=str)
def test_meaning_takes_a_complex_step(function: ScalarFunction, k: int) -> None:
    for point in regular_points(function):
        if function.name == "pow" and point[0] < 0:
            continue  # not real
        operands = columns(function, [point])
        step = 1e-200 * abs(point[k])
        operands[k] = operands[k] + 1j * step
        got = np.imag(function.numpy(*operands))[0] / step
        want = partial_at(function, k, point)
        assert got == pytest.approx(want, rel=1e-9, abs=1e-14)


def nearby(function: ScalarFunction) -> list[tuple[Point, Point]]:
    """Points where kinks lie inside the domain, each with one just beside it."""
    domain = function.domain or ((-np.inf, np.inf),) * function.arity
    rng = np.random.default_rng(11)
    grid = np.stack(np.meshgrid(*[[-1.0, 0.0, 1.0]] * function.arity), axis=-1)
    pairs = []
    for point in grid.reshape(-1, function.arity):
        at_end = any(x in ends for x, ends in zip(point, domain, strict=True))
        if at_end and not function.kinks:
            continue
        for _ in range(4):
            beside = point + 1e-9 * rng.choice([-1.0, 1.0], function.arity) * rng.uniform(1, 2)
            pairs.append((tuple(point.tolist()), tuple(beside.tolist())))
    return pairs


def jump(values: list[tuple[float, float]]) -> float:
    """The largest difference of two finite values, relative to them where they are above 1."""
    finite = [pair for pair in values if np.isfinite(pair).all()]
    return max((abs(a - b) / max(1.0, abs(a)) for a, b in finite), default=0.0)


SMOOTH_TESTED = [f for f in TABLE.values() if "bool" not in operand_types(f)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("function", SMOOTH_TESTED, ids=str)
def test_smoothness_is_what_the_derivatives_show(function: ScalarFunction) -> None:
    """A jump of the value, of the derivative or of neither at -1, 0, 1 and ties."""
    with np.errstate(all="ignore"):
        pairs = [
            (a, b)
            for a, b in nearby(function)
            if np.isfinite(function.numpy(*columns(function, [a, b]))).all()
        ]
        values = [tuple(map(float, function.numpy(*columns(function, list(p))))) for p in pairs]
    slopes = [
        (partial_at(function, k, a), partial_at(function, k, b))
        for a, b in pairs
        for k in range(function.arity)
    ]
    if function.smoothness == DISCONTINUOUS:
        assert jump(values) > 0.5
        return
    # Not continuous at 0/0 and 0^0, outside of their class; and of infinite slope at 0.
    if function.name in ("div", "pow", "cbrt"):
        return
    assert jump(values) < 1e-4
    assert (jump(slopes) > 0.3) == (function.smoothness == 0)
    assert function.smoothness in (0, 1, 2, ANALYTIC)


TWICE = [(f, k) for f, k in BY_OPERAND if f.smoothness >= 1 and f.name not in ("div", "pow")]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("function", "k"), TWICE, ids=str)
def test_second_derivative_jumps_only_in_class_one(function: ScalarFunction, k: int) -> None:
    """One-sided difference quotients of the derivative at -1, 0, 1 and ties."""
    step = 1e-5
    sides = []
    for point, _ in nearby(function):
        ends = [(*point[:k], point[k] + move, *point[k + 1 :]) for move in (-step, 0.0, step)]
        left, here, right = (partial_at(function, k, end) for end in ends)
        sides.append(((here - left) / step, (right - here) / step))
    if function.smoothness == 1:
        assert jump(sides) > 0.5
    else:
        assert jump(sides) < 0.01


@pytest.mark.parametrize(
    ("name", "point", "derivatives"),
    [
        ("pow", (0.0, 1.0), (1.0, 0.0)),
        ("pow", (0.0, 0.0), (0.0, -np.inf)),
        ("pow", (2.0, 0.0), (0.0, np.log(2.0))),
        ("pow", (0.0, 1.875), (0.0, 0.0)),
        ("pow", (0.0, 2.0), (0.0, 0.0)),
        ("pow", (-3.0, 3.0), (27.0, np.nan)),
        ("pow", (0.0, 0.3), (np.inf, 0.0)),
        ("sqrt", (0.0,), (np.inf,)),
        ("root", (0.0,), (0.0,)),
        ("root", (4.0,), (0.25,)),
        ("abs", (0.0,), (0.0,)),
        ("abs", (-0.0,), (0.0,)),
        ("relu", (0.0,), (0.0,)),
        ("max", (3.0, 3.0), (0.5, 0.5)),
        ("min", (3.0, 3.0), (0.5, 0.5)),
        ("max", (np.nan, 3.0), (0.0, 0.0)),
        ("clip", (0.0, 0.0, np.inf), (0.0, 1.0, 0.0)),
        ("clip", (1.0, 0.0, 1.0), (0.0, 0.0, 1.0)),
        ("clip", (0.5, 2.0, 1.0), (0.0, 0.0, 1.0)),
        ("huber", (1.0, 1.0), (1.0, 0.0)),
        ("huber", (-5.0, 2.0), (-2.0, 3.0)),
        ("huber", (-0.2, -1.0), (1.0, 1.2)),
        ("huber", (0.0, -1.0), (0.0, 1.0)),
        ("huber", (0.5, 0.0), (0.0, 0.5)),
        ("huber", (3.0, np.inf), (3.0, 0.0)),
        ("huber", (3.0, np.nan), (np.nan, np.nan)),
        ("huber", (np.nan, -1.0), (np.nan, np.nan)),
        ("softplus", (800.0,), (1.0,)),
        ("softplus", (-800.0,), (0.0,)),
        ("sigmoid", (40.0,), (4.248354255291589e-18,)),
        ("sigmoid", (-1000.0,), (0.0,)),
        ("tanh", (20.0,), (1.699341702116636e-17,)),
        ("logcosh", (1000.0,), (1.0,)),
        ("log1p", (0.0,), (1.0,)),
        ("div", (1e200, 1e200), (1e-200, -1e-200)),
    ],
)
def test_edges(name: str, point: Point, derivatives: Point) -> None:
    function = FUNCTIONS.get(name) or TABLE[name]
    got = tuple(partial_at(function, k, point) for k in range(function.arity))
    assert got == pytest.approx(derivatives, rel=4e-16, abs=0, nan_ok=True)


@pytest.mark.parametrize("delta", [0.0, 0.5, np.inf])
def test_the_derivative_of_huber_is_one_cut_for_a_number_delta(delta: float) -> None:
    t = variable("t", ())
    by_t = partial(FUNCTIONS["huber"], 0, (t, const(delta)))
    assert by_t is TABLE["clip"](t, -delta, delta)


def test_huber_is_once_differentiable_for_delta_from_zero_on() -> None:
    """Its derivatives by both operands are continuous there, also at delta = 0."""
    huber = TABLE["huber"]
    assert huber.smoothness_above is not None
    assert [huber.smoothness_above(-np.inf, low) for low in (-0.1, 0.0, 2.0)] == [0, 1, 1]
    for t, delta in [(0.0, 0.0), (0.0, 1.0), (1.0, 1.0), (-1.0, 1.0), (-1.0, 0.0)]:
        beside = (t + 1e-9, delta + 1e-9)
        for k in (0, 1):
            there, here = (partial_at(huber, k, one) for one in (beside, (t, delta)))
            assert abs(there - here) < 1e-8


def test_every_call_of_relu_has_derivative_zero_at_zero() -> None:
    x = variable("x", ())
    assert maximum(x, 0.0) is relu(x)
    assert maximum(-0.0, x) is relu(x)
    assert partial_at_constant("min", 0.0) == 0.0
    assert partial_at_constant("clip", 0.0, np.inf) == 0.0


def partial_at_constant(name: str, *constants: float) -> float:
    """The derivative at 0 by the first operand, the others being constants."""
    others = tuple(map(const, constants))
    got = evaluate_at(lambda v: partial(FUNCTIONS[name], 0, (v, *others)), square, (0.0,))
    assert got is not None
    return got


@pytest.mark.parametrize("p", [1e-300, 1e-9, 1.0 - 2.0**-53])
def test_slopes_of_quantiles_keep_their_digits_at_the_ends(p: float) -> None:
    """There an error of x in exp(x^2/2) is enlarged by x^2, up to 1,369."""
    function = TABLE["normppf"]
    slope = evaluate_at(lambda at: partial(function, 0, (at,)), function, (p,))
    with mpmath.workdps(40):
        tail = min(mpmath.mpf(p), 1 - mpmath.mpf(p))

        def gap(x: object) -> object:
            return mpmath.log(mpmath.erfc(x / mpmath.sqrt(2)) / 2) - mpmath.log(tail)

        x = mpmath.findroot(gap, abs(special.ndtri(p)) if p < 0.5 else 8.2)
        assert slope == pytest.approx(float(1 / mpmath.npdf(x)), rel=1e-15)
