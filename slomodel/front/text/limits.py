"""What a text may be at most; tested before it is parsed, so that the answer comes at once."""

from __future__ import annotations

import re

from slomodel.errors import Diagnostic, SourceText, Span
from slomodel.front.text import messages
from slomodel.front.text.failure import STATEMENTS

LONGEST_TEXT = 2_000_000
"""Bytes of a model's text."""
DEEPEST = 5_000
"""Levels of nesting, counted in brackets and in operators with one operand or a chain of them."""
MOST_SIGNS = 50_000
"""Names, numbers, texts, brackets and other signs of one statement."""

_KEYWORDS = "|".join(STATEMENTS)
_SIGN = re.compile(
    r"(?P<comment>#[^\r\n]*)|(?P<open>[(\[])|(?P<close>[)\]])|"
    rf"(?P<keyword>\b(?:{_KEYWORDS})\b)|"
    r'"[^"\r\n]*"|[0-9][0-9.]*(?:[eE][+-]?[0-9]+)?|\w+|\.?\*\*?|\.?[-+/^@,:=<>!]|\''
)


def beyond_limits(source: SourceText) -> Diagnostic | None:
    """The message about a text nested too deep, or with too long a statement."""
    depth = count = 0
    for match in _SIGN.finditer(source.text):
        kind = match.lastgroup
        # What no grammar has room for is a mistake of its own, however often it comes.
        if kind == "comment" or (kind == "close" and not depth):
            continue
        count += 1
        if kind == "open":
            depth += 1
        elif kind == "close":
            depth -= 1
        elif kind == "keyword" and not depth:
            count = 1
        if depth > DEEPEST:
            return messages.nested_too_deep(Span(source, match.start(), match.end()), DEEPEST)
        if count > MOST_SIGNS:
            return messages.statement_too_long(Span(source, match.start(), match.end()), MOST_SIGNS)
    return None
