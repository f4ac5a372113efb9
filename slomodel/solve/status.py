"""The ways in which a run can end: a sentence, a remedy and SciPy's integer for each."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

Sense = Literal["minimize", "maximize"]


class Status(StrEnum):
    """Why a run ended. `success` says whether the point may be used as a solution."""

    converged = "converged"
    precision = "precision"
    max_iter = "max_iter"
    max_time = "max_time"
    max_nfev = "max_nfev"
    user_stopped = "user_stopped"
    interrupted = "interrupted"
    unbounded = "unbounded"
    no_minimum = "no_minimum"
    infeasible = "infeasible"
    nonfinite_start = "nonfinite_start"
    line_search_stalled = "line_search_stalled"
    not_descent = "not_descent"

    @property
    def code(self) -> int:
        """The integer that SciPy's minimisers return for the same outcome."""
        return _MEANING[self].code

    @property
    def success(self) -> bool:
        return self in (Status.converged, Status.precision)

    @property
    def sentence(self) -> str:
        return _MEANING[self].sentence

    @property
    def remedy(self) -> str:
        """The recommended action; empty if none is needed."""
        return _MEANING[self].remedy

    def sentence_of(self, sense: Sense) -> str:
        """The sentence for this sense; a run that maximises may need other words."""
        return _OF_A_MAXIMUM.get(self, _MEANING[self]).sentence if _up(sense) else self.sentence

    def remedy_of(self, sense: Sense) -> str:
        """The remedy for this sense; a run that maximises may need other words."""
        return _OF_A_MAXIMUM.get(self, _MEANING[self]).remedy if _up(sense) else self.remedy


@dataclass(frozen=True, slots=True)
class _Meaning:
    # SciPy: 0 solved, 1 a budget, 2 the line search, 3 not finite, 99 stopped from outside;
    # it has no integers for unbounded objectives and infeasible constraints, which are 4 and 5,
    # nor for objectives without a minimum, 6.
    code: int
    sentence: str
    remedy: str


_MEANING = {
    Status.converged: _Meaning(0, "The gradient norm is below the tolerance.", ""),
    Status.precision: _Meaning(
        0,
        "The gradient norm cannot be lowered further: the changes of the objective that are "
        "left are below its rounding error.",
        "Rescale the objective, or subtract its constant part, if more digits are needed.",
    ),
    Status.max_iter: _Meaning(
        1, "The limit on iterations was reached.", "Raise max_iter, or start from the point found."
    ),
    Status.max_time: _Meaning(
        1, "The time limit was reached.", "Raise max_time, or start from the point found."
    ),
    Status.max_nfev: _Meaning(
        1,
        "The limit on objective values was reached.",
        "Raise max_nfev, or start from the point found.",
    ),
    Status.user_stopped: _Meaning(99, "The callback asked to stop.", ""),
    Status.interrupted: _Meaning(
        99, "The run was interrupted from the keyboard.", "The point is the best one found so far."
    ),
    Status.unbounded: _Meaning(
        4,
        "The objective seems to be unbounded below.",
        "Check its sign, or add a term that grows, such as a regulariser.",
    ),
    Status.no_minimum: _Meaning(
        6,
        "There seems to be no minimum on the way of the run: the objective tends to a limit as the "
        "variables grow without end.",
        "Bound the variables, or add a term that grows, such as a regulariser.",
    ),
    Status.infeasible: _Meaning(
        5,
        "The constraints seem to contradict each other: the sum of their squared violations is at "
        "a minimum, and not 0.",
        "Relax a constraint, or start elsewhere, since the minimum may be a local one.",
    ),
    Status.nonfinite_start: _Meaning(
        3,
        "The objective or its gradient is not finite at the start.",
        "Start from a point inside the domain, or check the data: if they are outside, no start "
        "helps.",
    ),
    Status.line_search_stalled: _Meaning(
        2,
        "No step along the search direction lowers the objective, and rounding does not explain "
        "it.",
        "Look for a kink (abs, max, norm at 0) or a wrong gradient: check_gradient compares the "
        "gradient with differences of the objective.",
    ),
    Status.not_descent: _Meaning(
        2,
        "The objective rises along minus the gradient: the gradient has the wrong sign.",
        "Check the sign of the gradient, or whether a maximum is wanted.",
    ),
}

_OF_A_MAXIMUM = {
    Status.no_minimum: _Meaning(
        6,
        "There seems to be no maximum on the way of the run: the objective tends to a limit as the "
        "variables grow without end.",
        "Bound the variables, or subtract a term that grows, such as a regulariser.",
    ),
    Status.unbounded: _Meaning(
        4,
        "The objective seems to be unbounded above.",
        "Check its sign, or subtract a term that grows, such as a regulariser.",
    ),
    Status.line_search_stalled: _Meaning(
        2,
        "No step along the search direction raises the objective, and rounding does not explain "
        "it.",
        _MEANING[Status.line_search_stalled].remedy,
    ),
    Status.not_descent: _Meaning(
        2,
        "The objective falls along the gradient: the gradient has the wrong sign.",
        "Check the sign of the gradient, or whether a minimum is wanted.",
    ),
}


def _up(sense: Sense) -> bool:
    return sense == "maximize"
