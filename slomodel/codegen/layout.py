"""Layout of the flat vectors of a model, and its data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from slomodel.ir.dims import Dim, show_shape
from slomodel.ir.expr import Expr, Input


def described(node: Input) -> str:
    """Name and shape of an input, for comments."""
    return plain(f"{node.name} {show_shape(node.shape)}")


Precision = Literal["float64", "float32"]
Default = float | tuple[float, ...]
"""One number for all elements of an array, or those of a vector."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Variables in declaration order, one after another in C order; data by name.

    `precision` is the type of all computations, `defaults` are values of optional data, `prepared`
    maps data that are computed from other data to their graphs, and `attributes` are those declared
    for data: `symmetric`, `mask`.
    """

    variables: tuple[Input, ...]
    data: tuple[Input, ...]
    sizes: Sizes
    precision: Precision = "float64"
    defaults: Mapping[Input, Default] = field(default_factory=dict)
    prepared: Mapping[Input, Expr] = field(default_factory=dict)
    attributes: Mapping[Input, frozenset[str]] = field(default_factory=dict)

    @property
    def given(self) -> tuple[Input, ...]:
        """The data given by the caller."""
        return tuple(node for node in self.data if node not in self.prepared)

    def note(self, node: Input) -> str:
        """Name and shape of data, and how its numbers differ from the user-supplied ones."""
        if node in self.prepared:
            kind = ", whole numbers (long)" if node.dtype == "whole" else ""
            return f"{described(node)}{kind}, from other data as in the module for numpy"
        counted = {"one_based", "labels"} & self.attributes.get(node, frozenset())
        return described(node) + (", positions from 0 here" if counted else "")

    def constants(self) -> list[str]:
        """Lines that name the start of each variable in x and the length of x."""
        lines, start = [], "0"
        for k, node in enumerate(self.variables):
            lines.append(f"o{k} = {start}  # {described(node)}")
            start = f"o{k} + {self.sizes.product(node.shape)}"
        return [*lines, f"n = {start}"]

    def pieces(self, vector: str) -> tuple[dict[Input, str], list[str], list[str]]:
        """Names for the parts of a vector (n,): views defined once, scalars read at every call."""
        names: dict[Input, str] = {}
        views, reads = [], []
        for k, node in enumerate(self.variables):
            name = names[node] = f"{vector}{k}"
            if node.rank:
                end = f"o{k + 1}" if k + 1 < len(self.variables) else "n"
                part = f"{vector}[o{k}:{end}]"
                shape = self.sizes.shape(node.shape)
                views.append(
                    f"{name} = {part}.reshape({shape})" if node.rank > 1 else f"{name} = {part}"
                )
            else:
                reads.append(f"{name} = {vector}[o{k}]")
        return names, views, reads

    def arrays(self, used: Sequence[Input]) -> tuple[dict[Input, str], list[str]]:
        """Names for the data that a function uses, and lines that take them from `data`."""
        names = {node: f"d{k}" for k, node in enumerate(self.data) if node in used}
        return names, [
            f"{name} = data[{node.name!r}]" + ("" if node.rank else "[()]")
            for node, name in names.items()
        ]


def plain(text: str) -> str:
    """A user's name escaped for comments and docstrings: it cannot end the line or the text.

    A SymPy symbol may have any name, `\\alpha` or source code. Double quotes become single ones.
    """
    escaped = text.replace("\\", "\\\\").replace('"', "'")
    return "".join(c if c.isprintable() else f"\\\\u{ord(c):04x}" for c in escaped)


class Sizes:
    """Names `n0, n1, …` of the named dims, in a fixed order."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._number = {name: f"n{k}" for k, name in enumerate(names)}

    def text(self, dim: Dim) -> str:
        """A dim as an expression in those names."""
        parts = [str(dim.const)] if dim.const or not dim.terms else []
        for name, coefficient in dim.terms:
            factor = "" if abs(coefficient) == 1 else f"{abs(coefficient)}*"
            parts.append(f"{'-' if coefficient < 0 else ''}{factor}{self._number[name]}")
        return " + ".join(parts[::-1]).replace("+ -", "- ")

    def shape(self, shape: Sequence[Dim]) -> str:
        """A shape as a tuple."""
        inner = ", ".join(self.text(dim) for dim in shape)
        return f"({inner},)" if len(shape) == 1 else f"({inner})"

    def product(self, shape: Sequence[Dim]) -> str:
        """The number of elements of a shape."""
        factors = [self.text(dim) for dim in shape]
        return "*".join(f"({f})" if " " in f else f for f in factors) or "1"
