"""Values that later loops compute again or for themselves, so that fewer arrays pass between loops.

A loop computes each value as early as it can. Of what later loops read, it then writes every array
to memory, though many of them are quick to compute from a few: of n arrays between two loops, those
of a smallest cut in the graph of values are enough. Costly functions are computed once: they are
moved to a later loop only if nothing of the first one and no other loop needs them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf, prod
from typing import Protocol

from slomodel.codegen.loops.access import Accesses
from slomodel.codegen.loops.layouts import reads_rows
from slomodel.codegen.loops.regions import Read, Region
from slomodel.codegen.program import Form, Program
from slomodel.functions.cost import is_quick
from slomodel.ir.expr import Expr, Map
from slomodel.ir.walk import users

LEAST = 2048
"""Elements of a loop, at least: smaller arrays stay in the first cache, between loops too."""
_NARROW = 4
"""Factor by which operands are smaller than the value of a function that is cheap to recompute."""
_STORED, _READ = 2, 1
"""Costs of an array that is written and read, and of one that is in memory for other reasons."""


class PlacedLoops(Protocol):
    """The loops of a program once every node has its place: `Fusion`."""

    program: Program
    order: list[Expr]
    forms: Mapping[Expr, Form]
    accesses: Accesses
    regions: list[Region]
    region_of: dict[Expr, int]
    stored: set[Expr]

    def reads(self, node: Expr) -> Iterator[Read]: ...
    def loop_shape(self, node: Expr) -> tuple[int, ...]: ...
    def joins(self, node: Expr, operand: Expr) -> bool: ...
    def is_looked_up(self, node: Expr) -> bool: ...
    def is_computed_again(self, node: Expr) -> bool: ...


def is_narrow(loops: PlacedLoops, node: Expr) -> bool:
    """Whether a node is quick to compute from narrower arrays: x_i - y_j, looked up rows."""
    looked_up = loops.is_looked_up(node) and reads_rows(node)
    quick = isinstance(node, Map) and is_quick(node.function)
    if not (looked_up or quick) or node.rank < 2:
        return False
    size = prod(loops.accesses.shape(node))
    return all(_NARROW * prod(loops.accesses.shape(one)) <= size for one in node.operands)


def sunk(loops: PlacedLoops) -> set[Expr]:
    """The values that are computed where they are read."""
    using = users(loops.order)
    roots = {loops.accesses.of(root).base for root in loops.program.roots}
    result: set[Expr] = set()
    for place, region in enumerate(loops.regions):
        is_long = bool(region.shape) and prod(region.shape) >= LEAST
        if region.stage == "call" and not region.alone and is_long:
            result |= _LoopValues(loops, using, roots, place).sunk()
    return result


class _LoopValues:
    """The values of one loop as a graph, from what is in memory to what later loops read."""

    def __init__(
        self, loops: PlacedLoops, using: Mapping[Expr, list[Expr]], roots: set[Expr], place: int
    ) -> None:
        self._loops = loops
        self._using = using
        self._place = place
        region = loops.regions[place]
        self._shape = region.shape
        self._nodes = [node for node in region.nodes if self._is_full(node)]
        self._own = set(self._nodes)
        self._pinned: set[Expr] = set()
        # The places of later loops that need a value, and whether this loop needs it otherwise.
        self._later: dict[Expr, set[int]] = {}
        self._is_needed: dict[Expr, bool] = {}
        for node in reversed(self._nodes):
            later: set[int] = set()
            needed = node in roots or self._is_pinned(node)
            if needed:
                self._pinned.add(node)
            for user in using[node]:
                if loops.region_of.get(user, -1) != place:
                    later.add(loops.region_of.get(user, -1))
                elif user in self._own:
                    later |= self._later[user]
                    needed |= self._is_needed[user]
                else:
                    needed = True
            self._later[node], self._is_needed[node] = later, needed

    def _is_full(self, node: Expr) -> bool:
        """Whether a node is a function of elements at the same index of the loop."""
        is_value = isinstance(node, Map) and self._loops.forms[node] is Form.ELEMENTWISE
        again = self._loops.is_computed_again(node)
        return is_value and not again and self._loops.accesses.shape(node) == self._shape

    def _is_pinned(self, node: Expr) -> bool:
        """Whether a node has to be in memory: not all its users can read it in a loop."""
        loops, rank = self._loops, node.rank
        for user in self._using[node]:
            if user not in loops.region_of or not loops.joins(user, node):
                return True
            if loops.loop_shape(user) != self._shape:
                return True
            own = [read for read in loops.reads(user) if read.node is node]
            if not all(read.is_in_place(rank) for read in own):
                return True
        return False

    def _is_read_later(self, node: Expr) -> bool:
        """Whether a later loop reads a value itself."""
        return any(self._loops.region_of.get(user, -1) != self._place for user in self._using[node])

    def _can_sink(self, node: Expr) -> bool:
        if node in self._pinned or self._loops.region_of[node] != self._place:
            return False
        assert isinstance(node, Map)
        if is_quick(node.function):
            return True
        return not self._is_needed[node] and len(self._later[node]) == 1

    def _is_read(self, node: Expr) -> bool:
        """Whether a value that is not of this graph is an array as large as the loop."""
        again = self._loops.is_computed_again(node)
        return not again and self._loops.accesses.shape(node) == self._shape

    def sunk(self) -> set[Expr]:
        """The nodes behind a smallest cut, the one nearest to the later loops."""
        wanted = [node for node in self._nodes if self._is_read_later(node)]
        if len(wanted) < 2:
            return set()
        graph = _ValueFlow()
        for node in self._nodes:
            if not self._later[node]:
                continue
            movable = self._can_sink(node)
            free = not movable and self._is_read_later(node)
            graph.add((node, 0), (node, 1), 0 if free else _STORED)
            if self._is_read_later(node):
                graph.add((node, 1), _END, inf)
            if not movable:
                graph.add(_BEGIN, (node, 0), inf)
                continue
            assert isinstance(node, Map)
            if not is_quick(node.function):
                # Computed later, it is not computed here: nor are its users.
                for user in self._using[node]:
                    if user in self._own:
                        graph.add((user, 0), (node, 0), inf)
            for read in self._loops.reads(node):
                one = read.node
                if one in self._own:
                    graph.add((one, 1), (node, 0), inf)
                elif self._is_read(one):
                    known = one in self._loops.stored or one not in self._loops.region_of
                    graph.add(_BEGIN, (one, 0), inf)
                    graph.add((one, 0), (one, 1), _READ if known else _STORED)
                    graph.add((one, 1), (node, 0), inf)
        before = graph.behind_cut()
        return {node for node in self._nodes if (node, 0) in before and self._can_sink(node)}


_Vertex = tuple[Expr, int] | str
_BEGIN, _END = "begin", "end"


class _ValueFlow:
    """A network in which the largest flow from begin to end finds a smallest cut."""

    def __init__(self) -> None:
        self._room: dict[_Vertex, dict[_Vertex, float]] = {}

    def add(self, a: _Vertex, b: _Vertex, room: float) -> None:
        """An edge, once."""
        self._room.setdefault(a, {})[b] = room
        self._room.setdefault(b, {}).setdefault(a, 0)

    def behind_cut(self) -> set[_Vertex]:
        """The vertices from which the end can still be reached when the flow is largest."""
        if not {_BEGIN, _END} <= self._room.keys():
            return set(self._room)
        while path := self._path():
            least = min(self._room[a][b] for a, b in path)
            for a, b in path:
                self._room[a][b] -= least
                self._room[b][a] += least
        return self._reaching()

    def _path(self) -> list[tuple[_Vertex, _Vertex]]:
        """A shortest path with room from begin to end; empty if there is none."""
        came: dict[_Vertex, _Vertex] = {_BEGIN: _BEGIN}
        waiting: list[_Vertex] = [_BEGIN]
        for one in waiting:
            for other, room in self._room[one].items():
                if room > 0 and other not in came:
                    came[other] = one
                    waiting.append(other)
        if _END not in came:
            return []
        path = []
        end: _Vertex = _END
        while end != _BEGIN:
            path.append((came[end], end))
            end = came[end]
        return path

    def _reaching(self) -> set[_Vertex]:
        found: set[_Vertex] = {_END}
        waiting: list[_Vertex] = [_END]
        for one in waiting:
            for other in self._room[one]:
                if self._room[other].get(one, 0) > 0 and other not in found:
                    found.add(other)
                    waiting.append(other)
        return found
