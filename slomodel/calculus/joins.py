"""How smoothly the two branches of a `where` meet, shown by SymPy."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import lru_cache

import sympy as sp

from slomodel.functions import ge, gt, le, lt, pow, where
from slomodel.ir.expr import Axes, Const, Expr, Input, Map

_MOST_NODES = 200
_HIGHEST_DEGREE = 2
_HIGHEST_ORDER = 2
_ORDERED = (lt, le, gt, ge)
_TOLERANCE = 1e-12
_LARGEST_POWER = 64


def is_smooth_join(node: Map, varying: Collection[Expr]) -> bool:
    """True when the choice is shown to be C¹ in the one quantity that varies in it."""
    return join_order(node, varying) >= 1


def join_order(node: Map, varying: Collection[Expr]) -> int:
    """How many derivatives of the branches are shown to be equal where the choice changes.

    0 for values only, 2 at most; -1 where nothing is shown. One quantity may vary in the choice;
    the boundary is where the two sides of the comparison are equal: it must be a polynomial of
    degree at most 2 in that quantity, or in its absolute value.
    """
    condition = node.operands[0]
    if not isinstance(condition, Map) or condition.function not in _ORDERED:
        return -1
    reader = _Reader(varying)
    axes = [tuple(node.axes[0][k] for k in own) for own in condition.axes]
    sides = [reader.read(o, own) for o, own in zip(condition.operands, axes, strict=True)]
    branches = [reader.read(node.operands[k], node.axes[k]) for k in (1, 2)]
    if reader.is_full or len(reader.varying_symbols) != 1:
        return -1
    left, right = sides
    return _shown(left, right, branches[0] - branches[1], reader.varying_symbols[0])


@lru_cache(maxsize=1000)
def _shown(left: sp.Expr, right: sp.Expr, difference: sp.Expr, t: sp.Symbol) -> int:
    """The order of a join at left = right; written sums have thousands of one form."""
    for threshold in (left, right):
        if isinstance(left + right - threshold, sp.Abs) and threshold.is_Symbol:
            # |u| <= c has a boundary only where c is not negative.
            positive = {threshold: sp.Symbol("c", positive=True)}
            left, right, difference = (x.subs(positive) for x in (left, right, difference))
    points = _boundary(left, right, t)
    if points is None:
        return -1
    for order in range(_HIGHEST_ORDER + 1):
        if not all(_vanishes(difference.subs(t, point)) for point in points):
            return order - 1
        difference = sp.diff(difference, t)
    return _HIGHEST_ORDER


def _boundary(left: sp.Expr, right: sp.Expr, t: sp.Symbol) -> list[sp.Expr] | None:
    """The values of t at which the sides are equal; None where that is not known."""
    equation = left - right
    for magnitude, other in ((left, right), (right, left)):
        if isinstance(magnitude, sp.Abs) and not other.has(t):
            # |u| = c is u = c or u = -c.
            equation = magnitude.args[0] ** 2 - other**2
    try:
        polynomial = sp.Poly(equation, t)
    except sp.PolynomialError:
        return None
    if not 1 <= polynomial.degree() <= _HIGHEST_DEGREE:
        return None
    return list(sp.roots(polynomial))


def _vanishes(expression: sp.Expr) -> bool:
    """True when an expression is shown to be 0; numbers up to a rounding of the model's."""
    if expression.is_number:
        value = expression.evalf()
        # Not comparable are NaN, infinities, complex numbers, derivatives that SymPy lacks.
        return bool(value.is_comparable) and abs(float(value)) <= _TOLERANCE
    return not _differs_somewhere(expression) and bool(sp.simplify(expression) == 0)


def _differs_somewhere(expression: sp.Expr) -> bool:
    """True when an expression is not 0 at some numbers: simplifying such a one can take minutes."""
    symbols = sorted(expression.free_symbols, key=lambda symbol: symbol.name)
    for start in (3, 11):
        point = {symbol: sp.Rational(start + 2 * k, 7) for k, symbol in enumerate(symbols)}
        value = expression.subs(point).evalf()
        if value.is_comparable and abs(float(value)) > _TOLERANCE:
            return True
    return False


def _is_opaque(node: Map) -> bool:
    """True for a choice, and for a power that exact arithmetic might write out: 4.685^1e300."""
    if node.function is not pow:
        return node.function is where
    exponent = node.operands[1]
    if isinstance(exponent, Const):
        return not 1 / _LARGEST_POWER <= abs(exponent.value) <= _LARGEST_POWER
    return not isinstance(exponent, Input)


@dataclass(slots=True)
class _Reader:
    """Turns small elementwise graphs into SymPy; all else is a symbol."""

    varying: Collection[Expr]
    symbols: dict[tuple[Expr, Axes], sp.Symbol] = field(default_factory=dict)
    count: int = 0

    @property
    def varying_symbols(self) -> list[sp.Symbol]:
        return [symbol for (node, _), symbol in self.symbols.items() if node in self.varying]

    @property
    def is_full(self) -> bool:
        """True when the graphs were too large, so that what was read is not all."""
        return self.count > _MOST_NODES

    def read(self, root: Expr, axes: Axes) -> sp.Expr:
        """The expression of a node whose axes are `axes` of the choice."""
        results: list[sp.Expr] = []
        stack: list[tuple[Expr, Axes, bool]] = [(root, axes, False)]
        while stack:
            node, own, is_left = stack.pop()
            self.count += 1
            if self.is_full or not isinstance(node, Map) or _is_opaque(node):
                results.append(self._leaf(node, own))
            elif not is_left:
                stack.append((node, own, True))
                parts = zip(node.operands, node.axes, strict=True)
                stack += [(o, tuple(own[k] for k in a), False) for o, a in parts][::-1]
            else:
                operands = results[-len(node.operands) :]
                del results[-len(node.operands) :]
                results.append(node.function.definition(*operands))
        return results[0]

    def _leaf(self, node: Expr, axes: Axes) -> sp.Expr:
        if isinstance(node, Const):
            return sp.Rational(node.value)
        key = (node, axes)
        if key not in self.symbols:
            self.symbols[key] = sp.Symbol(f"s{len(self.symbols)}", real=True)
        return self.symbols[key]
