"""The power series of every node of a graph, in the unknowns of a ball or of a cell.

Linear nodes apply to coefficients, and to norms by their magnitudes; products and functions follow
`algebra` and `functions`. Choices are made where the values over the region decide them. Nodes
marked constant are shifts that values do not depend on (`functions/shifted.py`): any function will
do for them, and the polynomial of the element that is the largest at the centre is taken, so that
the exponential of that element remains 1. Loops are executed step by step (`loops`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from slomodel import functions
from slomodel.bounds.arithmetic.interval import Interval, from_zero, point
from slomodel.bounds.arithmetic.monomials import Monomials
from slomodel.bounds.arithmetic.power_series import PowerSeries, enlarged, exactly, unknown
from slomodel.bounds.arithmetic.rounding import Array
from slomodel.bounds.part import ObjectivePart
from slomodel.bounds.ranges.enclose import range_of
from slomodel.bounds.ranges.power_series.composed import chosen
from slomodel.bounds.ranges.power_series.functions import (
    BINARY,
    UNARY,
    exponential,
    logarithm,
    power,
)
from slomodel.bounds.ranges.power_series.loops import Loops
from slomodel.bounds.ranges.power_series.matrices import matrix_operation
from slomodel.bounds.ranges.power_series.narrow import Narrow, narrow, narrow_inverse
from slomodel.bounds.ranges.power_series.node_values import (
    Decision,
    Value,
    at_centre,
    common_shape,
    interval_of,
    is_constant,
    laid_out,
    spread_over,
    stacked,
)
from slomodel.bounds.ranges.power_series.sigmoid_series import log_sum_exp
from slomodel.bounds.ranges.values import value_range
from slomodel.bounds.stopping import pause
from slomodel.bounds.structure.log_sum_exp import log_sum_operand
from slomodel.functions.compound import stop_gradient
from slomodel.ir.build import variable
from slomodel.ir.dims import concrete
from slomodel.ir.exact import without_rounding
from slomodel.ir.expr import (
    Axes,
    Const,
    Einsum,
    Expr,
    Extreme,
    Gather,
    Map,
    MatrixOperation,
    Recur,
    Reshape,
    Scan,
    Scatter,
)
from slomodel.ir.function import RangeRule, ScalarFunction
from slomodel.ir.walk import postorder

Sizes = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class SeriesPass:
    """The propagation over the points with |z_i| <= `part`, with the series of the inputs."""

    table: Monomials
    sizes: Sizes
    part: float

    def values_of(self, root: Expr, given: Mapping[Expr, Value]) -> dict[Expr, Value]:
        """The values of all nodes under a root."""
        result = dict(given)
        order = postorder(root)
        every = frozenset(order)
        log_sums = {
            node: own for node in order if (own := log_sum_operand(node, every)) is not None
        }
        few: dict[Expr, Narrow] = {}
        inner: dict[Expr, tuple[Expr, ...]] = {
            node: (own[0], _shift_of(node)) for node, own in log_sums.items()
        }
        for node in order:
            if (one := narrow(node, result, self.table, self.sizes)) is not None:
                few[node], inner[node] = one, ()
            elif (one := narrow_inverse(node, result, self.table, self.sizes)) is not None:
                few[node], inner[node] = one, node.operands[1:]
        with np.errstate(all="ignore"):
            for node in _needed(root, order, result, inner):
                pause()
                if node in few:
                    result[node] = self._of_few(few[node], [result[o] for o in inner[node]], given)
                elif node in log_sums:
                    result[node] = self._log_sum(node, *log_sums[node], result)
                elif isinstance(node, Recur):
                    loops = Loops(self.table, self.sizes, self.values_of)
                    states = loops.states(node, [result[o] for o in node.operands])
                    result |= zip(node.states, states, strict=True)
                else:
                    result[node] = self._value(node, [result[o] for o in node.operands])
        return result

    def _of_few(
        self, own: Narrow, others: Sequence[Value], given: Mapping[Expr, Value]
    ) -> PowerSeries:
        """An operation on a matrix in few unknowns, or its inverse times the other operand."""
        run = SeriesPass(own.table, self.sizes, self.part)
        value = run.values_of(own.node, own.given(given))[own.node]
        assert isinstance(value, PowerSeries)
        result = own.widened(value, self.table)
        for other in others:
            assert isinstance(other, PowerSeries)
            result = result @ other
        return result

    def _log_sum(
        self, node: Expr, u: Expr, summed: Axes, known: Mapping[Expr, Value]
    ) -> PowerSeries:
        """log Σ exp(u - m), from u itself."""
        own, shift = known[u], known[_shift_of(node)]
        assert isinstance(own, PowerSeries)
        assert isinstance(shift, PowerSeries)
        by_pairs = log_sum_exp(own, summed) - shift
        if np.isfinite(by_pairs.norm).all():
            return by_pairs
        # Terms that are negligible together may still be far apart from one another.
        kept = tuple(axis for axis in range(len(own.shape)) if axis not in summed)
        wide = shift.each(lambda array: np.expand_dims(array, tuple(1 + a for a in summed)))
        terms = exponential(own - wide)
        labels = tuple(range(len(own.shape)))
        total = Einsum((variable("terms", u.shape),), (labels,), kept, u.shape)
        by_sum = logarithm(self._linear(total, [terms], 0))
        return chosen(by_pairs.norm <= by_sum.norm, by_pairs, by_sum)

    def _value(self, node: Expr, operands: list[Value]) -> Value:
        if node.dtype == "bool" or not all(is_constant(one) for one in operands):
            return self._varying(node, operands)
        own = range_of(node, [interval_of(one) for one in operands], self.sizes, 0)
        shape = concrete(node.shape, self.sizes)
        return PowerSeries.constant(self.table, own.broadcast(shape))

    def _varying(self, node: Expr, operands: list[Value]) -> Value:
        if isinstance(node, Map):
            laid = [laid_out(one, node, k) for k, one in enumerate(operands)]
            result = self._applied(node.function, laid)
            return spread_over(result, concrete(node.shape, self.sizes))
        if node.dtype == "bool" or any(isinstance(one, Decision) for one in operands):
            return self._of_truths(node, operands)
        series = [one for one in operands if isinstance(one, PowerSeries)]
        if isinstance(node, Einsum):
            return self._einsum(node, series)
        if isinstance(node, (Gather, Reshape, Scatter)):
            return self._linear(node, series, 0)
        if isinstance(node, MatrixOperation):
            return matrix_operation(node.function, series)
        if isinstance(node, Extreme):
            return self._extreme(node, series[0])
        if isinstance(node, Scan):
            return self._scan(node, *series)
        return unknown(self.table, concrete(node.shape, self.sizes))

    def _of_truths(self, node: Expr, operands: Sequence[Value]) -> Value:
        over = range_of(node, [self._range(one) for one in operands], self.sizes, 0)
        at = range_of(node, [point(at_centre(one)) for one in operands], self.sizes, 0)
        if node.dtype == "bool":
            return Decision(over, at.lo > 0.5)
        # A step that the region does not decide has no series.
        error = np.where(over.lo < over.hi, np.inf, enlarged(over.rad_about(at.mid)))
        return PowerSeries(self.table, at.mid[np.newaxis], np.zeros(over.shape), error)

    def _range(self, value: Value) -> Interval:
        return value.over if isinstance(value, Decision) else value.range_over(self.part)

    def _applied(self, function: ScalarFunction, operands: Sequence[Value]) -> Value:
        """A function of operands of one shape."""
        if function is functions.where:
            return self._choice(operands[0], operands[1], operands[2])
        if function.result == "bool":
            over = value_range(function, *(self._range(one) for one in operands))
            at = value_range(function, *(point(at_centre(one)) for one in operands))
            return Decision(over, at.lo > 0.5)
        series = [one for one in operands if isinstance(one, PowerSeries)]
        if len(series) < len(operands):
            return unknown(self.table, common_shape(operands))
        if function is stop_gradient:
            return _polynomial(series[0])
        if all(is_constant(one) for one in series):
            return PowerSeries.constant(
                self.table, value_range(function, *(one.interval for one in series))
            )
        if function in UNARY:
            return UNARY[function](series[0])
        if function in BINARY:
            return BINARY[function](series[0], series[1])
        return self._of_pieces(function, series)

    def _of_pieces(self, function: ScalarFunction, series: list[PowerSeries]) -> Value:
        """Functions with branches, and those with a form in terms of other functions."""
        first = series[0]
        if function is functions.abs:
            return self._by_sign(first, -first)
        if function is functions.relu:
            return self._by_sign(first, PowerSeries.constant(self.table, exactly(0.0 * first.c[0])))
        if function is functions.pow and is_constant(series[1]) and not series[1].error.any():
            return _power(first, series[1].c[0])
        if function in (functions.maximum, functions.minimum):
            a, b = series
            apart = a - b if function is functions.maximum else b - a
            return self._choice(self._is_positive(apart), a, b)
        form = function.stable or function.unary_form
        # A record without ranges has no bounds; `limited`, in no table, is known by its form.
        is_stated = function.ranges is not RangeRule.UNKNOWN
        if form is None or not (is_stated or function.name not in functions.FUNCTIONS):
            return unknown(self.table, common_shape(series))
        inputs = [variable(f"u{k}", ()) for k in range(len(series))]
        with without_rounding():
            graph = form(*inputs)
        known: dict[Expr, Value] = dict(zip(inputs, series, strict=True))
        rank = len(common_shape(series))
        for node in postorder(graph):
            if node in known:
                continue
            if isinstance(node, Const):
                wide = np.full((1,) * rank, float(node.value))
                known[node] = _constant_value(self.table, node, wide)
            else:
                assert isinstance(node, Map)
                known[node] = self._applied(node.function, [known[o] for o in node.operands])
        return known[graph]

    def _is_positive(self, u: PowerSeries) -> Decision:
        own = u.range_over(self.part)
        over = Interval((own.lo >= 0.0).astype(float), (~(own.hi <= 0.0)).astype(float))
        return Decision(Interval(over.lo, np.maximum(over.lo, over.hi)), u.c[0] > 0.0)

    def _by_sign(self, positive: PowerSeries, negative: PowerSeries) -> Value:
        return self._choice(self._is_positive(positive), positive, negative)

    def _choice(self, condition: Value, a: Value, b: Value) -> Value:
        """a or b, unknown where the condition is undecided."""
        if not isinstance(condition, Decision):
            over = condition.interval
            condition = Decision(over, over.lo > 0.5)
        if isinstance(a, Decision) or isinstance(b, Decision):
            return unknown(self.table, common_shape((condition, a, b)))
        shape = common_shape((condition, a, b))
        true, false = condition.over.lo == 1.0, condition.over.hi == 0.0
        result = chosen(np.where(true | false, true, condition.at_centre), a, b)
        undecided = np.broadcast_to(~(true | false), shape)
        return PowerSeries(
            self.table, result.c, result.tail, np.where(undecided, np.inf, result.error)
        )

    def _extreme(self, node: Extreme, u: PowerSeries) -> PowerSeries:
        """The element that is the largest at the centre, where no other can exceed it."""
        if node.which == "min":
            u = -u
        rank = len(u.shape)
        kept = [axis for axis in range(rank) if axis not in node.axes]

        def flat(array: Array) -> Array:
            moved = np.transpose(array, (0, *(1 + axis for axis in (*kept, *node.axes))))
            return moved.reshape((*moved.shape[: 1 + len(kept)], -1))

        wide = u.each(flat)
        place = np.argmax(np.nan_to_num(wide.c[0], nan=-np.inf), axis=-1, keepdims=True)
        one = wide.each(lambda array: np.take_along_axis(array, place[np.newaxis], -1))
        lead = (one - wide).range_over(self.part).lo
        np.put_along_axis(lead, place, np.inf, -1)
        certain = (lead >= 0.0).all(axis=-1)
        result = one.each(lambda array: array[..., 0])
        error = np.where(certain, result.error, np.inf)
        result = PowerSeries(self.table, result.c, result.tail, error)
        return -result if node.which == "min" else result

    def _linear(self, node: Expr, operands: Sequence[PowerSeries], k: int) -> PowerSeries:
        """A node that is linear in operand k, the others being constant."""
        u = operands[k]
        own = [one.interval if j != k else None for j, one in enumerate(operands)]

        def through(a: Interval, others: Callable[[Interval], Interval]) -> Interval:
            batch = [
                a if one is None else others(one.each(lambda array: array[np.newaxis]))
                for one in own
            ]
            return range_of(node, batch, self.sizes, 1)

        coefficients = through(point(u.c), lambda one: one)
        middle = coefficients.mid
        error = np.zeros(middle.shape[1:])
        if not coefficients.is_point:
            error = coefficients.rad_about(middle).sum(axis=0)
        # Of products, the magnitudes of the other factors; index tables remain what they are.
        sizes = _sizes if isinstance(node, Einsum) else _same
        norms = [u.tail, u.error]
        for j, norm in enumerate(norms):
            if norm.any():
                if np.isfinite(norm).all():
                    norms[j] = through(exactly(norm[np.newaxis]), sizes).hi[0]
                else:
                    norms[j] = _unbounded(through, norm, isinstance(node, Einsum))
            else:
                norms[j] = np.zeros(middle.shape[1:])
        return PowerSeries(self.table, middle, norms[0], enlarged(norms[1] + error))

    def _einsum(self, node: Einsum, operands: Sequence[PowerSeries]) -> PowerSeries:
        varying = [k for k, one in enumerate(operands) if not is_constant(one)]
        if len(varying) == 1:
            return self._linear(node, operands, varying[0])
        dims = concrete(node.dims, self.sizes)
        if len(varying) == 2 and len(operands) == 2:
            result = _as_matrices(node, operands[0], operands[1])
            if result is not None:
                return result
        whole, *others = (
            one.each(partial(_over_labels, own=own, rank=len(dims)))
            for one, own in zip(operands, node.inputs, strict=True)
        )
        for one in others:
            whole = whole * one
        wide = whole.each(lambda array: np.broadcast_to(array, (len(array), *dims)))
        return self._linear(_summed(node), [wide], 0)

    def _scan(self, node: Scan, factor: PowerSeries, term: PowerSeries) -> PowerSeries:
        axis = node.axis
        length = term.shape[axis]
        parts: list[PowerSeries] = []
        for t in range(length):
            own = [one.each(partial(np.take, indices=t, axis=axis + 1)) for one in (factor, term)]
            parts.append(own[1] if not parts else own[0] * parts[-1] + own[1])
        return stacked(self.table, parts, axis)


def _shift_of(log_sum: Expr) -> Expr:
    """The m of log Σ exp(u - m)."""
    (total,) = log_sum.operands
    (exponential,) = total.operands
    return exponential.operands[0].operands[1]


def _needed(
    root: Expr,
    order: Sequence[Expr],
    known: Collection[Expr],
    inner: Mapping[Expr, tuple[Expr, ...]],
) -> list[Expr]:
    """The nodes of a postorder that the root is computed from, some by other nodes: `inner`."""
    wanted, result = {root}, []
    for node in reversed(order):
        if node in wanted and node not in known:
            result.append(node)
            wanted.update(inner.get(node, node.operands))
    return result[::-1]


def _sizes(a: Interval) -> Interval:
    return from_zero(a.magnitude)


def _same(a: Interval) -> Interval:
    return a


def _unbounded(
    through: Callable[[Interval, Callable[[Interval], Interval]], Interval],
    norm: Array,
    is_product: bool,
) -> Array:
    """Norms of which some are infinite or unknown, through a linear node.

    What is unknown may be infinite or no number, and stays so in a product with 0.
    """
    bad = ~np.isfinite(norm)
    kept = (lambda one: exactly(np.ones(one.shape))) if is_product else _same
    sizes = _sizes if is_product else _same
    reached = through(exactly(bad.astype(float)[np.newaxis]), kept).hi[0]
    finite = through(exactly(np.where(bad, 0.0, norm)[np.newaxis]), sizes).hi[0]
    return np.where(reached > 0.0, np.inf, finite)


def _summed(node: Einsum) -> Einsum:
    """The sum of a product that is written over all labels."""
    labels = tuple(range(len(node.dims)))
    return Einsum((variable("product", node.dims),), (labels,), node.output, node.dims)


def _over_labels(array: Array, own: tuple[int, ...], rank: int) -> Array:
    """Axes in the order of the labels, with diagonals of repeated ones."""
    seen: list[int] = []
    for label in own:
        if label in seen:
            k = seen.index(label)
            array = np.moveaxis(np.diagonal(array, axis1=1 + k, axis2=1 + len(seen)), -1, 1 + k)
        else:
            seen.append(label)
    order = sorted(range(len(seen)), key=lambda k: seen[k])
    moved = np.transpose(array, (0, *(1 + k for k in order)))
    missing = tuple(1 + label for label in range(rank) if label not in seen)
    return np.expand_dims(moved, missing)


def _as_matrices(node: Einsum, a: PowerSeries, b: PowerSeries) -> PowerSeries | None:
    """Σ_k a_ik b_kj and its transposes as one product of matrices; None for other products."""
    first, second = node.inputs
    if len(node.dims) > 3 or len(set(first)) < len(first) or len(set(second)) < len(second):
        return None
    summed = [label for label in range(len(node.dims)) if label not in node.output]
    if len(summed) != 1 or summed[0] not in first or summed[0] not in second:
        return None
    k = summed[0]
    rows = [label for label in first if label != k]
    columns = [label for label in second if label != k]
    if set(rows) & set(columns) or len(rows) > 1 or len(columns) > 1:
        return None
    if sorted(node.output) != sorted(rows + columns):
        return None
    left = a.each(partial(_matrix, own=first, order=(*rows, k), axis=1))
    right = b.each(partial(_matrix, own=second, order=(k, *columns), axis=2))
    product = left @ right

    def laid(array: Array) -> Array:
        kept = array.reshape(
            (len(array), *(array.shape[1:2] if rows else ()), *(array.shape[2:] if columns else ()))
        )
        if rows and columns and node.output != (*rows, *columns):
            kept = np.swapaxes(kept, 1, 2)
        return kept

    return product.each(laid)


def _matrix(array: Array, own: tuple[int, ...], order: tuple[int, ...], axis: int) -> Array:
    """A matrix, or a vector with a further axis of length 1."""
    moved = np.transpose(array, (0, *(1 + own.index(label) for label in order)))
    return np.expand_dims(moved, axis) if len(order) == 1 else moved


def _polynomial(u: PowerSeries) -> PowerSeries:
    """The coefficients as a polynomial, or their constants where there is no such polynomial."""
    c = u.c if np.isfinite(u.c).all() else u.c[:1]
    return PowerSeries(u.table, c, np.zeros(u.shape), np.zeros(u.shape))


def _power(u: PowerSeries, exponents: Array) -> PowerSeries:
    """u to constant exponents."""
    shape = np.broadcast_shapes(exponents.shape, u.shape)
    u = u.each(lambda array: np.broadcast_to(array, (len(array), *shape)))
    wide = np.broadcast_to(exponents, shape)
    result: PowerSeries | None = None
    for one in np.unique(wide):
        own = power(u, float(one))
        result = own if result is None else chosen(wide == one, own, result)
    return u if result is None else result


def _constant_value(table: Monomials, node: Const, wide: Array) -> Value:
    if node.dtype == "bool":
        return Decision(point(wide), wide > 0.5)
    return PowerSeries.constant(table, exactly(wide))


def inputs_of(part: ObjectivePart, series: PowerSeries) -> dict[Expr, Value]:
    """The series of all inputs: those of the unknowns (n,) by variable, and the data."""
    parts = [part.by_variable(array) for array in (series.c, series.tail, series.error)]
    result: dict[Expr, Value] = {
        one: PowerSeries(series.table, *(own[one] for own in parts)) for one in part.variables
    }
    for node, array in part.values.items():
        if node not in result:
            result[node] = PowerSeries.constant(series.table, exactly(array))
    return result
