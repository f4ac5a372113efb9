"""Division of long functions: compile time grows faster than a function's length."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from slomodel.codegen.loops.text import indented

LONG = 60_000
"""Characters above which a function is divided; gcc 12 compiles that many in about 0.5 s."""
_PIECE = 15_000
"""Characters of a piece, at which gcc's time is still proportional to the length."""
_SCALAR = re.compile(r"\bs\d+\b")
_ASSIGNED = re.compile(r"^\s*(s\d+) = ", re.MULTILINE)

Lines = list[str]


@dataclass(frozen=True, slots=True)
class DividedFunction:
    """The statements of a divided function and the functions that it calls."""

    lines: Lines
    functions: Lines


def pieces(
    name: str, blocks: Sequence[Lines], last: Lines, heads: Sequence[str], attribute: str
) -> DividedFunction:
    """The blocks of statements of a function and its `last` ones, divided if they are long.

    Scalars that several pieces use are passed in the array `scalars`; each is assigned once.
    `heads` are the declarations that every piece begins with, `attribute` one of its function.
    """
    if sum(len(line) for block in blocks for line in block) <= LONG:
        return DividedFunction([line for block in blocks for line in block] + last, [])
    groups = _grouped(blocks)
    texts = ["\n".join(lines) for lines in (*groups, last)]
    used = [set(_SCALAR.findall(text)) for text in texts]
    times: dict[str, int] = {}
    for scalars in used:
        for scalar in scalars:
            times[scalar] = times.get(scalar, 0) + 1
    order = sorted((one for one, n in times.items() if n > 1), key=lambda one: int(one[1:]))
    place = {scalar: f"scalars[{k}]" for k, scalar in enumerate(order)}
    functions, calls = [], []
    for k, lines in enumerate(groups):
        assigned = set(_ASSIGNED.findall(texts[k]))
        given = [f"const real {one} = {place[one]};" for one in _sorted(used[k] - assigned)]
        own = _sorted(assigned)
        kept = [f"{place[one]} = {one};" for one in own if one in place]
        declared = [f"real {', '.join(own)};"] if own else []
        functions += [
            *filter(None, [attribute]),
            f"static void {name}_piece_{k}(void *const *c, real *scalars) {{",
            *indented(["(void)scalars;", *heads, *given, *declared, *lines, *kept]),
            "}",
            "",
        ]
        calls.append(f"{name}_piece_{k}(c, scalars);")
    read = [f"{one} = {place[one]};" for one in _sorted(used[-1])]
    return DividedFunction(
        [f"real scalars[{max(1, len(order))}];", *calls, *read, *last], functions
    )


def _sorted(scalars: set[str]) -> list[str]:
    return sorted(scalars, key=lambda one: int(one[1:]))


def _grouped(blocks: Sequence[Lines]) -> list[Lines]:
    """Neighbouring blocks joined, up to the length of a piece."""
    groups: list[Lines] = []
    room = 0
    for block in blocks:
        length = sum(map(len, block))
        if length > room or not groups:
            groups.append([])
            room = _PIECE
        groups[-1] += block
        room -= length
    return groups
