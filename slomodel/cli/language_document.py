"""A model as an editor sees it: diagnostics, names with their meanings, and edits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

from slomodel.errors import Diagnostic, SlomodelError, SourceText, Span
from slomodel.front.catalogue import catalogue as every_function
from slomodel.front.catalogue import entries_of
from slomodel.front.lints.kinks import smoothness_class
from slomodel.front.source import problem_of
from slomodel.front.text.format import formatted
from slomodel.front.text.parse import parse, tokens
from slomodel.front.text.syntax import (
    ATTRIBUTES,
    STATEMENTS,
    DataDecl,
    DimDecl,
    Fn,
    Let,
    ModelTree,
    Name,
    VarDecl,
)
from slomodel.ir.dims import show_shape
from slomodel.problem import Problem

_WORD = re.compile(r"[^\W\d]\w*")
_SEVERITY = {"error": 1, "warning": 2}
_KINDS = {DimDecl: "dim", DataDecl: "data", VarDecl: "variable", Let: "definition", Fn: "function"}
_KEYWORDS = (*STATEMENTS, "init", "from", "for", "in", "if", "and", "or", "not", "first")


@dataclass(frozen=True, slots=True)
class Declared:
    """A declared name: its kind, its name in the text, and its statement."""

    kind: str
    name: Name
    text: str


@final
class LanguageDocument:
    """The text of a model at one moment; positions are those of LSP, in UTF-16 code units.

    Where the text does not parse, names are those of `before`, the last text that did; where it has
    errors, as while a name is typed, shapes and sets are those of the last text without any.
    """

    def __init__(self, uri: str, text: str, before: LanguageDocument | None = None) -> None:
        self.source = SourceText(text, uri)
        self._before = before
        self._problem_before = None if before is None else before.last_problem

    @cached_property
    def _elaborated(self) -> tuple[ModelTree | None, Problem | None, tuple[Diagnostic, ...]]:
        """The syntax tree and the problem as far as there are any, with all messages."""
        tree = problem = None
        try:
            tree = parse(self.source)
            problem = problem_of(self.source)
        except SlomodelError as error:
            return tree, None, error.diagnostics
        return tree, problem, problem.warnings

    @property
    def last_good(self) -> LanguageDocument:
        """This text if it parses, else the last one that did."""
        if self._elaborated[0] is not None:
            self._before = None  # no chain of earlier texts is kept
        return self if self._before is None else self._before.last_good

    @property
    def last_problem(self) -> Problem | None:
        """The problem of this text, else of the last one that had one."""
        own = self._elaborated[1]
        return self._problem_before if own is None else own

    def diagnostics(self) -> list[dict[str, Any]]:
        """The messages of the command line, for the editor."""
        end = Span(self.source, len(self.source.text), len(self.source.text))
        return [
            {
                "range": self.range(one.span or end),
                "severity": _SEVERITY[one.severity],
                "code": one.code,
                "source": "slomodel",
                "message": "\n".join(filter(None, (one.message, one.note, one.help))),
            }
            for one in self._elaborated[2]
        ]

    @cached_property
    def declared(self) -> dict[str, Declared]:
        """The declared names."""
        tree = self.last_good._elaborated[0]
        result: dict[str, Declared] = {}
        for one in () if tree is None else tree.order:
            if isinstance(one, DimDecl | DataDecl | VarDecl | Let | Fn):
                result[one.name.text] = Declared(_KINDS[type(one)], one.name, one.span.text)
        return result

    def hover(self, line: int, character: int) -> str | None:
        """Kind, shape, set and meaning of the name at a position, as Markdown."""
        word = self._word(line, character)
        if word is None:
            return None
        own = self.declared.get(word.text)
        if own is not None:
            shape = self._shape(word.text)
            lines = [f"**{own.kind}** `{word.text}` {shape}".rstrip(), f"```slo\n{own.text}\n```"]
            return "\n\n".join([*lines, *self._facts(word.text)])
        if word.text in {one.name for one in every_function()}:
            return "\n\n".join(
                f"```slo\n{one.signature}\n```\n{one.meaning}"
                + (f"\n\ndomain: {one.domain}; {one.smoothness}" if one.domain else "")
                for one in entries_of(word.text)
            )
        return None

    def _shape(self, name: str) -> str:
        problem = self.last_problem
        if problem is None:
            return ""
        nodes = {v.name: v.node.shape for v in problem.variables}
        nodes |= {d.name: d.node.shape for d in problem.data}
        nodes |= {key: node.shape for key, node in problem.definitions.items()}
        return show_shape(nodes[name]) if name in nodes else ""

    def _facts(self, name: str) -> Iterator[str]:
        problem = self.last_problem
        for one in () if problem is None else problem.variables:
            if one.name == name and problem is not None:
                where = "all numbers" if one.set is None else one.set.text
                yield f"set: {where}; the objective is {smoothness_class(problem, {})}"

    def completions(self) -> list[dict[str, Any]]:
        """All names: declared ones, keywords, attributes and functions."""
        kinds = {"dim": 20, "data": 5, "variable": 6, "definition": 6, "function": 3}
        result = [
            {
                "label": name,
                "kind": kinds[one.kind],
                "detail": f"{one.kind} {self._shape(name)}".rstrip(),
            }
            for name, one in self.declared.items()
        ]
        result += [{"label": word, "kind": 14} for word in (*_KEYWORDS, *sorted(ATTRIBUTES))]
        result += [
            {"label": one.name, "kind": 3, "detail": one.signature, "documentation": one.meaning}
            for one in every_function()
        ]
        return result

    def definition(self, line: int, character: int) -> dict[str, Any] | None:
        """The range of the declaration of the name at a position."""
        word = self._word(line, character)
        own = None if word is None else self.declared.get(word.text)
        return None if own is None else self.range(own.name.span)

    def occurrences(self, name: str) -> list[Span]:
        """Every place of a declared name, of functions its calls too."""
        every = tokens(self.source)
        is_function = self.declared[name].kind == "function"
        result = []
        for k, token in enumerate(every):
            if token.type == "NAME" and token == name:
                called = k + 1 < len(every) and every[k + 1].type == "LPAR"
                if is_function or not called:
                    start = token.start_pos or 0
                    result.append(Span(self.source, start, start + len(name)))
        return result

    def rename(self, line: int, character: int, new: str) -> list[dict[str, Any]]:
        """The edits that give the declared name at a position another one.

        Raises ValueError, with a sentence, where that is not possible.
        """
        word = self._word(line, character)
        if word is None or word.text not in self.declared:
            raise ValueError("only names that the model declares can be renamed")
        if self._elaborated[0] is None:
            raise ValueError("the model has errors in its syntax: mend them first")
        if not _WORD.fullmatch(new):
            raise ValueError(f"`{new}` is not a name")
        edits = [
            {"range": self.range(span), "newText": new} for span in self.occurrences(word.text)
        ]
        renamed = LanguageDocument(self.source.name, self._with_edits(word.text, new))
        if len(renamed.diagnostics()) > len(self.diagnostics()):
            message = renamed.diagnostics()[0]["message"]
            raise ValueError(f"`{new}` cannot be the name: {message}")
        return edits

    def _with_edits(self, name: str, new: str) -> str:
        text = self.source.text
        for span in reversed(self.occurrences(name)):
            text = text[: span.start] + new + text[span.end :]
        return text

    def format(self) -> list[dict[str, Any]]:
        """The edit that brings the text into the standard layout; none for one with errors."""
        try:
            text = formatted(self.source)
        except SlomodelError:
            return []
        whole = self.range(Span(self.source, 0, len(self.source.text)))
        return [] if text == self.source.text else [{"range": whole, "newText": text}]

    def symbols(self) -> list[dict[str, Any]]:
        """The declared names with their places, for an outline."""
        kinds = {"dim": 14, "data": 18, "variable": 13, "definition": 14, "function": 12}
        return [
            {
                "name": name,
                "kind": kinds[one.kind],
                "range": self.range(one.name.span),
                "selectionRange": self.range(one.name.span),
            }
            for name, one in self.declared.items()
        ]

    def range(self, span: Span) -> dict[str, Any]:
        """A span as a range of LSP."""
        return {"start": self._place(span.start), "end": self._place(span.end)}

    def _place(self, offset: int) -> dict[str, int]:
        text = self.source.text
        offset = min(offset, len(text))
        begin = text.rfind("\n", 0, offset) + 1
        units = len(text[begin:offset].encode("utf-16-le")) // 2
        return {"line": text.count("\n", 0, offset), "character": units}

    def _word(self, line: int, character: int) -> Span | None:
        """The word at a position, or that ends there."""
        lines = self.source.text.split("\n")
        if line >= len(lines):
            return None
        before = sum(len(one) + 1 for one in lines[:line])
        units = lines[line].encode("utf-16-le")[: 2 * character]
        at = len(units.decode("utf-16-le", "ignore"))
        for match in _WORD.finditer(lines[line]):
            if match.start() <= at <= match.end():
                return Span(self.source, before + match.start(), before + match.end())
        return None
