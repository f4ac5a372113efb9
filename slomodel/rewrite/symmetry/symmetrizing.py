"""Data compared with a symmetric expression: only their symmetric part interacts with it.

‖T - S‖² = ‖sym T - S‖² + ‖T - sym T‖² for any T and any symmetric S, because T - sym T is
orthogonal to every symmetric array. sym T is the mean of T over all permutations of its axes. The
last term depends on data alone, so T need not be known to be symmetric; if it is, up to rounding
errors, the term is the square of these errors.
"""

from __future__ import annotations

from collections.abc import Collection

from slomodel.calculus.symmetry import Symmetries, as_product
from slomodel.functions import add, mul, pow, square, sub
from slomodel.ir import build
from slomodel.ir.expr import Const, Einsum, Expr, Map
from slomodel.ir.walk import rewrite
from slomodel.rewrite.elementwise.matching import varies
from slomodel.rewrite.symmetry.multisets import swapped

_LEAST_RANK = 3


def symmetrized(root: Expr, symmetric: Collection[Expr]) -> tuple[Expr, frozenset[Expr]]:
    """The graph with symmetric parts in place of data, and those parts.

    Symmetric products become contractions. `symmetric` are nodes known to be equal to all their
    transposes.
    """
    result: dict[Expr, Expr] = {}

    def rule(node: Expr) -> Expr:
        if isinstance(node, Map) and node.function is mul and node.rank >= _LEAST_RANK:
            return _power(node, symmetric)
        difference = _summed_square(node)
        if difference is None:
            return node
        return _split(node, difference, symmetric, result) or node

    (made,) = rewrite((root,), rule)
    return made, frozenset(result.values())


def _power(node: Map, symmetric: Collection[Expr]) -> Expr:
    """A symmetric product x_a x_b x_c, written factor by factor, as one contraction.

    The derivatives by its equal factors are then one node instead of several.
    """
    if all(len(own) in (0, node.rank) for own in node.axes):
        return node
    product = as_product(node)
    return product if is_symmetric(product, symmetric) else node


def _summed_square(node: Expr) -> Map | None:
    """The sum or difference r if the node is the sum of r² over all elements; else None."""
    if not isinstance(node, Einsum) or node.rank or not node.operands:
        return None
    whole = tuple(range(len(node.dims)))
    if any(labels != whole for labels in node.inputs):
        return None
    inner: Expr | None = None
    if len(node.operands) == 2 and node.operands[0] is node.operands[1]:
        inner = node.operands[0]
    elif len(node.operands) == 1:
        inner = _squared(node.operands[0])
    if isinstance(inner, Map) and inner.function in (add, sub) and inner.rank >= _LEAST_RANK:
        return inner
    return None


def _squared(node: Expr) -> Expr | None:
    if not isinstance(node, Map):
        return None
    if node.function is square:
        return node.operands[0]
    if node.function is pow and node.operands[1] is Const(2.0):
        return node.operands[0]
    return node.operands[0] if node.function is mul and len(set(node.operands)) == 1 else None


def _split(
    node: Expr, difference: Map, symmetric: Collection[Expr], known: dict[Expr, Expr]
) -> Expr | None:
    parts = difference.operands
    if any(own != tuple(range(difference.rank)) for own in difference.axes):
        return None
    fixed = [k for k, part in enumerate(parts) if not varies(part)]
    if len(fixed) != 1:
        return None
    (k,) = fixed
    if is_symmetric(parts[k], symmetric) or not is_symmetric(parts[1 - k], symmetric):
        return None
    part = known.setdefault(parts[k], symmetric_part(parts[k]))
    operands = [part if j == k else other for j, other in enumerate(parts)]
    rest = build.apply(difference.function, *operands)
    gap = build.apply(sub, parts[k], part)
    return build.apply(add, build.inner(rest, rest), build.inner(gap, gap))


def is_symmetric(node: Expr, symmetric: Collection[Expr]) -> bool:
    """True when an array is known to be equal to all its transposes."""
    known = Symmetries(symmetric)
    swaps = (swapped(node.rank, 0, axis) for axis in range(1, node.rank))
    return all(known.is_invariant(node, swap) for swap in swaps)


def symmetric_part(node: Expr) -> Expr:
    """The mean of an array over all permutations of its axes.

    The permutations of j + 1 axes are those of the first j, followed by a swap of the last axis
    with any of them or by none. So k - 1 means of at most k arrays give the mean of k! arrays.
    """
    for last in range(1, node.rank):
        total = node
        for axis in range(last):
            moved = build.transpose(node, swapped(node.rank, axis, last))
            total = build.apply(add, total, moved)
        node = build.apply(mul, build.const(1.0 / (last + 1)), total)
    return node
