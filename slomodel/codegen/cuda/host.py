"""The Python text of one entry: arrays allocated once, graphs of kernels over them, calls."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from slomodel.codegen.cuda.kernel import Kernel
from slomodel.codegen.cuda.products import Call
from slomodel.codegen.cuda.source import DIRECT, DeviceUnit
from slomodel.codegen.program import Stage
from slomodel.codegen.python.statements import indented


def entry_lines(unit: DeviceUnit) -> list[str]:
    """`make_NAME(data)`, which allocates arrays, binds kernels and returns the function NAME."""
    entry = unit.entry
    host = _Host(unit)
    once, centre, calls = (host.stage(stage) for stage in ("data", "centre", "call"))
    vectors = ["point", *(["direction"] if entry.directions else [])]
    arguments = [*vectors, *(["out"] if entry.arrays else [])]
    again = [
        "# A new point: what depends on it alone.",
        "now = _bits(point)",
        "if now is None or now != seen:",
        *indented(["seen = None", *centre, "seen = now"], 1),
    ]
    body = [
        *(["nonlocal seen"] if centre else []),
        *host.taken(vectors),
        *(again if centre else []),
        *calls,
        *host.given(),
        *([f"return {unit.value}"] if unit.value is not None and not unit.is_joined else []),
    ]
    return [
        f"def make_{entry.name}(data):",
        f'    """The function {entry.name}({", ".join(arguments)}) for these data."""',
        *indented([*host.arrays(), *host.prelude, *once], 1),
        *(["    seen = None"] if centre else []),
        "",
        f"    def {entry.name}({', '.join(arguments)}):",
        *indented(body, 2),
        "",
        f"    return {entry.name}",
    ]


class _Host:
    """Names for bound kernels and views; `prelude` are the lines that construct them.

    A long CuPy vector is not copied: its kernels are given it, and its views are constructed, at
    every call.
    """

    def __init__(self, unit: DeviceUnit) -> None:
        self.unit = unit
        self.prelude: list[str] = []
        self.moving = set(self._vectors()) if unit.n >= DIRECT else set()
        self._fresh: list[str] = []
        self._views: dict[str, str] = {}
        self._kernels = 0
        self._graphs = 0

    def arrays(self) -> list[str]:
        """Lines that allocate the arrays on the device."""
        unit = self.unit
        lines = ["arrays = _arrays(data)"]
        lines += [f"{short} = arrays[{name!r}]" for short, name in unit.data.items()]
        own = "own_" if self.moving else ""
        sizes = {"g": "n + 1"} if unit.is_joined else {}
        lines += [
            f"{own}{name} = cp.empty({sizes.get(name, 'n')}, real)" for name in self._vectors()
        ]
        if unit.workspace:
            lines.append(f"w = cp.empty({unit.workspace}, real)")
        lines += [
            f"{buffer.name} = w[{buffer.start}:{buffer.start + buffer.size}]  # {buffer.remark}"
            for buffer in unit.buffers
        ]
        if unit.partial:
            lines.append(f"q = cp.empty({unit.partial}, float)")
        if unit.tables:
            lines.append("data = {name: array.get() for name, array in arrays.items()}")
        lines += [f"{name} = cp.asarray({text})" for name, text in unit.tables]
        return lines

    def _vectors(self) -> list[str]:
        entry = self.unit.entry
        return ["x", *(["v"] if entry.directions else []), *(["g"] if entry.arrays else [])]

    def taken(self, vectors: Sequence[str]) -> list[str]:
        """Lines that take the vectors of a call and construct their views."""
        named = list(zip("xv", vectors, strict=False))
        if not self.moving:
            return [f"_fill({name}, {vector})" for name, vector in named]
        lines = [f"{name} = _taken({vector}, own_{name})" for name, vector in named]
        read = ", ".join(name for name, _ in named)
        room = [f"g = _room(out, own_g, {read})"] if "g" in self.moving else []
        return [*lines, *room, *self._fresh]

    def given(self) -> list[str]:
        """Lines that return the result."""
        if "g" not in self._vectors():
            return []
        if self.unit.is_joined:
            return ["return _give_both(out, g)"]
        give = "_give(out, g)"
        return ["if g is own_g:", f"    {give}"] if self.moving else [give]

    def stage(self, stage: Stage) -> list[str]:
        """The calls of a stage, in order; neighbouring kernels of every call are one graph."""
        works = self.unit.work[stage]
        if stage == "data" or self.moving:
            return [self._text(work) for work in works]
        lines: list[str] = []
        for is_call, run in groupby(works, lambda work: isinstance(work, Call)):
            texts = [self._text(work) for work in run]
            lines += texts if is_call or len(texts) == 1 else [self._graph(texts)]
        return lines

    def _graph(self, texts: Sequence[str]) -> str:
        """The call of a graph of these calls of kernels."""
        self._graphs += 1
        name = f"run{self._graphs}"
        kernels = ", ".join(text.removesuffix("()") for text in texts)
        self.prelude.append(f"{name} = _graph({kernels})")
        return f"{name}()"

    def _text(self, work: Kernel | Call) -> str:
        if isinstance(work, Call):
            operands = ", ".join(map(self._view, work.operands))
            return f"{work.function}({operands}, out={self._view(work.out)})"
        self._kernels += 1
        name = f"k{self._kernels}"
        arrays = [f"q[:{a.size}]" if a.name == "q" else a.name for a in work.arrays]
        moves = self.moving.intersection(arrays)
        own = [f"own_{array}" if array in moves else array for array in arrays]
        bind = "_checked" if moves else "_bound"
        self.prelude.append(f"{name} = {bind}({', '.join([repr(work.name), *own])})")
        return f"{name}({', '.join(arrays) if moves else ''})"

    def _view(self, text: str) -> str:
        if text not in self._views:
            self._views[text] = f"m{len(self._views)}"
            moves = text.removeprefix("_view(").split(",")[0] in self.moving
            lines = self._fresh if moves else self.prelude
            lines.append(f"{self._views[text]} = {text}")
        return self._views[text]
