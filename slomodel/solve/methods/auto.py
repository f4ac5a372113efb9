"""`method="auto"`: the direction by the structure of the objective."""

from __future__ import annotations

from slomodel.solve.facts import ObjectiveFacts

FEW = 20
"""Unknowns for which a matrix a step costs no more than the rest of the step."""
REACH = 10.0
"""δ̄ over max(1, ‖x0‖): directions that carry their own length are held back by less."""


def chosen(facts: ObjectiveFacts, n: int) -> tuple[str, str]:
    """A direction for n unknowns, and the reason for the choice.

    The first that applies: kinks, or no Hessian and many unknowns: `lbfgs`. No Hessian and few:
    `lbfgs/newton`. A quadratic: `newton-cg`, whose conjugate gradients solve it in a step where
    steps may be as long. Many unknowns: `newton-cg/lbfgs`. Few: for a sum of squares of what is no
    polynomial, as fits of curves are, whose parameters differ by powers of ten,
    `gauss-newton/newton`; else `newton-cg/lbfgs/newton`, after `gauss-newton` for a sum of squares.
    """
    few = n <= FEW
    size = f"{n} unknown{'' if n == 1 else 's'}"
    if not facts.smooth:
        return "lbfgs", "an objective with kinks"
    if not facts.curvature:
        return ("lbfgs/newton" if few else "lbfgs"), f"plain functions of {size}"
    if facts.degree is not None and facts.degree <= 2:
        return "newton-cg", "a quadratic objective"
    if not few:
        return "newton-cg/lbfgs", f"a smooth objective of {size}"
    if not facts.squares:
        return "newton-cg/lbfgs/newton", f"a smooth objective of {size}"
    if facts.degree is None:
        return "gauss-newton/newton", f"a sum of squares in {size}"
    return "gauss-newton/newton-cg/lbfgs/newton", f"a sum of squares of polynomials in {size}"
