"""Quotients by roots: products with the inverse of a root, which all of them share.

The distance between two points and its derivatives divide by the same root again and again, and a
division takes several times as long as a product. A root of a positive double is at least 1e-162,
so that its inverse neither over- nor underflows. The adjoint of a root that is 0 at 0 divides by
the root of 1 there: it divides by the root itself, where that is chosen at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from slomodel.functions import div, mul, root, sqrt, where
from slomodel.ir import build
from slomodel.ir.expr import Const, Expr, Map, Recur, is_map
from slomodel.ir.loop import Loop
from slomodel.ir.walk import postorder, rewrite


def with_inverse_roots(roots: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Lowered roots in which arrays are not divided by roots."""
    known = {node.operands[0]: node for node in postorder(*roots) if _is_root(node)}
    loops: dict[Loop, Loop] = {}

    def rule(node: Expr) -> Expr:
        if isinstance(node, Recur):
            if node.loop not in loops:
                loops[node.loop] = _loop(node.loop)
            return Recur(node.operands, loops[node.loop], node.state)
        return _product(node, known) or node

    return rewrite(roots, rule)


def _loop(loop: Loop) -> Loop:
    values = with_inverse_roots(tuple(update.value for update in loop.updates))
    updates = (replace(one, value=v) for one, v in zip(loop.updates, values, strict=True))
    return replace(loop, updates=tuple(updates))


def _is_root(node: Expr) -> bool:
    return is_map(node, sqrt) or is_map(node, root)


def _product(node: Expr, known: Mapping[Expr, Expr]) -> Expr | None:
    """A quotient by a root as a product; None for other nodes, and for inverses of roots."""
    if not is_map(node, div) or not node.rank or not _is_root(node.operands[1]):
        return None
    assert isinstance(node, Map)
    above, below = node.operands
    same = len({own for own in node.axes if own}) == 1
    chosen = _chosen(above, below.operands[0], known) if same else None
    if chosen is not None:
        condition, value, x = chosen
        return where(condition, mul(value, div(1.0, known[x])), 0.0)
    if isinstance(above, Const) and above.value == 1.0:
        return None
    inverse = build.apply(div, build.const(1.0), below)
    return build.apply_along(mul, (above, inverse), node.axes, node.shape)


def _chosen(above: Expr, below: Expr, known: Mapping[Expr, Expr]) -> tuple[Expr, Expr, Expr] | None:
    """c, v and x of where(c, v, 0) / sqrt(where(c, x, 1)) for a root of x that is computed."""
    if not is_map(above, where) or not is_map(below, where):
        return None
    condition, value, other = above.operands
    same, x, one = below.operands
    zero = isinstance(other, Const) and other.value == 0.0
    unit = isinstance(one, Const) and one.value == 1.0
    return (condition, value, x) if same is condition and zero and unit and x in known else None
