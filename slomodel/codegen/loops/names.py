"""Names of arrays and numbers that all printers of the loop form share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from slomodel.codegen.layout import Layout
from slomodel.codegen.loops.access import Numbers
from slomodel.codegen.loops.nest import Element, Integers, Output, Scalar
from slomodel.codegen.loops.text import literal
from slomodel.codegen.loops.workspace import Memory
from slomodel.ir.dims import number_of_elements
from slomodel.ir.expr import Const, Einsum, Expr, Input


class Names(Protocol):
    """Names of one printer: the text of an address, of a number, of an index array."""

    def base(self, array: Expr | Output) -> str: ...

    def number(self, node: Expr) -> str: ...

    def integers(self, integers: Integers) -> str: ...


def element_text(one: Element | Scalar, names: Names) -> str:
    """The single element of an access without axes."""
    if isinstance(one, Scalar):
        return names.number(one.node)
    return f"({names.base(one.array)})[{one.position.offset}]"


def starts(variables: Sequence[Input], numbers: Numbers) -> list[int]:
    """The offset of each variable in the flat vector, followed by its length."""
    places = [0]
    for node in variables:
        places.append(places[-1] + number_of_elements(node.shape, numbers))
    return places


def input_texts(
    layout: Layout, directions: Sequence[Input], numbers: Numbers
) -> Mapping[Input, str]:
    """Addresses of the inputs: slices of `x` and of `v`, and data `d0`, `d1`, …"""
    begin = starts(layout.variables, numbers)
    texts: dict[Input, str] = {}
    for vector, nodes in (("x", layout.variables), ("v", directions)):
        texts.update({node: at(vector, begin[k]) for k, node in enumerate(nodes)})
    texts.update({node: f"d{k}" for k, node in enumerate(layout.data)})
    return texts


def at(name: str, offset: int) -> str:
    """The address of the element at an offset of an array."""
    return f"{name} + {offset}" if offset else name


def constant(node: Expr, numbers: Numbers) -> str | None:
    """The text of a constant or of a product of sizes; None for another node."""
    if isinstance(node, Const):
        return literal(node.value)
    if isinstance(node, Einsum) and not node.operands:
        return literal(float(number_of_elements(node.dims, numbers)))
    return None


def is_stored(node: Expr, memory: Memory) -> bool:
    """Whether a node lies in memory."""
    return isinstance(node, Input) or node in memory.places
