"""Terms over pairs of indices as products of a factor of each index and of an exponential.

The sum over j of g_i f_j exp(u_i + v_j) is g_i exp(u_i) times a sum that i does not occur in: where
i only limits the range of j, all these sums are running sums.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import TypeAlias

from slomodel.functions.arithmetic import add, div, mul, neg, sub
from slomodel.functions.comparison import gt, where
from slomodel.functions.compound import stop_gradient
from slomodel.functions.elementary import exp
from slomodel.functions.piecewise import maximum
from slomodel.functions.running import cumulative
from slomodel.ir import build
from slomodel.ir.dims import Shape, literal
from slomodel.ir.expr import Affine, Axes, Const, Einsum, Expr, Map, is_map
from slomodel.ir.function import ScalarFunction
from slomodel.ir.walk import inputs

Move: TypeAlias = Callable[[Expr, int], Expr]
"""Elements of an array at other places of one of its axes."""


_LARGEST = sys.float_info.max


@dataclass(frozen=True, slots=True)
class Placed:
    """An array, and the axes of a larger array that its axes are."""

    expr: Expr
    axes: Axes


@dataclass(frozen=True, slots=True)
class _Term:
    """`own` times the factors `scales`, or its opposite."""

    own: Placed
    scales: tuple[Placed, ...] = ()
    is_positive: bool = True


@dataclass(frozen=True, slots=True)
class Separated:
    """The product of `outer`, `inner` and the exponential of the sums of both kinds of exponents.

    The axis `across` of the whole array, of the given shape, occurs in what is outer alone, and
    `along` in what is inner. There are exponents of both kinds or of none.
    """

    shape: Shape
    along: int
    across: int
    outer: Placed | None
    inner: Placed | None
    outer_exponents: tuple[_Term, ...] = ()
    inner_exponents: tuple[_Term, ...] = ()

    def where_inner(self, holds: Expr | None) -> Separated:
        """The product with other terms at 0, if a condition along the inner axis is given."""
        if holds is None:
            return self
        one, zero = Placed(Const(1.0), ()), Placed(Const(0.0), ())
        inner = combined(where, Placed(holds, (self.along,)), self.inner or one, zero)
        return replace(self, inner=inner)

    def exponent(self, terms: Sequence[_Term], move: Move | None = None) -> Placed:
        """The sum of exponents, of which arrays along the inner axis are read elsewhere.

        What has the same scales is added up before it is scaled: the difference of two times is
        exact where multiples of both are not. Arrays that are moved lie across.
        """
        groups: dict[tuple[Placed, ...], list[tuple[Placed, bool]]] = {}
        for term in terms:
            own = term.own
            if move is not None and self.along in own.axes:
                axis = own.axes.index(self.along)
                axes = tuple(self.across if k == self.along else k for k in own.axes)
                own = Placed(move(own.expr, axis), axes)
            groups.setdefault(term.scales, []).append((own, term.is_positive))
        sums: list[Placed] = []
        for scales, members in groups.items():
            total = _signed_sum(members)
            sums.append(reduce(lambda a, b: combined(mul, b, a), scales, total))
        return reduce(partial(combined, add), sums)

    def decayed(self, order: Move, read: Move, exists: Expr | None) -> Placed:
        """The sum of the terms up to an element of each outer index.

        `order` sorts an array along the inner axis, and `read` reads that element where it
        `exists` (everywhere if None). The sums of f_j exp(v_j - v_k) over j <= k obey a recurrence
        with factors exp(v_{k-1} - v_k), which no large exponents round. They overflow only where
        exponents are lower than those before.
        """
        steps = [self._difference(term, order) for term in self.inner_exponents]
        factor = combined(exp, reduce(partial(combined, add), steps))
        inner = self._sorted_inner(order)
        terms = (*self.outer_exponents, *self.inner_exponents)
        exponent = self.exponent(terms, lambda one, k: read(order(one, k), k))
        return self._at_ends(self._scanned(factor, inner), exponent, read, exists)

    def shifted(self, order: Move, read: Move, exists: Expr | None) -> Placed:
        """The same sums for exponents in any order: those of f_j exp(v_j - m_k), m_k = max v_j."""
        exponents = self.exponent(self.inner_exponents)
        axis = exponents.axes.index(self.along)
        sorted_exponents = order(exponents.expr, axis)
        finite = build.apply(maximum, sorted_exponents, build.const(-_LARGEST))
        # Of 0 elements there would be no first one.
        found = _shortened(cumulative("cummax", after_lowest(finite, axis), axis), axis, 1)
        largest = build.apply(stop_gradient, found)
        step = Placed(_step(largest, axis), exponents.axes)
        less = Placed(build.apply(sub, sorted_exponents, largest), exponents.axes)
        inner = combined(mul, self._sorted_inner(order), combined(exp, less))
        axes = tuple(self.across if k == self.along else k for k in exponents.axes)
        there = Placed(read(largest, axis), axes)
        exponent = combined(add, self.exponent(self.outer_exponents), there)
        return self._at_ends(self._scanned(combined(exp, step), inner), exponent, read, exists)

    def _sorted_inner(self, order: Move) -> Placed:
        inner = self.inner or Placed(Const(1.0), ())
        if self.along not in inner.axes:
            return inner
        return Placed(order(inner.expr, inner.axes.index(self.along)), inner.axes)

    def _scanned(self, factor: Placed, term: Placed) -> Placed:
        """The recurrence along the inner axis, over the axes of both arrays."""
        axes = tuple(sorted({*factor.axes, *term.axes}))
        shape = tuple(self.shape[k] for k in axes)
        wide, terms = (
            build.broadcast(one.expr, tuple(map(axes.index, one.axes)), shape)
            for one in map(in_order, (factor, term))
        )
        # After a first element 0, so that there is an element even of no terms.
        axis = axes.index(self.along)
        sums = build.scan(after_zero(wide, axis), after_zero(terms, axis), axis)
        return Placed(_shortened(sums, axis, 1), axes)

    def _at_ends(self, sums: Placed, exponent: Placed, read: Move, exists: Expr | None) -> Placed:
        """The sums at the ends, times the exponential of their exponents there."""
        axes = tuple(self.across if k == self.along else k for k in sums.axes)
        found = Placed(read(sums.expr, sums.axes.index(self.along)), axes)
        if exists is not None:
            there, zero = Placed(exists, (self.across,)), Placed(Const(0.0), ())
            exponent = combined(where, there, exponent, zero)
            found = combined(where, there, found, zero)
        return combined(mul, combined(exp, exponent), found)

    def _difference(self, term: _Term, order: Move) -> Placed:
        """An exponent of the last element less that of an element, and 0 for the first one."""
        axis = term.own.axes.index(self.along)
        array = order(term.own.expr, axis)
        less = _step(array, axis)
        result = Placed(less if term.is_positive else build.apply(neg, less), term.own.axes)
        return reduce(lambda a, b: combined(mul, b, a), term.scales, result)


def _step(array: Expr, axis: int) -> Expr:
    """The last element along an axis less each element, and 0 for the first one."""
    less = build.apply(sub, _shortened(after_zero(array, axis), axis, 0), array)
    is_later = build.apply(gt, build.iota(array.shape[axis]), build.const(0.0))
    axes = (axis,), tuple(range(array.rank)), ()
    return build.apply_along(where, (is_later, less, build.const(0.0)), axes, array.shape)


def after_zero(array: Expr, axis: int) -> Expr:
    """0 and then the elements along an axis."""
    wide = (*array.shape[:axis], array.shape[axis] + 1, *array.shape[axis + 1 :])
    return build.scatter(array, Affine.shifted(array.rank, axis, literal(1)), wide)


def _shortened(array: Expr, axis: int, start: int) -> Expr:
    """The elements along an axis without the first (`start` 1) or last one (0)."""
    shape = (*array.shape[:axis], array.shape[axis] - 1, *array.shape[axis + 1 :])
    return build.gather(array, Affine.shifted(array.rank, axis, literal(start)), shape)


def after_lowest(array: Expr, axis: int) -> Expr:
    """The lowest finite number and then the elements along an axis."""
    padded = after_zero(array, axis)
    thin = (*array.shape[:axis], literal(1), *array.shape[axis + 1 :])
    one = build.broadcast(Const(-_LARGEST), (), thin)
    first = build.scatter(one, Affine.identity(array.rank), padded.shape)
    return build.apply(add, padded, first)


def separated(node: Expr, along: int, across: int) -> Separated | None:
    """An array as a product of arrays without one of two axes; None if it is not known to be."""
    outer: list[tuple[Placed, bool]] = []
    inner: list[tuple[Placed, bool]] = []
    exponents: list[_Term] = []
    stack = [(Placed(node, tuple(range(node.rank))), False)]
    while stack:
        one, divides = stack.pop()
        if along not in one.axes:
            outer.append((one, divides))
        elif across not in one.axes:
            inner.append((one, divides))
        elif is_map(one.expr, mul, div, neg):
            parts = _operands(one)
            divided = divides != is_map(one.expr, div)
            stack += [(part, divided if k else divides) for k, part in enumerate(parts)]
            if len(parts) == 1:
                outer.append((Placed(Const(-1.0), ()), False))
        elif is_map(one.expr, exp):
            terms = exponents_of(_operands(one)[0], along, across, is_positive=not divides)
            if terms is None:
                return None
            exponents += terms
        elif _is_view(one.expr):
            stack.append((_spread_operand(one), divides))
        else:
            return None
    return Separated(
        node.shape,
        along,
        across,
        _product(outer),
        _product(inner),
        tuple(one for one in exponents if along not in one.own.axes),
        tuple(one for one in exponents if along in one.own.axes),
    )


def exponents_of(
    whole: Placed, along: int, across: int, *, is_positive: bool = True
) -> list[_Term] | None:
    """An array as a sum of terms without one of two axes; None if it is not known to be."""
    result: list[_Term] = []
    stack = [_Term(whole, (), is_positive)]
    while stack:
        term = stack.pop()
        one = term.own
        if not {along, across} <= {*one.axes}:
            result.append(term)
            continue
        node = one.expr
        parts = _operands(one) if is_map(node, add, sub, neg, mul, div) else ()
        if is_map(node, add, sub, neg):
            for k, part in enumerate(parts):
                turns = is_map(node, neg) or (k == 1 and is_map(node, sub))
                stack.append(_Term(part, term.scales, term.is_positive != turns))
        elif parts:
            scaled = [part for part in parts if {along, across} & {*part.axes}]
            if len(scaled) != 1 or (is_map(node, div) and scaled[0] is parts[1]):
                return None
            (other,) = (part for part in parts if part is not scaled[0])
            scale = combined(div, Placed(Const(1.0), ()), other) if is_map(node, div) else other
            stack.append(_Term(scaled[0], (*term.scales, scale), term.is_positive))
        elif _is_view(node):
            stack.append(_Term(_spread_operand(one), term.scales, term.is_positive))
        elif isinstance(node, Einsum):
            contractions = _contractions(one, along, across)
            if contractions is None:
                return None
            stack += [
                _Term(part, term.scales, term.is_positive == plus) for part, plus in contractions
            ]
        else:
            return None
    return result


def _contractions(one: Placed, along: int, across: int) -> list[tuple[Placed, bool]] | None:
    """A contraction as the sum of those of the terms of an operand with both axes."""
    node = one.expr
    assert isinstance(node, Einsum)
    if len(set(node.output)) < len(node.output):
        return None
    labels = {node.output[one.axes.index(k)] for k in (along, across)}
    both = [k for k, own in enumerate(node.inputs) if labels & {*own}]
    if len(both) != 1 or not is_map(node.operands[both[0]], add, sub, neg):
        return None
    (place,) = both
    operand = Placed(node.operands[place], node.inputs[place])
    result: list[tuple[Placed, bool]] = []
    for k, part in enumerate(_operands(operand)):
        every = (*node.inputs[:place], part.axes, *node.inputs[place + 1 :])
        operands = (*node.operands[:place], part.expr, *node.operands[place + 1 :])
        used = {label for own in every for label in own}
        kept = [j for j, label in enumerate(node.output) if label in used]
        # A label of the result alone would repeat it; without it in the output it would scale it.
        left = [
            label for label in range(len(node.dims)) if label in used or label not in node.output
        ]
        inputs_left = [tuple(map(left.index, own)) for own in every]
        output = tuple(left.index(node.output[j]) for j in kept)
        expr = build.einsum(operands, inputs_left, output, [node.dims[label] for label in left])
        plus = not (is_map(operand.expr, neg) or (k == 1 and is_map(operand.expr, sub)))
        result.append((Placed(expr, tuple(one.axes[j] for j in kept)), plus))
    return result


def combined(function: ScalarFunction, *arrays: Placed) -> Placed:
    """A function applied elementwise, over the axes of all arrays in their order."""
    axes = tuple(sorted({axis for one in arrays for axis in one.axes}))
    sizes = {
        axis: dim for one in arrays for axis, dim in zip(one.axes, one.expr.shape, strict=True)
    }
    turned = [in_order(one) for one in arrays]
    own = tuple(tuple(map(axes.index, one.axes)) for one in turned)
    shape = tuple(sizes[axis] for axis in axes)
    return Placed(build.apply_along(function, [one.expr for one in turned], own, shape), axes)


def in_order(one: Placed) -> Placed:
    """The array with its axes in the order of those of the whole array."""
    order = tuple(sorted(range(len(one.axes)), key=one.axes.__getitem__))
    return Placed(build.transpose(one.expr, order), tuple(one.axes[k] for k in order))


def is_of_data(terms: Sequence[_Term], key: Expr | None = None) -> bool:
    """Whether the arrays that are scaled hold data, all of them those of the key if given."""
    every = [one for term in terms for one in inputs(term.own.expr)]
    known = None if key is None else set(inputs(key))
    return all(one.role == "data" and (known is None or one in known) for one in every)


def _operands(one: Placed) -> tuple[Placed, ...]:
    node = one.expr
    assert isinstance(node, Map)
    pairs = zip(node.operands, node.axes, strict=True)
    return tuple(Placed(part, tuple(one.axes[k] for k in own)) for part, own in pairs)


def _is_view(node: Expr) -> bool:
    """Whether a node is an operand with its axes in another order, or with further ones."""
    if not isinstance(node, Einsum) or len(node.operands) != 1:
        return False
    (own,) = node.inputs
    distinct = len(set(own)) == len(own) and len(set(node.output)) == len(node.output)
    return distinct and {*node.output} == {*range(len(node.dims))}


def _spread_operand(one: Placed) -> Placed:
    node = one.expr
    assert isinstance(node, Einsum)
    axes = tuple(one.axes[node.output.index(label)] for label in node.inputs[0])
    return Placed(node.operands[0], axes)


def _signed_sum(members: Sequence[tuple[Placed, bool]]) -> Placed:
    positive = [one for one, plus in members if plus]
    negative = [one for one, plus in members if not plus]
    plus, minus = (
        reduce(partial(combined, add), part) if part else None for part in (positive, negative)
    )
    if plus is None or minus is None:
        result = plus or minus
        assert result is not None
        return combined(neg, result) if plus is None else result
    return combined(sub, plus, minus)


def _product(factors: Sequence[tuple[Placed, bool]]) -> Placed | None:
    """The product of the factors, those that divide last; None without factors."""
    result: Placed | None = None
    for one, divides in sorted(factors, key=lambda factor: factor[1]):
        if result is None and divides:
            result = Placed(Const(1.0), ())
        result = one if result is None else combined(div if divides else mul, result, one)
    return result
