"""One kernel: its text, the arrays it takes, and how many blocks of threads run it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from slomodel.codegen.cuda.names import Array
from slomodel.codegen.cuda.prelude import THREADS
from slomodel.codegen.native.passes import indented

MOST_BLOCKS = 4096
"""Blocks of a grid; threads go on to further elements at this stride."""
SHORT = 2**30
"""An index below this is an `int`, with room for a stride of the whole grid."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel named `name` for `blocks` (x, y) of `threads`, over arrays in this order."""

    name: str
    arrays: tuple[Array, ...]
    blocks: tuple[int, int]
    threads: int
    text: str


def kernel(
    name: str,
    arrays: Mapping[str, Array],
    written: Sequence[str],
    blocks: tuple[int, int],
    threads: int,
    body: Sequence[str],
) -> Kernel:
    """A kernel with this body over the arrays that it names; those not `written` are constant."""
    words = set(re.findall(r"\w+", "\n".join(body)))
    own = tuple(one for one in arrays.values() if one.name in words)
    parameters = ", ".join(
        f"{'' if one.name in written else 'const '}{one.kind} *__restrict__ {one.name}"
        for one in own
    )
    bounds = f"__launch_bounds__({threads})"
    head = f'extern "C" __global__ void {bounds} {name}({parameters}) {{'
    return Kernel(name, own, blocks, threads, "\n".join([head, *indented(body), "}"]))


def index_type(shape: Sequence[int], reach: int = 0) -> str:
    """The type of an index over a shape and of places up to `reach`, with room for a stride."""
    return "int" if max(prod(shape), reach) < SHORT else "long long"


def decoded(index: str, names: Sequence[str], sizes: Sequence[int], kind: str) -> list[str]:
    """Lines that give the index along each axis of a flat index in C order."""
    lines = []
    for k, (name, size) in enumerate(zip(names, sizes, strict=True)):
        inner = prod(sizes[k + 1 :])
        text = f"{index} / {inner}" if inner > 1 else index
        text = text if k == 0 else f"{text} % {size}"
        lines.append(f"const {kind} {name} = {text};")
    return lines


def place(names: Sequence[str], steps: Sequence[int], offset: int = 0) -> str:
    """The place in memory of an index along some axes."""
    terms = [
        name if step == 1 else f"{name} * {step}"
        for name, step in zip(names, steps, strict=True)
        if step
    ]
    if offset or not terms:
        terms.append(str(offset))
    return " + ".join(terms)


def grid(elements: int, threads: int) -> tuple[int, int]:
    """Enough blocks for so many elements, within the most there may be."""
    return max(1, min(-(-elements // threads), MOST_BLOCKS)), 1


def over(elements: int, kind: str, lines: Sequence[str]) -> list[str]:
    """A loop over flat elements in which each thread takes its own."""
    start = f"blockIdx.x * ({kind}){THREADS} + threadIdx.x"
    step = f"gridDim.x * ({kind}){THREADS}"
    return [
        f"for ({kind} i = {start}; i < {elements}; i += {step}) {{",
        *indented(lines),
        "}",
    ]
