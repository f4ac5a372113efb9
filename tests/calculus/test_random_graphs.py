"""Derivatives of random graphs against a complex step, differences, and each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from hypothesis import given
from strategies import Example, graphs

from slomodel.calculus import gradient, hessian_vector, jvp
from slomodel.ir import build
from slomodel.ir.expr import Expr, Input
from slomodel.reference import Array, evaluate, evaluate_all

EPS = float(np.finfo(float).eps)
TOLERANCE = 1e-10
COMPLEX_STEP = 1e-30
REAL_STEP = 2.0**-17

Point = dict[Input, Array]


@dataclass(frozen=True)
class Derivatives:
    """Graphs over the inputs and over two directions for each variable."""

    example: Example
    along: dict[Input, Input]
    other: dict[Input, Input]
    gradient: tuple[Expr, ...]
    hvp: tuple[Expr, ...]
    hvp_other: tuple[Expr, ...]
    jvp: Expr

    @classmethod
    def of(cls, example: Example) -> Derivatives:
        along = {v: build.direction(f"s_{v.name}", v.shape) for v in example.variables}
        other = {v: build.direction(f"t_{v.name}", v.shape) for v in example.variables}
        f = example.objective
        hvp, hvp_other = hessian_vector(f, along), hessian_vector(f, other)
        (tangent,) = jvp([f], along)
        return cls(example, along, other, gradient(f, example.variables), hvp, hvp_other, tangent)

    @property
    def point(self) -> Point:
        """The example's values with random directions."""
        rng = np.random.default_rng(0)
        random = {
            node: rng.standard_normal(self.example.values[v].shape)
            for directions in (self.along, self.other)
            for v, node in directions.items()
        }
        return {**self.example.values, **random}

    def shifted(self, step: complex) -> Point:
        """The point with every variable moved by `step` times its first direction."""
        point = self.point
        moved = {v: point[v] + step * point[t] for v, t in self.along.items()}
        return {**point, **moved}


def values(roots: Sequence[Expr], point: Point, example: Example) -> tuple[list[Array], float]:
    """The roots' arrays, and the largest finite number among the terms they are made of."""
    every = evaluate_all(roots, point, example.sizes)
    largest = 1.0
    for array in every.values():
        finite = np.isfinite(array)
        largest = max(largest, float(np.max(np.abs(array), initial=0.0, where=finite)))
    return [every[root] for root in roots], largest


def dot(arrays: Sequence[Array], directions: dict[Input, Input], point: Point) -> float:
    pairs = zip(arrays, directions.values(), strict=True)
    return float(sum(np.sum(array * point[t]) for array, t in pairs))


@given(graphs(complex_ok=True))
def test_gradient_and_jvp_are_the_complex_step(example: Example) -> None:
    found = Derivatives.of(example)
    (*gradients, tangent), scale = values([*found.gradient, found.jvp], found.point, example)
    (value,) = evaluate([example.objective], found.shifted(1j * COMPLEX_STEP), example.sizes)
    expected = value.imag / COMPLEX_STEP
    assert [g.shape for g in gradients] == [example.values[v].shape for v in example.variables]
    assert abs(dot(gradients, found.along, found.point) - expected) <= TOLERANCE * scale
    assert abs(tangent - expected) <= TOLERANCE * scale


@given(graphs(complex_ok=True))
def test_hvp_is_the_complex_step_of_the_gradient(example: Example) -> None:
    found = Derivatives.of(example)
    products, scale = values([*found.gradient, *found.hvp], found.point, example)
    moved = evaluate(found.gradient, found.shifted(1j * COMPLEX_STEP), example.sizes)
    for product, array in zip(products[len(moved) :], moved, strict=True):
        difference = np.abs(product - array.imag / COMPLEX_STEP)
        assert np.max(difference, initial=0.0) <= TOLERANCE * scale


@given(graphs(complex_ok=True))
def test_hessian_is_symmetric(example: Example) -> None:
    found = Derivatives.of(example)
    arrays, scale = values([*found.hvp, *found.hvp_other], found.point, example)
    half = len(found.hvp)
    one = dot(arrays[:half], found.other, found.point)
    two = dot(arrays[half:], found.along, found.point)
    assert abs(one - two) <= TOLERANCE * scale


@given(graphs())
def test_jvp_is_gradient_times_direction_also_at_kinks(example: Example) -> None:
    found = Derivatives.of(example)
    (*gradients, tangent), scale = values([*found.gradient, found.jvp], found.point, example)
    assert np.isfinite(tangent)
    assert abs(dot(gradients, found.along, found.point) - tangent) <= TOLERANCE * scale


@given(graphs(smooth=True))
def test_gradient_is_the_central_difference(example: Example) -> None:
    """Halving the step divides the error by four, so a third of the change bounds what is left."""
    found = Derivatives.of(example)
    gradients, scale = values(found.gradient, found.point, example)

    def difference(step: float) -> float:
        ends = [
            evaluate([example.objective], found.shifted(sign * step), example.sizes)[0]
            for sign in (1.0, -1.0)
        ]
        return float(ends[0] - ends[1]) / (2.0 * step)

    coarse, fine = difference(REAL_STEP), difference(REAL_STEP / 2)
    rounding = 256 * EPS * scale / REAL_STEP
    slack = abs(coarse - fine) + rounding
    assert abs(dot(gradients, found.along, found.point) - fine) <= slack
