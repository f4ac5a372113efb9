"""The grammar for editors highlights what the compiler's own lexer reads."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from slomodel.errors import SourceText
from slomodel.front.text.parse import tokens

ROOT = Path(__file__).parent.parent
PATTERNS = [
    (one["name"].split(".slo")[0], re.compile(one["match"]))
    for one in json.loads((ROOT / "grammar" / "slo.tmLanguage.json").read_text(encoding="utf-8"))[
        "patterns"
    ]
]
MODELS = sorted((ROOT / "models").glob("*.slo"))
SCOPES = {
    "NUMBER": {"constant.numeric"},
    "STRING": {"string.quoted.double"},
    "NONE": {"constant.language"},
    "NAME": {"variable.other", "entity.name.function", "constant.language"},
    "ADDOP": {"keyword.operator"},
    "MULOP": {"keyword.operator"},
    "POWOP": {"keyword.operator"},
    "COMPARE": {"keyword.operator"},
    "TRANSPOSE": {"keyword.operator"},
} | {word: {"keyword.operator.logical"} for word in ("AND", "OR", "NOT")}
STATEMENTS = {
    *("MODEL", "DIM", "DATA", "VAR", "LET", "FN", "CHECK", "MINIMIZE", "MAXIMIZE", "SUBJECT")
}
SCOPES |= {word: {"keyword.other.declaration"} for word in STATEMENTS}
SCOPES |= {
    word: {"keyword.control"} for word in ("_INIT", "_FROM", "_FOR", "_IN", "_IF", "_FIRST", "DROP")
}
PLAIN = {"LPAR", "RPAR", "LSQB", "RSQB", "COLON", "COMMA", "EQUAL", "SEMICOLON"}


def coloured(text: str) -> dict[tuple[int, int], str]:
    """Scopes by place, as an editor finds them: the earliest match, of those the first pattern."""
    found = {}
    at = 0
    while at < len(text):
        matches = [
            (m.start(), k, m) for k, (_, p) in enumerate(PATTERNS) if (m := p.search(text, at))
        ]
        if not matches:
            break
        start, k, match = min(matches)
        found[start, match.end()] = PATTERNS[k][0]
        at = match.end()
    return found


EVERYTHING = """model all
dim n = 3, m
data A[n, n] symmetric, x² from "f.csv:a,b" drop missing, β = 1_0.5e-3
fn f(u) = u ./ 2. + .5 .* u .^ 2 ** 3
let g[i in n] = A[i, None]' @ A.T[:, 0]
let h[t in n] = h[t-1] + β first 1, -2.5 and first[t in n] = h[t] first (β)
check β <= 1 and not (β > 2 or β != 3)  # sum(1)
var x[n] init -1.2
maximize name: sum(f(x[i]) for i in range(n - 1) if i % 2 >= 1) + pi * e ^ 2 + x3 * 3.^2
subject to cap: 1 <= g[i] <= 3 for i in n if i < 2 subject	to subject == 1
"""


@pytest.mark.parametrize(
    "text",
    [*(m.read_text(encoding="utf-8") for m in MODELS), EVERYTHING],
    ids=[*(m.stem for m in MODELS), "everything"],
)
def test_every_token_has_its_colour(text: str) -> None:
    scopes = coloured(text)
    for token in tokens(SourceText(text)):
        place = (token.start_pos, token.end_pos)
        if token.type not in PLAIN:
            assert scopes.get(place) in SCOPES[token.type], (token.type, str(token))


def test_a_comment_is_one_to_the_end_of_its_line() -> None:
    assert coloured('var x # "a" for 1\n') == {
        (0, 3): "keyword.other.declaration",
        (4, 5): "variable.other",
        (6, 17): "comment.line.number-sign",
    }
