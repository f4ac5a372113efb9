"""Sums of log Σ exp of affine numbers: closed bounds over balls of any size."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval
from slomodel.bounds.arithmetic.rounding import (
    Array,
    up_add,
    up_mul,
    up_norm,
)
from slomodel.bounds.centre import hessian_at_centre, third_at_centre
from slomodel.bounds.effort import MOST_NUMBERS
from slomodel.bounds.enclosure import Derivation, DerivativeBounds, Enclosure, add, both_ends
from slomodel.bounds.norms.loewner import Rows, largest_eigenvalue, quadratic_sum
from slomodel.bounds.norms.spectral_norm import stack_norm
from slomodel.bounds.part import ObjectivePart, once_per_part
from slomodel.bounds.ranges.curvature.log_sum_exp import cumulant_bounds, largest_variance, shares
from slomodel.bounds.ranges.enclose import boxed, enclose
from slomodel.bounds.ranges.hessian import jacobians
from slomodel.bounds.rules.linear_predictors import Sums, sums_of
from slomodel.bounds.structure.linear_predictors import affine_nodes, elements
from slomodel.bounds.structure.log_sum_exp import LogSum, log_sums
from slomodel.bounds.structure.networks import layer_at
from slomodel.ir.dims import concrete
from slomodel.ir.expr import Axes, Expr
from slomodel.ir.walk import dependents, inputs, postorder

_MOST_FEATURES, _MOST_NUMBERS_OF_FEATURES = 2000, 2**26
"""Largest order of the Gram matrix of the features, and number of entries of the data: 512 MB."""


@dataclass(frozen=True, slots=True)
class SoftmaxSum:
    """Σ_i w_i log Σ_j exp u_ij for N samples of k classes.

    Weights (N,), u at the centre (N, k), the rows of u (N k, n), and upper bounds on the norms
    ‖A_i‖ of each sample's rows (N,). Where u = W z + b, Σ c_i A_iᵀA_i is Σ c_i z_i z_iᵀ for each
    unit, so that `rows` are the z (with an appended 1 if there is a bias), one per sample.
    """

    weight: Interval
    u: Interval
    rows: Rows
    norms: Array


def log_sum_exp(part: ObjectivePart, radius: float) -> Enclosure | None:
    """L1 and L2 of Σ w_i F(u_i), F(u) = log Σ_j exp u_j, u_i = A_i x + b_i, plus other sums.

    0 <= D²F <= c I by `largest_variance`, and `cumulant_bounds` bounds D³F and D⁴F. By the Loewner
    order, ‖H‖ is at most the larger λ_max of Σ c_i w_i A_iᵀA_i over the w_i > 0, and of the negated
    sum over the others; |D^k f[v, .., v]| is at most the sum of |w_i| ‖D^k F‖ ‖A_i v‖² ‖A_i‖^(k-2).
    Over the ball u_ij is within r‖a_ij‖ of its value at the centre.
    """
    recognised = _recognised(part)
    if recognised is None:
        return None
    sums, rest = recognised
    total = add([rest.over(part, radius), *(_over(one, radius) for one in sums)])
    if total.order < 2:
        return total
    centre = DerivativeBounds(both_ends(hessian_at_centre(part)), third_at_centre(part))
    return replace(
        total,
        centre=centre,
        second_by=Derivation("variances under softmax"),
        third_by=Derivation("third moments"),
    )


def _over(one: SoftmaxSum, radius: float) -> Enclosure:
    """The enclosure of one sum over the ball; each end of H has the weights of one sign."""
    variance = _variances(one, radius)
    upper, lower = (
        _side(one, np.maximum(w, 0.0), variance) for w in (one.weight.hi, -one.weight.lo)
    )
    _, skew, fourth = cumulant_bounds(variance)
    lengths, weight = one.norms, one.weight.magnitude
    third = _side(one, weight, up_mul(skew, lengths))
    last = _side(one, weight, up_mul(up_mul(fourth, lengths), lengths))
    return Enclosure(over=DerivativeBounds((upper, lower), third, both_ends(last)))


def _side(one: SoftmaxSum, weight: Array, factor: Array) -> float:
    """Upper bound on λ_max(Σ_i w_i s_i A_iᵀ A_i), w, s >= 0, where s is `factor`."""
    d = np.repeat(up_mul(weight, factor), len(one.rows.value) // len(weight))
    return largest_eigenvalue(quadratic_sum([one.rows], {(0, 0): d}))


def _variances(one: SoftmaxSum, radius: float) -> Array:
    """c_i (N,): upper bounds on ‖D²F‖ over the ball, where u_ij moves by r‖a_ij‖ at most."""
    reach = up_mul(np.asarray(radius), one.rows.length.reshape(len(one.u.lo), -1))
    return largest_variance(shares(one.u.widened(reach).each(np.transpose)))


@once_per_part
def _recognised(part: ObjectivePart) -> tuple[tuple[SoftmaxSum, ...], Sums] | None:
    """The softmax sums and the rest; None where the objective is of another kind or too large."""
    variables = set(part.variables)
    split = log_sums(part.objective, variables, _affine_of(part.objective, variables))
    if split is None:
        return None
    result, others = split
    rest = _rest(part, others)
    if rest is None:
        return None
    sums = [known for one in result if (known := _sums(part, one)) is not None]
    return (tuple(sums), rest) if len(sums) == len(result) else None


def _rest(part: ObjectivePart, others: Expr) -> Sums | None:
    variables = set(part.variables)
    if variables.isdisjoint(inputs(others)) or others in _affine_of(others, variables):
        return Sums()
    parts = elements(others, part.variables)
    return sums_of(part, parts) if parts else None


def _affine_of(root: Expr, variables: Collection[Expr]) -> set[Expr]:
    order = postorder(root)
    return affine_nodes(order, dependents(order, variables.__contains__))


def _sums(part: ObjectivePart, one: LogSum) -> SoftmaxSum | None:
    u, summed = one.u, one.summed
    shape = concrete(u.shape, part.sizes)
    if 0 in shape:
        return None
    result = enclose([u, one.weight], boxed(part.values), part.sizes)
    k = prod(shape[axis] for axis in summed)
    whole = concrete(one.weight.shape, part.sizes)
    order = (*(axis for axis in range(len(shape)) if axis not in summed), *summed)

    def samples(array: Array) -> Array:
        return np.transpose(array, order).reshape(-1, k)

    rows = _features(part, one) or _rows(part, one, order, k)
    if rows is None:
        return None
    weights = result[one.weight].broadcast(whole).each(np.ravel)
    return SoftmaxSum(weights, result[u].each(samples), *rows)


def _features(part: ObjectivePart, one: LogSum) -> tuple[Rows, Array] | None:
    """The features z of u = W z + b and their norms, for a sum over the units; otherwise None."""
    order = postorder(one.u)
    layer = layer_at(one.u, dependents(order, set(part.variables).__contains__))
    if layer is None or one.summed != (layer.units,):
        return None
    if not set(part.variables).isdisjoint(inputs(layer.features)):
        return None
    z = enclose([layer.features], boxed(part.values), part.sizes)[layer.features]
    z = z.each(lambda array: array if layer.feature_axes[0] else array.T)
    if z.shape[1] > _MOST_FEATURES or prod(z.shape) > _MOST_NUMBERS_OF_FEATURES:
        return None
    if layer.bias is not None:
        z = z.each(lambda array: np.concatenate([array, np.ones((len(array), 1))], axis=1))
    rows = Rows.of(z)
    return rows, rows.length


def _rows(part: ObjectivePart, one: LogSum, order: Axes, k: int) -> tuple[Rows, Array] | None:
    """The rows of u themselves, and upper bounds on the norms of each k of them together."""
    n, shape = part.n, concrete(one.u.shape, part.sizes)
    if prod(shape) * n > MOST_NUMBERS:
        return None

    def rows(array: Array) -> Array:
        wide = np.broadcast_to(array, (n, *shape))
        return np.transpose(wide, (*(axis + 1 for axis in order), 0)).reshape(-1, n)

    A = Rows.of(jacobians(part, [one.u])[one.u].each(rows))
    errors = np.asarray(up_norm(A.error.reshape(-1, k), 1))
    norms: Array = up_add(stack_norm(A.value.reshape(-1, k, n)), errors)
    return A, norms
