"""Parsing: from the text of a model to its syntax tree, or to messages about its errors."""

from __future__ import annotations

import re
import sys
from functools import cache
from hashlib import sha256
from pathlib import Path
from threading import Lock

import lark
from lark import Lark, Token
from lark.exceptions import UnexpectedInput

from slomodel.errors import Diagnostic, ModelSyntaxError, SourceText, Span
from slomodel.front.text.build import TreeBuilder
from slomodel.front.text.syntax import (
    STATEMENT_PATTERN,
    Comprehension,
    FunctionCall,
    Index,
    ModelTree,
    Negate,
    Node,
    Not,
    Power,
    Transpose,
    roots,
)
from slomodel.front.text.syntax_errors import messages
from slomodel.front.text.syntax_errors.diagnose import diagnose
from slomodel.front.text.syntax_errors.failure import (
    END,
    blank_before,
    failure_of,
    next_statement,
)
from slomodel.front.text.traversal import children
from slomodel.ir.node import without_gc
from slomodel.user_cache import directory

_MOST_MESSAGES = 10
_BOM = "\ufeff"
_NESTING = (Negate, Not, Power, Transpose, Index, FunctionCall, Comprehension)
# The parser is constructed once, with a single builder that every parse fills.
_ONE_AT_A_TIME = Lock()


@without_gc()
def parse(source: SourceText) -> ModelTree:
    """The syntax tree of a model.

    Raises ModelSyntaxError with all errors, in the order of the text.
    """
    _check_length(source.text.encode("utf-8", "surrogatepass"), source.name)
    beyond = beyond_limits(source)
    if beyond is not None:
        raise ModelSyntaxError(beyond)
    with _ONE_AT_A_TIME:
        program, problems = _run(source)
    if problems or program is None:
        raise ModelSyntaxError(*problems)
    if not program.order:
        raise ModelSyntaxError(messages.empty(Span(source, 0, 0)))
    node = _deepest(program)
    if node is not None:
        raise ModelSyntaxError(messages.nested_too_deep(node.span, DEEPEST))
    return program


