"""Elementwise formulas whose terms or poles cancel at a point, by their power series near it.

In x - sin(x) the terms are of order 1 and the value of order 3 in x; in 2/tanh(2 x) - 1/tanh(x) two
poles cancel, and in log(cosh(x))/x² a zero and a pole. A formula in one quantity u is expanded at
u = 0 into a Laurent series with rational coefficients. Where its leading order is above that of its
parts, it is computed for small |u| from the series, and as it stands for others. The law: near
u = 0 the value has full accuracy, and at u = 0 it is the limit; elsewhere it is the same.

Derivatives are taken of the graph with series; bounds are those of the graph without.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

from slomodel.functions import abs, add, div, le, mul, neg, pow, sub, where
from slomodel.functions.compound import graph_values
from slomodel.functions.power_series import polynomial
from slomodel.ir import build
from slomodel.ir.expr import Const, Einsum, Expr, Map, is_map
from slomodel.ir.walk import postorder
from slomodel.rewrite.elementwise.matching import Varying
from slomodel.rewrite.replacement import composed, remade
from slomodel.rewrite.series.divergences import LOGARITHMIC, divergence
from slomodel.rewrite.series.joint_zeros import joint_zero, may_have_joint_zero
from slomodel.rewrite.series.laurent import SERIES, Laurent, NoSeries, constant, identity, series_of
from slomodel.rewrite.series.small_differences import small_difference
from slomodel.rewrite.singularities.divided_sums import divided_inside

_FEW_TERMS, _TERMS = 8, 48
"""Terms that show whether the leading ones cancel, and those of the series that is computed."""
_MOST_NODES = 40
"""Nodes of a formula that is expanded: rational arithmetic takes about a millisecond for each."""
_MOST_TRIED = 3
"""Quantities for a node, so that the work stays in proportion to the graph."""
_LARGEST_EXPONENT = 64
"""Larger powers have coefficients whose exact fractions are long."""
_EDGES = (1.5, 1.0, 0.75, 0.5, 0.375, 0.25, 0.1875, 0.125, 0.0625)
"""The largest |u| at which the series is used, tried in this order; none is used if none suits."""
_NEGLIGIBLE = 1e-18
"""Terms below this fraction of the first are below its rounding."""
_MOST_POLYNOMIAL_TERMS = 32
"""Multiplications for each element that a series may take."""
_ARITHMETIC = frozenset((add, sub, mul, div))


def continued(objective: Expr) -> Expr:
    """The objective with series near the points at which formulas cancel."""
    order = postorder(objective)
    if not any(_may_cancel(node) for node in order):
        return objective
    done: dict[Expr, Expr] = {}
    summed, quantities = _summed(objective, order), _Quantities()
    for node in order:
        quantities.of(node)
        operands = tuple(done[operand] for operand in node.operands)
        rebuilt = node if operands == node.operands else remade(node, operands)
        replacement = None
        if isinstance(node, Map) and isinstance(rebuilt, Map) and node.function in _ARITHMETIC:
            is_summed = node.rank > 0 and node in summed
            replacement = _by_series(node, done, quantities, is_summed)
            if replacement is None and node.function in (mul, div):
                replacement = _quotient(node, done) or divided_inside(
                    node,
                    lambda operand: _by_series(operand, done, quantities),
                    done.__getitem__,
                )
            elif replacement is None and not is_summed:
                replacement = (
                    small_difference(rebuilt) or divergence(rebuilt) or joint_zero(node, done)
                )
        done[node] = rebuilt if replacement is None else replacement
    return done[objective]


def _may_cancel(node: Expr) -> bool:
    return _is_series_function(node) or is_map(node, *LOGARITHMIC) or may_have_joint_zero(node)


def _summed(objective: Expr, order: Sequence[Expr]) -> set[Expr]:
    """Nodes of which the objective is a sum with fixed weights.

    The digits that an element of a long sum loses are below the rounding of the sum.
    """
    varies = Varying()
    terms = {objective}
    for node in reversed(order):
        if node not in terms:
            continue
        if is_map(node, add, sub, neg):
            terms.update(node.operands)
        elif isinstance(node, Einsum) or is_map(node, mul) or is_map(node, div):
            varying = [operand for operand in node.operands if varies(operand)]
            if len(varying) == 1 and not (is_map(node, div) and varying[0] is node.operands[1]):
                terms.update(varying)
    return terms


def _quotient(node: Map, done: Mapping[Expr, Expr]) -> Expr | None:
    """A quotient with a small difference, as it was before the difference was replaced."""
    quotient = small_difference(node) if is_map(node, div) else None
    if quotient is None:
        return None
    changed = {
        inner: done[inner] for inner in postorder(quotient) if done.get(inner, inner) is not inner
    }
    return composed([quotient], changed)[quotient]


def _is_series_function(node: Expr) -> bool:
    """Whether a node is a function with a series that is not a polynomial."""
    if not isinstance(node, Map) or node.function.name in ("neg", "square"):
        return False
    return node.function.name in SERIES or is_map(node, pow)


class _Quantities:
    """The quantities of which nodes are functions with constants."""

    def __init__(self) -> None:
        self._of: dict[Expr, dict[Expr, bool]] = {}
        self.leading = _LeadingTerms()

    def of(self, node: Expr) -> Mapping[Expr, bool]:
        """The deepest few of these quantities, and the node itself; none of a constant.

        Each with whether a function with an infinite series is among those from it to the node.
        """
        if node not in self._of:
            is_next = all(operand in self._of for operand in node.operands)
            for one in (node,) if is_next else postorder(node):
                if one not in self._of:
                    self._of[one] = self._found(one)
        return self._of[node]

    def _found(self, node: Expr) -> dict[Expr, bool]:
        if _is_constant(node):
            return {}
        result: dict[Expr, bool] = {}
        near = _near_zero(node)
        if near is not None or _is_elementwise(node):
            is_function = near is None and _is_series_function(node)
            mapped = [self._of[operand] for operand in _parts(node) if self._of[operand]]
            for u in mapped[0] if mapped else ():
                if len(result) < _MOST_TRIED and all(u in other for other in mapped):
                    result[u] = is_function or any(other[u] for other in mapped)
        result[node] = False
        return result


class _LeadingTerms:
    """The first terms of series, computed once for each node and quantity."""

    def __init__(self) -> None:
        self._of: dict[Expr, dict[Expr, tuple[Laurent, frozenset[Expr]] | None]] = {}

    def of(self, node: Expr, u: Expr) -> Laurent:
        """The series in u of a node that is a function of it. Raises NoSeries."""
        known = self._of.setdefault(u, {u: (identity(_FEW_TERMS), frozenset((u,)))})
        stack = [node]
        while stack:
            one = stack[-1]
            waiting = [] if one in known or _is_constant(one) else _parts(one)
            waiting = [operand for operand in waiting if operand not in known]
            if waiting:
                stack += waiting
                continue
            if one not in known:
                known[one] = self._found(one, known)
            stack.pop()
        result = known[node]
        if result is None:
            raise NoSeries
        return result[0]

    def _found(
        self, node: Expr, known: Mapping[Expr, tuple[Laurent, frozenset[Expr]] | None]
    ) -> tuple[Laurent, frozenset[Expr]] | None:
        """The series, and the nodes under the node; None without a series or of too many nodes."""
        try:
            if _is_constant(node):
                return constant(_fraction(node), _FEW_TERMS), frozenset((node,))
            assert isinstance(node, Map)
            parts = [known[operand] for operand in _parts(node)]
            whole = [part for part in parts if part is not None]
            under = frozenset((node,)).union(*(nodes for _, nodes in whole))
            if len(whole) < len(parts) or len(under) > _MOST_NODES:
                return None
            return _series_of(node, [own for own, _ in whole]), under
        except NoSeries:
            return None


def _by_series(
    node: Map, done: Mapping[Expr, Expr], quantities: _Quantities, is_summed: bool = False
) -> Expr | None:
    """The node by its series near a point where it cancels; None if there is none.

    Elements of a sum only where poles cancel.
    """
    for u, has_functions in quantities.of(node).items():
        if not has_functions:
            continue
        series = _series_in(node, u, done, quantities.leading, is_summed)
        if series is not None:
            return series
    return None if node.function in (add, sub) else _of_some_factors(node, done, quantities)


def _series_in(
    node: Map,
    u: Expr,
    done: Mapping[Expr, Expr],
    leading: _LeadingTerms,
    is_summed: bool = False,
) -> Expr | None:
    try:
        if not _cancels(node, u, leading, is_summed):
            return None
        series = _expanded(node, u, _TERMS)[node]
    except NoSeries:
        return None
    return _joined(node, u, series, done)


def _of_some_factors(node: Map, done: Mapping[Expr, Expr], quantities: _Quantities) -> Expr | None:
    """A product in which the factors that depend on one quantity cancel, times the others."""
    factors = _factors(node)
    for divisor in [one for one, p in factors if p < 0]:
        for u in quantities.of(divisor):
            own: list[tuple[Expr, int]] = []
            others: list[tuple[Expr, int]] = []
            has_functions = False
            for factor, p in factors:
                is_own = _is_constant(factor) or u in quantities.of(factor)
                (own if is_own else others).append((factor, p))
                has_functions |= quantities.of(factor).get(u, False)
            product = _product(own) if others and has_functions and len(own) > 1 else None
            if not isinstance(product, Map) or product.shape != node.shape:
                continue
            series = _series_in(product, u, done, quantities.leading)
            if series is not None:
                return mul(_product([(done.get(one, one), p) for one, p in others]), series)
    return None


def _factors(node: Map) -> list[tuple[Expr, int]]:
    """The factors of a product along the axes of the whole, and 1 or -1 for divisors."""
    factors: list[tuple[Expr, int]] = []
    stack: list[tuple[Expr, int]] = [(node, 1)]
    while stack:
        factor, p = stack.pop()
        if is_map(factor, mul, div) and factor.shape == node.shape and _is_elementwise(factor):
            left, right = factor.operands
            stack += [(right, -p if is_map(factor, div) else p), (left, p)]
        elif is_map(factor, neg):
            factors += [(Const(-1.0), 1)]
            stack.append((factor.operands[0], p))
        else:
            factors.append((factor, p))
    return factors


def _product(factors: Sequence[tuple[Expr, int]]) -> Expr:
    above: Expr = Const(1.0)
    below: Expr = Const(1.0)
    for factor, p in factors:
        if p > 0:
            above = mul(above, factor)
        else:
            below = mul(below, factor)
    return div(above, below)


def _is_elementwise(node: Expr) -> bool:
    """Whether a node is a function with a series of operands along its own axes, and constants."""
    if not isinstance(node, Map):
        return False
    own = tuple(range(node.rank))
    known = node.function in _ARITHMETIC or node.function is pow or node.function.name in SERIES
    return known and all(
        axes == own or _is_constant(operand)
        for operand, axes in zip(node.operands, node.axes, strict=True)
    )


def _expanded(node: Expr, u: Expr, terms: int) -> dict[Expr, Laurent]:
    """The Laurent series in u of the nodes under a node. Raises NoSeries."""
    known: dict[Expr, Laurent] = {u: identity(terms)}
    stack = [node]
    while stack:
        one = stack[-1]
        if one in known:
            stack.pop()
            continue
        if _is_constant(one):
            known[one] = constant(_fraction(one), terms)
            continue
        waiting = [operand for operand in _parts(one) if operand not in known]
        if waiting:
            stack += waiting
            continue
        assert isinstance(one, Map)
        known[one] = _series_of(one, [known[operand] for operand in _parts(one)])
        stack.pop()
    return known


def _near_zero(node: Expr) -> Expr | None:
    """The choice near u = 0 of a node that is one formula for small |u| and another beyond."""
    if not is_map(node, where):
        return None
    condition, near, _far = node.operands
    is_small = is_map(condition, le) and is_map(condition.operands[0], abs)
    is_small = is_small and isinstance(condition.operands[1], Const)
    return near if is_small and near.shape == node.shape else None


def _parts(node: Expr) -> tuple[Expr, ...]:
    """The operands of which a series is computed: of a choice the one near 0."""
    near = _near_zero(node)
    return node.operands if near is None else (near,)


def _is_constant(node: Expr) -> bool:
    """Whether a node is a number, or a function of numbers, as log(2)."""
    return isinstance(node, Const) or (
        isinstance(node, Map) and all(isinstance(operand, Const) for operand in node.operands)
    )


def _fraction(node: Expr) -> Fraction:
    value = float(graph_values(node, {}))
    if not math.isfinite(value):
        raise NoSeries
    return Fraction(value)


def _series_of(node: Map, operands: Sequence[Laurent]) -> Laurent:
    function = node.function
    if function is where:
        return operands[0]
    if function in (add, sub):
        left, right = operands
        result = left + (right.scaled(Fraction(-1)) if function is sub else right)
    elif function is mul:
        result = operands[0] * operands[1]
    elif function is div:
        result = operands[0] * operands[1].reciprocal()
    elif function is pow:
        exponent = node.operands[1]
        if not isinstance(exponent, Const) or math.fabs(exponent.value) > _LARGEST_EXPONENT:
            raise NoSeries
        result = operands[0].power(Fraction(exponent.value))
    else:
        result = series_of(function.name, operands[0])
    if result.is_zero:
        raise NoSeries
    return result


def _cancels(node: Map, u: Expr, leading: _LeadingTerms, is_summed: bool) -> bool:
    """Whether the leading terms of the node's parts cancel, so that digits are lost near u = 0."""
    result = leading.of(node, u)
    left, right = (leading.of(operand, u) for operand in node.operands)
    if result.order < 0:
        return False
    if node.function in (add, sub):
        least = min(left.order, right.order)
        return result.order > least and (least < 0 or not is_summed)
    if node.function is div:
        return right.order > 0
    return min(left.order, right.order) < 0


