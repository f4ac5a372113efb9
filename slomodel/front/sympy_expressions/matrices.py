"""Matrix expressions: sums, products, transposes, traces. A vector is a matrix with one column."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from functools import reduce
from itertools import pairwise

import sympy as sp

from slomodel.errors import MissingRule, ShapeError, SlomodelError
from slomodel.front.elaboration.expressions.operators import transposed
from slomodel.front.elaboration.functions.matrix_functions import solved
from slomodel.front.elaboration.indices.contraction import contract
from slomodel.front.elaboration.values import (
    Value,
    combine,
    is_square,
    merged,
    power_of,
    show,
    value_of,
)
from slomodel.front.sympy_expressions.errors import error
from slomodel.front.sympy_expressions.evaluation import Steps, SymPyRequest
from slomodel.front.sympy_expressions.scope import size
from slomodel.functions import add, mul
from slomodel.functions.translate import balanced
from slomodel.ir import build
from slomodel.ir.dims import literal
from slomodel.ir.expr import Affine
from slomodel.ir.function import ScalarFunction

_MOST_WRITTEN_OUT = 1024
_HIGHEST_POWER = 64


def is_matrix(node: sp.Basic) -> bool:
    return isinstance(node, (sp.MatrixExpr, sp.MatrixBase))


def matrix_symbol(request: SymPyRequest) -> Steps:
    yield from ()
    return request.scope.translation.values[request.node.name]


def fixed(request: SymPyRequest) -> Steps:
    """The constant matrices Identity, ZeroMatrix and OneMatrix."""
    yield from ()
    shape = tuple(size(part, request.scope) for part in request.node.shape)
    if isinstance(request.node, sp.Identity):
        return value_of(build.identity(shape[0]))
    return value_of((build.ones if isinstance(request.node, sp.OneMatrix) else build.zeros)(shape))


def explicit(request: SymPyRequest) -> Steps:
    """A matrix given by its elements."""
    rows, columns = request.node.shape
    if rows * columns > _MOST_WRITTEN_OUT:
        message = f"a matrix of {rows} x {columns} explicit elements is too large"
        remedy = "use a MatrixSymbol, and give numbers in data="
        raise error("E410", message, request.node, remedy, MissingRule)
    shape = (literal(rows), literal(columns))
    placed = [value_of(build.zeros(shape))]
    for k, entry in enumerate(request.node.flat()):
        if entry == 0:
            continue
        value = yield SymPyRequest(entry, request.scope)
        labels = tuple(label.dim for label in value.labels)
        wide = build.broadcast(value.expr, tuple(range(len(labels))), (*labels, *_ONE))
        offsets = [literal(0)] * len(labels) + [literal(k // columns), literal(k % columns)]
        rank = len(offsets)
        index = [Affine(o, tuple(int(a == b) for b in range(rank))) for a, o in enumerate(offsets)]
        expr = build.scatter(wide, index, labels + shape)
        placed.append(Value(expr, value.labels, shape))
    return balanced(lambda a, b: combine(add, a, b), placed)


_ONE = (literal(1), literal(1))


def elementwise(function: ScalarFunction, request: SymPyRequest) -> Steps:
    """A sum or Hadamard product of matrices of the same shape."""
    values: list[Value] = []
    for part in request.node.args:
        value = yield SymPyRequest(part, request.scope)
        if values and merged((values[0], value)) is None:
            raise _unequal(request.node, (values[0], value))
        values.append(value)
    return balanced(lambda a, b: combine(function, a, b), values)


def matrix_sum(request: SymPyRequest) -> Steps:
    return elementwise(add, request)


def hadamard_product(request: SymPyRequest) -> Steps:
    return elementwise(mul, request)


def hadamard_power(request: SymPyRequest) -> Steps:
    base = yield SymPyRequest(request.node.base, request.scope)
    exponent = yield SymPyRequest(request.node.exp, request.scope)
    if merged((base, exponent)) is None:
        raise _unequal(request.node, (base, exponent))
    return power_of(base, exponent)


def transpose(request: SymPyRequest) -> Steps:
    value = yield SymPyRequest(request.node.arg, request.scope)
    return transposed(value)


def _square(request: SymPyRequest, node: sp.Basic) -> Steps:
    """The value of a matrix, which has to be square."""
    value = yield SymPyRequest(node, request.scope)
    if not is_square(value):
        message = f"a square matrix is expected, not {show(value)}"
        raise error("E410", message, request.node, "SymPy accepts sizes of other names", ShapeError)
    return value


def determinant(request: SymPyRequest) -> Steps:
    value = yield from _square(request, request.node.arg)
    return Value(request.scope.translation.lists.matrices.det(value.expr), value.labels)


def log_determinant(request: SymPyRequest) -> Steps:
    """log(Determinant(A)), without overflow of the determinant."""
    value = yield from _square(request, request.node.args[0].arg)
    return Value(request.scope.translation.lists.matrices.logdet(value.expr), value.labels)


def inverse(request: SymPyRequest) -> Steps:
    value = yield from _square(request, request.node.arg)
    result = request.scope.translation.lists.matrices.inverse(value.expr)
    return Value(result, value.labels, value.axes)


def product(request: SymPyRequest) -> Steps:
    """A chain of matrices as one contraction, times its scalar factors.

    A chain with an inverse solves a system with what stands to the right of it.
    """
    parts = request.node.args
    k = next((k for k, part in enumerate(parts) if isinstance(part, sp.Inverse)), None)
    if k is not None and any(map(is_matrix, parts[k + 1 :])):
        matrix = yield from _square(request, parts[k].arg)
        right = yield SymPyRequest(sp.MatMul(*parts[k + 1 :]), request.scope)
        if right.axes[0] != matrix.axes[0]:
            raise _unequal(request.node, (matrix, right))
        chain = solved(request.scope.translation.lists.matrices, matrix, right)
        for part in reversed(parts[:k]):
            value = yield SymPyRequest(part, request.scope)
            if not is_matrix(part):
                chain = combine(mul, value, chain)
                continue
            if value.axes[1] != chain.axes[0]:
                raise _unequal(request.node, (value, chain))
            chain = contract([(value, "ij"), (chain, "jk")], "ik")
        return chain
    scalars, factors = yield from _factors(request)
    last = len(factors)
    chain = contract(_keyed(factors, request.node), (0, last))
    return reduce(lambda value, scalar: combine(mul, scalar, value), scalars, chain)


def trace(request: SymPyRequest) -> Steps:
    """A trace; for a product, a contraction that does not form the product matrix."""
    inner = request.node.arg
    if isinstance(inner, sp.MatAdd):
        parts: list[Value] = []
        for part in inner.args:
            value = yield SymPyRequest(sp.Trace(part), request.scope)
            parts.append(value)
        return balanced(lambda a, b: combine(add, a, b), parts)
    scalars, factors = yield from _factors(SymPyRequest(inner, request.scope))
    first, last = factors[0], factors[-1]
    if first.axes[0] != last.axes[-1]:
        shape = f"[{first.axes[0]}, {last.axes[-1]}]"
        message = f"a trace needs a square matrix, not {shape}"
        remedy = "for the sum of squares of A write `Trace(A.T * A)`"
        raise error("E410", message, inner, remedy, ShapeError)
    keyed = _keyed(factors, inner, cyclic=True)
    return reduce(lambda value, scalar: combine(mul, scalar, value), scalars, contract(keyed, ()))


def matrix_power(request: SymPyRequest) -> Steps:
    """An integer power of a square matrix, by repeated squaring."""
    base = yield SymPyRequest(request.node.base, request.scope)
    exponent = request.node.exp
    if not exponent.is_Integer or not 1 <= exponent <= _HIGHEST_POWER:
        message = f"a matrix power needs a whole exponent from 1 to {_HIGHEST_POWER}"
        raise error("E410", message, request.node, "write the product out", MissingRule)
    if not is_square(base):
        message = f"a power needs a square matrix, not {show(base)}"
        raise error("E410", message, request.node, "multiply it by its transpose", ShapeError)
    result: Value | None = None
    rest = int(exponent)
    while rest:
        if rest % 2:
            result = base if result is None else contract([(result, "ik"), (base, "kj")], "ij")
        rest //= 2
        if rest:
            base = contract([(base, "ik"), (base, "kj")], "ij")
    assert result is not None
    return result


def _factors(
    request: SymPyRequest,
) -> Generator[SymPyRequest, Value, tuple[list[Value], list[Value]]]:
    """The scalar factors and the matrices of a product, in order."""
    parts = request.node.args if isinstance(request.node, sp.MatMul) else (request.node,)
    scalars: list[Value] = []
    matrices: list[Value] = []
    for part in parts:
        value = yield SymPyRequest(part, request.scope)
        (matrices if is_matrix(part) else scalars).append(value)
    return scalars, matrices


def _keyed(
    factors: Sequence[Value], node: sp.Basic, cyclic: bool = False
) -> list[tuple[Value, tuple[int, int]]]:
    """Factors with keys for their axes: neighbours share one, also last and first if `cyclic`."""
    for left, right in pairwise(factors):
        if left.axes[1] != right.axes[0]:
            raise _unequal(node, (left, right))
    count = len(factors)
    ends = [k + 1 if k + 1 < count or not cyclic else 0 for k in range(count)]
    return [(value, (k, end)) for k, (value, end) in enumerate(zip(factors, ends, strict=True))]


def _unequal(node: sp.Basic, values: Sequence[Value]) -> SlomodelError:
    shapes = " and ".join(show(value) for value in values)
    message = f"matrices of shape {shapes} do not fit"
    return error("E410", message, node, "SymPy accepts sizes of different names", ShapeError)
