"""Names in generated source: of sizes, inputs, arrays, views and scalars."""

from __future__ import annotations

import math
from collections.abc import Mapping

from slomodel.codegen.layout import Layout
from slomodel.codegen.program import Program
from slomodel.codegen.python.views import axes_view, slice_view
from slomodel.errors import TargetLimit
from slomodel.ir.dims import Shape
from slomodel.ir.expr import Const, Einsum, Expr, Gather, Input, Reshape


def number(value: float) -> str:
    """A literal that Python reads back as exactly the same double."""
    if isinstance(value, bool):
        return repr(value)
    if math.isnan(value):
        return "np.nan"
    if value in (float("inf"), float("-inf")):
        return "np.inf" if value > 0 else "-np.inf"
    return repr(float(value))


class GeneratedNames:
    """The names of one generated function, and the lines that define them before any call.

    `prefix` begins the names of arrays and scalars in the body of a loop.
    """

    def __init__(
        self, program: Program, layout: Layout, inputs: Mapping[Input, str], prefix: str = ""
    ) -> None:
        self.program = program
        self.prefix = prefix
        self._layout = layout
        self.sizes = layout.sizes
        self.precision = layout.precision
        self.prelude: list[str] = []
        self._inputs = dict(inputs)
        self._scalars: dict[Expr, str] = {}
        self._views: dict[Expr, str] = {}
        self._aliases: dict[str, str] = {}
        self._kernels = 0
        self._placed: dict[Expr, str] = {}
        self._bodies = [0]
        self._varying: set[Input] = set()

    def body(self, program: Program) -> GeneratedNames:
        """Names for the body of a loop of this function; working arrays are allocated before."""
        self._bodies[0] += 1
        inner = GeneratedNames(program, self._layout, {}, f"r{self._bodies[0]}_")
        inner.prelude, inner._aliases, inner._bodies = self.prelude, self._aliases, self._bodies
        self.prelude += inner.slots()
        return inner

    def name(self, node: Input, text: str) -> None:
        """Record the name of an input."""
        self._inputs[node] = text

    def name_at_step(self, node: Input, text: str) -> None:
        """Record the name of an input whose value changes from step to step of a loop."""
        self._inputs[node] = text
        self._varying.add(node)

    def is_known_before(self, node: Expr) -> bool:
        """Whether a node is an input that has its value before any call."""
        return isinstance(node, Input) and node not in self._varying

    def ref(self, node: Expr) -> str:
        """The source text of a node's value."""
        if isinstance(node, Const):
            return number(node.value)
        if isinstance(node, Input):
            return self._inputs[node]
        if not node.rank:
            return self._scalars.setdefault(node, f"{self.prefix}s{len(self._scalars)}")
        if node in self._placed:
            return self._placed[node]
        if node in self.program.outputs:
            return f"g{self.program.outputs[node]}"
        if node in self.program.slot_of:
            return f"{self.prefix}b{self.program.slot_of[node]}"
        return self.view(node)

    def put(self, node: Expr, text: str) -> None:
        """Record that a node's value lies in a slice of another node's array."""
        self._placed[node] = text

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
        raise TargetLimit(f"a {type(node).__name__} node is not a view")

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

    def slots(self) -> list[str]:
        """Lines that allocate the working arrays."""
        kinds = ["bool" if slot.dtype == "bool" else "real" for slot in self.program.slots]
        return [
            f"{self.prefix}b{k} = np.empty({self.shape(one.shape)}, {kind})"
            for k, (one, kind) in enumerate(zip(self.program.slots, kinds, strict=True))
        ]

    def is_flat(self, node: Expr) -> bool:
        """Whether the node's array is contiguous in C order."""
        computed = node in self.program.slot_of or node in self.program.outputs
        return computed or isinstance(node, (Input, Reshape))
