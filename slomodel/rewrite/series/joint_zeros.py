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
    log,
    log1p,
    log2,
    log10,
    mul,
    neg,
    pow,
    sqrt,
    square,
    sub,
    where,
    xlogx,
    xlogx1p,
    xlogy,
)
from slomodel.functions.power_series import polynomial
from slomodel.ir.expr import Const, Expr, Map
from slomodel.ir.walk import postorder
from slomodel.rewrite.elementwise.matching import Part, is_map, scaled, whole
from slomodel.rewrite.replacement import composed
from slomodel.rewrite.series.laurent import (
    SERIES,
    Laurent,
    NoSeries,
    constant,
    exponential,
    identity,
    logarithm,
    series_of,
)

_LEAST_TERMS, _MOST_TERMS = 2, 8
"""Terms of a sum in which groups are looked for; common divergences have three to five."""
_MOST_QUANTITIES = 4
_FEW, _MANY = 6, 48
"""Terms that show whether the leading ones cancel, and those of the series that is computed."""
_VALUES = (Fraction(1), Fraction(1, 2))
"""Values of one quantity at which a sum may vanish: ratios at 1, probabilities at 1/2."""
_EDGES = (0.25, 0.125, 0.0625, 0.03125)
"""The largest |t| for the series; beyond 1/4, terms that cancel to second order lose four bits."""
_MOST_POLYNOMIAL_TERMS = 32
_NEGLIGIBLE = 1e-18
_ROUNDING = 2.0**-50
"""Coefficients below this fraction of those that cancel in them are the rounding of constants."""
_ZERO, _ONE = Fraction(0), Fraction(1)
_ALGEBRA = frozenset(
    (add, sub, neg, mul, div, square, sqrt, pow, exp, log, log1p, xlogx, xlogx1p, xlogy)
)
_BASES = {log2: math.log(2.0), log10: math.log(10.0)}


@dataclass(frozen=True, slots=True)
class _Expansion:
    """s^k (A + B L) with L = log(s), of a quantity with a = s (1 + t) or log(a) = L + t."""

    k: Fraction
    a: Laurent
    b: Laurent | None = None

    def plus(self, other: _Expansion, sign: int = 1) -> _Expansion:
        if self.k != other.k:
            for one, rest, factor in ((self, other, sign), (other, self, 1)):
                if one.b is None and one.a.is_zero:
                    return rest.scaled(Fraction(factor))
            raise NoSeries
        return _Expansion(
            self.k, self.a + other.a.scaled(Fraction(sign)), _sum(self.b, other.b, sign)
        )

    def scaled(self, factor: Fraction) -> _Expansion:
        return _Expansion(
            self.k, self.a.scaled(factor), None if self.b is None else self.b.scaled(factor)
        )

    def times(self, other: _Expansion) -> _Expansion:
        if self.b is not None and other.b is not None:
            raise NoSeries
        one, two = (self, other) if other.b is None else (other, self)
        b = None if one.b is None else one.b * two.a
        return _Expansion(self.k + other.k, one.a * two.a, b)

    def plain(self) -> Laurent:
        """A, without a logarithm beside it."""
        if self.b is not None or self.a.is_zero:
            raise NoSeries
        return self.a

    def reciprocal(self) -> _Expansion:
        return _Expansion(-self.k, self.plain().reciprocal())

    def power(self, p: Fraction) -> _Expansion:
        return _Expansion(p * self.k, self.plain().power(p))

    def logarithm(self) -> _Expansion:
        a = self.plain()
        c = a.coefficients[0]
        if a.order or c <= 0:
            raise NoSeries
        terms = len(a.coefficients)
        value = constant(Fraction(math.log(c)), terms)
        if any(a.coefficients[1:]):
            value = value + logarithm(a.scaled(1 / c))
        return _Expansion(_ZERO, value, constant(self.k, terms) if self.k else None)

    def exponential(self) -> _Expansion:
        if self.k:
            raise NoSeries
        slope = _ZERO if self.b is None else self.b.coefficients[0]
        if self.b is not None and (self.b.order or any(self.b.coefficients[1:])):
            raise NoSeries
        return _Expansion(slope, exponential(self.a))


