"""Graphs as text, one node per line, for reading and for golden tests."""

from __future__ import annotations

from slomodel.ir.dims import show_shape
from slomodel.ir.expr import (
    Const,
    Einsum,
    Expr,
    Extreme,
    Gather,
    Index,
    Input,
    Listing,
    Lookup,
    Map,
    MatrixOperation,
    Multiset,
    Recur,
    Scan,
    Scatter,
)
from slomodel.ir.walk import postorder


def show(*roots: Expr) -> str:
    """The nodes under the roots as numbered lines, operands first."""
    order = postorder(*roots)
    number = {node: k for k, node in enumerate(order)}
    return "\n".join(_line(node, number) for node in order)


def _line(node: Expr, number: dict[Expr, int]) -> str:
    operands = ", ".join(f"%{number[operand]}" for operand in node.operands)
    inner = f"({operands})" if node.operands else ""
    kind = "" if node.dtype == "real" else f" {node.dtype}"
    return f"%{number[node]} = {_what(node, number)}{inner} {show_shape(node.shape)}{kind}"


def _what(node: Expr, number: dict[Expr, int]) -> str:
    if isinstance(node, Input):
        return f"{node.role} {node.name}"
    if isinstance(node, Const):
        return repr(node.value)
    if isinstance(node, Map):
        whole = tuple(range(node.rank))
        plain = all(axes in ((), whole) for axes in node.axes)
        return node.function.name if plain else f"{node.function.name}{list(node.axes)}"
    if isinstance(node, Einsum):
        inputs = ",".join("".join(f"{k} " for k in own).strip() for own in node.inputs)
        return f"einsum[{inputs} -> {' '.join(map(str, node.output))}]"
    if isinstance(node, (Gather, Scatter)):
        name = type(node).__name__.lower()
        return f"{name}[{', '.join(_index(one, number) for one in node.index)}]"
    if isinstance(node, Extreme):
        return f"{node.which}{list(node.axes)}"
    if isinstance(node, Listing):
        return f"{node.what}[{node.axis}]" if node.axis else node.what
    if isinstance(node, MatrixOperation):
        return node.function
    if isinstance(node, Scan):
        return f"scan[{node.axis}]"
    if isinstance(node, Recur):
        return f"recur[{node.state} of {len(node.loop.shapes)}]"
    return type(node).__name__.lower()


def _index(one: Index, number: dict[Expr, int]) -> str:
    if isinstance(one, Lookup):
        return f"%{number[one.table]}[{', '.join(f'o{axis}' for axis in one.axes)}]"
    if isinstance(one, Multiset):
        part = f"{one.start}:{one.stop}" if one.stop > one.start + 1 else f"{one.start}"
        return f"o{one.axis} sorted {one.degree}-tuple [{part}]"
    terms = [f"{c}*o{k}" for k, c in enumerate(one.coefficients) if c]
    return " + ".join([*terms, str(one.offset)])
