"""The C text of general nests, recurrences, copies and array initialisations."""

from __future__ import annotations

from math import inf

from slomodel.codegen.loops.access import c_order, merged_axes
from slomodel.codegen.loops.names import Names, element_text
from slomodel.codegen.loops.nest import Copy, Element, Fill, Nest, Recurrence, Scalar
from slomodel.codegen.loops.plain import PlainLoops
from slomodel.codegen.loops.text import indented

_TEXTS = {inf: "INFINITY", -inf: "-INFINITY"}


def fill_line(base: str, size: int | str, value: float) -> str:
    return f"slo_fill({base}, {size}, {_TEXTS.get(value) or repr(value)});"


def fill_lines(fill: Fill | Copy, names: Names) -> list[str]:
    """The statements that initialise an array."""
    if isinstance(fill, Copy):
        return copy_lines(fill, names)
    return [fill_line(names.base(fill.array), fill.size, fill.value)]


def copy_lines(copy: Copy, names: Names) -> list[str]:
    """The statements that copy the elements of an array with any strides into C order."""
    target, source, shape = names.base(copy.array), copy.source, copy.shape
    if 0 in shape:
        return []
    if not shape:
        return [f"({target})[0] = {element_text(source, names)};"]
    strides = source.position.strides if isinstance(source, Element) else (0,) * len(shape)
    axes = merged_axes(shape, [c_order(shape), strides])
    places = ["", ""]
    for k, (_, steps) in enumerate(axes):
        for j, step in enumerate(steps):
            places[j] += f" + i{k} * {step}" if step else ""
    text = element_text(source, names)
    if isinstance(source, Element):
        text = f"({names.base(source.array)})[{source.position.offset}{places[1]}]"
    lines = [f"({target})[0{places[0]}] = {text};"]
    for k in reversed(range(len(axes))):
        head = f"for (long i{k} = 0; i{k} < {axes[k][0]}; i{k}++)"
        pragma = ["#pragma GCC ivdep"] if k == len(axes) - 1 else []
        lines = [*pragma, head, *(line if line[0] == "#" else f"    {line}" for line in lines)]
    return lines


def plain_lines(nest: Nest, names: Names) -> list[str]:
    """The loops of a nest, one per axis."""
    printer = PlainLoops(nest, names, "long", fresh=False)
    loops = printer.lines(0)
    fills = [line for fill in nest.fills for line in fill_lines(fill, names)]
    return ["{", *indented([*printer.tables, *fills, *loops]), "}"]


def recurrence_lines(node: Recurrence, names: Names) -> list[str]:
    """`y[i] = a[i] * y[i - 1] + b[i]` along the axis, for every index of the others."""
    if 0 in node.shape:
        return []

    def at(one: Element | Scalar) -> str:
        if isinstance(one, Scalar):
            return names.number(one.node)
        strides = enumerate(one.position.strides)
        place = "".join(f" + i{k} * {step}" for k, step in strides if step)
        return f"({names.base(one.array)})[{one.position.offset}{place}]"

    y, a, b = at(node.target), at(node.factor), at(node.term)
    k, step = node.axis, c_order(node.shape)[node.axis]
    carried = y.removesuffix("]") + f" - {step}]"
    lines = [
        f"long i{k} = 0;",
        f"{y} = {b};",
        f"for (i{k} = 1; i{k} < {node.shape[k]}; i{k}++)",
        f"    {y} = {a} * {carried} + {b};",
    ]
    for axis in [axis for axis in reversed(range(len(node.shape))) if axis != k]:
        head = f"for (long i{axis} = 0; i{axis} < {node.shape[axis]}; i{axis}++) {{"
        lines = [head, *indented(lines), "}"]
    return ["{", *indented(lines), "}"]
