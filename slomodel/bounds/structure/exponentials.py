"""Products of exponentials rewritten as the exponential of one sum.

exp(u) · exp(v) / exp(w) is exp(u + v - w), and a root or power of what is positive by its form is
the exponential of a multiple of its logarithm, where log(a + b) = log a + softplus(log b - log a).
Bounds on the factors one by one multiply their largest values, though one of them may be small
wherever another is large; in the sum such terms cancel, by algebra where they are equal and in its
derivatives where they are not. Coefficients are exact rational numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf, isfinite

import slomodel.functions as table
from slomodel.bounds.effort import MOST_NODES
from slomodel.bounds.part import ObjectivePart, once_per_part
from slomodel.ir import build
from slomodel.ir.dims import Shape
from slomodel.ir.expr import Axes, Const, Einsum, Expr, Map, is_map, remake
from slomodel.ir.function import ScalarFunction

_WORTH = 2
"""Exponentials, inverses and powers that are joined for less stay as they are written."""
_ROOTS = (table.sqrt, table.root)
_ONE = Const(1.0)


@dataclass(frozen=True, slots=True)
class _Placed:
    """A node whose axis k is axis `axes[k]` of a product."""

    node: Expr
    axes: Axes


_Sum = Mapping[_Placed, Fraction]
"""A sum of nodes with their coefficients."""


@dataclass(frozen=True, slots=True)
class _Factored:
    """above · exp(exponent) / below, with the number of operations that `exponent` joins."""

    exponent: _Sum
    above: _Placed | None
    below: _Placed | None
    joined: int

    def along(self, axes: Axes) -> _Factored:
        """The same product as an operand with these axes."""

        def placed(one: _Placed) -> _Placed:
            return _Placed(one.node, tuple(axes[axis] for axis in one.axes))

        return _Factored(
            {placed(one): c for one, c in self.exponent.items()},
            placed(self.above) if self.above else None,
            placed(self.below) if self.below else None,
            self.joined,
        )


@once_per_part
def with_joined_exponentials(part: ObjectivePart) -> ObjectivePart:
    """The part with products of exponentials, and powers of them, as exponentials of sums."""
    order = part.order
    if len(order) > MOST_NODES or not any(is_map(node, table.exp) for node in order):
        return part
    run = _Joining(part.varying)
    for node in order:
        run.put(node)
    return part.rewritten(run.done, part.known)


class _Joining:
    """The rewriting of one graph: new nodes by old ones, and new nodes as products."""

    def __init__(self, varying: Collection[Expr]) -> None:
        self.done: dict[Expr, Expr] = {}
        self._varying = varying
        self._products: dict[Expr, _Factored] = {}
        self._logarithms: dict[Expr, _Sum | None] = {}

    def put(self, node: Expr) -> None:
        result = remake(node, tuple(self.done[operand] for operand in node.operands))
        if node in self._varying:
            if isinstance(result, Map):
                own = self._product_of(result)
                if own.joined >= _WORTH:
                    result = _written(own, result.shape)
                self._products[result] = own
            elif isinstance(result, Einsum):
                result = self._contracted(result)
        self.done[node] = result

    def _product(self, node: Expr) -> _Factored:
        """A new node as a product; one without exponentials for any other."""
        known = self._products.get(node)
        if known is not None:
            return known
        return _Factored({}, _Placed(node, _all(node.shape)), None, 0)

    def _product_of(self, node: Map) -> _Factored:
        function = node.function
        whole = _Factored({}, _Placed(node, _all(node.shape)), None, 0)
        if function is table.exp:
            return _Factored(_terms(node.operands[0]), None, None, 1)
        parts = [
            self._product(operand).along(axes)
            for operand, axes in zip(node.operands, node.axes, strict=True)
        ]
        if function in (table.mul, table.div) and any(part.exponent for part in parts):
            return _multiplied(parts[0], parts[1], function is table.div, node.shape)
        power = _exponent(node)
        if power is not None:
            logarithm = self._logarithm(node.operands[0])
            if logarithm is not None:
                return _Factored(_scaled(logarithm, power), None, None, _WORTH)
        return whole

    def _logarithm(self, node: Expr) -> _Sum | None:
        """log of a new node that is positive by its form; None for any other."""
        if node not in self._logarithms:
            self._logarithms[node] = self._logarithm_of(node)
        return self._logarithms[node]

    def _logarithm_of(self, node: Expr) -> _Sum | None:
        if isinstance(node, Const):
            if not 0.0 < node.value < inf:
                return None
            return {} if node.value == 1.0 else {_Placed(table.log(node), ()): Fraction(1)}
        if not isinstance(node, Map):
            return None
        if node.function is table.exp:
            return _terms(node.operands[0])
        power = _exponent(node)
        if power is None and node.function not in (table.mul, table.div, table.add):
            return None
        parts = []
        for operand, axes in zip(node.operands, node.axes, strict=True):
            own = self._logarithm(operand)
            if own is None:
                return None
            parts.append({_Placed(one.node, _at(one.axes, axes)): c for one, c in own.items()})
            if power is not None:
                return _scaled(parts[0], power)
        first, second = parts
        if node.function is table.mul:
            return _added(first, second)
        over = _added(second, _scaled(first, Fraction(-1)))
        if node.function is table.div:
            return _scaled(over, Fraction(-1))
        rise = table.softplus(_sum_of(over, node.shape))
        return _added(first, {_Placed(rise, _all(node.shape)): Fraction(1)})

    def _contracted(self, node: Einsum) -> Expr:
        """The contraction with the exponentials of its factors joined in one with all their labels.

        Equal factors stay, as a sum of squares shows that it is one.
        """
        parts = [self._product(operand) for operand in node.operands]
        of_exponentials = [k for k, part in enumerate(parts) if part.joined]
        if len(of_exponentials) < _WORTH or len(set(node.operands)) < len(node.operands):
            return node
        into = max(of_exponentials, key=lambda k: node.operands[k].rank)
        labels = node.inputs[into]
        total, moved = parts[into], set()
        for k in of_exponentials:
            own = node.inputs[k]
            if k == into or len(set(own)) < len(own) or not set(own) <= set(labels):
                continue
            axes = tuple(labels.index(label) for label in own)
            if list(axes) != sorted(axes):
                continue
            total = _Factored(
                _added(total.exponent, parts[k].along(axes).exponent), total.above, total.below, 0
            )
            moved.add(k)
        if not moved:
            return node
        operands, inputs = [], []
        for k, (operand, own) in enumerate(zip(node.operands, node.inputs, strict=True)):
            left = operand
            if k in moved:
                part = parts[k]
                left = _written(_Factored({}, part.above, part.below, 0), operand.shape)
            elif k == into:
                left = _written(total, operand.shape)
            if left is not _ONE and not _is_ones(left):
                operands.append(left)
                inputs.append(own)
        return build.einsum(operands, inputs, node.output, node.dims)


def _multiplied(first: _Factored, second: _Factored, divided: bool, shape: Shape) -> _Factored:
    """The product or quotient of two."""
    sign = Fraction(-1 if divided else 1)
    above, below = second.above, second.below
    if divided:
        above, below = below, above
    inverted = int(divided and bool(second.exponent))
    return _Factored(
        _added(first.exponent, _scaled(second.exponent, sign)),
        _times(first.above, above, shape),
        _times(first.below, below, shape),
        first.joined + second.joined + inverted,
    )


def _times(first: _Placed | None, second: _Placed | None, shape: Shape) -> _Placed | None:
    if first is None or second is None:
        return first or second
    return _along(table.mul, first, second, shape)


def _along(function: ScalarFunction, first: _Placed, second: _Placed, shape: Shape) -> _Placed:
    """A function of two placed nodes, along the axes that either has."""
    axes = tuple(sorted({*first.axes, *second.axes}))
    own = [tuple(axes.index(axis) for axis in one.axes) for one in (first, second)]
    inner = tuple(shape[axis] for axis in axes)
    return _Placed(build.apply_along(function, [first.node, second.node], own, inner), axes)


def _written(product: _Factored, shape: Shape) -> Expr:
    """The product as a node of this shape."""
    result = product.above
    if product.exponent:
        total = _total(product.exponent, shape)
        power = _Placed(table.exp(total.node), total.axes)
        result = power if result is None else _along(table.mul, result, power, shape)
    if product.below is not None:
        result = _along(table.div, result or _Placed(_ONE, ()), product.below, shape)
    if result is None:
        return build.broadcast(_ONE, (), shape) if shape else _ONE
    whole = result.axes == _all(shape)
    return result.node if whole else build.broadcast(result.node, result.axes, shape)


def _total(terms: _Sum, shape: Shape) -> _Placed:
    """The sum, those of equal axes first."""
    result: dict[Axes, _Placed] = {}
    for one, c in terms.items():
        term, function = one.node, table.add
        if c < 0 and one.axes in result:
            function = table.sub
        if abs(c) != 1 or (c < 0 and function is table.add):
            factor = float(abs(c)) if function is table.sub else float(c)
            term = table.neg(term) if factor == -1.0 else table.mul(factor, term)
        own = _Placed(term, one.axes)
        before = result.get(one.axes)
        result[one.axes] = own if before is None else _along(function, before, own, shape)
    every = sorted(result.values(), key=lambda one: len(one.axes))
    total = every[0]
    for one in every[1:]:
        total = _along(table.add, total, one, shape)
    return total


def _sum_of(terms: _Sum, shape: Shape) -> Expr:
    """The sum as a node of this shape."""
    if not terms:
        return build.broadcast(Const(0.0), (), shape)
    total = _total(terms, shape)
    whole = total.axes == _all(shape)
    return total.node if whole else build.broadcast(total.node, total.axes, shape)


def _terms(node: Expr) -> _Sum:
    """A node as a sum of multiples of nodes that are not sums, with dyadic coefficients."""
    result: dict[_Placed, Fraction] = {}
    stack = [(_Placed(node, _all(node.shape)), Fraction(1))]
    while stack:
        one, c = stack.pop()
        own = _linear(one.node)
        if own is None or any(not _is_double(c * factor) for _, _, factor in own):
            result = _added(result, {one: c})
            continue
        stack += [(_Placed(part, _at(axes, one.axes)), c * f) for part, axes, f in reversed(own)]
    return result


def _linear(node: Expr) -> Sequence[tuple[Expr, Axes, Fraction]] | None:
    """The terms of a sum, difference or multiple, with their coefficients; None for another."""
    if not isinstance(node, Map):
        return None
    one = Fraction(1)
    if node.function is table.neg:
        return [(node.operands[0], node.axes[0], -one)]
    if node.function in (table.add, table.sub):
        signs = (one, -one if node.function is table.sub else one)
        return list(zip(node.operands, node.axes, signs, strict=True))
    if node.function is table.mul:
        for k in (0, 1):
            factor, other = node.operands[k], node.operands[1 - k]
            if isinstance(factor, Const) and isfinite(factor.value):
                return [(other, node.axes[1 - k], Fraction(factor.value))]
    return None


def _added(first: _Sum, second: _Sum) -> dict[_Placed, Fraction]:
    """The sum of two; terms whose coefficients cancel are left out."""
    result = dict(first)
    for one, c in second.items():
        total = result.get(one, Fraction(0)) + c
        if total == 0:
            result.pop(one, None)
        elif _is_double(total):
            result[one] = total
        else:  # as a term of its own
            stand_in = _Placed(table.mul(float(c), one.node), one.axes)
            result[stand_in] = result.get(stand_in, Fraction(0)) + 1
    return result


def _scaled(terms: _Sum, factor: Fraction) -> dict[_Placed, Fraction]:
    result: dict[_Placed, Fraction] = {}
    for one, c in terms.items():
        if _is_double(c * factor):
            result[one] = c * factor
        else:
            node = table.mul(float(factor), table.mul(float(c), one.node))
            result = _added(result, {_Placed(node, one.axes): Fraction(1)})
    return result


def _is_double(number: Fraction) -> bool:
    return abs(number) < 2**60 and Fraction(float(number)) == number


def _exponent(node: Map) -> Fraction | None:
    """p of a power node^p that is a square, a root or has a constant p; None for another."""
    if node.function is table.square:
        return Fraction(2)
    if node.function in _ROOTS:
        return Fraction(1, 2)
    if node.function is table.pow and isinstance(node.operands[1], Const):
        value = node.operands[1].value
        return Fraction(value) if isfinite(value) else None
    return None


def _at(axes: Axes, places: Axes) -> Axes:
    return tuple(places[axis] for axis in axes)


def _all(shape: Shape) -> Axes:
    return tuple(range(len(shape)))


def _is_ones(node: Expr) -> bool:
    """Whether all elements are 1."""
    return isinstance(node, Einsum) and not node.operands and len(set(node.output)) == node.rank
