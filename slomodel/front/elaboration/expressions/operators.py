"""The rules of `+ - * / @ .* ./ ^ '`, of unary minus, and of conditions."""

from __future__ import annotations

from dataclasses import dataclass, replace

from slomodel.errors import Diagnostic, Span
from slomodel.front.elaboration.errors import (
    StatementError,
    dense_needed,
    error,
    misplaced_row,
    shape_error,
)
from slomodel.front.elaboration.evaluation import Steps
from slomodel.front.elaboration.expressions.calls import under_condition
from slomodel.front.elaboration.indices import sparse
from slomodel.front.elaboration.indices.contraction import contract
from slomodel.front.elaboration.indices.sparse import stand_in
from slomodel.front.elaboration.indices.steps import conformed
from slomodel.front.elaboration.indices.tables import is_table
from slomodel.front.elaboration.scope import Scope, ValueRequest
from slomodel.front.elaboration.shape_mismatch import (
    Operand,
    marks,
    operand,
    parenthesised,
    unequal,
    unfit_product,
)
from slomodel.front.elaboration.values import (
    Value,
    combine,
    is_square,
    merged,
    power_of,
    remainder,
    show,
    with_unit_axes,
)
from slomodel.front.text.syntax import (
    BoolOp,
    Compare,
    Negate,
    Not,
    Power,
    ProductChain,
    SumChain,
    Transpose,
)
from slomodel.functions import (
    add,
    div,
    eq,
    ge,
    gt,
    land,
    le,
    lnot,
    lor,
    lt,
    mul,
    ne,
    neg,
    pow,
    sub,
)
from slomodel.ir import build
from slomodel.ir.walk import inputs

_COMPARISONS = {"<": lt, "<=": le, ">": gt, ">=": ge, "==": eq, "!=": ne}


def negation(node: Negate, request: ValueRequest) -> Steps:
    value = yield ValueRequest(node.operand, request.scope, row=True, sparse=True)
    return replace(value, expr=combine(neg, value).expr)


def addition(node: SumChain, request: ValueRequest) -> Steps:
    scope = request.scope
    value = yield ValueRequest(node.first, scope, sparse=True)
    for k, term in enumerate(node.rest):
        other = yield ValueRequest(term.operand, scope, sparse=True)
        function = add if term.op == "+" else sub
        if value.pattern is not None or other.pattern is not None:
            before = node.rest[k - 1].operand.span if k else node.first.span
            spans = (node.first.span.to(before), term.operand.span)
            value = sparse.mapped(function, (value, other), spans)
            continue
        if value.axes and other.axes:
            value, other = conformed(scope.model, node.span, (value, other))
        if merged((value, other)) is None:
            nodes = (node.first, *(t.operand for t in node.rest[:k]))
            left = Operand(node.first.span.to(nodes[-1].span), nodes, value)
            raise unequal(scope, f"`{term.op}`", term.op_span, (left, operand(term.operand, other)))
        _warn_of_totals(scope, (value, other), node.first.span.to(term.operand.span))
        value = combine(function, value, other)
        scope.note(value, node.first.span.to(term.operand.span))
    return value


def product(node: ProductChain, request: ValueRequest) -> Steps:
    """Evaluate a chain from left to right, in which a transposed vector must be followed by `@`."""
    scope = request.scope
    value = yield ValueRequest(node.first, scope, row=True, sparse=True)
    for k, term in enumerate(node.rest):
        other = yield ValueRequest(term.operand, scope, row=True, sparse=True)
        if term.op != "@" and value.axes and other.axes:
            value, other = conformed(scope.model, node.span, (value, other))
        factors = _Factors(node, k, value, other)
        match term.op:
            case "@":
                value = _matrix_product(scope, factors)
            case "%":
                value = _remainder(scope, factors)
            case _:
                value = _scaled(scope, factors)
        scope.note(value, node.first.span.to(term.operand.span))
    return value


