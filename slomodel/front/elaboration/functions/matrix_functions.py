"""Functions of matrices: factorisations, systems, determinants, triangles, Kronecker products."""

from __future__ import annotations

from slomodel.calculus.matrix_structure import MatrixFacts
from slomodel.front.elaboration.errors import error
from slomodel.front.elaboration.functions.arguments import ArrayCall
from slomodel.front.elaboration.indices.contraction import contract
from slomodel.front.elaboration.indices.index_sets import size_product
from slomodel.front.elaboration.values import (
    Label,
    Value,
    combine,
    is_square,
    number,
    union,
    with_unit_axes,
)
from slomodel.functions import ge, sub, where
from slomodel.ir import build
from slomodel.ir.dims import Dim, literal
from slomodel.ir.expr import Affine, Expr
from slomodel.problem import Check

_SQUARE = "of a square matrix the two dims have one name"


def _facts(call: ArrayCall) -> MatrixFacts:
    return call.scope.model.matrices


def _need_square(call: ArrayCall) -> None:
    if not is_square(call.x):
        raise call.refuse(f"`{call.name}` takes a square matrix", _SQUARE)


def cholesky(call: ArrayCall) -> Value:
    """L with LLᵀ = A, of the symmetric part of A."""
    _need_square(call)
    return Value(_facts(call).cholesky(call.x.expr), call.x.labels, call.x.axes)


def logdet(call: ArrayCall) -> Value:
    """The logarithm of the determinant."""
    _need_square(call)
    return Value(_facts(call).logdet(call.x.expr), call.x.labels)


def det(call: ArrayCall) -> Value:
    """The determinant."""
    _need_square(call)
    return Value(_facts(call).det(call.x.expr), call.x.labels)


def inv(call: ArrayCall) -> Value:
    """The inverse matrix."""
    _need_square(call)
    return Value(_facts(call).inverse(call.x.expr), call.x.labels, call.x.axes)


def solve(call: ArrayCall) -> Value:
    """The solution of a system for one right side or several."""
    matrix, right = call.values
    if not is_square(matrix) or right.rank not in (1, 2) or right.axes[0] != matrix.axes[0]:
        remedy = "A is square, and b a vector or matrix with as many rows"
        raise call.refuse("`solve(A, b)` takes a square matrix and what `A @ x` equals", remedy)
    labels = union((matrix, right))
    extra = [label for label in labels if label not in matrix.labels]
    if right.rank == 1 and extra:
        # The values of one index are the columns of one right side: A is factored once for all.
        columns = _vectors_as_columns(right, extra[-1])
        result = solved(_facts(call), matrix, columns)
        return _columns_as_vectors(result, extra[-1])
    return solved(_facts(call), matrix, right)


def solved(facts: MatrixFacts, matrix: Value, right: Value) -> Value:
    """The solutions for every index on which the two depend."""
    labels = union((matrix, right))
    batch = tuple(label.dim for label in labels)
    place = {label: k for k, label in enumerate(labels)}

    def spread(value: Value) -> Expr:
        dims = value.dims if value.rank == 2 else (*value.dims, literal(1))
        own = range(len(batch), len(batch) + value.rank)
        axes = (*(place[label] for label in value.labels), *own)
        return build.broadcast(value.expr, axes, (*batch, *dims))

    result = facts.solve(spread(matrix), spread(right))
    return Value(build.reshape(result, (*batch, *right.dims)), labels, right.axes)


def _vectors_as_columns(value: Value, label: Label) -> Value:
    """Vectors for every index as the columns of a matrix, one for each value of a label."""
    kept = tuple(one for one in value.labels if one is not label)
    count, place = len(value.labels), value.labels.index(label)
    order = (*(k for k in range(count) if k != place), count, place)
    return Value(build.transpose(value.expr, order), kept, (*value.axes, label.dim))


def _columns_as_vectors(value: Value, label: Label) -> Value:
    """The inverse: the columns of matrices as vectors for the values of a label."""
    labels = tuple(sorted((*value.labels, label), key=lambda one: one.order))
    place, count = labels.index(label), len(value.labels)
    own = list(range(count))
    own.insert(place, count + 1)
    return Value(build.transpose(value.expr, (*own, count)), labels, value.axes[:1])


def quad(call: ArrayCall) -> Value:
    """The quadratic form xᵀAx."""
    matrix, vector = call.values
    if not is_square(matrix) or vector.axes != matrix.axes[:1]:
        remedy = "A is square, and x has as many elements as A has rows"
        raise call.refuse("`quad(A, x)` takes a square matrix and a vector", remedy)
    return contract([(vector, "i"), (matrix, "ij"), (vector, "j")], "")


def triangle(call: ArrayCall) -> Value:
    """The elements of a matrix on one side of a diagonal, and zeros."""
    call.need_rank((2,), f"`{call.name}` takes a matrix")
    rows, columns = (
        Value(build.iota(dim), (), tuple(dim if k == axis else None for k in range(2)))
        for axis, dim in enumerate(call.x.dims)
    )
    offset = call.whole("k")
    if offset:
        columns = combine(sub, columns, number(float(offset)))
    ends = (rows, columns) if call.name == "tril" else (columns, rows)
    return combine(where, combine(ge, *ends), call.x, number(0.0))