def read_source(path: Path) -> SourceText:
    """The text of a model file, UTF-8 with or without a byte order mark.

    Raises ModelSyntaxError if the file cannot be read or is not text.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(LONGEST_TEXT + len(_BOM.encode()) + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ModelSyntaxError(
            Diagnostic("E001", f"cannot read `{path}`: {reason.lower()}", help=_nearby(path))
        ) from None
    raw = raw.removeprefix(_BOM.encode())
    _check_length(raw, str(path))
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise _not_text(path, "it is UTF-16", "save it as UTF-8")
    if b"\0" in raw:
        line = raw[: raw.index(b"\0")].count(b"\n") + 1
        raise _not_text(path, f"line {line} has a zero byte", "a model is a text file")
    try:
        return SourceText(raw.decode("utf-8"), str(path))
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        reason = f"line {line} has the byte 0x{raw[error.start]:02x}, which is not UTF-8"
        raise _not_text(path, reason, "save it as UTF-8") from None


def tokens(source: SourceText) -> list[Token]:
    """The tokens of a model that parses, without white space and comments."""
    machine, builder = _machine()
    begin = int(source.text.startswith(_BOM))
    builder.begin(source)
    # By the parser's lexer: `first` is a name in some contexts and a keyword in others.
    return list(machine.parse_interactive(blank_before(source.text, begin)).iter_parse())


def grammar_path() -> Path:
    """The grammar file: inside an installed package, or next to it in a checkout."""
    package = Path(__file__).parents[2]
    inside = package / "grammar" / "slo.lark"
    return inside if inside.is_file() else package.parent / "grammar" / "slo.lark"


@cache
def _machine() -> tuple[Lark, TreeBuilder]:
    """The parser and the builder that it fills, from tables of an earlier process if there are.

    Making the tables takes several times as long as parsing a page. Lark takes a broken file, or
    one of another grammar or version, as none.
    """
    builder = TreeBuilder()
    grammar = grammar_path().read_text(encoding="utf-8")
    key = sha256(f"{lark.__version__} {sys.version_info[:2]} {grammar}".encode()).hexdigest()[:32]
    parser = Lark(
        grammar,
        parser="lalr",
        lexer="contextual",
        transformer=builder,
        maybe_placeholders=True,
        cache=str(directory("parser") / f"{key}.tables"),
    )
    return parser, builder


@cache
def _lexer() -> Lark:
    """A lexer without a parser, for the text before an error."""
    return Lark(grammar_path().read_text(encoding="utf-8"), parser=None, lexer="basic")


def _run(source: SourceText) -> tuple[ModelTree | None, list[Diagnostic]]:
    """Parse a text; after an error continue with the next statement."""
    machine, builder = _machine()
    builder.begin(source)
    problems: list[Diagnostic] = []
    program: ModelTree | None = None
    begin: int | None = int(source.text.startswith(_BOM))
    while begin is not None and len(problems) < _MOST_MESSAGES:
        try:
            parsed: object = machine.parse(blank_before(source.text, begin))
        except UnexpectedInput as error:
            failure = failure_of(_lexer(), source, begin, error)
            problem = diagnose(failure)
            problems.append(problem)
            again = failure.starts_statement and problem.code not in _USES_UP_KEYWORD
            after = failure.span.start if again else failure.span.end
            begin = (
                None
                if failure.found == END
                else next_statement(source.text, after, failure.is_local)
            )
        else:
            program, begin = parsed if isinstance(parsed, ModelTree) else None, None
    problems += builder.problems
    builder.begin(SourceText(""))
    once = {(p.code, p.span.start if p.span else 0): p for p in reversed(problems)}
    return program, sorted(once.values(), key=lambda p: p.span.start if p.span else 0)


# For messages about a keyword itself: continuing at that keyword would repeat them.
_USES_UP_KEYWORD = frozenset(("E103", "E120"))


def _deepest(program: ModelTree) -> Node | None:
    """A node that is nested too deeply, if any; brackets were counted before."""
    stack = [(root, 0) for statement in program.order for root in roots(statement)]
    while stack:
        node, depth = stack.pop()
        depth += isinstance(node, _NESTING)
        if depth > DEEPEST:
            return node
        stack.extend((child, depth) for child in children(node))
    return None


def _check_length(raw: bytes, name: str) -> None:
    if len(raw) > LONGEST_TEXT:
        raise ModelSyntaxError(
            Diagnostic(
                "E003",
                f"the model `{name}` is longer than {LONGEST_TEXT // 10**6} MB",
                help="put numbers into data files, and long sums into `sum(… for i in n)`",
            )
        )


def _not_text(path: Path, reason: str, remedy: str) -> ModelSyntaxError:
    return ModelSyntaxError(Diagnostic("E002", f"`{path}` is not text: {reason}", help=remedy))


def _nearby(path: Path) -> str:
    """The remedy for a missing file: the models in the same folder."""
    try:
        result = sorted(p.name for p in path.parent.glob("*.slo"))[:5] if not path.exists() else []
    except (OSError, ValueError):
        return ""
    there = ", ".join(f"`{name}`" for name in result)
    return f"that folder has {there}" if result else "give the path of a model, a .slo file"


LONGEST_TEXT = 2_000_000
"""Limit on the bytes of a model's text."""
DEEPEST = 5_000
"""Limit on nesting, counted in brackets and in unary operators or chains of them."""
MOST_SIGNS = 50_000
"""Limit on the tokens of a statement: names, numbers, strings, brackets and other symbols."""

_SIGN = re.compile(
    r"(?P<comment>#[^\r\n]*)|(?P<open>[(\[])|(?P<close>[)\]])|"
    rf"(?P<keyword>\b(?:{STATEMENT_PATTERN})\b)|"
    r'"[^"\r\n]*"|[0-9][0-9.]*(?:[eE][+-]?[0-9]+)?|\w+|\.?\*\*?|\.?[-+/^@,:=<>!]|\''
)


def beyond_limits(source: SourceText) -> Diagnostic | None:
    """The message about a text that is nested too deeply or has a statement that is too long."""
    depth = count = 0
    for match in _SIGN.finditer(source.text):
        kind = match.lastgroup
        # An unmatched closing bracket is an error of its own, no matter how often it occurs.
        if kind == "comment" or (kind == "close" and not depth):
            continue
        count += 1
        if kind == "open":
            depth += 1
        elif kind == "close":
            depth -= 1
        elif kind == "keyword" and not depth:
            count = 1
        if depth > DEEPEST:
            return messages.nested_too_deep(Span(source, match.start(), match.end()), DEEPEST)
        if count > MOST_SIGNS:
            return messages.statement_too_long(Span(source, match.start(), match.end()), MOST_SIGNS)
    return None
