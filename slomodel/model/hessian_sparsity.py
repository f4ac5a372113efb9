"""The sparsity of the Hessian of a model, and the unknowns in which residuals are affine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from slomodel.calculus import gradient
from slomodel.calculus.squares import Square
from slomodel.codegen.kernels import Compiled
from slomodel.functions import add
from slomodel.ir import build
from slomodel.ir.expr import Expr, Input
from slomodel.model.dependence import TooDense, dependence
from slomodel.reference import evaluate
from slomodel.solve.facts import Pattern

Arrays = Mapping[str, NDArray[np.generic]]


def hessian_pattern(compiled: Compiled, arrays: Arrays) -> Pattern | None:
    """The symmetric Boolean pattern (n, n) in CSR format; None if it has too many entries."""
    from scipy.sparse import eye_array

    own = compiled.derivatives
    try:
        result = dependence(own.gradient, own.variables, _data(compiled, arrays), compiled.numbers)
    except TooDense:
        return None
    return (result + result.T + eye_array(result.shape[0], dtype=bool, format="csr")).tocsr()


def affine_unknowns(
    squares: Sequence[Square], compiled: Compiled, arrays: Arrays
) -> NDArray[np.bool_]:
    """Unknowns (n,) in which all residuals together are affine: their Jacobian is constant in them.

    The set is maximal, though there may be larger ones.
    """
    residuals = [square.residual for square in squares]
    variables = compiled.derivatives.variables
    factors = [build.data(f"factor {k}", one.shape) for k, one in enumerate(residuals)]
    total: Expr = build.const(0.0)
    for factor, residual in zip(factors, residuals, strict=True):
        total = build.apply(add, total, build.inner(factor, residual))
    values = _data(compiled, arrays)
    result = dependence(gradient(total, variables), variables, values, compiled.numbers)
    conflicts = (result + result.T).toarray()
    chosen = np.zeros(len(conflicts), bool)
    for k in np.argsort(conflicts.sum(axis=0), kind="stable"):
        chosen[k] = not conflicts[k, k] and not conflicts[k][chosen].any()
    return chosen


def _data(compiled: Compiled, arrays: Arrays) -> dict[Input, NDArray[np.generic]]:
    """The values of the data of a compiled model, given and prepared."""
    values: dict[Input, NDArray[np.generic]] = {
        one: arrays[one.name] for one in compiled.given if one.name in arrays
    }
    for node, graph in compiled.prepared.items():
        (values[node],) = evaluate([graph], values, compiled.numbers)
    return values
