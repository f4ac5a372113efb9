"""Remedies for syntax errors: habits from other languages, recognised by context."""

from __future__ import annotations

import re
from typing import get_args

from slomodel.front.text.syntax import ATTRIBUTES
from slomodel.front.text.syntax_errors.failure import Failure
from slomodel.front.text.syntax_errors.messages import of_type
from slomodel.problem import SetKind

_MODULES = frozenset(
    ("np", "numpy", "jnp", "torch", "tf", "math", "Math", "sp", "scipy", "cp", "cvxpy", "ca", "nn")
)
_LONGEST_SHOWN = 60
_RANGE = "a range is written `range(a, b)`, and excludes its end: `for i in range(1, n)`"
_RANGE_OF_DEFINITION = (
    "a range is written `range(a, b)`, and excludes its end: `let y[i in range(1, n)] = …`"
)
_BRACES = "an array is written in brackets, as in `[1, 2]`, and larger ones are given as data"
_STARTS = (
    "a start is a number, `uniform(a, b)`, `normal(mu, s)`, `zeros`, `ones`, `eye` or data: "
    "declare `data x0[n]`, and write `init x0`"
)
_BOUND_BEFORE = "an index is bound after the term: `sum(x[i] for i in range(n))`"
_NO_TUPLES = "there are no tuples: write one value after the other, as in `reshape(x, m, n)`"
_CONDITION = (
    "a comparison is a condition, not a number: write `a if condition else b`, or "
    "`sum(… for i in n if condition)`"
)
_TILDE = (
    "there is no `~`: add log densities to the objective, as in "
    "`maximize normal_lpdf(y, mu, sigma)`"
)
_LABELS = (
    "labels are compared by their positions, in alphabetical order from 0: write `g[i] == 0` for "
    "the first"
)
_VALUES = {
    "DATA": "data of any numbers are declared by their name and shape alone, as in `data m[n]`",
    "VAR": "variables are real numbers; an interval is written `in [0, 1]`",
}
_SIZES = "a size is affine in dims, such as `2*n` or `n - k + 1`; declare others by `dim k = m*n`"


def hint(f: Failure) -> str:
    """The remedy for the general message, or an empty string."""
    types = [token.type for token in f.level]
    inner = f.open_brackets[-1].type if f.open_brackets else ""
    begins = f.text == "%" and not f.after_operand
    if begins or f.rest_of_line.startswith("//") or _is_second_slash(f):
        return "a comment begins with `#`"
    if f.text in ("*", "+", "-", "/", "^") and _after_comparison(f):
        return _CONDITION
    if f.found == "STRING" and f.previous is not None and f.previous.type == "COMPARE":
        return _LABELS
    if f.found == "NAME" and re.match(rf"{re.escape(f.text)}\s*(\[[^\]]*\])?\s*~", f.rest_of_line):
        return _TILDE
    if f.text in ("where", "when") and "_IN" in types:
        return "a condition on indices follows `if`: `sum(x[i] for i in n if g[i] > 0)`"
    if f.found == "COMMA" and "_IN" in f.accepts:
        return "each index has an `in` of its own: `for i in n, j in m`"
    if f.found == "NUMBER" and types[-2:] == ["NUMBER", "COMMA"] and f.statement == "VAR":
        return "a decimal point is a dot, as in `0.5`"
    if f.found == "COMMA" and any(token.type == "_INIT" for token in f.before):
        return _STARTS
    if f.found == "COMMA" and _is_group(f):
        return _NO_TUPLES
    if f.statement == "VAR" and f.found == "RPAR" and _ends_with(f, "_IN", "NAME", "LPAR"):
        return f"a set without arguments has no parentheses: write `in {f.before[-2]}`"
    if f.statement == "VAR" and f.found == "POWOP" and "_IN" in types:
        return "the shape follows the name, as in `x[3] in [0, 1]`"
    if f.statement == "VAR" and f.found == "NAME" and f.after_operand and not f.open_brackets:
        if f.text in get_args(SetKind):
            return f"the name of a set follows `in`: write `in {f.text}`"
        return "a set is written `x > 0`, `x in (0, 1)` or `p[K] in simplex`"
    if f.statement == "VAR" and f.previous is not None and f.previous.type == "_IN":
        return "a set is `(lo, hi)`, `[lo, hi]` or a name, as in `p[K] in simplex`"
    if f.statement in ("DATA", "VAR") and "EQUAL" not in types and "_INIT" not in types:
        declared = _declaration(f, inner)
        if declared:
            return declared
    if f.statement == "DATA" and "EQUAL" in types and f.text in ATTRIBUTES:
        return f"attributes stand before the default: `{f.text} = …`"
    if f.found == "_IN":
        return "an index is bound after the term: `sum(x[i] for i in n)`"
    if f.statement == "SUBJECT" and not f.open_brackets:
        constraint = _constraint(f, types)
        if constraint:
            return constraint
    if f.found == "_FOR":
        return "a sum is `sum(x[i] for i in n)`, a definition by index `let y[i in n] = x[i]^2`"
    if f.found == "COLON":
        return _colon(f, types, inner)
    return _equal_or_name(f)


