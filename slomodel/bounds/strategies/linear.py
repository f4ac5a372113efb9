"""Objectives that are linear, or constant, in their variables."""

from __future__ import annotations

from slomodel.bounds.series.plain import is_plain
from slomodel.bounds.setting import Candidate, Setting
from slomodel.ir.walk import postorder


def linear(setting: Setting, radius: float) -> Candidate | None:
    """L1 = L2 = 0, over any ball, where the objective is a polynomial and no variable is left in
    the gradient.
    """
    variables = set(setting.variables)
    if not is_plain(setting.objective, variables):
        return None
    if any(node in variables for node in postorder(*setting.gradient)):
        return None
    return Candidate("linear", 0.0, 0.0, trace=("the gradient is constant",))
