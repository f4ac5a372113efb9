"""The table of rules, each with what it reads and when it is worth its cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from slomodel.bounds.centre import is_third_within
from slomodel.bounds.enclosure import Enclosure
from slomodel.bounds.part import ObjectivePart
from slomodel.bounds.ranges.hessian import operations_of_steps
from slomodel.bounds.rules.averages import averages
from slomodel.bounds.rules.curved_terms import curved_terms
from slomodel.bounds.rules.entries_over_ball import entries_over_the_ball
from slomodel.bounds.rules.gradient_jets import gradient_jets, is_long
from slomodel.bounds.rules.interval_entries import interval_entries
from slomodel.bounds.rules.layered_networks import is_deep, layered_networks
from slomodel.bounds.rules.linear_predictors import is_large, linear_predictors
from slomodel.bounds.rules.log_sum_exp import log_sum_exp
from slomodel.bounds.rules.majorant_series import majorant_series
from slomodel.bounds.rules.power_series import CLOSE, is_tried, power_series
from slomodel.bounds.rules.radial_functions import radial_functions
from slomodel.bounds.rules.symmetric_powers import symmetric_powers
from slomodel.bounds.structure.gram_form import as_written


def never(part: ObjectivePart) -> bool:
    return False


def always(part: ObjectivePart) -> bool:
    return True


def is_stepwise(part: ObjectivePart) -> bool:
    """Whether a part with recurrences has power series, with fewer operations on its steps."""
    return is_tried(as_written(part)) and operations_of_steps(part) > 0


@dataclass(frozen=True, slots=True)
class BoundRule:
    """One principle: `bound` encloses the derivatives over a ball, or is None where it does not
    apply.

    `reads_written`: it looks for elementwise sums, which the Gram form hides, and takes the
    objective as written. `is_unlimited`: it holds over the whole space too. `is_quick`: it takes
    milliseconds. `suffices`: the parts for which long rules hardly ever have smaller bounds.
    `is_long`: the parts for which it is so slow that it is skipped where another rule suffices.
    `by_cells`: it covers the ball by cells. `closes_gaps`: it costs more, for parts where the
    others leave a gap to the derivatives at the centre. `bounds_third`: the parts for which it
    bounds D³f. `close`: once it has bounds, those within these factors of sampled values
    are not worth costlier rules. `waits`: the parts for which it is tried last, as it costs more
    than the rules that close gaps.
    """

    bound: Callable[[ObjectivePart, float], Enclosure | None]
    reads_written: bool = False
    is_unlimited: bool = False
    is_quick: bool = False
    suffices: Callable[[ObjectivePart], bool] = never
    is_long: Callable[[ObjectivePart], bool] = never
    by_cells: bool = False
    closes_gaps: bool = False
    bounds_third: Callable[[ObjectivePart], bool] = always
    close: tuple[float, float] = (1.0, 1.0)
    waits: Callable[[ObjectivePart], bool] = never

    def read(self, part: ObjectivePart) -> ObjectivePart:
        """The form of the part that the rule takes."""
        return as_written(part) if self.reads_written else part

    @property
    def name(self) -> str:
        return self.bound.__name__.replace("_", " ")

    @property
    def stage(self) -> int:
        """0: always; 1: where no other suffices; 2: where the others leave a gap."""
        return 2 if self.closes_gaps else int(self.is_long is not never)


RULES = (
    BoundRule(linear_predictors, reads_written=True, suffices=is_large),
    BoundRule(layered_networks, reads_written=True, suffices=is_deep),
    BoundRule(log_sum_exp, reads_written=True),
    BoundRule(averages, reads_written=True),
    BoundRule(radial_functions, reads_written=True),
    BoundRule(interval_entries, by_cells=True, waits=is_stepwise),
    BoundRule(gradient_jets, is_long=is_long),
    BoundRule(majorant_series, is_unlimited=True, is_quick=True, suffices=always),
    BoundRule(symmetric_powers, suffices=always),
    BoundRule(power_series, reads_written=True, by_cells=True, closes_gaps=True, close=CLOSE),
    BoundRule(curved_terms, reads_written=True, closes_gaps=True),
    BoundRule(entries_over_the_ball, closes_gaps=True, bounds_third=is_third_within),
)
"""In any order: each is sound by itself, and the least of each bound is used."""
