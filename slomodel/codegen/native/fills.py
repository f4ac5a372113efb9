"""What arrays hold before a loop adds to them, and arrays that are copied or counted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from slomodel.codegen.loops.access import Access, Numbers, along, c_order, merged_axes
from slomodel.codegen.loops.fusion import Fusion, Region, elements
from slomodel.codegen.native.names import Names
from slomodel.codegen.native.passes import indented
from slomodel.codegen.program import Form
from slomodel.codegen.python.views import listed
from slomodel.ir.expr import Affine, Expr, Extreme, Gather, Index, Lookup, Multiset, Scan, Scatter


def fill_lines(region: Region, regions: Fusion, names: Names) -> list[str]:
    """The first contents of what the region adds to: zeros, infinities, or another array."""
    lines = []
    for node in region.nodes:
        if not node.rank or region.alone or regions.is_value(node):
            continue
        start = regions.start_of(node)
        if start is not None:
            lines += copy_lines(regions, names, start, names.base(node))
        elif regions.in_place(node) is None and node not in rolling(region, regions):
            value = "0.0"
            if isinstance(node, Extreme):
                value = "-INFINITY" if node.which == "max" else "INFINITY"
            size = elements(regions.accesses.shape(node))
            lines.append(f"slo_fill({names.base(node)}, {size}, {value});")
    return lines


def rolling(region: Region, regions: Fusion) -> dict[Expr, list[tuple[int, Expr]]]:
    """Arrays that a loop fills as it goes: what adds to each, with the offset of its places.

    The largest offset comes first: its node meets places that nothing has been added to, and may
    write instead of adding. Only for loops along one axis in which every place that is added to
    moves on by one: then nothing beyond the largest offset, and all of a block before it, has been
    reached when a block begins.
    """
    if len(region.shape) != 1 or not region.shape[0]:
        return {}
    found: dict[Expr, list[tuple[int, Expr]]] = {}
    spoilt: set[Expr] = set()
    for node in region.nodes:
        if regions.forms[node] not in (Form.PUT, Form.ACCUMULATE) or not node.rank:
            continue
        first = node
        while (start := regions.in_place(first)) is not None:
            first = start
        strides = c_order(regions.accesses.shape(node))
        offset, steps = along(regions.index(node), strides, 1, regions.accesses.numbers)
        if steps != (1,) or offset < 0 or regions.forms[first] is not Form.PUT:
            spoilt.add(first)
        if first in region.nodes:
            found.setdefault(first, []).append((offset, node))
    return {
        first: sorted(nodes, key=lambda one: -one[0])
        for first, nodes in found.items()
        if first not in spoilt
    }


def copy_lines(regions: Fusion, names: Names, node: Expr, target: str) -> list[str]:
    """The elements of a node, wherever they lie, in C order from `target` on."""
    shape = regions.accesses.shape(node)
    access = regions.accesses.of(node)
    if 0 in shape:
        return []
    if not node.rank:
        return [f"({target})[0] = {element(access, names)};"]
    axes = merged_axes(shape, [c_order(shape), access.strides])
    places = ["", ""]
    for k, (_, steps) in enumerate(axes):
        for j, step in enumerate(steps):
            places[j] += f" + i{k} * {step}" if step else ""
    source = names.scalar(access.base)
    if access.base.rank:
        source = f"({names.base(access.base)})[{access.offset}{places[1]}]"
    lines = [f"({target})[0{places[0]}] = {source};"]
    for k in reversed(range(len(axes))):
        head = f"for (long i{k} = 0; i{k} < {axes[k][0]}; i{k}++)"
        pragma = ["#pragma GCC ivdep"] if k == len(axes) - 1 else []
        lines = [*pragma, head, *(line if line[0] == "#" else f"    {line}" for line in lines)]
    return lines


def element(access: Access, names: Names) -> str:
    """The one element of an access without axes."""
    if not access.base.rank:
        return names.scalar(access.base)
    return f"({names.base(access.base)})[{access.offset}]"


def alone_lines(node: Expr, regions: Fusion, names: Names) -> list[str]:
    """Counting, ones, reading at listed places, and recurrences along an axis."""
    form = regions.forms[node]
    size = elements(regions.accesses.shape(node))
    if form is Form.ONES:
        ones = elements(list(_summed(node, regions)))
        return [f"slo_fill({names.base(node)}, {size}, {float(ones)!r});"] if node.rank else []
    if form is Form.COUNT:
        return [f"for (long i = 0; i < {size}; i++) ({names.base(node)})[i] = (real)i;"]
    if isinstance(node, (Gather, Scatter)):
        return _listed_lines(node, regions, names)
    assert isinstance(node, Scan)
    return _scan_lines(node, regions, names)


def _summed(node: Expr, regions: Fusion) -> list[int]:
    sizes = regions.accesses.numbers
    return [dim.size(sizes) for label, dim in enumerate(node.dims) if label not in node.output]  # type: ignore[attr-defined]


def _listed_lines(node: Gather | Scatter, regions: Fusion, names: Names) -> list[str]:
    """Elements read from, or added to, places by tables, or by lists in the text."""
    inside = regions.accesses.of(node.operands[0])
    own = Access(node, 0, c_order(regions.accesses.shape(node)))
    adds = isinstance(node, Scatter)
    here, there = (inside, own) if adds else (own, inside)
    shape = regions.accesses.shape(node.operands[0] if adds else node)
    fill = []
    if adds:
        size = elements(regions.accesses.shape(node))
        fill = [f"slo_fill({names.base(node)}, {size}, 0.0);"]
    if 0 in shape:
        return fill
    heads, place = _place(node.index, there, shape, regions.accesses.numbers)
    place += "".join(
        f" + {step} * ({names.base(one.table)})[{_within(one, shape)}]"
        for one, step in zip(node.index, there.strides, strict=True)
        if isinstance(one, Lookup)
    )
    plain = "".join(f" + i{k} * {step}" for k, step in enumerate(here.strides) if step)
    target, source = (place, f"{here.offset}{plain}") if adds else (f"0{plain}", place)
    value = names.scalar(inside.base)
    if inside.base.rank:
        value = f"({names.base(inside.base)})[{source}]"
    if not node.rank:
        return ["{", *indented([*heads, f"{names.scalar(node)} = {value};"]), "}"]
    lines = [f"({names.base(node)})[{target}] {'+=' if adds else '='} {value};"]
    for k in reversed(range(len(shape))):
        lines = [f"for (long i{k} = 0; i{k} < {shape[k]}; i{k}++)", *indented(lines)]
    return ["{", *indented([*heads, *fill, *lines]), "}"]


def _place(
    index: Sequence[Index], access: Access, shape: Sequence[int], numbers: Numbers
) -> tuple[list[str], str]:
    """The lists of an index over a loop of some shape, and the place in memory that it gives."""
    moving = list(zip(index, access.strides, strict=True))
    plain = [(one, stride) for one, stride in moving if isinstance(one, Affine)]
    offset, steps = along([one for one, _ in plain], [s for _, s in plain], len(shape), numbers)
    lists = [np.zeros(size, dtype=np.intp) for size in shape]
    for one, stride in moving:
        if isinstance(one, Multiset):
            lists[one.axis] += stride * listed(one, numbers)
    place, heads = f"{access.offset + offset}", []
    for k, (step, own) in enumerate(zip(steps, lists, strict=True)):
        if own.any():
            heads.append(f"static const long l{k}[] = {{{', '.join(map(str, own.tolist()))}}};")
            place += f" + l{k}[i{k}]"
        place += f" + i{k} * {step}" if step else ""
    return heads, place


def _within(one: Lookup, shape: Sequence[int]) -> str:
    """The place in a table, which lies in C order, that a loop of some shape looks up."""
    steps = c_order([shape[axis] for axis in one.axes])
    terms = [f"i{axis} * {step}" for axis, step in zip(one.axes, steps, strict=True)]
    return " + ".join(terms) or "0"


def _scan_lines(node: Scan, regions: Fusion, names: Names) -> list[str]:
    """`y[i] = a[i] * y[i - 1] + b[i]` along the axis, for every place of the others."""
    shape = regions.accesses.shape(node)
    if 0 in shape:
        return []
    target = Access(node, 0, c_order(shape))
    every = [target, *(regions.accesses.of(operand) for operand in node.operands)]

    def at(access: Access) -> str:
        if not access.base.rank:
            return names.scalar(access.base)
        place = "".join(f" + i{k} * {step}" for k, step in enumerate(access.strides) if step)
        return f"({names.base(access.base)})[{access.offset}{place}]"

    y, a, b = (at(access) for access in every)
    k, step = node.axis, target.strides[node.axis]
    carried = y.removesuffix("]") + f" - {step}]"
    lines = [
        f"long i{k} = 0;",
        f"{y} = {b};",
        f"for (i{k} = 1; i{k} < {shape[k]}; i{k}++)",
        f"    {y} = {a} * {carried} + {b};",
    ]
    for axis in [axis for axis in reversed(range(len(shape))) if axis != k]:
        head = f"for (long i{axis} = 0; i{axis} < {shape[axis]}; i{axis}++) {{"
        lines = [head, *indented(lines), "}"]
    return ["{", *indented(lines), "}"]
