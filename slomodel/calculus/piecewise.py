"""How smoothly the two branches of a `where` meet, proved in exact arithmetic.

The node switches branches where g changes sign. Let D be the difference of the branches and t a
quantity in which g is a polynomial: the branch boundary is where t is one of the roots ρ of g. If
D, ∂D/∂t, …, ∂ᵏD/∂tᵏ vanish there identically in all other quantities, then D = (t − ρ)ᵏ⁺¹ h with a
smooth h, so that all derivatives up to order k agree; and two functions that are Cᵏ up to a smooth
boundary on which these derivatives agree are Cᵏ together.

There is no tolerance: a jump of the slope by 1e-13 under a factor of 1e13 is a kink. The constants
of a model have two exact readings: the doubles that kernels compute with, and the numbers as
written (0.1 is 1/10; only then is 1.345²/2 equal to 0.9045125). The boundary counts as smooth if it
is smooth in either reading, as the two differ by the rounding of literals only. Data are symbols:
the branches must meet smoothly for all their values.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

import sympy as sp

from slomodel.functions import ge, gt, land, le, lnot, lor, lt, pow, where
from slomodel.ir.exact import symbolic
from slomodel.ir.expr import Axes, Const, Expr, Input, Map

_MOST_NODES = 200
"""Limit on the nodes read of a comparison and its branches; it bounds SymPy's time."""
_MOST_CHOICES = 6
"""Nested `where` nodes read inside the branches; further ones become symbols."""
_HIGHEST_DEGREE = 2
"""Highest degree in t of g whose roots are taken: roots of cubics are nested radicals."""
_HIGHEST_ORDER = 2
"""C² is all that bounds on L1 and L2 need."""
_ORDERED = (lt, le, gt, ge)
_CONNECTIVES = (land, lor, lnot)
_LARGEST_POWER = 64
"""Exponents up to this, and their inverses, are expanded: 4.685^1e300 would exhaust the memory."""
_MOST_LEVELS = 6
"""Levels below a comparison that are searched for its quantities (`_cuts`)."""
_LARGEST_EXPONENT = 1000.0
"""Largest exponent of numbers whose digits are computed; exp(exp(exp(20))) exhausts the memory."""
_DIGITS = 30
"""Decimal digits to which numbers are evaluated to distinguish them from 0: twice a double's."""
_LARGEST_MULTIPLE = 4096
"""Largest numerator in angles and exponents that SymPy may expand; 1.345 = 269/200 has 269."""
_FAILURES = (TypeError, ValueError, ArithmeticError, NotImplementedError)
"""Exceptions of SymPy for expressions without a real value somewhere, as in max(sqrt(-5), 1)."""


def is_continuously_differentiable(node: Map, varying: Collection[Expr]) -> bool:
    """True if the node is proved to be C¹ in the quantities that depend on variables."""
    return continuity_order(node, varying) >= 1


def continuity_order(node: Map, varying: Collection[Expr]) -> int:
    """How many derivatives of the branches are proved to agree where the condition changes.

    At most 2; 0 if only the values agree, -1 if nothing is proved. `varying` are the nodes that
    depend on variables. Where a condition changes, one of its comparisons does: each comparison is
    checked at all points where its two sides are equal.
    """
    orders = []
    for comparison, axes in _comparisons(node.operands[0], node.axes[0]):
        if comparison not in varying:
            continue
        if not isinstance(comparison, Map) or comparison.function not in _ORDERED:
            return -1
        orders.append(_order_across(comparison, axes, node, varying))
    return min(orders, default=_HIGHEST_ORDER)


def _comparisons(condition: Expr, axes: Axes) -> Iterator[tuple[Expr, Axes]]:
    """The comparisons below the connectives of a condition, with their axes in the `where`."""
    stack = [(condition, axes)]
    while stack:
        node, own = stack.pop()
        if isinstance(node, Map) and node.function in _CONNECTIVES:
            parts = zip(node.operands, node.axes, strict=True)
            stack += [(operand, tuple(own[k] for k in a)) for operand, a in parts]
        else:
            yield node, own


def _order_across(comparison: Map, axes: Axes, node: Map, varying: Collection[Expr]) -> int:
    """The highest order of continuity that a cut proves across the boundary of one comparison."""
    best = -1
    for cut in _cuts(comparison, varying):
        for written in (False, True):
            try:
                best = max(
                    best, _order_read(comparison, axes, node, _Reader(varying, cut, written))
                )
            except _FAILURES:
                continue
            if best == _HIGHEST_ORDER:
                return best
    return best


def _order_read(comparison: Map, axes: Axes, node: Map, reader: _Reader) -> int:
    sides = [
        reader.read(o, tuple(axes[k] for k in own))
        for o, own in zip(comparison.operands, comparison.axes, strict=True)
    ]
    branches = [reader.read(node.operands[k], node.axes[k]) for k in (1, 2)]
    if reader.is_full:
        return -1
    symbols = frozenset(reader.varying_symbols)
    return _proved_order(sides[0], sides[1], branches[0] - branches[1], symbols)


