"""Objectives that are quadratic in their variables: the Hessian is one matrix."""

from __future__ import annotations

import numpy as np

from slomodel.bounds.center_derivatives import centre_hessian
from slomodel.bounds.hessian import derivatives
from slomodel.bounds.setting import Candidate, Setting
from slomodel.bounds.spectral import symmetric_norm
from slomodel.functions import add, div, mul, neg, square, sub
from slomodel.ir.expr import Expr, Extreme, Map
from slomodel.ir.walk import dependents, postorder

RULE = "quadratic"


def quadratic(setting: Setting, radius: float) -> Candidate | None:
    """L1 = ‖H‖₂ and L2 = 0 over any ball, where no variable is left in the graph of the Hessian.

    Hypothesis: the objective is made of sums, products and quotients by data, so it is smooth
    everywhere and that graph is its Hessian. H is enclosed entry by entry.
    """
    variables: set[Expr] = set(setting.variables)
    order = postorder(setting.objective)
    moving = dependents(order, variables.__contains__)
    if setting.n == 0 or not all(_is_plain(node, moving) for node in order if node in moving):
        return None
    graphs = derivatives(setting)
    if any(node in variables for node in postorder(*graphs.second)):
        return None
    H = centre_hessian(setting)
    if H is None or not np.isfinite(H.magnitude).all():
        return None
    largest = float(np.max(H.magnitude))
    norm = largest if setting.n == 1 or largest == 0.0 else symmetric_norm(H.mid, H.rad)
    return Candidate(RULE, norm, 0.0, trace=("the Hessian is constant",))


def _is_plain(node: Expr, moving: set[Expr]) -> bool:
    if isinstance(node, Extreme):
        return False
    if not isinstance(node, Map):
        return True
    if node.function is div:
        return node.operands[1] not in moving
    return node.function in (add, sub, mul, neg, square)
