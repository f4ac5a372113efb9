"""Results that are there already: sums and products the other way round, transposed contractions.

Addition and multiplication of two doubles do not depend on their order, to the last bit; and the
sums in Bᵀ Aᵀ are those in A B.
"""

from __future__ import annotations

from slomodel.codegen.blocks import Blocks
from slomodel.functions import add, mul
from slomodel.ir import build
from slomodel.ir.expr import Einsum, Expr, Map
from slomodel.ir.walk import rewrite

_COMMUTATIVE = (add, mul)


def shared(roots: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Lowered roots with one node for what has been computed in another order before."""
    seen: set[Expr] = set()

    def rule(node: Expr) -> Expr:
        found = _swapped(node, seen) or node
        seen.add(found)
        return found

    return rewrite(roots, rule)


def _swapped(node: Expr, seen: set[Expr]) -> Expr | None:
    """The node from what was seen before, with its two operands in the other order."""
    if len(node.operands) != 2 or node.operands[0] is node.operands[1]:
        return None
    if isinstance(node, Map) and node.function in _COMMUTATIVE:
        other = Map(node.function, node.operands[::-1], node.axes[::-1], node.shape)
        return other if other in seen else None
    return _transposed(node, seen) if isinstance(node, Einsum) else None


def _transposed(node: Einsum, seen: set[Expr]) -> Expr | None:
    blocks = Blocks.of_node(node)
    if not blocks.summed:
        return None
    b, a = node.inputs
    number = {label: k for k, label in enumerate(dict.fromkeys((*a, *b)))}
    own = tuple(number[label] for label in a), tuple(number[label] for label in b)
    # As the other node has its labels: batch, those of its left operand, those of its right one.
    output = (*blocks.batch, *blocks.right, *blocks.left)
    dims = tuple(node.dims[label] for label in number)
    other = Einsum(node.operands[::-1], own, tuple(number[label] for label in output), dims)
    if other not in seen:
        return None
    return build.transpose(other, tuple(output.index(label) for label in node.output))
