"""Constants that a long sum has written out, as data of the problem."""

from __future__ import annotations

from slomodel.problem import DataDeclaration
from slomodel.rewrite import Rolled


def constants(rolled: Rolled) -> tuple[DataDeclaration, ...]:
    """Declarations of the tables of a rolled objective, with their values."""
    return tuple(DataDeclaration(node, values=values) for node, values in rolled.tables.items())