def _is_second_slash(f: Failure) -> bool:
    """Whether the failure is the second character of `//` or `/*`."""
    return f.text in ("/", "*") and f.previous == "/" and f.adjacent


def _ends_with(f: Failure, *types: str) -> bool:
    """Whether the tokens before the failure end with these types."""
    return tuple(token.type for token in f.before[-len(types) :]) == types


def _after_comparison(f: Failure) -> bool:
    """Whether the text before is a comparison in parentheses, as in `(x > 0) * y`."""
    if f.previous is None or f.previous.type != "RPAR":
        return False
    depth = 0
    for token in reversed(f.before):
        depth += (token.type == "RPAR") - (token.type == "LPAR")
        if depth == 1 and token.type == "COMPARE":
            return True
        if depth == 0:
            return False
    return False


def _is_group(f: Failure) -> bool:
    """Whether the innermost bracket is a parenthesis that does not belong to a call."""
    inner = f.open_brackets[-1] if f.open_brackets else None
    at = next((k for k, token in enumerate(f.before) if token is inner), 0)
    return at > 0 and f.before[at].type == "LPAR" and f.before[at - 1].type != "NAME"


def _declaration(f: Failure, inner: str) -> str:
    """The remedy in a declaration of data or variables."""
    if f.found == "LPAR":
        return "sizes are written in brackets, as in `x[3]`"
    if f.found == "LSQB":
        return "write all sizes in one pair of brackets, as in `A[m, n]`"
    if f.found == "COLON":
        match = re.match(r":\s*(\w+)", f.rest_of_line)
        kind = of_type(match[1], f.statement == "DATA") if match else ""
        return kind or "sizes follow the name in brackets, as in `x[3]`"
    before = "" if f.previous is None else f.previous.type
    if inner == "LSQB" and ("MULOP" in (before, f.found) or f.found == "POWOP"):
        return _SIZES
    if inner == "LSQB" and f.found in ("NAME", "NUMBER"):
        return "sizes are separated by commas, as in `A[m, n]`"
    if f.previous is not None and f.previous.type == "_FROM":
        return f'write the file in double quotes: `from "{_word(f)}"`'
    return ""


def _constraint(f: Failure, types: list[str]) -> str:
    """The remedy between the constraints of a statement, or in place of `==`."""
    if f.found == "EQUAL":
        return "an equation is written with `==`"
    if f.found == "COLON" and f.previous is not None and f.previous.type == "SUBJECT":
        return "constraints follow `subject to` without a colon, separated by commas"
    if f.found == "_FOR" or "_FOR" in types:
        return "a constraint with `for` ends its statement: begin the next with `subject to`"
    return ""


def _word(f: Failure) -> str:
    match = re.match(r"[\w./-]+", f.rest_of_line)
    return match[0] if match else "file.npz"


