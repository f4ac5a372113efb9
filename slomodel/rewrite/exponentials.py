"""Stable forms of what is made of exponentials and logarithms."""

from __future__ import annotations

from collections.abc import Sequence

from slomodel.functions import (
    add,
    cosh,
    div,
    exp,
    expm1,
    log,
    log1p,
    logaddexp,
    logcosh,
    mul,
    neg,
    sech2,
    sigmoid,
    softplus,
    square,
    sub,
    tanh,
)
from slomodel.functions.shifted import (
    count,
    log1p_sum_exp,
    log_mean_exp,
    logsumexp,
    shifted_sum,
    softmax,
)
from slomodel.functions.translate import balanced
from slomodel.ir import build
from slomodel.ir.expr import Const, Einsum, Expr, Map
from slomodel.rewrite.matching import (
    ExponentialSum,
    Part,
    Term,
    exponential_sum,
    factors,
    is_map,
    parts_of,
    summands,
    two_terms,
    whole,
)

_ONE = Const(1.0)


def logarithm(node: Map) -> Expr | None:
    """log of cosh, of a sigmoid, of 1 + x, of a sum of exponentials."""
    inside = node.operands[0]
    if is_map(inside, cosh):
        return logcosh(inside.operands[0])
    if is_map(inside, sigmoid):
        return neg(softplus(neg(inside.operands[0])))
    if is_map(inside, sech2):
        return mul(-2.0, logcosh(inside.operands[0]))
    return _of_exponentials(summands(inside), inside) or _of_one_more(inside) or _scaled_sum(node)


def log_of_one_more(node: Map) -> Expr | None:
    """log1p of an exponential, or of a sum of them."""
    inside = node.operands[0]
    return _of_exponentials([Part(_ONE, ()), *summands(inside)], inside)


def _of_exponentials(terms: Sequence[Part], total: Expr) -> Expr | None:
    """log of the sum of the terms, each 1, an exponential, or a sum of exponentials."""
    ones = sum(term.node is _ONE for term in terms)
    with_one = ones == 1
    exponents = [term for term in terms if term.node is not _ONE]
    sums = [exponential_sum(term.node) for term in exponents]
    plain = [term.inner(exp) for term in exponents]
    if (
        not exponents
        or ones > 1
        or any(a is None and b is None for a, b in zip(sums, plain, strict=True))
    ):
        return None
    if len(exponents) == 1 and with_one and sums[0] is not None:
        found = log1p_sum_exp(sums[0].x, sums[0].axes)
        return Part(_ordered(found, sums[0]), exponents[0].axes).along(total.shape)
    logarithms: list[Expr] = []
    for term, inner, summed in zip(exponents, plain, sums, strict=True):
        if summed is not None:
            inner = Part(_ordered(logsumexp(summed.x, summed.axes), summed), term.axes)
        assert inner is not None
        logarithms.append(inner.along(total.shape))
    if len(logarithms) == 1 and not with_one and sums[0] is None:
        return None
    joined = balanced(logaddexp, logarithms)
    return softplus(joined) if with_one else joined


def _ordered(node: Expr, summed: ExponentialSum) -> Expr:
    return build.transpose(node, summed.order)


def _of_one_more(inside: Expr) -> Expr | None:
    """log(1 + x) and log(1 - x)."""
    if not isinstance(inside, Map) or not _is_sum(inside):
        return None
    terms = two_terms(inside)
    for k, term in enumerate(terms):
        if term == Term(1.0, None):
            other = parts_of(inside)[1 - k].along(inside.shape)
            negative = k == 0 and inside.function is not add
            return log1p(neg(other) if negative else other)
    return None


def _is_sum(node: Map) -> bool:
    return node.function.name in ("add", "sub")


