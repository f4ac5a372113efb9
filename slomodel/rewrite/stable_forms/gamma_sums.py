"""Sums of lgamma with shifted arguments, as in log densities of counts, without cancellation.

lgamma(x + k) - lgamma(x) is `log_rising_factorial(x, k)`, and
lgamma(a) + lgamma(b) - lgamma(a + b) is `lbeta(a, b)`; both keep the digits that are lost in the
difference of large terms. The law: the same sum in exact arithmetic, of functions with full
accuracy. A sum is read as terms with lgamma, log_rising_factorial and lbeta, of which the last two
are split into their lgammas. These are grouped again in two ways, of which the better is taken: in
pairs whose arguments have a term in common; and before that three at a time as lbeta, where the sum
of two arguments is the third or exceeds it by 1. A sum that was grouped as well before is left as
it was. Sums along the same axes are taken as one,
as in sum(lgamma(a + y)) - sum(lgamma(a)) and sum(lgamma(a + y)) - n*lgamma(a). Differences of
digamma are taken likewise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from slomodel.functions import (
    add,
    digamma,
    digamma_difference,
    lbeta,
    lgamma,
    log,
    log_rising_factorial,
    mul,
    neg,
    sub,
)
from slomodel.ir import build
from slomodel.ir.dims import Dim, Shape
from slomodel.ir.expr import Const, Einsum, Expr, Map, is_map
from slomodel.ir.function import ScalarFunction
from slomodel.rewrite.elementwise.matching import Part, scaled, whole

_MOST_TERMS = 8
_MOST_LINEAR = 12
_PENALTIES: dict[ScalarFunction, int] = {
    lgamma: 2,
    lbeta: 2,
    log_rising_factorial: 1,
    digamma: 2,
    digamma_difference: 1,
}
"""A grouping replaces another if the sum of its penalties is lower."""
_DIFFERENCES = {lgamma: log_rising_factorial, digamma: digamma_difference}

_Sum = tuple[tuple[int, ...], tuple[int, ...], tuple[Dim, ...]]
"""The labels of a contraction's operand, those of its result, and the dims of all labels."""


@dataclass(slots=True)
class _GammaGroup:
    """Terms of one shape; `total` holds the labels along which they are summed, None for no sum."""

    shape: Shape
    total: _Sum | None
    terms: list[tuple[float, Part]] = field(default_factory=list)

    def summed(self, node: Expr) -> Expr:
        """The sum of a term along the axes of the group; a scalar is multiplied by their sizes."""
        if self.total is None:
            return node
        labels, output, dims = self.total
        if node.rank:
            return build.einsum([node], [labels], output, dims)
        for label in labels:
            if label not in output:
                node = mul(build.size_of(dims[label]), node)
        return node


@dataclass(frozen=True, slots=True)
class _GammaTerm:
    """coefficient * function(argument); the argument as a sum, its constant under None."""

    coefficient: float
    function: ScalarFunction
    argument: Part
    linear: dict[Part | None, float]


_GammaGrouping = Callable[[list[_GammaTerm], Shape], tuple[Expr, int, list[_GammaTerm]] | None]


