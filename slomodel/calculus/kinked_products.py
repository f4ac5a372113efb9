"""Products that are smoother than their kinked factors, such as |t|³, t|t| and relu(t)² y.

A node is read as a product of powers k(t): a t^d for t ≥ 0 and b |t|^d for t < 0, with constants a
and b. Such a power is C^(⌈d⌉ − 1) in t, since its derivatives up to that order tend to 0 with t;
where a t^d is the same polynomial on both sides it is analytic. In the same way s^d with s = ‖u‖²
is C^(⌈2d⌉ − 1) in u.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil

from slomodel.calculus.signs import NeverZero
from slomodel.functions import (
    abs,
    div,
    ge,
    gt,
    hypot,
    le,
    lt,
    maximum,
    minimum,
    mul,
    neg,
    pow,
    relu,
    root,
    sign,
    square,
    where,
)
from slomodel.ir.expr import Axes, Const, Einsum, Expr, Gather, Map
from slomodel.ir.function import ANALYTIC

_MOST_FACTORS = 8
"""Longer products are not factored: a product of thousands of factors would take quadratic time."""


@dataclass(frozen=True, slots=True)
class KinkedPower:
    """|base|^degree with a constant factor on each side of 0; `kinked` if the two may differ.

    With `is_squared` the base is a sum of squares ‖u‖², so that the power is ‖u‖^(2 degree). A base
    that `never_vanishes` stays on one side.
    """

    base: Expr
    degree: float
    kinked: bool
    is_squared: bool = False
    never_vanishes: bool = False

    @property
    def order(self) -> int:
        """A k for which the power is C^k in its base, or in the terms that are squared."""
        degree = 2.0 * self.degree if self.is_squared else self.degree
        has_kink = self.kinked and not self.never_vanishes
        return ceil(min(degree, ANALYTIC)) - 1 if has_kink else ANALYTIC


@dataclass(frozen=True, slots=True)
class _Place:
    """Layout of the elements of a factor in a product: its axis k is axis `axes[k]` there."""

    of: Hashable
    axes: Axes

    def along(self, axes: Sequence[int]) -> _Place:
        return _Place(self.of, tuple(axes[k] for k in self.axes))


Product = Mapping[_Place, KinkedPower]


class KinkedProducts:
    """Cached factorisations of the nodes of one graph; operands must be read before their users."""

    def __init__(self, varying: Collection[Expr]) -> None:
        self._varying = varying
        self._never_zero = NeverZero(varying)
        self._cached: dict[Expr, Product] = {}

    def powers(self, node: Expr) -> Sequence[KinkedPower]:
        """The powers whose product the node is; empty if none of them is kinked."""
        product = self._product(node)
        return tuple(product.values()) if _has_kinks(product) else ()

    def groups(self, node: Einsum) -> list[tuple[tuple[Expr, ...], Sequence[KinkedPower]]]:
        """The operands that depend on x, grouped by their labels, with the powers of each group.

        The powers are empty if none of them is kinked.
        """
        groups: dict[tuple[int, ...], list[Expr]] = {}
        for operand, labels in zip(node.operands, node.inputs, strict=True):
            if operand in self._varying:
                groups.setdefault(labels, []).append(operand)
        result: list[tuple[tuple[Expr, ...], Sequence[KinkedPower]]] = []
        for operands in groups.values():
            product = _multiplied(self._product(operand) for operand in operands)
            known = product is not None and _has_kinks(product)
            powers = tuple(product.values()) if product is not None and known else ()
            result.append((tuple(operands), powers))
        return result

    def _product(self, node: Expr) -> Product:
        if node not in self._cached:
            product = self._of(node) if node in self._varying else None
            if product is None or len(product) > _MOST_FACTORS:
                product = _itself(node)
            self._cached[node] = product
        return self._cached[node]

    def _of(self, node: Expr) -> Product | None:
        """The powers of a node whose operands have been read; None if it is not a product."""
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
        varying = [k for k, operand in enumerate(node.operands) if operand in self._varying]
        parts = [self._along(node.operands[k], node.axes[k]) for k in varying]
        function = node.function
        if function is mul:
            return _multiplied(parts)
        if function is neg or (function is div and varying == [0]):
            return parts[0]
        if function is square:
            return _raised(parts[0], 2.0)
        if function is pow and varying == [0] and isinstance(node.operands[1], Const):
            return _raised(parts[0], node.operands[1].value)
        if function is abs or (function is relu and len(parts[0]) == 1):
            return self._kinked(parts[0])
        if function is root:
            operand = node.operands[0]
            return {_own(operand).along(node.axes[0]): KinkedPower(operand, 0.5, True, True)}
        if function is relu or (function in (maximum, minimum) and _has_zero(node)):
            operand = node.operands[varying[0]]
            return self._kinked({_own(operand).along(node.axes[varying[0]]): _whole(operand)})
        if function is sign:
            operand = node.operands[0]
            steps = replace(_whole(operand), degree=0.0)
            return self._kinked({_own(operand).along(node.axes[0]): steps})
        if function in (maximum, minimum) and len(varying) == 2 and _are_opposite(node):
            return self._kinked(parts[0])
        return None

    def _kinked(self, product: Product) -> Product:
        """The powers of the absolute value of a product, or of its part above 0."""
        return {
            place: replace(one, kinked=True, never_vanishes=one.base in self._never_zero)
            for place, one in product.items()
        }

    def _of_einsum(self, node: Einsum) -> Product | None:
        """The powers of an einsum without a sum, each label at most once per operand and output."""
        if sorted(node.output) != list(range(len(node.dims))):
            return None
        if any(len(set(labels)) < len(labels) for labels in node.inputs):
            return None
        parts = [
            self._along(operand, tuple(node.output.index(label) for label in labels))
            for operand, labels in zip(node.operands, node.inputs, strict=True)
            if operand in self._varying
        ]
        return _multiplied(parts)

    def _along(self, operand: Expr, axes: Axes) -> Product:
        return {place.along(axes): one for place, one in self._product(operand).items()}


def _has_zero(node: Map) -> bool:
    return Const(0.0) in node.operands


def _are_opposite(node: Map) -> bool:
    """Whether the operands are t and -t."""
    return node.axes[0] == node.axes[1] and any(
        isinstance(one, Map) and one.function is neg and one.operands[0] is other
        for one, other in (node.operands, node.operands[::-1])
    )


def _own(node: Expr) -> _Place:
    return _Place(node, tuple(range(node.rank)))


def _whole(node: Expr) -> KinkedPower:
    return KinkedPower(node, 1.0, False)


def _itself(node: Expr) -> Product:
    return {_own(node): _whole(node)}


def _has_kinks(product: Product) -> bool:
    return any(one.kinked for one in product.values())


def _multiplied(parts: Iterable[Product]) -> Product | None:
    result: dict[_Place, KinkedPower] = {}
    for part in parts:
        for place, one in part.items():
            if place in result:
                other = result[place]
                degree, kinked = one.degree + other.degree, one.kinked or other.kinked
                squared = one.is_squared or other.is_squared
                never = one.never_vanishes or other.never_vanishes
                result[place] = KinkedPower(one.base, degree, kinked, squared, never)
            else:
                result[place] = one
        if len(result) > _MOST_FACTORS:
            return None
    return result


def _raised(product: Product, exponent: float) -> Product | None:
    """The powers of product^exponent; None if the exponent itself may add a kink."""
    whole = exponent >= 1.0 and exponent.is_integer()
    if not whole and not (exponent > 1.0 and all(one.kinked for one in product.values())):
        return None
    return {place: replace(one, degree=exponent * one.degree) for place, one in product.items()}


@dataclass(frozen=True, slots=True)
class RemainingKinks:
    """The `nodes` whose kinks no product smooths, and the least `order` of the smoothed products.

    A smoothed product is C^order in its kinked factors.
    """

    nodes: frozenset[Expr]
    order: int


def remaining_kinks(
    objective: Expr, order: Sequence[Expr], varying: Collection[Expr]
) -> RemainingKinks:
    """Nodes whose kinks may be kinks of the objective; `order` is a postorder of its graph.

    Kinks below the condition of a `where` do not count: `continuity_order` covers its boundary.
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
            own = min((power.order for power in powers), default=0)
            if own >= 1:
                smoothed.add(node)
                least = min(least, own)
                reached.update(one.base for one in powers)
            else:
                reached.update(operands)
    return RemainingKinks(frozenset(reached - smoothed), least)


def _uses(
    node: Expr, products: KinkedProducts
) -> Sequence[tuple[tuple[Expr, ...], Sequence[KinkedPower]]]:
    """The operands whose kinks a node may inherit, in groups, with the powers of each group."""
    if isinstance(node, Einsum):
        return products.groups(node)
    if isinstance(node, Map) and node.function is where:
        return [(tuple(_branches(node)), ())]
    return [(node.operands, products.powers(node))]


def _branches(choice: Map) -> Iterable[Expr]:
    """The branches of a `where`; a kink that its condition excludes is replaced by its operands.

    In where(norm2(x) > 1, (norm2(x) - 1)^2, 0) the norm is never 0 in the branch that reads it.
    """
    for k, excluded in ((1, _known_positive(choice.operands[0])), (2, None)):
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


def _known_positive(condition: Expr) -> Expr | None:
    """The |t|, norm or relu(t) that is positive wherever the condition holds, or None."""
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
