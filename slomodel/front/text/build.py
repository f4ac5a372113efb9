"""Construction of the syntax tree: one method for each rule of the grammar."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeAlias

from lark import Token, Transformer

from slomodel.errors import Diagnostic, SourceText, Span
from slomodel.front.text.syntax import (
    ATTRIBUTES,
    Argument,
    ArrayLiteral,
    BoolOp,
    ChainTerm,
    CheckStatement,
    Compare,
    Comprehension,
    Condition,
    ConstraintStatement,
    DataDecl,
    DimDecl,
    Expr,
    First,
    Fn,
    FnParameter,
    FunctionCall,
    Index,
    Iteration,
    Keyword,
    Let,
    ModelTree,
    Name,
    Negate,
    NoneLiteral,
    Not,
    NumberLiteral,
    ObjectiveStatement,
    Power,
    ProductChain,
    SetClause,
    Size,
    Slice,
    Statement,
    String,
    SumChain,
    Transpose,
    VarDecl,
)
from slomodel.front.text.syntax_errors import messages, set_messages

Children: TypeAlias = list[Any]
"""Children in a grammar rule: tokens, nodes, and None for an omitted part."""

_LONGEST_SIZE = 15


class TreeBuilder(Transformer[Token, ModelTree]):
    """Constructs the tree during the parse, so that deep nesting causes no recursion.

    Errors that the grammar cannot express (such as `x²` as a name) are collected in `problems`.
    """

    def __init__(self) -> None:
        Transformer.__init__(self)
        self.begin(SourceText(""))

    def begin(self, source: SourceText) -> None:
        """Prepare for the parse of a new text."""
        self.source = source
        self.problems: list[Diagnostic] = []
        self.warnings: list[Diagnostic] = []

    def _span(self, token: Token) -> Span:
        start = token.start_pos or 0
        return Span(self.source, start, start + len(token))

    def _name(self, token: Token) -> Name:
        name = Name(str(token), self._span(token))
        if not name.text.isidentifier():
            self.problems.append(messages.not_an_identifier(name.span))
        return name

    def _continues(self, head: Span, bracket: Span) -> None:
        if "\n" in self.source.text[head.end : bracket.start]:
            self.warnings.append(messages.continued_on_next_line(bracket))

    def start(self, children: Children) -> ModelTree:
        name, *groups = children
        order: tuple[Statement, ...] = tuple(decl for group in groups for decl in group)
        return ModelTree(
            name,
            order,
            dims=tuple(s for s in order if isinstance(s, DimDecl)),
            data=tuple(s for s in order if isinstance(s, DataDecl)),
            vars=tuple(s for s in order if isinstance(s, VarDecl)),
            lets=tuple(s for s in order if isinstance(s, Let)),
            fns=tuple(s for s in order if isinstance(s, Fn)),
            checks=tuple(s for s in order if isinstance(s, CheckStatement)),
            objectives=tuple(s for s in order if isinstance(s, ObjectiveStatement)),
            constraints=tuple(s for s in order if isinstance(s, ConstraintStatement)),
            warnings=tuple(self.warnings),
        )

    def model(self, children: Children) -> Name:
        return self._name(children[1])

    def dims(self, children: Children) -> list[DimDecl]:
        return children[1:]

    def dim(self, children: Children) -> DimDecl:
        name, default = self._name(children[0]), children[1]
        return DimDecl(name, default, name.span if default is None else name.span.to(default.span))

    def data(self, children: Children) -> list[DataDecl]:
        declared: list[DataDecl] = children[1:]
        file: String | None = None
        drops = False
        for k in range(len(declared) - 1, -1, -1):
            this = declared[k]
            if this.file is not None or this.default is not None:
                file, drops = this.file, this.drops
            elif file is not None:
                declared[k] = replace(this, file=file, drops=drops)
        return declared

    def file(self, children: Children) -> tuple[String, Token | None]:
        """The file of a declaration, and the words `drop missing` if they follow."""
        name, drops = children
        return self.string([name]), drops

    def datum(self, children: Children) -> DataDecl:
        token, sizes, domain, (attributes, last), value = children
        name, (shape, end) = self._name(token), self._sizes(sizes)
        file, drops = value if isinstance(value, tuple) else (None, None)
        default = None if file is not None else value
        tail = file or default
        inside = None if domain is None else domain.span
        end = tail.span if tail is not None else last or inside or end or name.span
        end = end if drops is None else self._span(drops)
        own = (name, shape, domain, attributes, default, file, name.span.to(end))
        return DataDecl(*own, drops is not None)

    def attributes(self, children: Children) -> tuple[tuple[Name, ...], Span | None]:
        names = tuple(Name(str(token), self._span(token)) for token in children)
        wrong = [name for name in names if name.text not in ATTRIBUTES]
        if wrong:
            self.problems.append(messages.unknown_attribute(wrong[0].span))
        return names, names[-1].span if names else None

    def var(self, children: Children) -> list[VarDecl]:
        declared: list[VarDecl] = children[1:]
        lacks: VarDecl | None = None
        for one in declared:
            lacks = lacks or (one if one.set is None else None)
            if one.set is not None and lacks is not None:
                self.problems.append(set_messages.set_of_one_name(lacks, one))
                break
            lacks = None if one.init is not None else lacks
        init: Expr | None = None
        for k in range(len(declared) - 1, -1, -1):
            init = declared[k].init or init
            declared[k] = replace(declared[k], init=init)
        return declared

    def variable(self, children: Children) -> VarDecl:
        name, (shape, end) = self._name(children[0]), self._sizes(children[1])
        inside, init = children[2:]
        last = init or inside
        end = last.span if last is not None else end or name.span
        return VarDecl(name, shape, inside, init, name.span.to(end))

    def half_line(self, children: Children) -> SetClause:
        op, end = children
        at = self._span(op)
        if op in ("==", "!="):
            self.problems.append(set_messages.not_a_set(at))
        return SetClause("half_line", str(op), (end,), None, at.to(end.span))

    def closed(self, children: Children) -> SetClause:
        opening, low, high, closing = children
        span = self._span(opening).to(self._span(closing))
        return SetClause("closed", "", (low, high), None, span)

    def open(self, children: Children) -> SetClause:
        opening, low, high, closing = children
        span = self._span(opening).to(self._span(closing))
        return SetClause("open", "", (low, high), None, span)

    def named_set(self, children: Children) -> SetClause:
        token, opening, *rest = children
        if opening is None:
            call = FunctionCall(self._name(token), (), (), self._span(token))
        else:
            call = self.call([token, opening, *rest])
        return SetClause("named", "", (), call, call.span)

    def shape(self, children: Children) -> tuple[tuple[Size, ...], Span]:
        return tuple(children[:-1]), self._span(children[-1])

    def any_shape(self, children: Children) -> tuple[None, Span]:
        return None, self._span(children[0]).to(self._span(children[-1]))

    def _sizes(
        self, brackets: tuple[tuple[Size, ...] | None, Span] | None
    ) -> tuple[tuple[Size, ...], Span | None]:
        """The sizes of a declared array, and the last span of its shape."""
        shape, end = brackets or ((), None)
        if shape is None:
            assert end is not None
            self.problems.append(messages.misplaced_any_shape(end))
        return shape or (), end

    def size(self, children: Children) -> Size:
        terms: list[tuple[Name, int]] = []
        offset, sign = 0, 1
        for child in children:
            if isinstance(child, Token):
                sign = -1 if child == "-" else 1
                continue
            name, factor, _ = child
            if name is None:
                offset += sign * factor
            else:
                terms.append((name, sign * factor))
        return Size(tuple(terms), offset, children[0][-1].to(children[-1][-1]))

    def size_term(self, children: Children) -> tuple[Name | None, int, Span]:
        """A name, if any, its factor and the span of both."""
        span = self._span(children[0]).to(self._span(children[-1]))
        name, factor = None, 1
        for token in children:
            digits = str(token).replace("_", "")
            if token.type == "NAME":
                name = self._name(token)
            elif token.type == "NUMBER" and digits.isdecimal() and len(digits) <= _LONGEST_SIZE:
                factor = int(digits)
            elif token != "*":
                self.problems.append(messages.not_a_size(span))
        return name, factor, span

    def let(self, children: Children) -> list[Let]:
        keyword, *definitions = children
        result: list[Let] = definitions[::2]
        own = result[0]
        result[0] = replace(own, joined=False, span=self._span(keyword).to(own.span))
        return result

    def local(self, children: Children) -> list[Let]:
        return self.let(children)

    def definition(self, children: Children) -> Let:
        token, indices, expr, first = children
        name, last = self._name(token), expr if first is None else first
        return Let(name, indices, expr, first, True, name.span.to(last.span))

    def first(self, children: Children) -> First:
        values: tuple[Expr, ...] = tuple(children)
        return First(values, None, values[0].span.to(values[-1].span))

    def first_by_index(self, children: Children) -> First:
        value, iteration = children
        return First((value,), iteration, value.span.to(iteration.span))

    def indices(self, children: Children) -> tuple[Iteration, ...]:
        return tuple(children)

    def iteration(self, children: Children) -> Iteration:
        *tokens, domain = children
        name, *others = map(self._name, tokens)
        if isinstance(domain, SumChain | ProductChain) and not others:
            # `i in n - 1` is `i in range(n - 1)`.
            domain = FunctionCall(Name("range", domain.span), (domain,), (), domain.span)
        return Iteration(name, domain, name.span.to(domain.span), tuple(others))

    def fn(self, children: Children) -> list[Fn]:
        keyword, name, *parameters, result = children
        lets, body = result if isinstance(result, tuple) else ((), result)
        span = self._span(keyword).to(body.span)
        return [Fn(self._name(name), tuple(parameters), lets, body, span)]

    def parameter(self, children: Children) -> FnParameter:
        name, result = self._name(children[0]), children[1]
        if result is None:
            return FnParameter(name, None, False, name.span)
        sizes, end = result
        return FnParameter(name, sizes or (), sizes is None, name.span.to(end))

    def block(self, children: Children) -> tuple[tuple[Let, ...], Expr]:
        *groups, _, body = children
        return tuple(let for group in groups for let in group), body

    def check(self, children: Children) -> list[CheckStatement]:
        keyword, condition = children
        return [CheckStatement(condition, self._span(keyword).to(condition.span))]

    def objective(self, children: Children) -> list[ObjectiveStatement]:
        sense, name, expr = children
        at = self._span(sense)
        label = None if name is None else self._name(name)
        return [ObjectiveStatement(str(sense), label, expr, at, at.to(expr.span))]

    def subject(self, children: Children) -> list[ConstraintStatement]:
        keyword, *result = children
        constraints: list[ConstraintStatement] = result
        first = constraints[0]
        constraints[0] = replace(first, span=self._span(keyword).to(first.span))
        return constraints

    def subject_each(self, children: Children) -> list[ConstraintStatement]:
        keyword, result, *iterations, condition = children
        one: ConstraintStatement = result
        last = iterations[-1] if condition is None else condition
        span = self._span(keyword).to(last.span)
        return [replace(one, iterations=tuple(iterations), condition=condition, span=span)]

    def constraint(self, children: Children) -> ConstraintStatement:
        name, left, op, right, second, end = children
        label = None if name is None else self._name(name)
        ops = [op] if second is None else [op, second]
        sides = (left, right) if second is None else (left, right, end)
        begin = left.span if label is None else label.span
        at = tuple(self._span(one) for one in ops)
        words = tuple(map(str, ops))
        return ConstraintStatement(label, sides, words, at, (), None, begin.to(sides[-1].span))

    def condition(self, children: Children) -> BoolOp:
        operands: tuple[Condition, ...] = tuple(children[::2])
        return BoolOp(str(children[1]), operands, operands[0].span.to(operands[-1].span))

    conjunction = guard = guards = condition

    def not_(self, children: Children) -> Not:
        return Not(children[1], self._span(children[0]).to(children[1].span))

    def truth(self, children: Children) -> Compare:
        (number,) = children
        at = number.span
        return Compare("!=", number, NumberLiteral(0.0, "0", at), at, at)

    def compare(self, children: Children) -> Compare:
        left, op, right = children
        return Compare(str(op), left, right, self._span(op), left.span.to(right.span))

    def parenthesis(self, children: Children) -> Expr | Condition:
        opening, inside, closing = children
        inner: Expr | Condition = inside
        return replace(inner, span=self._span(opening).to(self._span(closing)))

    def _chain(self, children: Children) -> tuple[Expr, tuple[ChainTerm, ...], Span]:
        first: Expr = children[0]
        rest = tuple(
            ChainTerm(str(op), operand, self._span(op))
            for op, operand in zip(children[1::2], children[2::2], strict=True)
        )
        return first, rest, first.span.to(rest[-1].operand.span)

    def sum(self, children: Children) -> SumChain:
        return SumChain(*self._chain(children))

    def product(self, children: Children) -> ProductChain:
        return ProductChain(*self._chain(children))

    def sign(self, children: Children) -> Expr:
        op, operand = children
        value: Expr = operand
        span = self._span(op).to(value.span)
        return Negate(value, span) if op == "-" else replace(value, span=span)

    def power(self, children: Children) -> Power:
        base, op, exponent = children
        spelling = "^" if op == "**" else str(op)
        return Power(base, spelling, exponent, self._span(op), base.span.to(exponent.span))

    def transpose(self, children: Children) -> Transpose:
        operand, op = children
        at = self._span(op)
        return Transpose(operand, at, operand.span.to(at))

    def index(self, children: Children) -> Index:
        base, opening, *items, closing = children
        self._continues(base.span, self._span(opening))
        return Index(base, tuple(items), base.span.to(self._span(closing)))

    def slice(self, children: Children) -> Slice:
        lo, colon, hi, second, step = children
        span = self._span(colon)
        for part in (lo, hi, None if second is None else step):
            span = span if part is None else span.to(part.span)
        return Slice(lo, hi, step, span)

    def none(self, children: Children) -> NoneLiteral:
        return NoneLiteral(self._span(children[0]))

    def number(self, children: Children) -> NumberLiteral:
        span = self._span(children[0])
        text = span.text.replace("_", "")
        value = float(text)
        mantissa = text.lower().partition("e")[0]
        if value == float("inf") or (value == 0 and mantissa.strip("0.")):
            self.problems.append(messages.outside_float(span))
        return NumberLiteral(value, text, span)

    def name(self, children: Children) -> Name:
        return self._name(children[0])

    def array(self, children: Children) -> ArrayLiteral:
        opening, *items, closing = children
        return ArrayLiteral(tuple(items), self._span(opening).to(self._span(closing)))

    def string(self, children: Children) -> String:
        return String(str(children[0])[1:-1], self._span(children[0]))

    def keyword(self, children: Children) -> Keyword:
        name, value = self._name(children[0]), children[1]
        return Keyword(name, value, name.span.to(value.span))

    def call(self, children: Children) -> FunctionCall:
        token, opening, *arguments, closing = children
        function = self._name(token)
        self._continues(function.span, self._span(opening))
        kwargs = tuple(a for a in arguments if isinstance(a, Keyword))
        args: tuple[Argument, ...] = tuple(a for a in arguments if not isinstance(a, Keyword))
        if kwargs and any(a.span.start > kwargs[0].span.start for a in args):
            late = next(a for a in args if a.span.start > kwargs[0].span.start)
            name = kwargs[0].name.text
            meant = f"an equality is written `{name} == …`" if function.text == "where" else ""
            self.problems.append(messages.positional_after_keyword(late.span, meant))
        return FunctionCall(function, args, kwargs, function.span.to(self._span(closing)))

    def choice(self, children: Children) -> FunctionCall:
        """`a if condition else b` is `where(condition, a, b)`."""
        first, condition, second = children
        span = first.span.to(second.span)
        return FunctionCall(Name("where", span), (condition, first, second), (), span)

    def comprehension(self, children: Children) -> Comprehension:
        token, opening, body, *iterations, condition, closing = children
        function = self._name(token)
        self._continues(function.span, self._span(opening))
        span = function.span.to(self._span(closing))
        return Comprehension(function, body, tuple(iterations), condition, span)
