"""Settings of bounds from the text of a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import slomodel
from slomodel.bounds import ObjectivePart
from slomodel.bounds.enclosure import Enclosure
from slomodel.bounds.pipeline import answer
from slomodel.bounds.rules.table import BoundRule

Bound = Callable[[ObjectivePart, float], Enclosure | None]


def setting(text: str, centre: list[float], **data: object) -> ObjectivePart:
    """The setting of a model at a centre (n,)."""
    model = slomodel.compile(text, data=data)
    found = model._part(np.asarray(centre, dtype=float))
    assert isinstance(found, ObjectivePart)
    return found


@dataclass(frozen=True, slots=True)
class Claimed:
    """Both constants by one rule alone, with what explains them."""

    L1: float
    L2: float
    reason: str
    rule: str
    rule2: str
    trace: tuple[str, ...]
    trace2: tuple[str, ...]
    enclosure: Enclosure


def claimed(bound: Bound, one: ObjectivePart, radius: float) -> Claimed | None:
    """What a rule claims without the others; None where it does not apply."""
    found = answer(BoundRule(bound), one, radius)
    if found is None:
        return None
    first, second = found.claims()
    names, traces = (first.rule, second.rule), (first.trace, second.trace)
    return Claimed(first.value, second.value, first.reason, *names, *traces, found.enclosure)
