"""Products in registers, where BLAS cannot be used or would not pay: convolutions, small matrices.

A vector register holds neighbouring elements of the result, or of its terms, so that each of the
few accumulators of a tile is read and written once. A small operand that does not lie in the order
of the result is first copied to the stack.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from slomodel.codegen.loops.text import indented

LANES = 8
"""Elements of a `slo_vec`."""
_ACCUMULATORS = 8
_ROWS = 4
_MOST_TERMS = 12
"""Accumulators of a tile whose vectors run along a sum; each is a total of its own."""
_PACKED = 2048
"""Elements of an operand that may be copied to the stack: a third of the L1 cache."""

Labels = tuple[int, ...]
Lines = list[str]


@dataclass(frozen=True, slots=True)
class DirectProduct:
    """The sizes of all labels of one product without its batch, and the strides of a, b and c."""

    sizes: tuple[int, ...]
    rows: Labels
    columns: Labels
    summed: Labels
    steps: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


def direct_lines(product: DirectProduct) -> Lines | None:
    """The statements that compute a product of `a` and `b` into `c`; None if nothing fits."""
    return _along_result(product) or _along_sum(product)


def _along_result(one: DirectProduct) -> Lines | None:
    """Vectors along a free label: those of one operand times numbers of the other one."""
    free = (*one.columns[::-1], *one.rows[::-1])
    terms = prod(one.sizes[k] for k in one.summed)
    for label in sorted(free, key=lambda k: one.steps[2][k] != 1):
        wide = 1 if label in one.columns else 0
        strided = one.steps[2][label] != 1
        if one.sizes[label] < LANES or (strided and terms < LANES):
            continue
        if strided and one.steps[wide][label] != 1:
            continue
        own = one.columns if wide else one.rows
        if one.steps[wide][label] == 1:
            return _tiles(one, label, wide)
        if prod(one.sizes[k] for k in (*own, *one.summed)) <= _PACKED:
            packed, copies = _packed(one, label, wide)
            return [*copies, *_tiles(packed, label, wide)]
    return None


def _packed(one: DirectProduct, label: int, wide: int) -> tuple[DirectProduct, Lines]:
    """The product with a copy of an operand in which a label is the last one."""
    own = [k for k in ((one.rows, one.columns)[wide], one.summed)[0] if k != label]
    order = [*one.summed, *own, label]
    name, steps = "ab"[wide], list(one.steps[wide])
    stored = [0] * len(one.sizes)
    stride = 1
    for k in reversed(order):
        stored[k], stride = stride, stride * one.sizes[k]
    target, source = _place(order, stored), _place(order, steps)
    lines = [f"real packed[{stride}] ALIGNED;"]
    lines += _loops([f"packed[0{target}] = {name}[0{source}];"], order, one.sizes)
    lines.append(f"{name} = packed;")
    left, right, result = one.steps
    every = (left, tuple(stored), result) if wide else (tuple(stored), right, result)
    return DirectProduct(one.sizes, one.rows, one.columns, one.summed, every), lines


def _tiles(one: DirectProduct, label: int, wide: int) -> Lines:
    free = [k for k in (*one.rows, *one.columns) if k != label]
    others = [k for k in (one.columns, one.rows)[wide] if one.sizes[k] > 1]
    # The label of the other operand with the most rows shares the vectors of a tile.
    tile = max(others, key=lambda k: one.sizes[k]) if others else None
    rows = 1 if tile is None else min(_ROWS, one.sizes[tile])
    number = max(1, min(_ACCUMULATORS // rows, one.sizes[label] // LANES))
    width, size = number * LANES, one.sizes[label]
    outer = [k for k in free if k != tile]
    if tile is None:
        body = _tile(one, label, wide, None, 1, number)
    else:
        whole = one.sizes[tile] // rows * rows
        body = _tile(one, label, wide, tile, rows, number)
        body = [f"for (long l{tile} = 0; l{tile} < {whole}; l{tile} += {rows}) {{", *body, "}"]
        if whole < one.sizes[tile]:
            rest = _tile(one, label, wide, tile, one.sizes[tile] - whole, number)
            body += ["{", f"    const long l{tile} = {whole};", *rest, "}"]
    if size == width:
        body = [f"const long l{label} = 0;", *body]
    else:
        # The last block overlaps the one before: it computes the same elements once more.
        last = f"z + {width} > {size} ? {size - width} : z"
        head = f"const long l{label} = {'z' if size % width == 0 else last};"
        body = [f"for (long z = 0; z < {size}; z += {width}) {{", *indented([head, *body]), "}"]
    return _loops(body, outer, one.sizes)


def _tile(
    one: DirectProduct, label: int, wide: int, tile: int | None, rows: int, number: int
) -> Lines:
    """The accumulators of `rows` rows, each `number` vectors, over all terms."""
    vector, number_name = "ab"[wide], "ba"[wide]
    every = (*one.rows, *one.columns, *one.summed)
    source = _place(every, one.steps[wide])
    other = _place(every, one.steps[1 - wide])
    target = _place((*one.rows, *one.columns), one.steps[2])
    step, stored = (0, 0) if tile is None else (one.steps[1 - wide][tile], one.steps[2][tile])
    inside = [
        f"const slo_vec v{k} = *(const slo_vec *)({vector} + 0{source} + {k * LANES});"
        for k in range(number)
    ]
    for r in range(rows):
        inside.append(f"const real n{r} = {number_name}[0{other} + {r * step}];")
        inside += [f"s{r}_{k} += n{r} * v{k};" for k in range(number)]
    names = [f"s{r}_{k} = {{0}}" for r in range(rows) for k in range(number)]
    lines = [f"slo_vec {', '.join(names)};", *_loops(inside, one.summed, one.sizes)]
    across = one.steps[2][label]
    for r in range(rows):
        for k in range(number):
            place = f"0{target} + {r * stored + k * LANES * across}"
            if across == 1:
                lines.append(f"*(slo_vec *)(c + {place}) = s{r}_{k};")
                continue
            head = f"for (int e = 0; e < {LANES}; e++)"
            lines.append(f"{head} c[{place} + e * {across}] = s{r}_{k}[e];")
    return indented(lines)


def _along_sum(one: DirectProduct) -> Lines | None:
    """Vectors along a summed label, in which both operands are contiguous."""
    candidates = [
        k for k in one.summed if one.steps[0][k] == 1 == one.steps[1][k] and one.sizes[k] >= LANES
    ]
    if not candidates:
        return None
    label = max(candidates, key=lambda k: one.sizes[k])
    tile: list[int] = []
    for k in reversed(one.columns):
        if one.sizes[k] * prod(one.sizes[j] for j in tile) <= _MOST_TERMS:
            tile.insert(0, k)
    places = [(0, 0)]
    for k in tile:
        places = [
            (right + j * one.steps[1][k], result + j * one.steps[2][k])
            for right, result in places
            for j in range(one.sizes[k])
        ]
    free = [k for k in (*one.rows, *one.columns) if k not in tile]
    labels = (*free, *one.summed)
    left, right = (_place(labels, one.steps[k]) for k in range(2))
    target = _place(free, one.steps[2])
    outer = [k for k in one.summed if k != label]
    size = one.sizes[label]
    whole = size // LANES * LANES
    numbers = range(len(places))
    inside = [f"const slo_vec u = *(const slo_vec *)(a + 0{left});"]
    inside += [f"s{k} += u * *(const slo_vec *)(b + 0{right} + {places[k][0]});" for k in numbers]
    head = f"for (long l{label} = 0; l{label} < {whole}; l{label} += {LANES}) {{"
    body = [head, *indented(inside), "}"]
    if whole < size:
        rest = [f"r{k} += a[0{left}] * b[0{right} + {places[k][0]}];" for k in numbers]
        head = f"for (long l{label} = {whole}; l{label} < {size}; l{label}++) {{"
        body += [head, *indented(rest), "}"]
    lines = [f"slo_vec {', '.join(f's{k} = {{0}}' for k in numbers)};"]
    lines.append(f"real {', '.join(f'r{k} = 0.0' for k in numbers)};")
    lines += _loops(body, outer, one.sizes)
    lines += [f"c[0{target} + {places[k][1]}] = slo_across(s{k}) + r{k};" for k in numbers]
    return _loops(lines, free, one.sizes)


def _place(labels: Sequence[int], steps: Sequence[int]) -> str:
    return "".join(f" + l{k} * {steps[k]}" for k in labels if steps[k])


def _loops(lines: Lines, labels: Sequence[int], sizes: Sequence[int]) -> Lines:
    for k in reversed(labels):
        lines = [f"for (long l{k} = 0; l{k} < {sizes[k]}; l{k}++) {{", *indented(lines), "}"]
    return lines
