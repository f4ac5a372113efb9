"""Patterns of elementwise graphs, and their replacements.

A pattern is an expression over placeholders: an operand (`operand("x")`) stands for any node with
any axes, the same node at each occurrence; a number (`number("c")`) stands for a constant. A
pattern matches an expression in each of the ways in which it may be written:

- `a + b` and `a - b` match sums and differences, with their terms in any order;
- `c*a`, with a number c, matches a with its constant factors, divisors and signs, as far as their
  product is exact; c is 1 for a alone;
- `a*b` matches products in any order, and `rest*a` also matches a as one of up to three factors, or
  alone.

The replacement is an expression over the same placeholders. The factors that `rest` stands for stay
in their places, so that the replacement computes no product of them that could newly overflow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from weakref import WeakKeyDictionary

from slomodel.functions import add, div, maximum, minimum, mul, neg, sub
from slomodel.ir import build
from slomodel.ir.dims import Shape
from slomodel.ir.expr import Const, Expr, Input, Map, is_map
from slomodel.ir.function import ScalarFunction
from slomodel.ir.walk import postorder
from slomodel.rewrite.elementwise.matching import Part, factors, product_with, scaled


def operand(name: str) -> Input:
    """A placeholder for any node."""
    return Input(name, "variable", ())


def number(name: str) -> Input:
    """A placeholder for a constant."""
    return Input(name, "data", ())


rest = Input("rest", "direction", ())
"""The placeholder for the other factors of a product, if any."""


@dataclass(frozen=True, slots=True)
class Others:
    """The factors of a product; the one at `place` is left out."""

    factors: tuple[Part, ...]
    place: int

    def times(self, instead: Expr, shape: Shape) -> Expr:
        """The product of the factors with the node `instead` at `place`."""
        return product_with(self.factors, self.place, instead, shape)


@dataclass(frozen=True, slots=True)
class Match:
    """The nodes, numbers and factors that placeholders stand for in one match."""

    parts: Mapping[Input, Part] = field(default_factory=dict)
    numbers: Mapping[Input, float] = field(default_factory=dict)
    others: Others | None = None

    def __getitem__(self, placeholder: Input) -> float:
        """The value of a number."""
        return self.numbers[placeholder]


Guard = Callable[[Match], bool]


def _always(_match: Match) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class StableForm:
    """A rule: `pattern` becomes `replacement` where the guard holds for the match."""

    pattern: Expr
    replacement: Expr
    guard: Guard = _always

    @property
    def function(self) -> ScalarFunction:
        """The function at the root of the pattern; `add` stands for sums and differences."""
        assert isinstance(self.pattern, Map)
        return add if self.pattern.function is sub else self.pattern.function

    def applied(self, node: Map) -> Expr | None:
        """The replacement of a node; None where it does not match."""
        if functions_of(self.pattern) & ~functions_below(node):
            return None
        for match in _matched(self.pattern, Part(node, tuple(range(node.rank))), Match()):
            if self.guard(match):
                return _replaced(self.replacement, match, node.shape)
        return None


_bits: dict[ScalarFunction, int] = {}
"""A bit for each function, so that sets of them are ints."""
_below: WeakKeyDictionary[Expr, int] = WeakKeyDictionary()


@cache
def functions_of(pattern: Expr) -> int:
    """The functions, as bits, that are below every node that matches; sums are any of two."""
    core = _core(pattern)
    if not isinstance(core, Map):
        return 0
    has_rest = core.function is mul and core.operands[0] is rest
    own = 0 if has_rest or core.function in (add, sub) else _bit(core.function)
    for inner in core.operands:
        own |= functions_of(inner)
    return own


def _bit(function: ScalarFunction) -> int:
    return _bits.setdefault(function, 1 << len(_bits))


def functions_below(node: Expr) -> int:
    """The functions, as bits, of which a node is composed; each node is visited once.

    A pattern with a function that is missing here is rejected at once, as most are.
    """
    known = _below.get(node)
    if known is not None:
        return known
    stack = [node]
    while stack:
        one = stack[-1]
        own, operands = (_bit(one.function), one.operands) if isinstance(one, Map) else (0, ())
        inner = [_below.get(operand) for operand in operands]
        if None in inner:
            stack += [one for one, known in zip(operands, inner, strict=True) if known is None]
            continue
        for known in inner:
            own |= known or 0
        _below[one] = own
        stack.pop()
    return _below[node]


def heads(pattern: Expr) -> frozenset[ScalarFunction]:
    """Functions that the operands of a matching node must have, up to constant factors."""
    assert isinstance(pattern, Map)
    cores = (_core(one) for one in pattern.operands)
    result = {
        core.function for core in cores if isinstance(core, Map) and rest not in core.operands
    }
    return frozenset(result - {add, sub})


def heads_of(node: Map) -> frozenset[ScalarFunction]:
    """The functions of a node's operands, and those below their constant factors and signs."""
    result: set[ScalarFunction] = set()
    for operand in node.operands:
        below: Expr | None = operand
        while isinstance(below, Map):
            result.add(below.function)
            below = _without_factor(below)
    return frozenset(result)


