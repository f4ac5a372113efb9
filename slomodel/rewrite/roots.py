"""Stable forms of roots, absolute values and rectifiers."""

from __future__ import annotations

from collections.abc import Collection
from math import fabs

from slomodel.functions import (
    abs,
    add,
    div,
    ge,
    gt,
    hypot,
    le,
    lt,
    minimum,
    mul,
    neg,
    relu,
    root,
    softplus,
    square,
    where,
)
from slomodel.functions.translate import balanced
from slomodel.ir.expr import Const, Einsum, Expr, Map
from slomodel.rewrite.matching import (
    Part,
    Term,
    Varying,
    is_map,
    parts_of,
    same,
    scaled,
    summands,
    two_terms,
)

_MOST_SIDES = 8
_SMALLEST, _LARGEST = 1e-300, 1e300


class Roots:
    """Square roots in one graph; a sum that is one of the nodes `shared` is looked at once."""

    def __init__(self, shared: Collection[Expr]) -> None:
        self._shared = shared
        self._varies = Varying()
        self._quadratic: dict[Expr, bool] = {}

    def square_root(self, node: Map) -> Expr | None:
        """The root of a square, of a sum of squares that may all vanish, of a scaled one."""
        inside = node.operands[0]
        if is_map(inside, square):
            return abs(inside.operands[0])
        if not self._are_quadratic(inside):
            return None
        bases = [term.inner(square) for term in summands(inside, most=_MOST_SIDES)]
        if len(bases) > 1 and all(base is not None for base in bases):
            return balanced(hypot, [base.along(node.shape) for base in bases if base is not None])
        return root(inside)

    def _are_quadratic(self, total: Expr) -> bool:
        """Whether all terms are squares that vary, those of a shared sum first."""
        stack = [total]
        while stack:
            node = stack[-1]
            if node in self._quadratic:
                stack.pop()
                continue
            terms = summands(node, self._shared)
            sums = {one.node for one in terms if is_map(one.node, add) and one.node is not node}
            waiting = [one for one in sums if one not in self._quadratic]
            if waiting:
                stack += waiting
                continue
            self._quadratic[node] = all(
                self._quadratic[term.node] if term.node in sums else self._is_quadratic(term)
                for term in terms
            )
        return self._quadratic[total]

    def _is_quadratic(self, part: Part) -> bool:
        """A square or a sum of squares, times or over what does not vary."""
        if not self._varies(part.node):
            return False
        while True:
            node = part.node
            if is_map(node, square):
                return True
            if isinstance(node, Einsum):
                return self._is_sum_of_squares(node)
            if not is_map(node, mul, div):
                return False
            left, right = part.parts()
            if not self._varies(right.node):
                part = left
            elif is_map(node, mul) and not self._varies(left.node):
                part = right
            else:
                return False

    def _is_sum_of_squares(self, node: Einsum) -> bool:
        """A sum of squares, each times fixed scalars."""
        if len(set(node.output)) != len(node.output):
            return False
        pairs = zip(node.operands, node.inputs, strict=True)
        arrays = [(one, labels) for one, labels in pairs if one.rank or self._varies(one)]
        if len(arrays) == 1:
            return is_map(arrays[0][0], square)
        return len(arrays) == 2 and arrays[0] == arrays[1]


def squared(node: Map) -> Expr | None:
    """The square of a norm, of a length, of an absolute value."""
    inside = node.operands[0]
    if is_map(inside, root):
        return inside.operands[0]
    if is_map(inside, abs):
        return square(inside.operands[0])
    if isinstance(inside, Map) and inside.function is hypot:
        a, b = (part.along(node.shape) for part in parts_of(inside))
        return add(square(a), square(b))
    return None


def magnitude(node: Map) -> Expr | None:
    """The absolute value of a square."""
    inside = node.operands[0]
    return inside if is_map(inside, square) else None


def product(node: Map) -> Expr | None:
    """x x, and a rectifier written as x times a step."""
    first, second = node.operands
    if first is not second and not is_map(first, where) and not is_map(second, where):
        return None
    left, right = parts_of(node)
    if same([left, right]):
        return square(left.along(node.shape))
    for x, step in ((left, right), (right, left)):
        if _is_step(step, x):
            return relu(x.along(node.shape))
    return None


