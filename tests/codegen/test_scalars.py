"""Graphs written by element have the values of the arrays they are written from."""

from __future__ import annotations

import numpy as np

from slomodel.codegen.loops.scalars import MOST, by_element, scalars
from slomodel.functions import exp, gt, mul, where
from slomodel.ir import build
from slomodel.ir.dims import Dim, literal, named
from slomodel.ir.expr import Affine, Expr, Input, Lookup
from slomodel.reference import evaluate

n = named("n")
A, b = build.data("A", (n, n)), build.data("b", (n,))


def _roots() -> list[Expr]:
    product = build.matmul(A, b)
    diagonal = build.gather(A, [Affine(Dim(), (1,)), Affine(Dim(), (1,))], (n,))
    shifted = build.scatter(b, [Affine(literal(1), (1,))], (n + 1,))
    positive = build.apply(gt, b, build.const(0.0))
    chosen = build.apply(where, positive, product, build.apply(exp, diagonal))
    return [
        chosen,
        shifted,
        build.extreme(A, "max", (1,)),
        build.extreme(A, "min", (0, 1)),
        build.scan(b, build.apply(mul, build.iota(n), b), 0),
        build.reshape(build.outer(b, build.ones((literal(2),))), (literal(6),)),
        build.identity(n),
    ]


def test_values_by_element() -> None:
    rng = np.random.default_rng(0)
    values = {A: rng.normal(size=(3, 3)), b: rng.normal(size=3)}
    found = by_element(_roots(), {"n": 3})
    assert found is not None
    elements, inputs = found
    numbers = {one: np.asarray(values[array][at]) for one, (array, at) in inputs.items()}
    for root, own in zip(_roots(), elements, strict=True):
        (expected,) = evaluate([root], values, {"n": 3})
        flat = [float(one) for one in evaluate(scalars(own), numbers)]
        np.testing.assert_allclose(np.reshape(flat, own.shape), expected, rtol=1e-14)
        assert own.shape == expected.shape


def test_large_graphs_and_positions_from_data_stay_arrays() -> None:
    assert by_element([build.matmul(A, b)], {"n": MOST}) is None
    table = Input("g", "data", (n,), "whole")
    assert by_element([build.gather(b, [Lookup((0,), table)], (n,))], {"n": 3}) is None
