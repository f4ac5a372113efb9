"""The standard layout of a model: one statement per line, even spacing, comments preserved.

Only white space and `;` change: the result is checked to have the same tokens and comments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from lark import Token

from slomodel.errors import SourceText
from slomodel.front.text.parse import parse, tokens
from slomodel.front.text.syntax import STATEMENT_TOKENS
from slomodel.front.text.syntax_errors.failure import ENDS_OPERAND

_INDENT = 5
"""Indent of a line that continues a statement; each open bracket adds two columns."""
_WIDEST_ALIGNED = 72
_NEWLINE = re.compile(r"\r\n|\r|\n")
_KEYWORDS = STATEMENT_TOKENS
_LOCAL = ("LET", "RETURN")
"""Keywords that begin a line inside an `fn`."""
_LOCAL_INDENT = 2


@dataclass(slots=True)
class _Line:
    """Parts of code and the comment after them; a comment on its own line has only an indent."""

    parts: list[str]
    comment: str = ""
    blank_before: bool = False

    @property
    def code(self) -> str:
        return "".join(self.parts)


@dataclass(slots=True)
class _Page:
    """The lines so far; `fresh`: the next token begins a new line."""

    lines: list[_Line] = field(default_factory=list)
    fresh: bool = True

    def add(self, text: str, indent: int, blank_before: bool = False) -> None:
        if self.fresh:
            blank_before = blank_before and bool(self.lines)
            self.lines.append(_Line([" " * indent], blank_before=blank_before))
            self.fresh = False
        self.lines[-1].parts.append(text)


def formatted(source: SourceText) -> str:
    """The text of a model in the standard layout. Raises ModelSyntaxError if it is not a model."""
    parse(source)
    result = tokens(source)
    page = _Page()
    statement: list[Token] = []
    gaps: list[str] = []
    end = margin = 0
    for token in result:
        start = token.start_pos or 0
        gap = source.text[end:start].removeprefix("\ufeff")
        end = start + len(token)
        if token.type in (*_KEYWORDS, "RETURN") and statement:
            _lay_out(page, statement, gaps, margin)
            margin = _LOCAL_INDENT if _is_local(statement, token, margin) else 0
            statement, gaps = [], []
        statement.append(token)
        gaps.append(gap)
    _lay_out(page, statement, gaps, margin)
    _comments(page, source.text[end:], 0)
    return _joined(page.lines)


def _spelling(token: Token) -> str:
    """The text of a token; keywords of two words are written with one space between them."""
    return " ".join(token.split()) if token.type in ("SUBJECT", "DROP") else str(token)


def _is_local(before: Sequence[Token], keyword: Token, margin: int) -> bool:
    """Whether a keyword begins a line inside an `fn`, given the statement or line before it."""
    if before[0].type == "FN":
        return keyword.type == "LET" and before[-1].type == "EQUAL"
    return bool(margin) and before[0].type == "LET" and keyword.type in _LOCAL


def _lay_out(page: _Page, statement: Sequence[Token], gaps: Sequence[str], margin: int) -> None:
    """Append the lines of a statement, each indented by a margin.

    `gaps[k]` is the white space and comments before token k.
    """
    kinds = [token.type for token in statement if token.type != "SEMICOLON"]
    words = [_spelling(token) for token in statement if token.type != "SEMICOLON"]
    open_brackets: list[str] = []
    pending, k = "", 0
    for token, gap in zip(statement, gaps, strict=True):
        pending += gap
        if token.type == "SEMICOLON":
            continue
        joins = joins_definitions(kinds, k, open_brackets)
        begins = not k or joins
        indent = margin + (0 if begins else _INDENT + 2 * len(open_brackets))
        broken = begins or bool(_NEWLINE.search(pending))
        blank = _comments(page, pending, indent)
        if not page.fresh:
            page.fresh = (broken or bool(margin and not k)) and not (k and is_attached(kinds, k))
        if token.type in ("RPAR", "RSQB"):
            open_brackets.pop()
            indent -= 2
        if k and not page.fresh:
            space = space_before(kinds, words, k, open_brackets[-1] if open_brackets else "")
            first = k == 1 or joins_definitions(kinds, k - 1, open_brackets)
            page.lines[-1].parts.append("" if first else space)
        keyword = f"{token} " if margin else padded(words[k], token.type)
        page.add(keyword if begins else words[k], indent, blank)
        if token.type in _OPENING:
            is_array = token.type == "LSQB" and not is_attached(kinds, k)
            open_brackets.append("ARRAY" if is_array else token.type)
        pending = ""
        k += 1
    # Comments after a last `;` belong to the next statement.
    _comments(page, pending, 0)


def _comments(page: _Page, gap: str, indent: int) -> bool:
    """Append the comments of a gap; return whether the gap ends with a blank line."""
    parts = _NEWLINE.split(gap)
    blank = False
    for number, part in enumerate(parts):
        text = part.strip()
        if number and page.lines and page.lines[-1].comment:
            page.fresh = True
        if text.startswith("#"):
            if number == 0 and page.lines and not page.lines[-1].comment:
                page.lines[-1].comment = text
            else:
                page.fresh = True
                first = not page.lines
                page.lines.append(_Line([" " * indent], text, blank and not first and not indent))
            page.fresh, blank = True, False
        elif number and number < len(parts) - 1 and not text:
            blank = True
    return blank


def _joined(lines: Sequence[_Line]) -> str:
    """The text, with comments after code aligned on consecutive lines."""
    result: list[str] = []
    for run in _runs(lines):
        width = max(len(line.code.rstrip()) for line in run)
        for line in run:
            code = line.code.rstrip()
            text = code
            if line.comment:
                text = f"{code.ljust(width)}  {line.comment}" if code else line.code + line.comment
            result += [""] * line.blank_before + [text]
    return "\n".join(result) + "\n" if result else ""


def _runs(lines: Sequence[_Line]) -> Iterator[list[_Line]]:
    """Groups of consecutive lines whose comments are aligned; other lines are groups of one."""
    run: list[_Line] = []
    for line in lines:
        code = line.code
        aligned = bool(code.strip() and line.comment) and len(code) <= _WIDEST_ALIGNED
        if run and (not aligned or line.blank_before):
            yield run
            run = []
        if aligned:
            run.append(line)
        else:
            yield [line]
    if run:
        yield run


_WIDEST_KEYWORD = len("data")
_PADDED = ("DIM", "DATA", "VAR", "LET", "FN", "AND")
_OPENING = ("LPAR", "LSQB")
_CLOSING = ("RPAR", "RSQB")


def padded(keyword: str, kind: str) -> str:
    """A keyword padded with spaces, so that the declared names begin in the same column."""
    return keyword.ljust(_WIDEST_KEYWORD) + " " if kind in _PADDED else keyword + " "


def joins_definitions(kinds: Sequence[str], k: int, open_brackets: Sequence[str]) -> bool:
    """Whether token k is the `and` between two definitions of a recurrence."""
    return kinds[k] == "AND" and kinds[0] == "LET" and not open_brackets


def is_sign(kinds: Sequence[str], k: int) -> bool:
    """Whether token k is a `+` or `-` without a left operand."""
    return kinds[k] == "ADDOP" and (k == 0 or kinds[k - 1] not in ENDS_OPERAND)


def is_attached(kinds: Sequence[str], k: int) -> bool:
    """Whether token k follows the previous one without a space: a call, an index, a transpose."""
    if kinds[k] == "LPAR":
        return kinds[k - 1] == "NAME"
    if kinds[k] == "LSQB":
        return kinds[k - 1] in ENDS_OPERAND
    return kinds[k] in ("TRANSPOSE", "COMMA")


def space_before(kinds: Sequence[str], words: Sequence[str], k: int, innermost: str) -> str:
    """The space between tokens k - 1 and k of a statement, inside the bracket `innermost`."""
    left, right = kinds[k - 1], kinds[k]
    if is_attached(kinds, k) or left in _OPENING or right in _CLOSING:
        return ""
    if "COLON" in (left, right) and left != "COMMA":
        return " " if left == "COLON" and innermost != "LSQB" else ""
    if "EQUAL" in (left, right):
        return "" if innermost == "LPAR" else " "
    if is_sign(kinds, k - 1):
        return ""
    if _is_tight(left, words[k - 1], innermost) or _is_tight(right, words[k], innermost):
        return ""
    return " "


def _is_tight(kind: str, word: str, innermost: str) -> bool:
    """Whether an operator has no spaces: powers, and sums and multiples in an index: `x[2*i+1]`."""
    if kind == "POWOP":
        return word != ".^"
    return innermost == "LSQB" and (kind == "ADDOP" or word == "*")
