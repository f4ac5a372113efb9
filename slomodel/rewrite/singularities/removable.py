"""Products in which zeros and poles of factors meet: removable singularities, continued.

The factor h(u) of a product is u·q(u) where h has a simple zero at 0, and q is a function of the
table that has full accuracy at 0, with its derivatives. The law: in a product the powers of u that
such factors contribute are merged with those that stand beside them; away from u = 0 the value
is the same up to a few rounding errors, and at u = 0 it is the limit. Only products without a pole
left are changed, such as (1 - exp(-x))/x, x/tanh(x), x³/(exp(x) - 1), (1 - cos(x))/x², log(1 + p
x)/p, (a - b)/log(a/b) and (x^p - 1)/p.
"""

from __future__ import annotations

from fractions import Fraction

from slomodel.functions import (
    add,
    div,
    exp,
    expm1,
    log,
    log1p,
    mul,
    neg,
    pow,
    square,
    sub,
    tanh,
)
from slomodel.functions.logarithms import bose
from slomodel.functions.remainders import exp_remainder
from slomodel.functions.removable import (
    BERNOULLI,
    EXP_REMAINDER_QUOTIENT,
    QUOTIENTS,
    exp_quotient,
)
from slomodel.ir.dims import Shape
from slomodel.ir.expr import Const, Expr, Map, is_map
from slomodel.rewrite.elementwise.matching import (
    Part,
    Term,
    two_terms,
    whole,
)
from slomodel.rewrite.singularities.divided_differences import (
    DIVIDED,
    OF_DIFFERENCES,
)
from slomodel.rewrite.singularities.factored_products import (
    MOST_FACTORS,
    FactoredProduct,
    Powers,
    VanishingFactor,
    factored,
    power_product,
    rebuilt,
)
from slomodel.rewrite.singularities.regular_factors import (
    bose_less_pole,
    langevin,
    or_reciprocal,
    power_of,
    reciprocal,
)
from slomodel.rewrite.singularities.vanishing_sums import (
    both_orders,
    zero_of_difference,
    zero_of_logarithm,
    zeros_of_sum,
)

_WITH_ZEROS = frozenset((*QUOTIENTS, bose, log, add, sub, exp_remainder, *OF_DIFFERENCES))


def cancelled(node: Map) -> Expr | None:
    """A product or quotient without its removable singularities; None if it has none."""
    if not _may_cancel(node):
        return None
    product = factored(whole(node))
    if product is None:
        return None
    shape = node.shape
    zeros = {
        part: (p, _aligned(zero, product.powers))
        for part, p in product.powers.items()
        if (zero := _zero(part, product, shape)) is not None
    }
    chosen = {part: one for part, one in zeros.items() if _meets(part, one, product, zeros)}
    if not chosen:
        return None
    number = product.number
    powers = {part: p for part, p in product.powers.items() if part not in chosen}
    regular: Expr | None = None
    for p, zero in chosen.values():
        own = zero.monomial.to_the(p)
        number *= own.number
        for core, e in own.powers.items():
            powers[core] = powers.get(core, 0) + e
        factor = zero.regular(p)
        regular = factor if regular is None else mul(regular, factor)
    assert regular is not None
    return rebuilt(number, powers, regular, shape)


def _aligned(zero: VanishingFactor, powers: Powers) -> VanishingFactor:
    """The factor with a - b written as -(b - a) where that is a factor of the product."""
    sign, own = 1, dict[Part, int]()
    for core, e in zero.monomial.powers.items():
        other = _negative(core)
        if core not in powers and other is not None and other in powers:
            core, sign = other, sign * (-1) ** e
        own[core] = own.get(core, 0) + e
    return VanishingFactor(FactoredProduct(sign * zero.monomial.number, own), zero.regular)


def _negative(part: Part) -> Part | None:
    """b - a for a - b."""
    if not is_map(part.node, sub):
        return None
    left, right = whole(part.node).parts()
    shape = part.node.shape
    return Part(sub(right.along(shape), left.along(shape)), part.axes)


def _may_cancel(node: Map) -> bool:
    """Whether a function with a zero or pole is among the first factors."""
    stack: list[Expr] = list(node.operands)
    for _ in range(2 * MOST_FACTORS):
        if not stack:
            return False
        one = stack.pop()
        if isinstance(one, Map):
            if one.function in _WITH_ZEROS:
                return True
            if one.function in (mul, div, neg, square, pow):
                stack += one.operands
    return False


