"""Logarithms of sums and products with exponentials, scaled against overflow and underflow.

For any constant s, log(A) = s + log(A exp(-s)). The scale of A is estimated from its exponents
(`scales.py`). With t the estimate, s is t - clip(t, -300, 300): 0 unless the exponentials come near
the ends of the range of doubles, so that elsewhere the formula is computed as written. The weights
of the exponentials may have any sign and may depend on x; s is taken as constant
(`stop_gradient`), so that the derivatives are those of log(A exp(-s)) for fixed s, which are those
of log(A). In a quotient of two sums of exponentials both are scaled by the scale of the divisor.

Terms that are 0 have the scale -inf: a weight of 0 and a branch that is not taken do not count.
Other weights do not enter the scale. A weight is at least 2^-1074 in absolute value, so that with
t = u the term w exp(u - s) is at least exp(-745), and terms that underflow beside exp(300) are
below exp(-1045), less than 1e-130 of it. Where a weight is 0, u - s has no bound, and a limit of it
keeps the product with the weight finite. For weights of data the limit is 400: their products and
all derivatives of these are 0. The derivative by a weight that depends on x is
exp(u - s) / (A exp(-s)) = exp(u - t). Where such weights are 0, s is at least u - 700 as long as
A exp(-s) stays above 1, which holds up to u - t = 700. The limit, 709 + clip(t, -300, 0), is then
reached only where this overflows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from slomodel.calculus.signs import is_positive
from slomodel.functions import (
    abs,
    add,
    clip,
    div,
    exp,
    expm1,
    land,
    log,
    log1p,
    lt,
    maximum,
    minimum,
    mul,
    neg,
    pow,
    square,
    stop_gradient,
    sub,
    where,
)
from slomodel.ir import build
from slomodel.ir.expr import Const, Einsum, Expr, Map, is_map
from slomodel.ir.walk import postorder
from slomodel.rewrite.elementwise.matching import (
    Part,
    product_of,
    scaled,
    summands,
    whole,
)
from slomodel.rewrite.elementwise.patterns import StableForm, operand
from slomodel.rewrite.exponentials.growth import (
    LARGEST,
    ZONE,
    Absent,
    absent_among,
    exponent_of,
    growth,
    scaled_exp,
    times_growing,
)
from slomodel.rewrite.exponentials.scales import Scales, places, power_of

_MOST_BESIDE_ZERO = 700.0
"""The largest exponent beside a variable 0 after scaling; the derivative by it has the factor."""
_x, _y = operand("x"), operand("y")


def _mixture(other: Expr, weight: Expr) -> Expr:
    """log(1 - w + w exp(x)) as log1p(w expm1(x)) where that is above log(1/2)."""
    less = mul(weight, expm1(_x))
    return where(lt(less, -0.5), log(add(other, mul(weight, exp(_x)))), log1p(less))


_MIXTURES = (
    StableForm(log(add(sub(1.0, _y), mul(_y, exp(_x)))), _mixture(sub(1.0, _y), _y)),
    StableForm(log(add(_y, mul(sub(1.0, _y), exp(_x)))), _mixture(_y, sub(1.0, _y))),
    StableForm(log1p(mul(_y, expm1(_x))), _mixture(sub(1.0, _y), _y)),
)


@dataclass(frozen=True, slots=True)
class _Scaled:
    """A node as exp(shift) * rest; the shift is under `stop_gradient`, or None for 0."""

    rest: Expr
    shift: Expr | None = None


class ScaledLogarithms:
    """Logarithms of nodes with exponentials in one graph; estimates of shared nodes are cached."""

    def __init__(self) -> None:
        self._present = Scales()
        self._all = Scales(counts_zeros=True)
        self._finite: set[Expr] = set()
        # Arguments of logarithms that are scaled, with their scaled forms and shifts.
        self._arguments: dict[Expr, tuple[Expr, Expr]] = {}

    def _shift(self, node: Expr, scale: Expr) -> Expr:
        return _shift(scale, self._of_all(node))

    def _of_all(self, node: Expr) -> Expr | None:
        return self._all.of(node) if self._all.is_short(node) else None

    def rescaled(self, root: Expr) -> dict[Expr, Expr]:
        """The arguments of scaled logarithms that occur elsewhere too, from their scaled forms.

        With the shift s, A is (A exp(-s)) exp(s), and s is 0 but at the ends of the range of
        doubles: so the exponentials are computed once.
        """
        known = set(postorder(root))
        return {
            node: mul(rest, exp(shift))
            for node, (rest, shift) in self._arguments.items()
            if node in known and rest in known
        }

    def is_finite(self, node: Expr) -> bool:
        """Whether a logarithm is one of a positive constant plus what is nowhere negative."""
        return node in self._finite or is_positive(node.operands[0])

    def of_quotient(self, node: Map) -> Expr | None:
        """A quotient of two sums of exponentials in scaled form; else None."""
        # One exponential over a sum of them is a softmax, for which there are other forms.
        return self.of_written_quotient(node) if _is_sum(node.operands[0]) else None

    def of_written_quotient(self, node: Map) -> Expr | None:
        """A quotient of exponentials and a sum of exponentials in scaled form; else None."""
        above, divisor = whole(node).parts()
        if not (self._present.is_short(above.node) and self._present.is_short(divisor.node)):
            return None
        if _sums_choices(divisor.node):
            return None  # A scale of the terms that are chosen costs several times the quotient.
        factors = factors_and_divisors(divisor)
        sums = [part for part, is_above in factors if _is_sum(part.node) and not is_above]
        below = sums[0] if len(sums) == 1 else divisor
        estimate = self._present.of(below.node) if _is_sum(below.node) else None
        if estimate is None or self._present.of(above.node) is None:
            return None
        if sum(self._present.of(part.node) is not None for part, _ in factors) > 1:
            return None
        shift, largest = self._shift(below.node, estimate), _largest_beside(estimate)
        shape = node.shape
        wide, limit = (Part(one, below.axes).along(shape) for one in (shift, largest))
        total = Part(self._times(below.node, shift, largest), below.axes).along(shape)
        # A factor that divides the divisor is one above.
        up = [part.along(shape) for part, is_above in factors if is_above]
        rest = [part.along(shape) for part, is_above in factors if not (is_above or part is below)]
        return div(
            product_of([self._times(above.along(shape), wide, limit), *up]),
            product_of([total, *rest]),
        )

    def of_any(self, node: Map) -> Expr | None:
        """log(A) in scaled form; None if A has no exponentials that could leave the range."""
        inside = node.operands[0]
        if not self._present.is_short(inside) or self._present.of(inside) is None:
            return None
        found = self._scaled(inside)
        if found.shift is None:
            return None
        self._arguments[inside] = (found.rest, found.shift)
        result = log(found.rest)
        if is_positive(inside) and not any(map(_has_factors, summands(inside))):
            # The largest of its terms is in the zone; factors of exponentials may be 0.
            self._finite.add(result)
        return add(found.shift, result)

    def of_growing(self, node: Expr) -> tuple[Expr, Expr] | None:
        """A node without the exponential of a shift, and the shift; None if it never overflows."""
        if not self._present.is_short(node) or self._present.of(node) is None:
            return None
        found = None if self._present.does_not_grow(node) else self._scaled(node)
        return None if found is None or found.shift is None else (found.rest, found.shift)

    def of_one_more(self, node: Map) -> Expr | None:
        """log(1 + A) in scaled form."""
        inside = node.operands[0]
        estimate = self._present.of(inside) if self._present.is_short(inside) else None
        if estimate is None or self._present.does_not_grow(inside):
            return None  # Without a large exponential, it overflows as written or never.
        of_all = self._of_all(inside)
        of_all = None if of_all is None else maximum(of_all, 0.0)
        shift = _shift(maximum(estimate, 0.0), of_all)
        rest = self._times(inside, shift, Const(LARGEST))
        if any(map(_has_factors, summands(inside))):
            # Beside a small factor the scale is too large, and the sum would be 0 beside 1.
            own = beyond_zone(maximum(add(shift, log(abs(rest))), 0.0))
            rest = mul(rest, scaled_exp(sub(shift, own), absent_among([rest], LARGEST - ZONE)))
            shift = own
        return add(shift, log1p(add(rest, expm1(neg(shift)))))

    def of_mixture(self, node: Map) -> Expr | None:
        """log(1 - w + w exp(x)), accurate where it is near 0 and where w is near 1."""
        for form in _MIXTURES:
            result = form.applied(node)
            if isinstance(result, Map):
                condition, *branches = result.operands
                tail, near = (one for one in branches if isinstance(one, Map))
                scaled_tail, scaled_near = self.of_any(tail), self.of_one_more(near)
                return where(condition, scaled_tail or tail, scaled_near or near)
        return None

    def _scaled(self, node: Expr) -> _Scaled:
        """A node and its shift, from the estimate."""
        if isinstance(node, Einsum):
            return self._scaled_sum(node)
        if is_map(node, mul, div, neg) and isinstance(node, Map):
            return self._scaled_product(node)
        estimate = self._present.of(node)
        if estimate is None:
            return _Scaled(node)
        power = power_of(node) if isinstance(node, Map) else None
        if power is not None:
            inside = self._scaled(whole(node).parts()[0].along(node.shape))
            shift = None if inside.shift is None else mul(power, inside.shift)
            return _Scaled(pow(inside.rest, power), shift)
        shift = self._shift(node, estimate)
        return _Scaled(self._times(node, shift, _largest_beside(estimate)), shift)

    def times(self, node: Expr, shift: Expr) -> Expr:
        """node * exp(-shift) for a shift near the scale of the node."""
        return self._times(node, shift, Const(LARGEST))

    def _times(self, node: Expr, shift: Expr, largest: Expr, absent: Absent | None = None) -> Expr:
        """node * exp(-shift), of the shape of `shift` and the node.

        `absent`: where a factor beside the node is 0, so that the shift may be too small by far;
        `largest`: the limit of exponents where one that depends on variables is 0.
        """
        shape = node.shape
        if node is Const(0.0):
            return node
        exponent = exponent_of(whole(node))
        if exponent is not None:
            return scaled_exp(sub(exponent, shift), absent)
        if isinstance(node, Map) and growth(node) is not None:
            return times_growing(node, shift, absent)
        if is_map(node, neg):
            return neg(self._times(whole(node).parts()[0].along(shape), shift, largest, absent))
        if is_map(node, add, sub) and isinstance(node, Map):
            left, right = (
                self._times(part.along(shape), shift, largest, absent)
                for part in whole(node).parts()
            )
            return node.function(left, right)
        if self._present.of(node) is None:
            return mul(node, scaled_exp(neg(shift), absent_among([node], largest)))
        if is_map(node, where):
            condition, *branches = whole(node).parts()
            # Where a branch is not taken, its guard keeps it from the derivatives.
            own = [self._times(part.along(shape), shift, largest, absent) for part in branches]
            return where(condition.along(shape), *own)
        inside = self._with_one_exponential(node, shift, largest, absent)
        if inside is not None:
            return inside
        scaled = self._scaled(node)
        excess = neg(shift) if scaled.shift is None else sub(scaled.shift, shift)
        if not (is_map(node, mul, div, square) or isinstance(node, Einsum)):
            return mul(scaled.rest, exp(excess))
        # The rest has exponentials up to exp(ZONE) as factors.
        zero = absent_among([scaled.rest], sub(largest, ZONE))
        return mul(scaled.rest, scaled_exp(excess, zero))

    def _scaled_product(self, node: Map) -> _Scaled:
        """A product of exponentials, of factors that are scaled in turn, and of others."""
        shape = node.shape
        exponent: Expr | None = None
        shift: Expr | None = None
        above: list[Expr] = []
        below: list[Expr] = []
        for part, is_divisor in factors_and_divisors(whole(node)):
            own = self._present.of(part.node)
            inner = exponent_of(part)
            if inner is not None and own is not None:
                wide = Part(inner, part.axes).along(shape)
                wide = neg(wide) if is_divisor else wide
                exponent = wide if exponent is None else add(exponent, wide)
                continue
            group = below if is_divisor else above
            if own is None:
                group.append(part.along(shape))
                continue
            scaled = self._scaled(part.node)
            group.append(Part(scaled.rest, part.axes).along(shape))
            if scaled.shift is not None:
                wide = Part(scaled.shift, part.axes).along(shape)
                wide = neg(wide) if is_divisor else wide
                shift = wide if shift is None else add(shift, wide)
        if exponent is not None:
            beyond = beyond_zone(exponent)
            above.append(exp(sub(exponent, beyond)))
            shift = beyond if shift is None else add(shift, beyond)
        product = product_of(above)
        return _Scaled(div(product, product_of(below)) if below else product, shift)

    def _scaled_sum(self, node: Einsum) -> _Scaled:
        """A contraction whose operands are scaled by their largest scales along the summed axes."""
        if self._present.of(node) is None:
            return _Scaled(node)
        shift: Expr | None = None
        operands: list[Expr] = []
        for own, labels in zip(node.operands, node.inputs, strict=True):
            reduced = self._present.largest(own, labels, node)
            of_all = self._all.largest(own, labels, node) if self._all.is_short(own) else None
            if reduced is None:
                operands.append(own)
                continue
            beyond = _shift(reduced, of_all)
            kept = tuple(k for k, label in enumerate(labels) if label in node.output)
            wide = build.broadcast(beyond, kept, own.shape) if own.rank else beyond
            absent = absent_among(self._present.weights(node, labels, own.shape), LARGEST)
            operands.append(self._times(own, wide, Const(LARGEST), absent))
            along = Part(beyond, places(labels, node)).along(node.shape)
            shift = along if shift is None else add(shift, along)
        return _Scaled(build.einsum(operands, node.inputs, node.output, node.dims), shift)

    def _with_one_exponential(
        self, node: Expr, shift: Expr, largest: Expr, absent: Absent | None
    ) -> Expr | None:
        """node * exp(-shift) for a product with one exponential, which takes the shift."""
        if not is_map(node, mul, div):
            return None
        shape = node.shape
        parts = [
            (part.along(shape), is_divisor)
            for part, is_divisor in factors_and_divisors(whole(node))
        ]
        exponents = [
            one
            for one, is_divisor in parts
            if exponent_of(whole(one)) is not None and not is_divisor
        ]
        others = [(one, below) for one, below in parts if one not in exponents]
        if len(exponents) != 1 or any(self._present.of(one) is not None for one, _ in others):
            return None
        above = [one for one, is_divisor in others if not is_divisor]
        below = [one for one, is_divisor in others if is_divisor]
        zero = absent_among(above, largest)
        if zero is not None:
            absent = zero.or_else(absent)
        product = product_of([*above, self._times(exponents[0], shift, largest, absent)])
        return div(product, product_of(below)) if below else product


def _has_factors(part: Part) -> bool:
    """Whether a term is a product of more than a constant and one node."""
    core = scaled(part).core
    return core is not None and (is_map(core.node, mul, div) or isinstance(core.node, Einsum))


def _sums_choices(node: Expr) -> bool:
    return isinstance(node, Einsum) and any(is_map(one, where) for one in node.operands)


def _is_sum(node: Expr) -> bool:
    return is_map(node, add, sub) or isinstance(node, Einsum)


def beyond_zone(scale: Expr) -> Expr:
    """The excess of a scale over ±ZONE, as a constant; 0 where it is infinite or undefined."""
    known = where(_is_finite(scale), scale, 0.0)
    return stop_gradient(sub(known, clip(known, -ZONE, ZONE)))


def _shift(present: Expr, of_all: Expr | None) -> Expr:
    """The excess of a scale, more where an exponential beside a variable 0 would overflow.

    `of_all` is the scale with such terms; the sum is not scaled below 1 for their sake.
    """
    shift = beyond_zone(present)
    if of_all is None or of_all is present:
        return shift
    raised = minimum(sub(of_all, _MOST_BESIDE_ZERO), present)
    is_known = land(_is_finite(present), lt(of_all, Const(math.inf)))
    return stop_gradient(where(is_known, maximum(shift, raised), shift))


def _is_finite(scale: Expr) -> Expr:
    return lt(abs(scale), Const(math.inf))


def _largest_beside(estimate: Expr) -> Expr:
    """The largest exponent beside a factor 0 in a sum of this scale; derivatives divide by it."""
    known = where(_is_finite(estimate), estimate, 0.0)
    return stop_gradient(add(LARGEST, clip(known, -ZONE, 0.0)))


def factors_and_divisors(product: Part) -> list[tuple[Part, bool]]:
    """The factors of a product with quotients and signs; the flag marks divisors."""
    result: list[tuple[Part, bool]] = []
    stack = [(product, False)]
    while stack:
        part, is_divisor = stack.pop()
        if is_map(part.node, neg):
            result.append((Part(Const(-1.0), ()), False))
            stack.append((part.parts()[0], is_divisor))
        elif is_map(part.node, mul):
            stack += [(one, is_divisor) for one in reversed(part.parts())]
        elif is_map(part.node, div):
            left, right = part.parts()
            stack += [(right, not is_divisor), (left, is_divisor)]
        else:
            result.append((part, is_divisor))
    return result
