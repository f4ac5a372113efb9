"""Kernels of fills, copies, sums of slices and recurrences."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from slomodel.codegen.cuda.kernel import Kernel, decoded, grid, index_type, kernel, over, place
from slomodel.codegen.cuda.names import DeviceNames
from slomodel.codegen.cuda.prelude import THREADS
from slomodel.codegen.loops.access import c_order
from slomodel.codegen.loops.nest import (
    Collection,
    Copy,
    Element,
    Fill,
    PlacedSlice,
    Recurrence,
    Scalar,
)


def fill_kernel(name: str, fill: Fill, names: DeviceNames) -> list[Kernel]:
    """The kernel that sets all elements of an array to one number."""
    names.begin()
    target = names.base(fill.array)
    number = f"(real){fill.value!r}" if names.single else f"{fill.value!r}"
    lines = over(fill.size, index_type((fill.size,)), [f"({target})[i] = {number};"])
    return _made(name, names, target, fill.size, lines)


def copy_kernel(name: str, copy: Copy, names: DeviceNames) -> list[Kernel]:
    """The kernel that copies elements into C order."""
    names.begin()
    target, size, kind = names.base(copy.array), prod(copy.shape), index_type(copy.shape)
    axes = [f"i{k}" for k in range(len(copy.shape))]
    text = _element(copy.source, axes, names)
    lines = [*decoded("i", axes, copy.shape, kind), f"({target})[i] = {text};"]
    return _made(name, names, target, size, over(size, kind, lines))


def collection_kernel(name: str, node: Collection, names: DeviceNames) -> list[Kernel]:
    """The kernel in which each element of the result sums its contributions."""
    names.begin()
    size, kind = prod(node.shape), index_type(node.shape)
    axes = [f"i{k}" for k in range(len(node.shape))]
    target = names.base(node.array)
    lines = [*decoded("i", axes, node.shape, kind), "real t = 0;"]
    for k, one in enumerate(node.slices):
        if one.runs:
            lines += _part(k, one, kind, names)
        else:
            lines.append(f"t += {_element(one.operand, axes, names)};")
    lines.append(f"({target})[i] = t;")
    return _made(name, names, target, size, over(size, kind, lines))


def _part(k: int, one: PlacedSlice, kind: str, names: DeviceNames) -> list[str]:
    """The lines that add the element of a slice to this element of the result, if there is one."""
    own = [f"k{k}_{axis}" for axis in range(len(one.shape))]
    lines, conditions = [], []
    for axis, run in enumerate(one.runs):
        if run.axis is None:
            conditions.append(f"i{axis} == {run.offset}")
            continue
        moved = f"i{axis} - {run.offset}" if run.offset >= 0 else f"i{axis} + {-run.offset}"
        moved = moved if run.offset else f"i{axis}"
        if abs(run.step) > 1:
            conditions.append(f"({moved}) % {run.step} == 0")
        moved = moved if run.step == 1 else f"({moved}) / {run.step}"
        lines.append(f"const {kind} {own[run.axis]} = {moved};")
        conditions.append(f"{own[run.axis]} >= 0")
        conditions.append(f"{own[run.axis]} < {one.shape[run.axis]}")
    text = _element(one.operand, own, names)
    return [*lines, f"if ({' && '.join(conditions) or '1'}) t += {text};"]


def recurrence_kernel(name: str, node: Recurrence, names: DeviceNames) -> list[Kernel]:
    """`y[i] = a[i] * y[i - 1] + b[i]`, one thread for each index of the other axes."""
    names.begin()
    shape = node.shape
    if not prod(shape):
        return []
    others = [axis for axis in range(len(shape)) if axis != node.axis]
    sizes, kind = [shape[axis] for axis in others], index_type(shape)
    axes = [f"i{k}" for k in range(len(shape))]
    target, along = names.base(node.target.array), axes[node.axis]
    a, b = (_element(one, axes, names) for one in (node.factor, node.term))
    factor = f"({along} ? {a} : (real)0)"
    inside = [
        *(decoded("i", [axes[k] for k in others], sizes, kind) if others else []),
        "real t = 0;",
        f"for ({kind} {along} = 0; {along} < {shape[node.axis]}; {along}++) {{",
        f"    t = {factor} * t + {b};",
        f"    ({target})[{place(axes, c_order(shape))}] = t;",
        "}",
    ]
    return _made(name, names, target, prod(sizes), over(prod(sizes), kind, inside))


def _made(
    name: str, names: DeviceNames, target: str, elements: int, lines: Sequence[str]
) -> list[Kernel]:
    if not elements:
        return []
    written = [target.split(" ", 1)[0]]
    return [kernel(name, names.taken, written, grid(elements, THREADS), THREADS, lines)]


def _element(one: Element | Scalar, axes: Sequence[str], names: DeviceNames) -> str:
    if isinstance(one, Scalar):
        return names.number(one.node)
    inside = place(axes, one.position.strides, one.position.offset)
    return f"({names.base(one.array)})[{inside}]"