def _sum(one: Laurent | None, other: Laurent | None, sign: int) -> Laurent | None:
    if other is None:
        return one
    total = other.scaled(Fraction(sign)) if one is None else one + other.scaled(Fraction(sign))
    return None if total.is_zero else total


Along = Callable[[Part], Expr]
"""A part along the axes of the sum."""


@dataclass(frozen=True, slots=True)
class _Setting:
    """What t is: the expansions of the quantities in n terms, t itself, and s^k; none where s is 1.

    `least_order`: that of a series that is used. A difference of the first order is exact.
    """

    of: Mapping[Part, Callable[[int], _Expansion]]
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
    below = {part: _quantities(part) for part in terms if part is not None}
    every = list(dict.fromkeys(one for own in below.values() for one in own))
    if len(every) > _MOST_QUANTITIES:
        return None
    shape, series = node.shape, list[Expr]()

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
    if not series:
        return None
    total = series[0]
    for one in series[1:]:
        total = add(total, one)
    for part, c in terms.items():
        if c:
            total = add(total, float(c) if part is None else mul(float(c), along(part)))
    return total


def _terms(node: Map) -> Terms | None:
    """The terms of a sum; None if there are many."""
    result: Terms = {}
    stack = [(whole(node), 1.0)]
    while stack:
        one, factor = stack.pop()
        term = scaled(one, factor)
        core = term.core
        if core is not None and is_map(core.node, add, sub):
            left, right = core.parts()
            minus = -1.0 if is_map(core.node, sub) else 1.0
            stack += [(right, minus * term.coefficient), (left, term.coefficient)]
        elif core is not None and (divided := _divided(core)):
            stack += [(one, term.coefficient) for one in divided]
        elif math.isfinite(term.coefficient):
            result[core] = result.get(core, _ZERO) + Fraction(term.coefficient)
        else:
            return None
        if len(result) + len(stack) > _MOST_TERMS:
            return None
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


def _quantities(part: Part) -> set[Part]:
    """The quantities of which a term is a function with an expansion."""
    result: set[Part] = set()
    seen, stack = {part}, [part]
    while stack:
        one = stack.pop()
        node = one.node
        if isinstance(node, Const):
            continue
        if not isinstance(node, Map) or not _has_expansion(node):
            result.add(one)
            continue
        new = [inner for inner in one.parts() if inner not in seen]
        seen.update(new)
        stack += new
    return result


def _has_expansion(node: Map) -> bool:
    function = node.function
    if function is pow:
        return isinstance(node.operands[1], Const)
    return function in _ALGEBRA or function in _BASES or function.name in SERIES


def may_have_joint_zero(node: Expr) -> bool:
    """Whether a node is a function, or a quotient of variable quantities, with an expansion."""
    if not isinstance(node, Map) or not _has_expansion(node):
        return False
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
        if not isinstance(one, Map) or not _has_expansion(one):
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
        {one: lambda n: _Expansion(_ZERO, identity(n))}, lambda along: along(one), least_order=1
    )


def _at_value(one: Part, value: Fraction) -> _Setting:
    """a = c + t."""
    return _Setting(
        {one: lambda n: _Expansion(_ZERO, constant(value, n) + identity(n))},
        lambda along: sub(along(one), float(value)),
    )


def _of_ratio(one: Part, other: Part) -> _Setting:
    """a = b (1 + t)."""
    return _Setting(
        {
            one: lambda n: _Expansion(_ONE, constant(_ONE, n) + identity(n)),
            other: lambda n: _Expansion(_ONE, constant(_ONE, n)),
        },
        lambda along: div(sub(along(one), along(other)), along(other)),
        lambda along, k: _power(along(other), k),
    )