def _warn_of_totals(scope: Scope, values: tuple[Value, Value], span: Span) -> None:
    """Warn of a log density of arrays beside an array: SciPy's would have an element for each."""
    for total, other in (values, values[::-1]):
        if total.total_of and not total.rank and other.rank:
            message = (
                f"`{total.total_of}` of arrays is one number, their sum, for each element here"
            )
            remedy = (
                "call it with elements, as in `let l[i in n] = …(y[i], …)`, or apart from arrays"
            )
            scope.model.warn(Diagnostic("W208", message, span, help=remedy, severity="warning"))


@dataclass(frozen=True, slots=True)
class _Factors:
    """The two sides of operator k of a chain, as operands for messages."""

    node: ProductChain
    k: int
    a: Value
    b: Value

    @property
    def op(self) -> str:
        return self.node.rest[self.k].op

    @property
    def span(self) -> Span:
        return self.node.rest[self.k].op_span

    @property
    def operands(self) -> tuple[Operand, Operand]:
        nodes = (self.node.first, *(term.operand for term in self.node.rest[: self.k]))
        left = Operand(self.node.first.span.to(nodes[-1].span), nodes, self.a)
        return left, operand(self.node.rest[self.k].operand, self.b)


def _scaled(scope: Scope, factors: _Factors) -> Value:
    """Elementwise products and quotients: `*`, `/`, `.*` and `./`."""
    op, a, b = factors.op, factors.a, factors.b
    if a.pattern is not None or b.pattern is not None:
        return _scaled_sparse(scope, factors)
    row = a.row or b.row
    if row is not None and a.rank and b.rank:
        raise _row_times(op, row, *factors.operands)
    if op in ("*", "/"):
        _refuse_square(factors)
    if merged((a, b)) is None:
        remedy = parenthesised(factors.node, factors.k)
        raise unequal(scope, f"`{op}`", factors.span, factors.operands, remedy)
    left, right = factors.operands
    _warn_of_totals(scope, (a, b), left.span.to(right.span))
    value = combine(mul if op in ("*", ".*") else div, a, b)
    return value if row is None else replace(value, row=row)


def _scaled_sparse(scope: Scope, factors: _Factors) -> Value:
    """Elementwise products of sparse arrays, and quotients of them by other arrays."""
    op, shapes = factors.op, replace(factors, a=stand_in(factors.a), b=stand_in(factors.b))
    values, spans = (factors.a, factors.b), tuple(one.span for one in factors.operands)
    if op in ("*", "/"):
        _refuse_square(shapes)
    if merged((shapes.a, shapes.b)) is None:
        raise unequal(scope, f"`{op}`", factors.span, shapes.operands)
    if op in ("/", "./") and factors.b.pattern is not None:
        raise dense_needed(
            spans[1], "divide at its entries: `sum(B[i, j] / A[i, j] for i, j in A)`"
        )
    if any(one.row is not None for one in values):
        raise misplaced_row(next(one.row for one in values if one.row is not None))
    pattern = sparse.common_pattern(values)
    if pattern is None:
        raise sparse.other_pattern(spans, values)
    a, b = (sparse.sampled(value, pattern) for value in values)
    return replace(combine(mul if op in ("*", ".*") else div, a, b), pattern=pattern)


def _remainder(scope: Scope, factors: _Factors) -> Value:
    """`a % b` of whole numbers that do not depend on variables, with the sign of b."""
    for value, one in zip((factors.a, factors.b), factors.operands, strict=True):
        if not is_table(value.expr, scope.model):
            message = f"`%` takes whole numbers, and `{one.text}` may be any number"
            remedy = "it is for indices and conditions: `x[(i + 1) % n]`, `if i % 2 == 0`"
            raise error("E209", message, factors.span, remedy)
    if merged((factors.a, factors.b)) is None:
        raise unequal(scope, "`%`", factors.span, factors.operands)
    return remainder(factors.a, factors.b)


def _row_times(op: str, row: Span, left: Operand, right: Operand) -> StatementError:
    """The error for a transposed vector as operand of `*` or `/`."""
    if op == "*" and max(left.value.rank, right.value.rank) > 1:
        return misplaced_row(
            row, f"write `@` for a matrix product, as in `{left.text} @ {right.text}`"
        )
    if op not in ("*", ".*") or left.value.rank != 1 or right.value.rank != 1:
        return misplaced_row(row)
    a, b = (one.text.removesuffix("'").removesuffix(".T") for one in (left, right))
    message = "a transposed vector may only be the left operand of `@`"
    remedy = f"write `{a} .* {b}` for the elementwise or `{a} @ {b}` for the dot product"
    return shape_error("E207", message, row, remedy, marks=marks(left, right))


