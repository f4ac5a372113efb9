"""From a SymPy expression to a problem, without simplification or differentiation.

SymPy itself rewrites an expression on construction: before it arrives here, `sqrt(x**2)` of a real
symbol has become `Abs(x)`, `x/x` has become 1, and `exp(log(x) + 1)` has become `E*x`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

import sympy as sp
from sympy.logic.boolalg import Boolean
from sympy.matrices.expressions.matexpr import MatrixElement
from sympy.tensor.indexed import Idx

from slomodel.errors import ShapeError
from slomodel.front.elaboration.errors import StatementError
from slomodel.front.elaboration.statements.declarations import table_declarations
from slomodel.front.elaboration.values import Value
from slomodel.front.lints.kinks import nonsmooth_warnings
from slomodel.front.sympy_expressions import indexed as sums
from slomodel.front.sympy_expressions import matrices
from slomodel.front.sympy_expressions.choices import choice, is_choice
from slomodel.front.sympy_expressions.conditions import delta
from slomodel.front.sympy_expressions.constraints import Relations, constraints_of, split
from slomodel.front.sympy_expressions.errors import error, place, unsupported_node
from slomodel.front.sympy_expressions.evaluation import Steps, SymPyRequest, run
from slomodel.front.sympy_expressions.free_names import FIXED_MATRICES, scan
from slomodel.front.sympy_expressions.names import DeclaredNames, declare, listed, packed, unpacked
from slomodel.front.sympy_expressions.recurrences import RecurrentBase, recurring
from slomodel.front.sympy_expressions.scalars import (
    is_log_determinant,
    is_root,
    modulus,
    root,
    scalar,
    symbol,
)
from slomodel.front.sympy_expressions.scope import IndexScope, Translation
from slomodel.front.sympy_expressions.variable_sets import Bounds
from slomodel.ir.expr import Input
from slomodel.problem import DataDeclaration, Problem
from slomodel.rewrite import Rolled, formulated

_MOST_WARNINGS = 20

_RULES: tuple[
    tuple[type[sp.Basic] | tuple[type[sp.Basic], ...], Callable[[SymPyRequest], Steps]], ...
] = (
    ((sp.Symbol, Idx), symbol),
    (RecurrentBase, recurring),
    (sp.Indexed, sums.indexed),
    (sp.Sum, sums.sum_over),
    (sp.Product, sums.product_over),
    (sp.Mod, modulus),
    (sp.KroneckerDelta, delta),
    (MatrixElement, sums.matrix_element),
    (sp.Trace, matrices.trace),
    (sp.Determinant, matrices.determinant),
    (sp.MatrixSymbol, matrices.matrix_symbol),
    (FIXED_MATRICES, matrices.fixed),
    (sp.MatrixBase, matrices.explicit),
    (sp.MatAdd, matrices.matrix_sum),
    (sp.MatMul, matrices.product),
    (sp.Inverse, matrices.inverse),
    (sp.MatPow, matrices.matrix_power),
    (sp.Transpose, matrices.transpose),
    (sp.HadamardProduct, matrices.hadamard_product),
    (sp.HadamardPower, matrices.hadamard_power),
)


def problem_from_sympy(
    expr: sp.Basic,
    variables: object = None,
    data_names: Collection[str] = (),
    dims: Mapping[str, int] | None = None,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    bounds: Bounds | None = None,
    subject_to: Relations = (),
) -> Problem:
    """The problem with a real scalar SymPy expression as its objective.

    Names in `data_names` are data, of the `shapes` given; names in limits and shapes and in `dims`
    are sizes; all others are variables, in natural order or in that of `variables`, in closed
    intervals by name in `bounds`. Relations in `subject_to` are constraints, and on single symbols
    such intervals. Raises a SlomodelError that names the sub-expression.
    """
    translation = Translation(dict(dims or {}))
    scope = IndexScope(translation)
    objective = _scalar_objective(expr)
    order = None if variables is None else listed(variables)
    named = () if order is None else tuple(one for one in order if not isinstance(one, str))
    limits = split(subject_to, bounds or {}, (*data_names, *translation.sizes))
    sides = [side for _, one in limits.relations for side in one.args]
    result = scan((objective, *sides, *named), scope)
    declared = declare(result, order, data_names, shapes or {}, translation, limits.bounds)
    packing = packed(declared, translation)
    rolled, vector = _rolled(objective, scope, declared, packing)

    def value_of_side(side: sp.Basic) -> Value:
        value = _value(side, scope)
        if packing is None or vector is not None:
            return value
        return replace(value, expr=unpacked(value.expr, packing, declared))

    constraints = constraints_of(limits.relations, value_of_side)
    made = formulated(rolled)
    places = made.notes(translation.places)
    named_data = (_whole(one) if one.node in translation.whole else one for one in declared.data)
    data = (*named_data, *table_declarations(rolled))
    warnings = nonsmooth_warnings(made.objective, places, place(objective), data, joins=made.joins)
    return Problem(
        made.objective,
        declared.variables,
        data,
        declared.dims,
        bounds=tuple(translation.bounds),
        lookups=tuple(translation.lookups),
        counts=tuple(translation.lists.tuple_counts),
        spans=places,
        warnings=tuple(warnings[:_MOST_WARNINGS]),
        vector=vector,
        remarks=made.remarks,
        gathered=made.gathered,
        joins=made.joins,
        plain=made.plain_forms,
        constraints=constraints,
    )


def _whole(declared: DataDeclaration) -> DataDeclaration:
    """The declaration for data that are used as indices."""
    return replace(declared, attributes=declared.attributes | {"whole"})


def _scalar_objective(expr: sp.Basic) -> sp.Expr:
    """The expression, or the element of a 1 x 1 matrix; anything else is an error."""
    if isinstance(expr, (sp.MatrixBase, sp.MatrixExpr)):
        if expr.shape != (1, 1):
            rows, columns = expr.shape
            message = f"the objective must be a number, and this is a matrix of {rows} x {columns}"
            remedy = "`sp.Trace(M.T*M)` is the sum of the squares of its elements"
            raise error("E401", message, expr, remedy, ShapeError)
        return expr[0, 0] if isinstance(expr, sp.MatrixBase) else sp.Trace(expr)
    if isinstance(expr, Boolean) and not isinstance(expr, sp.Symbol):
        message = "the objective must be a number, and this is a condition"
        remedy = "for an equation write the square of the difference of its sides"
        raise error("E401", message, expr, remedy)
    if isinstance(expr, (sp.Tuple, sp.IndexedBase)) or not isinstance(expr, sp.Expr):
        if isinstance(expr, (sp.Lambda, sp.Poly)):
            raise unsupported_node(expr)
        message = f"the objective must be a number, and this is of kind {type(expr).__name__}"
        raise error("E401", message, expr, "give one expression; add several with weights")
    return expr


def _rolled(
    objective: sp.Expr, scope: IndexScope, declared: DeclaredNames, vector: Input | None
) -> tuple[Rolled, Input | None]:
    """The graph with long sums rolled, and the vector of all variables if it is needed."""
    graph = _value(objective, scope).expr
    rolled = Rolled(graph)
    if vector is None or rolled.origins:
        return rolled, vector
    return Rolled(unpacked(graph, vector, declared)), None


def _value(node: sp.Basic, scope: IndexScope) -> Value:
    try:
        return run(SymPyRequest(node, scope), _rule)
    except StatementError as error:
        # Errors from rules that are shared with model text.
        raise error.kind(error.diagnostic or str(error)) from None


def _rule(request: SymPyRequest) -> Steps:
    if is_log_determinant(request.node):
        return matrices.log_determinant(request)
    if is_choice(request.node):
        return choice(request)
    for kinds, rule in _RULES:
        if isinstance(request.node, kinds):
            return rule(request)
    return root(request) if is_root(request.node) else scalar(request)
