"""Where arrays live in the workspace: memory is reused once no later loop reads its contents."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass

from slomodel.codegen.loops.access import c_order
from slomodel.codegen.loops.fusion import Fusion, elements
from slomodel.codegen.program import Stage
from slomodel.ir.expr import Expr, Recur
from slomodel.ir.loop import StateAt

LINE = 8
"""Doubles per cache line; arrays start at a multiple of it."""


@dataclass(frozen=True, slots=True)
class Place:
    """The first element of an array: in the workspace, or in the output of this number."""

    start: int
    output: int | None = None


@dataclass(slots=True)
class _Life:
    """The lifetime of an array: from the region that first writes it to the last that reads it."""

    size: int
    first: int
    last: int


class _Gaps:
    """The free gaps below the end of the used memory; the lowest of each size comes first."""

    def __init__(self) -> None:
        self._starts: dict[int, list[int]] = {}
        self._by_start: dict[int, int] = {}
        self._by_end: dict[int, int] = {}
        self._end = 0
        self.most = 0

    def take(self, size: int) -> int:
        """The start of the lowest gap that is large enough, or else of new memory at the end."""
        roomy = [(starts[0], own) for own, starts in self._starts.items() if own >= size]
        if not roomy:
            start = self._end
            self._end += size
            self.most = max(self.most, self._end)
            return start
        start, own = min(roomy)
        self._remove(start, own)
        if own > size:
            self._add(start + size, own - size)
        return start

    def give(self, start: int, size: int) -> None:
        """Free a stretch of memory and merge it with neighbouring gaps."""
        end = start + size
        if end in self._by_start:
            own = self._by_start[end]
            self._remove(end, own)
            end += own
        if start in self._by_end:
            own = self._by_end[start]
            self._remove(start - own, own)
            start -= own
        if end == self._end:
            self._end = start
        elif start < end:
            self._add(start, end - start)

    def _add(self, start: int, size: int) -> None:
        insort(self._starts.setdefault(size, []), start)
        self._by_start[start] = self._by_end[start + size] = size

    def _remove(self, start: int, size: int) -> None:
        starts = self._starts[size]
        del starts[bisect_left(starts, start)]
        if not starts:
            del self._starts[size]
        del self._by_start[start], self._by_end[start + size]


class Memory:
    """The place of every stored node; `size` is the length of the workspace in elements."""

    def __init__(self, regions: Fusion, outputs: Sequence[Expr]) -> None:
        self._regions = regions
        self._owner = regions.owners
        self.places: dict[Expr, Place] = {}
        self.given = self._given(outputs)
        self.size = self._fill()

    def _given(self, outputs: Sequence[Expr]) -> dict[int, Expr]:
        """The outputs that are computed directly in the caller's array."""
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
                        # A value computed in an earlier stage is needed at every call.
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

        An array that is read for the last time may be overwritten, element by element.
        """
        lives = self._lives()
        order = sorted(lives, key=lambda owner: lives[owner].first)
        ending: dict[int, list[Expr]] = {}
        for owner in order:
            ending.setdefault(lives[owner].last, []).append(owner)
        gaps = _Gaps()
        alive: dict[Expr, int] = {}
        passed = 0
        for owner in order:
            first = lives[owner].first
            for place in range(passed, first):
                for one in ending.get(place, ()):
                    if one in alive:
                        gaps.give(alive.pop(one), _rounded(lives[one].size))
            passed = first
            last = (one for one in ending.get(first, ()) if one in alive)
            taken = next((one for one in last if self._may_overwrite(owner, one)), None)
            size = _rounded(lives[owner].size)
            alive[owner] = gaps.take(size) if taken is None else alive.pop(taken)
            self.places[owner] = Place(alive[owner])
        for node, owner in self._owner.items():
            self.places[node] = self.places[owner]
        return gaps.most

    def _may_overwrite(self, owner: Expr, last: Expr) -> bool:
        """Whether an array may take the memory of one that its loop is the last to read."""
        if isinstance(owner, Recur):
            return self._begins_as(owner, last)
        return self._regions.overwrites(owner, last)

    def _begins_as(self, state: Recur, last: Expr) -> bool:
        """Whether a state begins as another array, and its loop reads that nowhere else."""
        first, accesses = state.loop.initial[state.state], self._regions.accesses
        if first is None or state.loop.initial.count(first) > 1:
            return False
        owners = [self._owner.get(accesses.of(one).base) for one in state.operands]
        read = {
            source.operand for _, source in state.loop.sources if not isinstance(source, StateAt)
        }
        if owners[first] is not last or owners.count(last) > 1 or first in read:
            return False
        shape, own = accesses.shape(state), accesses.of(state.operands[first])
        same = accesses.shape(state.operands[first]) == shape == accesses.shape(last)
        return same and own.offset == 0 and own.strides == c_order(shape)


def _rounded(size: int) -> int:
    return -(-size // LINE) * LINE
