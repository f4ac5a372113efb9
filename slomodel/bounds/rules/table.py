"""The table of rules, each with what it reads and when it is worth its cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from slomodel.bounds.rules.curved_terms import curved_terms
from slomodel.bounds.rules.entries_over_ball import entries_over_ball
from slomodel.bounds.rules.gradient_jets import gradient_jets, is_long
from slomodel.bounds.rules.interval_entries import interval_entries
from slomodel.bounds.rules.large_sums import large_sums
from slomodel.bounds.rules.layered_networks import layered_networks
from slomodel.bounds.rules.log_sum_exps import log_sum_exps
from slomodel.bounds.rules.majorant_series import majorant_series
from slomodel.bounds.rules.norm_powers import norm_powers
from slomodel.bounds.rules.quadratic import linear, quadratic
from slomodel.bounds.rules.separable_sums import separable_sums
from slomodel.bounds.rules.symmetric_powers import symmetric_powers
from slomodel.bounds.setting import Candidate, Setting


@dataclass(frozen=True, slots=True)
class BoundRule:
    """One principle: `bound` bounds both constants over a ball, or is None where it does not apply.

    `reads_written`: it looks for elementwise sums, which the Gram form hides, and takes the
    objective as written. `is_unlimited`: it holds over the whole space too. `is_quick`: it takes
    milliseconds. `is_long`: the settings for which it is so slow that it is skipped where another
    rule suffices. `closes_gaps`: it costs more, for settings where the others leave a gap to the
    derivatives at the centre.
    """

    bound: Callable[[Setting, float], Candidate | None]
    reads_written: bool = False
    is_unlimited: bool = False
    is_quick: bool = False
    is_long: Callable[[Setting], bool] | None = None
    closes_gaps: bool = False

    @property
    def name(self) -> str:
        return self.bound.__name__.replace("_", " ")

    @property
    def stage(self) -> int:
        """0: always; 1: where no other suffices; 2: where the others leave a gap."""
        return 2 if self.closes_gaps else int(self.is_long is not None)


RULES = (
    BoundRule(linear, is_unlimited=True, is_quick=True),
    BoundRule(quadratic, is_unlimited=True, is_quick=True),
    BoundRule(separable_sums, reads_written=True),
    BoundRule(large_sums, reads_written=True),
    BoundRule(layered_networks, reads_written=True),
    BoundRule(log_sum_exps, reads_written=True),
    BoundRule(norm_powers, reads_written=True, is_quick=True),
    BoundRule(interval_entries),
    BoundRule(gradient_jets, is_long=is_long),
    BoundRule(majorant_series, is_quick=True),
    BoundRule(symmetric_powers),
    BoundRule(curved_terms, reads_written=True, closes_gaps=True),
    BoundRule(entries_over_ball, closes_gaps=True),
)
"""In any order: each is sound by itself, and the least of each bound is used."""
