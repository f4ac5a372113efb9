"""Bounds as formulas: SymPy expressions in the radius and in the blocks' norms at the centre."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import sympy as sp
from sympy.printing.printer import Printer

from slomodel.bounds.arithmetic.rounding import up_mul
from slomodel.bounds.part import ObjectivePart
from slomodel.bounds.ranges.smoothness import place
from slomodel.bounds.refinements.series import Series
from slomodel.bounds.result import shown
from slomodel.bounds.rules.majorant_series import majorant_terms
from slomodel.bounds.rules.symmetric_powers import symmetric_terms
from slomodel.calculus.degree import first_nonpolynomial
from slomodel.errors import Diagnostic, DomainError, MissingRule
from slomodel.ir.exact import without_rounding


class BlockNorm(sp.Symbol):  # type: ignore[misc]
    """The Euclidean norm of a variable at the centre, named `norm_` plus the variable's name."""

    __slots__ = ()

    def _latex(self, printer: Printer) -> str:
        return rf"\left\lVert {printer.doprint(sp.Symbol(self.name[5:]))} \right\rVert"


@without_rounding()
def bound_formula(part: ObjectivePart, which: str) -> sp.Expr:
    """The bound `L1` or `L2` as a formula in r and the variables' norms.

    Raises MissingRule where no formula exists.

    The part's centre is 0. With ρ = ‖c‖ + r the ball lies in that of radius ρ around 0, and the
    majorant series there bounds both: L1 = ‖H(0)‖ + Σ_(k>=3) k(k-1) s_k ρ^(k-2). Each number is
    rounded up to six digits.
    """
    if which not in ("L1", "L2"):
        message = f"expected 'L1' or 'L2', found {which!r}"
        raise DomainError(Diagnostic("E602", message, help="give which='L1' or which='L2'"))
    if part.n == 0:
        return sp.Integer(0)
    result = [one for one in (majorant_terms(part), symmetric_terms(part)) if one is not None]
    if not result:
        remedy = "bounds(center, radius) has numbers"
        raise MissingRule(Diagnostic("E606", _why(part), help=remedy))
    series = _least(result)
    return _formula(part, series, order=int(which[1]) + 1)


def _least(every: Sequence[Series]) -> Series:
    """The series of the least bounds per degree; a degree that a series lacks has the bound 0."""
    degrees = sorted({k for one in every for k in one.sizes})
    sizes = {k: min(one.sizes.get(k, 0.0) for one in every) for k in degrees}
    return replace(every[0], sizes=sizes, hessian=min(one.hessian for one in every))


def _formula(part: ObjectivePart, series: Series, order: int) -> sp.Expr:
    r = sp.Symbol("r", nonnegative=True)
    norms = [BlockNorm(f"norm_{v.name}", nonnegative=True) for v in part.variables]
    rho = sp.sqrt(sum(norm**2 for norm in norms)) + r
    total = _rounded(series.hessian) if order == 2 else sp.Integer(0)
    for k, size in series.sizes.items():
        if k >= 3 and size > 0.0:
            whole = float(k * (k - 1) * (k - 2 if order == 3 else 1))
            total += _rounded(float(up_mul(whole, size))) * rho ** (k - order)
    return total


def _rounded(value: float) -> sp.Expr:
    return sp.Float(shown(value)) if value else sp.Integer(0)


def _why(part: ObjectivePart) -> str:
    node = first_nonpolynomial(part.objective, set(part.variables))
    if node is None:
        return "no formula for a bound: the objective is a polynomial with too many terms"
    result = place(node, part.spans, part.objective)
    return f"no formula for a bound: {result} is not a polynomial"
