"""Objectives that are quadratic in their variables: the Hessian is one matrix."""

from __future__ import annotations

import numpy as np

from slomodel.bounds.forms.spectral import symmetric_norm
from slomodel.bounds.intervals.hessian import derivatives
from slomodel.bounds.series.centre import centre_hessian
from slomodel.bounds.series.plain import is_plain
from slomodel.bounds.setting import Candidate, Setting
from slomodel.ir.walk import postorder

RULE = "quadratic"


def quadratic(setting: Setting, radius: float) -> Candidate | None:
    """L1 = ‖H‖₂ and L2 = 0 over any ball, where no variable is left in the graph of the Hessian.

    Hypothesis: the objective is a polynomial, so that graph is its Hessian everywhere. It is
    enclosed entry by entry.
    """
    variables = set(setting.variables)
    if setting.n == 0 or not is_plain(setting.objective, variables):
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