def _refuse_square(factors: _Factors) -> None:
    """Raise an error for `*` and `/` of square matrices over the same dim, which are ambiguous."""
    if not is_square(factors.b) or (factors.op == "*" and factors.a.axes != factors.b.axes):
        return
    left, right = factors.operands
    a, b = left.bracketed, right.bracketed
    if factors.op == "*":
        message = f"`*` of two square matrices {show(left.value)} is ambiguous"
        remedy = f"write `{a} .* {b}` for the elementwise or `{a} @ {b}` for the matrix product"
    else:
        message = f"`/` by a square matrix {show(right.value)} is ambiguous"
        inverse = f"{a} @ inv({right.text})" if left.value.rank else f"{a} * inv({right.text})"
        remedy = f"write `{a} ./ {b}` for the elementwise quotient or `{inverse}` for the other"
    raise shape_error("E206", message, factors.span, remedy, marks=marks(left, right))


def _matrix_product(scope: Scope, factors: _Factors) -> Value:
    if factors.a.pattern is not None or factors.b.pattern is not None:
        return _sparse_product(scope, factors)
    a, b, span = factors.a, factors.b, factors.span
    if b.row is not None:
        raise _right_row(*factors.operands, b.row)
    if not a.rank or not b.rank:
        left, right = factors.operands
        scalar, other = (left, right) if not a.rank else (right, left)
        remedy = f"write `{scalar.bracketed} * {other.bracketed}`"
        message = f"`@` needs arrays: {show(a)} and {show(b)}"
        raise shape_error("E205", message, span, remedy, marks=marks(left, right))
    a, b = with_unit_axes(a), with_unit_axes(b)
    if a.axes[-1] != b.axes[max(b.rank - 2, 0)]:
        raise unfit_product(scope, span, *factors.operands)
    stacked = max(a.rank, b.rank, 2) - 2
    if min(a.rank, b.rank) > 2 and a.axes[:-2] != b.axes[:-2]:
        message = f"`@` needs equal dims before the last two: {show(a)} and {show(b)}"
        remedy = 'write `einsum("aij,bjk->abik", A, B)` or a sum by index'
        raise shape_error("E205", message, span, remedy, marks=marks(*factors.operands))
    stack = tuple(range(stacked))
    own = ((*stack, "i", "k") if a.rank > 2 else ("i", "k"))[-a.rank :]
    other_keys = (*stack, "k", "j") if b.rank > 2 else ("k", "j")[: b.rank]
    rows, columns = ("i",) * (a.rank > 1), ("j",) * (b.rank > 1)
    return contract([(a, own), (b, other_keys)], (*stack, *rows, *columns))


def _sparse_product(scope: Scope, factors: _Factors) -> Value:
    shapes = replace(factors, a=stand_in(factors.a), b=stand_in(factors.b))
    left, right = factors.operands
    if factors.a.pattern is not None and factors.b.pattern is not None:
        remedy = "multiply them before, and give the product as sparse data"
        raise dense_needed(right.span, remedy)
    if factors.b.row is not None:
        raise _right_row(left, right, factors.b.row)
    if not {shapes.a.rank, shapes.b.rank} <= {1, 2} or (shapes.a.rank, shapes.b.rank) == (1, 1):
        message = f"`@` of sparse data is of a matrix: {show(factors.a)} and {show(factors.b)}"
        remedy = "write `sum(a[i] * x[i] for i in a)` for a dot product"
        raise shape_error("E205", message, factors.span, remedy)
    if with_unit_axes(shapes.a).axes[-1] != with_unit_axes(shapes.b).axes[0]:
        raise unfit_product(scope, factors.span, *shapes.operands)
    return sparse.product(factors.a, factors.b, scope.model)


