"""Symmetry: a sum over a symmetric array counts each of its distinct elements once, with a weight.

The objective and its gradient are folded together (`folding`), after data have been replaced by
their symmetric part where only this part matters (`symmetrizing`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from slomodel.calculus import Known, gradient
from slomodel.ir.dims import number_of_elements, show_shape
from slomodel.ir.expr import Einsum, Expr, Input
from slomodel.ir.walk import postorder
from slomodel.rewrite.facts import Facts
from slomodel.rewrite.symmetry.folding import LEAST_RANK, Folded, folded
from slomodel.rewrite.symmetry.symmetrizing import symmetrized

# Elements of data up to which their symmetric part is computed: it needs several copies of them.
_LARGEST_DATA = 3_000_000


@dataclass(frozen=True, slots=True)
class Joint:
    """An objective with its gradient, and the sizes of all dims in both."""

    objective: Expr
    gradient: tuple[Expr, ...]
    sizes: Mapping[str, int]
    notes: tuple[str, ...]


def symmetry(objective: Expr, variables: Sequence[Input], facts: Facts) -> Joint | None:
    """The objective and its gradient with symmetric sums folded; None if there are none."""
    if not _may_fold(objective):
        return None
    sizes, known = facts.sizes, facts.known
    made, parts = symmetrized(objective, known.symmetric)
    if any(number_of_elements(part.shape, sizes) > _LARGEST_DATA for part in parts):
        made, parts = objective, frozenset()
    symmetric = known.symmetric | parts
    slopes = gradient(made, variables, Known(known.finite, symmetric))
    result = folded((made, *slopes), sizes, symmetric)
    if parts <= _operands(result):
        return _joint(result) if result.sums else None
    result = folded((objective, *gradient(objective, variables, known)), sizes, known.symmetric)
    return _joint(result) if result.sums else None


def _may_fold(objective: Expr) -> bool:
    return any(
        isinstance(node, Einsum) and any(operand.rank >= LEAST_RANK for operand in node.operands)
        for node in postorder(objective)
    )


def _operands(folded: Folded) -> set[Expr]:
    """All nodes under the sums as they were before folding."""
    return set(postorder(*(node for node, _ in folded.sums)))


def _joint(folded: Folded) -> Joint:
    notes = []
    for node, _ in folded.sums:
        widest = max((operand.shape for operand in node.operands), key=len)
        note = f"a sum over {show_shape(widest)} over its distinct terms"
        notes.append(note)
    return Joint(folded.roots[0], folded.roots[1:], folded.sizes, tuple(dict.fromkeys(notes)))
