"""The passes over one block of a loop, and the temporary blocks that connect them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from slomodel.codegen.loops.text import indented

BLOCK = 512
"""Elements that a pass runs over: several tens of such blocks fit in the L1 cache."""
_TEMPORARY = re.compile(r"\bt\d+\b")


@dataclass(slots=True)
class LoopPass:
    """Statements that share a loop over the block or, if `once`, run once per block.

    The iterations of an `ordered` pass depend on earlier ones.
    """

    statements: list[str] = field(default_factory=list)
    alone: bool = False
    once: bool = False
    ordered: bool = False

    def lines(self) -> list[str]:
        if self.once:
            return self.statements
        loop = ["for (long i = 0; i < m; i++) {", *indented(self.statements), "}"]
        return loop if self.ordered else ["#pragma GCC ivdep", *loop]


def _keep_in_registers(passes: Sequence[LoopPass]) -> None:
    """Make variables of the temporary blocks that only one pass reads, at its own index.

    A store of each would take longer than the arithmetic of most statements, and gcc does not
    vectorise loops with too many accesses.
    """
    texts = [" ".join(one.statements) for one in passes]
    places: dict[str, set[int]] = {}
    for place, text in enumerate(texts):
        for name in _TEMPORARY.findall(text):
            places.setdefault(name, set()).add(place)
    for name, (place, *others) in places.items():
        one = passes[place]
        if others or one.once or re.search(rf"\b{name}\b(?!\[i\])", texts[place]):
            continue
        element, local = f"{name}[i]", f"h{name[1:]}"
        for k, statement in enumerate(one.statements):
            begins = "const real " if statement.startswith(f"{element} = ") else ""
            one.statements[k] = begins + re.sub(rf"\b{name}\[i\]", local, statement)


def share_temporaries(passes: Sequence[LoopPass]) -> list[str]:
    """Reuse temporary blocks that no later pass reads; return the names that remain.

    Those that are read only where they are computed become variables.
    """
    _keep_in_registers(passes)
    last: dict[str, int] = {}
    for place, one in enumerate(passes):
        last.update(dict.fromkeys(_TEMPORARY.findall(" ".join(one.statements)), place))
    names: dict[str, str] = {}
    free: list[str] = []
    for place, one in enumerate(passes):
        used = dict.fromkeys(_TEMPORARY.findall(" ".join(one.statements)))
        for name in used:
            if name not in names:
                names[name] = free.pop() if free else f"t{len(set(names.values()))}"
        one.statements = [_TEMPORARY.sub(lambda m: names[m[0]], s) for s in one.statements]
        free += [names[name] for name in used if last[name] == place]
    return list(dict.fromkeys(names.values()))


def write_over(passes: list[LoopPass], temporary: str, name: str, place: str) -> None:
    """Store a temporary where pointer `name` reads: directly if no later statement reads there."""
    every = [(one, k) for one in passes for k in range(len(one.statements))]
    result = next(
        k for k, (one, j) in enumerate(every) if one.statements[j].startswith(f"{temporary}[")
    )
    later = [one.statements[j] for one, j in every[result + 1 :]]
    is_total = any(re.search(rf"\b{temporary}\b(?!\[)", statement) for statement in later)
    steps = place != f"{name}[i]"
    if (steps and is_total) or any(re.search(rf"\b{name}\b", statement) for statement in later):
        passes.append(LoopPass([f"{place} = {temporary}[i];"]))
        return
    for one in passes:
        for old, new in ((rf"\b{temporary}\[i\]", place), (rf"\b{temporary}\b", name)):
            one.statements = [re.sub(old, new, text) for text in one.statements]


def append(passes: list[LoopPass], statement: str, *, alone: bool) -> None:
    """Append a statement to the last loop over the block if both may share one, else in a new loop.

    Reductions over the block in between do not matter: no statement of the block reads them.
    """
    last = next((one for one in reversed(passes) if not one.once), None)
    if alone or last is None or last.alone:
        passes.append(LoopPass([statement], alone))
    else:
        last.statements.append(statement)
