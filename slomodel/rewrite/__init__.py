"""Passes from graph to graph: the same function with better values, or with less work."""

from slomodel.rewrite.facts import Facts
from slomodel.rewrite.passes import PASSES, Change, Optimized, Pass, chosen, optimized
from slomodel.rewrite.rolling import Rolled
from slomodel.rewrite.stable import carried, rewritten, stable
from slomodel.rewrite.symmetry import Joint
from slomodel.rewrite.work import work_once

__all__ = [
    "PASSES",
    "Change",
    "Facts",
    "Joint",
    "Optimized",
    "Pass",
    "Rolled",
    "carried",
    "chosen",
    "optimized",
    "rewritten",
    "stable",
    "work_once",
]
