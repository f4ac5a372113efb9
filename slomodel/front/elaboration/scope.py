"""The scopes of names: those declared so far, and those bound at an expression."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import sympy as sp

from slomodel.calculus.matrix_structure import MatrixFacts
from slomodel.errors import Diagnostic, SourceText, Span
from slomodel.front.elaboration.errors import StatementError, error, suggestion
from slomodel.front.elaboration.foreign_names import foreign_name_hint
from slomodel.front.elaboration.values import Label, Value
from slomodel.front.text.syntax import Fn, Index, Item, Name, Node
from slomodel.functions import div
from slomodel.ir.dims import Dim, named
from slomodel.ir.expr import Const, Expr, Map
from slomodel.problem import Bound, Check, LookupBound, Place, Selection, TupleCount

_MOST_NOT_FINITE = 10
CONSTANTS = {"pi": Const(math.pi, sp.pi), "e": Const(math.e, sp.E)}
"""Names of constants, unless the model declares them itself."""

SymbolKind: TypeAlias = Literal["dim", "data", "variable", "definition", "function"]


@dataclass(frozen=True, slots=True)
class Symbol:
    """A declared name; if dim, value and fn are all missing, its declaration has failed."""

    name: str
    kind: SymbolKind
    span: Span
    dim: Dim | None = None
    value: Value | None = None
    fn: Fn | None = None

    @property
    def is_broken(self) -> bool:
        return self.dim is None and self.value is None and self.fn is None


@dataclass(frozen=True, slots=True)
class Requirements:
    """The checks of a bind: indices, tables of indices, conditions; and the index sets."""

    bounds: tuple[Bound, ...]
    lookups: tuple[LookupBound, ...]
    checks: tuple[Check, ...]
    tuple_counts: tuple[TupleCount, ...]
    selections: tuple[Selection, ...]


@dataclass(slots=True)
class Elaboration:
    """State of elaboration: symbols in order, and facts recorded during evaluation of expressions.

    `later` has the positions of names that a later statement declares, `functions` every `fn`;
    `masked` the choices that `masked` constructed, `masks` the names of data with that attribute,
    `matrices` what is declared of matrices, `counts` the sizes of means with `if`, `files` the
    first name that each `from` reads. `whole` has the data whose elements are whole numbers, with
    the size of the axis that they index if declared. `tuple_counts` are the sizes of index sets
    that depend on data, each after those it uses.
    `ends` are those ends of constraints that may be infinite, `bodies` the rest of all constraints.
    `dense` are the places of conditions that hold for many of the tuples: they become masks.
    `bounds`, `lookups` and `warnings` are ordered sets.
    """

    source: SourceText
    symbols: dict[str, Symbol] = field(default_factory=dict)
    later: dict[str, Span] = field(default_factory=dict)
    functions: dict[str, Fn] = field(default_factory=dict)
    spans: dict[Expr, Span] = field(default_factory=dict)
    bounds: dict[Bound, None] = field(default_factory=dict)
    lookups: dict[LookupBound, None] = field(default_factory=dict)
    tuple_counts: list[TupleCount] = field(default_factory=list)
    selections: list[Selection] = field(default_factory=list)
    dense: frozenset[Place] = frozenset()
    whole: dict[Expr, Dim | None] = field(default_factory=dict)
    checks: list[Check] = field(default_factory=list)
    warnings: dict[Diagnostic, None] = field(default_factory=dict)
    masked: set[Expr] = field(default_factory=set)
    masks: set[str] = field(default_factory=set)
    counts: dict[Expr, Span] = field(default_factory=dict)
    matrices: MatrixFacts = field(default_factory=MatrixFacts)
    ends: list[Expr] = field(default_factory=list)
    bodies: list[Expr] = field(default_factory=list)
    files: dict[Span, str] = field(default_factory=dict)
    labels: int = 0
    steps: int = 0

    def label(
        self,
        name: str,
        dim: Dim,
        start: Dim | None = None,
        is_range: bool = False,
        step: int = 1,
    ) -> Label:
        """A new index label, which sorts after all earlier ones."""
        self.labels += 1
        return Label(name, dim, start or Dim(), self.labels, is_range, step)

    def requirements(self) -> Requirements:
        """The checks of a bind so far, which are restored if an expression is read again."""
        bounds, lookups = tuple(self.bounds), tuple(self.lookups)
        return Requirements(
            bounds, lookups, tuple(self.checks), tuple(self.tuple_counts), tuple(self.selections)
        )

    def restore(self, known: Requirements) -> None:
        """Go back to the requirements of before."""
        self.bounds = dict.fromkeys(known.bounds)
        self.lookups = dict.fromkeys(known.lookups)
        self.checks = list(known.checks)
        self.tuple_counts = list(known.tuple_counts)
        self.selections = list(known.selections)

    def tuple_label(self, count: Expr) -> Label:
        """A new label over a dim whose size is `count`, a scalar computed from data alone."""
        name = f"tuples[{len(self.tuple_counts) + 1}]"
        self.tuple_counts.append(TupleCount(name, count))
        return self.label("", named(name))

    def counted_dim(self, name: str, count: Expr) -> Dim:
        """A dim of this name, which determines its size, a scalar computed from other sizes."""
        if all(one.dim != name for one in self.tuple_counts):
            self.tuple_counts.append(TupleCount(name, count))
        return named(name)

    def declare(self, symbol: Symbol) -> None:
        """Add a name; an error about it is reported once."""
        known = self.symbols.get(symbol.name)
        if known is not None:
            raise error(
                "E202",
                f"`{symbol.name}` is declared twice",
                symbol.span,
                "give one of them another name",
                note=f"{described(known)} since line {known.span.line}",
            )
        self.symbols[symbol.name] = symbol
        self.later.pop(symbol.name, None)

    def require(self, bound: Bound) -> None:
        """Record an index to be tested once sizes are known."""
        self.bounds[bound] = None

    def note(self, value: Value, span: Span) -> None:
        """Record the first span of a node; warn if the node is never finite."""
        node = value.expr
        if node in self.spans:
            return
        if isinstance(node, Const):
            if math.isfinite(node.value):
                return
            self._warn_not_finite(f"`{span.text}` is {node.value:g}", span)
        elif isinstance(node, Map) and node.function is div and node.operands[1] is Const(0.0):
            self._warn_not_finite(f"`{span.text}` divides by 0", span)
        self.spans[node] = span

    def warn(self, diagnostic: Diagnostic) -> None:
        self.warnings[diagnostic] = None

    def _warn_not_finite(self, fact: str, span: Span) -> None:
        """Warn once, since the enclosing expressions are not finite for the same reason."""
        reported = [w.span for w in self.warnings if w.code == "W205" and w.span is not None]
        inner = any(span.start <= one.start and one.end <= span.end for one in reported)
        if not inner and len(reported) < _MOST_NOT_FINITE:
            message = f"{fact}, whatever the variables are"
            remedy = "the objective must be finite for a run: change this number"
            self.warn(Diagnostic("W205", message, span, help=remedy, severity="warning"))


_ARTICLE = {
    "dim": "a dim",
    "data": "data",
    "variable": "a variable",
    "definition": "a definition",
    "function": "a function",
}


def described(symbol: Symbol) -> str:
    """A symbol with its kind, such as `y is data`."""
    return f"`{symbol.name}` is {_ARTICLE[symbol.kind]}"


@dataclass(frozen=True, slots=True, eq=False)
class StateRead:
    """A state that is read at an index: its value, and the indices `items` that remain to apply.

    The value may be the whole history of the state, where the first of these is a place in time;
    `is_earlier` then says of places whether they come before the step.
    """

    value: Value
    items: tuple[Item, ...]
    is_earlier: Callable[[Value], Value] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Ongoing:
    """A state of a recurrence while its body is being evaluated.

    `read` gives what an index reads of it in a scope.
    """

    name: str
    read: Callable[[Index, Scope], StateRead]


Local: TypeAlias = Label | Value | Symbol | Ongoing
"""The meaning of a name inside an expression or function: an index, a value or a dim."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The names visible to an expression: index labels and parameters, then the model's.

    With `any_shape`, inside a function of arrays of any shape, a number is an array without axes.
    `guard`, if given, is a condition on indices and data without which the value is not used:
    indices have to stay inside their axes only where it holds.
    `place`: in a function of the library, the call in the model. `is_chosen`: the value is used
    only where a condition holds, so that data elsewhere may be anything.
    """

    model: Elaboration
    local: Mapping[str, Local] = field(default_factory=dict)
    any_shape: bool = False
    guard: Value | None = None
    place: Span | None = None
    is_chosen: bool = False

    def note(self, value: Value, span: Span) -> None:
        """Record where in the model's text a value is computed."""
        self.model.note(value, self.place or span)

    def with_local(self, names: Mapping[str, Local]) -> Scope:
        return replace(self, local={**self.local, **names})

    def find(self, name: Name) -> Local:
        """The meaning of a name. Raises StatementError if unknown or if its declaration failed."""
        local = self.local.get(name.text)
        if local is not None:
            return local
        symbol = self.model.symbols.get(name.text)
        if symbol is None:
            raise self.unknown(name)
        if symbol.is_broken:
            raise StatementError(None)
        return symbol

    def unknown(self, name: Name) -> StatementError:
        later = self.model.later.get(name.text)
        if later is not None:
            message = f"`{name.text}` is used before it is declared"
            remedy = f"move its declaration up, it is on line {later.line}"
            if name.span.source.text[name.span.end : name.span.end + 1] == "[":
                remedy += "; recurrences that read each other are joined by `and`"
            return error("E201", message, name.span, remedy)
        known = [*self.local, *self.model.symbols]
        message = f"unknown name `{name.text}`"
        remedy = foreign_name_hint(name.text, name.span, known)
        remedy = remedy or suggestion(name.text, known)
        remedy = remedy or f"declare it before, as in `data {name.text}`"
        if name.text[:-1] in known and name.text.endswith("ᵀ"):
            remedy = f"write `{name.text[:-1]}'`"
        return error("E201", message, name.span, remedy)


@dataclass(frozen=True, slots=True)
class ValueRequest:
    """A request for the value of a node.

    `row` permits a transposed vector, `sparse` an array of which only some entries are stored.
    """

    node: Node
    scope: Scope
    row: bool = False
    sparse: bool = False