def _joined(node: Expr, u: Expr, series: Laurent, done: Mapping[Expr, Expr]) -> Expr | None:
    """The series for small |u|, and the node as it stands elsewhere; None if no edge fits."""
    coefficients = [Fraction(0)] * series.order + list(series.coefficients)
    edge = _edge(series)
    if edge is None:
        return None
    own = done[u]
    is_near = le(abs(own), edge)
    near = polynomial(coefficients, 0, edge, where(is_near, own, 0.0))
    far = _at(node, u, where(is_near, edge, own))
    return where(is_near, near, far)


def _edge(series: Laurent) -> float | None:
    """The largest |u| at which few terms of the series are enough, none larger than the first."""
    sizes = [math.fabs(float(c)) for c in series.coefficients]
    for edge in _EDGES:
        terms = [size * edge**k for k, size in enumerate(sizes)]
        kept = [k for k, term in enumerate(terms) if term > _NEGLIGIBLE * terms[0]]
        if max(kept) > len(terms) // 2 + 16 or sum(terms[1:]) > 2.0 * terms[0]:
            continue
        if sum(1 for k in kept if sizes[k]) <= _MOST_POLYNOMIAL_TERMS:
            return edge
    return None


def _at(node: Expr, u: Expr, instead: Expr) -> Expr:
    """The node with another quantity in place of u."""
    done: dict[Expr, Expr] = {u: instead}
    for one in postorder(node):
        if one not in done:
            operands = tuple(done[operand] for operand in one.operands)
            done[one] = one if operands == one.operands else remade(one, operands)
    return build.broadcast(done[node], (), node.shape) if not done[node].rank else done[node]
