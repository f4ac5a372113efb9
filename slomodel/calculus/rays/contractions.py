"""Sums of products of enclosed numbers, with the errors of summation.

A sum of k products of m factors, in any order, has an error of at most γ_(k+m) Σ|products| (Higham,
Accuracy and Stability, section 3.1). With c the computed Σ|products|, the exact one is at most
(1 + 1.01(k + m)u)c while (k + m)u <= 1e-3, so that 2(k + m + 4)u c bounds that error and that of c;
for norms, roots halve relative errors, and a few rounding errors more are within the 4. For
two factors with every summed label in both, Σ|a||b| <= ‖a‖‖b‖ over the summed labels costs norms
instead of another product.
"""

from __future__ import annotations

from collections.abc import Sequence

from slomodel.calculus.rays.numbers import UNIT, MidRad, enlarged, unit
from slomodel.functions import (
    abs,
    add,
    div,
    eq,
    floor,
    gt,
    land,
    lt,
    maximum,
    minimum,
    mul,
    sqrt,
    square,
    sub,
    where,
)
from slomodel.ir import build
from slomodel.ir.expr import (
    Const,
    Einsum,
    Expr,
    Gather,
    Input,
    Reshape,
    Scatter,
    Triangle,
)
from slomodel.ir.walk import inputs

_WHOLE = 2.0**52
"""Whole numbers whose magnitudes add up to less than this have exact sums."""


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
    """The contraction of other arrays, or of scalars, which stand for arrays of equal numbers."""
    arrays = [
        build.broadcast(one, (), operand.shape) if operand.rank and not one.rank else one
        for one, operand in zip(factors, node.operands, strict=True)
    ]
    return build.einsum(arrays, node.inputs, node.output, node.dims)


def _rounding(node: Einsum) -> Expr:
    """2(k + m + 4)u for sums of k products of m factors, which leaves room for its own rounding.

    In extended precision they are summed in parts of at most √n + 1 along each axis of length n.
    """
    count: Expr = Const(1.0)
    part: Expr = Const(1.0)
    for label, dim in enumerate(node.dims):
        if label not in node.output:
            count = mul(count, build.size_of(dim))
            part = mul(part, add(sqrt(build.size_of(dim)), 1.0))
    if unit() < UNIT:
        count = minimum(count, mul(2.0, part))
    return mul(2.0 * unit(), add(count, float(len(node.operands) + 4)))


def _nonnegative(
    node: Einsum, factors: Sequence[Expr], rounding: Expr, times: Expr | float = 1.0
) -> Expr:
    """Upper bound on `times` a sum of products of computed numbers >= 0, up to underflow."""
    return mul(mul(times, add(1.0, rounding)), _applied(node, factors))


def _norm_product(
    node: Einsum, factors: Sequence[Expr], rounding: Expr, times: Expr | float
) -> Expr | None:
    """Upper bound on `times` Σ|a||b| by Cauchy–Schwarz, for numbers >= 0; None if that fails."""
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
    return mul(mul(times, add(1.0, rounding)), product)


def _sizes(
    node: Einsum, factors: Sequence[Expr], rounding: Expr, times: Expr | float = 1.0
) -> Expr:
    """Upper bound on `times` a contraction of numbers >= 0, by norms where that saves a product.

    Norms of data are computed once for all rays.
    """
    has_data = any(
        isinstance(operand, Input) and operand.role == "data" for operand in node.operands
    )
    if len(factors) == 2 and (has_data or not is_elementwise(node)):
        norm_product = _norm_product(node, factors, rounding, times)
        if norm_product is not None:
            return norm_product
    return _nonnegative(node, factors, rounding, times)


def contract_sizes(node: Einsum, factors: Sequence[Expr]) -> Expr:
    """Upper bound on the contraction of upper bounds >= 0."""
    return enlarged([_nonnegative(node, factors, _rounding(node))])


def contract_midrad(node: Einsum, factors: Sequence[MidRad]) -> MidRad:
    """The contraction of numbers with small radii, which are propagated factor by factor."""
    mid = _applied(node, [factor.mid for factor in factors])
    if is_view(node) or not factors:
        radius = factors[0].rad if factors else None
        return MidRad(mid, None if radius is None else _applied(node, [radius]))
    rounding = _rounding(node)
    if len(factors) == 1:
        return _summed(node, factors[0], rounding)
    sizes = [abs(factor.mid) for factor in factors]
    errors = [_sizes(node, sizes, rounding, rounding)]
    for k, factor in enumerate(factors):
        if factor.rad is not None:
            before = [other.size for other in factors[:k]]
            errors.append(_sizes(node, [*before, factor.rad, *sizes[k + 1 :]], rounding))
    return MidRad(mid, enlarged(errors))


def _summed(node: Einsum, factor: MidRad, rounding: Expr) -> MidRad:
    """The sum of the elements of one operand; radii and roundings are added up together.

    Sums of whole numbers are exact, whatever their order; those of data are looked at once.
    """
    errors = mul(rounding, abs(factor.mid))
    if factor.rad is not None:
        errors = add(errors, factor.rad)
    result = _applied(node, [factor.mid])
    rad = enlarged([_nonnegative(node, [errors], rounding)])
    if factor.rad is None and all(one.role == "data" for one in inputs(factor.mid)):
        parts = _applied(node, [sub(factor.mid, floor(factor.mid))])
        largest = _applied(node, [abs(factor.mid)])
        rad = where(land(eq(parts, 0.0), lt(largest, _WHOLE)), 0.0, rad)
    return MidRad(result, rad)


