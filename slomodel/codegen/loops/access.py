"""Where the elements of a lowered node lie: a place in memory and one stride per axis."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from slomodel.ir.expr import Affine, Einsum, Expr, Gather, Reshape, affine

Numbers = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Access:
    """The element `base[offset + sum(strides[k] * o[k])]` for an index o of some shape.

    `base` is a node with memory of its own in C order, or a scalar, whose strides are all 0.
    """

    base: Expr
    offset: int
    strides: tuple[int, ...]


def c_order(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides, in elements, of an array without gaps."""
    return tuple(prod(shape[k + 1 :]) for k in range(len(shape)))


def along(
    index: Sequence[Affine], strides: Sequence[int], rank: int, numbers: Numbers
) -> tuple[int, tuple[int, ...]]:
    """Offset, and strides along the axes of o, of the element `index(o)` of an array."""
    offset = 0
    moved = [0] * rank
    for one, stride in zip(index, strides, strict=True):
        offset += stride * one.offset.value(numbers)
        for axis, coefficient in enumerate(one.coefficients):
            moved[axis] += stride * coefficient
    return offset, tuple(moved)


class Accesses:
    """The access of every node; `is_view` says which nodes are views and not computed.

    `given` are accesses that are known beforehand, `layouts` the strides of arrays that are not
    stored in C order.
    """

    def __init__(
        self,
        is_view: Callable[[Expr], bool],
        numbers: Numbers,
        given: Mapping[Expr, Access] | None = None,
        layouts: Mapping[Expr, tuple[int, ...]] | None = None,
    ) -> None:
        self._is_view = is_view
        self._layouts = layouts or {}
        self.numbers = numbers
        self._kept: dict[Expr, Access] = dict(given or {})

    def shape(self, node: Expr) -> tuple[int, ...]:
        """The sizes of a node's axes: 0 for `n - 1` of a recurrence over no elements."""
        return tuple(max(0, dim.value(self.numbers)) for dim in node.shape)

    def of(self, node: Expr) -> Access:
        """The access of a node along its own axes."""
        chain = [node]
        while chain[-1] not in self._kept and self._is_view(chain[-1]):
            chain.append(chain[-1].operands[0])
        for one in reversed(chain):
            if one not in self._kept:
                self._kept[one] = self._viewed(one) if self._is_view(one) else self._own(one)
        return self._kept[node]

    def viewed(self, node: Expr) -> Access:
        """The access of a node as a view, even if its elements are copied."""
        self.of(node.operands[0])
        return self._viewed(node)

    def foldable(self, node: Reshape) -> bool:
        """Whether a reshape is a view of its operand: the same memory with other strides."""
        operand = node.operands[0]
        return (
            _reshaped(self.of(operand).strides, self.shape(operand), self.shape(node)) is not None
        )

    def _own(self, node: Expr) -> Access:
        return Access(node, 0, self._layouts.get(node) or c_order(self.shape(node)))

    def _viewed(self, node: Expr) -> Access:
        inner = self._kept[node.operands[0]]
        if isinstance(node, Einsum):
            own = dict(zip(node.inputs[0], inner.strides, strict=True))
            strides = tuple(own.get(label, 0) for label in node.output)
            return Access(inner.base, inner.offset, strides)
        if isinstance(node, Gather):
            offset, strides = along(affine(node.index), inner.strides, node.rank, self.numbers)
            return Access(inner.base, inner.offset + offset, strides)
        operand = node.operands[0]
        new = _reshaped(inner.strides, self.shape(operand), self.shape(node))
        assert new is not None, "a reshape that moves elements is computed"
        return Access(inner.base, inner.offset, new)


def _reshaped(
    strides: Sequence[int], shape: Sequence[int], wanted: Sequence[int]
) -> tuple[int, ...] | None:
    """Strides of the same elements under another shape; None if no strides give their order."""
    if prod(shape) == 0:
        return tuple(0 for _ in wanted)
    merged = merged_axes(shape, [strides])
    result: list[int] = []
    runs = [(size, own[0]) for size, own in merged]
    for size in reversed(wanted):
        if size == 1:
            result.append(0)
            continue
        if not runs:
            return None
        length, stride = runs[-1]
        if length % size:
            return None
        result.append(stride)
        runs[-1] = (length // size, stride * size)
        if runs[-1][0] == 1:
            runs.pop()
    return tuple(reversed(result))


def merged_axes(
    shape: Sequence[int], every: Sequence[Sequence[int]]
) -> list[tuple[int, tuple[int, ...]]]:
    """The axes that several accesses share, without those of size 1 and with neighbours merged.

    Neighbours are merged where all accesses allow it. Each axis is a size and one stride per
    access.
    """
    result: list[tuple[int, tuple[int, ...]]] = []
    for axis, size in enumerate(shape):
        own = tuple(strides[axis] for strides in every)
        if size == 1:
            continue
        if result:
            before, outer = result[-1]
            if all(a == b * size for a, b in zip(outer, own, strict=True)):
                result[-1] = (before * size, own)
                continue
        result.append((size, own))
    return result