def _right_row(left: Operand, right: Operand, row: Span) -> StatementError:
    vector = right.text.rstrip("'").removesuffix(".T")
    if left.value.rank == 1 and left.value.row is None:
        remedy = f"write `dot({left.text}, {vector})` or `outer({left.text}, {vector})`"
    else:
        remedy = f"a vector has one axis: write `{left.bracketed} @ {vector}`"
    message = "a transposed vector may only be the left operand of `@`"
    return shape_error("E207", message, row, remedy, marks=marks(left, right))


def power(node: Power, request: ValueRequest) -> Steps:
    scope = request.scope
    base = yield ValueRequest(node.base, scope, sparse=True)
    exponent = yield ValueRequest(node.exponent, scope)
    left, right = operand(node.base, base), operand(node.exponent, exponent)
    if node.op == "^" and is_square(stand_in(base)):
        a, p = left.bracketed, right.bracketed
        message = f"`^` of a square matrix {show(base)} is ambiguous"
        product = f"or `{a} @ {a}` for the matrix product" if p == "2" else "or products with `@`"
        if p in ("(-1)", "-1"):
            product = f"or `inv({left.text})` for the inverse"
        remedy = f"write `{a} .^ {p}` for elementwise powers {product}".replace(" ;", ";")
        raise shape_error("E206", message, node.op_span, remedy, marks=marks(left))
    if base.pattern is not None:
        return sparse.mapped(pow, (base, exponent), (node.base.span, node.exponent.span))
    if merged((base, exponent)) is None:
        raise unequal(scope, f"`{node.op}`", node.op_span, (left, right))
    return power_of(base, exponent)


def transposition(node: Transpose, request: ValueRequest) -> Steps:
    value = yield ValueRequest(node.operand, request.scope, sparse=True)
    if value.pattern is not None and stand_in(value).rank == 2:
        return sparse.transposed(value)
    if value.pattern is not None:
        raise dense_needed(node.operand.span)
    if value.rank > 2:
        remedy = 'name the order: `einsum("ijk->kji", T)`'
        message = f"`'` needs a matrix or a vector, not {show(value)}"
        raise shape_error(
            "E207", message, node.op_span, remedy, marks=marks(operand(node.operand, value))
        )
    if value.rank == 1:
        return replace(value, row=node.op_span)
    if value.rank == 0:
        return value
    return transposed(value)


def transposed(value: Value) -> Value:
    """The matrix with its axes swapped, including axes created by `None`."""
    count = len(value.labels)
    if None in value.axes:
        return replace(value, axes=value.axes[::-1])
    order = (*range(count), count + 1, count)
    return replace(value, expr=build.transpose(value.expr, order), axes=value.axes[::-1])


def comparison(node: Compare, request: ValueRequest) -> Steps:
    scope = request.scope
    a = yield ValueRequest(node.left, scope)
    b = yield ValueRequest(node.right, scope)
    left, right = operand(node.left, a), operand(node.right, b)
    if node.op in ("==", "!="):
        named = [i.name for v in (a, b) for i in inputs(v.expr) if i.role == "variable"]
        if named:
            message = f"`{node.op}` on the variable `{named[0]}` only holds at isolated points"
            remedy = "compare with `<=` or `>=`, or test data only"
            raise error("E219", message, node.op_span, remedy)
    if merged((a, b)) is None:
        raise unequal(scope, f"`{node.op}`", node.op_span, (left, right))
    return combine(_COMPARISONS[node.op], a, b)


def connective(node: BoolOp, request: ValueRequest) -> Steps:
    """The value of conditions joined by `and` or `or`, each of which guards those after it."""
    scope = request.scope
    function = land if node.op == "and" else lor
    value = yield ValueRequest(node.operands[0], scope)
    for k, other_node in enumerate(node.operands[1:], start=1):
        decides = value if node.op == "and" else combine(lnot, value)
        other = yield from under_condition(other_node, scope, decides)
        if merged((value, other)) is None:
            nodes = node.operands[:k]
            left = Operand(nodes[0].span.to(nodes[-1].span), nodes, value)
            raise unequal(scope, f"`{node.op}`", node.span, (left, operand(other_node, other)))
        value = combine(function, value, other)
    return value


def inversion(node: Not, request: ValueRequest) -> Steps:
    value = yield ValueRequest(node.operand, request.scope)
    return combine(lnot, value)
