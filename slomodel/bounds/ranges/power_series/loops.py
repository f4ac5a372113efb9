"""The states of loops as power series, with remainders in coordinates that follow the steps.

Step by step, norms of remainders grow by those of the terms of an update, even where the update
brings states together: s ← s + k(y - s) multiplies them by 1 + k, and not by 1 - k. So where they
are not small, the carried states are ŝ + e with polynomials ŝ, and

    e_t = F(ŝ + e_{t-1}) - ŝ_t = δ_t + J e_{t-1},   δ_t = F(ŝ_{t-1}) - ŝ_t,

where J = ∫ DF(ŝ + τ e) dτ is within the derivatives of F over all ŝ + e'. For e = T w, T = D Q,

    |w_t| <= |T_t⁻¹ δ_t| + ‖T_t⁻¹ J T_{t-1}‖ |w_{t-1}|

with the norm of each entry. Any T will do: Q is the orthogonal factor of the product at the centre,
whose first columns are the directions in which remainders are largest (Lohner), and D the scales of
the states. What is above the degree of the table remains so under J.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from slomodel.bounds.arithmetic.monomials import Monomials
from slomodel.bounds.arithmetic.power_series import (
    PowerSeries,
    enlarged,
    exactly,
    norms_by_degree,
    unknown,
)
from slomodel.bounds.arithmetic.rounding import UNIT, Array
from slomodel.bounds.arithmetic.upper_bounds import FLOOR, floored
from slomodel.bounds.ranges.power_series.node_values import Value, at_centre, slice_of, stacked
from slomodel.bounds.ranges.power_series.step_maps import Carried, StepMap, step_map
from slomodel.ir.dims import concrete
from slomodel.ir.expr import Expr, Recur
from slomodel.ir.loop import SliceAt, Source, StateAt
from slomodel.ir.walk import postorder

_SMALL = 0.1
"""Remainders below this fraction of the most that a state moves hardly matter to bounds."""
_MOST_CARRIED = 8
"""Numbers that are carried: each takes one more evaluation of every step."""
_SLACK = 2.0**-40
"""Far beyond the roundings of products of matrices with few rows, relative to sums of norms."""

Evaluate = Callable[[Expr, Mapping[Expr, Value]], dict[Expr, Value]]
"""The values of all nodes under a root, from given ones."""


@dataclass(frozen=True, slots=True)
class Loops:
    """The execution of loops over series of one table."""

    table: Monomials
    sizes: Mapping[str, int]
    values_of: Evaluate

    def states(self, node: Recur, operands: list[Value]) -> list[PowerSeries]:
        """The states of a loop, executed step by step."""
        run = _Execution(self, node, operands)
        is_lost = any(run.execute(t) and run.is_lost(t) for t in run.steps)
        result = run.unknown() if is_lost else run.result()
        if all(map(_is_settled, result)):
            return result
        step = step_map(node.loop, self.sizes)
        if step is None:
            return result
        other = _Execution(self, node, operands)
        follows = _Coordinates(other, step)
        if not 0 < follows.count <= _MOST_CARRIED:
            return result
        is_done = all(other.execute(t, follows if t >= step.first else None) for t in other.steps)
        return other.result() if is_done else result

    def zeros(self, shape: tuple[int, ...]) -> PowerSeries:
        return PowerSeries.constant(self.table, exactly(np.zeros(shape)))


def _is_settled(state: PowerSeries) -> bool:
    """Whether the remainders of a state at all steps are small."""
    moved = np.abs(state.c[1:]).sum(axis=0).max(initial=0.0)
    at_centre = np.abs(state.c[0]).max(initial=0.0)
    remainder = (state.tail + state.error).max(initial=0.0)
    return bool(remainder <= _SMALL * moved + UNIT**0.5 * at_centre)


class _Execution:
    """The states at each step."""

    def __init__(self, loops: Loops, node: Recur, operands: list[Value]) -> None:
        self.loops, self.loop, self.operands = loops, node.loop, operands
        length = self.loop.length.size(loops.sizes)
        self.steps: Sequence[int] = range(length)
        if self.loop.backwards:
            self.steps = self.steps[::-1]
        self.places: list[list[PowerSeries | None]] = [[None] * length for _ in self.loop.shapes]
        for state, first in zip(self.places, self.loop.initial, strict=True):
            if first is not None:
                own = operands[first]
                for t in range(min(length, len(at_centre(own)))):
                    one = slice_of(own, t)
                    assert isinstance(one, PowerSeries)
                    state[t] = one
        bodies = [set(postorder(update.value)) for update in self.loop.updates]
        self.reads = [
            [(one, source) for one, source in self.loop.sources if one in under] for under in bodies
        ]

    def state(self, state: int, t: int) -> PowerSeries:
        value = self.places[state][t]
        shape = concrete(self.loop.shapes[state], self.loops.sizes)
        return self.loops.zeros(shape) if value is None else value

    def read(self, source: Source, t: int) -> Value:
        if isinstance(source, StateAt):
            return self.state(source.state, t + source.shift.value(self.loops.sizes))
        if isinstance(source, SliceAt):
            return slice_of(self.operands[source.operand], t + source.shift.value(self.loops.sizes))
        return self.operands[source.operand]

    def execute(self, t: int, follows: _Coordinates | None = None) -> bool:
        """Execute a step; False where the carried states have no bounds in coordinates."""
        sizes = self.loops.sizes
        new: Mapping[int, PowerSeries] = {}
        if follows is not None:
            moved = follows.moved(t)
            if moved is None:
                return False
            new = moved
        for update, reads in zip(self.loop.updates, self.reads, strict=True):
            if t < update.start.value(sizes):
                continue
            state, place = self.places[update.state], t + update.shift.value(sizes)
            value: Value | None = new.get(update.state)
            if value is None:
                given = {one: self.read(source, t) for one, source in reads}
                value = self.loops.values_of(update.value, given)[update.value]
            assert isinstance(value, PowerSeries)
            before = state[place]
            state[place] = value if before is None else before + value
        return True

    def is_lost(self, t: int) -> bool:
        """Whether nothing is known of the states that step t wrote; nor is then of later ones."""
        sizes = self.loops.sizes
        updates = [one for one in self.loop.updates if t >= one.start.value(sizes)]
        new = [self.places[one.state][t + one.shift.value(sizes)] for one in updates]
        return bool(new) and not any(one is not None and _has_bounds(one) for one in new)

    def unknown(self) -> list[PowerSeries]:
        """The states of which nothing is known."""
        sizes, length = self.loops.sizes, len(self.steps)
        shapes = [(length, *concrete(shape, sizes)) for shape in self.loop.shapes]
        return [unknown(self.loops.table, shape) for shape in shapes]

    def result(self) -> list[PowerSeries]:
        result = []
        for state in range(len(self.places)):
            parts = [self.state(state, t) for t in range(len(self.places[state]))]
            result.append(stacked(self.loops.table, parts, 0))
        return result


class _Coordinates:
    """The remainders of the carried states: e = D Q w."""

    def __init__(self, run: _Execution, step: StepMap) -> None:
        self.run, self.step = run, step
        sizes = run.loops.sizes
        self.shapes = {key: concrete(one.shape, sizes) for key, one in step.carried.items()}
        counts = [int(np.prod(shape)) for shape in self.shapes.values()]
        ends = np.cumsum([0, *counts])
        self.slices = {
            key: slice(int(ends[k]), int(ends[k + 1])) for k, key in enumerate(self.shapes)
        }
        self.count = int(ends[-1])
        self.scale = np.zeros(0)
        self.Q = np.eye(self.count)
        self.w = np.zeros((2, self.count))

    def moved(self, t: int) -> dict[int, PowerSeries] | None:
        """The carried states at step t; None where they have no bounds."""
        step, run = self.step, self.run
        if any(run.places[state][t] is not None for state in step.updates):
            return None
        before = {key: run.state(key[0], t - key[1]) for key in step.carried}
        if not len(self.scale):
            self.scale = _scales(self._flat(before))
            own = self._flat(before)
            self.w = enlarged(np.stack([own.tail, own.error]) / self.scale)
        remainders = self._remainders()
        others = {one: run.read(source, t) for one, source in step.sources.items()}
        exact: dict[Expr, Value] = {
            step.carried[key]: PowerSeries(b.table, b.c, np.zeros(b.shape), np.zeros(b.shape))
            for key, b in before.items()
        }
        around: dict[Expr, Value] = {
            # Of degree 1 at least: a remainder is not a number.
            step.carried[key]: PowerSeries(
                b.table,
                b.padded(max(b.degree, 1)),
                *(part[self.slices[key]].reshape(b.shape) for part in remainders),
            )
            for key, b in before.items()
        }
        new = self._evaluated(step.roots, {**others, **exact})
        wide = self._evaluated(step.roots, {**others, **around})
        # Infinite where ranges reach a kink or a pole: derivatives alone do not show a jump.
        if not all(_is_finite(wide[root]) for root in step.roots):
            return None
        J = self._derivative(wide)
        values = {(state, 1): new[root] for state, root in step.updates.items()}
        return None if J is None else self._advanced({**_later(before), **values}, J)

    def _evaluated(
        self, roots: Sequence[Expr], given: Mapping[Expr, Value]
    ) -> Mapping[Expr, Value]:
        for root in roots:
            given = self.run.loops.values_of(root, given)
        return given

    def _derivative(self, known: Mapping[Expr, Value]) -> PowerSeries | None:
        """The derivatives (new elements, old elements) of the step."""
        zero, columns = self.run.loops.zeros, []
        for key, (along, roots) in self.step.tangents.items():
            shape = self.shapes[key]
            for unit in np.eye(int(np.prod(shape))):
                one = PowerSeries.constant(self.run.loops.table, exactly(unit.reshape(shape)))
                values = self._evaluated(roots, {**known, along: one})
                moved: dict[Carried, Value] = {
                    (state, 1): values[root]
                    for state, root in zip(self.step.updates, roots, strict=True)
                }
                if (later := (key[0], key[1] + 1)) in self.shapes:
                    moved[later] = one
                column = {k: moved.get(k, zero(own)) for k, own in self.shapes.items()}
                if not all(_is_finite(value) for value in column.values()):
                    return None
                columns.append(self._flat(column))
        return stacked(self.run.loops.table, columns, 1)

    def _advanced(
        self, new: Mapping[Carried, Value], J: PowerSeries
    ) -> dict[int, PowerSeries] | None:
        """The carried states after the step; `new` is that of the polynomials before it."""
        own = self._flat({key: new[key] for key in self.shapes})
        if not _is_finite(own):
            return None
        scale = _scales(own)
        c = J.c * self.scale / scale[:, np.newaxis]
        rest = (J.tail + J.error) * self.scale / scale[:, np.newaxis]
        Q = _directions(c[0] @ self.Q, self.w.sum(axis=0))
        # Roundings, and what Q lacks to be orthogonal, are far below the slack.
        total = np.abs(c).sum() + rest.sum() + FLOOR
        M = Q.T @ c @ self.Q
        norms = norms_by_degree(J.table, M, J.degree).sum(axis=0)
        rest = _norms(Q.T) @ rest @ _norms(self.Q)
        size = enlarged(norms + rest + _SLACK * total)
        own_rest = np.stack([own.tail, own.error]) / scale
        own_rest = own_rest @ _norms(Q) + _SLACK * own_rest.sum(axis=1, keepdims=True)
        w = enlarged(own_rest + self.w @ size.T)
        if not np.isfinite(w).all():
            return None
        self.scale, self.Q, self.w = scale, Q, w
        remainders = self._remainders()
        result = {}
        for key, place in self.slices.items():
            value = new[key]
            if key[1] == 1 and isinstance(value, PowerSeries):
                tail, error = (part[place].reshape(value.shape) for part in remainders)
                result[key[0]] = PowerSeries(value.table, value.c, tail, error)
        return result

    def _remainders(self) -> Array:
        """Bounds on the tails and on the errors of all carried elements."""
        return enlarged(floored(self.w @ _norms(self.Q).T) * self.scale)

    def _flat(self, states: Mapping[Carried, Value]) -> PowerSeries:
        """All carried elements as one vector."""
        parts = [one for one in states.values() if isinstance(one, PowerSeries)]
        degree = max(one.degree for one in parts)
        return PowerSeries(
            self.run.loops.table,
            np.concatenate([_rows(one.padded(degree)) for one in parts], axis=1),
            *(
                np.concatenate([np.ravel(a) for a in own])
                for own in zip(*((one.tail, one.error) for one in parts), strict=True)
            ),
        )


def _norms(Q: Array) -> Array:
    return floored(np.abs(Q))


def _rows(c: Array) -> Array:
    return c.reshape((len(c), -1))


def _later(before: Mapping[Carried, PowerSeries]) -> dict[Carried, Value]:
    """The carried values one step later, without remainders, which the derivatives move."""
    nothing = {key: np.zeros(one.shape) for key, one in before.items()}
    return {
        (state, lag + 1): PowerSeries(one.table, one.c, nothing[state, lag], nothing[state, lag])
        for (state, lag), one in before.items()
    }


def _has_bounds(value: PowerSeries) -> bool:
    """Whether some element has a series."""
    return bool(np.isfinite(value.tail + value.error).any())


def _is_finite(value: Value) -> bool:
    return isinstance(value, PowerSeries) and bool(
        np.isfinite(value.c).all() and np.isfinite(value.tail + value.error).all()
    )


def _scales(states: PowerSeries) -> Array:
    """Powers of 2 near what states move over the region, or near a part of their values."""
    moved = np.abs(states.c[1:]).sum(axis=0) + 1e-9 * np.abs(states.c[0])
    usable = np.isfinite(moved) & (moved > 1e-60) & (moved < 1e60)
    return np.asarray(np.exp2(np.round(np.log2(np.where(usable, moved, 1.0)))))


def _directions(A: Array, sizes: Array) -> Array:
    """An orthogonal matrix, up to rounding, the first columns along the largest columns of A."""
    columns = A * sizes
    if not np.isfinite(columns).all():
        return np.eye(len(A))
    order = np.argsort(-np.linalg.norm(columns, axis=0))
    Q = np.asarray(np.linalg.qr(columns[:, order])[0])
    defect = np.abs(Q.T @ Q - np.eye(len(Q))).sum()
    return Q if defect < _SLACK / 8.0 else np.eye(len(A))