def _of_difference(one: Part, other: Part) -> _Setting:
    """a = b + t, with exp(b) for s."""
    return _Setting(
        {
            one: lambda n: _Expansion(_ZERO, identity(n), constant(_ONE, n)),
            other: lambda n: _Expansion(_ZERO, constant(_ZERO, n), constant(_ONE, n)),
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
    edge = _edge(total.a)
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
) -> tuple[_Expansion, Fraction] | None:
    """The expansion of the group, with as much of the constant term as it cancels."""
    known: dict[Part, _Expansion] = {part: of(n) for part, of in setting.of.items()}
    own = [_expanded(part, known, n).scaled(c) for part, c in group.items()]
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
        if not given or (left and Fraction(float(left)) != left):
            return None
        total = total.plus(_Expansion(_ZERO, constant(taken, n)))
    a = _without_roundings(total.a, sizes)
    is_cancelled = total.b is None or _without_roundings(total.b, sizes).is_zero
    if a.is_zero or not is_cancelled:
        return None
    return _Expansion(total.k, a), taken


def _sizes(own: Sequence[_Expansion], total: _Expansion) -> Callable[[int], float]:
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


def _expanded(part: Part, known: dict[Part, _Expansion], n: int) -> _Expansion:
    """The expansion of a part. Raises NoSeries."""
    stack = [part]
    while stack:
        one = stack[-1]
        if one in known:
            stack.pop()
            continue
        if isinstance(one.node, Const):
            if not math.isfinite(one.node.value):
                raise NoSeries
            known[one] = _Expansion(_ZERO, constant(Fraction(one.node.value), n))
            continue
        waiting = [inner for inner in one.parts() if inner not in known]
        if waiting:
            stack += waiting
            continue
        assert isinstance(one.node, Map)
        known[one] = _of_map(one.node, [known[inner] for inner in one.parts()], n)
        stack.pop()
    return known[part]


def _of_map(node: Map, own: Sequence[_Expansion], n: int) -> _Expansion:
    function, first = node.function, own[0]
    one = _Expansion(_ZERO, constant(_ONE, n))
    if function in _ALGEBRA:
        return (
            _ALGEBRAIC[function](*own)
            if function in _ALGEBRAIC
            else _of_logarithms(function, own, one, node)
        )
    if function in _BASES:
        return first.logarithm().scaled(1 / Fraction(_BASES[function]))
    if first.k or first.b is not None:
        raise NoSeries
    return _Expansion(_ZERO, series_of(function.name, first.a))


def _of_logarithms(
    function: object, own: Sequence[_Expansion], one: _Expansion, node: Map
) -> _Expansion:
    first = own[0]
    if function is log1p:
        return first.plus(one).logarithm()
    if function in (xlogx, xlogx1p):
        base = first if function is xlogx else first.plus(one)
        return base.times(base.logarithm())
    if function is xlogy:
        return first.times(own[1].logarithm())
    exponent = node.operands[1]
    assert isinstance(exponent, Const)
    if math.fabs(exponent.value) > 64.0 or not math.isfinite(exponent.value):
        raise NoSeries
    return first.power(Fraction(exponent.value))


_ALGEBRAIC: dict[object, Callable[..., _Expansion]] = {
    add: lambda a, b: a.plus(b),
    sub: lambda a, b: a.plus(b, -1),
    neg: lambda a: a.scaled(Fraction(-1)),
    mul: lambda a, b: a.times(b),
    div: lambda a, b: a.times(b.reciprocal()),
    square: lambda a: a.times(a),
    sqrt: lambda a: a.power(Fraction(1, 2)),
    exp: lambda a: a.exponential(),
    log: lambda a: a.logarithm(),
}


def _edge(series: Laurent) -> float | None:
    """The largest |t| at which few terms of the series are enough."""
    sizes = [math.fabs(float(c)) for c in series.coefficients]
    for edge in _EDGES:
        terms = [size * edge**k for k, size in enumerate(sizes)]
        kept = [k for k, term in enumerate(terms) if term > _NEGLIGIBLE * terms[0]]
        is_short = sum(1 for k in kept if sizes[k]) <= _MOST_POLYNOMIAL_TERMS
        if is_short and max(kept) < len(terms) - 8 and sum(terms[1:]) <= 2.0 * terms[0]:
            return edge
    return None


def _power(base: Expr, k: Fraction) -> Expr:
    if k == 1:
        return base
    return div(1.0, base) if k == -1 else pow(base, float(k))
