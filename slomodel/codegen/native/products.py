"""Products of two arrays: BLAS for large ones, loops of fixed length for small ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from slomodel.codegen.loops.access import merged_axes
from slomodel.codegen.loops.fusion import elements
from slomodel.codegen.loops.names import Names
from slomodel.codegen.loops.nest import Contraction, Element, Scalar, strides_of
from slomodel.codegen.loops.text import indented
from slomodel.codegen.native.direct import DirectProduct, direct_lines
from slomodel.codegen.native.parallel import gemm_parts, gemv_parts
from slomodel.ir.expr import Axes

SHARED = "slo_shared_"
"""Prefix of the functions that divide a product among threads."""
SMALL = 4096
"""Up to this many multiplications a product is printed as loops."""


@dataclass(frozen=True, slots=True)
class _Side:
    """Labels merged to one axis: its size and the strides of both operands and the result."""

    size: int
    left: int
    right: int
    result: int


def product_lines(node: Contraction, names: Names, may_share: bool = False) -> list[str]:
    """The statements that compute a product into the memory of its result.

    With `may_share` long ones are cut into parts for several threads.
    """
    printer = _Product(node, names, may_share)
    if 0 in node.sizes:
        size = elements([node.sizes[k] for k in (*node.batch, *node.rows, *node.columns)])
        return [f"slo_fill({printer.texts[2]}, {size}, 0.0);"] if size else []
    return printer.lines()


class _Product:
    """One product: the strides of both operands and the result along every label."""

    def __init__(self, node: Contraction, names: Names, may_share: bool) -> None:
        self.node = node
        self.may_share = may_share
        self.sizes = node.sizes
        self.steps = [
            strides_of(one, len(node.sizes)) for one in (node.left, node.right, node.result)
        ]
        self.texts = [_address(one, names) for one in (node.left, node.right)]
        self.texts.append(names.base(node.result.array))
        self.is_plain = not any(isinstance(one, Scalar) for one in (node.left, node.right))

    def lines(self) -> list[str]:
        work = elements(self.sizes)
        batch = elements([self.sizes[label] for label in self.node.batch])
        call = None
        if work // batch > SMALL and self.is_plain:
            call = self._blas()
        body = call if call is not None else self._direct() or self._loops()
        lines = [
            f"const real *const a0 = {self.texts[0]};",
            f"const real *const b0 = {self.texts[1]};",
            f"real *const c0 = {self.texts[2]};",
        ]
        return ["{", *indented([*lines, *self._over_batch(body)]), "}"]

    def _over_batch(self, body: list[str]) -> list[str]:
        """The body for every index of the batch, with a, b and c pointing to its matrices."""
        moves = ["", "", ""]
        for k, label in enumerate(self.node.batch):
            for j in range(3):
                step = self.steps[j][label]
                moves[j] += f" + q{k} * {step}" if step else ""
        lines = [
            f"const real *a = a0{moves[0]}, *b = b0{moves[1]};",
            f"real *c = c0{moves[2]};",
            *body,
        ]
        for k, label in reversed(list(enumerate(self.node.batch))):
            size = self.sizes[label]
            lines = [f"for (long q{k} = 0; q{k} < {size}; q{k}++) {{", *indented(lines), "}"]
        return lines

    def _side(self, labels: Axes) -> _Side | None:
        """The labels merged to one axis; None if their strides do not allow it."""
        sizes = [self.sizes[label] for label in labels]
        every = [[steps[label] for label in labels] for steps in self.steps]
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
            self._side(labels) for labels in (self.node.rows, self.node.columns, self.node.summed)
        )
        if rows is None or columns is None or summed is None:
            return None
        if columns.size == 1 or rows.size == 1:
            return self._gemv(rows, columns, summed)
        left = _leading(rows.size, rows.left, summed.size, summed.left)
        right = _leading(summed.size, summed.right, columns.size, columns.right)
        if left is None or right is None:
            return None
        if columns.result == 1:
            # Column-major BLAS: the transposed result is the product of the transposed factors.
            sizes = (columns.size, rows.size, summed.size)
            operands = f"b, {right[1]}, a, {left[1]}, c, {max(1, rows.result)}"
            return self._gemm(right[0], left[0], sizes, operands)
        if rows.result == 1:
            turned = [{"N": "T", "T": "N"}[one[0]] for one in (left, right)]
            sizes = (rows.size, columns.size, summed.size)
            operands = f"a, {left[1]}, b, {right[1]}, c, {max(1, columns.result)}"
            return self._gemm(turned[0], turned[1], sizes, operands)
        return None

    def _gemm(self, one: str, other: str, sizes: tuple[int, int, int], operands: str) -> list[str]:
        m, n, k = sizes
        parts = gemm_parts(m, n, k) if self.may_share else None
        arguments = f"blas, '{one}', '{other}', {m}, {n}, {k}, {operands}"
        return _call("gemm", parts, arguments)

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
        parts = gemv_parts(free.size, summed.size) if self.may_share else None
        operands = f"{matrix}, {leading}, {vector}, {other or 1}, c, {out or 1}"
        return _call("gemv", parts, f"blas, '{kind}', {m}, {n}, {operands}")

    def _direct(self) -> list[str] | None:
        """The product in registers; None for short sums of few elements."""
        if not self.is_plain:
            return None
        node = self.node
        left, right, result = self.steps
        steps = (left, right, result)
        product = DirectProduct(node.sizes, node.rows, node.columns, node.summed, steps)
        return direct_lines(product)

    def _loops(self) -> list[str]:
        """Loops of fixed length, the innermost along columns if the right operand is contiguous."""
        labels = [*self.node.rows, *self.node.summed, *self.node.columns]
        inner_sums = not self.node.columns or self.steps[1][self.node.columns[-1]] != 1
        if inner_sums:
            labels = [*self.node.rows, *self.node.columns, *self.node.summed]
        places = ["", "", ""]
        for label in labels:
            for j in range(3):
                step = self.steps[j][label]
                places[j] += f" + l{label} * {step}" if step else ""
        product = f"a[0{places[0]}] * b[0{places[1]}]"
        if inner_sums:
            summed = self.node.summed
            lines = [
                "real t = 0.0;",
                *self._for([f"t += {product};"], summed),
                f"c[0{places[2]}] = t;",
            ]
            return self._for(lines, (*self.node.rows, *self.node.columns))
        body = self._for([f"c[0{places[2]}] += {product};"], labels)
        return [*self._zeros(places[2]), *body]

    def _zeros(self, place: str) -> list[str]:
        """The statements that set one matrix of the result to 0."""
        free = (*self.node.rows, *self.node.columns)
        size = 1
        for step, count in sorted((self.steps[2][k], self.sizes[k]) for k in free):
            if count > 1 and step != size:
                # The matrices of a batch may lie between one another.
                return self._for([f"c[0{place}] = 0.0;"], free)
            size *= count
        return [f"slo_fill(c, {size}, 0.0);"]

    def _for(self, lines: list[str], labels: Sequence[int]) -> list[str]:
        for label in reversed(labels):
            size = self.sizes[label]
            lines = [
                f"for (long l{label} = 0; l{label} < {size}; l{label}++) {{",
                *indented(lines),
                "}",
            ]
        return lines


def _call(routine: str, parts: tuple[int, int] | None, arguments: str) -> list[str]:
    """The call of a routine of BLAS, in parts along an axis in steps."""
    if parts is None:
        return [f"slo_{routine}({arguments});"]
    axis, step = parts
    return [
        "static _Thread_local slo_times known;",
        f"{SHARED}{routine}(&known, {axis}, {step}, {arguments});",
    ]


def _address(one: Element | Scalar, names: Names) -> str:
    """The address of an operand; a scalar stands for an array whose strides are all 0."""
    if isinstance(one, Scalar):
        return f"&(const real){{{names.number(one.node)}}}"
    return f"({names.base(one.array)}) + {one.position.offset}"


def _leading(rows: int, row_step: int, columns: int, column_step: int) -> tuple[str, int] | None:
    """A matrix as BLAS sees it: `N` if its rows are contiguous, `T` if its columns are.

    The number is the leading dimension. None if neither has stride 1, or if those of stride 1
    overlap, as windows of a vector do.
    """
    if column_step == 1 or columns == 1:
        leading = row_step if rows > 1 else columns
        return ("N", leading) if leading >= columns else None
    if row_step == 1 or rows == 1:
        leading = column_step if columns > 1 else rows
        return ("T", leading) if leading >= rows else None
    return None
