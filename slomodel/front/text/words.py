"""The language's words as messages use them: terminals in English, near misses, odd characters."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches

from slomodel.front.text.failure import STATEMENTS

ATTRIBUTES = ("symmetric", "mask")

SPELLINGS = {
    "²": "^2",
    "³": "^3",
    "ᵀ": "'",
    "−": "-",
    "–": "-",
    "—": "-",
    "·": "*",
    "×": "*",
    "∗": "*",
    "÷": "/",
    "≤": "<=",
    "≥": ">=",
    "≠": "!=",
    "√": "sqrt(…)",
    "∑": "sum(… for i in n)",
    "‖": "norm2(…)",
    "’": "'",
    "‘": "'",
    "′": "'",
    "“": '"',
    "”": '"',
    "，": ",",
    "（": "(",
    "）": ")",
    "&": "and",
    "|": "or",
    "!": "not",
    "~": "not",
    "{": "(",
    "}": ")",
    "\u00a0": " ",
}
"""What a character of other notations is written as."""

REMEDIES = {
    "%": "a comment begins with `#`",
    "?": "choose values with `where(condition, a, b)`",
    "\\": "write names as they are, `alpha` or `α`",
    "$": "write the formula without it",
}
"""What to do about a character that no other stands for."""

_SYNONYMS = {
    "min": "minimize",
    "minimise": "minimize",
    "max": "maximize",
    "maximise": "maximize",
    "objective": "minimize",
    "param": "data",
    "parameter": "data",
    "parameters": "data",
    "variable": "var",
    "variables": "var",
    "function": "fn",
    "const": "let",
    "set": "dim",
    "size": "dim",
    "int": "dim",
    "integer": "dim",
    "real": "var",
    "double": "var",
    "float": "var",
    "vector": "var",
    "matrix": "data",
    "scalar": "data",
    "unknown": "var",
}
_TERMINALS = {
    "RPAR": "`)`",
    "RSQB": "`]`",
    "COMMA": "`,`",
    "EQUAL": "`=`",
    "COLON": "`:`",
    "COMPARE": "a comparison",
    "STRING": "a text in double quotes",
    "_FOR": "`for`",
    "_IN": "`in`",
    "_IF": "`if`",
    "_INIT": "`init`",
    "_FROM": "`from`",
    "AND": "`and`",
    "OR": "`or`",
    "LPAR": "`(`",
    "LSQB": "`[`",
    "NUMBER": "a number",
    "NAME": "a name",
    "NONE": "`None`",
    "ADDOP": "a sign",
}
_OPERAND = {"NAME", "NUMBER", "LPAR", "ADDOP"}
_OPERATOR = {"ADDOP", "MULOP", "POWOP", "TRANSPOSE", "LPAR", "LSQB"}
_STATEMENT = {"SEMICOLON", "$END", *(word.upper() for word in STATEMENTS)}
LONGEST_SHOWN = 40


def shown(text: str) -> str:
    """`text` as a message quotes it: cut when long, invisible characters by their code."""
    short = text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "…"
    return "`" + "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in short) + "`"


def expectation(accepts: Collection[str]) -> str:
    """What a set of terminals amounts to, in the language's words."""
    rest, words = set(accepts), []
    if "MULOP" in rest:
        words.append("an operator")
        rest -= _OPERATOR
    elif rest >= _OPERAND:
        words.append("an expression")
        rest -= _OPERAND | {"NONE", "STRING", "NOT"}
    symbols = [word for terminal, word in _TERMINALS.items() if terminal in rest]
    if rest & _STATEMENT:
        words.append("a new statement" if len(rest & _STATEMENT) > 1 else "the end of the model")
    words = symbols + words
    return ", ".join(words[:-1]) + " or " + words[-1] if len(words) > 1 else "".join(words)


def similar_statement(word: str) -> str:
    """The statement keyword that `word` was meant to be, or an empty text."""
    close = get_close_matches(word.lower(), STATEMENTS, n=1, cutoff=0.7)
    return _SYNONYMS.get(word.lower(), close[0] if close else "")


def listed_statements() -> str:
    """Every keyword that begins a statement, as a message lists them."""
    words = [f"`{word}`" for word in STATEMENTS]
    return ", ".join(words[:-1]) + " or " + words[-1]
