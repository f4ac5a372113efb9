"""Products of matrices: calls of cuBLAS through CuPy, and kernels for small ones."""

from __future__ import annotations

from dataclasses import dataclass

from slomodel.codegen.cuda.names import DeviceNames
from slomodel.codegen.loops.access import merged_axes
from slomodel.codegen.loops.nest import Axis, Contraction, Element, Nest, Position, Reduce, Scalar
from slomodel.ir.expr import Axes, Expr

SMALL_PRODUCT = 2**20
"""Multiplications up to which a kernel takes less time than the start of a BLAS call."""


@dataclass(frozen=True, slots=True)
class Call:
    """`function(*operands, out=out)`, each the text of a view of an array on the device."""

    function: str
    operands: tuple[str, ...]
    out: str


def as_nest(node: Contraction) -> Nest:
    """The loop form of a product: a sum for each element of the result."""
    order = (*node.batch, *node.rows, *node.columns, *node.summed)

    def moved(one: Element | Scalar) -> Element | Scalar:
        if isinstance(one, Scalar):
            return one
        strides = tuple(one.position.strides[label] for label in order)
        return Element(one.array, Position(one.position.offset, strides))

    axes = tuple(Axis.of(node.sizes[label]) for label in order)
    return Nest(axes, (Reduce("sum", (moved(node.left), moved(node.right)), moved(node.result)),))


def call(node: Contraction, names: DeviceNames) -> Call:
    """The call for a product whose result is not empty."""
    left = _matrix(node, node.left, (node.rows, node.summed), names)
    right = _matrix(node, node.right, (node.summed, node.columns), names)
    out = _matrix(node, node.result, (node.rows, node.columns), names)
    return Call("cp.matmul", (left, right), out)


def _matrix(
    node: Contraction, one: Element | Scalar, order: tuple[Axes, Axes], names: DeviceNames
) -> str:
    """An array with its batch axes first, then the two blocks of a matrix."""
    assert isinstance(one, Element), "a number that stands for a matrix is written out before"
    assert isinstance(one.array, Expr)
    sizes, steps = node.sizes, one.position.strides
    shape, strides = [sizes[n] for n in node.batch], [steps[n] for n in node.batch]
    for block in order:
        merged = merged_axes([sizes[n] for n in block], [[steps[n] for n in block]])
        ((size, (step,)),) = merged or [(1, (1,))]
        shape.append(size)
        strides.append(step)
    name, begin = names.located(one.array)
    return f"_view({name}, {begin + one.position.offset}, {tuple(shape)}, {tuple(strides)})"
