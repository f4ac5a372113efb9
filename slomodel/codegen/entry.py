"""Functions to generate, and their programs for given sizes and one target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from slomodel.codegen.layout import Layout
from slomodel.codegen.lower import lower
from slomodel.codegen.program import Program
from slomodel.codegen.schedule import schedule
from slomodel.functions.cost import Sizes as Numbers
from slomodel.ir.expr import Expr, Input
from slomodel.ir.function import ScalarFunction

EntryName = Literal["value", "value_and_gradient", "hvp", "gauss_newton"]


@dataclass(frozen=True, slots=True)
class Entry:
    """A function to generate: `scalar` is returned, `arrays` go to `out`, one per variable.

    `directions` are the inputs that represent a second vector argument, one per variable. `fused`
    says that a product may be added without being rounded, where that is one instruction.
    """

    name: EntryName
    scalar: Expr | None
    arrays: tuple[Expr, ...] = ()
    directions: tuple[Input, ...] = ()
    fused: bool = False

    @property
    def roots(self) -> tuple[Expr, ...]:
        return (*(() if self.scalar is None else (self.scalar,)), *self.arrays)


def program_of(
    entry: Entry,
    layout: Layout,
    numbers: Numbers,
    spells: Callable[[ScalarFunction], bool],
    prints: Callable[[ScalarFunction], bool] | None,
    arranged: Callable[[tuple[Expr, ...]], tuple[Expr, ...]] | None = None,
) -> Program:
    """An entry lowered and scheduled for a target that spells and fuses the given functions.

    If there are directions, the variables are the arguments of stage `centre`. The last roots are
    the arrays. `arranged` is applied to the lowered roots.
    """
    roots = lower(entry.roots, numbers, spells)
    if arranged is not None:
        roots = arranged(roots)
    return schedule(
        roots,
        (*layout.variables, *entry.directions),
        prints=prints,
        numbers=numbers,
        outputs=roots[len(roots) - len(entry.arrays) :],
        centre=layout.variables if entry.directions else (),
    )
