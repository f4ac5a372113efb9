"""Jets of recurrences: a loop over the enclosures of its states.

The mean value theorem and the rules of sums and products apply to the states at a step as to any
numbers that depend on t, so that the jet of the body, computed from jets of the states before, is a
jet of the states at that step. Each state becomes as many states as its jet has midpoints and
radii; the loop over these has the sizes of the original one, whatever its length.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from slomodel.calculus.rays.jets import ORDERS, OVER, Jet, constant_jet, spread, third_of
from slomodel.calculus.rays.numbers import MidRad
from slomodel.errors import MissingRule
from slomodel.functions import add, mul
from slomodel.ir import build
from slomodel.ir.dims import Dim, Shape
from slomodel.ir.expr import Const, Expr, Input, Recur, Scan
from slomodel.ir.loop import SliceAt, StateAt, Update
from slomodel.ir.recur import Reading, SlicesOf

_SIZES = 2
_PARTS = 2 * ORDERS + _SIZES + 2 * OVER
"""Midpoints and radii of the coefficients at t = 0, the bounds on the fourth and third, and
midpoints and radii over the ray where they have rules of their own."""


BodyPass = Callable[[Expr, dict[Expr, Jet], Expr], Jet]
"""The jet of a graph of a body, from those of its placeholders and the end of the ray."""


@dataclass(frozen=True, slots=True)
class JetForm:
    """Which midpoints and radii of a jet exist, in the order of `parts_of`."""

    present: tuple[bool, ...]

    def joined(self, other: JetForm) -> JetForm:
        """The least form that has room for both."""
        either = zip(self.present, other.present, strict=True)
        return JetForm(tuple(a or b for a, b in either))

    @property
    def is_rough(self) -> bool:
        """Whether the coefficients are enclosed over the ray too."""
        return any(self.present[2 * ORDERS + _SIZES :])

    def parts(self, jet: Jet, end: Expr) -> list[Expr | None]:
        """The parts of a jet, which are present at most where those of this form are."""
        if self.present[2 * ORDERS + 1]:
            jet = replace(jet, third=third_of(jet, end))
        return parts_of(replace(jet, over=spread(jet, end)) if self.is_rough else jet)


def parts_of(jet: Jet) -> list[Expr | None]:
    """The midpoints, radii and sizes of a jet; None stands for zero."""
    parts: list[Expr | None] = []
    for one in jet.at:
        parts += [None, None] if one is None else [one.mid, one.rad]
    parts += [jet.fourth, jet.third]
    for one in jet.over or [None] * OVER:
        parts += [None, None] if one is None else [one.mid, one.rad]
    return parts


def form_of(jet: Jet) -> JetForm:
    """The form of a jet."""
    return JetForm(tuple(one is not None for one in parts_of(jet)))


def jet_of_parts(parts: Sequence[Expr | None]) -> Jet:
    """The jet with these midpoints, radii and sizes."""
    at, over = _numbers(parts[: 2 * ORDERS]), _numbers(parts[2 * ORDERS + _SIZES :])
    wide = over if any(one is not None for one in over) else None
    return Jet(at, parts[2 * ORDERS], parts[2 * ORDERS + 1], over=wide)


def _numbers(parts: Sequence[Expr | None]) -> list[MidRad | None]:
    return [
        None if mid is None and rad is None else MidRad(mid or Const(0.0), rad)
        for mid, rad in zip(parts[::2], parts[1::2], strict=True)
    ]


def states_along(
    node: Recur, operands: Sequence[Jet | None], end: Expr, body: BodyPass
) -> tuple[Jet, ...]:
    """The jets of all states of a loop from those of its operands; None for truth values.

    The form of the states is the least one that holds that of their first values and that of their
    updates, computed from states of this form. Raises MissingRule for a loop that writes a position
    more than once.
    """
    loop = node.loop
    for k, first in enumerate(loop.initial):
        covered = Dim() if first is None else node.operands[first].shape[0]
        if not loop.is_assigned(k, covered):
            raise MissingRule("it has a recurrence that writes a state at several steps")
    first_jets = [None if one is None else operands[one] for one in loop.initial]
    # A state has values at t = 0 and over the ray; one without first values begins as a constant.
    value_only = form_of(constant_jet(MidRad(Const(0.0))))
    forms = [value_only if jet is None else form_of(jet) for jet in first_jets]
    forms = [form.joined(value_only) for form in forms]
    while True:
        step = _Step(node, operands, forms, end)
        jets = [body(update.value, dict(step.jets), step.end) for update in loop.updates]
        wider = list(forms)
        for update, jet in zip(loop.updates, jets, strict=True):
            wider[update.state] = wider[update.state].joined(form_of(jet))
        if wider == forms:
            break
        forms = wider
    states: list[tuple[Shape, Expr | None]] = []
    updates: list[Update] = []
    by_state = {update.state: (update, jet) for update, jet in zip(loop.updates, jets, strict=True)}
    for k, (form, shape) in enumerate(zip(forms, loop.shapes, strict=True)):
        update, jet = by_state[k]
        operand = loop.initial[k]
        own = first_jets[k]
        for j, (has, value) in enumerate(zip(form.present, form.parts(jet, step.end), strict=True)):
            if not has:
                continue
            array: Expr | None = None
            if operand is not None and own is not None:
                array = _filled(form.parts(own, end)[j], node.operands[operand].shape)
            at = step.place[k, j]
            states.append((shape, array))
            updates.append(Update(at, Dim(), update.start, _filled(value, shape)))
    arrays = build.recur(loop.length, states, updates, step.readings, backwards=loop.backwards)
    result = []
    for k, form in enumerate(forms):
        parts = [arrays[step.place[k, j]] if has else None for j, has in enumerate(form.present)]
        result.append(jet_of_parts(parts))
    return tuple(result)


def _filled(array: Expr | None, shape: Shape) -> Expr:
    """An array in its full shape; None stands for zeros."""
    array = Const(0.0) if array is None else array
    return build.broadcast(array, (), shape) if shape and not array.rank else array


class _Step:
    """The placeholders of one step: those of midpoints and radii, and what each of them reads."""

    def __init__(
        self, node: Recur, operands: Sequence[Jet | None], forms: Sequence[JetForm], end: Expr
    ) -> None:
        self.jets: dict[Expr, Jet] = {}
        self.end = Input("end", "step", ())
        self.readings: dict[Expr, Reading] = {self.end: end}
        every = [(k, j) for k, form in enumerate(forms) for j in range(_PARTS) if form.present[j]]
        self.place = {pair: at for at, pair in enumerate(every)}
        for k, (one, source) in enumerate(node.loop.sources):
            if isinstance(source, StateAt):
                form, state, shift = forms[source.state], source.state, source.shift
                at = self.place
                self._read(
                    one,
                    [
                        StateAt(at[state, j], shift) if has else None
                        for j, has in enumerate(form.present)
                    ],
                    k,
                )
                continue
            operand = node.operands[source.operand]
            jet = operands[source.operand]
            along = source.shift if isinstance(source, SliceAt) else None
            if jet is None or one.dtype != "real":
                self.readings[one] = operand if along is None else SlicesOf(operand, along)
                continue
            parts = [
                None if part is None else _filled(part, operand.shape) for part in parts_of(jet)
            ]
            readings: list[Reading | None] = [
                part if part is None or along is None else SlicesOf(part, along) for part in parts
            ]
            self._read(one, readings, k)

    def _read(self, one: Expr, readings: Sequence[Reading | None], k: int) -> None:
        """The jet of a placeholder whose midpoints and radii are read from these."""
        parts: list[Expr | None] = []
        for j, reading in enumerate(readings):
            if reading is None:
                parts.append(None)
                continue
            if isinstance(reading, Const):
                parts.append(reading)
                continue
            part = Input(f"part {j} of {k}", "step", one.shape)
            self.readings[part] = reading
            parts.append(part)
        self.jets[one] = jet_of_parts(parts)


def scan_as_loop(node: Scan) -> Expr:
    """y[i] = a[i] y[i - 1] + b[i] as a recurrence over its axis, which comes first there."""
    rank, axis = node.rank, node.axis
    moved = (axis, *(k for k in range(rank) if k != axis))
    first = tuple(node.shape[k] for k in moved)
    factor, term = (_permuted(operand, moved, node.shape) for operand in node.operands)
    shape = first[1:]
    a, b, y = (Input(name, "step", shape) for name in ("factor", "term", "state"))
    one = Dim() + 1
    readings: dict[Expr, Reading] = {
        a: SlicesOf(factor, Dim()),
        b: SlicesOf(term, Dim()),
        y: StateAt(0, Dim() - 1),
    }
    start = build.steps_of(term, Dim(), one)
    update = Update(0, Dim(), one, add(mul(a, y), b))
    (state,) = build.recur(first[0], [(shape, start)], [update], readings)
    back = tuple(moved.index(k) for k in range(rank))
    return _permuted(state, back, first)


def _permuted(array: Expr, axes: tuple[int, ...], shape: Shape) -> Expr:
    """The array with its axes in another order: axis k of the result is axes[k]."""
    if axes == tuple(range(len(axes))):
        return array
    return build.einsum([array], [tuple(range(len(axes)))], axes, shape)
