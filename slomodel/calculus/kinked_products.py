"""Products in which the kinks of |t| and relu(t) meet further factors that vanish with t.

|t|³, t|t| and relu(t)² y are smoother than their factors. A node is read as a product of powers
k(t): a t^d for t ≥ 0 and b |t|^d for t < 0, with numbers a and b. Such a power is C^(⌈d⌉ − 1) in t:
its derivatives up to that order are O(|t|) or smaller, so that they are continuous with the value 0
at 0; where a t^d is one polynomial on both sides it has all derivatives.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil

from slomodel.functions import (
    abs,
    div,
    ge,
    gt,
    hypot,
    le,
    lt,
    mul,
    neg,
    pow,
    relu,
    root,
    square,
    where,
)
from slomodel.ir.expr import Axes, Const, Einsum, Expr, Gather, Map
from slomodel.ir.function import ANALYTIC

_MOST_FACTORS = 8
"""A longer product is one quantity: products of thousands of factors would take quadratic time."""

_KINKED = (abs, relu)


@dataclass(frozen=True, slots=True)
class Power:
    """A power of degree `degree` of `base`; `kinked` where it may differ on its two sides."""

    base: Expr
    degree: float
    kinked: bool

    @property
    def order(self) -> int:
        """How often it is continuously differentiable in its base, at least."""
        return ceil(min(self.degree, ANALYTIC)) - 1 if self.kinked else ANALYTIC


@dataclass(frozen=True, slots=True)
class _Place:
    """The elements of a quantity in a node: its axis k runs along the node's axis `axes[k]`."""

    of: Hashable
    axes: Axes

    def along(self, axes: Sequence[int]) -> _Place:
        return _Place(self.of, tuple(axes[k] for k in self.axes))


Product = Mapping[_Place, Power]


class KinkedProducts:
    """The products of one graph, each read once; asked of operands before what stands on them."""

    def __init__(self, varying: Collection[Expr]) -> None:
        self._varying = varying
        self._read: dict[Expr, Product] = {}

    def powers(self, node: Expr) -> Sequence[Power]:
        """The powers that a node is the product of; none where they tell nothing of its kinks."""
        product = self._product(node)
        return tuple(product.values()) if _has_kinks(product) else ()

    def groups(self, node: Einsum) -> list[tuple[tuple[Expr, ...], Sequence[Power]]]:
        """The operands that vary, in groups along the same labels, with the powers of each group.

        Without powers where these tell nothing of its kinks.
        """
        groups: dict[tuple[int, ...], list[Expr]] = {}
        for operand, labels in zip(node.operands, node.inputs, strict=True):
            if operand in self._varying:
                groups.setdefault(labels, []).append(operand)
        found: list[tuple[tuple[Expr, ...], Sequence[Power]]] = []
        for operands in groups.values():
            product = _joined(self._product(operand) for operand in operands)
            known = product is not None and _has_kinks(product)
            powers = tuple(product.values()) if product is not None and known else ()
            found.append((tuple(operands), powers))
        return found

    def _product(self, node: Expr) -> Product:
        if node not in self._read:
            found = self._of(node) if node in self._varying else None
            if found is None or len(found) > _MOST_FACTORS:
                found = _itself(node)
            self._read[node] = found
        return self._read[node]

    def _of(self, node: Expr) -> Product | None:
        """The powers of a node whose operands have been read; None for a quantity of its own."""
        if isinstance(node, Map):
            return self._of_map(node)
        if isinstance(node, Einsum):
            return self._of_einsum(node)
        if isinstance(node, Gather):
            every = tuple(range(node.rank))
            inner = self._product(node.operands[0])
            return {_Place((place, node.index), every): one for place, one in inner.items()}
        return None

    def _of_map(self, node: Map) -> Product | None:
        moving = [k for k, operand in enumerate(node.operands) if operand in self._varying]
        parts = [self._along(node.operands[k], node.axes[k]) for k in moving]
        function = node.function
        if function is mul:
            return _joined(parts)
        if function is neg or (function is div and moving == [0]):
            return parts[0]
        if function is square:
            return _raised(parts[0], 2.0)
        if function is pow and moving == [0] and isinstance(node.operands[1], Const):
            return _raised(parts[0], node.operands[1].value)
        if function is abs or (function is relu and len(parts[0]) == 1):
            return {place: replace(one, kinked=True) for place, one in parts[0].items()}
        if function is relu:
            operand = node.operands[0]
            return {_own(operand).along(node.axes[0]): Power(operand, 1.0, True)}
        return None

    def _of_einsum(self, node: Einsum) -> Product | None:
        """Of a product without a sum; each label once in every operand and in the result."""
        if sorted(node.output) != list(range(len(node.dims))):
            return None
        if any(len(set(labels)) < len(labels) for labels in node.inputs):
            return None
        parts = [
            self._along(operand, tuple(node.output.index(label) for label in labels))
            for operand, labels in zip(node.operands, node.inputs, strict=True)
            if operand in self._varying
        ]
        return _joined(parts)

    def _along(self, operand: Expr, axes: Axes) -> Product:
        return {place.along(axes): one for place, one in self._product(operand).items()}


