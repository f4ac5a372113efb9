"""The default backend: `c` where there is a C compiler that works, numexpr elsewhere."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

from slomodel.codegen.entry import Entry
from slomodel.codegen.layout import Layout
from slomodel.codegen.native.compiler import compilers, missing
from slomodel.codegen.native.target import LongText, NativeTarget
from slomodel.codegen.python.numexpr_target import NUMEXPR
from slomodel.codegen.python.target import PythonTarget
from slomodel.codegen.target import Maker, Target
from slomodel.errors import BackendWarning, TargetLimit

_NATIVE = NativeTarget()
# A compiler takes seconds for so many characters of C.
_SHORT = NativeTarget(longest=60_000)
_PYTHON = PythonTarget(NUMEXPR)
_told: set[str] = set()


class Automatic:
    """The target of one model. `reason` says why it is not `c`; None where it is.

    All entries run on one target, unless the compiler fails after it has worked. A BackendWarning,
    once for each reason, tells of what can be helped.
    """

    def __init__(self) -> None:
        self.reason: str | None = None
        self._has_made = False
        if not compilers():
            self._leave(missing())

    @property
    def name(self) -> str:
        return self._chosen.name

    @property
    def on_device(self) -> bool:
        return False

    @property
    def instead(self) -> str:
        return ""

    def require(self) -> None:
        """Nothing: one of its targets always runs."""

    def source(
        self, name: str, entries: Sequence[Entry], layout: Layout, numbers: Mapping[str, int]
    ) -> str:
        return self._chosen.source(name, entries, layout, numbers)

    def maker(self, name: str, entry: Entry, layout: Layout, numbers: Mapping[str, int]) -> Maker:
        """The function of one entry: of `c`, and of numexpr where that cannot be had."""
        if self.reason is None:
            target = _NATIVE if self._has_made else _SHORT
            try:
                made = target.maker(name, entry, layout, numbers)
                self._has_made = True
                return made
            except LongText:
                self.reason = "the compiler would take long for its C text; backend='c' waits"
            except TargetLimit as limit:
                self._leave(limit)
        return _PYTHON.maker(name, entry, layout, numbers)

    @property
    def _chosen(self) -> Target:
        return _NATIVE if self.reason is None else _PYTHON

    def _leave(self, limit: TargetLimit) -> None:
        (told,) = limit.diagnostics
        self.reason = reason = f"{told.message}; {told.help}"
        if reason not in _told:
            _told.add(reason)
            warnings.warn(f"numexpr runs the kernels: {reason}", BackendWarning, stacklevel=2)