def _cuts(comparison: Map, varying: Collection[Expr]) -> Iterator[frozenset[Expr]]:
    """Sets of nodes to read as symbols: the sides of a comparison, then nodes level by level below.

    In norm2(x) > 1 the norm itself is the better symbol; for x[0] > x[1] with branches in x[0] -
    x[1] only the elements show that the branches vanish there.
    """
    cut = {operand for operand in comparison.operands if operand in varying}
    for _ in range(_MOST_LEVELS):
        yield frozenset(cut)
        if not any(_is_open(node) for node in cut):
            return
        below = [node.operands if _is_open(node) else (node,) for node in cut]
        cut = {operand for operands in below for operand in operands if operand in varying}
    yield frozenset()


def _is_open(node: Expr) -> bool:
    return isinstance(node, Map) and node.function is not where


@lru_cache(maxsize=1000)
def _proved_order(
    left: sp.Expr, right: sp.Expr, difference: sp.Expr, varying: frozenset[sp.Symbol]
) -> int:
    """The order of continuity at left = right; cached, as a long sum has thousands of one form."""
    for threshold in (left, right):
        if isinstance(left + right - threshold, sp.Abs) and threshold.is_Symbol:
            # |u| <= c has a boundary only if c is not negative.
            positive = {threshold: sp.Symbol("c", positive=True)}
            left, right, difference = (x.subs(positive) for x in (left, right, difference))
            varying = frozenset(positive.get(symbol, symbol) for symbol in varying)
    best = -1
    for t in sorted(varying, key=lambda symbol: symbol.name):
        points = _boundary(left, right, t, varying)
        if points is not None:
            best = max(best, _order_at(points, t, difference))
    return best


def _order_at(points: list[sp.Expr], t: sp.Symbol, difference: sp.Expr) -> int:
    for order in range(_HIGHEST_ORDER + 1):
        if not all(_vanishes(difference.subs(t, point)) for point in points):
            return order - 1
        difference = sp.diff(difference, t)
    return _HIGHEST_ORDER


def _boundary(
    left: sp.Expr, right: sp.Expr, t: sp.Symbol, varying: frozenset[sp.Symbol]
) -> list[sp.Expr] | None:
    """All values of t at which the sides are equal; None if some may be missing.

    The leading coefficient must be a number: x y = 0 holds not only at x = 0.
    """
    equation = _unwrapped(left, right, t)
    # SymPy 1.14 takes exp(0.3) for a power of exp(2^-54), and factors polynomials of that degree.
    numbers = [atom for atom in equation.atoms(sp.exp) if atom.is_number]
    names = {number: sp.Dummy("e", positive=True) for number in numbers}
    values = {name: one for one, name in names.items()}
    equation = equation.xreplace(names)
    try:
        polynomial = sp.Poly(equation, t)
    except sp.PolynomialError:
        return None
    if not 1 <= polynomial.degree() <= _HIGHEST_DEGREE:
        return None
    others = (equation.free_symbols & varying) - {t}
    if others and not polynomial.LC().is_number:
        return None
    return [point.xreplace(values) for point in sp.roots(polynomial)]


def _unwrapped(left: sp.Expr, right: sp.Expr, t: sp.Symbol) -> sp.Expr:
    """An expression that is 0 wherever the sides are equal: u² − c² for |u| = c."""
    for side, other in ((left, right), (right, left)):
        if other.has(t):
            continue
        if isinstance(side, sp.Abs) or (isinstance(side, sp.Pow) and side.exp == sp.Rational(1, 2)):
            inner, level = side.args[0], other**2
            return inner**2 - level if isinstance(side, sp.Abs) else inner - level
        if isinstance(side, sp.exp):
            return side.args[0] - sp.log(other)
        if isinstance(side, sp.log):
            return side.args[0] - sp.exp(other)
    return left - right


def _vanishes(expression: sp.Expr) -> bool:
    """True if an expression is proved to be 0."""
    if expression.is_Rational:
        return bool(expression == 0)
    if expression.has(sp.nan, sp.zoo, sp.oo, -sp.oo) or not _has_digits(expression):
        return False
    if expression.is_number:
        return not _is_nonzero(expression) and _simplifies_to_zero(expression)
    return not _differs_somewhere(expression) and _simplifies_to_zero(expression)


def _simplifies_to_zero(expression: sp.Expr) -> bool:
    """True if SymPy proves that an expression is 0; it is not tried on very costly expressions.

    SymPy expands cos(10^16 t) into a polynomial in cos(t), and an open Piecewise piece by piece.
    """
    if expression.has(sp.Piecewise):
        return False
    if sp.expand(expression) == 0:
        return True
    for part in sp.preorder_traversal(expression):
        inner = part.args if isinstance(part, sp.Function) else part.args[1:]
        if isinstance(part, (sp.Function, sp.Pow)) and any(map(_has_large_multiple, inner)):
            return False
    return bool(sp.simplify(expression) == 0)


