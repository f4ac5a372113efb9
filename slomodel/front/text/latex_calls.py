"""Calls and sums by index in LaTeX."""

from __future__ import annotations

from collections.abc import Sequence

from slomodel.front.text.latex_words import ATOM, SUM, TeX, bracketed, name_of
from slomodel.front.text.syntax import Call, Comprehension, Iteration, Number, Sum

_PRODUCT, _POWER = 2, 4
_OWN_COMMANDS = frozenset(
    ("exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh", "max", "min", "det")
)
_AROUND = {
    "sqrt": (r"\sqrt{", "}"),
    "abs": (r"\left|", r"\right|"),
    "norm1": (r"\left\lVert ", r"\right\rVert_1"),
    "norm2": (r"\left\lVert ", r"\right\rVert_2"),
    "fro": (r"\left\lVert ", r"\right\rVert_F"),
    "sumsq": (r"\left\lVert ", r"\right\rVert^2"),
}
_BIG = {"sum": r"\sum", "prod": r"\prod", "max": r"\max", "min": r"\min"}


def called(node: Call, operands: Sequence[TeX]) -> TeX:
    """A call, in the notation that its function has in print."""
    name, texts = node.function.text, [one.text for one in operands]
    if node.kwargs:
        names = [*[""] * len(node.args), *(f"{name_of(k.name.text)} = " for k in node.kwargs)]
        texts = [start + text for start, text in zip(names, texts, strict=True)]
    elif name in _AROUND and len(texts) == 1:
        left, right = _AROUND[name]
        return TeX(left + texts[0] + right, _POWER if name == "sumsq" else ATOM)
    elif name == "where" and len(texts) == 3:
        cases = rf"{texts[1]} & {texts[0]} \\ {texts[2]} & \text{{otherwise}}"
        return TeX(rf"\begin{{cases}} {cases} \end{{cases}}", SUM)
    elif name == "square" and len(texts) == 1:
        return TeX(f"{bracketed(operands[0], ATOM)}^2", _POWER)
    elif name in ("dot", "outer") and len(texts) == 2:
        first, second = (bracketed(one, ATOM) for one in operands)
        pair = (rf"{first}^\top", second) if name == "dot" else (first, rf"{second}^\top")
        return TeX(r" \, ".join(pair), _PRODUCT)
    own = name_of(name)
    head = own if not own.startswith(r"\mathrm") else rf"\operatorname{{{_plain(name)}}}"
    head = rf"\{name}" if name in _OWN_COMMANDS else head
    return TeX(rf"{head}\left({', '.join(texts)}\right)", ATOM)


def _plain(name: str) -> str:
    return {"trace": "tr"}.get(name, name.replace("_", r"\_"))


def reduced(node: Comprehension, operands: Sequence[TeX]) -> TeX:
    """`sum(… for i in n)` with a limit below and above for each index."""
    body, *rest = operands
    name = node.function.text
    big = _BIG.get(name, rf"\operatorname*{{{_plain(name)}}}")
    condition = rf",\; {rest.pop().text}" if node.condition is not None else ""
    parts = []
    for k, iteration in enumerate(node.iterations):
        low, high = _limits(iteration, rest[k])
        tail = condition if k == len(node.iterations) - 1 else ""
        parts.append(f"{big}_{{{name_of(iteration.name.text)} = {low}{tail}}}^{{{high}}}")
    return TeX(f"{' '.join(parts)} {bracketed(body, _PRODUCT)}", SUM)


def _limits(iteration: Iteration, domain: TeX) -> tuple[str, str]:
    """The first and the last value of an index."""
    found = iteration.domain
    if isinstance(found, Call) and found.function.text == "range":
        inside = domain.text.removeprefix(r"\operatorname{range}\left(").removesuffix(r"\right)")
        low, _, stop = inside.rpartition(", ")
        return low or "0", _before(stop, found.args[-1] if found.args else found)
    return "0", _before(domain.text, found)


def _before(stop: str, node: object) -> str:
    """One less than where a range stops."""
    if isinstance(node, Number) and node.value.is_integer():
        return f"{int(node.value) - 1}"
    last = node.rest[-1] if isinstance(node, Sum) else None
    if last is None or not isinstance(last.operand, Number):
        return f"{stop} - 1"
    value = int(last.operand.value) * (1 if last.op == "+" else -1) - 1
    shift = f" {'+' if value > 0 else '-'} {abs(value)}" if value else ""
    return stop[: stop.rindex(f" {last.op} ")] + shift
