"""Sums of products of enclosed numbers, with the errors of summation.

A sum of k products of m factors, in any order, has an error of at most γ_(k+m) Σ|products| (Higham,
Accuracy and Stability, section 3.1); 8(k + m + 4)u Σ|products| bounds it with its own rounding. For
two factors with every summed label in both, Σ|a||b| <= ‖a‖‖b‖ over the summed labels costs norms
instead of another product.
"""

from __future__ import annotations

from collections.abc import Sequence

from slomodel.calculus.rays.numbers import UNIT, MidRad, enlarged
from slomodel.functions import abs, add, mul, sqrt, square, sub
from slomodel.ir import build
from slomodel.ir.expr import Const, Einsum, Expr, Triangle


def is_view(node: Einsum) -> bool:
    """Whether the node only moves, repeats or permutes the elements of one operand."""
    summed = set(range(len(node.dims))) - set(node.output)
    return len(node.operands) == 1 and not summed


def is_elementwise(node: Einsum) -> bool:
    """Whether one operand has all labels, so that the products take no more than its elements."""
    every = set(range(len(node.dims)))
    plain = all(len(set(own)) == len(own) for own in node.inputs)
    return plain and any(set(own) == every for own in node.inputs)


def _applied(node: Einsum, factors: Sequence[Expr]) -> Expr:
    return build.einsum(factors, node.inputs, node.output, node.dims)


def _rounding(node: Einsum) -> Expr:
    """8(k + m + 4)u for sums of k products of m factors, which leaves room for its own rounding."""
    count: Expr = Const(1.0)
    for label, dim in enumerate(node.dims):
        if label not in node.output:
            count = mul(count, build.size_of(dim))
    return mul(8.0 * UNIT, add(count, float(len(node.operands) + 4)))


def _nonnegative(node: Einsum, factors: Sequence[Expr], rounding: Expr) -> Expr:
    """Upper bound on a sum of products of computed numbers >= 0, up to underflow."""
    found = _applied(node, factors)
    return add(found, mul(rounding, found))


def _norm_product(node: Einsum, factors: Sequence[Expr], rounding: Expr) -> Expr | None:
    """Upper bound on Σ|a||b| by Cauchy–Schwarz, for numbers >= 0; None if it does not apply."""
    left, right = node.inputs
    summed = set(range(len(node.dims))) - set(node.output)
    repeated = any(len(set(own)) < len(own) for own in node.inputs)
    if repeated or not summed or not (summed <= set(left) and summed <= set(right)):
        return None
    norms, labels = [], []
    for factor, own in zip(factors, (left, right), strict=True):
        kept = tuple(label for label in own if label not in summed)
        axes = tuple(axis for axis, label in enumerate(own) if label in summed)
        total = build.sum_over(square(factor), axes)
        norms.append(sqrt(add(total, mul(rounding, total))))
        labels.append(kept)
    place = {label: k for k, label in enumerate(dict.fromkeys(node.output))}
    placed = [tuple(place[label] for label in own) for own in (*labels, node.output)]
    product = build.einsum(norms, placed[:2], placed[2], [node.dims[label] for label in place])
    return add(product, mul(rounding, product))


def _sizes(node: Einsum, factors: Sequence[Expr], rounding: Expr) -> Expr:
    """Upper bound on a contraction of numbers >= 0, by norms where that saves a product."""
    if len(factors) == 2 and not is_elementwise(node):
        found = _norm_product(node, factors, rounding)
        if found is not None:
            return found
    return _nonnegative(node, factors, rounding)


def contract_midrad(node: Einsum, factors: Sequence[MidRad]) -> MidRad:
    """The contraction of numbers with small radii, which are propagated factor by factor."""
    mid = _applied(node, [factor.mid for factor in factors])
    if is_view(node) or not factors:
        radius = factors[0].rad if factors else None
        return MidRad(mid, None if radius is None else _applied(node, [radius]))
    rounding = _rounding(node)
    sizes = [abs(factor.mid) for factor in factors]
    errors = [mul(rounding, _sizes(node, sizes, rounding))]
    for k, factor in enumerate(factors):
        if factor.rad is not None:
            before = [other.size for other in factors[:k]]
            errors.append(_sizes(node, [*before, factor.rad, *sizes[k + 1 :]], rounding))
    return MidRad(mid, enlarged(errors))


def contract_wide(node: Einsum, factors: Sequence[MidRad]) -> MidRad:
    """The contraction of numbers with radii of any magnitude, such as ranges over the ray."""
    if is_view(node) or not factors or all(factor.rad is None for factor in factors):
        return contract_midrad(node, factors)
    rounding = _rounding(node)
    mid = _applied(node, [factor.mid for factor in factors])
    if is_elementwise(node):
        upper = _applied(node, [factor.size for factor in factors])
        lower = _applied(node, [abs(factor.mid) for factor in factors])
        return MidRad(mid, enlarged([sub(upper, lower), mul(rounding, upper)]))
    sizes = [abs(factor.mid) for factor in factors]
    errors = [mul(rounding, _sizes(node, sizes, rounding))]
    for k, factor in enumerate(factors):
        if factor.rad is not None:
            before = [other.size for other in factors[:k]]
            errors.append(_nonnegative(node, [*before, factor.rad, *sizes[k + 1 :]], rounding))
    return MidRad(mid, enlarged(errors))


def scatter_error(operand: Expr, added: Expr) -> Expr:
    """Bound on the error of sums of elements of `operand`; `added` are the sums of magnitudes."""
    count: Expr = Const(4.0)
    for dim in operand.shape:
        count = mul(count, build.size_of(dim))
    return enlarged([mul(mul(16.0 * UNIT, count), added)])


def triangle_midrad(node: Triangle, operand: MidRad) -> MidRad:
    """The triangular factor of a matrix (m, k), with the errors of the matrix and of the QR.

    The computed R is the exact factor of A + E, RᵀR = (A + E)ᵀ(A + E), with columns
    ‖e_j‖ <= c m k u ‖a_j‖ (Higham, theorem 19.4), to which the errors of A are added. In the same
    orthonormal basis the columns of A differ from those of R by E, so that no element of R is off
    by more than ‖e_j‖; the part of E outside the range of R enters squared only, and is covered
    by the factor 32 for c. Columns of R are as long as those of A + E.
    """
    rows, columns = (build.size_of(dim) for dim in node.operands[0].shape)
    count = mul(mul(32.0 * UNIT, add(rows, 8.0)), add(columns, 8.0))
    mid = build.triangle(operand.mid)
    lengths = mul(count, sqrt(build.sum_over(square(mid), (0,))))
    if operand.rad is not None:
        lengths = add(lengths, mul(2.0, sqrt(build.sum_over(square(operand.rad), (0,)))))
    return MidRad(mid, enlarged([build.broadcast(lengths, (1,), node.shape)]))
