"""Steps that are affine in the states: y = b + A x with b and A computed at all steps at once.

A step cannot begin before the last one ends, nor can most of its operations run side by side.
Where states enter linearly, as in every adjoint of a recurrence, only the products with A and their
sum have to wait; b and A do not depend on states, so that loops over all steps compute them in
vectors. The terms are added in another order: the sums differ by rounding alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from slomodel.codegen.loops.access import Numbers
from slomodel.codegen.loops.scalars import Elements, by_element
from slomodel.functions import add, div, mul, neg, sub
from slomodel.ir import build
from slomodel.ir.dims import Dim, Shape
from slomodel.ir.expr import Affine, Const, Expr, Input, Map
from slomodel.ir.function import ScalarFunction
from slomodel.ir.loop import Loop, StateAt
from slomodel.ir.walk import dependents, postorder, substitute

_ZERO = Const(0.0)


@dataclass(frozen=True, slots=True)
class AffineForm:
    """`constant` + Σ coefficient · state, with expressions that depend on no state."""

    constant: Expr
    coefficients: Mapping[Expr, Expr]

    def mapped(self, function: ScalarFunction, *others: Expr) -> AffineForm:
        """The form of a linear function of it; a constant 0 stays 0."""
        own = {one: build.apply(function, v, *others) for one, v in self.coefficients.items()}
        if self.constant is _ZERO:
            return AffineForm(_ZERO, own)
        return AffineForm(build.apply(function, self.constant, *others), own)

    def plus(self, other: AffineForm) -> AffineForm:
        own = dict(self.coefficients)
        for one, value in other.coefficients.items():
            own[one] = build.apply(add, own[one], value) if one in own else value
        if self.constant is _ZERO or other.constant is _ZERO:
            return AffineForm(self.constant if other.constant is _ZERO else other.constant, own)
        return AffineForm(build.apply(add, self.constant, other.constant), own)

    @property
    def work(self) -> int:
        """Operations that wait for states."""
        products = sum(value is not Const(1.0) for value in self.coefficients.values())
        return products + len(self.coefficients) - (self.constant is _ZERO)

    def value(self) -> Expr:
        terms = [build.apply(mul, value, one) for one, value in self.coefficients.items()]
        terms = terms if self.constant is _ZERO and terms else [self.constant, *terms]
        result = terms[0]
        for term in terms[1:]:
            result = build.apply(add, result, term)
        return result


def affine_values(loop: Loop, numbers: Numbers) -> tuple[Expr, ...]:
    """The values of the updates of a loop, in affine form where that is less to wait for."""
    values = tuple(update.value for update in loop.updates)
    result = by_element(values, numbers)
    if result is None:
        return values
    elements, inputs = result
    states = {one for one, source in loop.sources if isinstance(source, StateAt)}
    scalars = [one for array in elements for one in array.reshape(-1)]
    order = postorder(*scalars)
    varying = dependents(order, lambda node: node in inputs and inputs[node][0] in states)
    forms = _forms(order, varying)
    known = [forms[scalar] for scalar in scalars]
    if any(one is None for one in known):
        return values
    before = sum(isinstance(node, Map) for node in varying)
    if sum(one.work for one in known if one is not None) >= before:
        return values
    places: dict[Expr, Expr] = {one: _element(*place) for one, place in inputs.items()}
    made = substitute(tuple(one.value() for one in known if one is not None), places)
    rest = iter(made)
    return tuple(
        _assembled([next(rest) for _ in range(array.size)], array, value.shape)
        for array, value in zip(elements, values, strict=True)
    )


def _forms(order: Sequence[Expr], varying: set[Expr]) -> dict[Expr, AffineForm | None]:
    """The affine forms of scalar nodes; None for those that are not affine."""
    forms: dict[Expr, AffineForm | None] = {}
    for node in order:
        if node not in varying:
            forms[node] = AffineForm(node, {})
        elif isinstance(node, Input):
            forms[node] = AffineForm(_ZERO, {node: Const(1.0)})
        else:
            forms[node] = _form(node, [forms[operand] for operand in node.operands], varying)
    return forms


def _form(node: Expr, own: Sequence[AffineForm | None], varying: set[Expr]) -> AffineForm | None:
    if not isinstance(node, Map) or node.function not in (add, sub, neg, mul, div):
        return None
    first, *others = own
    second = others[0] if others else None
    if first is None or (others and second is None):
        return None
    if node.function is neg or second is None:
        return first.mapped(neg)
    if node.function is add:
        return first.plus(second)
    if node.function is sub:
        return first.plus(second.mapped(neg))
    left, right = node.operands
    if right not in varying:
        return first.mapped(node.function, right)
    return second.mapped(mul, left) if node.function is mul and left not in varying else None


def _element(array: Expr, at: tuple[int, ...]) -> Expr:
    """The element of an array at a place."""
    if not array.rank:
        return array
    return build.gather(array, [Affine(Dim() + k, ()) for k in at], ())


def _assembled(values: list[Expr], array: Elements, shape: Shape) -> Expr:
    """The array of some elements, in C order."""
    if not shape:
        return values[0]
    total: Expr | None = None
    for value, place in zip(values, np.ndindex(array.shape), strict=True):
        one = build.scatter(value, [Affine(Dim() + k, ()) for k in place], shape)
        total = one if total is None else build.apply(add, total, one)
    assert total is not None
    return total
