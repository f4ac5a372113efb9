"""What loops carry from block to block: totals, and arrays that they initialise on the way."""

from __future__ import annotations

from dataclasses import dataclass

from slomodel.codegen.loops.names import Names
from slomodel.codegen.loops.nest import Element, Fill, Nest, Reduce

Rolling = dict[str, list[tuple[int, Reduce]]]


@dataclass(frozen=True, slots=True)
class Total:
    """Total number k of a loop: a sum with its accumulated rounding errors, or an extreme."""

    k: int
    result: str
    largest: str

    @property
    def start(self) -> str:
        if self.largest:
            return f"real a{self.k} = {'-' if self.largest == 'slo_max' else ''}INFINITY;"
        return f"double a{self.k} = 0.0, e{self.k} = 0.0;"

    def adding(self, text: str) -> str:
        """The statement that adds `text`, the total of a block or part, to this total."""
        if self.largest:
            return f"a{self.k} = {self.largest}(a{self.k}, {text});"
        return f"slo_add(&a{self.k}, &e{self.k}, {text});"

    def handing_on(self) -> list[str]:
        """The statements at the end of a part of the loop that store its total in `out`."""
        lost = [] if self.largest else [f"out[{2 * self.k + 1}] = e{self.k};"]
        return [f"out[{2 * self.k}] = a{self.k};", *lost]

    def joining(self, width: int) -> list[str]:
        """The statements that combine the stored total of part k of the loop with this total."""
        place = f"out[k * {width} + {2 * self.k}"
        lost = [] if self.largest else [f"e{self.k} += {place} + 1];"]
        return [self.adding(f"{place}]"), *lost]

    @property
    def end(self) -> str:
        settled = f"slo_settled(a{self.k}, e{self.k})"
        return f"{self.result} = {f'a{self.k}' if self.largest else settled};"


def rolling(nest: Nest, names: Names) -> Rolling:
    """Arrays that a loop initialises on the way: the statements that add to each, with offsets.

    The largest offset comes first: its statement is the first to reach each element, so it may
    store instead of adding. Only for loops along one axis in which all targets have stride 1: then,
    at the start of a block, exactly the elements before the largest offset have been initialised.
    """
    if len(nest.axes) != 1 or not nest.axes[0].size:
        return {}
    zeros = {fill.array for fill in nest.fills if isinstance(fill, Fill)}
    result: Rolling = {}
    spoilt: set[str] = set()
    for statement in nest.statements:
        if isinstance(statement, Reduce) and isinstance(statement.target, Element):
            position, base = statement.target.position, names.base(statement.target.array)
            if position.strides != (1,) or position.offset < 0 or position.lookups:
                spoilt.add(base)
            if statement.target.array in zeros:
                result.setdefault(base, []).append((position.offset, statement))
    return {
        base: sorted(own, key=lambda pair: -pair[0])
        for base, own in result.items()
        if base not in spoilt
    }