def _meets(
    part: Part,
    one: tuple[int, VanishingFactor],
    product: FactoredProduct,
    zeros: dict[Part, tuple[int, VanishingFactor]],
) -> bool:
    """Whether powers that the factor contributes are cancelled by others, and no pole is left."""
    p, zero = one
    for core, e in zero.monomial.powers.items():
        own = e * p
        contributions = [q * other.monomial.powers.get(core, 0) for q, other in zeros.values()] + (
            [product.powers[core]] if core in product.powers and core not in zeros else []
        )
        above = sum(contribution for contribution in contributions if contribution > 0)
        below = -sum(one for one in contributions if one < 0)
        if own and above and below and above >= below:
            return True
    return False


def _zero(part: Part, product: FactoredProduct, shape: Shape) -> VanishingFactor | None:
    """A factor as a monomial times a regular function."""
    node = part.node
    if not isinstance(node, Map) or node.function not in _WITH_ZEROS:
        return None
    if node.function is log:
        return zero_of_logarithm(part, product, shape)
    if is_map(node, add, sub):
        return next((one for one in zeros_of_sum(part, product, shape)), None)
    if node.function in OF_DIFFERENCES:
        divided = DIVIDED[OF_DIFFERENCES[node.function]]
        a, b = part.parts()
        return next(zero_of_difference(a, b, Fraction(1), divided, product, shape), None)
    inner = part.parts()[0]
    own = power_product(inner)
    if own is None:
        return None
    u = inner.along(shape)
    if node.function is bose:
        return VanishingFactor(own.to_the(-1), lambda p: power_of(BERNOULLI.member(0)(u), p))
    if node.function is exp_remainder:
        return VanishingFactor(
            own.to_the(2), lambda p: power_of(EXP_REMAINDER_QUOTIENT.member(0)(u), p)
        )
    if node.function is expm1:
        return VanishingFactor(
            own, lambda p: or_reciprocal(exp_quotient(u), BERNOULLI.member(0)(u), p)
        )
    if node.function is tanh:
        coth = add(1.0, mul(u, langevin(u)))
        return VanishingFactor(own, lambda p: or_reciprocal(QUOTIENTS[tanh].member(0)(u), coth, p))
    function = node.function
    return VanishingFactor(
        own, lambda p: or_reciprocal(QUOTIENTS[function].member(0)(u), reciprocal(function, u), p)
    )


def without_common_pole(node: Map) -> Expr | None:
    """1/tanh(u) - 1/u or 1/(exp(u) - 1) - 1/u, times a number; else None."""
    for one, other in both_orders(two_terms(node)):
        if one.core is None or other.core is None:
            continue
        pole, rest = factored(one.core), factored(other.core)
        if pole is None or rest is None or len(pole.powers) != 1:
            continue
        ((part, p),) = pole.powers.items()
        is_bose, is_coth = is_map(part.node, bose) and p == 1, is_map(part.node, tanh) and p == -1
        if not (is_bose or is_coth):
            continue
        inner = part.parts()[0]
        own = power_product(inner)
        if own is None:
            continue
        c = Fraction(one.coefficient) * pole.number
        if own.to_the(-1).powers != rest.powers:
            continue
        if c / own.number != -Fraction(other.coefficient) * rest.number:
            continue
        u = inner.along(node.shape)
        return mul(float(c), langevin(u) if is_coth else bose_less_pole(u))
    return None


def exponential_power(node: Map) -> Expr | None:
    """(1 + p x)^(c/p), whose limit at p = 0 is exp(c x); else None."""
    base, exponent = whole(node).parts()
    if isinstance(exponent.node, Const) or not is_map(base.node, add, sub):
        return None
    assert isinstance(base.node, Map)
    terms = two_terms(base.node)
    others = [term for term in terms if term != Term(1.0, None)]
    if len(others) != 1 or others[0].core is None:
        return None
    core = others[0].core
    inner = Part(core.node, tuple(base.axes[k] for k in core.axes))
    u = mul(others[0].coefficient, inner.along(node.shape))
    result = mul(exponent.along(node.shape), log1p(u))
    without = cancelled(result) if isinstance(result, Map) else None
    return None if without is None else exp(without)
