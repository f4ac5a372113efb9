"""Where arrays live in the workspace: places are taken over once nothing reads what lies there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from slomodel.codegen.loops.fusion import Regions, elements
from slomodel.codegen.program import Stage
from slomodel.ir.expr import Expr

_LINE = 8
"""Arrays start at a cache line: this many doubles."""


@dataclass(frozen=True, slots=True)
class Place:
    """The first element of an array in the workspace, or of the output of this number."""

    start: int
    output: int | None = None


@dataclass(slots=True)
class _Life:
    """An array from the region that begins it to the last one that reads it."""

    size: int
    first: int
    last: int


class Memory:
    """The place of every stored node; `size` is the length of the workspace in elements."""

    def __init__(self, regions: Regions, outputs: Sequence[Expr]) -> None:
        self._regions = regions
        self._owner: dict[Expr, Expr] = {}
        for node in regions.order:
            if node in regions.stored:
                start = regions.in_place(node)
                self._owner[node] = node if start is None else self._owner[start]
        self.places: dict[Expr, Place] = {}
        self.given = self._given(outputs)
        self.size = self._fill()

    def _given(self, outputs: Sequence[Expr]) -> dict[int, Expr]:
        """The outputs that are computed right into the caller's array."""
        taken: dict[Expr, int] = {}
        for k, root in enumerate(outputs):
            owner = self._owner.get(root)
            if (
                owner is not None
                and root.rank
                and owner not in taken
                and self._stage(root) == "call"
            ):
                taken[owner] = k
        for node, owner in self._owner.items():
            if owner in taken:
                self.places[node] = Place(0, taken[owner])
        return {k: outputs[k] for k in taken.values()}

    def _stage(self, node: Expr) -> Stage:
        return self._regions.regions[self._regions.region_of[node]].stage

    def _lives(self) -> dict[Expr, _Life]:
        regions = self._regions
        end = len(regions.regions)
        lives: dict[Expr, _Life] = {}
        for place, region in enumerate(regions.regions):
            for node in region.nodes:
                if node in self._owner and node not in self.places:
                    owner = self._owner[node]
                    size = max(1, elements(regions.accesses.shape(owner)))
                    life = lives.setdefault(owner, _Life(size, place, place))
                    life.last = max(life.last, place)
                for base in self._bases(node):
                    if base in self._owner and self._owner[base] in lives:
                        life = lives[self._owner[base]]
                        # What is made once is there for every call.
                        again = region.stage != self._stage(base)
                        life.last = max(life.last, end if again else place)
        for root in regions.program.roots:
            base = regions.accesses.of(root).base
            if base in self._owner and self._owner[base] in lives:
                lives[self._owner[base]].last = end
        return lives

    def _bases(self, node: Expr) -> list[Expr]:
        regions = self._regions
        nodes = [read.node for read in regions.reads(node)]
        start = regions.start_of(node)
        return [regions.accesses.of(one).base for one in (*nodes, *((start,) if start else ()))]

    def _fill(self) -> int:
        """First fit: each array goes to the lowest gap among those alive at the same time.

        One that is read for the last time may be written over, element by element.
        """
        alive: dict[Expr, tuple[int, int]] = {}
        top = 0
        lives = self._lives()
        for owner, life in sorted(lives.items(), key=lambda item: item[1].first):
            alive = {one: where for one, where in alive.items() if lives[one].last >= life.first}
            size = -(-life.size // _LINE) * _LINE
            ending = (one for one in alive if lives[one].last == life.first)
            taken = next((one for one in ending if self._regions.overwrites(owner, one)), None)
            start = _gap(size, alive.values()) if taken is None else alive.pop(taken)[0]
            alive[owner] = (start, start + size)
            top = max(top, start + size)
            self.places[owner] = Place(start)
        for node, owner in self._owner.items():
            self.places[node] = self.places[owner]
        return top


def _gap(size: int, taken: Iterable[tuple[int, int]]) -> int:
    """Where the lowest gap of a size begins between what is taken."""
    start = 0
    for low, high in sorted(taken):
        if start + size <= low:
            break
        start = max(start, high)
    return start
