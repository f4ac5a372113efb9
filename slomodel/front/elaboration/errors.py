"""Errors of elaboration: a statement fails, and elaboration continues with the next."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from slomodel.errors import (
    Diagnostic,
    Mark,
    MissingRule,
    ModelSyntaxError,
    ShapeError,
    SlomodelError,
    Span,
)

OUTSIDE = ("E210", "E211", "E227")
"""Codes of errors for an index outside its axis, or first steps, which a condition may prevent."""
_MOST_COMPARED = 2_000
_MOST_NAMED = 3


class StatementError(Exception):
    """An error in one statement; without a diagnostic, a consequence of an earlier error."""

    def __init__(
        self, diagnostic: Diagnostic | None, kind: type[SlomodelError] = ModelSyntaxError
    ) -> None:
        Exception.__init__(self, "" if diagnostic is None else diagnostic.message)
        self.diagnostic = diagnostic
        self.kind = kind


def error(
    code: str,
    message: str,
    span: Span,
    remedy: str = "",
    *,
    marks: tuple[Mark, ...] = (),
    note: str = "",
) -> StatementError:
    """An error about names, rules or statements."""
    return StatementError(Diagnostic(code, message, span, marks, note, remedy))


def shape_error(
    code: str,
    message: str,
    span: Span,
    remedy: str = "",
    *,
    marks: tuple[Mark, ...] = (),
    note: str = "",
) -> StatementError:
    """An error about shapes or index ranges."""
    return StatementError(Diagnostic(code, message, span, marks, note, remedy), ShapeError)


def unsupported(message: str, span: Span, remedy: str = "") -> StatementError:
    """A part of the language that is not supported yet."""
    return StatementError(Diagnostic("E250", message, span, help=remedy), MissingRule)


def misplaced_row(span: Span, meant: str = "") -> StatementError:
    """The error for a transposed vector without `@` to its right."""
    remedy = meant or "a vector has one axis: omit `'`, or write `outer(x, y)` or `x[None, :]`"
    message = "a transposed vector may only be the left operand of `@`"
    return shape_error("E207", message, span, remedy)


def dense_needed(span: Span, meant: str = "") -> StatementError:
    """The error for a sparse array where all elements would be needed."""
    message = f"`{span.text}` is sparse, and all of its elements would be needed here"
    remedy = meant or "write a sum over its stored entries, as in `sum(f(A[i, j]) for i, j in A)`"
    return error("E229", message, span, f"{remedy}; or declare the data without `sparse`")


def suggestion(word: str, known: Iterable[str]) -> str:
    """`did you mean …?` for the closest of the known words, or an empty string.

    Two or three words that are one edit away, such as `weibull_lcdf` and `weibull_lccdf` from
    `weibull_lcddf`, are all named.
    """
    # Thousands of names would take seconds; names of other lengths are not similar anyway.
    words = [w for w in known if abs(len(w) - len(word)) <= len(word) // 2 + 1][:_MOST_COMPARED]
    same = [w for w in words if w.lower() == word.lower()]
    near = same or get_close_matches(word, words, n=_MOST_NAMED, cutoff=0.6)
    close = [w for w in near if _is_one_edit(word, w)] or near[:1]
    return f"did you mean {' or '.join(f'`{one}`' for one in close)}?" if close else ""


def _is_one_edit(a: str, b: str) -> bool:
    """Whether one letter added, left out or replaced, or two that are swapped, turn a into b."""
    start = next((k for k, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), None)
    if start is None:
        return abs(len(a) - len(b)) == 1
    rest_a, rest_b = a[start:], b[start:]
    swapped = rest_a[:2] == rest_b[1::-1] and rest_a[2:] == rest_b[2:]
    return swapped or rest_b[1:] in (rest_a, rest_a[1:]) or rest_a[1:] == rest_b
