"""Radius D and margin d of the epochs' balls: defaults and what the theorems ask of them."""

from __future__ import annotations

from collections.abc import Mapping

from slomodel.solve.norms import norm
from slomodel.solve.options import MethodContext, bad_value, number

# A D that equals its least value but for rounding is accepted.
SLACK = 1e-12


def is_auto(given: Mapping[str, object]) -> bool:
    """Whether D='auto' is asked for: every step has a ball of its own."""
    return isinstance(given.get("D"), str) and given["D"] == "auto"


def margin(value: object, *, closed: bool) -> float:
    """The margin d; 0 is allowed where `closed`."""
    return number("d", value, 0.0, closed=closed)


def radius(given: Mapping[str, object], context: MethodContext, d: float) -> float:
    """The radius D; when none is given max(1, ‖x0‖), or 1 where constants are estimated.

    Samples say less the larger the ball is. The default is large enough for d and any √ε ≤ gtol.
    """
    value = given.get("D")
    if value is not None:
        return fixed_radius(value)
    by_start = 1.0 if context.estimated else norm(context.x0)
    return max(1.0, by_start, 4.0 * context.gtol, 4.0 * d)


def fixed_radius(value: object) -> float:
    """A radius that is given as a number."""
    if isinstance(value, str):
        remedy = "give a number, or leave D out; D='auto' goes with pgd and tgd alone"
        raise bad_value("D", "a finite number > 0", value, remedy)
    return number("D", value, 0.0)


def require_epoch_descent(D: float, d: float, tolerance: float) -> None:
    """D ≥ √ε/2 + 2d, √ε the tolerance: an epoch then descends by √ε·D/4 (lemma:meta-epoch)."""
    least = tolerance / 2.0 + 2.0 * d
    if least > D * (1.0 + SLACK):
        terms = f"√ε/2 + 2d = {least:g}" if d > 0.0 else f"√ε/2 = {least:g}"
        raise bad_value("D", f"a number ≥ {terms}", D)
