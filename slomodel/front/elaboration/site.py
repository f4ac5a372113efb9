"""A call of an array function as its rule sees it: operands, axis, sizes, and what to blame."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from slomodel.errors import Span
from slomodel.front.elaboration.affine import size
from slomodel.front.elaboration.arguments import Signature, axis_of
from slomodel.front.elaboration.faults import Fault, fault, shape_fault
from slomodel.front.elaboration.mismatch import Operand, marks
from slomodel.front.elaboration.scope import Scope
from slomodel.front.elaboration.values import Value, settled, show
from slomodel.front.text.syntax import Argument, BoolOp, Call, Compare, NoneLiteral, Not, String
from slomodel.ir.dims import Dim


@dataclass(frozen=True, slots=True)
class Site:
    """`operands` are the evaluated array arguments, `arguments` all of them by parameter."""

    node: Call
    signature: Signature
    scope: Scope
    operands: tuple[Operand, ...]
    arguments: Mapping[str, tuple[Argument, ...]]

    @property
    def name(self) -> str:
        return self.node.function.text

    @property
    def span(self) -> Span:
        return self.node.span

    @property
    def x(self) -> Value:
        """The only or first array."""
        return settled(self.operands[0].value)

    @property
    def values(self) -> tuple[Value, ...]:
        return tuple(settled(one.value) for one in self.operands)

    def axes(self) -> tuple[int, ...]:
        """The axes that `axis=` names: one of them, or all."""
        axis = axis_of(self.arguments["axis"], self.default_axis, self.x, self.scope)
        return tuple(range(self.x.rank)) if axis is None else (axis,)

    def one_axis(self) -> int:
        axis = axis_of(self.arguments["axis"], self.default_axis, self.x, self.scope)
        if axis is None:
            raise fault("E208", f"`{self.name}` needs one axis", self.span)
        return axis

    @property
    def default_axis(self) -> int | None:
        text = next(p.default for p in self.signature.parameters if p.name == "axis")
        return None if text in (None, "None") else int(text)

    def sizes(self, parameter: str) -> tuple[Dim, ...]:
        """The dims that some arguments are."""
        result = []
        for argument in self.arguments[parameter]:
            if isinstance(argument, (String, NoneLiteral, Compare, BoolOp, Not)):
                raise fault("E208", "a size is expected here", argument.span)
            found = size(argument, self.scope)
            if found.is_literal and found.const < 0:
                remedy = "write every size: none is worked out from the others"
                raise fault("E209", "a size is negative", argument.span, remedy)
            result.append(found)
        return tuple(result)

    def text(self, parameter: str) -> String:
        argument = self.arguments[parameter][0]
        if not isinstance(argument, String):
            message = f"`{self.name}` begins with a text in double quotes"
            raise fault("E208", message, argument.span, 'as in `einsum("ij,jk->ik", A, B)`')
        return argument

    def refuse(self, message: str, remedy: str) -> Fault:
        """A rank or shape that the function does not take."""
        shapes = " and ".join(show(one.value) for one in self.operands)
        return shape_fault(
            "E220", f"{message}, not {shapes}", self.span, remedy, marks=marks(*self.operands)
        )

    def need_rank(self, ranks: tuple[int, ...], message: str, remedy: str = "") -> None:
        if any(value.rank not in ranks for value in self.values):
            raise self.refuse(message, remedy)