class GammaSums:
    """Sums of lgammas in one graph."""

    def __init__(self) -> None:
        self._holds_terms: dict[Expr, bool] = {}

    def of_sum(self, node: Map) -> Expr | None:
        """The sum with its lgammas grouped; None where that is no better than it is."""
        if not all(self._holds(operand) for operand in node.operands):
            return None
        groups: dict[_Sum | None, _GammaGroup] = {None: _GammaGroup(node.shape, None)}
        rest: list[Expr] = []
        if not self._split(node, rest, groups):
            return None
        changed = False
        for group in groups.values():
            better = _grouped(group)
            changed |= better is not None
            if better is None:
                better = [_times(c, part.along(group.shape)) for c, part in group.terms]
            rest += [group.summed(one) for one in better]
        return _sum(rest) if changed and rest else None

    def _holds(self, node: Expr) -> bool:
        """Whether a term of a node is one of the functions that are grouped."""
        stack = [node]
        while stack:
            one = stack[-1]
            below = _below(one)
            waiting = [other for other in below if other not in self._holds_terms]
            if waiting:
                stack.append(waiting[-1])
                continue
            stack.pop()
            own = isinstance(one, Map) and one.function in _PENALTIES
            self._holds_terms[one] = own or any(self._holds_terms[other] for other in below)
        return self._holds_terms[node]

    def _split(self, node: Map, rest: list[Expr], groups: dict[_Sum | None, _GammaGroup]) -> bool:
        """Split a sum into the terms of groups and the rest; False if there are too many."""
        stack: list[tuple[Part, float, _GammaGroup]] = [(whole(node), 1.0, groups[None])]
        count = 0
        while stack:
            part, factor, group = stack.pop()
            term = scaled(part, factor)
            core = term.core
            if core is None or not self._holds(core.node):
                rest.append(group.summed(_times(factor, part.along(group.shape))))
            elif is_map(core.node, add, sub):
                left, right = core.parts()
                minus = -1.0 if is_map(core.node, sub) else 1.0
                stack += [
                    (right, minus * term.coefficient, group),
                    (left, term.coefficient, group),
                ]
                continue
            elif isinstance(core.node, Map) and core.node.function in _PENALTIES:
                group.terms.append((term.coefficient, core))
            elif group.total is None and not node.rank and isinstance(core.node, Einsum):
                (labels,), inner = core.node.inputs, core.node.operands[0]
                total = labels, core.node.output, core.node.dims
                own = groups.setdefault(total, _GammaGroup(inner.shape, total))
                stack.append((whole(inner), term.coefficient, own))
                continue
            elif group.total is None and _size_factor(core.node) is not None:
                result = _size_factor(core.node)
                assert result is not None
                dim, inner = result
                total = (0,), (), (dim,)
                own = groups.setdefault(total, _GammaGroup((dim,), total))
                stack.append((Part(inner, ()), term.coefficient, own))
                continue
            else:
                rest.append(group.summed(_times(factor, part.along(group.shape))))
            count += 1
            if count > _MOST_TERMS:
                return False
        return True


def _size_factor(node: Expr) -> tuple[Dim, Expr] | None:
    """The dim n and the scalar x of a product n*x."""
    if node.rank or not is_map(node, mul):
        return None
    for one, other in (node.operands, node.operands[::-1]):
        if isinstance(one, Einsum) and not one.operands and len(one.dims) == 1:
            return one.dims[0], other
    return None


def _below(node: Expr) -> tuple[Expr, ...]:
    """The operands of which a node is a sum, with constant factors."""
    if isinstance(node, Einsum):
        return node.operands if len(node.operands) == 1 else ()
    factor = _size_factor(node)
    if factor is not None:
        return factor[1:]
    if is_map(node, add, sub, neg):
        return node.operands
    if is_map(node, mul) and any(isinstance(operand, Const) for operand in node.operands):
        return node.operands
    return ()


def _times(c: float, node: Expr) -> Expr:
    return node if c == 1.0 else neg(node) if c == -1.0 else mul(c, node)


def _sum(terms: Sequence[Expr]) -> Expr:
    total = terms[0]
    for term in terms[1:]:
        total = sub(total, term.operands[0]) if is_map(term, neg) else add(total, term)
    return total


def _grouped(group: _GammaGroup) -> list[Expr] | None:
    """The terms regrouped; None if that does not improve them."""
    if len(group.terms) < 2:
        return None
    terms: list[_GammaTerm] = []
    before = 0
    for c, part in group.terms:
        assert isinstance(part.node, Map)
        before += _PENALTIES[part.node.function]
        for sign, function, argument in _as_plain(part, group.shape):
            terms.append(_GammaTerm(sign * c, function, argument, _linear(argument)))
    terms = _without_opposites(terms)
    ways = [_by(terms, ways, group.shape) for ways in ((_beta, _difference), (_difference,))]
    after, result = min(ways, key=lambda way: way[0])
    return result if after < before else None


def _by(
    terms: list[_GammaTerm], groupings: Sequence[_GammaGrouping], shape: Shape
) -> tuple[int, list[Expr]]:
    """The terms after applying each of the groupings as long as it applies, and the penalty."""
    result: list[Expr] = []
    total = 0
    for grouping in groupings:
        while (made := grouping(terms, shape)) is not None:
            node, penalty, terms = made
            result.append(node)
            total += penalty
    for term in terms:
        value = Part(term.function(term.argument.node), term.argument.axes)
        result.append(_times(term.coefficient, value.along(shape)))
        total += _PENALTIES[term.function]
    return total, result