def contract_wide(node: Einsum, factors: Sequence[MidRad]) -> MidRad:
    """The contraction of numbers with radii of any magnitude, such as ranges over the ray."""
    exact = all(factor.rad is None for factor in factors)
    if is_view(node) or exact or len(factors) == 1:
        return contract_midrad(node, factors)
    rounding = _rounding(node)
    mid = _applied(node, [factor.mid for factor in factors])
    if is_elementwise(node):
        upper = _applied(node, [factor.size for factor in factors])
        lower = _applied(node, [abs(factor.mid) for factor in factors])
        # `upper` is off by (k + 2m)u, `lower` and the midpoint by (k + m)u each.
        return MidRad(mid, enlarged([sub(upper, lower), mul(mul(2.0, rounding), upper)]))
    sizes = [abs(factor.mid) for factor in factors]
    errors = [_sizes(node, sizes, rounding, rounding)]
    for k, factor in enumerate(factors):
        if factor.rad is not None:
            before = [other.size for other in factors[:k]]
            errors.append(_nonnegative(node, [*before, factor.rad, *sizes[k + 1 :]], rounding))
    return MidRad(mid, enlarged(errors))


def scatter_error(operand: Expr, added: Expr) -> Expr:
    """Bound on the error of sums of elements of `operand`; `added` are the sums of magnitudes."""
    count: Expr = Const(1.0)
    for dim in operand.shape:
        count = mul(count, build.size_of(dim))
    return enlarged([mul(mul(2.0 * unit(), add(count, 4.0)), added)])


def placed(node: Expr, operand: Expr) -> Expr:
    """A view of another array that moves its elements as `node` moves those of its operand."""
    if isinstance(node, Einsum):
        return build.einsum([operand], node.inputs, node.output, node.dims)
    if isinstance(node, Reshape):
        return build.reshape(operand, node.shape)
    if isinstance(node, Gather):
        return build.gather(operand, node.index, node.shape)
    assert isinstance(node, Scatter)
    return build.scatter(operand, node.index, node.shape)


def scattered(node: Scatter, own: MidRad) -> MidRad:
    """The scattered sum of numbers with radii."""
    errors = [scatter_error(node.operands[0], placed(node, abs(own.mid)))]
    if own.rad is not None:
        added = placed(node, own.rad)
        errors += [added, scatter_error(node.operands[0], added)]
    return MidRad(placed(node, own.mid), enlarged(errors))


_ROUNDING_OF_QR = 512.0
"""Error of a Householder QR of k columns of length m, in units of m k u (see `triangle_midrad`)."""


def triangle_midrad(node: Triangle, operand: MidRad) -> MidRad:
    """The triangular factor R of a matrix (m, k) of data, with the errors of the matrix and the QR.

    The objective depends on R through RᵀR alone (rewrite/compression/triangles.py puts it in place
    of A in norms ‖Ay‖), so that any R'' with R''ᵀR'' = AᵀA may stand for it; that the factor itself
    may be ill-conditioned is of no importance. The computed R has U R = A + E, U orthonormal, where
    ‖e_j‖ <= k γ_cm ‖a_j‖ (Higham, Accuracy and Stability, theorem 19.4). One reflection of a column
    has at most 8m + 41 roundings; applied in blocks of 32, as LAPACK does, their products are
    summed in at most 32 terms more each, and 512 (m + 8)(k + 8) u covers both.

    With R' = R - UᵀE and F = -(I - UUᵀ)E, AᵀA = R'ᵀR' + FᵀF. Let R' = V S with the polar factor
    S = (R'ᵀR')^(1/2); then R'' = V (S² + FᵀF)^(1/2) has R''ᵀR'' = AᵀA, and in the Frobenius norm
    ‖R'' - R'‖ <= ‖(FᵀF)^(1/2)‖ = ‖F‖ (Bhatia, Matrix Analysis, theorem X.1.3). The same holds of
    the matrix with column j divided by a scale s_j, so that no column of R'' is farther from that
    of R than s_j (1 + √k) max_i ‖e_i‖/s_i, which 2 √(k + 8) in place of 1 + √k bounds.
    """
    rows, columns = (build.size_of(dim) for dim in node.operands[0].shape)
    spread = mul(2.0, sqrt(add(columns, 8.0)))
    count = mul(mul(_ROUNDING_OF_QR * UNIT, add(rows, 8.0)), add(columns, 8.0))
    mid = build.triangle(operand.mid)
    lengths = sqrt(build.sum_over(square(mid), (0,)))
    relative = count
    if operand.rad is not None:
        off = sqrt(build.sum_over(square(operand.rad), (0,)))
        # Any scales will do; these keep an underflow in a column of zeros from counting as large.
        least = mul(2.0**-100, build.extreme(lengths, "max", (0,)))
        lengths = maximum(maximum(lengths, least), off)
        shares = where(gt(off, 0.0), div(off, lengths), 0.0)
        relative = add(count, mul(2.0, build.extreme(shares, "max", (0,))))
    reach = mul(mul(spread, relative), lengths)
    return MidRad(mid, enlarged([build.broadcast(reach, (1,), node.shape)]))
