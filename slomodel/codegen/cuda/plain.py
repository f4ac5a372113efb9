"""Kernels of nests in general: without axes, or with bounds and positions of any kind.

Threads divide the outer axes among them, as far as no two threads write to the same element; each
runs over the inner axes in order.
"""

from __future__ import annotations

from math import inf, prod

from slomodel.codegen.cuda.kernel import Kernel, decoded, grid, index_type, kernel, over
from slomodel.codegen.cuda.names import DeviceNames
from slomodel.codegen.cuda.prelude import THREADS
from slomodel.codegen.loops.names import element_text
from slomodel.codegen.loops.nest import (
    Apply,
    Computed,
    Element,
    Nest,
    Operand,
    Scalar,
    Store,
    places,
)
from slomodel.codegen.loops.plain import PlainLoops


def plain_kernel(name: str, nest: Nest, names: DeviceNames) -> list[Kernel]:
    """The kernel of a nest with axes; its reductions do not combine with earlier values."""
    names.begin()
    for element in _elements(nest):
        names.base(element.array)
    targets = [
        statement.target for statement in nest.statements if not isinstance(statement, Apply)
    ]
    written = [
        names.located(target.node)[0] if isinstance(target, Scalar) else names.base(target.array)
        for target in targets
    ]
    axes = nest.axes[: _threads(nest)]
    shape = [axis.size for axis in axes]
    size = prod(shape)
    if not size:
        return []
    kind = index_type(shape, max((one.size for one in names.taken.values()), default=0))
    printer = PlainLoops(nest, names, kind, fresh=True)
    inside = printer.lines(len(axes))
    index = decoded("i", [f"i{k}" for k in range(len(axes))], shape, kind)
    lines = [*printer.tables, *over(size, kind, [*index, *inside])]
    written = [one.split(" ", 1)[0] for one in written]
    return [kernel(name, names.taken, written, grid(size, THREADS), THREADS, lines)]


def _elements(nest: Nest) -> list[Element]:
    return [element for statement in nest.statements for element in places(statement)]


def _threads(nest: Nest) -> int:
    """The number of outer axes that threads can divide without writing to the same element."""
    targets = [
        statement.target for statement in nest.statements if not isinstance(statement, Apply)
    ]
    fixed = next((k for k, axis in enumerate(nest.axes) if not axis.is_fixed), len(nest.axes))
    arrays = [target.array for target in targets if isinstance(target, Element)]
    if len(set(arrays)) < len(targets):
        return 0
    return min((_apart(one, nest, fixed) for one in targets if isinstance(one, Element)), default=0)


def _apart(target: Element, nest: Nest, most: int) -> int:
    """The number of outer axes, up to `most`, along which the elements of a target differ."""
    if not target.position.is_affine:
        return 0
    strides = [*target.position.strides, *[0] * len(nest.axes)][: len(nest.axes)]
    count = 0
    for k, stride in enumerate(strides[:most]):
        reach = 0.0
        for axis, inner in list(zip(nest.axes, strides, strict=True))[k + 1 :]:
            if inner:
                reach += (axis.size - 1) * abs(inner) if axis.is_fixed else inf
        if abs(stride) <= reach:
            break
        count = k + 1
    return count


def scalar_kernel(name: str, nest: Nest, names: DeviceNames) -> list[Kernel]:
    """The kernel of a nest without axes, whose scalars one thread computes."""
    names.begin()
    lines: list[str] = []
    written: list[str] = []
    computed: dict[int, str] = {}

    def text_of(operand: Operand) -> str:
        if isinstance(operand, Computed):
            return computed[operand.statement]
        assert isinstance(operand, (Element, Scalar))
        return element_text(operand, names)

    for k, one in enumerate(nest.statements):
        if isinstance(one, Apply):
            texts = [text_of(operand) for operand in one.operands]
            computed[k] = one.function.spelling["c"].format(*texts) if one.function else texts[0]
            continue
        assert isinstance(one, Store)
        assert isinstance(one.target, Scalar), "a scalar is stored as a number"
        node, text = one.target.node, text_of(one.value)
        if names.is_stored(node):
            written.append(names.located(node)[0])
            lines.append(f"({names.base(node)})[0] = {text};")
        else:
            lines.append(f"const real {names.number(node)} = {text};")
    return [kernel(name, names.taken, written, (1, 1), 1, lines)] if lines else []
