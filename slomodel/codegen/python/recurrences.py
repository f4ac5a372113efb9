"""Recurrences in Python: a loop over the steps with statements on the arrays of one step."""

from __future__ import annotations

from collections.abc import Callable

from slomodel.codegen.program import Step, UpdateGroup
from slomodel.codegen.python.names import GeneratedNames
from slomodel.ir.dims import Dim
from slomodel.ir.expr import Expr, Input, Recur
from slomodel.ir.loop import Source, StateAt, Update, Whole
from slomodel.ir.walk import postorder

Rule = Callable[[Step, GeneratedNames], list[str]]

_KINDS = {"bool": "bool", "whole": "np.int64"}


def recurrence_lines(step: Step, scope: GeneratedNames, rule: Callable[[Step], Rule]) -> list[str]:
    """Lines that fill the states step by step; `rule` gives the printer of a step of a body."""
    node = step.node
    assert isinstance(node, Recur)
    loop, text = node.loop, scope.sizes.text
    begin = [line for state in node.states for line in _begin(state, scope)]
    starts = list(dict.fromkeys(text(group.start) for group in step.groups))
    first = starts[0] if len(starts) == 1 else f"min({', '.join(starts)})"
    steps = f"range({first}, {text(loop.length)})"
    body: list[str] = []
    for one in step.groups:
        lines = _group_lines(one, node, scope, rule)
        if len(starts) > 1:
            lines = [
                f"if {_step_name(scope)} >= {text(one.start)}:",
                *(f"    {line}" for line in lines),
            ]
        body += lines
    if not body:
        return begin
    every = f"reversed({steps})" if loop.backwards else steps
    return [*begin, f"for {_step_name(scope)} in {every}:", *(f"    {line}" for line in body)]


def _begin(state: Recur, scope: GeneratedNames) -> list[str]:
    """Lines that set the first positions of a state, and zeros at those that updates add to."""
    target, loop = scope.ref(state), state.loop
    number = loop.initial[state.state]
    covered = Dim() if number is None else state.operands[number].shape[0]
    lines = []
    if number is not None:
        first = scope.ref(state.operands[number])
        places = "" if covered == loop.length else f"[:{scope.sizes.text(covered)}]"
        lines.append(f"np.copyto({target}{places}, {first})")
    if covered != loop.length and not loop.is_assigned(state.state, covered):
        lines.append(f"{target}[{scope.sizes.text(covered)}:].fill(0.0)")
    return lines


def _group_lines(
    one: UpdateGroup, node: Recur, scope: GeneratedNames, rule: Callable[[Step], Rule]
) -> list[str]:
    inner = scope.body(one.program)
    used = set(postorder(*one.program.roots))
    lines: list[str] = []
    for k, (placeholder, source) in enumerate(node.loop.sources):
        if placeholder in used and isinstance(placeholder, Input):
            lines += _read(k, placeholder, source, node, scope, inner)
    for step in one.program.steps:
        printed = rule(step)(step, inner)
        if step.stage == "data":
            scope.prelude += printed
        else:
            lines += printed
    for update, root in zip(one.updates, one.program.roots, strict=True):
        lines.append(_update_line(update, inner.ref(root), node, scope))
    return lines


def _read(
    k: int,
    placeholder: Input,
    source: Source,
    node: Recur,
    scope: GeneratedNames,
    inner: GeneratedNames,
) -> list[str]:
    """The line, if any, that gives a placeholder its value at step t."""
    if isinstance(source, Whole):
        operand = node.operands[source.operand]
        # Of an array that the call itself computes no table is known before it.
        name_of = inner.name if scope.is_known_before(operand) else inner.name_at_step
        name_of(placeholder, scope.ref(operand))
        return []
    array: Expr
    if isinstance(source, StateAt):
        array = node.states[source.state]
    else:
        array = node.operands[source.operand]
    name = f"{inner.prefix}p{k}"
    inner.name_at_step(placeholder, name)
    value = f"{scope.ref(array)}[{_place(source.shift, scope)}]"
    if not placeholder.rank:
        return [f"{name} = {value}"]
    kind = _KINDS.get(placeholder.dtype, "real")
    scope.prelude.append(f"{name} = np.empty({scope.shape(placeholder.shape)}, {kind})")
    return [f"np.copyto({name}, {value})"]


def _update_line(update: Update, value: str, node: Recur, scope: GeneratedNames) -> str:
    state = node.states[update.state]
    first = node.loop.initial[update.state]
    covered = Dim() if first is None else node.operands[first].shape[0]
    sign = "=" if node.loop.is_assigned(update.state, covered) else "+="
    return f"{scope.ref(state)}[{_place(update.shift, scope)}] {sign} {value}"


def _step_name(scope: GeneratedNames) -> str:
    """The name of the step of a loop; one inside the step of another has its own."""
    return f"{scope.prefix}t"


def _place(shift: Dim, scope: GeneratedNames) -> str:
    name = _step_name(scope)
    return name if shift == Dim() else f"{name} + {scope.sizes.text(shift)}".replace("+ -", "- ")