def _colon(f: Failure, types: list[str], inner: str) -> str:
    if "_IN" in types:
        is_head = f.statement == "LET" and "_FOR" not in types
        return _RANGE_OF_DEFINITION if is_head else _RANGE
    if re.match(r":\s*=", f.rest_of_line):
        return "a definition is written with `=`"
    if inner == "LPAR" and "EQUAL" in types:
        return _BOUND_BEFORE
    return "an index is written in brackets, as in `x[1:3]`" if inner == "LPAR" else ""


def _equal_or_name(f: Failure) -> str:
    if f.statement == "MODEL":
        return "the name of a model is one word, as in `my_model`"
    if f.statement == "LET" and "EQUAL" not in [token.type for token in f.before]:
        head = _head(f)
        if head:
            return head
    if f.found == "LPAR" and f.statement == "LET":
        return "a function is declared by `fn name(t) = …`"
    if f.found == "EQUAL" and f.previous == "=":
        return "a definition is written with one `=`"
    if f.found == "EQUAL" and f.statement in ("MINIMIZE", "MAXIMIZE"):
        return "an objective is one number; for an equation minimise `sumsq(left - right)`"
    return ""


def _head(f: Failure) -> str:
    """The remedy in the brackets of a definition: an element, or an index without its domain."""
    if not f.open_brackets or f.open_brackets[-1].type != "LSQB":
        return ""
    if f.found == "NUMBER":
        return (
            "a definition gives all elements at once, as in `let y[i in n] = 1 if i == 0 else z[i]`"
        )
    names = [str(token) for token in f.level if token.type == "NAME"]
    if f.found == "RSQB" and names and "_IN" not in [token.type for token in f.level]:
        indices = ", ".join(f"{name} in {name.upper()}" for name in names)
        return f"each index runs over a dim: `{f.before[1]}[{indices}] = …`"
    return ""


def of_character(f: Failure) -> str:
    """The remedy for a character that begins no token, if the context shows what was meant."""
    char = f.text[:1]
    if char == "|" and not f.after_operand:
        if f.rest_of_line.startswith("||"):
            return "a norm is written `norm2(x)` of a vector, `fro(A)` of a matrix"
        return "the absolute value is written `abs(x)`"
    if char == "\\" and f.after_operand:
        return (
            "write `solve(A, b)` for `A \\ b` with a square A; for least squares declare a "
            "variable `x`, and minimise `sumsq(A @ x - b)`"
        )
    if char == "~" and f.after_operand:
        return _TILDE
    if char == "!" and f.after_operand:
        return "there is no factorial; `!=` compares"
    if char == "{" and f.previous is not None:
        if f.previous.type in ("DATA", "MODEL"):
            return "statements stand alone, without braces: `data y[n]`, `var mu`, `minimize …`"
        if f.previous.type == "_IN" and f.statement in ("DATA", "VAR"):
            return _VALUES[f.statement]
        if f.previous.type == "_INIT":
            return _STARTS
        if f.previous.type == "EQUAL":
            return _BRACES
        if f.previous in ("sum", "prod"):
            return f"write `{f.previous}(x[i] for i in n)`"
    return ""


def access_hint(operand: str, word: str, arguments: str | None, rest: str) -> str:
    """The remedy for `operand.word`, followed by `(arguments)` unless those are None.

    `rest` is the line from the dot on.
    """
    if operand in _MODULES:
        path = re.match(r"(?:\.\w+)+", rest)
        last = path[0].rpartition(".")[2] if path else word
        called = f"`{last}(…)`" if re.match(r"(?:\.\w+)+\(", rest) else f"`{last}`"
        return f"functions are called without the name of a module: write {called}"
    if word in ("shape", "size", "length", "ndim"):
        return "the size of an axis is its dim: write its name, such as `n` of `x[n]`"
    if word in ("dot", "matmul"):
        return "a product of matrices and vectors is written `A @ x`"
    if word in ("t", "transpose"):
        return "a transposed matrix is written `A'`"
    if arguments is None or len(operand + arguments) > _LONGEST_SHOWN:
        return f"a function takes its operand in parentheses: `{word}(x)`" if "(" in rest else ""
    inner = operand[1:-1] if operand.startswith("(") else operand
    return f"write `{word}({', '.join(filter(None, (inner, arguments)))})`"
