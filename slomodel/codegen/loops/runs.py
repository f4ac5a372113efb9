"""Index data that are constant or consecutive in runs, as those of the pairs j < i.

A list of tuples repeats each outer index for the numbers of an inner range. While one index is
constant and the other ones are consecutive, what they look up are numbers and slices.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from slomodel.codegen.loops.access import Numbers
from slomodel.codegen.loops.index_pieces import pieces_of
from slomodel.functions import add, sub
from slomodel.ir.expr import Const, Expr, Gather, Input, Listing, Lookup, Map
from slomodel.ir.walk import postorder

_LONG = 16
"""The mean length of runs from which loops along them are faster than looking up."""


def runs_of(prepared: Mapping[Input, Expr], numbers: Numbers) -> dict[Expr, int]:
    """The differences of neighbours within long runs, for those prepared data that have them.

    They are expected, not certain: a loop determines where each run ends.
    """
    result: dict[Expr, int] = {}
    for data, pieces in pieces_of(prepared, numbers).items():
        if max(stop - start for start, stop, _ in pieces) >= _LONG:
            result[data] = 1
    for data, graph in prepared.items():
        steps: dict[Expr, int | None] = {}
        for node in postorder(graph):
            steps[node] = _step(node, steps)
        lengths = [_mean_length(node, numbers) for node in steps if isinstance(node, Listing)]
        step = steps[graph]
        if data.rank == 1 and step is not None and lengths and min(lengths) >= _LONG:
            result[data] = step
    return result


def _step(node: Expr, steps: Mapping[Expr, int | None]) -> int | None:
    """The difference of neighbours in a run; None if it is not known to be the same."""
    if isinstance(node, Listing):
        return {"parent": 0, "offset": 1}.get(node.what)
    if isinstance(node, Const):
        return 0
    if isinstance(node, Gather) and node.rank == 1 and len(node.index) == 1:
        (one,) = node.index
        return 0 if isinstance(one, Lookup) and steps[one.table] == 0 else None
    if isinstance(node, Map):
        own = [steps[operand] for operand in node.operands]
        known = [step for step in own if step is not None]
        if len(known) < len(own):
            return None
        if not any(known):
            return 0
        if node.function in (add, sub):
            return known[0] + known[1] if node.function is add else known[0] - known[1]
    return None


def _mean_length(node: Listing, numbers: Numbers) -> float:
    own, before = (
        prod(dim.value(numbers) for dim in one.shape) for one in (node, node.operands[0])
    )
    return own / before if before else 0.0
