"""Sums of exponentials, shifted by the largest exponent so that nothing overflows.

The shift is under `stop_gradient`: values do not depend on it, so derivatives omit it and are those
of softmax. An infinite largest exponent is not subtracted, as the difference would be NaN.
"""

from __future__ import annotations

import math

from slomodel.functions.activations import softplus
from slomodel.functions.arithmetic import add, div, mul, neg, sub
from slomodel.functions.comparison import lt, where
from slomodel.functions.compound import stop_gradient
from slomodel.functions.elementary import exp, expm1, log, log1p
from slomodel.functions.piecewise import abs, relu
from slomodel.ir import build
from slomodel.ir.expr import Axes, Const, Expr


def logsumexp(x: Expr, axes: Axes) -> Expr:
    """log(sum(exp(x))) over some axes, which must not be empty."""
    shift, total = shifted_sum(x, axes)
    return add(shift, log(total))


def shifted_sum(x: Expr, axes: Axes) -> tuple[Expr, Expr]:
    """The largest exponent m, and the sum of exp(x - m)."""
    shift = _finite(build.extreme(x, "max", axes))
    return shift, _total(x, shift, axes)


def log_mean_exp(x: Expr, axes: Axes) -> Expr:
    """log(mean(exp(x))) over some axes, which must not be empty.

    If all x are close, the mean of exp(x - m) is near 1; its difference from 1 is summed instead.
    """
    shift = _finite(build.extreme(x, "max", axes))
    lack = build.sum_over(expm1(_less(x, shift, axes)), axes)
    return add(shift, log1p(div(lack, count(x, axes))))


def count(x: Expr, axes: Axes) -> Expr:
    """The number of elements along some axes."""
    number: Expr = Const(1.0)
    for axis in axes:
        number = mul(number, build.size_of(x.shape[axis]))
    return number


def log1p_sum_exp(x: Expr, axes: Axes) -> Expr:
    """log(1 + sum(exp(x))) over some axes: 1 is the exponential of a further exponent 0."""
    if not axes:
        return softplus(x)
    shift = _finite(relu(build.extreme(x, "max", axes)))
    # expm1 preserves the accuracy of a small sum, for which the shift is 0.
    return add(shift, log1p(add(_total(x, shift, axes), expm1(neg(shift)))))


def softmax(x: Expr, axes: Axes) -> Expr:
    """exp(x) / sum(exp(x)) over some axes, which must not be empty; of the shape of x."""
    shift, total = shifted_sum(x, axes)
    return div(exp(_less(x, shift, axes)), build.broadcast(total, _kept(x, axes), x.shape))


def log_softmax(x: Expr, axes: Axes) -> Expr:
    """log(exp(x) / sum(exp(x))) over some axes, which must not be empty; of the shape of x."""
    return sub(x, build.broadcast(logsumexp(x, axes), _kept(x, axes), x.shape))


def _finite(largest: Expr) -> Expr:
    return stop_gradient(where(lt(abs(largest), Const(math.inf)), largest, 0.0))


def _total(x: Expr, shift: Expr, axes: Axes) -> Expr:
    return build.sum_over(exp(_less(x, shift, axes)), axes)


def _less(x: Expr, shift: Expr, axes: Axes) -> Expr:
    return sub(x, build.broadcast(shift, _kept(x, axes), x.shape))


def _kept(x: Expr, axes: Axes) -> Axes:
    return tuple(axis for axis in range(x.rank) if axis not in axes)
