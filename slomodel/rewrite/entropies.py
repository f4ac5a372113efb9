"""x log(x), which is 0 at 0, also of 1 + x and summed."""

from __future__ import annotations

from slomodel.functions import add, div, log, log1p, mul, neg, sub, xlogx, xlogx1p
from slomodel.ir import build
from slomodel.ir.expr import Const, Einsum, Expr, Map
from slomodel.rewrite.matching import Part, Term, is_map, parts_of, scaled, two_terms, whole


def entropy(node: Map) -> Expr | None:
    """c x log(x) and c (1 + x) log(1 + x), where c does not bring back what overflows."""
    if not any(_may_be_logarithm(operand) for operand in node.operands):
        return None
    left, right = (scaled(part) for part in parts_of(node))
    constant = left.coefficient * right.coefficient
    if left.core is None or right.core is None or abs(constant) < 1.0:
        return None
    for x, other in ((left.core, right.core), (right.core, left.core)):
        if other.inner(log) == x:
            found = xlogx(x.along(node.shape))
            return mul(left.coefficient, mul(right.coefficient, found))
        less = _above_one(x, other)
        if less is not None:
            found = xlogx1p(less.along(node.shape))
            return mul(left.coefficient, mul(right.coefficient, found))
    return None


def _may_be_logarithm(node: Expr) -> bool:
    """Whether a logarithm may be left without the constants: told at once in a long product."""
    if is_map(node, mul, div):
        return any(isinstance(operand, Const) for operand in node.operands)
    return is_map(node, log, log1p, neg)


def _above_one(x: Part, logarithm: Part) -> Part | None:
    """`u` where the first is 1 + u and the other log1p(u), along the same axes."""
    u = logarithm.inner(log1p)
    if u is None or not isinstance(x.node, Map) or x.axes != logarithm.axes:
        return None
    if not is_map(x.node, add, sub) or x.node.shape != u.node.shape:
        return None
    terms = two_terms(x.node)
    rest = [term for term in terms if term != Term(1.0, None)]
    return u if len(rest) == 1 and rest[0] == scaled(whole(u.node)) else None


def summed_entropy(node: Einsum) -> Expr | None:
    """The sum of x log(x), or of (1 + x) log(1 + x)."""
    if len(node.operands) != 2 or node.inputs[0] != node.inputs[1]:
        return None
    for x, other in (node.operands, node.operands[::-1]):
        found = _elements(x, other)
        if found is not None:
            return build.einsum([found], node.inputs[:1], node.output, node.dims)
    return None


def _elements(x: Expr, logarithm: Expr) -> Expr | None:
    """The elements of a sum of products of an array with its logarithm."""
    if is_map(logarithm, log) and logarithm.operands[0] is x:
        return xlogx(x)
    less = _above_one(whole(x), whole(logarithm))
    return None if less is None else xlogx1p(less.node)
