"""Even functions of a norm near 0, by their series in its square, which has derivatives there.

cosh(r) with r = |x| is 1 + r²/2 + …, and r² = x'x has derivatives where r has none: by the chain
rule the Hessian at 0 would be 0. The law: the same value, to a few roundings.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from slomodel.functions import abs, add, hypot, le, root, square, where
from slomodel.functions.power_series import polynomial
from slomodel.ir.expr import Expr, Map, is_map
from slomodel.rewrite.elementwise.matching import Part, whole
from slomodel.rewrite.series.expansions import (
    TERMS,
    ExpansionQuantities,
    edge_of,
    expanded,
    with_quantity,
)
from slomodel.rewrite.series.laurent import Laurent, NoSeries

_NORMS = (abs, root, hypot)


def even_function_of_norm(
    node: Map, done: Mapping[Expr, Expr], quantities: ExpansionQuantities
) -> Expr | None:
    """An even function of a norm by its series in the square of the norm, which has derivatives.

    Only the innermost even function: others of it are functions of that square.
    """
    for u in quantities.of(node):
        if u is node or not is_map(u, *_NORMS):
            continue
        try:
            even = [_is_even(quantities.leading.of(one, u)) for one in (node, *node.operands)]
            if not even[0] or all(even[1:]):
                continue
            series = expanded(node, u, TERMS)[node]
        except NoSeries:
            continue
        result = joined(node, u, series, done)
        if result is not None:
            return result
    return None


def joined(node: Expr, u: Expr, series: Laurent, done: Mapping[Expr, Expr]) -> Expr | None:
    """The series for small |u|, and the node as it stands elsewhere; None if no edge fits.

    The series of an even function of a norm is one in its square.
    """
    edge = edge_of(series)
    if edge is None or series.order < 0:
        return None
    coefficients = [Fraction(0)] * series.order + list(series.coefficients)
    is_near = le(abs(done[u]), edge)
    far = with_quantity(node, u, where(is_near, edge, done[u]))
    if isinstance(u, Map) and is_map(u, *_NORMS) and _is_even(series):
        inner = where(is_near, _square_of_norm(u, done), 0.0)
        return where(is_near, polynomial(coefficients[::2], 0, edge * edge, inner), far)
    return where(is_near, polynomial(coefficients, 0, edge, where(is_near, done[u], 0.0)), far)


def _square_of_norm(u: Map, done: Mapping[Expr, Expr]) -> Expr:
    sides = [Part(done[side.node], side.axes).along(u.shape) for side in whole(u).parts()]
    if is_map(u, root):
        return sides[0]
    return square(sides[0]) if is_map(u, abs) else add(square(sides[0]), square(sides[1]))


def _is_even(series: Laurent) -> bool:
    return series.order % 2 == 0 and not any(series.coefficients[1::2])
