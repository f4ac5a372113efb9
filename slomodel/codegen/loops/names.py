"""Where arrays lie and what numbers are called, for every printer of the loop form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Protocol

from slomodel.codegen.layout import Layout
from slomodel.codegen.loops.access import Numbers
from slomodel.codegen.loops.nest import Element, Integers, Output, Scalar
from slomodel.codegen.loops.text import literal
from slomodel.codegen.loops.workspace import Memory
from slomodel.ir.dims import concrete
from slomodel.ir.expr import Const, Einsum, Expr, Input


class Names(Protocol):
    """The texts of addresses of arrays, of numbers and of index arrays."""

    def base(self, array: Expr | Output) -> str: ...

    def number(self, node: Expr) -> str: ...

    def element(self, one: Element | Scalar) -> str: ...

    def integers(self, integers: Integers) -> str: ...


def starts(variables: Sequence[Input], numbers: Numbers) -> list[int]:
    """Where each variable begins in the flat vector, and at last its length."""
    places = [0]
    for node in variables:
        places.append(places[-1] + prod(concrete(node.shape, numbers)))
    return places


def input_texts(
    layout: Layout, directions: Sequence[Input], numbers: Numbers
) -> Mapping[Input, str]:
    """Addresses of the inputs: parts of `x` and of `v`, data `d0`, `d1`, …"""
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
    """The text of a number that is known: a constant or a product of sizes; None for others."""
    if isinstance(node, Const):
        return literal(node.value)
    if isinstance(node, Einsum) and not node.operands:
        return literal(float(prod(concrete(node.dims, numbers))))
    return None


def is_stored(node: Expr, memory: Memory) -> bool:
    """True for what lies in memory."""
    return isinstance(node, Input) or node in memory.places
