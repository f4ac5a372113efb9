"""Recurrences of few steps written out, so that every rule sees their elementary operations.

The steps of a long one would be too many nodes for any rule; an objective that contains it has no
bound, and the reason names it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from slomodel.bounds.setting import Setting, once_per_setting
from slomodel.functions import add
from slomodel.ir import build
from slomodel.ir.dims import Dim, Shape, literal
from slomodel.ir.expr import Affine, Expr, Recur, remake
from slomodel.ir.loop import Loop, SliceAt, Source, StateAt
from slomodel.ir.walk import postorder, substitute

MOST_NODES = 2_000
"""The largest number of nodes that the steps of one recurrence may become."""


@once_per_setting
def written_out(setting: Setting) -> Setting:
    """The setting with each short recurrence replaced by its steps."""
    order = postorder(setting.objective)
    if not any(isinstance(node, Recur) for node in order):
        return setting
    done: dict[Expr, Expr] = {}
    made: dict[tuple[Loop, tuple[Expr, ...]], tuple[Expr, ...]] = {}
    for node in order:
        operands = tuple(done[operand] for operand in node.operands)
        done[node] = remake(node, operands) if operands else node
        if isinstance(node, Recur) and _is_short(node.loop, setting.sizes):
            key = (node.loop, operands)
            if key not in made:
                made[key] = _steps(node.loop, operands, setting.sizes)
            done[node] = made[key][node.state]
    return setting.rewritten(done, setting.known)


def too_long(setting: Setting) -> str:
    """Why a recurrence that is left in the objective rules out bounds; empty if there is none."""
    for node in postorder(setting.objective):
        if isinstance(node, Recur):
            span = setting.spans.get(node)
            text = "" if span is None else f" of line {span.line}"
            steps = node.loop.length.size(setting.sizes)
            return f"the recurrence{text} has {steps} steps, too many to write out"
    return ""


def _is_short(loop: Loop, sizes: Mapping[str, int]) -> bool:
    body = len(postorder(*(update.value for update in loop.updates)))
    return loop.length.size(sizes) * max(1, body) <= MOST_NODES


def _steps(loop: Loop, operands: Sequence[Expr], sizes: Mapping[str, int]) -> tuple[Expr, ...]:
    """The states of a loop as graphs without a loop."""
    length = loop.length.size(sizes)
    places: list[list[Expr | None]] = [[None] * length for _ in loop.shapes]
    for state, first in zip(places, loop.initial, strict=True):
        if first is not None:
            count = operands[first].shape[0].size(sizes)
            for t in range(min(length, count)):
                state[t] = _element(operands[first], t)

    def read(source: Source, t: int, shape: Shape) -> Expr:
        if isinstance(source, StateAt):
            found = places[source.state][t + _number(source.shift, sizes)]
            return build.zeros(shape) if found is None else found
        if isinstance(source, SliceAt):
            return _element(operands[source.operand], t + _number(source.shift, sizes))
        return operands[source.operand]

    used = [
        [(one, source) for one, source in loop.sources if one in set(postorder(update.value))]
        for update in loop.updates
    ]
    for t in reversed(range(length)) if loop.backwards else range(length):
        for update, own in zip(loop.updates, used, strict=True):
            if t >= _number(update.start, sizes):
                values = {one: read(source, t, one.shape) for one, source in own}
                value = substitute((update.value,), values)[0]
                state, place = places[update.state], t + _number(update.shift, sizes)
                before = state[place]
                state[place] = value if before is None else build.apply(add, before, value)
    return tuple(
        _stacked(state, (loop.length, *shape))
        for state, shape in zip(places, loop.shapes, strict=True)
    )


def _number(dim: Dim, sizes: Mapping[str, int]) -> int:
    return dim.const + sum(c * sizes[name] for name, c in dim.terms)


def _element(array: Expr, t: int) -> Expr:
    """Element t along the first axis."""
    rest = array.shape[1:]
    index = [Affine(literal(t), (0,) * len(rest))]
    index += [Affine(Dim(), tuple(int(j == k) for j in range(len(rest)))) for k in range(len(rest))]
    return build.gather(array, index, rest)


def _stacked(places: Sequence[Expr | None], shape: Shape) -> Expr:
    """The elements along a new first axis: halves are joined, so that the graph is shallow."""
    parts: list[tuple[int, Expr]] = []
    for t, value in enumerate(places):
        if value is not None:
            axes = tuple(range(1, len(shape)))
            parts.append((t, build.broadcast(value, axes, (literal(1), *shape[1:]))))
    while len(parts) > 1:
        parts = [_joined(parts[k : k + 2]) for k in range(0, len(parts), 2)]
    if not parts:
        return build.zeros(shape)
    return _placed(parts[0][1], parts[0][0], shape)


def _joined(parts: Sequence[tuple[int, Expr]]) -> tuple[int, Expr]:
    """Neighbouring runs of elements, each with its first place, as one run."""
    if len(parts) == 1:
        return parts[0]
    (begin, first), (later, second) = parts
    shape = (literal(later - begin + second.shape[0].const), *first.shape[1:])
    return begin, build.apply(add, _placed(first, 0, shape), _placed(second, later - begin, shape))


def _placed(run: Expr, at: int, shape: Shape) -> Expr:
    """A run of elements from place `at` on, inside zeros."""
    index = [
        Affine(literal(at) if k == 0 else Dim(), tuple(int(j == k) for j in range(run.rank)))
        for k in range(run.rank)
    ]
    return build.scatter(run, index, shape)
