"""Folding on random sums over symmetric arrays, some of whose factors spoil the symmetry."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slomodel import functions as fn
from slomodel.calculus import Known, gradient, jvp
from slomodel.ir import build
from slomodel.ir.dims import named
from slomodel.ir.expr import Expr, Input
from slomodel.reference import evaluate, evaluate_all
from slomodel.rewrite.facts import Facts
from slomodel.rewrite.symmetry.symmetry import symmetry

D, M = named("d"), named("m")
X, U, W = (build.variable(name, (M, D)) for name in "XUW")
SIZES = {"d": 3, "m": 2}


def symmetrised(array: np.ndarray) -> np.ndarray:
    orders = list(itertools.permutations(range(array.ndim)))
    return sum(np.transpose(array, order) for order in orders) / len(orders)


class Drawn:
    """An objective over arrays of one order, with values for its inputs."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.degree = int(self.rng.integers(3, 5))
        shape, size = (D,) * self.degree, (3,) * self.degree
        self.axes = tuple(range(self.degree))
        self.data = [build.data(name, shape) for name in ("S", "T", "A")]
        arrays = [self.rng.uniform(-1.0, 1.0, size) for _ in self.data]
        self.values: dict[Input, np.ndarray] = dict(zip(self.data, arrays, strict=True))
        for node in self.data[:2]:
            self.values[node] = symmetrised(self.values[node])
        for node in (X, U, W):
            self.values[node] = self.rng.standard_normal((2, 3))
        self.objective = fn.add(self.summed(), self.summed())

    def pick(self, *choices: object) -> object:
        return choices[self.rng.integers(len(choices))]

    def power(self) -> Expr:
        """A product of vectors, mostly of one kind, along labels in any order."""
        one = self.pick(X, U)
        factors = [one] * self.degree
        if self.rng.random() < 0.2:
            factors[self.rng.integers(self.degree)] = W
        labels = [(0, k + 1) for k in range(self.degree)]
        output = tuple(int(k) + 1 for k in self.rng.permutation(self.degree))
        return build.einsum(factors, labels, output, (M, *[D] * self.degree))

    def array(self, depth: int = 2) -> Expr:
        if depth == 0 or self.rng.random() < 0.3:
            data = self.data[:2] if self.rng.random() < 0.9 else self.data
            return self.pick(*data) if self.rng.random() < 0.5 else self.power()
        if self.rng.random() < 0.3:
            return fn.mul(float(self.rng.normal()), self.pick(fn.sin, fn.tanh)(self.array(0)))
        return self.pick(fn.add, fn.sub, fn.mul)(self.array(depth - 1), self.array(depth - 1))

    def summed(self) -> Expr:
        one = self.array()
        if self.rng.random() < 0.4:
            return build.inner(one, one)
        if self.rng.random() < 0.5:
            return build.inner(one, self.array())
        return build.sum_over(fn.softplus(one), self.axes)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(seed=st.integers(0, 2**32))
def test_random_symmetric_sums(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slomodel.rewrite.symmetry.folding._LEAST_SAVED", 0)
    monkeypatch.setattr("slomodel.rewrite.symmetry.folding._LEAST_GAIN", 1)
    drawn = Drawn(seed)
    known = Known(symmetric=frozenset(drawn.data[:2]))
    variables = (X, U, W)
    found = symmetry(drawn.objective, variables, Facts(SIZES, {}, known))
    if found is None:
        return
    along = {node: build.direction(f"v{node.name}", node.shape) for node in variables}
    values = drawn.values | {one: drawn.rng.standard_normal((2, 3)) for one in along.values()}
    slopes = gradient(drawn.objective, variables)
    roots = (drawn.objective, *slopes, *jvp(slopes, along))
    every = evaluate_all(roots, values, SIZES)
    before = [every[root] for root in roots]
    # Sums may cancel: rounding is relative to the largest number met on the way.
    largest = max(float(np.abs(array).max()) for array in every.values())
    made = (found.objective, *found.gradient, *jvp(found.gradient, along))
    for one, other in zip(evaluate(made, values, found.sizes), before, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-11 * largest)
