"""Bounds as formulas: SymPy expressions in the radius and in norms at the centre."""

from __future__ import annotations

import sympy as sp

from slomodel.bounds.setting import Setting
from slomodel.errors import Diagnostic, DomainError, MissingRule


def bound_formula(setting: Setting, which: str) -> sp.Expr:
    """A bound of `L1` or `L2` in r and block norms. Raises MissingRule where there is none."""
    if which not in ("L1", "L2"):
        message = f"expected 'L1' or 'L2', found {which!r}"
        raise DomainError(Diagnostic("E602", message, help="give which='L1' or which='L2'"))
    raise MissingRule("formulas for bounds are not there yet; bounds(center, radius) has numbers")
