"""Functions of a norm without a linear term near 0, by their series there.

cosh(r) with r = |x| is 1 + r²/2 + …, and (1 + r) exp(-r), a kernel of Matérn, 1 - r²/2 + r³/3 - …:
both have two derivatives by x at 0, where r has none, and by the chain rule the Hessian would be 0.
In r² = x'x, which has derivatives, the series are A(r²) + r r² B(r²), with B = 0 for even
functions. The law: the same value, to a few roundings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from slomodel.functions import abs, add, div, hypot, le, mul, root, square, sub, where
from slomodel.functions.power_series import polynomial
from slomodel.ir.expr import Const, Expr, Map, is_map
from slomodel.rewrite.elementwise.matching import Part, whole
from slomodel.rewrite.series.expansions import (
    TERMS,
    ExpansionQuantities,
    edge_of,
    expanded,
    with_quantities,
)
from slomodel.rewrite.series.laurent import Laurent, NoSeries

_NORMS = (abs, root, hypot)
_FARTHEST = 0.125
"""The largest norm for the series of a function that is not even, which takes twice the terms."""


def flat_function_of_norm(
    node: Map, done: Mapping[Expr, Expr], quantities: ExpansionQuantities
) -> Expr | None:
    """A function of a norm without a linear term by its series, which has derivatives.

    Only the innermost such function: others of it are functions of what has derivatives.
    """
    for u, has_functions in quantities.of(node).items():
        square_of_u = quantities.leading.squares.get(u)
        if not is_map(u, *_NORMS) or node in (u, square_of_u):
            continue
        try:
            whole_series, *own = (quantities.leading.of(one, u) for one in (node, *node.operands))
            is_inner = not all(map(_is_flat, own)) or not all(map(_is_even, own))
            if not _is_flat(whole_series) or not is_inner:
                continue
            if all(map(_is_flat, own)) and not _is_even(whole_series):
                continue
            if not has_functions and not is_map(node, add, sub, div):
                continue  # a power
            series = expanded(node, u, TERMS, square_of_u)[node]
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
    is_flat = isinstance(u, Map) and is_map(u, *_NORMS) and _is_flat(series)
    is_even = _is_even(series)
    edge = edge_of(series, _FARTHEST) if is_flat and not is_even else edge_of(series)
    if edge is None or series.order < 0:
        return None
    coefficients = [Fraction(0)] * series.order + list(series.coefficients)
    is_near = le(abs(done[u]), edge)
    inner = where(is_near, done[u], 0.0)
    instead = {u: where(is_near, edge, done[u])}
    if not is_flat:
        far = with_quantities(node, instead)
        return where(is_near, polynomial(coefficients, 0, edge, inner), far)
    assert isinstance(u, Map)
    square_of_norm = _square_of_norm(u, done)
    instead[_square_of_norm(u)] = where(is_near, edge * edge, square_of_norm)
    far = with_quantities(node, instead)
    s = where(is_near, square_of_norm, 0.0)
    even, odd = coefficients[::2], coefficients[3::2]
    near = polynomial(even, 0, edge * edge, s) if any(even) else Const(0.0)
    if not is_even:
        near = add(near, mul(s, mul(inner, polynomial(odd, 0, edge * edge, s))))
    return where(is_near, near, far)


def squares_of_norms(order: Sequence[Expr]) -> dict[Expr, Expr]:
    """The norms by their squares, as both may occur in a formula."""
    return {
        _square_of_norm(node): node
        for node in order
        if isinstance(node, Map) and is_map(node, *_NORMS)
    }


def _square_of_norm(u: Map, done: Mapping[Expr, Expr] | None = None) -> Expr:
    """The square of a norm, over new operands where these are given."""
    parts = whole(u).parts()
    if done is not None:
        parts = [Part(done[side.node], side.axes) for side in parts]
    sides = [side.along(u.shape) for side in parts]
    if is_map(u, root):
        return sides[0]
    return square(sides[0]) if is_map(u, abs) else add(square(sides[0]), square(sides[1]))


def _is_flat(series: Laurent) -> bool:
    """Whether a series has no terms of negative orders and of order 1."""
    return series.order >= 0 and (series.order > 1 or not series.coefficient(1))


def _is_even(series: Laurent) -> bool:
    return series.order % 2 == 0 and not any(series.coefficients[1::2])
