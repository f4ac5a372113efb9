"""The wording of all syntax messages, one function for each."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection
from difflib import get_close_matches

from slomodel.errors import Diagnostic, Mark, Span
from slomodel.front.text.syntax import ATTRIBUTES, STATEMENT_TOKENS, STATEMENTS
from slomodel.functions import FUNCTIONS

_SPELLINGS = {
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
    "∈": "in",
    "∞": "inf",
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
"""The spellings in this language of characters from other notations."""

_REMEDIES = {
    "?": "choose values with `a if condition else b`",
    "\\": "write names as they are, `alpha` or `α`",
    "$": "write the formula without it",
}
"""Remedies for characters that have no equivalent in this language."""

_SYNONYMS = {
    "min": "minimize",
    "minimise": "minimize",
    "max": "maximize",
    "maximise": "maximize",
    "objective": "minimize",
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
    "_ELSE": "`else`",
    "_INIT": "`init`",
    "_FIRST": "`first`",
    "_FROM": "`from`",
    "AND": "`and`",
    "OR": "`or`",
    "LPAR": "`(`",
    "LSQB": "`[`",
    "NUMBER": "a number",
    "NAME": "a name",
    "NONE": "`None`",
    "ELLIPSIS": "`...`",
    "RETURN": "`return`",
    "ADDOP": "a sign",
}
_OPERAND = {"NAME", "NUMBER", "LPAR", "LSQB", "ADDOP"}
_OPERATOR = {"ADDOP", "MULOP", "POWOP", "TRANSPOSE", "LPAR", "LSQB"}
_STATEMENT = {"SEMICOLON", "$END", *STATEMENT_TOKENS}
_LONGEST_SHOWN = 40


def shown(text: str) -> str:
    """`text` as quoted in a message: truncated if long, with invisible characters as codes."""
    short = text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "…"
    return "`" + "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in short) + "`"


def expectation(accepts: Collection[str]) -> str:
    """A set of expected terminals in words."""
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
    """The statement keyword that `word` was probably meant to be, or an empty string."""
    close = get_close_matches(word.lower(), STATEMENTS, n=1, cutoff=0.7)
    return _SYNONYMS.get(word.lower(), close[0] if close else "")


def _listed_statements() -> str:
    """All keywords that begin a statement, as a list in words."""
    words = [f"`{word}`" for word in STATEMENTS]
    return ", ".join(words[:-1]) + " or " + words[-1]


def unexpected(span: Span, expected: str, found: str, remedy: str = "") -> Diagnostic:
    return Diagnostic("E101", f"expected {expected}, found {found}", span, help=remedy)


def unknown_character(span: Span, meant: str = "") -> Diagnostic:
    """A character that does not begin any token; `meant` is the remedy, if known."""
    char = span.text[:1]
    better = _SPELLINGS.get(char)
    remedy = meant or (f"write `{better}`" if better else _REMEDIES.get(char, "remove it"))
    named = unicodedata.name(char, "")
    code = f" (U+{ord(char):04X}{' ' + named if named else ''})" if not char.isascii() else ""
    return Diagnostic(
        "E102",
        f"{shown(char)}{code} is not part of the language",
        Span(span.source, span.start, span.start + 1),
        help=remedy,
    )


def reserved(span: Span, meant: str = "") -> Diagnostic:
    hints = {
        "lambda": "call it `lam` or `lambda_`",
        "else": "choose values with `a if condition else b`",
        "is": "compare with `==`",
        "def": "a function is declared by `fn name(t) = …`",
        "if": "choose values with `a if condition else b`",
        "for": "a sum is `sum(x[i] for i in n)`, a definition by index `let y[i in n] = x[i]^2`",
        "while": "a model has no loops: `sum(x[i] for i in n)`, `let y[i in n] = x[i]^2`",
        "import": "a model can only call the functions that `slomodel functions` lists",
    }
    return Diagnostic(
        "E103",
        f"{shown(span.text)} is a reserved word",
        span,
        help=meant or hints.get(span.text, f"choose another name, for example `{span.text}_`"),
    )


def reserved_data(span: Span) -> Diagnostic:
    """A reserved word as the name of data, which may be that of a column."""
    named = f'`data {span.text}_[n] from "file.csv:{span.text}"`'
    remedy = f"call it `{span.text}_`; a column of this name is read by {named}"
    return reserved(span, remedy)


def unknown_statement(span: Span, is_definition: bool, is_function: bool = False) -> Diagnostic:
    """A word at the beginning of a statement that is not a keyword."""
    better = similar_statement(span.text)
    remedy = f"statements begin with {_listed_statements()}"
    if is_definition:
        remedy = f"a definition is written `let {span.text} = …`"
    elif is_function:
        remedy = f"a function is declared by `fn {span.text}(…) = …`"
    elif better:
        remedy = f"did you mean `{better}`?"
    elif span.text.lower() in ("param", "parameter", "parameters"):
        remedy = "given numbers are declared by `data`, unknowns by `var`"
    return Diagnostic("E104", f"no statement begins with {shown(span.text)}", span, help=remedy)


def unclosed(span: Span, opening: Span, found: str) -> Diagnostic:
    return Diagnostic(
        "E105",
        f"{shown(opening.text)} is not closed before {found}",
        span,
        (Mark(opening),),
        note=f"opened at {opening.line}:{opening.column}",
        help=f"add `{')' if opening.text == '(' else ']'}`",
    )


def unmatched(span: Span, opening: Span | None) -> Diagnostic:
    """A closing bracket without an opening one, or with one of a different kind."""
    if opening is None:
        message = f"unmatched {shown(span.text)}"
        return Diagnostic("E106", message, span, help="remove it, or add the opening bracket")
    message = f"{shown(opening.text)} is closed by {shown(span.text)}"
    note = f"opened at {opening.line}:{opening.column}"
    remedy = f"close it with `{')' if opening.text == '(' else ']'}`"
    return Diagnostic("E106", message, span, (Mark(opening),), note=note, help=remedy)


def malformed_number(span: Span, reason: str) -> Diagnostic:
    remedy = "write it like `0.5`, `.5`, `1e-3` or `1_000`"
    return Diagnostic("E107", f"{shown(span.text)} is not a number: {reason}", span, help=remedy)


def outside_float(span: Span) -> Diagnostic:
    message = f"{shown(span.text)} is not a number: its magnitude does not fit a 64-bit float"
    return Diagnostic(
        "E107", message, span, help="magnitudes range from 5e-324 to 1.8e308; scale the model"
    )


def misspelt_for(span: Span) -> Diagnostic:
    message = f"{shown(span.text)} stands where a sum has its `for`"
    return Diagnostic("E108", message, span, help="did you mean `for`?")


def missing_operator(span: Span, left: str, right: str) -> Diagnostic:
    message = f"an operator is missing between {shown(left)} and {shown(right)}: missing `*`?"
    if len(left + right) > _LONGEST_SHOWN:
        remedy = ""
    elif left in FUNCTIONS:
        message = f"the argument of {shown(left)} is written in parentheses"
        remedy = f"write `{left}({right})`"
    elif left.endswith("'"):
        remedy = f"write `{left} @ {right}` for the matrix product"
    elif left.isidentifier() and right.isidentifier():
        remedy = f"write `{left} * {right}`, or `{left} @ {right}` for the matrix product"
    else:
        remedy = f"write `{left} * {right}`"
    return Diagnostic("E108", message, span, help=remedy)


def not_an_identifier(span: Span) -> Diagnostic:
    """A name that contains invalid characters; the span is that of the first of these."""
    text = span.text
    k = next((k for k in range(len(text)) if not ("_" + text[: k + 1]).isidentifier()), 0)
    char = text[k]
    named = unicodedata.name(char, "no name")
    better = _SPELLINGS.get(char)
    remedy = f"write `{text[:k]}{better}{text[k + 1 :]}`" if better else ""
    if better and "…" in better:
        remedy = f"write `{better}`"
    if char.isnumeric() and not better:
        remedy = "digits are 0 to 9"
    return Diagnostic(
        "E109",
        f"{shown(text)} is not a name: {shown(char)} (U+{ord(char):04X} {named}) is not a letter",
        Span(span.source, span.start + k, span.start + k + 1),
        help=remedy,
    )


def unterminated_text(span: Span) -> Diagnostic:
    return Diagnostic("E110", 'a text lacks its closing `"`', span, help="close it on its line")


def single_quote(span: Span) -> Diagnostic:
    remedy = 'a text is written in double quotes, as in `einsum("ij,jk->ik", A, B)`'
    return Diagnostic("E110", "`'` transposes its left operand", span, help=remedy)


def chained_comparison(span: Span) -> Diagnostic:
    remedy = "write `a < b and b < c`"
    return Diagnostic("E111", "comparisons do not chain", span, help=remedy)


def constraint(span: Span) -> Diagnostic:
    message = "a constraint is a statement that begins with `subject to`"
    remedy = (
        "write `subject to g(x) <= h`, or declare the set of a variable, as in `var x >= 0`; "
        "for a condition on data write `check`"
    )
    return Diagnostic("E112", message, span, help=remedy)


def further_constraint(span: Span) -> Diagnostic:
    message = "a further constraint follows a comma, or begins a statement with `subject to`"
    remedy = "end the constraint before it with `,`"
    return Diagnostic("E112", message, span, help=remedy)


def trailing_comma(comma: Span, found: str) -> Diagnostic:
    message = f"unexpected comma before {found}"
    return Diagnostic("E113", message, comma, help="remove it, or add what should follow")


def third_colon(span: Span) -> Diagnostic:
    return Diagnostic(
        "E114",
        "a slice has at most two colons",
        span,
        help="write `x[start:stop:step]`",
    )


def second_for(span: Span) -> Diagnostic:
    remedy = "write `for i in n, j in m`"
    return Diagnostic("E115", "a sum has one `for`", span, help=remedy)


def array_by_index(span: Span, is_argument: bool) -> Diagnostic:
    remedy = "an array is defined by its elements as in `let y[i in n] = x[i]^2`"
    if is_argument:
        remedy = "leave out the brackets: `sum(x[i] for i in n)`"
    return Diagnostic("E115", "the values in `[…]` are listed one by one", span, help=remedy)


def stray_return(span: Span, is_function: bool) -> Diagnostic:
    message = "`return` ends the definitions inside an `fn`, and there are none before it"
    remedy = "the value of a function follows its `=`: `fn f(t) = t^2`"
    if not is_function:
        remedy = "write `fn f(t) = let a = t^2 return a + 1`"
    return Diagnostic("E103", message, span, help=remedy)


def missing_return(span: Span, found: str) -> Diagnostic:
    message = f"a function with definitions ends with `return`, before {found}"
    return Diagnostic("E101", message, span, help="as in `fn f(t) = let a = t^2 return a + 1`")


def late_iteration(span: Span) -> Diagnostic:
    remedy = "write `for i in n, j in m if i < j`"
    return Diagnostic("E116", "`if` comes after the last iteration", span, help=remedy)


def condition_as_value(span: Span) -> Diagnostic:
    message = f"{shown(span.text)} makes a condition, where a number is expected"
    remedy = "choose values with `a if condition else b`"
    return Diagnostic("E117", message, span, help=remedy)


def condition_on_data(span: Span) -> Diagnostic:
    message = "a declaration of data takes no condition"
    remedy = "a condition on data is a statement of its own, such as `check y > 0`"
    return Diagnostic("E117", message, span, help=remedy)


def number_as_condition(span: Span) -> Diagnostic:
    message = f"{shown(span.text)} joins conditions, but its left operand is a number"
    return Diagnostic("E117", message, span, help="compare the number, as in `x > 0`")


def of_type(written: str, of_data: bool) -> str:
    """The remedy for the name of a type after a declaration, or an empty string."""
    if of_data and written in ("int", "integer", "integers", "index"):
        return "integers that point into a dim are index data: `data g[n] in K`, from 0 on"
    if written in ("real", "reals", "float", "double", "number"):
        return "all numbers are real: the name and its shape are enough"
    return ""


def unknown_attribute(span: Span) -> Diagnostic:
    """A word after a data declaration that is not an attribute."""
    close = get_close_matches(span.text, ATTRIBUTES, n=1)
    statement = similar_statement(span.text)
    known = ", ".join(f"`{one}`" for one in ATTRIBUTES)
    remedy = f"attributes are {known}; declarations are separated by `,`"
    if close or statement:
        remedy = f"did you mean `{close[0] if close else statement}`?"
    message = f"{shown(span.text)} is not an attribute of data"
    return Diagnostic("E118", message, span, help=of_type(span.text, True) or remedy)


def nested_too_deep(span: Span, deepest: int) -> Diagnostic:
    message = f"nested deeper than {deepest} levels"
    return Diagnostic("E119", message, span, help="split the expression with `let`")


def statement_too_long(span: Span, most: int) -> Diagnostic:
    message = f"this statement has more than {most} names, numbers and signs"
    remedy = "put numbers into data and write `sum(… for i in n)`, or split it with `let`"
    return Diagnostic("E127", message, span, help=remedy)


def late_model(span: Span, meant: str = "") -> Diagnostic:
    remedy = meant or "move it to the top, or remove it"
    return Diagnostic("E120", "`model` must come first, and only once", span, help=remedy)


def empty(span: Span) -> Diagnostic:
    remedy = "a model declares variables and an objective: `var x[3] minimize sumsq(x)`"
    return Diagnostic("E121", "the model is empty", span, help=remedy)


def wrong_equal(span: Span, better: str) -> Diagnostic:
    return Diagnostic("E122", f"{shown(span.text)} does not belong here", span, help=better)


def not_a_size(span: Span) -> Diagnostic:
    message = f"{shown(span.text)} is not a size"
    remedy = (
        "a size is a sum of dims, times whole numbers, and of whole numbers, such as `n - 2*k + 1`"
    )
    return Diagnostic("E123", message, span, help=remedy)


def misplaced_any_shape(span: Span) -> Diagnostic:
    message = f"{shown(span.text)} stands for any shape, which only a parameter of `fn` may have"
    return Diagnostic("E123", message, span, help="write the dims, as in `x[m, n]`")


def stray_if(span: Span, is_choice: bool) -> Diagnostic:
    """`is_choice`: an expression stands on both sides, and `else` is missing."""
    where = "`if` stands after the iterations of a sum or inside a choice"
    message = "`if` without `else`" if is_choice else where
    remedy = "choose values with `a if condition else b`" + ("" if is_choice else " in parentheses")
    return Diagnostic("E124", message, span, help=remedy)


def positional_after_keyword(span: Span, meant: str = "") -> Diagnostic:
    """An argument without a name after one with a name; `meant` is the remedy, if known."""
    message = "an argument without a name follows one with a name"
    return Diagnostic("E125", message, span, help=meant or "put it first, or name it too")


def unknown_attribute_access(span: Span, meant: str) -> Diagnostic:
    """A dot that begins neither `.T` nor an operator."""
    remedy = meant or "only `.T` may follow a dot; an elementwise product is `.*`"
    return Diagnostic("E126", "unexpected `.`", span, help=remedy)


def continued_on_next_line(span: Span) -> Diagnostic:
    return Diagnostic(
        "W101",
        f"{shown(span.text)} continues the expression of the line before",
        span,
        help="put it on that line, or begin a new statement with its keyword",
        severity="warning",
    )
