"""`method="auto"`: a direction chosen by the structure of the objective."""

from __future__ import annotations

from slomodel.solve.facts import ObjectiveFacts

FEW = 20
"""Largest n for which a matrix per step costs no more than the rest of the step."""
MANY = 1000
"""Largest n for which a quadratic over a set is left to `lbfgs`."""
REACH = 10.0
"""δ̄ over max(1, ‖x0‖), larger since directions with their own length need less restriction."""
DESCENT = 1e-4
"""σ of searches that interpolate: a step with a model behind it needs little descent."""
LOGARITHMIC_MOVE = 2.0
"""Largest change per step of a variable on a logarithmic scale. Changes of variables are flat far
out: a longer step, as along negative curvature, may end where no gradient leads back."""


def chosen(facts: ObjectiveFacts, n: int) -> tuple[str, str]:
    """A direction for n unknowns, and the reason for the choice.

    The first case that applies: kinks, or many unknowns without Hessian products: `lbfgs`. Few
    unknowns without Hessian products: `lbfgs/newton`. A quadratic of very many unknowns:
    `newton-cg`, whose conjugate gradients solve it in few steps. Few unknowns and a sum of squares:
    `levenberg-marquardt`. Otherwise `bfgs`.
    """
    few = n <= FEW
    size = f"{n} unknown{'' if n == 1 else 's'}"
    if not facts.smooth:
        return "lbfgs", "an objective with kinks"
    if not facts.curvature:
        return ("lbfgs/newton" if few else "lbfgs"), f"plain functions of {size}"
    if facts.degree is not None and facts.degree <= 2 and n > MANY:
        return "newton-cg", f"a quadratic objective of {size}"
    if facts.squares and n <= FEW:
        return "levenberg-marquardt", f"a sum of squares in {size}"
    return "bfgs", f"a smooth objective of {size}"


def chosen_in_set(facts: ObjectiveFacts, n: int) -> tuple[str, str]:
    """A direction for n unknowns in a set, and the reason for the choice.

    `lbfgs` takes the fewest evaluations. A quadratic of many unknowns is solved on each
    face by conjugate gradients, whose products cost less than the linear algebra of the pairs.
    """
    if facts.curvature and facts.degree is not None and facts.degree <= 2 and n > MANY:
        return "newton-cg", f"a quadratic objective of {n} unknowns in a set"
    return "lbfgs", "variables in a set"
