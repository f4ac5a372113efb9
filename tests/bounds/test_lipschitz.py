"""The least of what strategies claim, where each answer is from, and how it is told."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from slomodel import functions as fn
from slomodel.bounds import Bounds, ObjectivePart, bounds, pipeline
from slomodel.bounds.closure import BY_SLOPE
from slomodel.bounds.enclosure import Derivation, DerivativeBounds, Enclosure, both_ends
from slomodel.bounds.result import shown
from slomodel.bounds.rules.majorant_series import constant_hessian
from slomodel.bounds.rules.table import BoundRule
from slomodel.errors import MissingRule
from slomodel.ir import build
from slomodel.ir.dims import literal
from slomodel.ir.expr import Expr

X = build.variable("x", (literal(2),))
A = build.data("a", (literal(2),))
INF = math.inf

Bound = Callable[[ObjectivePart, float], Enclosure | None]
Use = Callable[..., Callable[[float], Bounds]]


def setting(objective: Expr, a: float = 1.0) -> ObjectivePart:
    return ObjectivePart(objective, (X,), {X: np.ones(2), A: np.full(2, a)}, {})


def over(L1: float, L2: float, *lines: str, reason: str = "") -> Enclosure:
    by = Derivation(lines=lines)
    return Enclosure(
        over=DerivativeBounds(both_ends(L1), L2), reason=reason, second_by=by, third_by=by
    )


def claims(L1: float, L2: float, rule: str, reason: str = "") -> Bound:
    def bound(setting: ObjectivePart, radius: float) -> Enclosure:
        return over(L1, L2, f"why {rule}", reason=reason)

    bound.__name__ = rule
    return bound


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Use:
    """`asked(strategy, …)`: the bounds of Σx² by these strategies alone, as a function of r."""

    def use(*strategies: Bound) -> Callable[[float], Bounds]:
        monkeypatch.setattr(pipeline, "RULES", tuple(map(BoundRule, strategies)))
        return lambda radius: bounds(setting(build.inner(X, X)), radius)

    return use


def test_each_constant_is_the_least_with_its_runner_up(asked: Use) -> None:
    found = asked(claims(5.0, 1.0, "one"), claims(4.0, 9.0, "two"), claims(6.0, 7.0, "three"))(0.0)
    assert (found.L1, found.L2) == (4.0, 1.0)
    assert (found.rule, found.runner_up) == ("two", "one: 5")
    assert (found.hessian.best.rule, found.hessian.runner_up) == ("one", "three: 7")
    assert (found.source, found.rigor, found.reason) == ("analytic", "certified", "")
    text = found.explain()
    for part in ("L1 ≤ 4", "L2 ≤ 1", "├─ 5  one", "└─ 6  three", "why two"):
        assert part in text


def test_the_slope_of_one_rule_helps_the_centre_of_another(asked: Use) -> None:
    def centre_only(setting: ObjectivePart, radius: float) -> Enclosure | None:
        return over(2.0, INF) if radius == 0.0 else None

    found = asked(centre_only, claims(100.0, 3.0, "slope"))(0.5)
    assert found.rule == f"{pipeline.LEAST}: {BY_SLOPE}"
    assert 3.5 <= found.L1 <= 3.5 * (1.0 + 1e-15)
    assert found.runner_up == "slope: 100"
    assert found.at(1e6).L1 == 100.0
    assert found.at(0.0).L1 == 2.0


def test_the_centre_is_not_asked_where_the_slope_alone_is_too_much(asked: Use) -> None:
    radii = []

    def told(setting: ObjectivePart, radius: float) -> Enclosure | None:
        radii.append(radius)
        return over(100.0, 3.0)

    assert asked(told)(40.0).L1 == 100.0
    assert radii == [40.0]


def test_what_is_missing_is_a_reason(asked: Use) -> None:
    def missing(setting: ObjectivePart, radius: float) -> Enclosure | None:
        raise MissingRule("no rule for bessel, in `J(x)` (line 3)")

    found = asked(missing, lambda setting, radius: None)(1.0)
    assert (found.L1, found.L2) == (INF, INF)
    assert found.reason == "no rule for bessel, in `J(x)` (line 3)"
    assert repr(found).endswith("reason='no rule for bessel, in `J(x)` (line 3)')")
    assert asked(lambda setting, radius: None)(1.0).reason == pipeline.NO_RULE


def test_a_failure_in_a_strategy_is_not_hidden(asked: Use) -> None:
    def broken(setting: ObjectivePart, radius: float) -> Enclosure | None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asked(broken)(1.0)
    for pair in ((math.nan, 1.0), (1.0, math.nan), (1.0, -1.0)):
        with pytest.raises(AssertionError):
            asked(claims(*pair, "wrong"))(1.0)


def test_l1_alone_has_no_reason_but_l2_has_one(asked: Use) -> None:
    found = asked(claims(2.0, INF, "kink", "relu(x)^2 has a kink of order 2"))(1.0)
    assert (found.L1, found.L2) == (2.0, INF)
    assert found.reason == "relu(x)^2 has a kink of order 2"
    assert found.gradient.reason == ""


def test_data_that_are_not_finite() -> None:
    objective = build.inner(build.apply(fn.mul, A, X), X)
    for a in (math.nan, INF):
        found = bounds(setting(objective, a), 1.0)
        assert (found.L1, found.reason) == (INF, "data `a` has NaN or inf")


@pytest.mark.parametrize(
    ("objective", "is_linear"),
    [
        (build.inner(A, X), True),
        (build.const(3.0), True),
        (build.inner(X, X), False),
        (build.sum_over(fn.div(X, A), (0,)), True),
        (build.sum_over(fn.div(A, X), (0,)), False),
        # The gradient is 0 wherever it exists, and there is a jump.
        (build.sum_over(fn.sign(X), (0,)), False),
        (build.sum_over(fn.mul(fn.exp(A), X), (0,)), True),
    ],
)
def test_linear(objective: Expr, is_linear: bool) -> None:
    assert (constant_hessian(setting(objective)) == 0.0) == is_linear


@pytest.mark.parametrize("value", [0.0, 5e-324, 1e-310, 0.1, 1 / 3, 2.0, 123456.7, 2e200, 1.7e308])
def test_what_is_printed_is_a_bound_too(value: float) -> None:
    for one in (value, np.nextafter(value, INF)):
        assert one <= float(shown(float(one))) <= one * (1.0 + 2e-5) + 5e-324
