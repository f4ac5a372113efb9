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
MOST_OPERATORS = 75_000
"""Operators, commas and further indices between two brackets or on one side of them."""

_KEYWORDS = "|".join(STATEMENTS)
# Texts, comments and numbers are passed over whole.
_SYMBOL = re.compile(
    r'"[^"\r\n]*"|#[^\r\n]*|[0-9.]+(?:[eE][+-]?[0-9]+)?|'
    r"(?P<operator>\.?[-+/^@,':]|\.?\*\*?|\]\s*\[)|(?P<open>[(\[])|(?P<close>[)\]])|"
    rf"(?P<keyword>\b(?:{_KEYWORDS})\b)"
)


def beyond_limits(source: SourceText) -> Diagnostic | None:
    """The message about a text nested too deep, or with too long a chain of operators."""
    counts = [0]
    for match in _SYMBOL.finditer(source.text):
        kind = match.lastgroup
        if kind == "operator":
            counts[-1] += 1
            if counts[-1] > MOST_OPERATORS:
                at = Span(source, match.start(), match.end())
                return messages.too_many_operators(at, MOST_OPERATORS)
        elif kind == "open":
            counts.append(0)
            if len(counts) > DEEPEST + 1:
                at = Span(source, match.start(), match.end())
                return messages.nested_too_deep(at, DEEPEST)
        elif kind == "close" and len(counts) > 1:
            counts.pop()
        elif kind == "keyword" and len(counts) == 1:
            counts[0] = 0
    return None