def _has_large_multiple(expression: sp.Expr) -> bool:
    return any(abs(number.p) > _LARGEST_MULTIPLE for number in expression.atoms(sp.Rational))


def _differs_somewhere(expression: sp.Expr) -> bool:
    """True if an expression is not 0 at a sample point.

    A quick test before `sp.simplify`, which can take minutes on expressions that are not 0.
    """
    symbols = sorted(expression.free_symbols, key=lambda symbol: symbol.name)
    for start in (3, 11):
        point = {symbol: sp.Rational(start + 2 * k, 7) for k, symbol in enumerate(symbols)}
        value = expression.subs(point)
        if _has_digits(value) and _is_nonzero(value):
            return True
    return False


def _is_nonzero(number: sp.Expr) -> bool:
    """True for a number with a known nonzero digit; False if SymPy cannot distinguish it from 0."""
    value = number.evalf(_DIGITS)
    # NaN, infinities, complex numbers and derivatives that SymPy lacks are not comparable.
    return bool(value.is_comparable) and bool(value != 0)


def _has_digits(expression: sp.Expr) -> bool:
    """False if an exponent is so large that computing the digits would not end."""
    for part in sp.postorder_traversal(expression):
        if not part.is_number or not part.args:
            continue
        if isinstance(part, (sp.exp, sp.sinh, sp.cosh)):
            exponent = part.args[0]
        elif isinstance(part, sp.Pow) and not part.exp.is_Rational:
            exponent = part.exp * sp.log(sp.Abs(part.base))
        else:
            continue
        size = sp.Abs(exponent.evalf())
        if not size.is_comparable or size > _LARGEST_EXPONENT:
            return False
    return True


def _is_opaque(node: Map) -> bool:
    """True for a power that exact arithmetic might expand: 4.685^1e300."""
    if node.function is not pow:
        return False
    exponent = node.operands[1]
    if isinstance(exponent, Const):
        return not 1 / _LARGEST_POWER <= abs(exponent.value) <= _LARGEST_POWER
    return not isinstance(exponent, Input) or exponent.role == "variable"


@dataclass(slots=True)
class _Reader:
    """Translates small elementwise graphs to SymPy; other nodes and those of `cut` become symbols.

    `written`: constants are read as they were written, not as doubles. A `where` inside a branch
    becomes a Piecewise: at the boundary it takes one of its own branches, and if it changes just
    there, its own order limits that of the whole.
    """

    varying: Collection[Expr]
    cut: Collection[Expr]
    written: bool
    symbols: dict[tuple[Expr, Axes], sp.Symbol] = field(default_factory=dict)
    count: int = 0
    choices: int = 0

    @property
    def varying_symbols(self) -> list[sp.Symbol]:
        return [symbol for (node, _), symbol in self.symbols.items() if node in self.varying]

    @property
    def is_full(self) -> bool:
        """True if the graphs were too large to be read in full."""
        return self.count > _MOST_NODES

    def read(self, root: Expr, axes: Axes) -> sp.Expr:
        """The expression of a node whose axes are `axes` in the `where`."""
        results: list[sp.Expr] = []
        stack: list[tuple[Expr, Axes, bool]] = [(root, axes, False)]
        while stack:
            node, own, is_left = stack.pop()
            self.count += 1
            if self.is_full or not isinstance(node, Map) or self._is_leaf(node, is_left):
                results.append(self._leaf(node, own))
            elif not is_left:
                stack.append((node, own, True))
                parts = zip(node.operands, node.axes, strict=True)
                stack += [(o, tuple(own[k] for k in a), False) for o, a in parts][::-1]
            else:
                operands = results[-len(node.operands) :]
                del results[-len(node.operands) :]
                results.append(self._applied(node, operands))
        return results[0]

    def _is_leaf(self, node: Map, is_left: bool) -> bool:
        if node in self.cut or _is_opaque(node):
            return True
        if node.function is where and not is_left:
            self.choices += 1
            return self.choices > _MOST_CHOICES
        return False

    def _applied(self, node: Map, operands: list[sp.Expr]) -> sp.Expr:
        if node.function is where:
            condition, a, b = operands
            return sp.Piecewise((a, condition), (b, True), evaluate=False)
        return node.function.definition(*operands)

    def _leaf(self, node: Expr, axes: Axes) -> sp.Expr:
        if isinstance(node, Const):
            return self._number(node)
        key = (node, axes)
        if key not in self.symbols:
            kind = {"real": True} if node.dtype == "real" else {}
            self.symbols[key] = sp.Symbol(f"s{len(self.symbols)}", **kind)
        return self.symbols[key]

    def _number(self, node: Const) -> sp.Basic:
        if node.dtype == "bool":
            return sp.true if node.value else sp.false
        if not math.isfinite(node.value):
            return sp.Float(node.value)
        return symbolic(node.exact) if self.written else sp.Rational(node.value)
