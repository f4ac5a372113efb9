"""Names in generated source: of sizes, inputs, arrays, views and scalars. All are made here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from slomodel.codegen.program import Program
from slomodel.codegen.views import axes_view, slice_view
from slomodel.errors import TargetLimit
from slomodel.ir.dims import Dim, Shape
from slomodel.ir.expr import Const, Einsum, Expr, Gather, Input, Reshape


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


def number(value: float) -> str:
    """A literal that reads back as the very same double."""
    if isinstance(value, bool):
        return repr(value)
    if math.isnan(value):
        return "np.nan"
    if value in (float("inf"), float("-inf")):
        return "np.inf" if value > 0 else "-np.inf"
    return repr(float(value))


class Scope:
    """The names of one generated function, and the lines that make them before any call."""

    def __init__(self, program: Program, sizes: Sizes, inputs: Mapping[Input, str]) -> None:
        self.program = program
        self.sizes = sizes
        self.prelude: list[str] = []
        self._inputs = inputs
        self._scalars: dict[Expr, str] = {}
        self._views: dict[Expr, str] = {}
        self._aliases: dict[str, str] = {}
        self._kernels = 0

    def ref(self, node: Expr) -> str:
        """The text that stands for the value of a node."""
        if isinstance(node, Const):
            return number(node.value)
        if isinstance(node, Input):
            return self._inputs[node]
        if not node.rank:
            return self._scalars.setdefault(node, f"s{len(self._scalars)}")
        if node in self.program.outputs:
            return f"g{self.program.outputs[node]}"
        if node in self.program.slot_of:
            return f"b{self.program.slot_of[node]}"
        return self.view(node)

    def view(self, node: Expr) -> str:
        """The name of a view of the node's operand."""
        if node not in self._views:
            self._views[node] = self.alias(self.view_text(node))
        return self._views[node]

    def view_text(self, node: Expr) -> str:
        """The expression that views the node's operand as the node."""
        base = self.ref(node.operands[0])
        if isinstance(node, Einsum):
            return axes_view(node, base, self.sizes.shape(node.shape))
        if isinstance(node, Gather):
            return slice_view(node.index, node.shape, base, self.sizes.text)
        if isinstance(node, Reshape):
            return f"{base}.reshape({self.sizes.shape(node.shape)})"
        raise TargetLimit(f"a {type(node).__name__} node is no view")

    def alias(self, text: str, prefix: str = "w") -> str:
        """A name for an array expression that is evaluated once, before any call."""
        if text.isidentifier():
            return text
        if text not in self._aliases:
            self._aliases[text] = f"{prefix}{len(self._aliases)}"
            self.prelude.append(f"{self._aliases[text]} = {text}")
        return self._aliases[text]

    def kernel(self, text: str) -> str:
        """A name for a compiled kernel; equal kernels are one."""
        return self.alias(text, "k")

    def shape(self, shape: Shape) -> str:
        return self.sizes.shape(shape)

    def is_flat(self, node: Expr) -> bool:
        """True when the node's array lies in C order without gaps."""
        computed = node in self.program.slot_of or node in self.program.outputs
        return computed or isinstance(node, (Input, Reshape))
