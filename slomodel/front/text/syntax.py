"""The syntax tree of a model, as written; names and shapes are not resolved here.

Nodes compare by identity and have no generated `repr`, which would recurse on deep trees. The span
of a node includes its parentheses, so that it is the operand as written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, TypeVar, assert_never

from slomodel.errors import Diagnostic, Span

STATEMENTS = (
    *("model", "dim", "data", "var", "let", "fn", "check", "minimize", "maximize"),
    "subject to",
)
"""Keywords that begin a statement."""
STATEMENT_TOKENS = tuple(keyword.split()[0].upper() for keyword in STATEMENTS)
"""The types of their tokens."""
STATEMENT_PATTERN = "|".join(keyword.replace(" ", r"\s+") for keyword in STATEMENTS)
"""A regular expression of them."""
ATTRIBUTES = ("symmetric", "mask", "whole", "one_based", "labels", "sparse")
"""Attributes that may follow the shape of data."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NumberLiteral:
    """A literal; `text` is its spelling without underscores."""

    value: float
    text: str
    span: Span


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Name:
    text: str
    span: Span


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class String:
    """A string literal; `text` excludes the double quotes."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NoneLiteral:
    """`None`: a new axis in an index, "all axes" as an argument."""

    span: Span


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ArrayLiteral:
    """`[a, b]`: values of one shape, joined along a new first axis."""

    items: tuple[Expr, ...]
    span: Span


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Negate:
    """`-operand`; a unary plus leaves no node."""

    operand: Expr
    span: Span


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ChainTerm:
    """An operator of a flat chain with its right operand."""

    op: str
    operand: Expr
    op_span: Span


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SumChain:
    """`first op operand op operand …`, left to right; op is `+` or `-`."""

    first: Expr
    rest: tuple[ChainTerm, ...]
    span: Span


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ProductChain:
    """`first op operand op operand …`, left to right; op is `*`, `/`, `@`, `.*` or `./`."""

    first: Expr
    rest: tuple[ChainTerm, ...]
    span: Span


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Power:
    """`base op exponent`; op is `^` (also written `**`) or `.^`."""

    base: Expr
    op: str
    exponent: Expr
    op_span: Span
    span: Span


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Transpose:
    """`operand'` or `operand.T`."""

    operand: Expr
    op_span: Span
    span: Span


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Slice:
    """`lo:hi:step` in an index; an omitted part is None."""

    lo: Expr | None
    hi: Expr | None
    step: Expr | None
    span: Span


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Index:
    """`base[items]`."""

    base: Expr
    items: tuple[Item, ...]
    span: Span


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Keyword:
    """`name=value` in a call."""

    name: Name
    value: Argument
    span: Span


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FunctionCall:
    """`function(args, kwargs)`."""

    function: Name
    args: tuple[Argument, ...]
    kwargs: tuple[Keyword, ...]
    span: Span


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Iteration:
    """`name in domain`; a domain is a size, `range(…)` or sparse data, with one name for each axis.

    `others` are the names after the first.
    """

    name: Name
    domain: Expr
    span: Span
    others: tuple[Name, ...] = ()

    @property
    def names(self) -> tuple[Name, ...]:
        return (self.name, *self.others)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Comprehension:
    """`function(body for iterations if condition)`."""

    function: Name
    body: Expr
    iterations: tuple[Iteration, ...]
    condition: Condition | None
    span: Span


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Compare:
    """`left op right`; op is one of `<= >= == != < >`."""

    op: str
    left: Expr
    right: Expr
    op_span: Span
    span: Span


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BoolOp:
    """A flat chain of one operator, `and` or `or`."""

    op: str
    operands: tuple[Condition, ...]
    span: Span


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Not:
    operand: Condition
    span: Span


Condition: TypeAlias = Compare | BoolOp | Not
Expr: TypeAlias = (
    NumberLiteral
    | Name
    | ArrayLiteral
    | Negate
    | SumChain
    | ProductChain
    | Power
    | Transpose
    | Index
    | FunctionCall
    | Comprehension
)
Item: TypeAlias = Expr | Slice | NoneLiteral
Argument: TypeAlias = Expr | Condition | String | NoneLiteral
Node: TypeAlias = Expr | Condition | Slice | NoneLiteral | String


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Size:
    """A size in a shape: the sum of `offset` and of names times coefficients."""

    terms: tuple[tuple[Name, int], ...]
    offset: int
    span: Span


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DimDecl:
    name: Name
    default: Expr | None
    span: Span


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DataDecl:
    """A data array, or a scalar if `shape` is empty; `from` applies to each of the names.

    The elements of index data are positions along `domain`. With `drops` the rows of the file in
    which a column of these data is missing are left out.
    """

    name: Name
    shape: tuple[Size, ...]
    domain: Size | None
    attributes: tuple[Name, ...]
    default: Expr | None
    file: String | None
    span: Span
    drops: bool = False


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SetClause:
    """The set of a variable as written: a half-line `op end`, an interval, or a set by name.

    `ends` are one end or two; a set by name has none, and is a call, of no arguments if it is
    written without parentheses.
    """

    form: Literal["half_line", "closed", "open", "named"]
    op: str
    ends: tuple[Expr, ...]
    call: FunctionCall | None
    span: Span

    @property
    def text(self) -> str:
        """The clause as written after the name of a variable."""
        return self.span.text if self.form == "half_line" else f"in {self.span.text}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class VarDecl:
    """A variable, with the set that it is declared in; `init` applies to each of the names."""

    name: Name
    shape: tuple[Size, ...]
    set: SetClause | None
    init: Expr | None
    span: Span


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class First:
    """The first values of a recurrence: one after another, or one expression by index."""

    values: tuple[Expr, ...]
    iteration: Iteration | None
    span: Span


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Let:
    """A definition; an indexed one if `indices` is not None.

    `joined`: it follows `and`, and belongs to one recurrence with the definition before it.
    """

    name: Name
    indices: tuple[Iteration, ...] | None
    expr: Expr
    first: First | None
    joined: bool
    span: Span


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FnParameter:
    """A parameter of an `fn`: a number if `shape` is None, else an array.

    With `is_any_shape`, written `y[...]`, a number or an array of any shape; `shape` is then empty.
    """

    name: Name
    shape: tuple[Size, ...] | None
    is_any_shape: bool
    span: Span


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Fn:
    """A function: `body` is its value, in which the definitions `locals` may be used."""

    name: Name
    parameters: tuple[FnParameter, ...]
    locals: tuple[Let, ...]
    body: Expr
    span: Span

    @property
    def head(self) -> str:
        """The function with its parameters as declared, such as `f(A[m, n], t)`."""
        inside = ", ".join(parameter.span.text for parameter in self.parameters)
        return f"{self.name.text}({inside})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CheckStatement:
    condition: Condition
    span: Span


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ObjectiveStatement:
    """`sense` is `minimize` or `maximize`; `sense_span` is the span of that word."""

    sense: str
    name: Name | None
    expr: Expr
    sense_span: Span
    span: Span


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ConstraintStatement:
    """A constraint `sides[0] ops[0] sides[1]`, and `ops[1] sides[2]` if it has two ends.

    It holds for each index tuple of `iterations` that satisfies the condition, if there are any.
    """

    label: Name | None
    sides: tuple[Expr, ...]
    ops: tuple[str, ...]
    op_spans: tuple[Span, ...]
    iterations: tuple[Iteration, ...]
    condition: Condition | None
    span: Span


Declaration: TypeAlias = DimDecl | DataDecl | VarDecl | Let | Fn
Statement: TypeAlias = Declaration | CheckStatement | ObjectiveStatement | ConstraintStatement
Joinable = TypeVar("Joinable", bound=Statement)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ModelTree:
    """A parsed model: `order` holds all statements as written, the other fields hold them by kind.

    `warnings` are about a text that is nevertheless a valid model.
    """

    name: Name | None
    order: tuple[Statement, ...]
    dims: tuple[DimDecl, ...]
    data: tuple[DataDecl, ...]
    vars: tuple[VarDecl, ...]
    lets: tuple[Let, ...]
    fns: tuple[Fn, ...]
    checks: tuple[CheckStatement, ...]
    objectives: tuple[ObjectiveStatement, ...]
    constraints: tuple[ConstraintStatement, ...]
    warnings: tuple[Diagnostic, ...] = field(default=())


def joined_groups(order: Sequence[Joinable]) -> list[list[Joinable]]:
    """The statements, with definitions that are joined by `and` in one group."""
    groups: list[list[Joinable]] = []
    for statement in order:
        if isinstance(statement, Let) and statement.joined:
            groups[-1].append(statement)
        else:
            groups.append([statement])
    return groups


def roots(statement: Statement) -> tuple[Node, ...]:
    """The expressions and conditions in a statement."""
    result: tuple[Node | None, ...]
    match statement:
        case DimDecl():
            result = (statement.default,)
        case DataDecl():
            result = (statement.default, statement.file)
        case VarDecl():
            result = (*_in_set(statement.set), statement.init)
        case Let():
            result = (*(i.domain for i in statement.indices or ()), statement.expr)
            if statement.first is not None:
                by_index = statement.first.iteration
                domain = None if by_index is None else by_index.domain
                result = (*result, *statement.first.values, domain)
        case Fn():
            result = (*(node for let in statement.locals for node in roots(let)), statement.body)
        case CheckStatement():
            result = (statement.condition,)
        case ObjectiveStatement():
            result = (statement.expr,)
        case ConstraintStatement():
            domains = (i.domain for i in statement.iterations)
            result = (*statement.sides, *domains, statement.condition)
        case _:
            assert_never(statement)
    return tuple(node for node in result if node is not None)


def _in_set(clause: SetClause | None) -> tuple[Expr, ...]:
    if clause is None:
        return ()
    return clause.ends if clause.call is None else (clause.call,)
