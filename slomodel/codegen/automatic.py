"""The default backend: `c` where a C compiler works, numexpr elsewhere.

Compiling takes time proportional to the length of the source. Where that is seconds, it is weighed
against the time that faster evaluations save in a run of `EVALUATIONS` evaluations.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence

from slomodel.codegen.entry import Entry
from slomodel.codegen.layout import Layout
from slomodel.codegen.native.compiler import compilers, is_compiled, missing
from slomodel.codegen.native.target import NATIVE, Printed
from slomodel.codegen.python.numexpr_target import NUMEXPR
from slomodel.codegen.python.target import PythonTarget
from slomodel.codegen.target import Maker, Target
from slomodel.errors import BackendWarning, Diagnostic, TargetLimit

SECONDS_PER_CHARACTER = 15e-6
"""Compile time of C source; measured: gcc 12 takes 8e-6 to 26e-6 for chains of all kinds."""

QUICK = 1.0
"""Compile times up to this many seconds are not weighed."""

EVALUATIONS = 10_000
"""Gradients and Hessian-vector products of a long run, as a large model usually needs."""

LONGEST = 90.0
"""Compile time in seconds that no run justifies; the compiler is stopped after 120."""

_PYTHON = PythonTarget(NUMEXPR)
_reported: set[str] = set()


class Automatic:
    """The target of one model. `reason` says why it is not `c`; None if it is.

    All entries run on the same target, unless the compiler fails after it has compiled some entry.
    A BackendWarning, issued once per reason, reports a cause that the user can remove. `note`
    reports the estimated times if `c` takes seconds to compile, and is empty otherwise.
    """

    def __init__(self) -> None:
        self.reason: str | None = None
        self.note = ""
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
        """Do nothing: one of its targets always runs."""

    def source(
        self, name: str, entries: Sequence[Entry], layout: Layout, numbers: Mapping[str, int]
    ) -> str:
        return self._chosen.source(name, entries, layout, numbers)

    def begin(
        self, name: str, entry: Entry, layout: Layout, numbers: Mapping[str, int]
    ) -> Callable[[], Maker] | None:
        if self.reason is not None or not self._has_made:
            return None
        compiled = NATIVE.begin(name, entry, layout, numbers)

        def made() -> Maker:
            try:
                return compiled()
            except TargetLimit as limit:
                self._leave(limit)
                return _PYTHON.maker(name, entry, layout, numbers)

        return made

    def maker(self, name: str, entry: Entry, layout: Layout, numbers: Mapping[str, int]) -> Maker:
        """The function of one entry, from `c` or, where `c` is not available, from numexpr."""
        if self.reason is None:
            try:
                printed = NATIVE.printed(name, entry, layout, numbers)
                if self._has_made or self._is_worth(printed):
                    result = printed.maker()
                    self._has_made = True
                    return result
            except TargetLimit as limit:
                self._leave(limit)
        return _PYTHON.maker(name, entry, layout, numbers)

    def _is_worth(self, printed: Printed) -> bool:
        """Whether a run saves more time than compiling takes; a cached library costs nothing."""
        length = len(printed.text)
        wait = SECONDS_PER_CHARACTER * length
        if wait <= QUICK or is_compiled(printed.text, printed.layout.precision == "float32"):
            return True
        slow = _PYTHON.seconds(printed.entry, printed.layout, printed.numbers)
        estimate = (
            f"compiling its {length:,} characters of C takes about {wait:.2g} s, "
            f"an evaluation on numexpr about {1e3 * slow:.2g} ms"
        )
        if wait <= min(LONGEST, EVALUATIONS * slow):
            self.note = estimate
            return True
        limit = TargetLimit(
            Diagnostic("E801", estimate, help="backend='c' compiles it all the same")
        )
        self._leave(limit)
        return False

    @property
    def _chosen(self) -> Target:
        return NATIVE if self.reason is None else _PYTHON

    def _leave(self, limit: TargetLimit) -> None:
        (diagnostic,) = limit.diagnostics
        self.reason = reason = f"{diagnostic.message}; {diagnostic.help}"
        if reason not in _reported:
            _reported.add(reason)
            warnings.warn(f"numexpr runs the kernels: {reason}", BackendWarning, stacklevel=2)
