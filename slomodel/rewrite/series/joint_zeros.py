"""Sums whose terms cancel where a quantity takes a value, or where two quantities are equal.

In exp(x) - 1 - x + y^2 the terms in x cancel to second order at x = 0, in x^2 - 1 - 2 log(x) at
x = 1, in a log(a/b) - a + b, log(b/a) + a^2/(2 b^2) - 1/2 and the divergence of Jensen and Shannon
where a = b, as in exp(a) - exp(b) - (a - b) exp(b). With a = b (1 + t) the terms of a homogeneous
sum are b^k (A(t) + B(t) log(b)), with power series A and B, and with a = b + t those of
exponentials are exp(k b) (A(t) + B(t) b). Where the B of the sum vanishes and A begins at t^2 or
later, the sum is computed for small |t| from its series; the difference a - b is exact there. The
law: near t = 0 the value has full accuracy; elsewhere it is the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

from slomodel.functions import (
    abs,
    add,
    div,
    exp,
    le,
    mul,
    neg,
    pow,
    square,
    sub,
    where,
)
from slomodel.functions.power_series import polynomial
from slomodel.ir.expr import Const, Expr, Map, is_map
from slomodel.ir.walk import postorder
from slomodel.rewrite.elementwise.matching import Part, linear_terms, whole
from slomodel.rewrite.replacement import composed
from slomodel.rewrite.series.expansions import edge_of
from slomodel.rewrite.series.homogeneous import Expansion, expansion_of, has_expansion
from slomodel.rewrite.series.laurent import (
    Laurent,
    NoSeries,
    constant,
    identity,
)

_LEAST_TERMS, _MOST_TERMS = 2, 8
"""Terms of a sum in which groups are looked for; common divergences have three to five."""
_MOST_QUANTITIES = 4
_MOST_NODES = 48
"""Nodes of a term down to its quantities; a chain of sums would be expanded again at each node."""
_FEW, _MANY = 6, 48
"""Terms that show whether the leading ones cancel, and those of the series that is computed."""
_VALUES = (Fraction(1), Fraction(1, 2))
"""Values of one quantity at which a sum may vanish: ratios at 1, probabilities at 1/2."""
_FARTHEST = 0.25
"""The largest |t| for the series; beyond, terms that cancel to second order lose four bits."""
_ROUNDING = 2.0**-50
"""Coefficients below this fraction of those that cancel in them are the rounding of constants."""
_ZERO, _ONE = Fraction(0), Fraction(1)


Along = Callable[[Part], Expr]
"""A part along the axes of the sum."""


@dataclass(frozen=True, slots=True)
class _Setting:
    """The expansions of the quantities in n terms, t itself, and s^k; none where s is 1.

    `least_order`: the smallest order of a series used. A difference of the first order is exact.
    """

    of: Mapping[Part, Callable[[int], Expansion]]
    t: Callable[[Along], Expr]
    scale: Callable[[Along, Fraction], Expr] | None = None
    least_order: int = 2


Terms = dict[Part | None, Fraction]
"""Coefficients of a sum by its terms; None stands for 1."""


def joint_zero(node: Map, done: Mapping[Expr, Expr]) -> Expr | None:
    """The sum with groups of its terms by their series; None if none of them cancel."""
    terms = _terms(node)
    if terms is None or len(terms) < _LEAST_TERMS:
        return None
    below: dict[Part, set[Part]] = {}
    for part in terms:
        if part is None:
            continue
        own = _quantities(part)
        if own is None:
            return None
        below[part] = own
    every = list(dict.fromkeys(one for own in below.values() for one in own))
    if len(every) > _MOST_QUANTITIES:
        return None
    shape, series, given = node.shape, list[Expr](), terms.get(None, _ZERO)

    def along(part: Part) -> Expr:
        if part.node in done:
            return Part(done[part.node], part.axes).along(shape)
        # A quotient that `_divided` has written.
        replaced = {one: done[one] for one in postorder(part.node) if one in done}
        return Part(composed([part.node], replaced)[part.node], part.axes).along(shape)

    for setting in _settings(every):
        group = [part for part in below if part in terms and below[part] <= setting.of.keys()]
        if any(_has_function(part.node) for part in group):
            found = _by_series({part: terms[part] for part in group}, terms, setting, along)
            if found is not None:
                value, taken = found
                series.append(value)
                terms = {part: c for part, c in terms.items() if part not in group}
                terms[None] = terms.get(None, _ZERO) - taken
    if not series or (terms.get(None) and terms[None] != given):
        return None  # what is left of the constant hides the digits that are gained
    total = series[0]
    for one in series[1:]:
        total = add(total, one)
    for part, c in terms.items():
        if c:
            total = add(total, float(c) if part is None else mul(float(c), along(part)))
    return total


def _terms(node: Map) -> Terms | None:
    """The terms of a sum; None if there are many."""
    found = linear_terms(whole(node), _MOST_TERMS, _divided)
    if found is None or not all(math.isfinite(term.coefficient) for term in found):
        return None
    result: Terms = {}
    for term in found:
        result[term.core] = result.get(term.core, _ZERO) + Fraction(term.coefficient)
    return {part: c for part, c in result.items() if c}


def _divided(part: Part) -> list[Part]:
    """The terms of a quotient of a sum, each divided by itself; none of other parts."""
    if not is_map(part.node, div):
        return []
    above, below = part.parts()
    if not is_map(above.node, add, sub) or above.node.shape != part.node.shape:
        return []
    left, right = (one.along(part.node.shape) for one in whole(above.node).parts())
    divisor = below.along(part.node.shape)
    second = neg(right) if is_map(above.node, sub) else right
    return [Part(div(one, divisor), part.axes) for one in (left, second)]


def _quantities(part: Part) -> set[Part] | None:
    """The quantities of which a term is a function with an expansion; None if it is large.

    Or if they are too many: in a chain each level has one of its own.
    """
    result: set[Part] = set()
    seen, stack = {part}, [part]
    while stack:
        one = stack.pop()
        node = one.node
        if isinstance(node, Const):
            continue
        if not isinstance(node, Map) or not has_expansion(node):
            result.add(one)
            if len(result) > _MOST_QUANTITIES:
                return None
            continue
        new = [inner for inner in one.parts() if inner not in seen]
        seen.update(new)
        if len(seen) > _MOST_NODES:
            return None
        stack += new
    return result


def may_have_joint_zero(node: Expr) -> bool:
    """Whether a node is a function, or a quotient of variable quantities, with an expansion."""
    if not isinstance(node, Map) or not has_expansion(node):
        return False
    if node.function is pow and isinstance(node.operands[1], Const):
        return not float(node.operands[1].value).is_integer()
    if node.function is div:
        return not isinstance(node.operands[1], Const)
    return node.function not in (add, sub, neg, mul, square)


def _has_function(node: Expr) -> bool:
    """Whether a term is more than a polynomial."""
    stack, seen = [node], {node}
    while stack:
        one = stack.pop()
        if may_have_joint_zero(one):
            return True
        if not isinstance(one, Map) or not has_expansion(one):
            continue
        stack += [operand for operand in one.operands if operand not in seen]
        seen.update(one.operands)
    return False


def _settings(every: Sequence[Part]) -> Iterator[_Setting]:
    for one in every:
        yield _at_zero(one)
        for value in _VALUES:
            yield _at_value(one, value)
    for one, other in combinations(every, 2):
        yield _of_ratio(one, other)
        yield _of_difference(one, other)


def _at_zero(one: Part) -> _Setting:
    return _Setting(
        {one: lambda n: Expansion(_ZERO, identity(n))}, lambda along: along(one), least_order=1
    )


def _at_value(one: Part, value: Fraction) -> _Setting:
    """a = c + t."""
    return _Setting(
        {one: lambda n: Expansion(_ZERO, constant(value, n) + identity(n))},
        lambda along: sub(along(one), float(value)),
    )


def _of_ratio(one: Part, other: Part) -> _Setting:
    """a = b (1 + t)."""
    return _Setting(
        {
            one: lambda n: Expansion(_ONE, constant(_ONE, n) + identity(n)),
            other: lambda n: Expansion(_ONE, constant(_ONE, n)),
        },
        lambda along: div(sub(along(one), along(other)), along(other)),
        lambda along, k: _power(along(other), k),
    )


def _of_difference(one: Part, other: Part) -> _Setting:
    """a = b + t, with exp(b) for s."""
    return _Setting(
        {
            one: lambda n: Expansion(_ZERO, identity(n), constant(_ONE, n)),
            other: lambda n: Expansion(_ZERO, constant(_ZERO, n), constant(_ONE, n)),
        },
        lambda along: sub(along(one), along(other)),
        lambda along, k: exp(mul(float(k), along(other))),
    )


def _by_series(
    group: Mapping[Part, Fraction], terms: Terms, setting: _Setting, along: Along
) -> tuple[Expr, Fraction] | None:
    """The terms of a group as a series near t = 0, with a part of the constant term."""
    try:
        few = _total(group, terms.get(None, _ZERO), setting, _FEW)
        if few is None or few[0].a.order < setting.least_order:
            return None
        many = _total(group, terms.get(None, _ZERO), setting, _MANY)
    except NoSeries:
        return None
    if many is None:
        return None
    total, taken = many
    edge = edge_of(total.a, _FARTHEST)
    if edge is None or len(group) + bool(taken) < _LEAST_TERMS:
        return None
    far: Expr = Const(float(taken))
    for part, c in group.items():
        far = add(far, mul(float(c), along(part)))
    t = setting.t(along)
    is_near = le(abs(t), edge)
    coefficients = [_ZERO] * total.a.order + list(total.a.coefficients)
    near = polynomial(coefficients, 0, edge, where(is_near, t, 0.0))
    if total.k and setting.scale is not None:
        near = mul(setting.scale(lambda part: where(is_near, along(part), 1.0), total.k), near)
    return where(is_near, near, far), taken


def _total(
    group: Mapping[Part, Fraction], given: Fraction, setting: _Setting, n: int
) -> tuple[Expansion, Fraction] | None:
    """The expansion of the group, with as much of the constant term as it cancels."""
    known: dict[Part, Expansion] = {part: of(n) for part, of in setting.of.items()}
    own = [expansion_of(part, known, n).scaled(c) for part, c in group.items()]
    total = own[0]
    for one in own[1:]:
        total = total.plus(one)
    sizes = _sizes(own, total)
    taken = _ZERO
    if not total.k and total.b is None and not total.a.order and not total.a.is_zero:
        first = total.a.coefficients[0]
        near = math.fabs(float(given + first)) <= _ROUNDING * math.fabs(float(first))
        taken = given if near else -first
        left = given - taken
        if not 0 < taken * given <= given * given or Fraction(float(left)) != left:
            return None
        total = total.plus(Expansion(_ZERO, constant(taken, n)))
    a = _without_roundings(total.a, sizes)
    is_cancelled = total.b is None or _without_roundings(total.b, sizes).is_zero
    if a.is_zero or not is_cancelled or a.order <= min(map(_order, own)):
        return None  # the leading terms do not cancel
    return Expansion(total.k, a), taken


def _order(one: Expansion) -> int:
    """The order of the leading term of A and B."""
    parts = [part for part in (one.a, one.b) if part is not None and not part.is_zero]
    return min((part.order for part in parts), default=0)


def _sizes(own: Sequence[Expansion], total: Expansion) -> Callable[[int], float]:
    """The sum of the magnitudes of the coefficients of t^j in A and B of the terms."""

    def of(j: int) -> float:
        size = 0.0
        for one in own:
            for part in (one.a, one.b):
                if part is not None and part.order <= j < part.end:
                    size += math.fabs(float(part.coefficient(j)))
        return size

    return of


def _without_roundings(series: Laurent, size: Callable[[int], float]) -> Laurent:
    """The series without leading coefficients that are roundings of the constants in it."""
    kept = list(series.coefficients)
    for j, c in enumerate(kept):
        if c and math.fabs(float(c)) > _ROUNDING * size(series.order + j):
            return Laurent(series.order + j, tuple(kept[j:]))
    return Laurent(series.order, tuple(_ZERO for _ in kept))


def _power(base: Expr, k: Fraction) -> Expr:
    if k == 1:
        return base
    return div(1.0, base) if k == -1 else pow(base, float(k))
