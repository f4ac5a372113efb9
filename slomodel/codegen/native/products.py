"""Products of two arrays: BLAS for large ones, loops of fixed length for small ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from slomodel.codegen.loops.access import c_order, merged_axes
from slomodel.codegen.loops.fusion import Fusion, elements
from slomodel.codegen.lower import Blocks
from slomodel.codegen.native.names import Names
from slomodel.codegen.native.passes import indented
from slomodel.ir.expr import Axes, Einsum, Expr

SMALL = 4096
"""Up to so many multiplications a product is written out as loops."""


@dataclass(frozen=True, slots=True)
class _Side:
    """Labels with their sizes and the steps of the left, right and result arrays along them."""

    size: int
    left: int
    right: int
    result: int


def product_lines(node: Einsum, regions: Fusion, names: Names) -> list[str]:
    """The statements that compute a product into its place."""
    printer = _Product(node, regions, names)
    if 0 in printer.sizes.values():
        size = elements(regions.accesses.shape(node))
        return [f"slo_fill({printer.texts[2]}, {size}, 0.0);"] if size else []
    return printer.lines()


class _Product:
    """One product: the strides of both operands and the result along every label."""

    def __init__(self, node: Einsum, regions: Fusion, names: Names) -> None:
        self.node = node
        self.blocks = Blocks.of_node(node)
        numbers = regions.accesses.numbers
        self.sizes = {label: dim.size(numbers) for label, dim in enumerate(node.dims)}
        accesses = [regions.accesses.of(operand) for operand in node.operands]
        self.steps = [
            dict(zip(own, access.strides, strict=True))
            for own, access in zip(node.inputs, accesses, strict=True)
        ]
        own = c_order(regions.accesses.shape(node))
        self.steps.append(dict(zip(node.output, own, strict=True)))
        self.texts = [
            f"({names.base(a.base)}) + {a.offset}" if a.base.rank else self._one(a.base, names)
            for a in accesses
        ]
        self.texts.append(names.base(node))
        self.is_plain = all(a.base.rank for a in accesses)

    @staticmethod
    def _one(scalar: Expr, names: Names) -> str:
        """The address of a number that stands for a whole array: all its steps are 0."""
        return f"&(const real){{{names.scalar(scalar)}}}"

    def lines(self) -> list[str]:
        work = elements(list(self.sizes.values()))
        batch = elements([self.sizes[label] for label in self.blocks.batch])
        call = None
        if work // batch > SMALL and self.is_plain:
            call = self._blas()
        body = call if call is not None else self._loops()
        lines = [
            f"const real *const a0 = {self.texts[0]};",
            f"const real *const b0 = {self.texts[1]};",
            f"real *const c0 = {self.texts[2]};",
        ]
        return ["{", *indented([*lines, *self._over_batch(body)]), "}"]

    def _over_batch(self, body: list[str]) -> list[str]:
        """The body for every place of the batch, with a, b and c at its matrices."""
        moves = ["", "", ""]
        for k, label in enumerate(self.blocks.batch):
            for j in range(3):
                step = self.steps[j].get(label, 0)
                moves[j] += f" + q{k} * {step}" if step else ""
        lines = [
            f"const real *a = a0{moves[0]}, *b = b0{moves[1]};",
            f"real *c = c0{moves[2]};",
            *body,
        ]
        for k, label in reversed(list(enumerate(self.blocks.batch))):
            size = self.sizes[label]
            lines = [f"for (long q{k} = 0; q{k} < {size}; q{k}++) {{", *indented(lines), "}"]
        return lines

    def _side(self, labels: Axes) -> _Side | None:
        """The labels as one axis; None where their steps do not allow it."""
        sizes = [self.sizes[label] for label in labels]
        every = [[steps.get(label, 0) for label in labels] for steps in self.steps]
        merged = merged_axes(sizes, every)
        if len(merged) > 1:
            return None
        if not merged:
            return _Side(1, 0, 0, 0)
        size, (left, right, result) = merged[0]
        return _Side(size, left, right, result)

    def _blas(self) -> list[str] | None:
        """A call of gemm or gemv; None where no leading dimension describes the operands."""
        rows, columns, summed = (
            self._side(labels)
            for labels in (self.blocks.left, self.blocks.right, self.blocks.summed)
        )
        if rows is None or columns is None or summed is None:
            return None
        if columns.size == 1 or rows.size == 1:
            return self._gemv(rows, columns, summed)
        left = _leading(rows.size, rows.left, summed.size, summed.left)
        right = _leading(summed.size, summed.right, columns.size, columns.right)
        if left is None or right is None or columns.result != 1:
            return None
        # Column-major BLAS: the transposed result is the product of the transposed factors.
        arguments = f"{columns.size}, {rows.size}, {summed.size}"
        return [
            f"slo_gemm(blas, '{right[0]}', '{left[0]}', {arguments}, b, {right[1]}, "
            f"a, {left[1]}, c, {max(1, rows.result)});"
        ]

    def _gemv(self, rows: _Side, columns: _Side, summed: _Side) -> list[str] | None:
        if columns.size == 1:
            matrix, vector, free, step, along = "a", "b", rows, rows.left, summed.left
            other, out = summed.right, rows.result
        else:
            matrix, vector, free, step, along = "b", "a", columns, columns.right, summed.right
            other, out = summed.left, columns.result
        shape = _leading(free.size, step, summed.size, along)
        if shape is None:
            return None
        turned, leading = shape
        # `N` of _leading: rows lie along memory, which column-major gemv sees as the transpose.
        kind, m, n = (
            ("T", summed.size, free.size) if turned == "N" else ("N", free.size, summed.size)
        )
        return [
            f"slo_gemv(blas, '{kind}', {m}, {n}, {matrix}, {leading}, {vector}, {other or 1}, "
            f"c, {out or 1});"
        ]

    def _loops(self) -> list[str]:
        """Loops of fixed length, the innermost along the result where its operand lies so."""
        labels = [*self.blocks.left, *self.blocks.summed, *self.blocks.right]
        inner_sums = not self.blocks.right or self.steps[1].get(self.blocks.right[-1], 0) != 1
        if inner_sums:
            labels = [*self.blocks.left, *self.blocks.right, *self.blocks.summed]
        places = ["", "", ""]
        for label in labels:
            for j in range(3):
                step = self.steps[j].get(label, 0)
                places[j] += f" + l{label} * {step}" if step else ""
        product = f"a[0{places[0]}] * b[0{places[1]}]"
        free = elements([self.sizes[k] for k in (*self.blocks.left, *self.blocks.right)])
        if inner_sums:
            summed = self.blocks.summed
            lines = [
                "real t = 0.0;",
                *self._for([f"t += {product};"], summed),
                f"c[0{places[2]}] = t;",
            ]
            return self._for(lines, (*self.blocks.left, *self.blocks.right))
        body = self._for([f"c[0{places[2]}] += {product};"], labels)
        return [f"slo_fill(c, {free}, 0.0);", *body]

    def _for(self, lines: list[str], labels: Sequence[int]) -> list[str]:
        for label in reversed(labels):
            size = self.sizes[label]
            lines = [
                f"for (long l{label} = 0; l{label} < {size}; l{label}++) {{",
                *indented(lines),
                "}",
            ]
        return lines


def _leading(rows: int, row_step: int, columns: int, column_step: int) -> tuple[str, int] | None:
    """How BLAS sees a matrix: `N` where rows lie along memory, `T` where columns do.

    The number is the leading dimension. None where neither has step 1.
    """
    if column_step == 1 or columns == 1:
        return "N", max(row_step if rows > 1 else columns, columns)
    if row_step == 1 or rows == 1:
        return "T", max(column_step if columns > 1 else rows, rows)
    return None
