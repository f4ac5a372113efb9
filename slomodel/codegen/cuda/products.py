"""Products of two arrays: the host's calls of `cupy.matmul`, on views that are made once."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from slomodel.codegen.cuda.names import DeviceNames
from slomodel.codegen.loops.access import Access, c_order, merged_axes
from slomodel.codegen.loops.fusion import Fusion
from slomodel.codegen.lower import Blocks
from slomodel.ir.expr import Axes, Einsum


@dataclass(frozen=True, slots=True)
class Call:
    """`matmul(left, right, out=out)`, each the text of a view of an array of the device."""

    left: str
    right: str
    out: str


def call(node: Einsum, regions: Fusion, names: DeviceNames) -> Call | None:
    """The call for a product; None where the result has no elements."""
    sizes = [dim.size(names.numbers) for dim in node.dims]
    if not prod(regions.accesses.shape(node)):
        return None
    blocks = Blocks.of_node(node)
    left, right = (
        _view(regions.accesses.of(operand), own, blocks.batch, order, sizes, names)
        for operand, own, order in zip(
            node.operands,
            node.inputs,
            ((blocks.left, blocks.summed), (blocks.summed, blocks.right)),
            strict=True,
        )
    )
    own = Access(node, 0, c_order(regions.accesses.shape(node)))
    result = _view(own, node.output, blocks.batch, (blocks.left, blocks.right), sizes, names)
    return Call(left, right, result)


def _view(
    access: Access,
    labels: Axes,
    batch: Axes,
    order: tuple[Axes, Axes],
    sizes: list[int],
    names: DeviceNames,
) -> str:
    """An array with its batch axes first, then the two blocks of a matrix."""
    steps = dict(zip(labels, access.strides, strict=True))
    shape, strides = [sizes[n] for n in batch], [steps[n] for n in batch]
    for block in order:
        merged = merged_axes([sizes[n] for n in block], [[steps[n] for n in block]])
        ((size, (step,)),) = merged or [(1, (1,))]
        shape.append(size)
        strides.append(step)
    name, begin = names.located(access.base)
    return f"_view({name}, {begin + access.offset}, {tuple(shape)}, {tuple(strides)})"
