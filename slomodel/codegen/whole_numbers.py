"""Whole numbers that a precision cannot hold: indices, and data declared as positions or counts."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from slomodel.errors import Diagnostic, TargetLimit
from slomodel.ir.expr import Expr, Input, Iota
from slomodel.ir.index_tables import tables_read

SINGLE_MOST = 2**24
"""float32 holds every whole number up to here, and not the next."""


def require_single(
    objective: Expr, wholes: Mapping[Input, NDArray[np.generic]], sizes: Mapping[str, int]
) -> None:
    """Raise TargetLimit if the objective computes in float32 with whole numbers beyond it.

    Positions at which arrays are read are integers in any precision, and do not count. `wholes` are
    the values of data that hold whole numbers.
    """
    seen: set[Expr] = set()
    stack = [objective]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if isinstance(node, Iota):
            _check(f"the index over {node.shape[0]}", node.shape[0].size(sizes) - 1)
        elif isinstance(node, Input) and node in wholes:
            _check(f"`{node.name}`", int(np.abs(wholes[node]).max(initial=0.0)))
        tables = tables_read(node)
        stack += [operand for operand in node.operands if operand not in tables]


def _check(what: str, largest: int) -> None:
    if largest > SINGLE_MOST:
        message = (
            f"{what} reaches {largest:,} in a condition or a term, and float32 holds whole numbers "
            f"only up to {SINGLE_MOST:,}"
        )
        raise TargetLimit(Diagnostic("E801", message, help="compile it with dtype='float64'"))
