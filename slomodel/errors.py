"""The hierarchy of errors, source spans, and the common layout of messages.

A message has four parts: where, what was expected, what was found, what to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property


@dataclass(frozen=True)
class SourceText:
    """A model's text and its name in messages (a path, or `<model>`)."""

    text: str
    name: str = "<model>"

    @cached_property
    def _starts(self) -> list[int]:
        starts = [0]
        starts.extend(k + 1 for k, char in enumerate(self.text) if char == "\n")
        return starts

    def locate(self, offset: int) -> tuple[int, int]:
        """Line and column of a character offset, both counted from 1."""
        from bisect import bisect_right

        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def line(self, number: int) -> str:
        """The text of line `number` (from 1) without its line break."""
        start = self._starts[number - 1]
        end = self._starts[number] - 1 if number < len(self._starts) else len(self.text)
        return self.text[start:end].rstrip("\r")


@dataclass(frozen=True, slots=True)
class Span:
    """Characters `start` to `end` (exclusive) of a source text."""

    source: SourceText = field(repr=False)
    start: int
    end: int

    @property
    def line(self) -> int:
        return self.source.locate(self.start)[0]

    @property
    def column(self) -> int:
        return self.source.locate(self.start)[1]

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]

    def to(self, other: Span) -> Span:
        """The span from the start of this one to the end of `other`."""
        return Span(self.source, min(self.start, other.start), max(self.end, other.end))


@dataclass(frozen=True, slots=True)
class Mark:
    """An operand to underline in a message, with a label below it (its shape, say)."""

    span: Span
    label: str = ""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One message: code, sentence, position, marked operands, a note on origins, and the remedy."""

    code: str
    message: str
    span: Span | None = None
    marks: tuple[Mark, ...] = ()
    note: str = ""
    help: str = ""
    severity: str = "error"

    def facts(self) -> dict[str, object]:
        """The message as data for JSON; a missing position is null."""
        return {
            "code": self.code,
            "severity": self.severity,
            "message": self.message,
            "file": self.span.source.name if self.span else None,
            "line": self.span.line if self.span else None,
            "column": self.span.column if self.span else None,
            "help": self.help,
        }

    def render(self) -> str:
        """The message as text for the user, without a final newline."""
        lines = [f"{self.severity}[{self.code}]: {self.message}"]
        if self.span is not None:
            lines += _excerpt(self.span, self.marks, self.note)
        elif self.note:
            lines.append(f" note: {self.note}")
        if self.help:
            lines.append(f" help: {self.help}")
        return "\n".join(lines)


_WIDEST_EXCERPT = 120


def _excerpt(span: Span, marks: Sequence[Mark], note: str) -> list[str]:
    number = span.line
    text = span.source.line(number)
    first = span.source.locate(span.start)[1] - 1
    # Of a very long line only a window around the mark is shown.
    shift = 0
    if len(text) > _WIDEST_EXCERPT:
        shift = max(0, first - _WIDEST_EXCERPT // 2)
        text = text[shift : shift + _WIDEST_EXCERPT]
    gutter = " " * len(str(number))
    under: list[str] = [" "] * (len(text) + 1)
    labels: list[tuple[int, str]] = []
    for mark in marks:
        if mark.span.line == number:
            _underline(under, mark.span, shift, "~")
            if mark.label:
                width = mark.span.end - mark.span.start
                centred = max(0, (width - len(mark.label)) // 2)
                labels.append((mark.span.column - 1 - shift + centred, mark.label))
    _underline(under, span, shift, "^")
    shown = "".join(" " if char == "\t" else char for char in text)
    lines = [
        f"  --> {span.source.name}:{number}:{span.column}",
        f" {number} | {shown}",
        f" {gutter} | {''.join(under).rstrip()}",
    ]
    below = _label_line(labels)
    if below or note:
        pad = below.ljust(len(below) + 10) if below and note else below
        lines.append(f" {gutter} | {pad}{note}".rstrip())
    return lines


def _underline(under: list[str], span: Span, shift: int, char: str) -> None:
    start = span.column - 1 - shift
    width = max(1, span.end - span.start)
    for k in range(max(0, start), min(start + width, len(under))):
        under[k] = char


def _label_line(labels: list[tuple[int, str]]) -> str:
    line = ""
    for column, label in sorted(labels):
        line = line.ljust(max(column, len(line) + 1 if line else 0)) + label
    return line


class SlomodelError(Exception):
    """Base class of all errors that slomodel raises deliberately.

    `diagnostics` holds the messages as data; the text of the error consists of all of them,
    rendered.
    """

    def __init__(self, *problems: Diagnostic | str) -> None:
        self.diagnostics = tuple(
            p if isinstance(p, Diagnostic) else Diagnostic("E000", p) for p in problems
        )
        texts = [p.render() if isinstance(p, Diagnostic) else p for p in problems]
        Exception.__init__(self, "\n\n".join(texts))

    def __reduce__(self) -> tuple[type[SlomodelError], tuple[Diagnostic | str, ...]]:
        return type(self), tuple(d if d.code != "E000" else d.message for d in self.diagnostics)


class ModelSyntaxError(SlomodelError, ValueError):
    """The text is not a valid model: a syntax error, or a wrong name, rule or statement."""


class ShapeError(SlomodelError, ValueError):
    """Shapes or sizes do not fit, in a model or at bind."""


class DomainError(SlomodelError, ValueError):
    """A value is outside the allowed range: of data, an option or a point."""


class MissingRule(SlomodelError, NotImplementedError):
    """A valid construct of the language that this version does not support; the text names it."""


class TargetLimit(SlomodelError, RuntimeError):
    """A request that a backend does not support."""


class ModelWarning(UserWarning):
    """A construct in a model that is allowed but rarely intended; the text gives the position."""


class NonsmoothWarning(ModelWarning):
    """A model has a kink, where its gradient jumps; the text gives the position."""


class StartWarning(UserWarning):
    """A start outside the set in which the variables must stay, which is moved into it."""


class BackendWarning(UserWarning):
    """The kernels run on a slower backend than possible; the text gives reason and remedy."""
