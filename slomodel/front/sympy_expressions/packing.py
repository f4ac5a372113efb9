"""Many variables that are numbers, `x0` to `x9999`, as the elements of one vector.

A sum over them that is written out can so be seen to run along them.
"""

from __future__ import annotations

from slomodel.front.elaboration.values import value_of
from slomodel.front.sympy_expressions.names import Named
from slomodel.front.sympy_expressions.scope import Reading
from slomodel.ir import build
from slomodel.ir.dims import literal
from slomodel.ir.expr import Affine, Expr, Input
from slomodel.ir.walk import substitute
from slomodel.rewrite.rolling import LEAST_TERMS


def packed(declared: Named, reading: Reading) -> Input | None:
    """The vector whose elements all variables are from now on; None where they are to stay."""
    count = len(declared.variables)
    if count < LEAST_TERMS or any(one.shape for one in declared.variables):
        return None
    names = [one.name for one in declared.variables]
    vector = build.variable(f"{names[0]} … {names[-1]}", (literal(count),))
    for k, name in enumerate(names):
        reading.values[name] = value_of(_element(vector, k))
    return vector


def unpacked(graph: Expr, vector: Input, declared: Named) -> Expr:
    """The graph over the variables themselves."""
    nodes = [one.node for one in declared.variables]
    (made,) = substitute((graph,), {_element(vector, k): node for k, node in enumerate(nodes)})
    return made


def _element(vector: Input, k: int) -> Expr:
    return build.gather(vector, [Affine(literal(k), ())], ())