def _as_plain(part: Part, shape: Shape) -> list[tuple[float, ScalarFunction, Part]]:
    """A term as signed lgammas or digammas of parts of the whole."""
    node = part.node
    assert isinstance(node, Map)
    own = part.parts()
    if node.function is lbeta:
        return [(1.0, lgamma, own[0]), (1.0, lgamma, own[1]), (-1.0, lgamma, _joint(own, shape))]
    for function, difference in _DIFFERENCES.items():
        if node.function is difference:
            return [(1.0, function, _joint(own, shape)), (-1.0, function, own[0])]
    return [(1.0, node.function, own[0])]


def _joint(parts: Sequence[Part], shape: Shape) -> Part:
    """The sum of two parts as a part of the whole."""
    total = add(*(part.along(shape) for part in parts))
    return Part(total, tuple(range(total.rank)))


def _linear(argument: Part) -> dict[Part | None, float]:
    """The terms of an argument and their coefficients."""
    result: dict[Part | None, float] = {}
    stack = [(argument, 1.0)]
    count = 0
    while stack:
        part, factor = stack.pop()
        term = scaled(part, factor)
        core = term.core
        count += 1
        if core is not None and is_map(core.node, add, sub) and count <= _MOST_LINEAR:
            left, right = core.parts()
            minus = -1.0 if is_map(core.node, sub) else 1.0
            stack += [(right, minus * term.coefficient), (left, term.coefficient)]
        else:
            result[core] = result.get(core, 0.0) + term.coefficient
    return result


def _less(
    one: dict[Part | None, float], *others: dict[Part | None, float]
) -> dict[Part | None, float]:
    """The coefficients, other than 0, of a sum less other sums."""
    result = dict(one)
    for other in others:
        for core, c in other.items():
            result[core] = result.get(core, 0.0) - c
    return {core: c for core, c in result.items() if c != 0.0}


def _without_opposites(terms: Sequence[_GammaTerm]) -> list[_GammaTerm]:
    """The terms without pairs that cancel exactly."""
    result: list[_GammaTerm] = []
    for term in terms:
        for other in result:
            opposite = other.coefficient == -term.coefficient and other.function is term.function
            if opposite and not _less(term.linear, other.linear):
                result.remove(other)
                break
        else:
            result.append(term)
    return result


def _beta(terms: list[_GammaTerm], shape: Shape) -> tuple[Expr, int, list[_GammaTerm]] | None:
    """lgamma(b) + lgamma(c) - lgamma(b + c - j), j = 0 or 1, as lbeta(b, c) and a logarithm."""
    for a in terms:
        others = [
            term
            for term in terms
            if term.function is a.function is lgamma and term.coefficient == -a.coefficient
        ]
        for b, c in combinations(others, 2):
            # a - b - c is 0 or -1.
            gap = _less(a.linear, b.linear, c.linear)
            if set(gap) - {None} or gap.get(None, 0.0) not in (0.0, -1.0):
                continue
            node = lbeta(b.argument.along(shape), c.argument.along(shape))
            if gap:
                # lgamma(a + 1) is lgamma(a) + log(a).
                node = add(node, log(a.argument.along(shape)))
            rest = [one for one in terms if one is not a and one is not b and one is not c]
            return _times(b.coefficient, node), _PENALTIES[lbeta], rest
    return None


def _difference(terms: list[_GammaTerm], shape: Shape) -> tuple[Expr, int, list[_GammaTerm]] | None:
    """lgamma(x + k) - lgamma(x), of two terms whose arguments differ in the fewest terms."""
    best: tuple[tuple[int, int], _GammaTerm, _GammaTerm, dict[Part | None, float]] | None = None
    for one, other in combinations(terms, 2):
        if one.function is not other.function or one.coefficient != -other.coefficient:
            continue
        upper, lower = sorted((one, other), key=lambda t: -len(t.linear))
        gap = _less(upper.linear, lower.linear)
        varying = [core for core in gap if core is not None]
        shared = set(lower.linear) - {None, *varying}
        rank = (len(varying), len(gap))
        if shared and gap and (best is None or rank < best[0]):
            best = rank, upper, lower, gap
    if best is None:
        return None
    _, upper, lower, gap = best
    step = _sum(
        [Const(c) if core is None else _times(c, core.along(shape)) for core, c in gap.items()]
    )
    function = _DIFFERENCES[upper.function]
    node = _times(upper.coefficient, function(lower.argument.along(shape), step))
    return node, _PENALTIES[function], [term for term in terms if term not in (upper, lower)]
