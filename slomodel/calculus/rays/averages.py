"""The logarithm of a sum of exponentials along a ray, about the average of the exponents.

log Σ_j w_j exp(u_j) = m + log Σ_j w_j exp(u_j - m) for any function m of t. With the weights
p_j = w_j exp(u_j)/Σ w exp(u) of the start and the cubic m of coefficients Σ_j p_j c_jk, k = 1 to 3,
the exponents left differ from one another only, and the sum does not change to first order. What
bounds its derivatives are then central moments under p, as in the cumulants that they are
(McCullagh, Tensor Methods in Statistics, section 2.3). Moments about 0 are far larger where all
exponents change together, as they do in a mixture where one component is much the likeliest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from slomodel.calculus.rays.contractions import contract_midrad
from slomodel.calculus.rays.jets import (
    Jet,
    constant_jet,
    contraction_jet,
    known,
    second_of,
    spread,
    sum_jet,
    viewed,
)
from slomodel.calculus.rays.numbers import MidRad, Range
from slomodel.calculus.signs import is_nonnegative
from slomodel.functions import div, exp, log, neg
from slomodel.ir import build
from slomodel.ir.dims import Shape
from slomodel.ir.expr import Axes, Const, Einsum, Expr, Map
from slomodel.ir.function import ScalarFunction


def exponential_factor(node: Map, jets: Mapping[Expr, Jet]) -> int | None:
    """Which factor of the sum in log(Σ w exp(u)) is the exponential, if it alone moves.

    None for another function, or another operand.
    """
    (total,) = node.operands if node.function is log else (node,)
    if not isinstance(total, Einsum) or len(set(total.output)) == len(total.dims):
        return None
    if len(set(total.output)) < len(total.output):
        return None
    moving = [k for k, factor in enumerate(total.operands) if jets[factor].moves]
    if len(moving) != 1 or len(set(total.inputs[moving[0]])) < len(total.inputs[moving[0]]):
        return None
    factor = total.operands[moving[0]]
    return moving[0] if isinstance(factor, Map) and factor.function is exp else None


def centred_logarithm(
    total: Einsum,
    which: int,
    exponent: Jet,
    jets: Mapping[Expr, Jet],
    apply: Callable[[ScalarFunction, Sequence[Jet]], Jet],
    end: Expr,
) -> Jet:
    """The jet of log(total), whose factor `which` is the exponential of a number of this jet."""
    dims, output, labels = total.dims, total.output, total.inputs[which]
    every = tuple(range(len(dims)))
    starts = [known(jets[factor].at[0]) for factor in total.operands]
    terms = build.einsum([one.mid for one in starts], total.inputs, every, dims)
    sums = build.einsum([known(jets[total].at[0]).mid], [output], every, dims)
    shares = div(terms, sums)
    average = _contraction(total, (every, labels))

    def averaged(one: MidRad | None) -> MidRad | None:
        # The average of computed numbers; the errors of these stay with the exponents.
        return one and contract_midrad(average, [MidRad(shares), MidRad(one.mid)])

    zero = MidRad(build.zeros(total.shape))
    mean = [zero, *(averaged(one) for one in exponent.at[1:])]
    apart = tuple(label for label in every if label in labels or label in output)

    def along(own: Axes) -> Callable[[Expr], Expr]:
        return lambda one: _laid_out(one, own, apart, dims)

    # What is subtracted is the computed average itself, which has no error; its radius, in what is
    # added, covers another evaluation of it by a loop with another exponential.
    less = viewed(
        Jet([None if one is None else MidRad(neg(one.mid)) for one in mean]), along(output)
    )
    left = apply(exp, [sum_jet(viewed(exponent, along(labels)), less, end)])
    others = [constant_jet(one) for one in starts]
    others[which] = left
    again = _contraction(
        total, [apart if k == which else own for k, own in enumerate(total.inputs)]
    )
    result = sum_jet(Jet(mean), apply(log, [contraction_jet(again, others, end)]), end)
    weights = (factor for k, factor in enumerate(total.operands) if k != which)
    if all(map(is_nonnegative, weights)):
        result = replace(result, second=_curvature(total, labels, exponent, end))
    return result


def _curvature(total: Einsum, labels: Axes, exponent: Jet, end: Expr) -> Range:
    """The second coefficient over the ray, for weights >= 0, of which one at least is positive.

    (log Σ w exp(u))'' is an average of the u'' and the variance of the u', at every t under weights
    of its own; a variance is at most a quarter of the squared spread (Popoviciu). Hence the
    bounds of long rays do not grow exponentially.
    """
    kept = tuple(label for label in labels if label in total.output)
    axes = tuple(axis for axis, label in enumerate(labels) if label not in total.output)
    shape = tuple(total.dims[label] for label in labels)

    def extreme(one: Expr, end: Literal["min", "max"]) -> Expr:
        full = build.broadcast(one, (), shape) if shape and not one.rank else one
        reduced = build.extreme(full, end, axes)
        return _laid_out(reduced, kept, total.output, total.dims)

    def hull(own: Range) -> Range:
        return Range(extreme(own.lo, "min"), extreme(own.hi, "max"))

    seconds = hull(second_of(exponent, end))
    slopes = hull((spread(exponent, end)[1] or MidRad(Const(0.0))).range)
    variances = (slopes - slopes).squared.times(0.125)
    return Range(seconds.lo, (seconds + variances).hi)


def _laid_out(one: Expr, own: Axes, output: Axes, dims: Shape) -> Expr:
    """An array with labels `own`, repeated along the other labels of `output`."""
    place = {label: k for k, label in enumerate(output)}
    axes = tuple(place[label] for label in own)
    return build.einsum([one], [axes], tuple(range(len(output))), [dims[label] for label in output])


def _contraction(total: Einsum, inputs: Sequence[Axes]) -> Einsum:
    """The sum over the same labels of a product of other factors."""
    dims = total.dims
    places = [
        build.variable(f"factor{k}", tuple(dims[label] for label in own))
        for k, own in enumerate(inputs)
    ]
    result = build.einsum(places, inputs, total.output, dims)
    assert isinstance(result, Einsum)
    return result
