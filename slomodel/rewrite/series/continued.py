"""Elementwise formulas whose terms or poles cancel at a point, by their power series near it.

In x - sin(x) the terms are of order 1 and the value of order 3 in x; in 2/tanh(2 x) - 1/tanh(x) two
poles cancel, and in log(cosh(x))/x² a zero and a pole. A formula in one quantity u is expanded at
u = 0 into a Laurent series with rational coefficients. Where its leading order is above that of its
parts, it is computed for small |u| from the series, and as it stands for others. The law: near
u = 0 the value has full accuracy, and at u = 0 it is the limit; elsewhere it is the same.

Derivatives are taken of the graph with series; bounds are those of the graph without.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from slomodel.functions import (
    add,
    div,
    erf,
    mul,
    neg,
    sub,
)
from slomodel.ir.expr import Const, Einsum, Expr, Map, is_map
from slomodel.ir.walk import postorder
from slomodel.rewrite.elementwise.matching import reaches_variable, with_better_products
from slomodel.rewrite.replacement import composed, remade
from slomodel.rewrite.series.divergences import LOGARITHMIC, divergence
from slomodel.rewrite.series.expansions import (
    ARITHMETIC,
    TERMS,
    ExpansionQuantities,
    LeadingTerms,
    expanded,
    is_constant,
    is_elementwise,
    is_series_function,
)
from slomodel.rewrite.series.joint_zeros import joint_zero, may_have_joint_zero
from slomodel.rewrite.series.laurent import NoSeries
from slomodel.rewrite.series.radial import flat_function_of_norm, joined, squares_of_norms
from slomodel.rewrite.series.small_differences import small_difference
from slomodel.rewrite.singularities.divided_sums import divided_inside


def continued(objective: Expr) -> Expr:
    """The objective with series near the points at which formulas cancel."""
    order = postorder(objective)
    if not any(_may_cancel(node) for node in order):
        return objective
    done: dict[Expr, Expr] = {}
    summed, quantities = _summed(objective, order), ExpansionQuantities(squares_of_norms(order))
    for node in order:
        quantities.of(node)
        operands = tuple(done[operand] for operand in node.operands)
        rebuilt = node if operands == node.operands else remade(node, operands)
        replacement = None
        if isinstance(node, Map) and isinstance(rebuilt, Map):
            is_summed = node.rank > 0 and node in summed
            replacement = _replacement(node, rebuilt, done, quantities, is_summed)
        elif isinstance(node, Einsum):
            replacement = with_better_products(
                node, lambda product: flat_function_of_norm(product, done, quantities), done
            )
        done[node] = rebuilt if replacement is None else replacement
    return done[objective]


def _replacement(
    node: Map,
    rebuilt: Map,
    done: Mapping[Expr, Expr],
    quantities: ExpansionQuantities,
    is_summed: bool,
) -> Expr | None:
    """The node in a form that does not cancel; `rebuilt` is the node over its new operands."""
    if node.function not in ARITHMETIC:
        return flat_function_of_norm(node, done, quantities)
    replacement = _by_series(node, done, quantities, is_summed)
    if replacement is not None:
        return replacement
    if node.function in (mul, div):
        return (
            _quotient(node, done)
            or divided_inside(
                node, lambda operand: _by_series(operand, done, quantities), done.__getitem__
            )
            or flat_function_of_norm(node, done, quantities)
        )
    if not is_summed:
        replacement = small_difference(rebuilt) or divergence(rebuilt) or joint_zero(node, done)
    if replacement is None and not is_summed:
        replacement = _with_common_factors(node, done, quantities)
    return replacement or flat_function_of_norm(node, done, quantities)


def _may_cancel(node: Expr) -> bool:
    known = is_series_function(node) or is_map(node, erf, *LOGARITHMIC)
    return known or may_have_joint_zero(node)


def _summed(objective: Expr, order: Sequence[Expr]) -> set[Expr]:
    """Nodes of which the objective is a sum with fixed weights.

    The digits that an element of a long sum loses are below the rounding of the sum.
    """
    varies = reaches_variable()
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


def _by_series(
    node: Map, done: Mapping[Expr, Expr], quantities: ExpansionQuantities, is_summed: bool = False
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
    leading: LeadingTerms,
    is_summed: bool = False,
) -> Expr | None:
    try:
        if not _cancels(node, u, leading, is_summed):
            return None
        series = expanded(node, u, TERMS, leading.squares.get(u))[node]
    except NoSeries:
        return None
    return joined(node, u, series, done)


def _of_some_factors(
    node: Map, done: Mapping[Expr, Expr], quantities: ExpansionQuantities
) -> Expr | None:
    """A product in which the factors that depend on one quantity cancel, times the others."""
    factors = _factors(node)
    for divisor in [one for one, p in factors if p < 0]:
        for u in quantities.of(divisor):
            own: list[tuple[Expr, int]] = []
            others: list[tuple[Expr, int]] = []
            has_functions = False
            for factor, p in factors:
                is_own = is_constant(factor) or u in quantities.of(factor)
                (own if is_own else others).append((factor, p))
                has_functions |= quantities.of(factor).get(u, False)
            product = _product(own) if others and has_functions and len(own) > 1 else None
            if not isinstance(product, Map) or product.shape != node.shape:
                continue
            series = _series_in(product, u, done, quantities.leading)
            if series is not None:
                return mul(_product([(done.get(one, one), p) for one, p in others]), series)
    return None


def _factors(node: Expr) -> list[tuple[Expr, int]]:
    """The factors of a product along the axes of the whole, and 1 or -1 for divisors."""
    factors: list[tuple[Expr, int]] = []
    stack: list[tuple[Expr, int]] = [(node, 1)]
    while stack:
        factor, p = stack.pop()
        if is_map(factor, mul, div) and factor.shape == node.shape and is_elementwise(factor):
            left, right = factor.operands
            stack += [(right, -p if is_map(factor, div) else p), (left, p)]
        elif is_map(factor, neg):
            factors += [(Const(-1.0), 1)]
            stack.append((factor.operands[0], p))
        else:
            factors.append((factor, p))
    return factors


def _with_common_factors(
    node: Map, done: Mapping[Expr, Expr], quantities: ExpansionQuantities
) -> Expr | None:
    """A sum of two terms without their common factors by its series, times these."""
    terms = [_factors(one) for one in node.operands if one.shape == node.shape]
    if len(terms) < 2:
        return None
    common: list[tuple[Expr, int]] = []
    for factor in terms[0]:
        if factor in terms[1] and not is_constant(factor[0]):
            terms[1].remove(factor)
            common.append(factor)
    left = [factor for factor in terms[0] if factor not in common]
    difference = node.function(_product(left), _product(terms[1])) if common else None
    if not isinstance(difference, Map) or difference.shape != node.shape:
        return None
    if len(difference.operands) != 2:
        return None  # One of the terms was 0.
    series = _by_series(difference, done, quantities)
    return None if series is None else mul(_product([(done[one], p) for one, p in common]), series)


def _product(factors: Sequence[tuple[Expr, int]]) -> Expr:
    above: Expr = Const(1.0)
    below: Expr = Const(1.0)
    for factor, p in factors:
        if p > 0:
            above = mul(above, factor)
        else:
            below = mul(below, factor)
    return div(above, below)


def _cancels(node: Map, u: Expr, leading: LeadingTerms, is_summed: bool) -> bool:
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