def kron(call: ArrayCall) -> Value:
    """The Kronecker product, of which one size on each side has to be a number."""
    call.need_rank((2,), "`kron` takes two matrices", "write `outer(x, y)` for vectors")
    left, right = call.values
    blocks = contract([(left, "ik"), (right, "jl")], "ijkl")
    rows, columns = (_times(*pair, call) for pair in zip(left.dims, right.dims, strict=True))
    labels = tuple(label.dim for label in blocks.labels)
    return Value(
        build.reshape(blocks.expr, (*labels, rows, columns)), blocks.labels, (rows, columns)
    )


def _times(first: Dim, second: Dim, call: ArrayCall) -> Dim:
    """The product of two sizes, of which one has to be a number."""
    if first.is_literal:
        return second * first.const
    if second.is_literal:
        return first * second.const
    message = f"the size {first} * {second} of this Kronecker product has no name"
    remedy = 'write `einsum("ik,jl->ijkl", A, B)`, which is (A ⊗ B) with a pair of indices each'
    raise error("E220", message, call.span, remedy)


def diff(call: ArrayCall) -> Value:
    """The differences of neighbours along an axis."""
    call.need_rank(tuple(range(1, 64)), "`diff` takes an array")
    axis, x = call.one_axis(), with_unit_axes(call.x)
    count = len(x.labels)
    size = x.dims[axis] - 1
    axes = (*x.axes[:axis], size, *x.axes[axis + 1 :])
    shape = (*(label.dim for label in x.labels), *(dim for dim in axes if dim is not None))

    def shifted(start: int) -> Value:
        index = [
            Affine(
                Dim(const=start) if k == count + axis else Dim(),
                tuple(int(j == k) for j in range(len(shape))),
            )
            for k in range(len(shape))
        ]
        return Value(build.gather(x.expr, index, shape), x.labels, axes)

    return combine(sub, shifted(1), shifted(0))


_MODES = ("full", "same", "valid")


def conv(call: ArrayCall) -> Value:
    """The convolution Σ_j k[j] x[i - j] of two vectors, over all i or those within x."""
    call.need_rank((1,), "`conv` takes two vectors", "sums over shifted indices take any shape")
    mode = call.text("mode")
    if mode.text not in _MODES:
        remedy = 'write "full" for all sums, "same" for as many as x has, "valid" for whole ones'
        raise error("E208", f"`{mode.text}` is not a mode of `conv`", mode.span, remedy)
    x, kernel = call.values
    (n,), (m,) = x.dims, kernel.dims
    if mode.text == "valid":
        return _whole_sums(call, x, kernel)
    products = contract([(x, "i"), (kernel, "j")], "ij")
    count = len(products.labels)
    index = [*_units(count, count + 2), Affine(Dim(), (0,) * count + (1, 1))]
    labels = tuple(label.dim for label in products.labels)
    full = build.scatter(products.expr, index, (*labels, n + m - 1))
    if mode.text == "full":
        return Value(full, products.labels, (n + m - 1,))
    if not m.is_literal:
        message = f"mode `same` needs the number of elements of the second vector, not `{m}`"
        raise error("E208", message, mode.span, 'as in `data k[5]`, or write "full" or "valid"')
    start = Affine(Dim(const=(m.const - 1) // 2), (0,) * count + (1,))
    gather = build.gather(full, [*_units(count, count + 1), start], (*labels, n))
    return Value(gather, products.labels, (n,))


def _whole_sums(call: ArrayCall, x: Value, kernel: Value) -> Value:
    """The sums in which every element of the second vector meets one of x."""
    (n,), (m,) = x.dims, kernel.dims
    enough = combine(ge, size_product([n]), size_product([m])).expr
    if enough is not build.const(True):
        message = f"`{call.span.text}` has no whole sums: the second vector is longer than x"
        check = Check(enough, call.span.text, call.span, message)
        call.scope.model.checks.append(check)
    count, size = len(x.labels), n - m + 1
    shape = (*(label.dim for label in x.labels), size, m)
    along = Affine(Dim(), (0,) * count + (1, 1))
    windows = build.gather(x.expr, [*_units(count, count + 2), along], shape)
    own = len(kernel.labels)
    turned = Affine(m - 1, (0,) * own + (-1,))
    reverse = build.gather(kernel.expr, [*_units(own, own + 1), turned], kernel.expr.shape)
    sides = Value(windows, x.labels, (size, m)), Value(reverse, kernel.labels, (m,))
    return contract([(sides[0], "ij"), (sides[1], "j")], "i")


def _units(count: int, rank: int) -> list[Affine]:
    """Indices that leave the first axes as they are."""
    return [Affine.along(k, rank) for k in range(count)]
