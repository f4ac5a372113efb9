"""Functions of two or more numbers mean what their definition says for all values of all operands:
negative, zero, equal and in reversed order.
"""

from __future__ import annotations

import numpy as np
import pytest
from agreeing import Question, in_c, in_python

from slomodel.calculus import gradient, jvp
from slomodel.codegen.kernels import Derivatives
from slomodel.ir import build
from slomodel.ir.build import const, variable
from slomodel.ir.dims import literal
from slomodel.ir.expr import Expr, Input
from slomodel.reference import evaluate
from tests.functions.several_operands import (
    CASES,
    Case,
    Point,
    at,
    bends,
    is_inside,
    points,
    slopes,
)

EVERY = pytest.mark.parametrize("case", CASES, ids=str)
CLOSE = 1e-12


def close(got: float, want: object) -> bool:
    return abs(got - float(want)) <= CLOSE * max(1.0, abs(float(want)))


def at_points(roots: list[Expr], inputs: list[Input], where: list[Point]) -> np.ndarray:
    """The roots (k, m), graphs of scalars, at m points."""
    values = [
        evaluate(roots, dict(zip(inputs, map(np.asarray, one), strict=True))) for one in where
    ]
    return np.array(values, dtype=float).T


def inputs_of(case: Case) -> list[Input]:
    return [variable(f"x{k}", ()) for k in range(case.arity)]


@EVERY
def test_the_meaning_is_the_definition(case: Case) -> None:
    inputs = inputs_of(case)
    with np.errstate(all="ignore"):
        (found,) = at_points([case.build(*inputs)], inputs, list(points(case.arity)))
    compared = 0
    for point, got in zip(points(case.arity), found, strict=True):
        want = at(case, point)
        if want is not None:
            compared += 1
            assert close(got, want), (point, got, want)
    inside = [is_inside(case, point) for point in points(case.arity)]
    assert compared > sum(inside) / 3


@pytest.mark.sampled(2)
@EVERY
def test_partials_are_the_derivatives_at_every_order_of_the_operands(case: Case) -> None:
    """Where there is a kink: a number between the derivatives on its sides."""
    inputs = inputs_of(case)
    with np.errstate(all="ignore"):
        found = at_points(list(gradient(case.build(*inputs), inputs)), inputs, points(case.arity))
    compared = 0
    for k in range(case.arity):
        for point, got in zip(points(case.arity), found[k], strict=True):
            sides = slopes(case, point, k)
            if sides is not None:
                compared += 1
                low, high = float(min(sides)), float(max(sides))
                slack = CLOSE * max(1.0, abs(low), abs(high))
                assert low - slack <= got <= high + slack, (point, k, got, sides)
    inside = [is_inside(case, point) for point in points(case.arity)]
    assert compared > case.arity * sum(inside) / 4


@pytest.mark.sampled(9)
@EVERY
def test_second_derivatives_are_those_of_the_definition(case: Case) -> None:
    inputs = inputs_of(case)
    slopes_of = list(gradient(case.build(*inputs), inputs))
    compared = 0
    for j, one in enumerate(inputs):
        columns = list(jvp(slopes_of, {one: const(1.0)}))
        with np.errstate(all="ignore"):
            found = at_points(columns, inputs, points(case.arity))
        for k in range(case.arity):
            for point, got in zip(points(case.arity), found[k], strict=True):
                sides = bends(case, point, j, k)
                if sides is not None and close(float(min(sides)), max(sides)):
                    compared += 1
                    assert close(got, sides[0]), (point, j, k, got, sides)
    inside = [is_inside(case, point) for point in points(case.arity)]
    assert compared > case.arity**2 * sum(inside) / 6


def elements(case: Case) -> tuple[Question, list[Point]]:
    """The sum of the function over all points at which it and its derivatives are finite."""
    inputs = inputs_of(case)
    value = case.build(*inputs)
    roots = [value, *gradient(value, inputs)]
    roots += [root for one in inputs for root in jvp(roots[1:], {one: const(1.0)})]
    with np.errstate(all="ignore"):
        finite = np.isfinite(at_points(roots, inputs, points(case.arity))).all(axis=0)
    chosen = [point for point, good in zip(points(case.arity), finite, strict=True) if good]
    long = (literal(len(chosen)),)
    vectors = tuple(variable(f"x{k}", long) for k in range(case.arity))
    derivatives = Derivatives(build.sum_over(case.build(*vectors), (0,)), vectors)
    values = dict(zip(vectors, np.array(chosen).T, strict=True))
    rng = np.random.default_rng(0)
    values |= {node: rng.normal(size=len(chosen)) for node in derivatives.directions}
    return Question(derivatives, (), values, {}), chosen


@pytest.mark.sampled(8)
@EVERY
@pytest.mark.parametrize("target", ["numpy", "numexpr", "c"])
def test_kernels_compute_the_partials(case: Case, target: str) -> None:
    question, chosen = elements(case)
    with np.errstate(all="ignore"):
        found = next(iter(in_c([question]))) if target == "c" else in_python(question, target)
    inputs = inputs_of(case)
    slopes_of = list(gradient(case.build(*inputs), inputs))
    want = at_points(slopes_of, inputs, chosen)
    np.testing.assert_allclose(found["gradient"].reshape(want.shape), want, CLOSE, CLOSE)
    v = question.v.reshape(want.shape)
    moved = sum(
        at_points(list(jvp(slopes_of, {one: const(1.0)})), inputs, chosen) * v[k]
        for k, one in enumerate(inputs)
    )
    np.testing.assert_allclose(found["hvp"].reshape(want.shape), moved, 10 * CLOSE, 10 * CLOSE)
