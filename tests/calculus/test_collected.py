"""Collected graphs of derivatives are the same numbers as those of the rules."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from bounds.objective_graph import evaluate_exactly

from slomodel import functions as fn
from slomodel.calculus.jvp import jvp
from slomodel.calculus.rays.collected import collected
from slomodel.ir import build
from slomodel.ir.exact import without_rounding
from slomodel.ir.expr import Const, Expr, Map
from slomodel.ir.function import ScalarFunction
from slomodel.ir.walk import postorder

DIFFERENTIABLE = [
    f for f in fn.TABLE.values() if f.result == "real" and f.arity == 1 and not f.operand_types
]


def _functions(graph: Expr) -> int:
    return sum(isinstance(node, Map) for node in postorder(graph))


@pytest.mark.parametrize("function", DIFFERENTIABLE, ids=str)
def test_derivatives_are_the_same(function: ScalarFunction) -> None:
    x = build.variable("x", ())
    with without_rounding():
        plain = function(x)
        for _ in range(4):
            (plain,) = jvp((plain,), {x: Const(1.0)})
    graph = collected(plain)
    assert _functions(graph) <= _functions(plain)
    low, high = (function.domain or ((-np.inf, np.inf),))[0]
    at = 0.375 if low < 0.375 < high else low + 1.5 if np.isfinite(low) else high - 1.5
    with mpmath.workdps(40):
        point = {x: np.array(mpmath.mpf(at), dtype=object)}
        values = evaluate_exactly((plain, graph), point, {})
        first, second = (one.item() for one in values)
        assert abs(first - second) <= mpmath.mpf(10) ** -30 * (1 + abs(first))


def test_equal_monomials_are_one() -> None:
    x, y = (build.variable(name, ()) for name in "xy")
    square = fn.square(fn.add(x, y))
    assert collected(fn.sub(fn.sub(square, fn.square(x)), fn.square(y))) is fn.mul(
        fn.mul(2.0, x), y
    )
    # 1/x times x is 1 but where it is undefined.
    quotient = fn.add(fn.mul(x, fn.div(1.0, x)), fn.mul(fn.div(1.0, x), x))
    assert any(isinstance(one, Map) and one.function is fn.div for one in postorder(quotient))
    rounded = fn.add(fn.mul(Const(0.1), x), fn.mul(Const(0.1), x))
    assert collected(rounded) is rounded
