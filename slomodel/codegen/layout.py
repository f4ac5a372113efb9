"""The flat vectors of a model: which slice of x is which variable, and what data it takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from slomodel.codegen.sizes import Sizes, plain
from slomodel.ir.dims import show_shape
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

    `precision` is the type that everything is computed in, `defaults` are values of data that a
    caller may leave out, `prepared` says of data that is made of other data what it is, and
    `attributes` what is promised of data: `symmetric`, `mask`.
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
        """The data that a caller gives."""
        return tuple(node for node in self.data if node not in self.prepared)

    def constants(self) -> list[str]:
        """Lines that name the start of each variable in x and the length of x."""
        lines, start = [], "0"
        for k, node in enumerate(self.variables):
            lines.append(f"o{k} = {start}  # {described(node)}")
            start = f"o{k} + {self.sizes.product(node.shape)}"
        return [*lines, f"n = {start}"]

    def pieces(self, vector: str) -> tuple[dict[Input, str], list[str], list[str]]:
        """Names for the parts of a vector of length n: views made once, scalars read every call."""
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
