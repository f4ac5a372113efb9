"""Index ranges: proved inside their axis at compile time, refused, or left to be tested at bind."""

from __future__ import annotations

from slomodel.errors import Span
from slomodel.front.elaboration.affine import AffineIndex
from slomodel.front.elaboration.faults import Fault, shape_fault
from slomodel.front.elaboration.scope import Model
from slomodel.ir.dims import Dim, literal
from slomodel.problem import Bound


def is_at_least_zero(dim: Dim) -> bool | None:
    """True or False where that holds for all sizes, None where it depends on them."""
    coefficients = [c for _, c in dim.terms]
    if dim.const >= 0 and all(c > 0 for c in coefficients):
        return True
    return False if dim.const < 0 and all(c < 0 for c in coefficients) else None


def check_index(model: Model, index: AffineIndex, axis: Dim, span: Span) -> None:
    """`index` must lie in an axis of size `axis`; what sizes decide is tested at bind."""
    counts = [label.dim for label in index.labels]
    if any(count == Dim() for count in counts):
        return
    low, high = is_at_least_zero(index.least), is_at_least_zero(axis - 1 - index.most)
    if low and high:
        return
    if low is False or high is False:
        raise _outside(index, axis, span, is_low=low is False)
    if high is None and len(counts) == 1 and not next(iter(index.labels)).is_range:
        raise _other_axis(index, axis, span)
    count = counts[0] if len(counts) == 1 else literal(1)
    model.require(Bound(index.least, index.most, axis, count, span.text, span))


def check_slice(model: Model, low: Dim, high: Dim, axis: Dim, span: Span) -> None:
    """0 <= low <= high <= axis."""
    tests = [is_at_least_zero(low), is_at_least_zero(high - low), is_at_least_zero(axis - high)]
    if any(test is False for test in tests):
        message = f"the slice {low} to {high} leaves an axis of size {axis}"
        if tests[1] is False:
            message = f"the slice {low} to {high} ends before it begins"
        raise shape_fault("E210", message, span, "an axis of size n has the slices inside `0:n`")
    if not all(tests):
        model.require(Bound(low, high - 1, axis, high - low, span.text, span))


def _outside(index: AffineIndex, axis: Dim, span: Span, is_low: bool) -> Fault:
    reached = index.least if is_low else index.most
    message = f"the index reaches {reached}, and the axis has the size {axis}: 0 to {axis - 1}"
    remedy = "indices count from 0"
    if index.labels:
        remedy = _restricted(index, axis, is_low)
    return shape_fault("E210", message, span, remedy)


def _restricted(index: AffineIndex, axis: Dim, is_low: bool) -> str:
    """The range that keeps an index inside, where one label moves it by steps of one."""
    label = next(iter(index.labels))
    if len(index.labels) > 1 or index.labels[label] != 1:
        return f"restrict it: `{label.name} in range(…)`, which leaves out its end"
    shift = index.offset - label.start
    start = Dim() - shift if is_low else label.start
    stop = label.start + label.dim if is_low else axis - shift
    bounds = f"{stop}" if start == Dim() else f"{start}, {stop}"
    return f"restrict it: `{label.name} in range({bounds})`, which leaves out its end"


def _other_axis(index: AffineIndex, axis: Dim, span: Span) -> Fault:
    label = next(iter(index.labels))
    return shape_fault(
        "E211",
        f"the index `{label.name}` runs over `{label.dim}`, and this axis is `{axis}`",
        span,
        f"take an index over `{axis}`, or `range(…)` for a part of an axis",
    )
