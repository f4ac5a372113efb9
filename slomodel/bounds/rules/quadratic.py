"""Objectives of degree at most two in their variables: the Hessian is constant."""

from __future__ import annotations

import numpy as np

from slomodel.bounds.centre import centre_hessian
from slomodel.bounds.enclosure import (
    NOTHING,
    Derivation,
    DerivativeBounds,
    Enclosure,
    both_ends,
)
from slomodel.bounds.norms.spectral import symmetric_norm
from slomodel.bounds.ranges.hessian import derivatives
from slomodel.bounds.setting import Setting
from slomodel.bounds.structure.polynomials import is_polynomial_graph
from slomodel.ir.walk import postorder


def quadratic(setting: Setting, radius: float) -> Enclosure | None:
    """L1 = ‖H‖₂ and L2 = 0 over any ball, where the graph of the Hessian has no variable.

    Hypothesis: the objective is a polynomial, so that graph is its Hessian everywhere. It is
    enclosed elementwise.
    """
    variables = set(setting.variables)
    if setting.n == 0 or not is_polynomial_graph(setting.objective, variables):
        return None
    graphs = derivatives(setting)
    if any(node in variables for node in postorder(*graphs.second)):
        return None
    H = centre_hessian(setting)
    if H is None or not np.isfinite(H.magnitude).all():
        return None
    largest = float(np.max(H.magnitude))
    norm = largest if setting.n == 1 or largest == 0.0 else symmetric_norm(H.mid, H.rad)
    return _constant(norm, "the Hessian is constant")


def linear(setting: Setting, radius: float) -> Enclosure | None:
    """L1 = L2 = 0 over any ball, if the objective is a polynomial with a constant gradient."""
    variables = set(setting.variables)
    if not is_polynomial_graph(setting.objective, variables):
        return None
    if any(node in variables for node in postorder(*setting.gradient)):
        return None
    return _constant(0.0, "the gradient is constant")


def _constant(hessian: float, why: str) -> Enclosure:
    same = DerivativeBounds(both_ends(hessian), 0.0, NOTHING)
    by = Derivation(lines=(why,))
    return Enclosure(same, same, second_by=by, third_by=by)
