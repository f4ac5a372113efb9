"""Inverse functions near the ends of their domains: acos(1 - u), acosh(1 + u), atanh(1 - u).

There 1 - u has lost the digits of u. acos(1 - u) is 2 atan2(sqrt(u), sqrt(2 - u)), and
acosh(1 + u) is 2 asinh(sqrt(u/2)).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import sympy as sp

from slomodel.functions.arithmetic import add, div, mul, sub
from slomodel.functions.compound import atan2, graph_values
from slomodel.functions.elementary import asinh, log, log1p, sqrt
from slomodel.functions.piecewise import Reals, complex_step
from slomodel.ir.build import variable
from slomodel.ir.expr import Expr
from slomodel.ir.function import Monotonicity, ScalarFunction

_U = variable("u", ())


def _numpy(graph: Expr, slope: Expr) -> Callable[[Reals], Reals]:
    def numpy(u: Reals) -> Reals:
        at = {_U: np.real(u)}
        with np.errstate(all="ignore"):
            return complex_step(graph_values(graph, at), u, lambda: graph_values(slope, at))

    return numpy


def _record(
    name: str,
    definition: Callable[[sp.Expr], sp.Expr],
    stable: Callable[[Expr], Expr],
    slope: Callable[[Expr], Expr],
    domain: tuple[float, float],
    ranges: Monotonicity,
    meaning: str,
) -> ScalarFunction:
    return ScalarFunction(
        name,
        1,
        definition=definition,
        numpy=_numpy(stable(_U), slope(_U)),
        partials=(slope,),
        stable=stable,
        domain=(domain,),
        ranges=ranges,
        costly=True,
        meaning=meaning,
    )


acos1m = _record(
    "acos1m",
    lambda u: sp.acos(1 - u),
    lambda u: mul(2.0, atan2(sqrt(u), sqrt(sub(2.0, u)))),
    lambda u: div(1.0, mul(sqrt(u), sqrt(sub(2.0, u)))),
    (0.0, 2.0),
    Monotonicity(((), (1.0,), (), (1.0,), (), (1.0,)), image=(0.0, math.nextafter(math.pi, 4.0))),
    "acos(1 - u), accurate for small u",
)
acosh1p = _record(
    "acosh1p",
    lambda u: sp.acosh(1 + u),
    lambda u: mul(2.0, asinh(sqrt(mul(0.5, u)))),
    lambda u: div(1.0, mul(sqrt(u), sqrt(add(2.0, u)))),
    (0.0, math.inf),
    Monotonicity(((),) * 6, image=(0.0, math.inf)),
    "acosh(1 + u), accurate for small u",
)
atanh1m = _record(
    "atanh1m",
    lambda u: sp.atanh(1 - u),
    lambda u: mul(0.5, sub(log1p(sub(1.0, u)), log(u))),
    lambda u: div(-1.0, mul(u, sub(2.0, u))),
    (0.0, 2.0),
    Monotonicity(((), (1.0,), (), (1.0,), (), (1.0,))),
    "atanh(1 - u), accurate for small u",
)
