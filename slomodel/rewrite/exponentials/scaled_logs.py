"""Logarithms of sums and products with exponentials, scaled against overflow and underflow.

For any constant s, log(A) = s + log(A exp(-s)). The scale of A is estimated from its exponents:
that of exp(u) is u, of a product the sum, of a sum the largest, of anything else 0. Functions with
a logarithm of full accuracy, as normcdf, count as exponentials of it. With t the estimate, s is
t - clip(t, -300, 300): 0 unless the exponentials come near the ends of the range of doubles, so
that elsewhere the formula is computed as written. The weights of the exponentials may have any sign
and may depend on x; s is taken as constant (`stop_gradient`), so that the derivatives are those of
log(A exp(-s)) for fixed s, which are those of log(A). In a quotient of two sums of exponentials
both are scaled by the scale of the divisor.

Terms that are 0 have the scale -inf: a weight of 0 and a branch that is not taken do not count.
Other weights do not enter the scale. A weight is at least 2^-1074 in absolute value, so that with
t = u the term w exp(u - s) is at least exp(-745), and terms that underflow beside exp(300) are
below exp(-1045), less than 1e-130 of it. Where a weight is 0, u - s has no bound, and a limit of it
keeps the product with the weight finite. For weights of data the limit is 400: their products and
all derivatives of these are 0. The derivative by a weight that depends on x is
exp(u - s) / (A exp(-s)) = exp(u - t), and the limit, 709 + clip(t, -300, 0), is reached where this
overflows or, for t > 0, exp(u - s) does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from slomodel.calculus.signs import is_positive
from slomodel.functions import (
    abs,
    add,
    clip,
    div,
    exp,
    expm1,
    log,
    log1p,
    lt,
    maximum,
    mul,
    neg,
    stop_gradient,
    sub,
    where,
)
from slomodel.ir import build
from slomodel.ir.dims import Shape
from slomodel.ir.expr import Const, Einsum, Expr, Map, is_map
from slomodel.rewrite.elementwise.matching import (
    Part,
    is_shifted,
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
    where_present,
)

_MOST_NODES = 300
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
        self._estimates: dict[Expr, Expr | None] = {}
        self._nonpositive: set[Expr] = set()
        self._finite: set[Expr] = set()

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
        if not (self._is_short(above.node) and self._is_short(divisor.node)):
            return None
        if _sums_choices(divisor.node):
            return None  # A scale of the terms that are chosen costs several times the quotient.
        factors = _flat(divisor)
        sums = [part for part, is_above in factors if _is_sum(part.node) and not is_above]
        below = sums[0] if len(sums) == 1 else divisor
        estimate = self._estimate(below.node) if _is_sum(below.node) else None
        if estimate is None or self._estimate(above.node) is None:
            return None
        if sum(self._estimate(part.node) is not None for part, _ in factors) > 1:
            return None
        shape, shift, largest = node.shape, _beyond_zone(estimate), _largest_beside(estimate)
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
        if not self._is_short(inside) or self._estimate(inside) is None:
            return None
        found = self._scaled(inside)
        if found.shift is None:
            return None
        result = log(found.rest)
        if is_positive(inside) and not any(map(_has_factors, summands(inside))):
            # The largest of its terms is in the zone; factors of exponentials may be 0.
            self._finite.add(result)
        return add(found.shift, result)

    def of_one_more(self, node: Map) -> Expr | None:
        """log(1 + A) in scaled form."""
        inside = node.operands[0]
        estimate = self._estimate(inside) if self._is_short(inside) else None
        if estimate is None or inside in self._nonpositive:
            return (
                None  # Without an exponential that may be large, it overflows as written or never.
            )
        shift = _beyond_zone(maximum(estimate, 0.0))
        rest = self._times(inside, shift, Const(LARGEST))
        if any(map(_has_factors, summands(inside))):
            # Beside a small factor the scale is too large, and the sum would be 0 beside 1.
            own = _beyond_zone(maximum(add(shift, log(abs(rest))), 0.0))
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

    def _is_short(self, root: Expr) -> bool:
        """Whether few enough nodes lie below for the recursion of these rules."""
        seen, stack = {root}, [root]
        while stack and len(seen) <= _MOST_NODES:
            node = stack.pop()
            if node in self._estimates:
                continue
            if isinstance(node, Einsum) or is_map(node, add, sub, mul, div, neg):
                stack += [operand for operand in node.operands if operand not in seen]
                seen.update(node.operands)
        return len(seen) <= _MOST_NODES

    def _estimate(self, node: Expr) -> Expr | None:
        """The scale of a node, of its shape; None if it has no exponentials."""
        if node not in self._estimates:
            self._estimates[node] = self._estimated(node)
        return self._estimates[node]

    def _estimated(self, node: Expr) -> Expr | None:
        if isinstance(node, Einsum):
            return self._estimate_of_sum(node)
        if not isinstance(node, Map):
            return None
        function, shape = node.function, node.shape
        exponent = exponent_of(whole(node))
        if exponent is not None:
            if function is not exp:
                self._nonpositive.add(node)
            return None if is_shifted(exponent) or isinstance(exponent, Const) else exponent
        grown = growth(node)
        if grown is not None:
            return grown
        if function is where:
            return self._estimate_of_choice(node)
        if function not in (add, sub, mul, div, neg):
            return None
        parts = whole(node).parts()
        result = [
            None if own is None else Part(own, part.axes).along(shape)
            for part in parts
            for own in (self._estimate(part.node),)
        ]
        if all(one is None for one in result):
            return None
        bounded = [operand in self._nonpositive for operand in node.operands]
        if function is neg:
            self._nonpositive |= {node} if bounded[0] else set()
            return result[0]
        if function in (add, sub, mul) and all(
            low or one is None for low, one in zip(bounded, result, strict=True)
        ):
            # The scale of what has no exponentials is 0, the largest in a sum with these.
            if function is not mul and any(one is None for one in result):
                return None
            self._nonpositive.add(node)
        left, right = (
            where_present(0.0, () if is_divisor else (part.along(shape),)) if one is None else one
            for one, part, is_divisor in zip(result, parts, (False, function is div), strict=True)
        )
        combine = maximum if function in (add, sub) else add if function is mul else sub
        return combine(left, right)

    def _estimate_of_choice(self, node: Map) -> Expr | None:
        """The scale of the branch that is taken; what has no exponentials has the scale 0."""
        condition, *branches = whole(node).parts()
        result = [self._estimate(part.node) for part in branches]
        # Branches that are at most 1, as those of sigmoid, leave no range.
        if all(
            one is None or part.node in self._nonpositive
            for one, part in zip(result, branches, strict=True)
        ):
            return None
        wide = [
            where_present(0.0, (part.along(node.shape),))
            if own is None
            else Part(own, part.axes).along(node.shape)
            for own, part in zip(result, branches, strict=True)
        ]
        return where(condition.along(node.shape), *wide)

    def _estimate_of_sum(self, node: Einsum) -> Expr | None:
        """The sum of the largest scales of the operands, along the axes that are summed."""
        if len(set(node.output)) != len(node.output):
            return None
        result: Expr | None = None
        for own, labels in zip(node.operands, node.inputs, strict=True):
            reduced = self._largest(own, labels, node)
            if reduced is None:
                if self._estimate(own) is not None:
                    return None
                continue
            shape = node.shape
            wide = Part(reduced, tuple(_places(labels, node))).along(shape)
            result = wide if result is None else add(result, wide)
        return result

    def _scaled(self, node: Expr) -> _Scaled:
        """A node and its shift, from the estimate."""
        if isinstance(node, Einsum):
            return self._scaled_sum(node)
        if is_map(node, mul, div, neg) and isinstance(node, Map):
            return self._scaled_product(node)
        estimate = self._estimate(node)
        if estimate is None:
            return _Scaled(node)
        shift = _beyond_zone(estimate)
        return _Scaled(self._times(node, shift, _largest_beside(estimate)), shift)

    def _others(self, node: Einsum) -> list[tuple[Expr, tuple[int, ...]]]:
        """The operands of a contraction without exponentials, with their labels."""
        pairs = zip(node.operands, node.inputs, strict=True)
        return [(one, own) for one, own in pairs if self._estimate(one) is None]

    def _largest(self, operand: Expr, labels: Sequence[int], node: Einsum) -> Expr | None:
        """The maximum of an operand's scale along the axes that are summed, where its weights are
        not 0; None if it has no scale, or axes repeat.
        """
        estimate = self._estimate(operand)
        if estimate is None or len(set(labels)) != len(labels):
            return None
        summed = tuple(k for k, label in enumerate(labels) if label not in node.output)
        weights = _weights(self._others(node), labels, operand.shape)
        return build.extreme(where_present(estimate, weights), "max", summed)

    def _times(self, node: Expr, shift: Expr, largest: Expr, absent: Absent | None = None) -> Expr:
        """node * exp(-shift), of the shape of `shift` and the node.

        `absent`: where a factor beside the node is 0, so that the shift may be too small by far;
        `largest`: the limit of exponents where one that depends on variables is 0.
        """
        shape = node.shape
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
        if self._estimate(node) is None:
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
        if not (is_map(node, mul, div) or isinstance(node, Einsum)):
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
        for part, is_divisor in _flat(whole(node)):
            own = self._estimate(part.node)
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
            beyond = _beyond_zone(exponent)
            above.append(exp(sub(exponent, beyond)))
            shift = beyond if shift is None else add(shift, beyond)
        product = product_of(above)
        return _Scaled(div(product, product_of(below)) if below else product, shift)

    def _scaled_sum(self, node: Einsum) -> _Scaled:
        """A contraction whose operands are scaled by their largest scales along the summed axes."""
        if self._estimate(node) is None:
            return _Scaled(node)
        shift: Expr | None = None
        operands: list[Expr] = []
        for own, labels in zip(node.operands, node.inputs, strict=True):
            reduced = self._largest(own, labels, node)
            if reduced is None:
                operands.append(own)
                continue
            beyond = _beyond_zone(reduced)
            kept = tuple(k for k, label in enumerate(labels) if label in node.output)
            wide = build.broadcast(beyond, kept, own.shape) if own.rank else beyond
            weights = _weights(self._others(node), labels, own.shape)
            absent = absent_among(weights, LARGEST)
            operands.append(self._times(own, wide, Const(LARGEST), absent))
            along = Part(beyond, tuple(_places(labels, node))).along(node.shape)
            shift = along if shift is None else add(shift, along)
        return _Scaled(build.einsum(operands, node.inputs, node.output, node.dims), shift)

    def _with_one_exponential(
        self, node: Expr, shift: Expr, largest: Expr, absent: Absent | None
    ) -> Expr | None:
        """node * exp(-shift) for a product with one exponential, which takes the shift."""
        if not is_map(node, mul, div):
            return None
        shape = node.shape
        parts = [(part.along(shape), is_divisor) for part, is_divisor in _flat(whole(node))]
        exponents = [
            one
            for one, is_divisor in parts
            if exponent_of(whole(one)) is not None and not is_divisor
        ]
        others = [(one, below) for one, below in parts if one not in exponents]
        if len(exponents) != 1 or any(self._estimate(one) is not None for one, _ in others):
            return None
        above = [one for one, is_divisor in others if not is_divisor]
        below = [one for one, is_divisor in others if is_divisor]
        own = absent_among(above, largest)
        if own is not None:
            absent = own.or_else(absent)
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


def _beyond_zone(estimate: Expr) -> Expr:
    """The excess of a scale over ±ZONE, as a constant; 0 where it is infinite or undefined."""
    finite = lt(abs(estimate), Const(math.inf))
    known = where(finite, estimate, 0.0)
    return stop_gradient(sub(known, clip(known, -ZONE, ZONE)))


def _largest_beside(estimate: Expr) -> Expr:
    """The largest exponent beside a factor 0 in a sum of this scale; derivatives divide by it."""
    finite = lt(abs(estimate), Const(math.inf))
    return stop_gradient(add(LARGEST, clip(where(finite, estimate, 0.0), -ZONE, 0.0)))


def _weights(
    operands: Sequence[tuple[Expr, tuple[int, ...]]], labels: Sequence[int], shape: Shape
) -> list[Expr]:
    """The operands with no axes but those of `labels`, of this shape along them.

    For others, as the matrix of W @ exp(x), each of their rows would have a scale of its own, and
    as many exponentials as the matrix has elements.
    """
    return [
        Part(one, tuple(labels.index(label) for label in own)).along(shape)
        for one, own in operands
        if len(set(own)) == len(own) and set(own) <= set(labels)
    ]


def _places(labels: Sequence[int], node: Einsum) -> list[int]:
    """The axes of the result along which an operand runs, in the order of its own axes."""
    return [node.output.index(label) for label in labels if label in node.output]


def _flat(product: Part) -> list[tuple[Part, bool]]:
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
