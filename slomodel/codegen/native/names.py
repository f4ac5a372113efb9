"""How the C text calls memory, scalars and numbers. All names are made here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from math import prod

from slomodel.codegen.layout import Layout
from slomodel.codegen.loops.access import Numbers
from slomodel.codegen.loops.fusion import Fusion
from slomodel.codegen.loops.workspace import Memory
from slomodel.codegen.program import Form
from slomodel.ir.dims import concrete
from slomodel.ir.expr import Const, Einsum, Expr, Input


def literal(value: float) -> str:
    """A number that C reads back as the very same double."""
    if isinstance(value, bool):
        return "1" if value else "0"
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "(-INFINITY)"
    text = repr(float(value))
    return f"({text})" if text.startswith("-") else text


def starts(variables: Sequence[Input], numbers: Numbers) -> list[int]:
    """Where each variable begins in the flat vector, and at last its length."""
    places = [0]
    for node in variables:
        places.append(places[-1] + prod(concrete(node.shape, numbers)))
    return places


class Names:
    """The text for every base of an access."""

    def __init__(
        self,
        regions: Fusion,
        memory: Memory,
        layout: Layout,
        directions: Sequence[Input],
        numbers: Numbers,
    ) -> None:
        self._regions = regions
        self._memory = memory
        self._numbers = numbers
        self._inputs = self._input_texts(layout, directions)
        self._begin = starts(layout.variables, numbers)
        self._scalars: dict[Expr, str] = {}

    def _input_texts(self, layout: Layout, directions: Sequence[Input]) -> Mapping[Input, str]:
        texts: dict[Input, str] = {}
        begin = starts(layout.variables, self._numbers)
        for vector, nodes in (("x", layout.variables), ("v", directions)):
            texts.update({node: _at(vector, begin[k]) for k, node in enumerate(nodes)})
        texts.update({node: f"d{k}" for k, node in enumerate(layout.data)})
        return texts

    @property
    def variables(self) -> list[str]:
        """The scalars that are variables of the function."""
        return list(self._scalars.values())

    def base(self, node: Expr) -> str:
        """The address of the first element of a stored node or an input."""
        if isinstance(node, Input):
            return self._inputs[node]
        place = self._memory.places[node]
        if place.output is not None:
            return _at("g", self._begin[place.output])
        return _at("w", place.start)

    def scalar(self, node: Expr) -> str:
        """The value of a node of rank 0 that is no view."""
        if isinstance(node, Const):
            return literal(node.value)
        if self._regions.forms[node] is Form.ONES:
            assert isinstance(node, Einsum)
            return literal(float(prod(concrete(node.dims, self._numbers))))
        if isinstance(node, Input) or node in self._memory.places:
            return f"({self.base(node)})[0]"
        return self._scalars.setdefault(node, f"s{len(self._scalars)}")


def _at(name: str, offset: int) -> str:
    return f"{name} + {offset}" if offset else name
