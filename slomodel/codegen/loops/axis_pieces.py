"""Steps of loops whose values are put together from slices: computed piece by piece.

The neighbours u[(i + 1) % n] of an array are two slices of it inside zeros, and so is what is added
to them. A value computed from such arrays needs none of them in memory: between the ends of slices
each of its elements is a function of elements at fixed distances, and the pieces are loops that
read neighbours where they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import pairwise, product
from math import prod

from slomodel.codegen.loops.access import Numbers
from slomodel.codegen.program import is_slice
from slomodel.functions import add
from slomodel.ir import build
from slomodel.ir.dims import Dim, concrete
from slomodel.ir.expr import Affine, Axes, Expr, Gather, Map, Scatter, affine, remake
from slomodel.ir.walk import postorder, users

_LEAST = 16
"""Elements of an array from which its pieces are faster than zeros that are written and read."""
_MOST_CUTS = 5
"""Pieces along an axis: a shift to either side has three."""
_MOST_NODES = 400
"""Upper limit on the operations of all pieces of a value: each is compiled by itself."""

Box = tuple[tuple[int, int], ...]
"""For each axis the first index and the one after the last."""


def in_pieces(roots: Sequence[Expr], numbers: Numbers) -> list[Expr]:
    """Roots of one step in which values computed from slices are sums of pieces."""
    order = postorder(*roots)
    using = users(order)
    cut = {node for node in order if _is_put(node)}
    for node in order:
        if isinstance(node, Map) and any(operand in cut for operand in node.operands):
            cut.add(node)
    # Values of which nothing but these values is computed are divided with them.
    inner: set[Expr] = set()
    for node in reversed(order):
        if isinstance(node, Map) and node.rank and node not in roots and node not in cut:
            own = using[node]
            if own and all(isinstance(user, Map) and user in cut | inner for user in own):
                inner.add(node)
    done: dict[Expr, Expr] = {}
    for node in order:
        operands = tuple(done[operand] for operand in node.operands)
        inside = all(isinstance(user, Map) for user in using[node]) and using[node]
        here = node in cut and node.dtype == "real" and (node in roots or not inside)
        here = here and isinstance(node, Map)
        pieces = _Pieces(done, cut, inner, numbers).of(node) if here else None
        done[node] = pieces or (remake(node, operands) if operands else node)
    return [done[root] for root in roots]


def _is_put(node: Expr) -> bool:
    """Whether a node is an array with its axes in order, placed in a slice of an array of zeros."""
    if not isinstance(node, Scatter) or node.operands[0].rank != node.rank:
        return False
    if not is_slice(node.index):
        return False
    unit = [tuple(int(k == axis) for k in range(node.rank)) for axis in range(node.rank)]
    return [one.coefficients for one in affine(node.index)] == unit


class _Pieces:
    """The division of one value.

    `done` are the new forms of nodes, `cut` those made of slices, `inner` others to divide.
    """

    def __init__(
        self, done: dict[Expr, Expr], cut: set[Expr], inner: set[Expr], numbers: Numbers
    ) -> None:
        self._done = done
        self._cut = cut
        self._inner = inner
        self._numbers = numbers
        self._made: dict[tuple[Expr, Box], Expr | None] = {}

    def of(self, node: Expr) -> Expr | None:
        """The sum of the pieces of a value; None where they do not pay."""
        shape = self._shape(node)
        cuts = self._cuts(node)
        if prod(shape) < _LEAST or any(len(own) > _MOST_CUTS + 1 for own in cuts):
            return None
        boxes = list(product(*(list(pairwise(sorted(own))) for own in cuts)))
        sizes = [prod(stop - start for start, stop in box) for box in boxes]
        if not len(boxes) > 1 or 2 * max(sizes) < prod(shape):
            return None
        if len(boxes) * self._count(node) > _MOST_NODES:
            return None
        terms = []
        for box in boxes:
            value = self._piece(node, box)
            if value is not None:
                index = [_along(k, start, node.rank) for k, (start, _) in enumerate(box)]
                terms.append(build.scatter(value, index, node.shape))
        return reduce(lambda a, b: build.apply(add, a, b), terms) if terms else None

    def _shape(self, node: Expr) -> tuple[int, ...]:
        return concrete(node.shape, self._numbers)

    def _count(self, node: Expr) -> int:
        """The operations of a value that are repeated in each of its pieces."""
        seen: set[Expr] = set()
        waiting = [node]
        while waiting:
            one = waiting.pop()
            if (one in self._cut or one in self._inner) and one not in seen:
                seen.add(one)
                waiting += one.operands
        return len(seen)

    def _cuts(self, node: Expr) -> list[set[int]]:
        """The places along each axis at which slices below a value begin or end."""
        shape = self._shape(node)
        cuts = [{0, size} for size in shape]
        waiting: list[tuple[Expr, Axes]] = [(node, tuple(range(node.rank)))]
        seen = set(waiting)
        while waiting:
            one, axes = waiting.pop()
            if isinstance(one, Scatter):
                sizes = self._shape(one.operands[0])
                for axis, index, size in zip(axes, affine(one.index), sizes, strict=True):
                    start = index.offset.value(self._numbers)
                    cuts[axis] |= {start, start + size}
                continue
            assert isinstance(one, Map)
            for operand, own in zip(one.operands, one.axes, strict=True):
                reached = operand, tuple(axes[k] for k in own)
                if operand in self._cut and reached not in seen:
                    seen.add(reached)
                    waiting.append(reached)
        return cuts

    def _piece(self, node: Expr, box: Box) -> Expr | None:
        """The elements of a value in a box; None if they are 0, outside of a slice."""
        key = node, box
        if key not in self._made:
            self._made[key] = self._computed(node, box)
        return self._made[key]

    def _computed(self, node: Expr, box: Box) -> Expr | None:
        if node not in self._cut and node not in self._inner:
            return _part(self._done[node], box)
        if isinstance(node, Scatter):
            begins = [index.offset.value(self._numbers) for index in affine(node.index)]
            sizes = self._shape(node.operands[0])
            moved = tuple((a - k, b - k) for (a, b), k in zip(box, begins, strict=True))
            if any(a < 0 or b > size for (a, b), size in zip(moved, sizes, strict=True)):
                return None
            return _part(self._done[node.operands[0]], moved)
        assert isinstance(node, Map)
        operands = []
        for operand, own in zip(node.operands, node.axes, strict=True):
            inner = tuple(box[axis] for axis in own)
            piece = self._piece(operand, inner)
            operands.append(build.zeros(_lengths(inner)) if piece is None else piece)
        return build.apply_along(node.function, operands, node.axes, _lengths(box))


def _lengths(box: Box) -> tuple[Dim, ...]:
    return tuple(Dim((), stop - start) for start, stop in box)


def _along(axis: int, start: int, rank: int) -> Affine:
    return Affine(Dim((), start), tuple(int(k == axis) for k in range(rank)))


def _part(node: Expr, box: Box) -> Expr:
    """The elements of an array in a box; a slice of a slice is one slice."""
    if not node.rank:
        return node
    index = [_along(axis, start, node.rank) for axis, (start, _) in enumerate(box)]
    if isinstance(node, Gather) and is_slice(node.index):
        starts = [start for start, _ in box]
        index = [
            Affine(
                one.offset + sum(c * k for c, k in zip(one.coefficients, starts, strict=True)),
                one.coefficients,
            )
            for one in affine(node.index)
        ]
        node = node.operands[0]
    return build.gather(node, index, _lengths(box))
