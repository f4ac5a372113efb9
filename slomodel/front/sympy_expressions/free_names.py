"""The names of a whole SymPy expression, and a check that every part of it has a rule."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import sympy as sp
from sympy.functions.elementary.piecewise import ExprCondPair
from sympy.matrices.expressions.matexpr import MatrixElement
from sympy.tensor.indexed import Idx

from slomodel.errors import DomainError, ShapeError
from slomodel.front.sympy_expressions.errors import check_number, error, unsupported_node
from slomodel.front.sympy_expressions.recurrences import EarlierBase, RecurrentBase, parts_of
from slomodel.front.sympy_expressions.scope import IndexScope, affine, enter, outermost, size
from slomodel.front.sympy_expressions.shapes import Form, Use
from slomodel.functions.translate import known

MATRIX_RULES = (
    *(sp.MatAdd, sp.MatMul, sp.MatPow, sp.Transpose),
    *(sp.HadamardProduct, sp.HadamardPower),
)
FIXED_MATRICES = (sp.Identity, sp.ZeroMatrix, sp.OneMatrix)
_LOGIC = (sp.And, sp.Or, sp.Not)


@dataclass(slots=True)
class FreeNames:
    """Names of an expression: `objects` by name, and their uses.

    `uses` holds the indices of each IndexedBase with its nodes, `sizes` the names in shapes and
    limits, `indices` the free names in indices, each with a node for messages.
    """

    objects: dict[str, sp.Basic] = field(default_factory=dict)
    uses: dict[str, list[Use]] = field(default_factory=dict)
    sizes: dict[str, sp.Basic] = field(default_factory=dict)
    indices: dict[str, sp.Basic] = field(default_factory=dict)

    def add(self, name: str, named: sp.Basic) -> None:
        """Record a name; raise an error if it stands for two objects."""
        known = self.objects.setdefault(name, named)
        if known != named:
            message = f"`{name}` names two objects: {described(known)} and {described(named)}"
            remedy = "construct each symbol once and use it everywhere, or rename one"
            raise error("E402", message, None, remedy)


def described(named: sp.Basic) -> str:
    """The constructor call of an object as text, with the assumptions of a symbol."""
    if isinstance(named, sp.Symbol):
        return str(sp.srepr(named))
    shape = "" if named.shape is None else f" of shape {named.shape}"
    return f"{type(named).__name__}('{name_of(named)}'){shape}"


def name_of(named: sp.Basic) -> str:
    """The name of a symbol, IndexedBase or MatrixSymbol."""
    name: str = named.label.name if isinstance(named, sp.IndexedBase) else named.name
    return name


def scan(roots: Iterable[sp.Basic], scope: IndexScope) -> FreeNames:
    """The names in some expressions. Raises SlomodelError for a part without a rule."""
    result = FreeNames()
    stack = [(root, scope) for root in roots]
    seen: set[tuple[sp.Basic, IndexScope]] = set()
    while stack:
        item = stack.pop()
        if item not in seen:
            seen.add(item)
            stack.extend(_below(*item, result))
    return result


def _below(
    node: sp.Basic, scope: IndexScope, free: FreeNames
) -> Sequence[tuple[sp.Basic, IndexScope]]:
    """The parts of a node to scan next; names are added to `free`."""
    if isinstance(node, (sp.Symbol, Idx)):
        _symbol(node, scope, free)
        return ()
    if isinstance(node, RecurrentBase):
        _sizes(node.shape, scope, free)
        return parts_of(node, scope)
    if isinstance(node, sp.IndexedBase):
        _base(node, scope, free)
        return ()
    if isinstance(node, sp.Indexed) and isinstance(node.base, (RecurrentBase, EarlierBase)):
        _indices(node.indices, scope, free)
        whole = ((node.base, scope),) if isinstance(node.base, RecurrentBase) else ()
        return (*whole, *_tables(node.indices, scope))
    if isinstance(node, sp.Indexed):
        _base(node.base, scope, free)
        forms = _indices(node.indices, scope, free)
        free.uses.setdefault(name_of(node.base), []).append((node, forms))
        return _tables(node.indices, scope)
    if isinstance(node, (sp.Sum, sp.Product)):
        _, inner = enter(node, scope)
        for limit in node.limits:
            _limit_sizes(limit[1:], inner, free)
        _refuse_matrices((node.function,), node)
        return ((node.function, inner),)
    if isinstance(node, sp.Piecewise):
        _refuse_moved(node, scope)
    if isinstance(node, MatrixElement):
        _indices((node.i, node.j), scope, free)
        return ((node.parent, scope), *_tables((node.i, node.j), scope))
    return [(part, scope) for part in _plain(node, scope, free)]


def _plain(node: sp.Basic, scope: IndexScope, free: FreeNames) -> Sequence[sp.Basic]:
    """The parts of a node that does not bind an index."""
    if isinstance(node, sp.MatrixSymbol):
        free.add(node.name, node)
        _sizes(node.shape, scope, free)
        return ()
    if isinstance(node, FIXED_MATRICES):
        _sizes(node.shape, scope, free)
        return ()
    if isinstance(node, sp.MatrixBase):
        return tuple(node.flat())
    if isinstance(node, MATRIX_RULES):
        return tuple(node.args)
    if isinstance(node, (sp.Trace, sp.Determinant, ExprCondPair)) or node in (sp.true, sp.false):
        if isinstance(node, ExprCondPair):
            _refuse_truth_symbols(node.args[1:], node)
            _refuse_matrices(node.args, node)
        return tuple(node.args)
    if isinstance(node, sp.Expr) and not node.args:
        check_number(node)
        return ()
    if isinstance(node, sp.Pow):
        _refuse_complex_power(node)
    if isinstance(node, sp.Piecewise) and node.args[-1].cond is not sp.true:
        message = "a Piecewise is undefined where none of its conditions holds"
        raise error("E411", message, node, "end it with `(value, True)`")
    if isinstance(node, _LOGIC):
        _refuse_truth_symbols(node.args, node)
    if isinstance(node, (sp.Mod, sp.KroneckerDelta)):
        return tuple(node.args[:2])
    if node.func in known():
        _refuse_matrices(node.args, node)
        return tuple(node.args)
    raise unsupported_node(node)


def _refuse_matrices(parts: Iterable[sp.Basic], node: sp.Basic) -> None:
    """Raise an error for a matrix in a scalar function, which SymPy permits."""
    if any(isinstance(part, (sp.MatrixExpr, sp.MatrixBase)) for part in parts):
        message = "a number is expected in place of a matrix"
        remedy = "write a Sum over its elements `M[i, j]`, or a Trace"
        raise error("E410", message, node, remedy, ShapeError)


def _refuse_moved(node: sp.Piecewise, scope: IndexScope) -> None:
    """Raise an error for a Piecewise whose condition has an index that only its branches bind.

    On construction of a Sum, SymPy 1.14 moves any Piecewise below it outwards, also out of the
    inner Sum that binds an index of its condition.
    """
    bound = {limit[0] for one in node.atoms(sp.Sum, sp.Product) for limit in one.limits}
    for branch in node.args:
        for symbol in (branch.cond.free_symbols & bound) - {*scope.labels}:
            message = f"SymPy has moved a Piecewise out of the Sum that binds the index `{symbol}`"
            remedy = (
                "in an inner Sum write `KroneckerDelta(a, b)` for `Eq(a, b)`, and order as limits"
            )
            raise error("E406", message, node, remedy)


def _refuse_truth_symbols(parts: Iterable[sp.Basic], node: sp.Basic) -> None:
    for part in parts:
        if isinstance(part, sp.Symbol):
            message = f"`{part}` is a number, and a condition is expected"
            raise error("E411", message, node, f"write `{part} > 0`")


def _refuse_complex_power(node: sp.Pow) -> None:
    is_fraction = node.exp.is_Number and not node.exp.is_integer
    if node.base.is_Number and node.base.is_negative and is_fraction:
        raise error("E403", "a power is not a real number", node, kind=DomainError)


def _symbol(node: sp.Basic, scope: IndexScope, free: FreeNames) -> None:
    if node in scope.labels:
        return
    if isinstance(node, Idx):
        affine(node, scope)
    _require_real(node)
    free.add(node.name, node)


def _require_real(symbol: sp.Symbol) -> None:
    """Raise an error for a symbol assumed not to be real; one without assumptions is real."""
    if symbol.is_commutative is False:
        message = f"`{symbol.name}` does not commute, as numbers do"
        raise error("E403", message, symbol, "use MatrixSymbol for matrices", DomainError)
    declared_complex = symbol.is_complex is True and symbol.is_real is None
    if declared_complex or symbol.is_extended_real is False or symbol.is_infinite is True:
        message = f"`{symbol.name}` is declared not to be a real number"
        remedy = "models have real numbers only: use the real and imaginary parts as symbols"
        raise error("E403", message, symbol, remedy, DomainError)


def _base(node: sp.IndexedBase, scope: IndexScope, free: FreeNames) -> None:
    if not isinstance(node.label, sp.Symbol):
        raise error("E404", "an IndexedBase needs a name", node, "like IndexedBase('x')")
    free.add(node.label.name, node)
    _sizes(node.shape or (), scope, free)


def _sizes(parts: Iterable[sp.Basic], scope: IndexScope, free: FreeNames) -> None:
    """Record the names in shapes or limits."""
    for part in parts:
        size(part, scope)
        for symbol in part.free_symbols:
            free.add(symbol.name, symbol)
            free.sizes.setdefault(symbol.name, part)


def _limit_sizes(parts: Iterable[sp.Basic], inner: IndexScope, free: FreeNames) -> None:
    """Record the sizes in the limits of an index, which may also contain other indices."""
    for part in parts:
        outermost(part, (sp.Max, sp.Min), inner)
        for symbol in part.free_symbols:
            if symbol not in inner.labels:
                free.add(symbol.name, symbol)
                free.sizes.setdefault(symbol.name, part)


def _tables(parts: Iterable[sp.Basic], scope: IndexScope) -> Sequence[tuple[sp.Basic, IndexScope]]:
    """The indices that are computed from data."""
    return [(part, scope) for part in parts if part.has(sp.Indexed, sp.Mod)]


def _indices(parts: Iterable[sp.Basic], scope: IndexScope, free: FreeNames) -> tuple[Form, ...]:
    forms: list[Form] = []
    for part in parts:
        if part.has(sp.Indexed):
            forms.append(None)
            continue
        forms.append(None if part.has(sp.Mod) else affine(part, scope))
        for symbol in part.free_symbols - set(scope.labels):
            free.add(symbol.name, symbol)
            free.indices.setdefault(symbol.name, part)
    return tuple(forms)