def _own(node: Expr) -> _Place:
    return _Place(node, tuple(range(node.rank)))


def _itself(node: Expr) -> Product:
    return {_own(node): Power(node, 1.0, False)}


def _has_kinks(product: Product) -> bool:
    return any(one.kinked for one in product.values())


def _joined(parts: Iterable[Product]) -> Product | None:
    result: dict[_Place, Power] = {}
    for part in parts:
        for place, one in part.items():
            if place in result:
                other = result[place]
                degree, kinked = one.degree + other.degree, one.kinked or other.kinked
                result[place] = Power(one.base, degree, kinked)
            else:
                result[place] = one
        if len(result) > _MOST_FACTORS:
            return None
    return result


def _raised(product: Product, exponent: float) -> Product | None:
    """The powers of a power, whose exponent is whole or makes no kink of its own."""
    whole = exponent >= 1.0 and exponent.is_integer()
    if not whole and not (exponent > 1.0 and all(one.kinked for one in product.values())):
        return None
    return {place: replace(one, degree=exponent * one.degree) for place, one in product.items()}


@dataclass(frozen=True, slots=True)
class Exposed:
    """The `nodes` whose kinks no product smooths, and the least `order` of those that one does."""

    nodes: frozenset[Expr]
    order: int


def exposed(objective: Expr, order: Sequence[Expr], varying: Collection[Expr]) -> Exposed:
    """Which kinks of an objective count; `order` has operands before what stands on them.

    Those below a condition do not: how the branches meet tells what happens where it changes.
    """
    products = KinkedProducts(varying)
    for node in order:
        products.powers(node)
    reached, smoothed = {objective}, set()
    least = ANALYTIC
    for node in reversed(order):
        if node not in reached:
            continue
        for operands, powers in _uses(node, products):
            own = min((one.order for one in powers), default=0)
            if own >= 1:
                smoothed.add(node)
                least = min(least, own)
                reached.update(one.base for one in powers)
            else:
                reached.update(operands)
    return Exposed(frozenset(reached - smoothed), least)


def _uses(
    node: Expr, products: KinkedProducts
) -> Sequence[tuple[tuple[Expr, ...], Sequence[Power]]]:
    """The operands by which a node may have kinks, in groups, with the powers that each makes."""
    if isinstance(node, Einsum):
        return products.groups(node)
    if isinstance(node, Map) and node.function is where:
        return [(tuple(_seen_from(node)), ())]
    return [(node.operands, products.powers(node))]


def _seen_from(choice: Map) -> Iterable[Expr]:
    """The branches of a choice; in place of one whose only kinks it excludes, what is below these.

    In where(norm2(x) > 1, (norm2(x) - 1)^2, 0) the norm is never 0 where it is taken.
    """
    for k, excluded in ((1, _positive(choice.operands[0])), (2, None)):
        branch = choice.operands[k]
        if excluded is None:
            yield branch
            continue
        stack, seen = [branch], {branch}
        while stack:
            node = stack.pop()
            if node is excluded:
                yield from node.operands
                continue
            if not isinstance(node, Map) or node.function.smoothness < ANALYTIC:
                yield node
                continue
            stack += [operand for operand in node.operands if operand not in seen]
            seen.update(node.operands)


def _positive(condition: Expr) -> Expr | None:
    """|t|, a norm or relu(t) that is above 0 wherever the condition holds."""
    if not isinstance(condition, Map) or condition.function not in (gt, ge, lt, le):
        return None
    larger, smaller = condition.operands
    if condition.function in (lt, le):
        larger, smaller = smaller, larger
    strict = condition.function in (gt, lt)
    if not isinstance(smaller, Const) or not (
        smaller.value > 0.0 or (strict and not smaller.value)
    ):
        return None
    is_kink = isinstance(larger, Map) and larger.function in (abs, relu, root, hypot)
    return larger if is_kink else None
