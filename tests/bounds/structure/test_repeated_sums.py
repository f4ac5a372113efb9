"""A sum over a label without factor counts its products several times, in every rule."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from bounds.objective_graph import ObjectiveGraph
from bounds.rules.test_layered_networks import NETS, asked
from bounds.settings import claimed, setting
from marks import every

from slomodel.bounds import ObjectivePart, bounds
from slomodel.bounds.rules.table import RULES
from slomodel.bounds.structure.gram_form import in_gram_form
from slomodel.ir import build
from slomodel.ir.dims import literal
from slomodel.ir.expr import Einsum, Expr
from slomodel.ir.walk import dependents, postorder, substitute

pytestmark = pytest.mark.filterwarnings("ignore::slomodel.ModelWarning")
CLOSE = 1.0 - 1e-12
TEXTS = {
    "chain": "data X[2,9] var A[2,2], B[2,2] minimize sumsq(A @ B @ X - X)",
    "residuals": "data X[2,9] var w[2] minimize sumsq(X' @ w - 1) + 0.1 * sum(w^4)",
    "powers": "data X[2,9] var U[3,2] minimize sumsq(X @ X' - U' @ U)",
    "cubes": 'data X[2,9] var U[3,2] minimize sumsq(einsum("ij,ik,il->jkl", U, U, U) - X[0, 0])',
    "classes": "data X[2,9] var W[3,2] minimize sum(logsumexp(W @ X, axis=0)) + sumsq(W)",
    "elements": "data X[2,9] var w[2] minimize sum(log1p((X' @ w)^2))",
    "product": "data X[2,9] var A[3,2] minimize sumsq(A @ X)",
    "mixed": "data X[2,9] var u[2], v[2], s minimize sum((u[i] * v[i] * s - X[i, 0])^2 for i in 2)",
}


def settings() -> Iterator[tuple[str, ObjectivePart]]:
    rng = np.random.default_rng(5)
    X = rng.standard_normal((2, 9))
    sizes = {
        "chain": 8,
        "residuals": 2,
        "powers": 6,
        "cubes": 6,
        "classes": 6,
        "elements": 2,
        "product": 6,
    }
    for name, text in TEXTS.items():
        yield name, setting(text, list(rng.standard_normal(sizes.get(name, 5))), X=X)
    for name in NETS:
        yield name, asked(name)


SETTINGS = dict(settings())


def twice(one: ObjectivePart) -> Iterator[ObjectivePart]:
    """The objective with each of its sums in turn counted twice."""
    order = postorder(one.objective)
    moving = dependents(order, set(one.variables).__contains__)
    for node in order:
        if isinstance(node, Einsum) and node in moving:
            dims = (*node.dims, literal(2))
            doubled: Expr = build.einsum(node.operands, node.inputs, node.output, dims)
            (objective,) = substitute((one.objective,), {node: doubled})
            yield replace(one, objective=objective)
            residual = node.operands[0]
            if isinstance(residual, Einsum) and node.operands[1:] == (residual,):
                spread = len(residual.dims)
                dims = (*residual.dims, literal(2))
                own = build.einsum(
                    residual.operands, residual.inputs, (*residual.output, spread), dims
                )
                labels = tuple(range(own.rank))
                repeated = build.einsum([own, own], [labels, labels], (), own.shape)
                (objective,) = substitute((one.objective,), {node: repeated})
                yield replace(one, objective=objective)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", every(3, SETTINGS))
def test_every_bound_is_above_the_hessian_at_the_centre(name: str) -> None:
    found = 0
    for one in twice(SETTINGS[name]):
        graph = ObjectiveGraph(one)
        H = np.array([graph.hvp(graph.centre, e) for e in np.eye(one.n)])
        least = float(np.linalg.norm(H, 2)) * CLOSE
        for form in (one, in_gram_form(one)):
            claims = [claimed(rule.bound, form, radius) for rule in RULES for radius in (0.0, 0.1)]
            assert all(claim is None or least <= claim.L1 for claim in claims)
        assert least <= bounds(one, 0.0).L1
        found += 1
    assert found
