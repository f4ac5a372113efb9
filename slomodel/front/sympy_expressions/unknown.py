"""SymPy's nodes without a rule: for each the sentence that says why, and what to write."""

from __future__ import annotations

import math

import sympy as sp
from sympy.core.function import AppliedUndef

from slomodel.errors import DomainError, MissingRule, SlomodelError
from slomodel.front.sympy_expressions.faults import refused
from slomodel.functions.translate import known_functions

_COMPLEX = (sp.conjugate, sp.re, sp.im, sp.arg, sp.Adjoint, sp.polar_lift)
_JUMPS = (sp.floor, sp.ceiling, sp.Mod, sp.frac, sp.Heaviside)
_SENTENCES: tuple[tuple[tuple[type[sp.Basic], ...], str, str], ...] = (
    ((sp.Derivative, sp.Subs), "a Derivative is not worked out", "call `.doit()` on it first"),
    ((sp.Integral,), "an Integral is not worked out", "call `.doit()`, or write a Sum"),
    ((sp.Limit, sp.Order), "limits and orders are not numbers", "call `.doit()`, `.removeO()`"),
    ((sp.DiracDelta,), "a DiracDelta is not a function", "leave it out, or write a smooth peak"),
    (_JUMPS, "this function jumps, and its slope says nothing", "write a smooth step, like tanh"),
    (
        (sp.Determinant, sp.Inverse),
        "determinants and inverses of matrices cannot be computed yet",
        "of a small matrix write the elements: `sp.Matrix(M).det()`",
    ),
    ((sp.Lambda,), "a Lambda is a function, not a number", "apply it to its arguments"),
    ((sp.Poly,), "a Poly is not an expression", "write `poly.as_expr()`"),
)


def unknown(node: sp.Basic) -> SlomodelError:
    """The refusal of a node that has no rule."""
    if isinstance(node, _COMPLEX):
        remedy = "make symbols with `real=True`, and transpose with `.T`"
        message = "a model is made of real numbers, and this is for complex ones"
        return refused("E403", message, node, remedy, DomainError)
    if isinstance(node, AppliedUndef):
        name = node.func.__name__
        remedy = f"write a formula in place of `{name}`"
        return refused("E404", f"the function `{name}` has no formula", node, remedy)
    for kinds, message, remedy in _SENTENCES:
        if isinstance(node, kinds):
            return refused("E404", message, node, remedy, MissingRule)
    message = f"SymPy's `{node.func.__name__}` has no rule"
    remedy = f"the functions known are {', '.join(known_functions())}, and sqrt"
    if isinstance(node, sp.MatrixExpr):
        remedy = "write a Sum over the elements `M[i, j]`"
    return refused("E404", message, node, remedy, MissingRule)


def check_number(node: sp.Expr) -> None:
    """Refuse an atom that is not a finite real number of double precision."""
    if not node.is_number or not node.is_Atom:
        raise unknown(node)
    if node.is_finite is not True:
        message = f"`{node}` is not a finite number"
        raise refused("E412", message, node, "a model is made of finite numbers", DomainError)
    if node.is_real is not True:
        message = f"`{node}` is not a real number"
        raise refused("E403", message, node, "a model is made of real numbers", DomainError)
    if math.isinf(_double(node)):
        message = "a number is beyond the largest double, 1.8e308"
        raise refused("E412", message, node, "scale the model", DomainError)


def _double(node: sp.Expr) -> float:
    try:
        return float(node)
    except OverflowError:
        return math.inf
