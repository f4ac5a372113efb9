"""The table of array functions: signature, array parameters and evaluation rule of each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial, reduce

from slomodel.front.elaboration.errors import StatementError, dense_needed, error
from slomodel.front.elaboration.functions.arguments import ArrayCall, axis_of
from slomodel.front.elaboration.functions.matrix_functions import (
    cholesky,
    conv,
    det,
    diff,
    inv,
    kron,
    logdet,
    quad,
    solve,
    triangle,
)
from slomodel.front.elaboration.indices import sparse
from slomodel.front.elaboration.indices.contraction import contract, total
from slomodel.front.elaboration.indices.index_sets import size_product
from slomodel.front.elaboration.shape_mismatch import marks, unequal
from slomodel.front.elaboration.sums.reductions import reduced, require_nonempty, softened
from slomodel.front.elaboration.values import (
    Value,
    combine,
    is_square,
    merged,
    number,
    square_root,
    value_of,
)
from slomodel.front.text.syntax import FunctionCall, NumberLiteral, String
from slomodel.functions import abs, add, div, eq, floor, ne, neg, square, where
from slomodel.functions.running import cumulative
from slomodel.ir import build
from slomodel.ir.dims import Dim, Shape, show_shape
from slomodel.ir.expr import Affine, Map
from slomodel.ir.function import ScalarFunction
from slomodel.ir.walk import inputs
from slomodel.problem import Check

Rule = Callable[[ArrayCall], Value]


@dataclass(frozen=True, slots=True)
class ArrayFunction:
    """An array function: signature, names of its array parameters, and description.

    `text` is the signature; `meaning` is one line for `slomodel functions`.
    """

    text: str
    values: tuple[str, ...]
    rule: Rule
    meaning: str
    takes_sparse: bool = False


ARRAY_FUNCTIONS: dict[str, ArrayFunction] = {}
"""The array functions of the language by name."""


def _entry(
    text: str, *values: str, meaning: str, takes_sparse: bool = False
) -> Callable[[Rule], Rule]:
    def add(rule: Rule) -> Rule:
        entry = ArrayFunction(text, values, rule, meaning, takes_sparse)
        ARRAY_FUNCTIONS[text.partition("(")[0]] = entry
        return rule

    return add


def _need_array(call: ArrayCall) -> None:
    if call.scope.any_shape and not call.x.rank:
        return
    remedy = f"a sum by index is written `{call.name}(… for i in n)`"
    inner = call.operands[0].nodes[0]
    function = inner.function.text if isinstance(inner, FunctionCall) else ""
    numbers = sorted({one.name for one in inputs(call.x.expr) if one.role == "data"})
    if function.endswith(("_lpdf", "_lpmf")):
        remedy = f"`{function}` is summed over its elements already: leave `{call.name}` out"
    elif any(not label.name for label in call.x.labels):
        remedy = "a parameter that is an array is declared with its shape, as in `fn f(v[n]) = …`"
    elif not call.x.rank and not call.x.labels and numbers:
        declared = f"`data {numbers[0]}` declares one number"
        remedy = f"{declared}, and `data {numbers[0]}[n]` an array; {remedy}"
    call.need_rank(tuple(range(1, 64)), f"`{call.name}` takes an array", remedy)


@_entry(
    "sum(x, axis=None)",
    "x",
    meaning="sum of all elements, or along one axis; also sum(… for i in n)",
    takes_sparse=True,
)
def _sum(call: ArrayCall) -> Value:
    if call.sparse is not None:
        return _sum_of_sparse(call, call.sparse)[0]
    _need_array(call)
    return total(call.x, axes=call.axes())


@_entry(
    "mean(x, axis=None)",
    "x",
    meaning="mean of all elements, or along one axis; also mean(… for i in n)",
    takes_sparse=True,
)
def _mean(call: ArrayCall) -> Value:
    if call.sparse is not None:
        summed, dims = _sum_of_sparse(call, call.sparse)
        require_nonempty("mean", call.scope.model, dims, call.span)
        return combine(div, summed, size_product(dims))
    _need_array(call)
    axes = call.axes()
    dims = [call.x.dims[axis] for axis in axes]
    require_nonempty("mean", call.scope.model, dims, call.span)
    return combine(div, total(call.x, axes=axes), size_product(dims))


def _sum_of_sparse(call: ArrayCall, value: Value) -> tuple[Value, list[Dim]]:
    """The sum of a sparse array, and the sizes of the axes that it runs over."""
    dense = sparse.stand_in(value)
    axis = axis_of(call.arguments["axis"], None, dense, call.scope)
    shape = list(dense.axes)
    dims = [dim for k, dim in enumerate(shape) if dim is not None and axis in (None, k)]
    if axis is not None and len(shape) > 2:
        raise dense_needed(call.operands[0].span)
    return sparse.sum_of_entries(value, axis, call.scope.model), dims


@_entry("logsumexp(x, axis=None)", "x", meaning="log(sum(exp(x))), without overflow")
@_entry(
    "min(x, axis=None)", "x", meaning="smallest element, or along one axis; also min(… for i in n)"
)
@_entry(
    "max(x, axis=None)", "x", meaning="largest element, or along one axis; also max(… for i in n)"
)
@_entry(
    "prod(x, axis=None)",
    "x",
    meaning="product of all elements, or along one axis; also prod(… for i in n)",
)
def _reduced(call: ArrayCall) -> Value:
    _need_array(call)
    return reduced(call.name, call.x, call.scope.model, call.span, axes=call.axes())


@_entry(
    "log_softmax(x, axis=-1)", "x", meaning="log(softmax(x)), x minus its logsumexp along an axis"
)
@_entry("softmax(x, axis=-1)", "x", meaning="exp(x) divided by its sum along an axis")
def _softmax(call: ArrayCall) -> Value:
    _need_array(call)
    return softened(call.name, call.x, call.one_axis(), call.scope.model, call.span)


@_entry("cumlogsumexp(x, axis=None)", "x", meaning="logsumexp of the elements up to each")
@_entry("cumprod(x, axis=None)", "x", meaning="product of the elements up to each")
@_entry("cumsum(x, axis=None)", "x", meaning="sum of the elements up to each, along one axis")
def _cumulative(call: ArrayCall) -> Value:
    _need_array(call)
    axes = call.axes()
    if len(axes) != 1:
        message = f"`{call.name}` runs along one axis"
        raise error("E208", message, call.span, f"write `{call.name}(…, axis=0)`")
    if call.name != "cumsum":
        require_nonempty(call.name, call.scope.model, [call.x.dims[axes[0]]], call.span)
    return replace(call.x, expr=cumulative(call.name, call.x.expr, len(call.x.labels) + axes[0]))


@_entry(
    "sumsq(x, axis=None)",
    "x",
    meaning="sum of the squares of all elements, or along one axis",
    takes_sparse=True,
)
def _sumsq(call: ArrayCall) -> Value:
    return _sum_of_each(call, square)


@_entry(
    "norm2(x, axis=None)",
    "x",
    meaning="root of the sum of squares of a vector, or of the vectors along an axis",
)
def _norm2(call: ArrayCall) -> Value:
    if axis_of(call.arguments["axis"], None, call.x, call.scope) is None:
        remedy = "write `fro(A)` for the root of the sum of squares of a matrix, "
        remedy += "`norm2(A, axis=1)` for those of its rows, `abs` of a number"
        call.need_rank((1,), "`norm2` takes a vector", remedy)
    return square_root(_sumsq(call))


@_entry("fro(x)", "x", meaning="root of the sum of squares of any array", takes_sparse=True)
def _fro(call: ArrayCall) -> Value:
    return square_root(_sum_of_each(call, square))


@_entry(
    "norm1(x, axis=None)",
    "x",
    meaning="sum of the absolute values of all elements, or along one axis",
    takes_sparse=True,
)
def _norm1(call: ArrayCall) -> Value:
    return _sum_of_each(call, abs)


def _sum_of_each(call: ArrayCall, function: ScalarFunction) -> Value:
    """The sum of a function that is 0 at 0, over all elements or along one axis."""
    if call.sparse is not None:
        each = combine(function, sparse.stored(call.sparse))
        call.scope.note(each, call.span)
        whole = replace(each, pattern=call.sparse.pattern)
        if "axis" not in call.arguments:
            return sparse.sum_of_entries(whole, None, call.scope.model)
        return _sum_of_sparse(call, whole)[0]
    each = combine(function, call.x)
    call.scope.note(each, call.span)
    if not call.x.rank:
        return each
    return total(each, axes=call.axes() if "axis" in call.arguments else None)


@_entry("dot(x, y)", "x", "y", meaning="sum of the products of two vectors")
def _dot(call: ArrayCall) -> Value:
    call.need_rank((1,), "`dot` takes two vectors", "write `sum(A .* B)` or `A @ B` for matrices")
    x, y = call.values
    if x.axes != y.axes:
        raise unequal(call.scope, "`dot`", call.span, call.operands)
    return contract([(x, "i"), (y, "i")], "")


@_entry("outer(x, y)", "x", "y", meaning="matrix of all products of an element of x and one of y")
def _outer(call: ArrayCall) -> Value:
    remedy = 'write `einsum("ij,kl->ijkl", A, B)` for matrices'
    call.need_rank((1,), "`outer` takes two vectors", remedy)
    x, y = call.values
    return contract([(x, "i"), (y, "j")], "ij")


_SQUARE = "of a square matrix the two dims have one name"


@_entry("trace(A)", "A", meaning="sum of the diagonal of a square matrix")
def _trace(call: ArrayCall) -> Value:
    if not is_square(call.x):
        raise call.refuse("`trace` takes a square matrix", _SQUARE)
    return contract([(call.x, "ii")], "")


@_entry(
    "diag(x)", "x", meaning="the diagonal matrix of a vector, or the diagonal of a square matrix"
)
def _diag(call: ArrayCall) -> Value:
    if call.x.rank == 1:
        return contract([(call.x, "i")], "ii")
    if not is_square(call.x):
        raise call.refuse("`diag` takes a vector or a square matrix", _SQUARE)
    return contract([(call.x, "ii")], "i")


@_entry("eye(n, k=0)", meaning="identity matrix, or ones on the diagonal k above it")
def _eye(call: ArrayCall) -> Value:
    (dim,), offset = call.sizes("n"), call.whole("k")
    if not offset:
        return value_of(build.identity(dim))
    rows = Value(build.iota(dim), (), (dim, None))
    columns = Value(build.iota(dim), (), (None, dim))
    on_diagonal = combine(eq, combine(add, rows, number(float(offset))), columns)
    return combine(where, on_diagonal, number(1.0), number(0.0))


@_entry("zeros(*sizes)", meaning="array of zeros, as in zeros(m, n)")
def _zeros(call: ArrayCall) -> Value:
    return value_of(build.zeros(call.sizes("sizes")))


@_entry("ones(*sizes)", meaning="array of ones, as in ones(m, n)")
def _ones(call: ArrayCall) -> Value:
    return value_of(build.ones(call.sizes("sizes")))


@_entry("reshape(x, *sizes)", "x", meaning="the same elements in C order, as in reshape(x, m, n)")
def _reshape(call: ArrayCall) -> Value:
    return reshaped(call)


@_entry("concat(*arrays, axis=0)", "arrays", meaning="arrays one after another along an axis")
def _concat(call: ArrayCall) -> Value:
    return concat(call)


@_entry(
    "masked(E, mask)",
    "E",
    "mask",
    meaning="E where the mask is 1, and 0 elsewhere, even if E is NaN there",
    takes_sparse=True,
)
def _masked(call: ArrayCall) -> Value:
    """`where(mask != 0, E, 0)`; E may contain NaN where the mask is 0."""
    value, mask = (operand.value for operand in call.operands)
    if _is_swapped(call):
        raise _swapped(call)
    if mask.pattern is not None:
        return _masked_by_sparse(call, value, mask)
    if value.pattern is not None:
        raise dense_needed(call.operands[0].span, "declare the mask `sparse` too")
    if mask.rank != value.rank or merged((value, mask)) is None:
        raise _other_mask(call)
    result = combine(where, combine(ne, mask, number(0.0)), value, number(0.0))
    # For a constant mask the graph needs no choice.
    if isinstance(result.expr, Map) and result.expr.function is where:
        call.scope.model.masked.add(result.expr)
    return result


def _masked_by_sparse(call: ArrayCall, value: Value, mask: Value) -> Value:
    shapes = sparse.stand_in(value), sparse.stand_in(mask)
    if shapes[0].rank != shapes[1].rank or merged(shapes) is None:
        raise call.refuse("`masked` takes two arrays of one shape", "declare both over one shape")
    if sparse.common_pattern((value, mask)) is None:
        raise sparse.other_pattern([operand.span for operand in call.operands], (value, mask))
    return sparse.masked(value, mask, call.scope.model)


def _is_swapped(call: ArrayCall) -> bool:
    """Whether the first argument is declared a mask and the second depends on variables."""
    first, second = call.operands
    is_mask = first.name in call.scope.model.masks
    return is_mask and any(one.role == "variable" for one in inputs(second.value.expr))


def _swapped(call: ArrayCall) -> StatementError:
    first, second = call.operands
    message = f"the mask is the second argument of `masked`, and `{first.name}` is the mask"
    remedy = f"write `masked({second.text}, {first.text})`"
    return error("E208", message, call.span, remedy, marks=marks(first, second))


def _other_mask(call: ArrayCall) -> StatementError:
    value, mask = call.operands
    if value.value.rank and mask.value.rank:
        return unequal(call.scope, "`masked`", call.span, (value, mask))
    return call.refuse(
        "`masked` takes two arrays of one shape", "the mask is data: `data M[n] mask`"
    )


@_entry(
    "einsum(spec, *arrays)",
    "arrays",
    meaning='sum of products by labels, as in einsum("ij,jk->ik", A, B)',
)
def _einsum(call: ArrayCall) -> Value:
    return einsum(call)


def _floor(call: ArrayCall) -> Value:
    return combine(floor, call.data_alone())


def _ceil(call: ArrayCall) -> Value:
    return combine(neg, combine(floor, combine(neg, call.data_alone())))


_MATRICES: tuple[tuple[str, Rule, str], ...] = (
    ("cholesky(A)", cholesky, "lower triangular L with L @ L' = A, for positive definite A"),
    ("logdet(A)", logdet, "logarithm of the determinant of a square matrix"),
    ("det(A)", det, "determinant of a square matrix"),
    ("solve(A, b)", solve, "the x with A @ x = b, for a vector or a matrix b"),
    ("inv(A)", inv, "inverse matrix; `inv(A) @ b` is computed as `solve(A, b)`"),
    ("quad(A, x)", quad, "quadratic form x' @ A @ x"),
    ("tril(A, k=0)", triangle, "lower triangle of a matrix: zeros above the diagonal k"),
    ("triu(A, k=0)", triangle, "upper triangle of a matrix: zeros below the diagonal k"),
    ("floor(x)", _floor, "largest whole number that is not above x, for data alone"),
    ("ceil(x)", _ceil, "least whole number that is not below x, for data alone"),
    ("kron(A, B)", kron, "Kronecker product of two matrices: blocks A[i, j] * B"),
    ("conv(x, k, mode)", conv, "convolution of two vectors: mode is full, same or valid"),
    ("diff(x, axis=-1)", diff, "differences of neighbours along an axis"),
)

for _text, _rule, _meaning in _MATRICES:
    _arrays = (name for name in ("A", "B", "b", "x", "k") if re.search(rf"[( ]{name}[,)]", _text))
    _entry(_text, *_arrays, meaning=_meaning)(_rule)


def reshaped(call: ArrayCall) -> Value:
    """The elements in C order in another shape; the total sizes are compared now or at bind."""
    x, sizes = call.x, call.sizes("sizes")
    before, after = _without_common(x.dims, sizes)
    counts = size_product(before), size_product(after)
    same = combine(eq, *counts).expr
    if same is build.const(False):
        message = f"`reshape` to {show_shape(sizes)} needs an array of as many elements"
        raise call.refuse(message, "the product of the sizes stays the same")
    if same is not build.const(True):
        text = call.span.text
        wrong = f"`{text}` would change the number of elements"
        call.scope.model.checks.append(Check(same, text, call.span, wrong))
    labels = tuple(label.dim for label in x.labels)
    return Value(build.reshape(x.expr, labels + sizes), x.labels, sizes)


def _without_common(a: Shape, b: Shape) -> tuple[list[Dim], list[Dim]]:
    """The dims of each shape without a counterpart in the other; equal dims cancel in totals."""
    left, right = Counter(a), Counter(b)
    return list((left - right).elements()), list((right - left).elements())


def concat(call: ArrayCall) -> Value:
    """Arrays concatenated along an axis; their other axes have equal dims."""
    arrays = list(call.values)
    last = call.operands[-1]
    axis = call.one_axis() if call.x.rank else 0
    if len(arrays) > 2 and isinstance(last.nodes[0], NumberLiteral) and not arrays[-1].rank:
        # The axis may be the last argument without its name, as in `concat(A, B, 1)`.
        axis = axis_of((last.nodes[0],), None, call.x, call.scope) or 0
        arrays.pop()
    first = arrays[0]
    rest = {tuple(d for k, d in enumerate(v.dims) if k != axis) for v in arrays}
    if not first.rank or len({v.rank for v in arrays}) > 1 or len(rest) > 1:
        raise call.refuse(
            "`concat` takes arrays that differ at most in the size of the axis",
            "write `[c]` for a number `c`, `x[:, None]` for a vector `x`",
        )
    size = sum((v.dims[axis] for v in arrays), Dim())
    dims = (*first.dims[:axis], size, *first.dims[axis + 1 :])
    placed = []
    start = Dim()
    for value in arrays:
        placed.append(_placed(value, dims, axis, start))
        start += value.dims[axis]
    return reduce(partial(combine, add), placed)


def _placed(value: Value, dims: Shape, axis: int, start: Dim) -> Value:
    """Zeros of shape `dims`, except for the value from position `start` of an axis on."""
    own = tuple(label.dim for label in value.labels)
    rank = len(own) + len(dims)
    index = Affine.shifted(rank, len(own) + axis, start)
    return Value(build.scatter(value.expr, index, own + dims), value.labels, dims)


_SPEC = re.compile(r"([a-zA-Z]*(?:,[a-zA-Z]*)*)->([a-zA-Z]*)")


def einsum(call: ArrayCall) -> Value:
    spec = call.text("spec")
    result = _SPEC.fullmatch(spec.text.replace(" ", ""))
    if result is None:
        message = "an einsum text has letters for the axes, `,` between arrays, and `->`"
        raise error("E208", message, spec.span, 'as in `einsum("ij,jk->ik", A, B)`')
    groups, output = result.group(1).split(","), result.group(2)
    values = call.values
    if len(groups) != len(values):
        message = f"the text has letters for {len(groups)} arrays, not for {len(values)}"
        raise error("E208", message, spec.span, "separate the letters of each array by `,`")
    dims: dict[str, Dim] = {}
    for group, value, one in zip(groups, values, call.operands, strict=True):
        if len(group) != value.rank:
            message = f"`einsum` takes for `{group}` as many axes, and `{one.text}` has"
            raise call.refuse(message, "write one letter for each axis")
        for letter, dim in zip(group, value.dims, strict=True):
            if dims.setdefault(letter, dim) != dim:
                both = f"`{letter}` stands for `{dims[letter]}` and for `{dim}`"
                message = f"each letter of `einsum` stands for one dim ({both})"
                raise call.refuse(message, "the axes of one letter must have one dim")
    _check_output(output, dims, spec)
    return contract(list(zip(values, groups, strict=True)), output)


def _check_output(output: str, dims: dict[str, Dim], spec: String) -> None:
    problem = ""
    for letter in output:
        if letter not in dims:
            problem = f"`{letter}` of the result does not occur in any array"
        elif output.count(letter) > 1:
            problem = f"`{letter}` occurs twice in the result"
    if problem:
        raise _in_spec(problem, spec)


def _in_spec(problem: str, spec: String) -> StatementError:
    remedy = 'write each letter of the result once, as in `"ij,j->i"`'
    return error("E208", problem, spec.span, remedy)
