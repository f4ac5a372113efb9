"""Choice of the message for a syntax error: special cases in order, then what was expected."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable
from difflib import get_close_matches

from lark import Token

from slomodel.errors import Diagnostic
from slomodel.front.text.syntax import ATTRIBUTES, STATEMENTS
from slomodel.front.text.syntax_errors import messages, set_messages
from slomodel.front.text.syntax_errors.failure import END, ENDS_OPERAND, UNKNOWN, Failure, span_of
from slomodel.front.text.syntax_errors.messages import expectation, shown, similar_statement
from slomodel.front.text.syntax_errors.remedies import access_hint, hint, of_character

_WORDS = frozenset(
    (*STATEMENTS, "init", "from", "for", "in", "if", "and", "or", "not", "None", *keyword.kwlist)
)
_COMPARISON = re.compile(r"<=|>=|==|!=|<|>|≤|≥")
_CONSTRAINT_WORDS = frozenset(("subject", "st", "s", "such", "constraint", "constraints"))
_OPENS = {"RPAR": "(", "RSQB": "["}


def diagnose(failure: Failure) -> Diagnostic:
    """The message for a failed parse."""
    for case in _CASES:
        result = case(failure)
        if result is not None:
            return result
    expected = expectation(failure.accepts) or "something else"
    return messages.unexpected(failure.span, expected, _found(failure), hint(failure))


def _found(failure: Failure) -> str:
    return "the end of the model" if failure.found == END else shown(failure.text)


def _types(tokens: tuple[Token, ...]) -> list[str]:
    return [token.type for token in tokens]


def _unreadable(f: Failure) -> Diagnostic | None:
    if f.text == "return":
        return None
    last = None if f.previous is None else span_of(f.source, f.previous)
    for kind, span in ((f.previous and f.previous.type, last), (f.found, f.span)):
        if span is not None and kind == "NAME" and not span.text.isidentifier():
            return messages.not_an_identifier(span)
    if f.found != UNKNOWN:
        return None
    if f.text[0] == '"':
        return messages.unterminated_text(f.span)
    if f.text in _WORDS:
        is_declared = f.statement == "DATA" and not (f.open_brackets or f.after_operand)
        return (messages.reserved_data if is_declared else messages.reserved)(f.span)
    if f.text[0] == ".":
        return messages.unknown_attribute_access(f.span, _after_dot(f))
    return messages.unknown_character(f.span, of_character(f))


def _after_dot(f: Failure) -> str:
    """The remedy for a dot that begins no token, or an empty string."""
    if _is_range(f):
        return "a range is written `range(a, b)`, and excludes its end"
    word = re.match(r"\.([^\W\d]\w*)(?:\(([^()]*)\))?", f.rest_of_line)
    if word is None or f.previous is None:
        return ""
    return access_hint(_operand(f, f.previous), word[1], word[2], f.rest_of_line)


def _number(f: Failure) -> Diagnostic | None:
    """Characters directly after a number: `2x`, `0x10`, `1__0`, `1e`, `1.2.3`."""
    last = f.previous
    if last is None or last.type != "NUMBER" or not f.adjacent:
        return None
    whole = span_of(f.source, last).to(f.span)
    if f.found == "NUMBER":
        return messages.malformed_number(whole, "it has a second point")
    if f.found != "NAME":
        return None
    if last == "0" and re.fullmatch(r"[xXbBoO]\w+", f.text):
        return messages.malformed_number(whole, "numbers are decimal")
    if f.text.startswith("_"):
        return messages.malformed_number(whole, "`_` stands between two digits")
    if f.text in ("e", "E"):
        return messages.malformed_number(whole, "the exponent lacks its digits")
    return messages.missing_operator(f.span, str(last), f.text)


def _attribute(f: Failure) -> Diagnostic | None:
    """A misspelt word after a declaration of data, which was parsed as an attribute."""
    if f.statement != "DATA" or f.open_brackets:
        return None
    names: list[Token] = []
    for token in reversed(f.before):
        if token.type != "NAME":
            break
        names.insert(0, token)
    if len(names) < len(f.before) and f.before[-len(names) - 1].type in ("DATA", "COMMA"):
        names = names[1:]
    wrong = [name for name in names if name not in ATTRIBUTES]
    return messages.unknown_attribute(span_of(f.source, wrong[0])) if wrong else None


def _comma(f: Failure) -> Diagnostic | None:
    closes = f.found in (*_OPENS, END) or f.starts_statement
    if f.previous is None or f.previous.type != "COMMA" or not closes:
        return None
    return messages.trailing_comma(span_of(f.source, f.previous), _found(f))


def _named_dim(f: Failure) -> Diagnostic | None:
    """A `dim` argument: `sum(A, dim=1)`."""
    if f.found == "DIM" and f.open_brackets and re.match(r"dim\s*=\s*[-\w]", f.rest_of_line):
        return messages.reserved(f.span, "an axis is named by `axis=`: `sum(A, axis=0)`, from 0 on")
    return None


def _reserved(f: Failure) -> Diagnostic | None:
    if f.text not in _WORDS or (f.starts_statement and f.first_on_line):
        return None
    wants_name = "NAME" in f.accepts and not f.after_operand
    if wants_name and f.statement == "DATA" and not f.open_brackets:
        return messages.reserved_data(f.span)
    return messages.reserved(f.span) if wants_name else None


def _return(f: Failure) -> Diagnostic | None:
    """A `return` outside a function, or a function without one."""
    if f.text == "return" and f.after_operand and not f.open_brackets:
        return messages.stray_return(f.span, f.statement == "FN")
    ends = f.found == END or (f.starts_statement and f.found != "LET")
    if "RETURN" in f.accepts and ends and not f.open_brackets:
        return messages.missing_return(f.span, _found(f))
    return None


def _late_model(f: Failure) -> Diagnostic | None:
    if f.found == "MODEL" and f.statement == "MODEL" and not f.first_on_line:
        return messages.late_model(f.span, hint(f))
    return messages.late_model(f.span) if f.found == "MODEL" and not f.open_brackets else None


def _iterations(f: Failure) -> Diagnostic | None:
    inside = _types(f.level)
    if f.found == "_FOR" and "_FOR" in inside:
        return messages.second_for(f.span)
    if f.found == "COMMA" and "_IF" in inside:
        return messages.late_iteration(f.span)
    if f.found == "_IF":
        return messages.stray_if(f.span, is_choice=False)
    if "_ELSE" in f.accepts and (f.found in _ENDS_CHOICE or f.starts_statement):
        last = next(token for token in reversed(f.level) if token.type == "_IF")
        return messages.stray_if(span_of(f.source, last), is_choice=True)
    return None


_ENDS_CHOICE = (END, "_FOR", "COMMA", "RPAR", "RSQB")


def _comparison(f: Failure) -> Diagnostic | None:
    if f.found not in ("COMPARE", "AND", "OR", "NOT"):
        return None
    part: list[str] = []
    for token in f.level:
        part = [] if token.type in ("AND", "OR", "NOT", "COMMA", "_IF") else [*part, token.type]
    if f.found == "COMPARE":
        if "COMPARE" in part:
            return messages.chained_comparison(f.span)
        if "?" in f.rest_of_line:
            return messages.condition_as_value(f.span)
        if f.statement in ("MINIMIZE", "MAXIMIZE") and not f.open_brackets:
            return messages.constraint(f.span)
        if f.statement == "DATA" and not f.open_brackets and "EQUAL" not in _types(f.level):
            return messages.condition_on_data(f.span)
        if f.text == "==" and "EQUAL" in f.accepts:
            return messages.wrong_equal(f.span, "a definition is written with `=`")
    if not f.after_operand:
        return None
    if "COMPARE" in f.accepts:
        return messages.number_as_condition(f.span)
    return messages.condition_as_value(f.span)


def _set(f: Failure) -> Diagnostic | None:
    """A set of a variable in a syntax of another language, or incomplete."""
    if f.statement != "VAR":
        return None
    brackets = [token.type for token in f.open_brackets]
    if len(brackets) == 1 and _opens_set(f):
        closes = {"LPAR": "RSQB", "LSQB": "RPAR"}[brackets[0]]
        if f.found in ("NUMBER", "NAME", "SEMICOLON") and f.after_operand:
            return set_messages.ends_without_comma(f.span, _found(f))
        return set_messages.half_open(f.span) if f.found == closes else None
    if brackets:
        return None
    if f.found == "RSQB" and f.previous is not None and f.previous.type == "_IN":
        return set_messages.half_open(f.span)
    if f.found in ("NUMBER", "ADDOP") and f.previous is not None:
        before = f.previous.type in ("VAR", "COMMA")
        if before and _COMPARISON.search(f.rest_of_line):
            return set_messages.set_before_name(f.span)
    if f.found == "EQUAL" and "COMPARE" in _types(f.level):
        return set_messages.bound_by_name(f.span)
    if f.found not in ("COMPARE", "AND", "_IN"):
        return None
    last = f.level[max((k for k, t in enumerate(f.level) if t.type == "COMMA"), default=0) :]
    kinds = _types(last)
    if "_INIT" in kinds:
        return set_messages.late_set(f.span)
    if "COMPARE" in kinds or "_IN" in kinds or kinds == ["COMMA"]:
        return set_messages.second_set(f.span)
    return None


def _opens_set(f: Failure) -> bool:
    """Whether the only open bracket is that of an interval."""
    at = f.before.index(f.open_brackets[0])
    return at > 0 and f.before[at - 1].type == "_IN"


def _conjunction(f: Failure) -> Diagnostic | None:
    """`let y = x and z` on one line: a condition, and not a further recurrence."""
    if f.statement != "LET" or len(f.before) < 2 or f.found in ("EQUAL", "LSQB"):
        return None
    joint, name = f.before[-2:]
    if joint.type != "AND" or name.type != "NAME" or f.open_brackets:
        return None
    start = joint.start_pos or 0
    line = f.source.text[:start].rpartition("\n")[2]
    return messages.condition_as_value(span_of(f.source, joint)) if line.strip() else None


def _slice(f: Failure) -> Diagnostic | None:
    opened = f.open_brackets[-1].type if f.open_brackets else ""
    last = _types(f.level)[::-1]
    item = last[: last.index("COMMA")] if "COMMA" in last else last
    if f.found == "COLON" and opened == "LSQB" and item.count("COLON") > 1:
        return messages.third_colon(f.span)
    return None


def _is_range(f: Failure) -> bool:
    """Whether parsing failed in the domain of an index: `i in 0..n`, `i=1..n`, `t in K..T`."""
    binds = {"_IN", "EQUAL"} & set(_types(f.level))
    dotted = f.rest_of_line.startswith("..") or str(f.previous).endswith(".")
    return bool(binds) and f.previous is not None and dotted


def _equal(f: Failure) -> Diagnostic | None:
    if f.found != "EQUAL":
        return None
    if f.statement == "VAR" and not f.open_brackets:
        return messages.wrong_equal(f.span, "the start of a variable is given by `init`")
    heads = f.statement in ("FN", "LET") and "EQUAL" not in _types(f.before)
    if heads:
        return _bound_by_equal(f)
    if "_FOR" in _types(f.level) and "_IN" not in _types(f.level):
        return messages.wrong_equal(f.span, "an index is bound by `in`: `for i in range(a, b)`")
    if f.statement == "CHECK" or "_IF" in _types(f.level) or f.open_brackets:
        return messages.wrong_equal(f.span, "compare with `==`")
    return None


def _bound_by_equal(f: Failure) -> Diagnostic | None:
    """`let y[t = 1:T] = …`: an index of a definition that is bound by `=`."""
    inner = f.open_brackets[-1].type if f.open_brackets else ""
    if f.statement != "LET" or inner != "LSQB" or _types(f.level)[-1:] != ["NAME"]:
        return None
    index = f.previous
    remedy = f"an index is bound by `in`: `{index} in T` runs over a dim, from 0 on, and "
    return messages.wrong_equal(f.span, f"{remedy}`{index} in range(a, b)` excludes its end")


def _statement(f: Failure) -> Diagnostic | None:
    """A line that begins with a word that is not a keyword, or a misspelt objective."""
    starts = f.first_on_line or f.before[-1].type == "SEMICOLON" or _is_objective(f)
    if not starts or f.found not in ("NAME", "NUMBER") or (f.before and not f.after_operand):
        return None
    if f.text in _CONSTRAINT_WORDS and (f.before or _COMPARISON.search(f.rest_of_line)):
        return messages.constraint(f.span)
    meant = similar_statement(f.text)
    unclosed = bool(f.open_brackets)
    if f.found == "NAME" and (meant or not f.before):
        is_definition = bool(re.match(r"\w+\s*(\[[^\]]*\]\s*)?=(?!=)", f.rest_of_line))
        is_function = bool(re.match(r"\w+\s*\([\w, ]*\)\s*=(?!=)", f.rest_of_line))
        return messages.unknown_statement(f.span, is_definition and not meant, is_function)
    if _COMPARISON.search(f.rest_of_line) and not unclosed:
        is_further = f.statement == "SUBJECT" and "_FOR" not in _types(f.level)
        return (messages.further_constraint if is_further else messages.constraint)(f.span)
    if f.found == "NAME" and not unclosed and re.match(r"\w+\s*(\[[^\]]*\]\s*)?=", f.rest_of_line):
        return messages.unknown_statement(f.span, True)
    return None


def _is_objective(f: Failure) -> bool:
    """Whether the word found can be nothing else than a misspelt `minimize` or `maximize`."""
    objectives = ("minimize", "maximize")
    close = get_close_matches(f.text.lower(), objectives, n=1, cutoff=0.8)
    return bool(close) and f.after_operand and not f.open_brackets


def _subject_to(f: Failure) -> Diagnostic | None:
    objective = f.statement in ("MINIMIZE", "MAXIMIZE") and not f.open_brackets
    if objective and f.after_operand and f.text in _CONSTRAINT_WORDS:
        return messages.constraint(f.span)
    begins = f.found == "COMMA" or (f.found in ("NAME", "NUMBER") and f.after_operand)
    if objective and begins and _COMPARISON.search(f.rest_of_line):
        return messages.constraint(f.span)
    return None


def _closing(f: Failure) -> Diagnostic | None:
    if f.found not in _OPENS:
        return None
    opening = f.open_brackets[-1] if f.open_brackets else None
    if opening is None:
        return messages.unmatched(f.span, None)
    if opening != _OPENS[f.found]:
        return messages.unmatched(f.span, span_of(f.source, opening))
    return None


def _listed(f: Failure) -> Diagnostic | None:
    """`[x[i]^2 for i in n]`: there are array literals, and no comprehensions as in Python."""
    inner = f.open_brackets[-1] if f.open_brackets else None
    if f.found != "_FOR" or inner is None or inner.type != "LSQB" or "COLON" in _types(f.level):
        return None
    before = f.before[: f.before.index(inner)]
    if before and before[-1].type in ENDS_OPERAND:
        return None
    is_argument = bool(before) and before[-1].type == "LPAR"
    return messages.array_by_index(f.span, is_argument)


def _unclosed(f: Failure) -> Diagnostic | None:
    ends = f.starts_statement or f.found in (END, "SEMICOLON", "EQUAL")
    if not f.open_brackets or not f.after_operand:
        return None
    if not ends and not (f.found == "_FOR" and f.open_brackets[-1].type == "LSQB"):
        return None
    return messages.unclosed(f.span, span_of(f.source, f.open_brackets[-1]), _found(f))


def _juxtaposed(f: Failure) -> Diagnostic | None:
    """Operands without an operator between them, `a b`, `(a)(b)`, `2 x`, on one line."""
    if f.found not in ("NAME", "NUMBER", "LPAR") or not f.after_operand or f.first_on_line:
        return None
    if "MULOP" not in f.accepts or f.previous is None:
        return None
    if "_IN" in _types(f.level) or f.text in ATTRIBUTES:
        return messages.unexpected(f.span, "`,` or an operator", _found(f), hint(f))
    if f.open_brackets and re.match(r"\w+\s+\w+\s+in\b", f.rest_of_line):
        return messages.misspelt_for(f.span)
    return messages.missing_operator(f.span, _operand(f, f.previous), _right(f))


def _operand(f: Failure, last: Token) -> str:
    """The operand that ends with `last`, including its brackets and its name."""
    depth, begin = 0, last
    for token in reversed(f.before):
        closing, opening = token.type in ("RPAR", "RSQB"), token.type in ("LPAR", "LSQB")
        if depth == 0 and begin is not last and not (closing or token.type == "NAME"):
            break
        depth += closing - opening
        begin = token
        if depth == 0 and not opening and token.type != "TRANSPOSE":
            break
    return span_of(f.source, begin).to(span_of(f.source, last)).text


def _right(f: Failure) -> str:
    match = re.match(r"\([^()]*\)", f.source.text[f.span.start :])
    return match[0] if match else f.text


def _quote(f: Failure) -> Diagnostic | None:
    return messages.single_quote(f.span) if f.found == "TRANSPOSE" and f.text == "'" else None


_CASES: tuple[Callable[[Failure], Diagnostic | None], ...] = (
    _unreadable,
    _number,
    _attribute,
    _named_dim,
    _comma,
    _return,
    _reserved,
    _late_model,
    _iterations,
    _set,
    _comparison,
    _conjunction,
    _slice,
    _equal,
    _statement,
    _subject_to,
    _closing,
    _listed,
    _unclosed,
    _juxtaposed,
    _quote,
)
