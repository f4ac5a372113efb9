"""Kernels with their arrays and threads, and the text of loops over indices."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from slomodel.codegen.cuda.names import Array
from slomodel.codegen.cuda.prelude import THREADS
from slomodel.codegen.loops.text import indented

MOST_BLOCKS = 2**14
"""Upper limit on the blocks of a grid; threads take further elements at the grid's stride."""
SHORT = 2**30
"""An index below this is an `int`: adding the stride of the whole grid cannot overflow."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel launched on `blocks` (x, y) of `threads`; `arrays` are its arguments in order."""

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
    """A kernel with this body over the arrays named in it; those not `written` are `const`."""
    words = set(re.findall(r"\w+", "\n".join(body)))
    own = tuple(array for array in arrays.values() if array.name in words)
    parameters = ", ".join(
        f"{'' if one.name in written else 'const '}{one.kind} *__restrict__ {one.name}"
        for one in own
    )
    bounds = f"__launch_bounds__({threads})"
    head = f'extern "C" __global__ void {bounds} {name}({parameters}) {{'
    return Kernel(name, own, blocks, threads, "\n".join([head, *indented(body), "}"]))


def index_type(shape: Sequence[int], reach: int = 0) -> str:
    """The integer type of an index over a shape and of positions up to `reach`."""
    return "int" if max(prod(shape), reach) < SHORT else "long long"


def decoded(index: str, names: Sequence[str], sizes: Sequence[int], kind: str) -> list[str]:
    """Lines that compute the index along each axis from a flat index in C order."""
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
    """The number of blocks (x, y) for this many elements, at most `MOST_BLOCKS`."""
    return max(1, min(-(-elements // threads), MOST_BLOCKS)), 1


def over(elements: int, kind: str, lines: Sequence[str]) -> list[str]:
    """A loop over flat elements, which the threads of the grid divide among them."""
    start = f"blockIdx.x * ({kind}){THREADS} + threadIdx.x"
    step = f"gridDim.x * ({kind}){THREADS}"
    return [
        f"for ({kind} i = {start}; i < {elements}; i += {step}) {{",
        *indented(lines),
        "}",
    ]
