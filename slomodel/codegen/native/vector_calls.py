"""Costly functions of single numbers, several at a time in a vector.

A step of a recurrence with few states is written in scalars. Where it needs the same function of
several of them, and none waits for another, one vector call takes about as long as two scalar ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from slomodel.codegen.loops.names import Names, element_text
from slomodel.codegen.loops.nest import Apply, Block, Computed, Nest, Operand, Scalar, Store
from slomodel.codegen.loops.text import indented
from slomodel.ir.expr import Expr
from slomodel.ir.function import ScalarFunction

_LEAST = 3
"""Calls from which on a vector pays."""
_WIDE, _NARROW = 8, 4
"""Elements of a `slo_vec` and of a `slo_half`."""

Lines = list[str]


@dataclass(frozen=True, slots=True)
class _Assignment:
    """`target` = function of operands; `level` counts the costly functions that it waits for."""

    target: Expr
    function: ScalarFunction | None
    operands: tuple[Operand, ...]
    level: int

    @property
    def costly(self) -> bool:
        return self.function is not None and self.function.costly


def vector_call_lines(blocks: Sequence[Block], names: Names) -> Lines | None:
    """The statements of blocks in scalars, with vector calls; None if there is nothing to gain."""
    every = _assignments(blocks)
    if every is None:
        return None
    groups: dict[tuple[int, ScalarFunction], list[_Assignment]] = {}
    for one in every:
        if one.costly and one.function is not None:
            groups.setdefault((one.level, one.function), []).append(one)
    if max(map(len, groups.values()), default=0) < _LEAST:
        return None
    lines: Lines = []
    for level in range(1 + max(one.level for one in every)):
        plain = [one for one in every if one.level == level and not one.costly]
        lines += [line for one in plain for line in _line(one, names)]
        for (own, _), calls in groups.items():
            if own == level:
                lines += _call_lines(calls, names)
    return lines


def _assignments(blocks: Sequence[Block]) -> list[_Assignment] | None:
    """The assignments of the blocks, in order; None if the blocks do more than assign."""
    result: list[_Assignment] = []
    after: dict[Expr, int] = {}
    for block in blocks:
        if not isinstance(block, Nest) or block.axes or block.fills:
            return None
        pairs = zip(block.statements[::2], block.statements[1::2], strict=False)
        if len(block.statements) % 2:
            return None
        for k, (apply, store) in enumerate(pairs):
            if not isinstance(apply, Apply) or not isinstance(store, Store):
                return None
            if store.value != Computed(2 * k) or not isinstance(store.target, Scalar):
                return None
            if any(isinstance(one, Computed) for one in apply.operands):
                return None
            waits = (
                after.get(operand.node, 0)
                for operand in apply.operands
                if isinstance(operand, Scalar)
            )
            target = store.target.node
            one = _Assignment(target, apply.function, apply.operands, max(waits, default=0))
            after[target] = one.level + one.costly
            result.append(one)
    return result


def _line(one: _Assignment, names: Names) -> Lines:
    texts = [element_text(operand, names) for operand in one.operands]  # type: ignore[arg-type]
    text = one.function.spelling["c"].format(*texts) if one.function else texts[0]
    return [f"{names.number(one.target)} = {text};"]


def _call_lines(calls: Sequence[_Assignment], names: Names) -> Lines:
    lines: Lines = []
    while len(calls) >= _LEAST:
        width = _WIDE if len(calls) > _NARROW else _NARROW
        lines += _vector(calls[:width], width, names)
        calls = calls[width:]
    return lines + [line for call in calls for line in _line(call, names)]


def _vector(calls: Sequence[_Assignment], width: int, names: Names) -> Lines:
    """One vector call; the last operand fills the elements that no call needs."""
    kind = "slo_vec" if width == _WIDE else "slo_half"
    filled = [*calls, *[calls[-1]] * (width - len(calls))]
    function = calls[0].function
    assert function is not None
    lines: Lines = []
    for j in range(len(calls[0].operands)):
        texts = [element_text(one.operands[j], names) for one in filled]  # type: ignore[arg-type]
        lines.append(f"real v{j}[{width}] ALIGNED;")
        lines.append(f"*({kind} *)v{j} = ({kind}){{{', '.join(texts)}}};")
    text = function.spelling["c"].format(*(f"v{j}[i]" for j in range(len(calls[0].operands))))
    lines += [
        "#pragma GCC ivdep",
        f"for (long i = 0; i < {width}; i++) v0[i] = {text};",
        *(f"{names.number(one.target)} = v0[{k}];" for k, one in enumerate(calls)),
    ]
    return ["{", *indented(lines), "}"]
