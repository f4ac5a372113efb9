"""Refinements: tighter bounds where those of a rule may be loose, all behind one interface.

A refinement is given the part at its centre, over a ball where it does not hold for all, and the
bounds so far; it returns smaller ones, or None where it does not apply or cannot improve on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

Of = TypeVar("Of")
Known = TypeVar("Known")
Refinement = Callable[[Of, Known], Known | None]


def refine(part: Of, known: Known, refinements: Iterable[Refinement[Of, Known]]) -> Known:
    """The bounds after all refinements, each applied to those that the ones before it leave."""
    for one in refinements:
        known = one(part, known) or known
    return known
