"""Scopes of SymPy nodes: indices bound by enclosing sums, sizes and names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import sympy as sp
from sympy.concrete.expr_with_limits import ExprWithLimits
from sympy.tensor.indexed import Idx

from slomodel.errors import ShapeError, SlomodelError, SourceText
from slomodel.front.elaboration.indices.affine_index import AffineIndex
from slomodel.front.elaboration.scope import Elaboration
from slomodel.front.elaboration.values import Label, Value
from slomodel.front.sympy_expressions.errors import Origins, error, shown
from slomodel.ir.dims import Dim, literal, named
from slomodel.ir.expr import Expr
from slomodel.problem import Bound, LookupBound

_LARGEST = 10**15


@dataclass(slots=True)
class Translation:
    """State of the translation of an expression: named arrays, known sizes, and bounds.

    `values` holds the arrays and sizes by name, `inner` the indices that each sum binds, `whole`
    the data used as indices, whose elements must be whole numbers, and `lists` the index sets.
    `recurrences` holds what the steps of recurrences read.
    """

    sizes: Mapping[str, int]
    values: dict[str, Value] = field(default_factory=dict)
    bounds: dict[Bound, None] = field(default_factory=dict)
    lookups: dict[LookupBound, None] = field(default_factory=dict)
    whole: dict[Expr, Dim | None] = field(default_factory=dict)
    places: Origins = field(default_factory=Origins)
    inner: dict[tuple[sp.Basic, IndexScope], tuple[tuple[Label, ...], IndexScope]] = field(
        default_factory=dict
    )
    lists: Elaboration = field(default_factory=lambda: Elaboration(SourceText("")))
    recurrences: dict[sp.Basic, object] = field(default_factory=dict)

    def size(self, dim: Dim) -> int | None:
        """The value of a dim, which may be negative; None if a size is unknown."""
        if any(name not in self.sizes for name, _ in dim.terms):
            return None
        return dim.value(self.sizes)


@dataclass(frozen=True, slots=True, eq=False)
class IndexScope:
    """The index labels in scope, by SymPy symbol, and the values of indices in lists of tuples.

    `guard` is a condition on indices and data outside which an expression is not used.
    """

    translation: Translation
    labels: Mapping[sp.Basic, Label] = field(default_factory=dict)
    values: Mapping[sp.Basic, Value] = field(default_factory=dict)
    guard: Value | None = None

    def with_label(self, symbol: sp.Basic, label: Label) -> IndexScope:
        return replace(self, labels={**self.labels, symbol: label})


def affine(node: sp.Basic, scope: IndexScope) -> AffineIndex:
    """The affine form of a whole number in indices and sizes. Raises E406 if it is not affine."""
    if not isinstance(node, sp.Expr):
        raise _not_affine(node)
    total = AffineIndex(Dim())
    for term in sp.Add.make_args(node):
        coefficient, rest = term.as_coeff_Mul()
        if not coefficient.is_Integer or abs(coefficient) > _LARGEST:
            raise _not_affine(node)
        total = total.plus(_atom(rest, node, scope), int(coefficient))
    return total


def _atom(atom: sp.Expr, node: sp.Expr, scope: IndexScope) -> AffineIndex:
    if atom is sp.S.One:
        return AffineIndex(literal(1))
    label = scope.labels.get(atom)
    if label is not None:
        return AffineIndex(label.start, {label: 1})
    if isinstance(atom, sp.Symbol):
        return AffineIndex(named(atom.name))
    if isinstance(atom, Idx):
        remedy = f"write `Sum(term, ({atom}, 0, n - 1))`"
        raise error("E406", f"no Sum binds the index `{atom}`", node, remedy)
    raise _not_affine(node)


def _not_affine(node: sp.Basic) -> SlomodelError:
    message = "an index or limit may contain indices, sizes and whole numbers"
    return error("E406", message, node, "write it like `i`, `i + 1`, `2*i` or `n - 1 - i`")


def size(node: sp.Basic, scope: IndexScope) -> Dim:
    """A size or limit that is affine in sizes alone."""
    form = affine(node, scope)
    if form.labels:
        name = next(iter(form.labels)).name
        message = f"a size or limit may not depend on the index `{name}`"
        remedy = "sum over the whole range and write `Piecewise((term, j <= i), (0, True))`"
        raise error("E408", message, node, remedy)
    return form.offset


def enter(node: ExprWithLimits, scope: IndexScope) -> tuple[tuple[Label, ...], IndexScope]:
    """The indices that a Sum or Product binds, and the scope of its body."""
    known = scope.translation.inner.get((node, scope))
    if known is not None:
        return known
    labels: list[Label] = []
    inner = scope
    # SymPy's first limit is the innermost.
    for limit in reversed(node.limits):
        labels.append(_label(limit, node, inner))
        inner = inner.with_label(limit[0], labels[-1])
    scope.translation.inner[node, scope] = tuple(labels), inner
    return tuple(labels), inner


def _label(limit: sp.Tuple, node: ExprWithLimits, scope: IndexScope) -> Label:
    kind = node.func.__name__
    if len(limit) != 3:
        message = f"the {kind} over `{limit[0]}` needs both limits"
        raise error("E408", message, node, f"write `{kind}(term, ({limit[0]}, 0, n - 1))`")
    first, last = limit[1:]
    if any(bound.has(sp.oo, -sp.oo) for bound in (first, last)):
        message = f"the {kind} over `{limit[0]}` is infinite"
        raise error("E408", message, node, "end it at a number or a size")
    low, high = outermost(first, sp.Max, scope), outermost(last, sp.Min, scope)
    is_fixed = not low.labels and not high.labels
    # Limits that depend on other indices: the range of all values.
    start = low.least
    extent = high.most - start + 1
    if is_fixed and extent.is_literal and extent.const < 0:
        message = f"the {kind} over `{limit[0]}` from {shown(first)} to {shown(last)} ends early"
        remedy = "a sum includes both limits; from a to a - 1 it is empty"
        raise error("E408", message, node, remedy, ShapeError)
    return scope.translation.lists.label(str(limit[0]), extent, start)


def outermost(
    end: sp.Basic, kind: type[sp.Basic] | tuple[type[sp.Basic], ...], scope: IndexScope
) -> AffineIndex:
    """The end of a range, or one that is as far out: an operand of `Max` below, of `Min` above."""
    if not isinstance(end, kind) or not end.free_symbols & {*scope.labels, *scope.values}:
        return affine(end, scope)
    forms = [affine(one, scope) for one in end.args]
    return next((form for form in forms if not form.labels), forms[0])


def is_dependent(limit: sp.Tuple, scope: IndexScope) -> bool:
    """Whether the limits of an index contain other indices."""
    used = {symbol for bound in limit[1:] for symbol in bound.free_symbols}
    return any(symbol in scope.labels or symbol in scope.values for symbol in used)
