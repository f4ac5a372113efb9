"""Which computations share a kernel: each element at its own place, and sums along the same axes.

The loops are those of target `c`, with what threads ask for: sums in one kernel run along the same
axes, and what is put into parts of an array is collected by each element of the array, so that no
two threads write to one place and every sum has one order.
"""

from __future__ import annotations

from collections.abc import Iterator

from slomodel.codegen.loops.access import Accesses, Numbers, merged_axes
from slomodel.codegen.loops.fusion import Read, Regions, loop_labels
from slomodel.codegen.lower import Blocks
from slomodel.codegen.program import Form, Program, Stage, is_slice
from slomodel.ir.expr import Axes, Einsum, Expr, Extreme, Index, Scatter, affine

Term = tuple[Expr, tuple[Index, ...] | None]
"""An array and where its elements are put; None for an array of the whole shape."""


class DeviceRegions(Regions):
    """The kernels of a program, in order."""

    def __init__(self, program: Program, numbers: Numbers) -> None:
        self.program = program
        self.forms = program.forms
        self.steps = {step.node: step for step in program.steps}
        self.written: set[Expr] = set()
        self.chained = {
            step.in_place
            for step in program.steps
            if step.in_place is not None and self._collects(step.in_place)
        }
        self._kept: dict[int, Axes | None] = {}
        self.accesses = Accesses(self.is_view, numbers)
        self.written = {
            operand
            for step in program.steps
            if self.is_matrix_product(step.node)
            for k, operand in enumerate(step.node.operands)
            if not self._is_matrix(step.node, k)
        }
        super().__init__(program, numbers)

    def is_view(self, node: Expr) -> bool:
        return node not in self.written and super().is_view(node)

    def terms(self, node: Expr) -> list[Term]:
        """What is added up, in order, to a node that collects."""
        if self.forms[node] is Form.PUT:
            assert isinstance(node, Scatter)
            return [(node.operands[0], node.index)]
        step = self.steps[node]
        assert step.added is not None
        start, term = step.reads
        before: list[Term] = self.terms(start) if start in self.chained else [(start, None)]
        return [*before, (term, step.added.index)]

    def collects(self, node: Expr) -> bool:
        """True for an array into whose slices others are put."""
        return self._collects(node)

    def kept(self, place: int) -> Axes | None:
        """The axes of a region's loop along which its sums do not run; None without sums."""
        return self._kept.get(place)

    def reads(self, node: Expr) -> Iterator[Read]:
        if self.collects(node):
            yield from (Read(term, tuple(range(term.rank))) for term, _ in self.terms(node))
        else:
            yield from super().reads(node)

    def start_of(self, node: Expr) -> Expr | None:
        return None

    def in_place(self, node: Expr) -> Expr | None:
        return None

    def _collects(self, node: Expr) -> bool:
        form = self.forms[node]
        if form is Form.ACCUMULATE:
            return True
        if form is not Form.PUT:
            return False
        assert isinstance(node, Scatter)
        if not is_slice(node.index):
            return False
        named = {axis for one in affine(node.index) for axis, c in enumerate(one.coefficients) if c}
        return len(named) == node.operands[0].rank

    def overwrites(self, node: Expr, base: Expr) -> bool:
        """Never: threads read and write in no order."""
        return False

    def _quick(self) -> set[Expr]:
        return set()

    def _is_matrix(self, node: Expr, k: int) -> bool:
        """True where the blocks of operand k of a product are each one axis of memory."""
        assert isinstance(node, Einsum)
        blocks = Blocks.of_node(node)
        sizes = [dim.size(self.accesses.numbers) for dim in node.dims]
        access = self.accesses.of(node.operands[k])
        if not access.base.rank:
            return False
        steps = dict(zip(node.inputs[k], access.strides, strict=True))
        for block in ((blocks.left, blocks.right)[k], blocks.summed):
            if len(merged_axes([sizes[n] for n in block], [[steps[n] for n in block]])) > 1:
                return False
        return True

    def _is_alone(self, node: Expr) -> bool:
        moved = node in self.written or self.forms[node] in (Form.PUT, Form.ACCUMULATE)
        return moved or super()._is_alone(node)

    def _is_computed(self, node: Expr) -> bool:
        return node not in self.chained and super()._is_computed(node)

    def _crosses(self, node: Expr) -> bool:
        return node in self.region_of

    def _admits(self, place: int, node: Expr) -> bool:
        kept, own = self._kept_axes(node), self._kept.get(place)
        return kept is None or own is None or kept == own

    def _place(self, node: Expr, stage: Stage) -> None:
        super()._place(node, stage)
        kept = self._kept_axes(node)
        if kept is not None:
            self._kept[self.region_of[node]] = kept

    def _kept_axes(self, node: Expr) -> Axes | None:
        if self.is_value(node) or self._is_alone(node) or not any(o.rank for o in node.operands):
            return None
        if isinstance(node, Extreme):
            return tuple(k for k in range(node.operands[0].rank) if k not in node.axes)
        assert isinstance(node, Einsum)
        return tuple(k for k, label in enumerate(loop_labels(node)) if label in node.output)
