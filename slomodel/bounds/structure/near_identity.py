"""Operations on matrices brought near the identity, as equations between nodes of the graph.

With constant regular X and Y for which N = XAY is about I at the centre, A⁻¹B = Y N⁻¹ (X B) and
log|det A| = log|det N| - log|det X| - log|det Y|. The solution z of N z = b, b = X B, is a node of
its own: as D²z = N⁻¹(D²b - D²N z - 2 DN Dz), second and third derivatives of a function of z are
those of sums of the products -N_ik z_kj, with its derivatives by b as their adjoints.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from scipy import linalg

from slomodel.bounds.part import Array, ObjectivePart, once_per_part
from slomodel.bounds.structure.curved_terms import (
    CurvedElements,
    CurvedLogDet,
    CurvedTerm,
    varying_nodes,
)
from slomodel.bounds.structure.linear_predictors import Laid
from slomodel.calculus.matrices import lower_triangle
from slomodel.functions import abs as absolute
from slomodel.functions import add, log, mul, neg, sub
from slomodel.ir import build
from slomodel.ir.dims import concrete
from slomodel.ir.expr import Expr, Input, MatrixOperation, remake
from slomodel.reference import evaluate


@dataclass(frozen=True, slots=True)
class MatrixEquations:
    """A part with equations N z = b: by each solution z, its right side as an input.

    That input is 0 and is added to b, so that derivatives by it are those by b. `matrices` are all
    N, with whether they are symmetric.
    """

    part: ObjectivePart
    right_sides: Mapping[Expr, Input] = field(default_factory=dict)
    matrices: Mapping[Expr, bool] = field(default_factory=dict)

    def terms(self, varying: Collection[Expr]) -> dict[Expr, tuple[CurvedTerm, ...]]:
        """The terms of the operations whose value depends on x; none where only b does."""
        result: dict[Expr, tuple[CurvedTerm, ...]] = {}
        for node in self.part.order:
            if not isinstance(node, MatrixOperation) or node not in varying:
                continue
            (matrix, *others) = node.operands
            if matrix not in self.matrices:
                continue
            if matrix not in varying:
                result[node] = ()
            elif others:
                result[node] = (_products(node, self.right_sides[node]),)
            else:
                result[node] = (CurvedLogDet(node, matrix, self.matrices[matrix]),)
        return result


def _products(solution: MatrixOperation, right_side: Input) -> CurvedElements:
    """The products -N_ik z_kj of an equation, by rows of the right side."""
    matrix = solution.operands[0]
    batch = tuple(range(matrix.rank - 2))
    row, summed, column = range(matrix.rank - 2, matrix.rank + 1)
    factors = tuple(build.variable(name, ()) for name in ("matrix", "solution"))
    places = (
        Laid(matrix, (*batch, row, summed)),
        Laid(solution, (*batch, summed, column)),
    )
    return CurvedElements(
        right_side,
        (*matrix.shape, solution.shape[-1]),
        (*batch, row, column),
        neg(mul(*factors)),
        factors,
        places,
        {},
    )


@once_per_part
def with_matrix_equations(part: ObjectivePart) -> MatrixEquations:
    """The part itself where it has no operations on matrices, or one without such a form.

    There is none for determinants and Cholesky factors, and for singular matrices.
    """
    order = part.order
    varying = varying_nodes(order, part.variables)
    operations = [one for one in order if isinstance(one, MatrixOperation) and one in varying]
    if not operations:
        return MatrixEquations(part)
    operands = [operation.operands[0] for operation in operations]
    arrays = evaluate(operands, part.values, part.sizes)
    at_centre = {
        one: np.asarray(a, dtype=np.float64) for one, a in zip(operations, arrays, strict=True)
    }
    run = _Equations(part.sizes)
    done: dict[Expr, Expr] = {}
    for node in order:
        own = tuple(done[operand] for operand in node.operands)
        done[node] = remake(node, own) if own else node
        if node in at_centre:
            assert isinstance(node, MatrixOperation)
            made = run.over_equation(node, own, at_centre[node])
            if made is None:
                return MatrixEquations(part)
            done[node] = made
    known = replace(part.known, finite=part.known.finite.union(run.values))
    result = replace(part.rewritten(done, known), values={**part.values, **run.values})
    return MatrixEquations(result, run.right_sides, run.matrices)


@dataclass(slots=True)
class _Equations:
    """The equations so far, and the values of the inputs constructed for them."""

    sizes: Mapping[str, int]
    values: dict[Input, Array] = field(default_factory=dict)
    right_sides: dict[Expr, Input] = field(default_factory=dict)
    matrices: dict[Expr, bool] = field(default_factory=dict)

    def over_equation(
        self, node: MatrixOperation, operands: tuple[Expr, ...], at_centre: Array
    ) -> Expr | None:
        """The same value from an equation; None without one."""
        if node.function in ("det", "cholesky"):
            return None
        matrix = operands[0]
        if node.function == "solve_lower":
            matrix, at_centre = lower_triangle(matrix), np.tril(at_centre)
        elif node.function == "solve_upper":
            turned = lower_triangle(build.transposed(matrix))
            matrix, at_centre = build.transposed(turned), np.triu(at_centre)
        is_symmetric = node.function.endswith(("posdef", "symmetric"))
        is_logarithm = node.function.startswith("logdet")
        inverses = _factors(at_centre, is_symmetric, is_logarithm)
        if inverses is None and is_symmetric and not is_logarithm:
            is_symmetric, inverses = False, _factors(at_centre, False, False)
        if inverses is None:
            return None
        X, Y = (self._input(array, matrix) for array in inverses)
        near = build.product(build.product(X, matrix), Y)
        self.matrices[near] = is_symmetric
        if is_logarithm:
            # Exchanges of rows and unit triangular factors of X do not change |det|.
            own = build.matrix_operation("logdet_posdef" if is_symmetric else "logdet", near)
            for factor in (X, Y) if is_symmetric else (Y,):
                own = build.apply(sub, own, _log_determinant(factor))
            return own
        right = X if node.function.startswith("inverse") else build.product(X, operands[1])
        at_0 = self._input(np.zeros(concrete(right.shape, self.sizes)), right)
        solution = build.matrix_operation("solve", near, build.apply(add, right, at_0))
        self.right_sides[solution] = at_0
        return build.product(Y, solution)

    def _input(self, array: Array, like: Expr) -> Input:
        data = build.data(f"of equation {len(self.values)}", like.shape)
        self.values[data] = array
        return data


def _log_determinant(triangular: Expr) -> Expr:
    """log|det| of triangular matrices."""
    pivots = build.apply(log, build.apply(absolute, build.diagonals(triangular)))
    axes = tuple(range(pivots.rank))
    return build.einsum([pivots], [axes], axes[:-1], pivots.shape)


def _factors(matrices: Array, is_symmetric: bool, is_logarithm: bool) -> tuple[Array, Array] | None:
    """Regular X and Y with XAY about I; None where a matrix is singular or has no logarithm.

    Both are triangular, X up to exchanges of rows.
    """
    if not (matrices.size and np.isfinite(matrices).all()):
        return None
    with np.errstate(all="ignore"):
        X, Y, sign = triangular_inverses(matrices, is_symmetric)
    is_regular = np.isfinite(X).all() and np.isfinite(Y).all()
    is_regular &= bool(np.diagonal(Y, axis1=-2, axis2=-1).all())
    if not is_regular or (is_logarithm and (sign < 0.0).any()):
        return None
    return X, Y


def triangular_inverses(mid: Array, symmetric: bool) -> tuple[Array, Array, Array]:
    """Matrices X and Y with XAY near the identity, and the sign of det A.

    For a symmetric A, X is the inverse of a Cholesky factor and Y its transpose. Otherwise X is a
    unit triangular matrix times exchanges of rows, and Y is triangular.
    """
    X, Y = np.zeros_like(mid), np.zeros_like(mid)
    sign = np.ones(mid.shape[:-2])
    for k in np.ndindex(mid.shape[:-2]):
        eye = np.eye(mid.shape[-1])
        try:
            if symmetric:
                factor = np.linalg.cholesky(mid[k])
                X[k] = np.tril(linalg.solve_triangular(factor, eye, lower=True))
                Y[k] = X[k].T
                continue
            rows, lower, upper = linalg.lu(mid[k])
            unit = np.tril(linalg.solve_triangular(lower, eye, lower=True, unit_diagonal=True), -1)
            Y[k] = np.triu(linalg.solve_triangular(upper, eye))
        except np.linalg.LinAlgError:
            continue
        X[k] = (unit + eye) @ rows.T
        sign[k] = np.round(np.linalg.det(rows)) * np.prod(np.sign(np.diagonal(Y[k])))
    return X, Y, sign
