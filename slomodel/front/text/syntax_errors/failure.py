"""The failure of a parse and its context, from which syntax messages are composed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from lark import Lark, Token
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from slomodel.errors import SourceText, Span
from slomodel.front.text.syntax import STATEMENT_PATTERN, STATEMENT_TOKENS, Let

END = "$END"
UNKNOWN = ""
"""Token type of text that no token matches."""

_STATEMENT_TYPES = frozenset(STATEMENT_TOKENS)
ENDS_OPERAND = frozenset(("NAME", "NUMBER", "RPAR", "RSQB", "TRANSPOSE", "NONE", "STRING"))
_CLOSES = {"LPAR": "RPAR", "LSQB": "RSQB"}
_KEYWORDS = re.compile(r'"[^"\r\n]*"|#[^\r\n]*|\b(return|' + STATEMENT_PATTERN + r")\b")
_UNREADABLE = re.compile(r'"[^\r\n]*|\w+|[\s\S]')


@dataclass(frozen=True)
class Failure:
    """A token of type `found` where one of the terminals `accepts` was expected.

    `before` is the statement so far; `is_local`: the token is inside the definitions of an `fn`. At
    the end of the text `found` is `END`, with an empty span right after the last token.
    """

    source: SourceText
    found: str
    span: Span
    before: tuple[Token, ...]
    accepts: frozenset[str]
    is_local: bool = False

    @property
    def text(self) -> str:
        return self.span.text

    @property
    def previous(self) -> Token | None:
        return self.before[-1] if self.before else None

    @property
    def after_operand(self) -> bool:
        """Whether an expression may have ended directly before the failure."""
        return self.previous is not None and self.previous.type in ENDS_OPERAND

    @property
    def statement(self) -> str:
        """The keyword of the statement, in capitals; empty between statements."""
        first = self.before[0].type if self.before else ""
        return first if first in _STATEMENT_TYPES else ""

    @property
    def starts_statement(self) -> bool:
        return self.found in _STATEMENT_TYPES

    @cached_property
    def gap(self) -> str:
        """White space and comments between the last token and the token found."""
        start = 0 if self.previous is None else span_of(self.source, self.previous).end
        return self.source.text[start : self.span.start]

    @property
    def adjacent(self) -> bool:
        return self.previous is not None and not self.gap

    @property
    def first_on_line(self) -> bool:
        return self.previous is None or "\n" in self.gap

    @property
    def rest_of_line(self) -> str:
        return re.split(r"[\r\n#;]", self.source.text[self.span.start :], maxsplit=1)[0]

    @cached_property
    def open_brackets(self) -> tuple[Token, ...]:
        """Brackets of the statement that are still open, outermost first."""
        return tuple(self.before[k] for k in self._open)

    @cached_property
    def level(self) -> tuple[Token, ...]:
        """Tokens inside the innermost open bracket, without those inside nested brackets."""
        begin = self._open[-1] + 1 if self._open else 0
        depth, result = 0, []
        for token in self.before[begin:]:
            depth -= token.type in _CLOSES.values()
            if depth == 0:
                result.append(token)
            depth += token.type in _CLOSES
        return tuple(result)

    @cached_property
    def _open(self) -> list[int]:
        stack: list[int] = []
        for k, token in enumerate(self.before):
            if token.type in _CLOSES:
                stack.append(k)
            elif token.type in _CLOSES.values() and stack:
                stack.pop()
        return stack


def span_of(source: SourceText, token: Token) -> Span:
    """The span of a token."""
    start = token.start_pos or 0
    return Span(source, start, start + len(token))


def failure_of(lexer: Lark, source: SourceText, begin: int, error: UnexpectedInput) -> Failure:
    """The facts of a parse that started at `begin` and stopped with `error`."""
    interactive = error.interactive_parser
    lexed = interactive.lexer_thread.state
    stop = begin if lexed is None else lexed.line_ctr.char_pos
    result, span = UNKNOWN, Span(source, stop, stop)
    if isinstance(error, UnexpectedToken):
        result, span = error.token.type, span_of(source, error.token)
        stop = len(source.text) if result == END else span.start
    elif isinstance(error, UnexpectedCharacters):
        match = _UNREADABLE.match(source.text, stop)
        span = Span(source, stop, match.end() if match else stop)
    for value in reversed(interactive.parser_state.value_stack):
        if isinstance(value, Token) and value.type in _STATEMENT_TYPES:
            begin = value.start_pos or 0
            break
    else:
        begin = stop
    before = tuple(lexer.lex(blank_before(source.text[:stop], begin)))
    if result == END:
        last = span_of(source, before[-1]).end if before else len(source.text.rstrip())
        span = Span(source, last, last)
    accepts: frozenset[str] = frozenset(interactive.accepts())  # type: ignore[no-untyped-call]
    is_local = _is_local(interactive.parser_state.value_stack)
    return Failure(source, result, span, before, accepts, is_local)


def _is_local(values: Sequence[object]) -> bool:
    """Whether a definition follows the head of an `fn` on the parser's stack."""
    heads = [k for k, one in enumerate(values) if isinstance(one, Token) and one.type == "FN"]
    rest = values[heads[-1] :] if heads else ()
    return any(isinstance(one, Let) or getattr(one, "type", "") == "LET" for one in rest)


def blank_before(text: str, begin: int) -> str:
    """`text` with everything before `begin` blanked, so that positions are preserved."""
    return " " * begin + text[begin:]


def next_statement(text: str, start: int, is_local: bool = False) -> int | None:
    """The position of the first statement keyword at or after `start`, outside comments.

    If `start` is inside the definitions of an `fn`, those up to its `return` are passed over.
    """
    for match in _KEYWORDS.finditer(text, start):
        if match[1] == "return":
            is_local = False
        elif match[1] and not (is_local and match[1] == "let"):
            return match.start()
    return None
