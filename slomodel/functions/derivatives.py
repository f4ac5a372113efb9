"""Families of derivatives: the meaning, definition and derivative of each member.

Member n of a family is f^(n), the derivative of order n of a function f of one argument.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import sympy as sp

from slomodel.functions.compound import graph_values
from slomodel.functions.piecewise import Reals, complex_step
from slomodel.ir.build import variable
from slomodel.ir.expr import Expr
from slomodel.ir.function import Partial, ScalarFunction

Member = Callable[[int], ScalarFunction]
Stable = Callable[[Expr, int], Expr]
"""(x, n) -> the graph of f^(n)(x) from which its values are computed."""

_X = variable("x", ())


def next_member(member: Member, n: int) -> Partial:
    """The derivative of member n, which is constructed when a node is differentiated."""

    def partial(x: Expr) -> Expr:
        return member(n + 1)(x)

    return partial


def meaning(stable: Stable, n: int) -> Callable[[Reals], Reals]:
    """NumPy meaning of member n: the values of its graph; complex steps by that of member n + 1."""

    def values(x: Reals, order: int) -> Reals:
        return graph_values(_graph(stable, order), {_X: x})

    def numpy(x: Reals) -> Reals:
        real = np.real(x)
        return complex_step(values(real, n), x, lambda: values(real, n + 1))

    return numpy


@cache
def _graph(stable: Stable, n: int) -> Expr:
    return stable(_X, n)


def definition(f: sp.Expr, s: sp.Symbol, n: int) -> Callable[[sp.Expr], sp.Expr]:
    """SymPy's form of member n, where f is an expression in s."""
    return lambda x: _differentiated(f, s, n).subs(s, x)


@cache
def _differentiated(f: sp.Expr, s: sp.Symbol, n: int) -> sp.Expr:
    return sp.diff(f, s, n)
