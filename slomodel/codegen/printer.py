"""How a target of Python source prints: the functions it spells and its elementwise steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from slomodel.codegen.program import Step
from slomodel.codegen.scope import Scope
from slomodel.ir.function import ScalarFunction


@dataclass(frozen=True, slots=True)
class Printer:
    """A target whose source is Python.

    - `imports`: the import lines of its modules.
    - `spells`: the functions it has; others are replaced by their stable forms.
    - `prints`: the functions that can be fused with others into one kernel; None for no fusion.
    - `elementwise`: the lines of one elementwise step.
    """

    name: str
    imports: tuple[str, ...]
    spells: Callable[[ScalarFunction], bool]
    prints: Callable[[ScalarFunction], bool] | None
    elementwise: Callable[[Step, Scope], list[str]]
