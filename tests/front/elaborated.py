"""Helpers of the elaboration tests: a model text to a problem, and its objective as a number."""

import numpy as np

from slomodel.calculus import gradient
from slomodel.errors import SlomodelError, SourceText
from slomodel.front.elaboration.elaborate import elaborate
from slomodel.front.text.parse import parse
from slomodel.ir.dims import concrete
from slomodel.problem import Problem
from slomodel.reference import Array, evaluate

SIZES = {"m": 3, "n": 4, "k": 2}
DECLARED = """dim m, n, k
data A[m, n], B[n, n], C[n, n], y[m], z[n], s, T[m, n, k], u[2]
var x[n], X[m, n], w[3], c
"""


def problem_of(text: str) -> Problem:
    source = SourceText(text)
    return elaborate(parse(source), source)


def error_of(text: str) -> SlomodelError:
    """What elaboration raises for a text."""
    try:
        problem_of(text)
    except SlomodelError as error:
        return error
    raise AssertionError(f"no error in {text!r}")


def values_of(problem: Problem, sizes: dict[str, int], seed: int = 0) -> dict[str, Array]:
    """Positive numbers for every declared array, by name."""
    generator = np.random.default_rng(seed)
    declared = [*problem.data, *problem.variables]
    return {
        one.name: np.asarray(generator.uniform(0.2, 1.5, concrete(one.shape, sizes)))
        for one in declared
    }


def evaluated(problem: Problem, values: dict[str, Array], sizes: dict[str, int]) -> float:
    given = {one.node: values[one.name] for one in (*problem.data, *problem.variables)}
    return float(evaluate([problem.objective], given, sizes)[0])


def gradients(
    problem: Problem, values: dict[str, Array], sizes: dict[str, int]
) -> dict[str, Array]:
    given = {one.node: values[one.name] for one in (*problem.data, *problem.variables)}
    roots = gradient(problem.objective, [v.node for v in problem.variables])
    arrays = evaluate(roots, given, sizes)
    return {v.name: array for v, array in zip(problem.variables, arrays, strict=True)}
