"""Index data that are constant or consecutive in runs, as those of the pairs j < i.

A list of tuples repeats each outer index for the numbers of an inner range. While one index is
constant and the other ones are consecutive, what they look up are numbers and slices.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from slomodel.codegen.loops.access import Numbers
from slomodel.codegen.loops.index_pieces import pieces_of
from slomodel.functions import add, sub
from slomodel.ir.expr import Const, Expr, Gather, Input, Listing, Lookup, Map
from slomodel.ir.walk import inputs, postorder
from slomodel.reference import evaluate

_LONG, _LONG_IF_KNOWN = 16, 8
"""The mean length of runs from which loops along them are faster than looking up."""
_MOST_ELEMENTS = 1 << 17
"""Elements of index data whose runs are determined once, in about a millisecond."""


@dataclass(frozen=True, slots=True)
class Runs:
    """Long runs of index data, in each of which neighbours differ by `step`.

    Where they are known, the first has `first` elements, each later one `growth` more than the
    last, and none more than `longest`; else `longest` is 0, and a loop determines where each ends.
    """

    step: int
    first: int = 0
    growth: int = 0
    longest: int = 0


def runs_of(prepared: Mapping[Input, Expr], numbers: Numbers) -> dict[Expr, Runs]:
    """The long runs of those prepared data that have them."""
    result: dict[Expr, Runs] = {}
    for data, pieces in pieces_of(prepared, numbers).items():
        if max(stop - start for start, stop, _ in pieces) >= _LONG:
            result[data] = Runs(1)
    for data, graph in prepared.items():
        steps: dict[Expr, int | None] = {}
        for node in postorder(graph):
            steps[node] = _step(node, steps)
        lengths = [_mean_length(node, numbers) for node in steps if isinstance(node, Listing)]
        step = steps[graph]
        if data.rank != 1 or step is None or not lengths:
            continue
        runs = _known(graph, step, numbers)
        if min(lengths) >= (_LONG_IF_KNOWN if runs.longest else _LONG):
            result[data] = runs
    return result


def _known(graph: Expr, step: int, numbers: Numbers) -> Runs:
    """Runs whose lengths are known if sizes alone determine the data and the growth is one."""
    if inputs(graph) or not 0 < graph.shape[0].value(numbers) <= _MOST_ELEMENTS:
        return Runs(step)
    table = np.asarray(evaluate([graph], {}, numbers)[0])
    ends = np.flatnonzero(np.diff(table) != step) + 1
    lengths = np.diff([0, *ends, table.size])
    growths = {int(one) for one in np.diff(lengths)} or {0}
    if len(growths) > 1:
        return Runs(step)
    return Runs(step, int(lengths[0]), growths.pop(), int(lengths.max()))


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
