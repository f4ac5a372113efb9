"""Sets of variables: from the clause of a declaration to a `DeclaredSet`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from slomodel.errors import Mark, Span
from slomodel.front.elaboration.errors import StatementError, error, shape_error, suggestion
from slomodel.front.elaboration.expressions.expressions import evaluate
from slomodel.front.elaboration.functions.arguments import axis_of, check_kind, match, signature
from slomodel.front.elaboration.scope import Elaboration, Scope
from slomodel.front.elaboration.statements.definitions import holds_everywhere
from slomodel.front.elaboration.values import Value, combine, merged, show, value_of
from slomodel.front.text.syntax import (
    Argument,
    Expr,
    FunctionCall,
    Name,
    Negate,
    SetClause,
    VarDecl,
)
from slomodel.functions import le, lt
from slomodel.ir import build
from slomodel.ir import expr as ir
from slomodel.ir.dims import Shape, show_shape
from slomodel.ir.walk import inputs
from slomodel.problem import OPEN_SETS, Check, DeclaredSet, Init, SetKind

NAMED_SETS: Mapping[str, SetKind] = {
    "open_simplex(axis=-1)": "open_simplex",
    "ordered(axis=-1)": "ordered",
    "cholesky_factor()": "cholesky_factor",
    "correlation()": "correlation",
    "simplex(axis=-1)": "simplex",
    "ball(r, center=0, axis=None)": "ball",
    "sphere(r=1, center=0, axis=-1)": "sphere",
    "psd()": "psd",
}
"""The sets that are declared by name, with their arguments."""
_INFINITIES = ("inf", "infinity", "infty", "oo")
_SQUARE = ("cholesky_factor", "correlation", "psd")
_WITH_AXIS = ("open_simplex", "simplex", "ordered")
_FOREIGN = {
    "positive": "write `> 0`",
    "negative": "write `< 0`",
    "nonnegative": "write `>= 0`",
    "positive_ordered": "declare numbers one by one: `a > 0, b > a`",
    "unit_vector": "write `in sphere`",
    "unit_simplex": "write `in open_simplex`, or `in simplex` with its faces",
    "corr_matrix": "write `in correlation`",
    "cholesky_factor_cov": "write `in cholesky_factor`",
    "lower_triangular": "write `in cholesky_factor`, whose diagonal is positive",
    "box": "write `in [lo, hi]`, or `in (lo, hi)` without the ends",
    "interval": "write `in (lo, hi)`, or `in [lo, hi]` with the ends",
    "integers": "variables are real numbers",
    "integer": "variables are real numbers",
    **dict.fromkeys(
        ("cov_matrix", "covariance", "positive_definite", "spd", "pd"),
        "declare its factor, `L[n, n] in cholesky_factor`, and write `L @ L'`; `psd` is closed",
    ),
}
"""Remedies for sets of other languages."""
_BOUNDED = "a set is `> 0`, `(0, 1)` (open), `>= 0`, `[0, 1]` (closed), or one of "


def declared_set(statement: VarDecl, shape: Shape, model: Elaboration) -> DeclaredSet | None:
    """The set of a variable that is being declared; None for the whole space."""
    clause = statement.set
    if clause is None:
        return None
    if clause.call is not None:
        result = _named(clause.call, shape, model)
    elif clause.form == "half_line":
        result = _half_line(clause, shape, model)
    else:
        result = _interval(clause, shape, model)
    return replace(result, text=clause.text, span=clause.span)


def _half_line(clause: SetClause, shape: Shape, model: Elaboration) -> DeclaredSet:
    kind: SetKind = "open_box" if clause.op in ("<", ">") else "box"
    (node,) = clause.ends
    end = _number(node, shape, model, kind)
    above = clause.op in (">", ">=")
    return DeclaredSet(kind, "", low=end if above else None, high=None if above else end)


def _interval(clause: SetClause, shape: Shape, model: Elaboration) -> DeclaredSet:
    kind: SetKind = "open_box" if clause.form == "open" else "box"
    low, high = clause.ends
    ends = [
        None if _infinite(node) == sign else _number(node, shape, model, kind)
        for node, sign in ((low, -1), (high, 1))
    ]
    result = DeclaredSet(kind, "", low=ends[0], high=ends[1])
    if ends[0] is not None and ends[1] is not None:
        _check_ends(ends[0], ends[1], clause, model)
    return result


def _infinite(node: Expr) -> int:
    """1 for `inf`, −1 for `-inf`, 0 for anything else."""
    sign = 1
    if isinstance(node, Negate):
        node, sign = node.operand, -1
    return sign if isinstance(node, Name) and node.text == "inf" else 0


def _check_ends(low: ir.Expr, high: ir.Expr, clause: SetClause, model: Elaboration) -> None:
    """Check the order of two ends: now if both are numbers, at bind if they depend on data."""
    read = inputs(low, high)
    first, second = (node.span.text for node in clause.ends)
    is_open = clause.form == "open"
    fault = f"the set `{clause.span.text}` is empty"
    if isinstance(low, ir.Const) and isinstance(high, ir.Const):
        if low.value < high.value or (not is_open and low.value == high.value):
            return
        raise error("E224", fault, clause.span, "write the lower end first")
    if read and all(node.role == "data" for node in read):
        condition = combine(lt if is_open else le, value_of(low), value_of(high))
        text = f"{first} {'<' if is_open else '<='} {second}"
        model.checks.append(Check(holds_everywhere(condition).expr, text, clause.span, fault))


def _number(node: Argument, shape: Shape, model: Elaboration, kind: SetKind) -> ir.Expr:
    """An end or centre: a number for all elements, or an array that broadcasts to the shape."""
    check_kind(node, signature(f"{kind}(ends)"), "")
    assert isinstance(node, Expr)
    if _infinite(node):
        message = f"`{node.span.text}` is not an end here"
        raise error("E224", message, node.span, "leave it out: `> lo` or `< hi`")
    inner = node.operand if isinstance(node, Negate) else node
    word = inner.text if isinstance(inner, Name) else ""
    if word.lower() in _INFINITIES and word not in model.symbols:
        message = f"`{node.span.text}` is not a number"
        raise error("E224", message, node.span, "an end that is infinite is `inf` or `-inf`")
    value = evaluate(node, Scope(model))
    if kind not in OPEN_SETS:
        _check_data(value, node.span)
    if value.rank and (
        len(shape) != value.rank or merged([value, Value(value.expr, (), shape)]) != shape
    ):
        message = f"the set is of {show(value)}, the variable {show_shape(shape)}"
        raise shape_error("E224", message, node.span, "give a number, or an array of equal shape")
    if isinstance(value.expr, ir.Const) and not math.isfinite(value.expr.value):
        raise error(
            "E224", f"`{node.span.text}` is {value.expr.value}", node.span, "write a number"
        )
    if value.rank and None in value.axes:
        kept = tuple(k for k, axis in enumerate(value.axes) if axis is not None)
        return build.broadcast(value.expr, kept, shape)
    return value.expr


def _check_data(value: Value, span: Span) -> None:
    named = [one.name for one in inputs(value.expr) if one.role == "variable"]
    if named:
        message = f"the numbers of a closed set are those of data, and `{named[0]}` is a variable"
        remedy = (
            "declare an open set, `> …` or `(…, …)`, or minimise over a difference that is `>= 0`"
        )
        raise error("E224", message, span, remedy)


def _named(call: FunctionCall, shape: Shape, model: Elaboration) -> DeclaredSet:
    texts = {text.partition("(")[0]: text for text in NAMED_SETS}
    name = call.function.text
    if name not in texts:
        remedy = _FOREIGN.get(name.lower(), "") or suggestion(name, texts)
        remedy = remedy or _BOUNDED + ", ".join(f"`{one}`" for one in texts)
        raise error("E224", f"unknown set `{name}`", call.function.span, remedy)
    kind = NAMED_SETS[texts[name]]
    result = match(call, signature(texts[name].replace("()", "(axis=0)")))
    if kind in _WITH_AXIS:
        return _along_axis(kind, result, call, shape, model)
    if kind in _SQUARE:
        if call.args or call.kwargs:
            raise error("E208", f"`{name}` takes no arguments", call.span, f"write `in {name}`")
        if len(shape) != 2 or shape[0] != shape[1]:
            message = (
                f"`{name}` is a set of square matrices, and the variable is {show_shape(shape)}"
            )
            raise shape_error("E224", message, call.span, "write one dim for both axes: `[n, n]`")
        return DeclaredSet(kind, "")
    return _round(kind, result, call, shape, model)


def _along_axis(
    kind: SetKind,
    arguments: Mapping[str, tuple[Argument, ...]],
    call: FunctionCall,
    shape: Shape,
    model: Elaboration,
) -> DeclaredSet:
    if not shape:
        raise _not_a_vector(call)
    axis = _axis(arguments, -1, call, shape, model)
    if axis is None:
        message = f"`{call.function.text}` needs one axis"
        raise error("E208", message, call.span, "leave `axis` out for the last one")
    return DeclaredSet(kind, "", axis=axis)


def _axis(
    arguments: Mapping[str, tuple[Argument, ...]],
    default: int | None,
    call: FunctionCall,
    shape: Shape,
    model: Elaboration,
) -> int | None:
    """The axis of a set of lines, counted from 0; None for all axes."""
    if arguments["axis"] and not shape:
        raise _not_a_vector(call)
    return axis_of(arguments["axis"], default, Value(build.zeros(shape), (), shape), Scope(model))


def _not_a_vector(call: FunctionCall) -> StatementError:
    message = f"`{call.span.text}` is a set of vectors, and the variable is a number"
    return shape_error("E224", message, call.span, "give it a shape, as in `p[K]`")


def _round(
    kind: SetKind,
    arguments: Mapping[str, tuple[Argument, ...]],
    call: FunctionCall,
    shape: Shape,
    model: Elaboration,
) -> DeclaredSet:
    """A ball or a sphere, whose radius is a positive number or datum."""
    radius: ir.Expr = build.const(1.0)
    if arguments["r"]:
        (node,) = arguments["r"]
        radius = _number(node, (), model, kind)
        if isinstance(radius, ir.Const) and radius.value <= 0.0:
            raise error("E224", f"the radius `{node.span.text}` is not positive", node.span, "")
        if inputs(radius):
            condition = build.apply(lt, build.const(0.0), radius)
            text = f"{node.span.text} > 0"
            fault = f"the radius `{node.span.text}` is not positive"
            model.checks.append(Check(condition, text, node.span, fault))
    center = _number(arguments["center"][0], shape, model, kind) if arguments["center"] else None
    axis = _axis(arguments, None if kind == "ball" or not shape else -1, call, shape, model)
    whole = axis is None
    return DeclaredSet(kind, "", radius=radius, center=center, axis=axis or 0, entire=whole)


def check_start(init: Init, inside: DeclaredSet, statement: VarDecl) -> None:
    """Check that a number as the start lies between the ends of an open set that are numbers.

    A start outside a closed set is projected, with a warning, when a run begins.
    """
    if init.kind not in ("number", "zeros", "ones") or inside.kind != "open_box":
        return
    start = init.parameters[0] if init.parameters else float(init.kind == "ones")
    low = inside.low.value if isinstance(inside.low, ir.Const) else -math.inf
    high = inside.high.value if isinstance(inside.high, ir.Const) else math.inf
    if not low < start < high:
        assert statement.init is not None
        span, name = statement.init.span, statement.name
        message = f"the start is outside the set `{name.text} {inside.text}`"
        remedy = "write a number inside, or leave `init` out for a random point of the set"
        if span.start >= statement.span.end:
            message += ": `init` applies to all names since the last one"
            remedy = f"write `{name.text} {inside.text} init …` with a start of its own"
        raise error("E321", message, span, remedy, marks=(Mark(name.span),))