def _scaled_sum(node: Map) -> Expr | None:
    """log of a sum of exponentials times or over numbers: log(mean(exp(x)))."""
    inside = node.operands[0]
    path: list[tuple[Map, int]] = []
    part = whole(inside)
    while isinstance(part.node, Map) and part.node.function in (mul, div):
        parts = part.parts()
        above = parts if part.node.function is mul else parts[:1]
        k = next((k for k, one in enumerate(above) if _may_hold_sum(one.node)), 0)
        path.append((part.node, k))
        part = parts[k]
    summed = exponential_sum(part.node)
    if summed is None or not path:
        return None
    if len(path) == 1 and _is_mean(path[0][0], summed):
        mean = _ordered(log_mean_exp(summed.x, summed.axes), summed)
        return Part(mean, part.axes).along(inside.shape)
    shift, rest = shifted_sum(summed.x, summed.axes)
    rest = _ordered(rest, summed)
    for one, k in reversed(path):
        operands = [rest if j == k else operand for j, operand in enumerate(one.operands)]
        rest = build.apply_along(one.function, operands, one.axes, one.shape)
    moved = Part(_ordered(shift, summed), part.axes).along(inside.shape)
    return add(moved, log(rest))


def _is_mean(node: Map, summed: ExponentialSum) -> bool:
    return node.function is div and node.operands[1] is count(summed.x, summed.axes)


def _may_hold_sum(node: Expr) -> bool:
    return is_map(node, mul, div) or exponential_sum(node) is not None


def difference(node: Map) -> Expr | None:
    """c exp(x) - c, c - c tanh(x)^2, c - c sigmoid(x)."""
    constant, term = sorted(two_terms(node), key=lambda one: one.core is not None)
    core = term.core
    if constant.core is not None or core is None or constant.coefficient != -term.coefficient:
        return None
    exponent, under_sigmoid = core.inner(exp), core.inner(sigmoid)
    squared = core.inner(square)
    under_tanh = squared.inner(tanh) if squared is not None else None
    if exponent is not None:
        return mul(term.coefficient, expm1(exponent.along(node.shape)))
    if under_tanh is not None:
        return mul(constant.coefficient, sech2(under_tanh.along(node.shape)))
    if under_sigmoid is not None:
        return mul(constant.coefficient, sigmoid(neg(under_sigmoid.along(node.shape))))
    return None


def quotient(node: Map) -> Expr | None:
    """y / (1 + exp(x)), y exp(x) / (1 + exp(x)), y exp(x) / sum(exp(x))."""
    above, below = parts_of(node)
    parts = factors(above)
    if is_map(below.node, add):
        terms = below.parts()
        places = [k for k, term in enumerate(terms) if term.node is _ONE]
        exponential = terms[1 - places[0]] if places else None
        exponent = exponential.inner(exp) if exponential is not None else None
        if exponent is None:
            return None
        x = exponent.along(node.shape)
        found = next((k for k, part in enumerate(parts) if part == exponential), None)
        if found is not None:
            return _product(parts, found, sigmoid(x), node)
        return mul(above.along(node.shape), sigmoid(neg(x)))
    return _soft(parts, below, node)


def _soft(parts: Sequence[Part], below: Part, node: Map) -> Expr | None:
    """A product with an exponential, or a sum of such, over the sum of the exponentials."""
    summed = exponential_sum(below.node)
    if summed is None or summed.order != tuple(range(len(summed.order))):
        return None
    for k, part in enumerate(parts):
        exponent = part.inner(exp)
        if exponent is None or exponent.node is not summed.x:
            continue
        kept = [axis for j, axis in enumerate(part.axes) if j not in summed.axes]
        if tuple(kept) == below.axes:
            soft = Part(softmax(summed.x, summed.axes), part.axes)
            return _product(parts, k, soft.along(node.shape), node)
    return None if summed.order else _soft_mean(parts, summed, node)


def _soft_mean(parts: Sequence[Part], summed: ExponentialSum, node: Map) -> Expr | None:
    """sum(w exp(x)) / sum(exp(x)), both shifted."""
    exponential = exp(summed.x)
    for k, part in enumerate(parts):
        above = part.node
        if not isinstance(above, Einsum) or above.operands.count(exponential) != 1:
            continue
        shift, total = shifted_sum(summed.x, summed.axes)
        shifted = exp(sub(summed.x, shift))
        operands = [shifted if one is exponential else one for one in above.operands]
        mean = build.einsum(operands, above.inputs, above.output, above.dims)
        mean = Part(mean, part.axes).along(node.shape)
        return div(_product(parts, k, mean, node), total)
    return None


def _product(parts: Sequence[Part], k: int, instead: Expr, node: Map) -> Expr:
    """The product of parts with part k replaced."""
    wide = [instead if j == k else part.along(node.shape) for j, part in enumerate(parts)]
    result = wide[0]
    for one in wide[1:]:
        result = mul(result, one)
    return result
