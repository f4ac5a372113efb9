"""Indices and sizes that are affine in dims and index variables, and checks of their range."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from slomodel.errors import Span
from slomodel.front.elaboration.errors import StatementError, error, shape_error
from slomodel.front.elaboration.foreign_names import COUNTS, SIZES
from slomodel.front.elaboration.scope import Elaboration, Scope, Symbol, described
from slomodel.front.elaboration.values import Label, Value, combine, number, number_of
from slomodel.front.text.syntax import (
    FunctionCall,
    Name,
    Negate,
    Node,
    NumberLiteral,
    ProductChain,
    Slice,
    SumChain,
)
from slomodel.front.text.traversal import children
from slomodel.functions import add, mul
from slomodel.ir import build
from slomodel.ir.dims import Dim, literal
from slomodel.problem import Bound

_LARGEST = 10**15
_PRODUCT = "declare a dim for the product, `dim k = m*n`, and write `k`"


@dataclass(frozen=True, slots=True)
class AffineIndex:
    """`offset + sum(coefficient * position of label)`; no coefficient is 0."""

    offset: Dim
    labels: Mapping[Label, int] = field(default_factory=dict)

    def plus(self, other: AffineIndex, factor: int = 1) -> AffineIndex:
        total = dict(self.labels)
        for label, coefficient in other.labels.items():
            total[label] = total.get(label, 0) + factor * coefficient
        kept = {label: c for label, c in total.items() if c}
        return AffineIndex(self.offset + other.offset * factor, kept)

    def times(self, factor: int) -> AffineIndex:
        return AffineIndex(Dim()).plus(self, factor)

    @property
    def constant(self) -> int | None:
        """The value, if it depends on neither a dim nor a label; otherwise None."""
        return None if self.labels or not self.offset.is_literal else self.offset.const

    @property
    def least(self) -> Dim:
        """The smallest value, if every label takes at least one value."""
        return self._extreme(-1)

    @property
    def most(self) -> Dim:
        return self._extreme(1)

    def _extreme(self, sign: int) -> Dim:
        total = self.offset
        for label, coefficient in self.labels.items():
            if coefficient * sign > 0:
                total = total + (label.dim - 1) * coefficient
        return total


def value_of_affine(index: AffineIndex) -> Value:
    """The values of an affine form, over its labels."""
    total = number_of(index.offset)
    for label, coefficient in index.labels.items():
        term = Value(build.iota(label.dim), (label,))
        if coefficient != 1:
            term = combine(mul, term, number(float(coefficient)))
        total = combine(add, total, term)
    return total


def is_inside(index: AffineIndex, axis: Dim) -> bool:
    """Whether an index is inside an axis for all sizes."""
    known = is_at_least_zero(index.least), is_at_least_zero(axis - 1 - index.most)
    return known == (True, True)


def affine(node: Node, scope: Scope) -> AffineIndex:
    """The affine form of an expression. Raises StatementError at a part that is not affine."""
    results: list[AffineIndex] = []
    stack: list[tuple[Node, bool]] = [(node, False)]
    while stack:
        current, is_left = stack.pop()
        below = children(current)
        if not is_left and isinstance(current, (Negate, SumChain, ProductChain)):
            stack.append((current, True))
            stack.extend((child, False) for child in reversed(below))
            continue
        if not is_left:
            results.append(_leaf(current, scope))
            continue
        operands = results[-len(below) :]
        del results[-len(below) :]
        results.append(_combined(current, operands))
    return results[0]


def moving_slice(item: Slice, scope: Scope) -> tuple[AffineIndex, Dim] | None:
    """The first index and the length of a slice whose ends depend on indices, as in `y[t-3:t]`."""
    if item.lo is None or item.hi is None or item.step is not None:
        return None
    low, high = affine(item.lo, scope), affine(item.hi, scope)
    length = high.plus(low, -1)
    return (low, length.offset) if low.labels and not length.labels else None


def size(node: Node, scope: Scope) -> Dim:
    """A size that is affine in dims alone."""
    form = affine(node, scope)
    if form.labels:
        name = next(iter(form.labels)).name
        message = f"a size may not depend on the index `{name}`"
        raise error("E209", message, node.span, "restrict a sum with `if`, as in `if i < j`")
    return form.offset


def whole(node: Node, scope: Scope) -> int:
    """The value of a literal whole number."""
    number = affine(node, scope).constant
    if number is None:
        raise _not_whole(node.span)
    return number


def _leaf(node: Node, scope: Scope) -> AffineIndex:
    if isinstance(node, NumberLiteral):
        if node.value.is_integer() and abs(node.value) <= _LARGEST:
            return AffineIndex(literal(int(node.value)))
        raise _not_whole(node.span)
    if isinstance(node, Name):
        result = scope.find(node)
        if isinstance(result, Label):
            return AffineIndex(result.start, {result: result.step})
        if isinstance(result, Symbol) and result.dim is not None:
            return AffineIndex(result.dim)
        what = described(result) if isinstance(result, Symbol) else f"`{node.text}` is a parameter"
        raise _not_affine(node.span, what)
    remedy = size_query_remedy(node, scope) if isinstance(node, FunctionCall) else ""
    raise _not_affine(node.span, f"`{node.span.text}` is more than that", remedy)


def size_query_remedy(node: FunctionCall, scope: Scope) -> str:
    """The remedy for a call that queries sizes, such as `len(y)`; empty for other calls."""
    name, of = node.function.text, node.args[0] if node.args else None
    if name not in SIZES and name not in COUNTS:
        return ""
    result = scope.model.symbols.get(of.text) if isinstance(of, Name) else None
    if result is None or result.value is None or not result.value.rank:
        return "the size of an axis is its dim: write its name, such as `n` of `x[n]`"
    dims = [str(dim) for dim in result.value.dims]
    if name in COUNTS:
        return f"write `{' * '.join(f'({dim})' if ' ' in dim else dim for dim in dims)}`"
    listed = " or ".join(f"`{dim}`" for dim in dict.fromkeys(dims))
    return f"the size of an axis is its dim: of `{result.name}` write {listed}"


def _combined(node: Node, operands: list[AffineIndex]) -> AffineIndex:
    if isinstance(node, Negate):
        return operands[0].times(-1)
    result = operands[0]
    assert isinstance(node, (SumChain, ProductChain))
    for term, other in zip(node.rest, operands[1:], strict=True):
        if isinstance(node, SumChain):
            result = result.plus(other, 1 if term.op == "+" else -1)
            continue
        if term.op not in ("*", ".*"):
            raise _not_affine(term.op_span, f"`{term.op}` is not allowed in it")
        if other.constant is not None:
            result = result.times(other.constant)
        elif result.constant is not None:
            result = other.times(result.constant)
        elif result.labels or other.labels:
            raise _not_affine(term.op_span, "names may not be multiplied in it")
        else:
            raise _not_affine(term.op_span, "names may not be multiplied in it", _PRODUCT)
    return result


def _not_whole(span: Span) -> StatementError:
    remedy = "indices, axes and sizes are whole numbers, like `0`, `1` or `2`"
    return error("E209", f"`{span.text}` is not a whole number", span, remedy)


def _not_affine(span: Span, reason: str, remedy: str = "") -> StatementError:
    message = f"an index or size may contain index variables, dims and whole numbers: {reason}"
    remedy = remedy or "write it like `i`, `i + 1`, `2*i` or `n - 1 - i`"
    return error("E209", message, span, remedy)


def is_at_least_zero(dim: Dim) -> bool | None:
    """Whether a dim is ≥ 0: True or False if so for all sizes, None if it depends on them."""
    coefficients = [c for _, c in dim.terms]
    if dim.const >= 0 and all(c > 0 for c in coefficients):
        return True
    return False if dim.const < 0 and all(c < 0 for c in coefficients) else None


def check_index(model: Elaboration, index: AffineIndex, axis: Dim, span: Span) -> None:
    """Check that `index` lies inside an axis of size `axis`: now if possible, otherwise at bind."""
    counts = [label.dim for label in index.labels]
    if any(count == Dim() for count in counts):
        return
    low, high = is_at_least_zero(index.least), is_at_least_zero(axis - 1 - index.most)
    if low and high:
        return
    if low is False or high is False:
        raise _outside(index, axis, span, is_low=low is False)
    by_name = all(not label.is_range and c == 1 for label, c in index.labels.items())
    if high is None and len(counts) == 1 and by_name:
        raise _other_axis(index, axis, span)
    count = counts[0] if len(counts) == 1 else literal(1)
    model.require(Bound(index.least, index.most, axis, count, span.text, span))


def check_slice(model: Elaboration, low: Dim, high: Dim, axis: Dim, span: Span) -> None:
    """Check that 0 <= low <= high <= axis: now if possible, otherwise at bind."""
    tests = [is_at_least_zero(low), is_at_least_zero(high - low), is_at_least_zero(axis - high)]
    if any(test is False for test in tests):
        message = f"the slice {low} to {high} leaves an axis of size {axis}"
        if tests[1] is False:
            message = f"the slice {low} to {high} ends before it begins"
        raise shape_error("E210", message, span, "slices of an axis of size n are inside `0:n`")
    if not all(tests):
        model.require(Bound(low, high - 1, axis, high - low, span.text, span))


def _outside(index: AffineIndex, axis: Dim, span: Span, is_low: bool) -> StatementError:
    reached = index.least if is_low else index.most
    message = f"the index reaches {reached}, and the axis of size {axis} has 0 to {axis - 1}"
    remedy = "indices count from 0"
    if index.labels:
        remedy = _restricted(index, axis, is_low)
    return shape_error("E210", message, span, remedy)


def _restricted(index: AffineIndex, axis: Dim, is_low: bool) -> str:
    """The range of a label that keeps an index inside, if the label has coefficient ±1."""
    label = next(iter(index.labels))
    if len(index.labels) > 1 or index.labels[label] != 1:
        return f"restrict it: `{label.name} in range(…)`, which excludes its end"
    shift = index.offset - label.start
    if not is_low and shift == Dim() and label.dim == axis and label.step == 1:
        # Such as the array of `let u[t in range(1, T)] = …` at t.
        own = f"{label.name} - {label.start}"
        return (
            f"`{label.name}` takes as many values as there are elements, from 0 on: write `{own}`"
        )
    start = Dim() - shift if is_low else label.start
    stop = label.start + label.dim if is_low else axis - shift
    bounds = f"{stop}" if start == Dim() else f"{start}, {stop}"
    return f"restrict it: `{label.name} in range({bounds})`, which excludes its end"


def _other_axis(index: AffineIndex, axis: Dim, span: Span) -> StatementError:
    label = next(iter(index.labels))
    remedy = f"take an index over `{axis}`, or `range(…)` for a part of an axis"
    if axis.is_literal:
        remedy = (
            f"write `{label.name} in range({axis})`: what it indexes has at least {axis} elements"
        )
    return shape_error(
        "E211",
        f"the index `{label.name}` runs over `{label.dim}`, and this axis is `{axis}`",
        span,
        remedy,
    )
