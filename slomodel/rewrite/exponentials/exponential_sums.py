"""Stable forms of logarithms and quotients of sums of exponentials, along axes or written out."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from slomodel.functions import (
    add,
    div,
    exp,
    log,
    log2,
    logaddexp,
    mul,
    neg,
    pow,
    softplus,
    sub,
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
from slomodel.ir.expr import Const, Einsum, Expr, Gather, Map, is_map
from slomodel.rewrite.elementwise.matching import (
    ExponentialSum,
    Part,
    exponential_sum,
    factors,
    is_shifted,
    parts_of,
    product_with,
    scaled,
    summands,
    whole,
)
from slomodel.rewrite.singularities.divided_sums import without_guard

_ONE = Const(1.0)
_MOST_SMALL, _MOST_LARGE = 1.0 / 16.0, 16.0
"""Factors in this interval enter exponents as logarithms, with little rounding error."""


class Logarithms:
    """Logarithms of sums of exponentials in one graph, in time proportional to the graph.

    The logarithm of a sum with several users (a node in `shared`) is computed once, and the
    logarithms of larger sums are computed from it; other sums are split into their terms. So the
    logarithms of all n partial sums of a sum take 2 n nodes, not n².
    """

    def __init__(self, shared: Collection[Expr]) -> None:
        self._shared = shared
        self._of_sums: dict[Expr, Expr | None] = {}
        self._shifted: dict[Expr, _Shifted | None] = {}

    def of_sum(self, node: Map) -> Expr | None:
        """log of a sum of exponentials and a constant, with positive factors near 1."""
        return self._of_sum(node.operands[0])

    def to_other_base(self, node: Map) -> Expr | None:
        """log2 or log10 of a sum of exponentials or of powers of a number."""
        base = 2.0 if node.function is log2 else 10.0
        natural = self.of_sum(node) or self.of_scaled_sum(node)
        return None if natural is None else mul(1.0 / math.log(base), natural)

    def of_scaled_sum(self, node: Map) -> Expr | None:
        """log of a scaled sum of exponentials, as in log(mean(exp(x))); else None."""
        inside = node.operands[0]
        if not is_map(inside, mul, div):
            return None
        assert isinstance(inside, Map)
        term = scaled(whole(inside))
        if term.core is not None and is_map(term.core.node, add):
            joined = self._of_sum(term.core.node)
            if joined is not None and _MOST_SMALL <= term.coefficient <= _MOST_LARGE:
                own = Part(joined, term.core.axes).along(inside.shape)
                return add(own, log(Const(term.coefficient)))
        if inside.function is div:
            part = parts_of(inside)[0]
            summed = exponential_sum(part.node)
            if summed is not None and inside.operands[1] is count(summed.x, summed.axes):
                mean = _ordered(log_mean_exp(summed.x, summed.axes), summed)
                return Part(mean, part.axes).along(inside.shape)
        shifted_product = self._shifted_product(inside)
        return (
            add(shifted_product.shift.along(inside.shape), log(shifted_product.rest))
            if shifted_product
            else None
        )

    def of_one_more(self, node: Map) -> Expr | None:
        """log1p of an exponential, or of a sum of them."""
        inside = node.operands[0]
        terms = [Part(_ONE, ()), *summands(inside, self._shared)]
        for term in terms:
            if is_map(term.node, add) and self._of_sum(term.node) is None:
                return None
        return self._joined(terms, inside)

    def _of_sum(self, total: Expr) -> Expr | None:
        """log of a sum of exponentials; logs of shared partial sums are computed first."""
        stack = [total]
        while stack:
            node = stack[-1]
            if node in self._of_sums:
                stack.pop()
                continue
            terms = summands(node, self._shared)
            waiting = [
                term.node
                for term in terms
                if is_map(term.node, add) and term.node not in self._of_sums
            ]
            if waiting and node not in waiting:
                stack += waiting
                continue
            self._of_sums[node] = None if waiting else self._joined(terms, node)
            stack.pop()
        return self._of_sums[total]

    def _joined(self, terms: Sequence[Part], total: Expr) -> Expr | None:
        """log of the sum of the terms: positive numbers, exponentials, sums of exponentials, sums
        with a log; all but the last with positive factors.
        """
        constant = 0.0
        rest: list[tuple[float, Part]] = []
        for part in terms:
            term = scaled(part)
            if not _MOST_SMALL <= term.coefficient <= _MOST_LARGE:
                return None
            if term.core is None:
                constant += term.coefficient
            else:
                rest.append((term.coefficient, term.core))
        if not rest or (constant and not _MOST_SMALL <= constant <= _MOST_LARGE):
            return None
        sums = [exponential_sum(core.node) for _, core in rest]
        if len(rest) == 1 and sums[0] is not None and constant == 1.0 == rest[0][0]:
            result = log1p_sum_exp(sums[0].x, sums[0].axes)
            return Part(_ordered(result, sums[0]), rest[0][1].axes).along(total.shape)
        if len(rest) == 1 and sums[0] is None and not constant:
            return None
        logarithms: list[Expr] = []
        for (factor, core), summed in zip(rest, sums, strict=True):
            inner = _exponent(core)
            if summed is not None:
                inner = Part(_ordered(logsumexp(summed.x, summed.axes), summed), core.axes)
            elif inner is None:
                known = self._of_sums.get(core.node)
                inner = None if known is None or factor != 1.0 else Part(known, core.axes)
            if inner is None:
                return None
            logarithms.append(add(inner.along(total.shape), log(Const(factor))))
        joined = balanced(logaddexp, logarithms)
        if not constant:
            return joined
        offset = log(Const(constant))
        return add(offset, softplus(sub(joined, offset)))

    def _shifted_product(self, product: Expr) -> _Shifted | None:
        """A product or quotient with a factor Σ exp(x) as exp(shift) * rest; None without one."""
        stack = [product]
        while stack:
            node = stack[-1]
            if node in self._shifted:
                stack.pop()
                continue
            if not is_map(node, mul, div):
                self._shifted[node] = _shifted_sum(node)
                continue
            assert isinstance(node, Map)
            above = node.operands if node.function is mul else node.operands[:1]
            waiting = [one for one in above if one not in self._shifted]
            if waiting:
                stack += waiting
                continue
            self._shifted[node] = self._times_others(node, above)
            stack.pop()
        return self._shifted[product]

    def _times_others(self, node: Map, above: Sequence[Expr]) -> _Shifted | None:
        """The shifted form of a node by the first of its operands `above` that has such a form."""
        for k, operand in enumerate(above):
            result = self._shifted[operand]
            if result is not None:
                shift = Part(result.shift.node, tuple(node.axes[k][j] for j in result.shift.axes))
                operands = [result.rest if j == k else one for j, one in enumerate(node.operands)]
                rest = build.apply_along(node.function, operands, node.axes, node.shape)
                return _Shifted(shift, rest)
        return None


def _exponent(part: Part) -> Part | None:
    """The logarithm of exp(x), or of c^x for a number c > 0; None for others."""
    if not is_map(part.node, pow):
        return part.inner(exp)
    base, exponent = part.parts()
    if not isinstance(base.node, Const) or not base.node.value > 0.0:
        return None
    return Part(mul(math.log(base.node.value), exponent.node), exponent.axes)


@dataclass(frozen=True, slots=True)
class _Shifted:
    """A node as exp(shift) * rest."""

    shift: Part
    rest: Expr


def _shifted_sum(node: Expr) -> _Shifted | None:
    summed = exponential_sum(node)
    if summed is None:
        return None
    shift, rest = shifted_sum(summed.x, summed.axes)
    return _Shifted(whole(_ordered(shift, summed)), _ordered(rest, summed))


def _ordered(node: Expr, summed: ExponentialSum) -> Expr:
    return build.transpose(node, summed.order)


def _quotient_by_sum(node: Map) -> tuple[list[Part], Part, ExponentialSum] | None:
    """The factors above, and the sum Σ exp(x) below with its axes in the order of x."""
    above, below = parts_of(node)
    below = without_guard(below)
    summed = exponential_sum(below.node)
    if summed is None or summed.order != tuple(range(len(summed.order))):
        return None
    return factors(above), below, summed


def soft_quotient(node: Map) -> Expr | None:
    """y exp(x) / sum(exp(x))."""
    quotient = _quotient_by_sum(node)
    if quotient is None:
        return None
    parts, below, summed = quotient
    for k, part in enumerate(parts):
        exponent = part.inner(exp)
        if exponent is None or exponent.node is not summed.x:
            continue
        kept = [axis for j, axis in enumerate(part.axes) if j not in summed.axes]
        if tuple(kept) == below.axes:
            soft = Part(softmax(summed.x, summed.axes), part.axes)
            return product_with(parts, k, soft.along(node.shape), node.shape)
    return None if summed.order else _soft_mean(parts, summed, node)


class ShiftedQuotients:
    """Quotients of an exponential, or a sum with one, and a sum of others.

    w exp(y) / sum(exp(x)) becomes w exp(y - m) / sum(exp(x - m)) with m the largest x: derivatives
    of a quotient divide by powers of the sum, which leave the range of doubles long before the sum
    does. Logarithms are those of the quotients as they were.
    """

    def __init__(self) -> None:
        self._originals: dict[Expr, Map] = {}

    def of_quotient(self, node: Map) -> Expr | None:
        quotient = _quotient_by_sum(node)
        if quotient is None:
            return None
        parts, below, summed = quotient
        for k, part in enumerate(parts):
            shift, total = shifted_sum(summed.x, summed.axes)
            wide = Part(shift, below.axes).along(node.shape)
            exponent = part.inner(exp)
            if exponent is not None and not is_shifted(exponent.node):
                shifted: Expr | None = exp(sub(exponent.along(node.shape), wide))
            else:
                inner = None if summed.order else _with_shifted(part.node, shift)
                shifted = None if inner is None else Part(inner, part.axes).along(node.shape)
            if shifted is not None:
                product = product_with(parts, k, shifted, node.shape)
                result = div(product, Part(total, below.axes).along(node.shape))
                self._originals[result] = node
                return result
        return None

    def of_sum(self, node: Einsum) -> Expr | None:
        """A sum of products with w/sum(exp(x)) and exp(y) among the factors."""
        for k, (divided, labels) in enumerate(zip(node.operands, node.inputs, strict=True)):
            if not is_map(divided, div) or not isinstance(divided, Map):
                continue
            above, below = parts_of(divided)
            summed = exponential_sum(below.node)
            if summed is None or summed.order != tuple(range(len(summed.order))):
                continue
            shift, total = shifted_sum(summed.x, summed.axes)
            outer = [labels[axis] for axis in below.axes]
            for j, (one, own) in enumerate(zip(node.operands, node.inputs, strict=True)):
                exponent = one.operands[0] if is_map(one, exp) else None
                if exponent is None or is_shifted(exponent) or not set(outer) <= set(own):
                    continue
                axes = tuple(own.index(label) for label in outer)
                wide = whole(exponent).along(one.shape)
                operands = list(node.operands)
                operands[j] = exp(sub(wide, Part(shift, axes).along(one.shape)))
                shape = divided.shape
                operands[k] = div(above.along(shape), Part(total, below.axes).along(shape))
                return build.einsum(operands, node.inputs, node.output, node.dims)
        return None

    def of_log(self, node: Map) -> Expr | None:
        """log(c exp(y) / sum(exp(x))) as y - logsumexp(x) + log(c); others as they were."""
        (inside,) = parts_of(node)
        original = self._originals.get(inside.node)
        if original is None:
            return None
        above, below = parts_of(original)
        below = without_guard(below)
        term, summed = scaled(above), exponential_sum(below.node)
        exponent = None if term.core is None else term.core.inner(exp)
        if exponent is None or summed is None or not _is_moderate(term.coefficient):
            return log(Part(original, inside.axes).along(node.shape))
        shift, total = shifted_sum(summed.x, summed.axes)
        wide, sums = (Part(one, below.axes).along(original.shape) for one in (shift, total))
        above_shift = sub(exponent.along(original.shape), wide)
        value = add(sub(above_shift, log(sums)), log(term.coefficient))
        return Part(value, inside.axes).along(node.shape)


def _is_moderate(factor: float) -> bool:
    return _MOST_SMALL <= factor <= _MOST_LARGE


def _with_shifted(node: Expr, shift: Expr) -> Expr | None:
    """The sum of products with exp(y - shift) in place of its one exponential; else None."""
    if not isinstance(node, Einsum):
        return None
    result = [k for k, one in enumerate(node.operands) if is_map(one, exp)]
    if len(result) != 1:
        return None
    (k,) = result
    own = node.operands[k]
    exponent = whole(own).parts()[0].along(own.shape)
    if is_shifted(exponent):
        return None
    operands = list(node.operands)
    operands[k] = exp(sub(exponent, shift))
    return build.einsum(operands, node.inputs, node.output, node.dims)


def _soft_mean(parts: Sequence[Part], summed: ExponentialSum, node: Map) -> Expr | None:
    """sum(w exp(x)) / sum(exp(x)), with shifted exponents in both sums."""
    exponential = exp(summed.x)
    for k, part in enumerate(parts):
        above = part.node
        if not isinstance(above, Einsum) or above.operands.count(exponential) != 1:
            continue
        shift, total = shifted_sum(summed.x, summed.axes)
        shifted = exp(sub(summed.x, shift))
        operands = [shifted if operand is exponential else operand for operand in above.operands]
        mean = build.einsum(operands, above.inputs, above.output, above.dims)
        mean = Part(mean, part.axes).along(node.shape)
        return div(product_with(parts, k, mean, node.shape), total)
    return None


def log_softmax(node: Map) -> Expr | None:
    """log(exp(x) / sum(exp(x))) as x - m - log(sum(exp(x - m))), both parts at most 0.

    This includes elements of softmax.
    """
    inside = node.operands[0]
    quotient = inside.operands[0] if isinstance(inside, Gather) else inside
    if not is_map(quotient, div):
        return None
    assert isinstance(quotient, Map)
    result = _shifted(quotient) or _of_one(quotient) or _of_two(quotient)
    if result is None or not isinstance(inside, Gather):
        return result
    return build.gather(result, inside.index, inside.shape)


def _shifted(quotient: Map) -> Expr | None:
    """log of a softmax in stable form: shifted exponentials over their sum."""
    above, below = parts_of(quotient)
    exponent = above.inner(exp)
    is_sum = isinstance(below.node, Einsum) and below.node.operands == (above.node,)
    if exponent is None or not is_sum or not is_shifted(exponent.node):
        return None
    total = Part(log(below.node), below.axes)
    return sub(exponent.along(quotient.shape), total.along(quotient.shape))


def _of_one(quotient: Map) -> Expr | None:
    """log of the exponential of one element over the sum of all exponentials."""
    above, below = parts_of(quotient)
    exponent, summed = above.inner(exp), exponential_sum(below.node)
    if exponent is None or summed is None or summed.order:
        return None
    element = exponent.node
    if not isinstance(element, Gather) or element.operands[0] is not summed.x:
        return None
    shift, total = shifted_sum(summed.x, summed.axes)
    shape = quotient.shape
    less = sub(exponent.along(shape), Part(shift, below.axes).along(shape))
    return sub(less, Part(log(total), below.axes).along(shape))


def _of_two(quotient: Map) -> Expr | None:
    """log(exp(x) / (exp(x) + exp(y))) is -softplus(y - x)."""
    above, below = parts_of(quotient)
    x = above.inner(exp)
    if x is None or not is_map(below.node, add):
        return None
    terms = below.parts()
    for one, other in (terms, terms[::-1]):
        y = other.inner(exp)
        if one == above and y is not None:
            shape = quotient.shape
            return neg(softplus(sub(y.along(shape), x.along(shape))))
    return None


def merged_exponentials(node: Einsum) -> Expr | None:
    """Σ w exp(a) exp(b), all along the same axes, as Σ w exp(a + b); else None.

    The product of both may leave the range of doubles where neither does, and quotients and
    logarithms of sums of single exponentials have stable forms. Factors with fewer axes stay: with
    them the sum is a product of matrices.
    """
    every = {label for own in node.inputs for label in own}
    merged = [
        k
        for k, (operand, own) in enumerate(zip(node.operands, node.inputs, strict=True))
        if is_map(operand, exp) and own == node.inputs[0] and len({*own}) == len(own) == len(every)
    ]
    if len(merged) < 2:
        return None
    exponents = [whole(node.operands[k]).parts()[0].along(node.operands[k].shape) for k in merged]
    if any(map(is_shifted, exponents)):
        return None
    others = [k for k in range(len(node.operands)) if k not in merged]
    operands = [exp(balanced(add, exponents)), *(node.operands[k] for k in others)]
    inputs = (node.inputs[0], *(node.inputs[k] for k in others))
    return build.einsum(operands, inputs, node.output, node.dims)