def _is_step(step: Part, x: Part) -> bool:
    """1 where x is positive, 0 where it is negative."""
    if not is_map(step.node, where):
        return False
    condition, one, other = step.parts()
    values = [part.node.value for part in (one, other) if isinstance(part.node, Const)]
    compared = _sign_of(condition)
    return compared is not None and compared[1] == x and values == _ordered(compared[0])


def _ordered(positive: bool) -> list[float]:
    return [1.0, 0.0] if positive else [0.0, 1.0]


def choice(node: Map) -> Expr | None:
    """A rectifier written as a choice by sign: where(x >= 0, x, 0)."""
    condition, *branches = parts_of(node)
    compared = _sign_of(condition)
    if compared is None:
        return None
    positive, x = compared
    taken, other = branches if positive else branches[::-1]
    is_zero = isinstance(other.node, Const) and other.node.value == 0.0
    return relu(x.along(node.shape)) if taken == x and is_zero else None


def _sign_of(condition: Part) -> tuple[bool, Part] | None:
    """Whether a comparison with 0 holds for positive numbers, and what it compares."""
    if not is_map(condition.node, gt, ge, lt, le):
        return None
    left, right = condition.parts()
    greater = is_map(condition.node, gt, ge)
    if isinstance(right.node, Const) and right.node.value == 0.0:
        return greater, left
    if isinstance(left.node, Const) and left.node.value == 0.0:
        return not greater, right
    return None


def rectifier(node: Map) -> Expr | None:
    """x + |x|, |x| - x, x - min(x, 0), relu(x) - x, relu(x) + softplus(-|x|), with factors."""
    first, second = two_terms(node)
    for one, other in ((first, second), (second, first)):
        found = _rectified(one, other, node)
        if found is not None:
            return found
    return None


def _rectified(one: Term, other: Term, node: Map) -> Expr | None:
    if one.core is None or other.core is None or one.coefficient == 0.0:
        return None
    alike = one.coefficient == other.coefficient
    if not alike and one.coefficient != -other.coefficient:
        return None
    c, x = other.coefficient, one.core
    bent = other.core
    if bent.inner(abs) == x:
        positive = x.along(node.shape)
        return mul(2.0 * c, relu(positive if alike else neg(positive)))
    if not alike and bent.inner(relu) == x:
        return mul(c, relu(neg(x.along(node.shape))))
    if is_map(bent.node, minimum) and not alike and _least(bent) == x:
        return mul(one.coefficient, relu(x.along(node.shape)))
    inner = x.inner(relu)
    if inner is not None and alike and _below_zero(bent) == inner:
        return mul(c, softplus(inner.along(node.shape)))
    return None


def _least(part: Part) -> Part | None:
    """`x` of min(x, 0)."""
    left, right = part.parts()
    for x, zero in ((left, right), (right, left)):
        if isinstance(zero.node, Const) and zero.node.value == 0.0:
            return x
    return None


def _below_zero(part: Part) -> Part | None:
    """`x` of softplus(-|x|)."""
    inside = part.inner(softplus)
    term = scaled(inside) if inside is not None else None
    if term is None or term.core is None or term.coefficient != -1.0:
        return None
    return term.core.inner(abs)


def scale(node: Map) -> Expr | None:
    """A power of two times a constant times x: the two constants are one, exactly."""
    if not any(isinstance(operand, Const) for operand in node.operands):
        return None
    for k, part in enumerate(parts_of(node)):
        rest = node.operands[1 - k]
        if not isinstance(part.node, Const) or not is_map(rest, mul) or rest.shape != node.shape:
            continue
        assert isinstance(rest, Map)
        inner = [operand for operand in rest.operands if isinstance(operand, Const)]
        others = [part for part in parts_of(rest) if not isinstance(part.node, Const)]
        both = [part.node.value, *(constant.value for constant in inner)]
        if len(others) == 1 and any(fabs(value) in (0.5, 1.0, 2.0) for value in both):
            constant = both[0] * both[1]
            if _SMALLEST < fabs(constant) < _LARGEST:
                return mul(constant, others[0].along(node.shape))
    return None
