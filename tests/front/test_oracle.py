"""The nine models have the published values: elaborated, differentiated, evaluated by NumPy."""

from pathlib import Path

import numpy as np
import pytest

from slomodel.calculus import gradient
from slomodel.front.elaboration.elaborate import elaborate
from slomodel.front.text.parse import parse, read_source
from slomodel.ir.dims import concrete
from slomodel.ir.expr import Input
from slomodel.problem import Problem
from slomodel.reference import Array, evaluate

MODELS = Path(__file__).parents[2] / "models"
SIGNS = np.array([1.0, -1.0, 1.0, -1.0])
OMEGA = (np.arange(12) % 3 != 0).astype(float).reshape(3, 4)

# name, sizes, values that are not filled, objective, gradient norm, first gradient entry
CASES = [
    ("sym_tensor", {"d": 2, "m": 2}, {}, (16.0025832593, 0.0450010634371, -0.0425554841941)),
    (
        "linear_autoencoder",
        {"d": 3, "N": 4},
        {},
        (6.28386009908, 0.403313544506, -0.00524595374356),
    ),
    ("deep_linear", {"d": 3, "N": 4}, {}, (2.33880307572, 0.112390998297, -0.00255677890993)),
    (
        "softplus_net",
        {"d": 3, "N": 4, "h": 2},
        {},
        (0.772092644882, 1.21372969491, 0.0210970118279),
    ),
    (
        "robust_logistic",
        {"n": 3, "N": 4},
        {"y": SIGNS},
        (0.818744146967, 0.718891981125, -0.437971469836),
    ),
    (
        "tukey_regression",
        {"n": 3, "N": 4},
        {"c": 1.0},
        (0.420308864622, 0.0486319243781, -0.0390141389716),
    ),
    ("rosenbrock", {"n": 4}, {"x": np.full(4, -1.2)}, (2105.4, 2893.59134641, -1271.6)),
    ("phase_retrieval", {"n": 3, "m": 5}, {}, (0.142852221857, 0.162419616726, -0.0586873996561)),
    (
        "matrix_completion",
        {"p": 3, "q": 4, "r": 2},
        {"Omega": OMEGA},
        (2.30268351592, 0.823579884739, -0.222251236002),
    ),
]


def filled(problem: Problem, sizes: dict[str, int], given: dict[str, object]) -> dict[Input, Array]:
    """Every array by language.md: the k-th is sin(k + 0, 1, …), variables times 0.3."""
    values: dict[Input, Array] = {}
    declared = [*problem.data, *problem.variables]
    for k, one in enumerate(sorted(declared, key=lambda d: d.span.start), start=1):
        shape = concrete(one.shape, sizes)
        scale = 1.0 if one in problem.data else 0.3
        array = scale * np.sin(k + np.arange(np.prod(shape, dtype=int))).reshape(shape)
        if one.name in given:
            array = np.asarray(given[one.name], float)
        elif one in problem.data and one.default is not None:
            array = np.asarray(one.default)
        if one in problem.data and one.may_be_missing:
            array = np.where(OMEGA == 0, np.nan, array)
        values[one.node] = array
    return values


@pytest.mark.parametrize(("name", "sizes", "given", "expected"), CASES, ids=[c[0] for c in CASES])
def test_published_values(
    name: str, sizes: dict[str, int], given: dict[str, object], expected: tuple[float, ...]
) -> None:
    source = read_source(MODELS / f"{name}.slo")
    problem = elaborate(parse(source), source)
    every = {d.name: d.default for d in problem.dims if d.default is not None} | sizes
    values = filled(problem, every, given)
    nodes = [variable.node for variable in problem.variables]
    roots = (problem.objective, *gradient(problem.objective, nodes))
    value, *parts = evaluate(roots, values, every)
    flat = np.concatenate([np.ravel(part) for part in parts])
    found = (float(value), float(np.linalg.norm(flat)), float(flat[0]))
    assert found == pytest.approx(expected, rel=1e-10)
