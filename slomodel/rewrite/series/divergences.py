"""Deviances and divergences near equality, where their terms cancel to second order.

y log(y/m) - y + m is m ((1 + t) log(1 + t) - t), and y/m - log(y/m) - 1 is t - log(1 + t), both
with t = (y - m)/m: of second order in t, where their terms are of order 1. The law: for |t| <= 1/4
full accuracy in these forms; elsewhere the same. y log(y/m) + (1 - y) log((1 - y)/(1 - m)) is the
sum of two of the first kind, whose linear terms cancel.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from slomodel.functions import (
    abs,
    add,
    div,
    le,
    log,
    log1p,
    mul,
    sub,
    where,
    xlogx,
    xlogy,
)
from slomodel.functions.remainders import log_remainder
from slomodel.ir.dims import Shape
from slomodel.ir.expr import Const, Expr, Map, is_map
from slomodel.rewrite.elementwise.matching import Part, linear_terms, scaled, whole

_MOST_TERMS = 8
"""Terms of a sum in which a divergence is looked for; common ones have three to five."""
_NEAR = 0.25
"""The largest |t| for which t - log(1 + t) is computed as one function: there it is a tenth of |t|,
so that the difference itself loses less than four bits beyond.
"""
LOGARITHMIC = frozenset((log, xlogx, xlogy))

Terms = dict[Part | None, float]
"""Coefficients of a sum by its terms; None stands for 1."""


def divergence(node: Map) -> Expr | None:
    """A sum with deviances in forms that do not cancel; None if it has none."""
    terms = _terms(whole(node))
    if terms is None or not any(_may_be_logarithmic(part) for part in terms):
        return None
    shape, parts = node.shape, list[Expr]()
    for entropy in [one for part in terms if part for one in _entropies(part)]:
        c = terms[entropy.part] * entropy.factor
        made = _with_linear_terms(c, entropy, terms, shape) if c else None
        if made is not None:
            parts.append(made)
    parts += _of_complements(terms, shape)
    parts += _of_ratios(terms, shape)
    if not parts:
        return None
    result = parts[0]
    for one in parts[1:]:
        result = add(result, one)
    for part, c in terms.items():
        if c:
            value = Const(1.0) if part is None else part.along(shape)
            result = add(result, mul(c, value))
    return result


def _terms(part: Part) -> Terms | None:
    """The terms of a sum; None if there are many."""
    found = linear_terms(part, _MOST_TERMS)
    if found is None:
        return None
    result: Terms = {}
    for term in found:
        result[term.core] = result.get(term.core, 0.0) + term.coefficient
    return result


def _taken(terms: Terms, part: Part | None, c: float) -> bool:
    """Whether the terms contain c times a part, 1 for None, or each of its terms if it is a sum."""
    own: Terms | None = {None: 1.0} if part is None else _terms(part)
    return own is not None and all(terms.get(one) == c * factor for one, factor in own.items())


def _remove(terms: Terms, part: Part | None) -> None:
    """Remove a part, and each of its terms if it is a sum."""
    for one in (None,) if part is None else _terms(part) or ():
        terms[one] = 0.0


def _may_be_logarithmic(part: Part | None) -> bool:
    return part is not None and is_map(part.node, mul, *LOGARITHMIC)


@dataclass(frozen=True, slots=True)
class _Entropy:
    """A term `part` that is `factor` y log(y/m); m is None for 1."""

    part: Part
    factor: float
    y: Part
    m: Part | None


def _entropies(part: Part) -> Iterator[_Entropy]:
    """A term read as a multiple of y log(y/m)."""
    for factor, y, inner in _weighted_logarithms(part):
        if inner == y:
            yield _Entropy(part, factor, y, None)
        elif is_map(inner.node, div):
            above, below = inner.parts()
            if above == y:
                yield _Entropy(part, factor, y, below)
            elif below == y:
                yield _Entropy(part, -factor, y, above)


def _weighted_logarithms(part: Part) -> Iterator[tuple[float, Part, Part]]:
    """c, y and z of a term c y log(z)."""
    result: list[tuple[float, Part, Part]] = []
    if is_map(part.node, xlogx):
        result.append((1.0, part.parts()[0], part.parts()[0]))
    elif is_map(part.node, xlogy):
        result.append((1.0, part.parts()[0], part.parts()[1]))
    elif is_map(part.node, mul):
        one, other = part.parts()
        for y, logarithm in ((one, scaled(other)), (other, scaled(one))):
            core = logarithm.core
            if core is not None and is_map(core.node, log):
                result.append((logarithm.coefficient, y, core.parts()[0]))
    for c, y, inner in result:
        term = scaled(y)
        if term.core is not None:
            yield c * term.coefficient, term.core, inner


def _with_linear_terms(c: float, entropy: _Entropy, terms: Terms, shape: Shape) -> Expr | None:
    """c (y log(y/m) - y + m) from the terms, which it removes."""
    y, m = entropy.y, entropy.m
    for product, other in _subtracted(c, y, terms) if m is None else ():
        # y log(y) - y log(m), as two terms.
        if _taken(terms, y, -c) and _taken(terms, other, c):
            terms[product], m = 0.0, other
            break
    if not (_taken(terms, y, -c) and _taken(terms, m, c)):
        return None
    terms[entropy.part] = 0.0
    _remove(terms, y)
    _remove(terms, m)
    value = Const(1.0) if m is None else m.along(shape)
    return mul(c, _kullback_leibler(y.along(shape), value, sub(y.along(shape), value)))


def _subtracted(c: float, y: Part, terms: Terms) -> Iterator[tuple[Part, Part]]:
    """The terms -c y log(m), each with its m."""
    for part, own in terms.items():
        if part is not None:
            for factor, weight, inner in _weighted_logarithms(part):
                if weight == y and own * factor == -c:
                    yield part, inner


def _of_complements(terms: Terms, shape: Shape) -> list[Expr]:
    """c (y log(y/m) + z log(z/n)) with y + z = m + n = 1."""
    known = [
        entropy
        for part, c in terms.items()
        if part and c
        for entropy in _entropies(part)
        if entropy.m
    ]
    result: list[Expr] = []
    for one in known:
        for other in known:
            c = terms[one.part] * one.factor
            is_pair = other is not one and terms[other.part] * other.factor == c
            if not c or not is_pair or not other.m or not one.m:
                continue
            if _is_complement(other.y, one.y) and _is_complement(other.m, one.m):
                terms[one.part] = terms[other.part] = 0.0
                y, m = one.y.along(shape), one.m.along(shape)
                others = other.y.along(shape), other.m.along(shape)
                result.append(mul(c, _kullback_leibler(y, m, sub(y, m))))
                result.append(mul(c, _kullback_leibler(*others, sub(m, y))))
    return result


def _is_complement(z: Part, y: Part) -> bool:
    """Whether z is written as 1 - y."""
    if not is_map(z.node, sub):
        return False
    one, other = z.parts()
    return scaled(one) == scaled(Part(Const(1.0), ())) and other == y


def _of_ratios(terms: Terms, shape: Shape) -> list[Expr]:
    """c (r - 1 - log(r)), with r - 1 as (a - b)/b for r = a/b."""
    result: list[Expr] = []
    for part in list(terms):
        if part is None or not is_map(part.node, log) or not terms[part]:
            continue
        inner = part.parts()[0]
        for r, c in ((inner, -terms[part]), (_reciprocal(inner), terms[part])):
            if r is None:
                continue
            t = _less_one(r, shape)
            difference = _difference_over(r, shape, terms)
            if terms.get(r) == c and terms.get(None) == -c:
                terms[r] = terms[None] = terms[part] = 0.0
                result.append(mul(c, _less_logarithm(r.along(shape), t)))
                break
            if difference is not None and terms.get(difference) == c:
                terms[difference] = terms[part] = 0.0
                result.append(mul(c, _less_logarithm(r.along(shape), t)))
                break
    return result


def _reciprocal(r: Part) -> Part | None:
    """b/a for a/b."""
    if not is_map(r.node, div) or r.axes != tuple(range(len(r.axes))):
        return None
    a, b = r.parts()
    return whole(div(b.along(r.node.shape), a.along(r.node.shape)))


def _less_one(r: Part, shape: Shape) -> Expr:
    if not is_map(r.node, div):
        return sub(r.along(shape), 1.0)
    a, b = r.parts()
    return div(sub(a.along(shape), b.along(shape)), b.along(shape))


def _difference_over(r: Part, shape: Shape, terms: Terms) -> Part | None:
    """The term (a - b)/b, for r = a/b."""
    wanted = _less_one(r, shape)
    return next((term for term in terms if term is not None and term.node is wanted), None)


def _less_logarithm(r: Expr, t: Expr) -> Expr:
    """r - 1 - log(r), with t = r - 1."""
    is_near = le(abs(t), _NEAR)
    far = sub(sub(r, 1.0), log(where(is_near, 2.0, r)))
    return where(is_near, log_remainder(where(is_near, t, 0.0)), far)


def _kullback_leibler(y: Expr, m: Expr, difference: Expr) -> Expr:
    """y log(y/m) - y + m, with y - m in its most accurate form."""
    t = div(difference, m)
    is_near = le(abs(t), _NEAR)
    close = where(is_near, t, 0.0)
    near = mul(m, sub(mul(close, log1p(close)), log_remainder(close)))
    far = sub(xlogy(y, div(y, where(is_near, 1.0, m))), difference)
    return where(is_near, near, far)
