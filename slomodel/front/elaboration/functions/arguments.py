"""Arguments of calls, matched to a signature and read as values, axes, sizes or strings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from slomodel.errors import Span
from slomodel.front.elaboration.errors import StatementError, error, shape_error, suggestion
from slomodel.front.elaboration.foreign_names import JUMP
from slomodel.front.elaboration.indices.affine_index import size, whole
from slomodel.front.elaboration.scope import Scope
from slomodel.front.elaboration.shape_mismatch import Operand, marks
from slomodel.front.elaboration.values import Value, show, with_unit_axes
from slomodel.front.text.syntax import (
    Argument,
    BoolOp,
    Compare,
    FunctionCall,
    Keyword,
    NoneLiteral,
    Not,
    String,
)
from slomodel.ir.dims import Dim
from slomodel.ir.walk import inputs


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter: `default` is its text, None if it has none; `is_many` takes all the rest."""

    name: str
    default: str | None = None
    is_many: bool = False


@dataclass(frozen=True, slots=True)
class Signature:
    """A function's parameters; `text` is the form shown in messages: `huber(t, delta=1)`."""

    text: str
    name: str
    parameters: tuple[Parameter, ...]


@cache
def signature(text: str) -> Signature:
    """Parse a signature such as `name(x, axis=None)` or `name(spec, *arrays)`."""
    name, _, rest = text.rstrip(")").partition("(")
    parameters = []
    for part in rest.split(", "):
        parameter, equals, default = part.partition("=")
        is_many = parameter.startswith("*")
        parameters.append(Parameter(parameter.lstrip("*"), default if equals else None, is_many))
    return Signature(text, name, tuple(parameters))


def match(node: FunctionCall, wanted: Signature) -> Mapping[str, tuple[Argument, ...]]:
    """The arguments of each parameter; an empty tuple for an omitted one with a default."""
    result: dict[str, tuple[Argument, ...]] = {}
    positional = list(node.args)
    for parameter in wanted.parameters:
        if parameter.is_many:
            result[parameter.name] = tuple(positional)
            positional = []
        elif positional:
            result[parameter.name] = (positional.pop(0),)
    if positional:
        raise _wrong_number(node, wanted)
    for keyword in node.kwargs:
        _add_keyword(result, keyword, wanted)
    for parameter in wanted.parameters:
        if not result.get(parameter.name):
            if parameter.default is None:
                raise _wrong_number(node, wanted)
            result[parameter.name] = ()
    return result


def _add_keyword(
    known: dict[str, tuple[Argument, ...]], keyword: Keyword, wanted: Signature
) -> None:
    name = keyword.name.text
    allowed = [p.name for p in wanted.parameters if not p.is_many]
    if name not in allowed:
        remedy = suggestion(name, allowed) or f"it is `{wanted.text}`"
        message = f"`{wanted.name}` has no argument `{name}`"
        raise error("E208", message, keyword.name.span, remedy)
    if name in known:
        message = f"the argument `{name}` is given twice"
        raise error("E208", message, keyword.name.span, f"it is `{wanted.text}`")
    known[name] = (keyword.value,)


def _wrong_number(node: FunctionCall, wanted: Signature) -> StatementError:
    count = len(node.args) + len(node.kwargs)
    least = sum(p.default is None for p in wanted.parameters)
    most = len(wanted.parameters)
    numbers = (
        f"{least}"
        if least == most
        else f"{least} or {most}"
        if most == least + 1
        else f"{least} to {most}"
    )
    if any(p.is_many for p in wanted.parameters):
        numbers = f"at least {least}"
    plural = "" if numbers.endswith("1") else "s"
    message = f"`{wanted.name}` takes {numbers} argument{plural}, and {count} are given"
    if count == 1:
        message = message.removesuffix("1 are given") + "1 is given"
    return error("E208", message, node.span, f"it is `{wanted.text}`")


def is_condition(argument: Argument) -> bool:
    return isinstance(argument, (Compare, BoolOp, Not))


def check_kind(argument: Argument, wanted: Signature, parameter: str) -> None:
    """Check that an argument is a condition where one is required, and an expression elsewhere."""
    if parameter == "condition":
        if not is_condition(argument):
            message = f"the first argument of `{wanted.name}` is a condition"
            remedy = "compare the number, as in `where(x > 0, a, b)`, or `A[i] != 0` of a mask"
            raise error("E208", message, argument.span, remedy)
    elif is_condition(argument):
        message = f"`{wanted.name}` takes numbers, not a condition"
        raise error("E208", message, argument.span, "choose values with `a if condition else b`")
    elif isinstance(argument, (String, NoneLiteral)):
        message = f"`{wanted.name}` takes numbers here"
        raise error("E208", message, argument.span, f"it is `{wanted.text}`")


