"""The wording of syntax messages about the set of a variable."""

from __future__ import annotations

from slomodel.errors import Diagnostic, Mark, Span
from slomodel.front.text.syntax import VarDecl
from slomodel.front.text.syntax_errors.messages import shown


def set_of_one_name(lacks: VarDecl, has: VarDecl) -> Diagnostic:
    """A name without a set that is followed by one with a set: does it hold for both?"""
    assert has.set is not None
    first, second, clause = _head(lacks), _head(has), has.set.text
    apart = f"`var {first}` and `var {second} {clause}`"
    return Diagnostic(
        "E128",
        f"the set applies to `{has.name.text}` alone, and `{lacks.name.text}` has none",
        lacks.name.span,
        (Mark(has.set.span),),
        help=f"write {apart} as two statements, or `{first} {clause}, {second} {clause}` for both",
    )


def _head(one: VarDecl) -> str:
    """The name of a variable with its sizes, as written."""
    sizes = ", ".join(size.span.text for size in one.shape)
    return f"{one.name.text}[{sizes}]" if sizes else one.name.text


def not_a_set(span: Span) -> Diagnostic:
    """`==` or `!=` after the name of a variable."""
    message = f"{shown(span.text)} does not give a set for a variable"
    remedy = "a set is `> 0`, `>= 0`, `(0, 1)` or `[0, 1]`"
    if span.text == "==":
        remedy = "define it, `let x = …`, or hold a variable at a value with `model.fix(x=…)`"
    return Diagnostic("E128", message, span, help=remedy)


def half_open(span: Span) -> Diagnostic:
    return Diagnostic(
        "E128",
        "an interval is open at both ends or closed at both",
        span,
        help="write `in (lo, hi)` for a variable that stays inside, or `in [lo, hi]` for one that "
        "may reach the ends",
    )


def second_set(span: Span) -> Diagnostic:
    message = "a variable has one set"
    return Diagnostic("E128", message, span, help="write `x in (0, 1)`, or `x in [0, 1]`")


def ends_without_comma(span: Span, found: str) -> Diagnostic:
    message = f"expected `,` between the ends of an interval, found {found}"
    return Diagnostic("E128", message, span, help="write it like `in (0, 1)`")


def bound_by_name(span: Span) -> Diagnostic:
    """`x<lower=0>`, as other languages write it."""
    message = "the bounds of a variable are written as a set"
    remedy = "write `x > 0` for a lower bound, `x in (0, 1)` for two"
    return Diagnostic("E128", message, span, help=remedy)


def late_set(span: Span) -> Diagnostic:
    message = "the set of a variable stands before its start"
    return Diagnostic("E128", message, span, help="write it like `var x > 0 init 1`")


def set_before_name(span: Span) -> Diagnostic:
    message = "the set of a variable stands after its name"
    remedy = "write it like `var x in [0, 1]`, or `var x >= 0`"
    return Diagnostic("E128", message, span, help=remedy)
