"""Objectives that are sums of squares, and their Gauss–Newton matrix."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from slomodel.calculus.gradient import NOTHING, Known, gradient, total
from slomodel.calculus.jvp import jvp
from slomodel.functions import mul, pow, square
from slomodel.ir import build
from slomodel.ir.expr import Const, Einsum, Expr, Input, Map
from slomodel.ir.walk import dependents, inputs, postorder, substitute


@dataclass(frozen=True, slots=True)
class Square:
    """A summand Σ weight·residual² of an objective; both of one shape, the weight of data alone."""

    weight: Expr
    residual: Expr


def squares(objective: Expr, variables: Collection[Expr]) -> tuple[Square, ...]:
    """Squares whose sum is the objective up to a constant; empty if it is not such a sum.

    The sign of a weight is that of its data, and may be negative.
    """
    order = postorder(objective)
    varying = dependents(order, set(variables).__contains__)
    outermost = outermost_squares(objective, varying)
    stand_ins = {
        node: build.data(f"square {k}", residual.shape)
        for k, (node, residual) in enumerate(outermost.items())
    }
    replaced = {node: _with_square(node, one) for node, one in stand_ins.items()}
    (linear,) = substitute((objective,), replaced)
    if not stand_ins or not varying.isdisjoint(inputs(linear)):
        return ()
    weights = gradient(linear, list(stand_ins.values()))
    if not set(stand_ins.values()).isdisjoint(inputs(*weights)):
        return ()
    pairs = zip(weights, outermost.values(), strict=True)
    return tuple(Square(weight, residual) for weight, residual in pairs)


def gauss_newton(
    parts: Sequence[Square], directions: Mapping[Expr, Expr], known: Known = NOTHING
) -> tuple[Expr, ...]:
    """The Gauss–Newton product Σ 2 Jᵀ(weight·Jv); keys are the variables, values the direction v.

    J is the Jacobian of a residual: this is the Hessian without the residuals' own curvature.
    """
    tangents = jvp([part.residual for part in parts], directions)
    held = [build.data(f"tangent {k}", part.residual.shape) for k, part in enumerate(parts)]
    along = total([build.inner(u, part.residual) for u, part in zip(held, parts, strict=True)])
    products = gradient(along, list(directions), known)
    doubled: dict[Expr, Expr] = {
        u: build.apply(mul, build.const(2.0), build.apply(mul, part.weight, tangent))
        for u, part, tangent in zip(held, parts, tangents, strict=True)
    }
    return substitute(products, doubled)


def outermost_squares(objective: Expr, varying: Collection[Expr]) -> dict[Expr, Expr]:
    """The outermost squares below the objective that depend on x: node to residual."""
    result: dict[Expr, Expr] = {}
    seen, stack = {objective}, [objective]
    while stack:
        node = stack.pop()
        residual = _root(node, varying) if node in varying else None
        if residual is not None:
            result[node] = residual
            continue
        fresh = [operand for operand in node.operands if operand not in seen]
        seen.update(fresh)
        stack += fresh
    return result


def _root(node: Expr, varying: Collection[Expr]) -> Expr | None:
    """r if the node is r², elementwise or summed with weights of data; else None."""
    if isinstance(node, Map):
        if node.function is square:
            return node.operands[0]
        exponent = node.operands[1] if node.function is pow else None
        if isinstance(exponent, Const) and exponent.value > 0.0 and exponent.value % 2.0 == 0.0:
            return build.apply(pow, node.operands[0], build.const(exponent.value / 2.0))
    if isinstance(node, Einsum):
        twice = list(_moving_operands(node, varying))
        if len(twice) == 2 and twice[0] == twice[1]:
            return twice[0][0]
    return None


def _moving_operands(
    node: Einsum, varying: Collection[Expr]
) -> Iterator[tuple[Expr, tuple[int, ...]]]:
    for operand, labels in zip(node.operands, node.inputs, strict=True):
        if operand in varying:
            yield operand, labels


def _with_square(node: Expr, stand_in: Input) -> Expr:
    """The node with the square of its residual replaced by an input."""
    if not isinstance(node, Einsum):
        return stand_in
    residual = next(o for k, o in enumerate(node.operands) if o in node.operands[k + 1 :])
    first = node.operands.index(residual)
    second = node.operands.index(residual, first + 1)
    kept = [k for k in range(len(node.operands)) if k not in (first, second)]
    operands = [stand_in, *(node.operands[k] for k in kept)]
    labels = [node.inputs[first], *(node.inputs[k] for k in kept)]
    return build.einsum(operands, labels, node.output, node.dims)
