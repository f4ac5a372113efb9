"""Colours of models on the pages: a lexer of Pygments from the grammar that editors read."""

from __future__ import annotations

import json
from pathlib import Path

from pygments.lexer import RegexLexer
from pygments.lexers._mapping import LEXERS
from pygments.token import (
    Comment,
    Keyword,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
    Text,
    Whitespace,
)

__all__ = ["SloLexer"]

_GRAMMAR = Path(__file__).parent.parent / "grammar" / "slo.tmLanguage.json"
_TOKENS = {
    "comment": Comment.Single,
    "string": String.Double,
    "keyword.other": Keyword.Declaration,
    "keyword.control": Keyword,
    "keyword.operator.logical": Operator.Word,
    "keyword.operator": Operator,
    "constant.numeric": Number,
    "constant": Keyword.Constant,
    "entity.name.function": Name.Function,
    "variable": Name,
}
"""Token types by the beginning of a scope; the first that fits counts."""


class SloLexer(RegexLexer):
    """The patterns of grammar/slo.tmLanguage.json, in their order."""

    name = "slo"
    aliases = ("slo",)
    filenames = ("*.slo",)
    tokens = {  # noqa: RUF012
        "root": [
            *(
                (
                    one["match"],
                    next(t for scope, t in _TOKENS.items() if one["name"].startswith(scope)),
                )
                for one in json.loads(_GRAMMAR.read_text(encoding="utf-8"))["patterns"]
            ),
            (r"\s+", Whitespace),
            (r"[\[\](){},;:]", Punctuation),
            (r".", Text),
        ]
    }


def register() -> None:
    """Let Pygments find the lexer by the name `slo`."""
    LEXERS["SloLexer"] = (__name__, "slo", SloLexer.aliases, SloLexer.filenames, ())