def axis_of(
    arguments: tuple[Argument, ...], default: int | None, value: Value, scope: Scope
) -> int | None:
    """The axis given by `axis=`, counted from 0; None for all axes."""
    axis = default
    if arguments:
        only = arguments[0]
        if isinstance(only, NoneLiteral):
            return None
        if isinstance(only, (String, Compare, BoolOp, Not)):
            raise error("E208", "`axis` is a whole number or `None`", only.span)
        axis = whole(only, scope)
    if axis is None:
        return None
    if not -value.rank <= axis < value.rank:
        span = arguments[0].span if arguments else None
        message = f"there is no axis {axis} in an array of {value.rank}"
        assert span is not None
        last = value.rank - 1
        remedy = f"axes count from 0 to {last}" if last else "a vector has only the axis 0"
        raise error("E208", message, span, remedy)
    return axis % value.rank


def default_number(parameter: Parameter) -> float:
    assert parameter.default is not None
    return float(parameter.default)


@dataclass(frozen=True, slots=True)
class ArrayCall:
    """A call: `operands` are the evaluated array arguments; `arguments` holds all, by parameter."""

    node: FunctionCall
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
        """The first (or only) array."""
        return with_unit_axes(self.operands[0].value)

    @property
    def sparse(self) -> Value | None:
        """The first array if it is sparse, otherwise None."""
        value = self.operands[0].value
        return None if value.pattern is None else value

    @property
    def values(self) -> tuple[Value, ...]:
        return tuple(with_unit_axes(operand.value) for operand in self.operands)

    def data_alone(self) -> Value:
        """The argument. Raises where it depends on a variable, at which the function would jump."""
        (argument,) = self.operands
        names = sorted({one.name for one in inputs(argument.value.expr) if one.role == "variable"})
        if names:
            what = f"`{self.name}` takes data alone, and this depends on `{names[0]}`"
            raise error("E203", what, self.span, JUMP)
        return argument.value

    def axes(self) -> tuple[int, ...]:
        """The axes given by `axis=`: a single one, or all."""
        axis = axis_of(self.arguments["axis"], self.default_axis, self.x, self.scope)
        return tuple(range(self.x.rank)) if axis is None else (axis,)

    def one_axis(self) -> int:
        axis = axis_of(self.arguments["axis"], self.default_axis, self.x, self.scope)
        if axis is None:
            raise error("E208", f"`{self.name}` needs one axis", self.span)
        return axis

    @property
    def default_axis(self) -> int | None:
        text = next(p.default for p in self.signature.parameters if p.name == "axis")
        return None if text in (None, "None") else int(text)

    def sizes(self, parameter: str) -> tuple[Dim, ...]:
        """Evaluate the arguments of a parameter as dims."""
        result = []
        for argument in self.arguments[parameter]:
            if isinstance(argument, (String, NoneLiteral, Compare, BoolOp, Not)):
                raise error("E208", "a size is expected here", argument.span)
            dim = size(argument, self.scope)
            if dim.is_literal and dim.const < 0:
                remedy = "write every size: none is inferred from the others"
                raise error("E209", "a size is negative", argument.span, remedy)
            result.append(dim)
        return tuple(result)

    def whole(self, parameter: str) -> int:
        """The value of a whole number, by default 0."""
        if not self.arguments[parameter]:
            return 0
        given = self.arguments[parameter][0]
        if isinstance(given, (String, NoneLiteral, Compare, BoolOp, Not)):
            raise error("E208", f"`{parameter}` is a whole number", given.span)
        return whole(given, self.scope)

    def text(self, parameter: str) -> String:
        argument = self.arguments[parameter][0]
        if not isinstance(argument, String):
            last = parameter == self.signature.parameters[-1].name
            place, example = "first", 'einsum("ij,jk->ik", A, B)'
            if last:
                place, example = "last", 'conv(x, k, "valid")'
            message = f"the {place} argument of `{self.name}` is a text in double quotes"
            raise error("E208", message, argument.span, f"as in `{example}`")
        return argument

    def refuse(self, message: str, remedy: str) -> StatementError:
        """The error for a rank or shape that the function does not accept."""
        shapes = " and ".join(show(operand.value) for operand in self.operands)
        return shape_error(
            "E220", f"{message}, not {shapes}", self.span, remedy, marks=marks(*self.operands)
        )

    def need_rank(self, ranks: tuple[int, ...], message: str, remedy: str = "") -> None:
        if any(value.rank not in ranks for value in self.values):
            raise self.refuse(message, remedy)
