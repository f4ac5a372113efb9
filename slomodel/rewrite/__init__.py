"""Passes from graph to graph: the same function with more accurate values or with less work."""

from slomodel.rewrite.facts import Facts
from slomodel.rewrite.passes import (
    PASSES,
    Change,
    Formulated,
    Optimized,
    Pass,
    chosen,
    for_derivatives,
    formulated,
    optimized,
)
from slomodel.rewrite.replacement import carried, choices_added, composed
from slomodel.rewrite.rolling import Rolled
from slomodel.rewrite.stable_forms.rules import rewritten, stable
from slomodel.rewrite.symmetry.symmetry import Joint
from slomodel.rewrite.work import work_once

__all__ = [
    "PASSES",
    "Change",
    "Facts",
    "Formulated",
    "Joint",
    "Optimized",
    "Pass",
    "Rolled",
    "carried",
    "choices_added",
    "chosen",
    "composed",
    "for_derivatives",
    "formulated",
    "optimized",
    "rewritten",
    "stable",
    "work_once",
]
