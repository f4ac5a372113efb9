"""Blocks that are written many times, with other arrays, as calls of one function.

A chain of operations on small arrays, such as the layers of a network that is written out, prints
the same loops again and again. A compiler takes time for each of them, and a processor reads the
code of each from memory once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from slomodel.codegen.loops.text import indented

MANY = 32
"""Blocks of one form from which they are calls: below, gcc takes less than 0.1 s for all of them,
and inline it knows that their arrays are apart."""
_ARRAY = re.compile(r"\b([xvgw]|d\d+)\b(?: \+ (\d+)\b(?! \*)|\[(\d+)\])?")
"""An array, from a place on, or one of its elements, as blocks name them."""
_OUTER = re.compile(r"\b(s\d+|blas|return)\b")
"""Names by which a block depends on more than arrays."""
_DECLARED = re.compile(r"const (\w+) \*const (d\d+) =")

Lines = list[str]


def calls_of_repeated(
    name: str, blocks: Sequence[Lines], heads: Sequence[str], attribute: str
) -> tuple[Lines, list[Lines]]:
    """The functions of blocks that occur MANY times, and the blocks, of which some are calls.

    `heads` declare the arrays of data; `attribute` is one for each function.
    """
    if len(blocks) < MANY:
        return [], list(blocks)
    types = {"x": "const real", "v": "const real", "g": "real", "w": "real"}
    types |= {array: f"const {kind}" for kind, array in _DECLARED.findall("\n".join(heads))}
    forms = [RepeatedBlock(block, types) if _is_alone(block) else None for block in blocks]
    counts: dict[tuple[str, ...], int] = {}
    for form in forms:
        if form is not None:
            counts[form.key] = counts.get(form.key, 0) + 1
    functions: Lines = []
    names: dict[tuple[str, ...], str] = {}
    result = []
    for block, form in zip(blocks, forms, strict=True):
        if form is None or counts[form.key] < MANY:
            result.append(block)
            continue
        if form.key not in names:
            names[form.key] = f"{name}_form_{len(names)}"
            functions += [*filter(None, [attribute]), *form.function(names[form.key])]
        result.append([f"{names[form.key]}({', '.join(form.arrays)});"])
    return functions, result


def _is_alone(block: Lines) -> bool:
    """Whether a block reads and writes arrays only, and is longer than a call."""
    return len(block) > 1 and not _OUTER.search("\n".join(block))


class RepeatedBlock:
    """A block with parameters in place of its arrays, each from a place on."""

    def __init__(self, block: Lines, types: dict[str, str]) -> None:
        self.arrays: dict[str, str] = {}
        """The parameters by the arrays that a call passes for them."""
        kinds: list[str] = []

        def parameter(found: re.Match[str]) -> str:
            array, place, element = found.groups()
            passed = f"{array} + {place or element}" if place or element else array
            if passed not in self.arrays:
                self.arrays[passed] = f"array{len(self.arrays)}"
                kinds.append(types[array])
            return self.arrays[passed] + ("[0]" if element else "")

        self._lines = [_ARRAY.sub(parameter, line) for line in block]
        self._kinds = tuple(kinds)
        self.key = (*self._kinds, *self._lines)

    def function(self, name: str) -> Lines:
        """The form as a function of its arrays."""
        parameters = ", ".join(
            f"{kind} *const {array}"
            for kind, array in zip(self._kinds, self.arrays.values(), strict=True)
        )
        head = f"static __attribute__((noinline)) void {name}({parameters}) {{"
        return [head, *indented(self._lines), "}", ""]