def _without_factor(node: Map) -> Expr | None:
    """The node without its sign or a constant factor or divisor; None if it has none of them."""
    if node.function is neg:
        return node.operands[0]
    if node.function is mul or node.function is div:
        first, second = node.operands
        if isinstance(second, Const):
            return first
        if isinstance(first, Const) and node.function is mul:
            return second
    return None


def has_equal_operands(pattern: Expr) -> bool:
    """Whether all operands of a pattern are one placeholder, as of `x*x`."""
    first, *others = pattern.operands
    return isinstance(first, Input) and bool(others) and all(one is first for one in others)


def _core(pattern: Expr) -> Expr:
    """`a` of a pattern `c*a`."""
    split = _split_number(pattern)
    return pattern if split is None else split[1]


def _split_number(pattern: Expr) -> tuple[Input, Expr] | None:
    """c and a of a pattern `c*a`."""
    if isinstance(pattern, Map) and pattern.function is mul:
        first, second = pattern.operands
        if isinstance(first, Input) and first.role == "data":
            return first, second
    return None


def _matched(pattern: Expr, part: Part, match: Match, sign: float = 1.0) -> Iterator[Match]:
    """The ways in which a part, times a sign, matches the pattern."""
    split = _split_number(pattern)
    if split is not None or isinstance(pattern, Const) or _is_number(pattern):
        term = scaled(part, sign)
        if isinstance(pattern, Const):
            if term.core is None and term.coefficient == pattern.value:
                yield match
        elif split is None:
            assert isinstance(pattern, Input)
            if term.core is None:
                yield from _with_number(match, pattern, term.coefficient)
        elif term.core is not None:
            for bound in _with_number(match, split[0], term.coefficient):
                yield from _matched(split[1], term.core, bound)
    elif sign != 1.0:
        return
    elif isinstance(pattern, Input):
        known = match.parts.get(pattern)
        if known is None:
            yield Match({**match.parts, pattern: part}, match.numbers, match.others)
        elif known == part:
            yield match
    else:
        assert isinstance(pattern, Map)
        yield from _matched_map(pattern, part, match)


def _is_number(pattern: Expr) -> bool:
    return isinstance(pattern, Input) and pattern.role == "data"


def _with_number(match: Match, placeholder: Input, value: float) -> Iterator[Match]:
    if not math.isfinite(value):
        return
    known = match.numbers.get(placeholder)
    if known is None:
        yield Match(match.parts, {**match.numbers, placeholder: value}, match.others)
    elif known == value:
        yield match


def _matched_map(pattern: Map, part: Part, match: Match) -> Iterator[Match]:
    function = pattern.function
    if function is mul and pattern.operands[0] is rest:
        own = factors(part)
        for k, one in enumerate(own):
            others = Match(match.parts, match.numbers, Others(tuple(own), k))
            yield from _matched(pattern.operands[1], one, others)
        return
    is_sum = function in (add, sub)
    if not (is_map(part.node, add, sub) if is_sum else is_map(part.node, function)):
        return
    assert isinstance(part.node, Map)
    parts = part.parts()
    signs = [1.0] * len(parts)
    if is_sum and (function is sub) != (part.node.function is sub):
        signs[1] = -1.0
    yield from _matched_operands(pattern, parts, signs, match)
    if is_sum:
        # Where only the second term is subtracted, that sign goes with it.
        signs = [-1.0 if function is sub else 1.0, -1.0 if part.node.function is sub else 1.0]
    if is_sum or function in (mul, minimum, maximum):
        yield from _matched_operands(pattern, parts[::-1], signs[::-1], match)


def _matched_operands(
    pattern: Map, parts: list[Part], signs: list[float], match: Match
) -> Iterator[Match]:
    bound = [match]
    for own, part, sign in zip(pattern.operands, parts, signs, strict=True):
        bound = [after for before in bound for after in _matched(own, part, before, sign)]
    yield from bound


def _replaced(replacement: Expr, match: Match, shape: Shape) -> Expr:
    """The replacement with its placeholders substituted, along all axes of the whole."""
    done: dict[Expr, Expr] = {p: part.along(shape) for p, part in match.parts.items()}
    done |= {p: Const(value) for p, value in match.numbers.items()}
    for node in postorder(replacement):
        if node in done or node is rest:
            continue
        if isinstance(node, Map) and rest in node.operands:
            assert match.others is not None
            done[node] = match.others.times(done[node.operands[1]], shape)
        else:
            own = [done[one] for one in node.operands]
            done[node] = build.apply(node.function, *own) if isinstance(node, Map) else node
    return done[replacement]
