"""Taylor forms of the states of a recurrence, verified for all steps at once.

Let δ be what the states move beyond g·d, with g = ∇u(c). At every step δ = J δ' + ρ, where J is
the Jacobian of the body by the states at the centre, δ' belongs to earlier steps, and ρ is the
remainder of the body alone. So |δ| <= P r for |ρ| <= r, with the magnitudes P of the responses of
all states to changes of one each. The r follow from the ranges of the states, which δ widens:
from any e with P r(e) <= e, |δ| <= P r(e) by induction over the steps, each of which reads earlier
ones only.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, prod

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval, around, meet
from slomodel.bounds.arithmetic.rounding import Array, up_add, up_mul
from slomodel.bounds.ranges.curvature.slopes import numbers
from slomodel.bounds.ranges.enclose import enclose, states_of
from slomodel.bounds.ranges.taylor.taylor_forms import (
    TaylorForm,
    TaylorPass,
    distance,
    put,
    remainder_of,
)
from slomodel.bounds.stopping import pause
from slomodel.calculus.jvp import jvp
from slomodel.calculus.recurrence import states_after
from slomodel.ir.build import direction
from slomodel.ir.dims import concrete
from slomodel.ir.expr import Expr, Recur, Scan
from slomodel.ir.recur import bodies
from slomodel.ir.walk import dependents, postorder

_ATTEMPTS = 40
"""Remainders that are tried, each by a pass over the loop."""
_WIDER = 1.0625
"""Factor of a remainder that is tried next: a number a little above the last one is verified."""
_FAR = 1e150
"""Remainders above it are given up."""


def put_states(run: TaylorPass, node: Recur) -> None:
    """Add the forms and the ranges of all states of a loop, and of its body at all steps.

    Without slopes, where the body is not C¹, and where nothing is verified, the ranges are those of
    intervals.
    """
    states = node.states
    values = bodies(node)
    order = postorder(*values)
    inner = [
        one for one in order if one in dependents(order, states.__contains__) and one not in states
    ]
    outer = [one for one in order if one not in run.ranges and one not in {*inner, *states}]
    for one in outer:
        _put_before(run, one)
    operands = [run.ranges[operand] for operand in node.operands]
    result = states_of(node, operands, run.part.sizes, 0)
    is_known = all(state in run.centre.lengths for state in states)
    if is_known and _is_verified(run, node, inner, result):
        return
    for one, own in zip(states, result, strict=True):
        moved = distance(own, run.centre.values[one])
        run.ranges[one] = own
        run.forms[one] = TaylorForm(moved, np.full(moved.shape, inf))
        if one in run.centre.lengths:
            along = up_mul(np.asarray(run.radius), run.centre.lengths[one])
            run.forms[one] = TaylorForm(moved, up_add(moved, along))


def _put_before(run: TaylorPass, node: Expr) -> None:
    """Add a node that the body reads, such as the slices of an operand."""
    if any(operand in run.forms for operand in node.operands):
        put(run, node)
    else:
        run.ranges[node] = run.enclosed(node)


def _is_verified(
    run: TaylorPass, node: Recur, inner: Sequence[Expr], known: Sequence[Interval]
) -> bool:
    """Add forms that are verified; False, and nothing is added, where there are none.

    `known` are ranges of the states.
    """
    if any(isinstance(one, (Recur, Scan)) for one in inner):
        return False
    states, centre = node.states, run.centre
    along = [up_mul(np.asarray(run.radius), centre.lengths[state]) for state in states]
    if not all(np.isfinite(one).all() for one in along):
        return False
    responses = _Responses(run, node)
    tried = np.zeros(responses.count)
    for _ in range(_ATTEMPTS):
        pause()
        for k, own in enumerate(responses.split(tried)):
            value = centre.values[states[k]]
            moved = np.minimum(up_add(along[k], own), distance(known[k], value))
            run.ranges[states[k]] = meet(value.widened(moved), known[k])
            run.forms[states[k]] = TaylorForm(moved, own)
        for one in inner:
            _put_before(run, one)
        result = responses.to(_remainders_of_steps(run, node, inner))
        if (result <= tried).all():
            for one, own in zip(states, responses.split(result), strict=True):
                run.forms[one] = TaylorForm(run.forms[one].moved, own)
            return True
        if not (result < _FAR).all():
            break
        tried = np.asarray(up_mul(np.asarray(_WIDER), result))
    for one in (*states, *inner):
        run.ranges.pop(one, None)
        run.forms.pop(one, None)
    return False


def _remainders_of_steps(run: TaylorPass, node: Recur, inner: Sequence[Expr]) -> list[Array]:
    """Upper bounds on the remainders that each position of a state has from the body alone."""
    alone = TaylorPass(run.part, run.radius, run.centre, run.ranges, dict(run.forms))
    for state in node.states:
        moved = run.forms[state].moved
        alone.forms[state] = TaylorForm(moved, np.zeros(moved.shape))
    for one in inner:
        if one in run.forms:
            moved = run.forms[one].moved
            alone.forms[one] = TaylorForm(moved, numbers(remainder_of(one, alone), moved.shape))
    loop, sizes = node.loop, run.part.sizes
    result = [np.zeros(run.forms[one].moved.shape) for one in node.states]
    for own, first in zip(result, loop.initial, strict=True):
        form = None if first is None else run.forms.get(node.operands[first])
        if form is not None:
            count = min(len(own), len(form.remainder))
            own[:count] = form.remainder[:count]
    for update, value in zip(loop.updates, bodies(node), strict=True):
        if value in alone.forms:
            own, added = result[update.state], alone.forms[value].remainder
            start = update.start.value(sizes) + update.shift.value(sizes)
            at = slice(start, start + len(added))
            own[at] = up_add(own[at], added)
    return result


class _Responses:
    """The responses of all states of a loop, at the centre, to changes of any of them."""

    __slots__ = ("_added", "_graphs", "_known", "_shapes", "_sizes", "count")

    def __init__(self, run: TaylorPass, node: Recur) -> None:
        self._sizes = run.part.sizes
        self._shapes = [concrete(state.shape, self._sizes) for state in node.states]
        self.count = sum(prod(shape) for shape in self._shapes)
        self._added = tuple(direction(f"added {k}", s.shape) for k, s in enumerate(node.states))
        self._graphs = states_after(node, self._added, jvp)
        self._known = run.centre.values

    def split(self, flat: Array) -> list[Array]:
        """An array (count,) as one array for each state."""
        ends = np.cumsum([prod(shape) for shape in self._shapes])[:-1]
        parts = np.split(flat, ends)
        return [part.reshape(shape) for part, shape in zip(parts, self._shapes, strict=True)]

    def to(self, changes: Sequence[Array]) -> Array:
        """Upper bounds (count,) on the responses to all changes of at most these magnitudes."""
        known = dict(self._known)
        for one, own in zip(self._added, changes, strict=True):
            known[one] = around(np.zeros(own.shape), own)
        result = enclose(self._graphs, {}, self._sizes, known=known)
        sizes = [
            np.broadcast_to(result[graph].magnitude, shape)
            for graph, shape in zip(self._graphs, self._shapes, strict=True)
        ]
        return np.concatenate([np.ravel(size) for size in sizes])
