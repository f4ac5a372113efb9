"""Sets: projections, tangent cones and interior points, against their definitions and SciPy."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import lsq_linear, minimize
from solve.objectives import Vector

from slomodel.solve import Functions
from slomodel.solve.methods.gradient_steps import DescentRun
from slomodel.solve.methods.pgd import project
from slomodel.solve.objective import Evaluator
from slomodel.solve.run_options import RunOptions
from slomodel.solve.sets.ball import EuclideanBall
from slomodel.solve.sets.balls import RowBalls
from slomodel.solve.sets.box import Box
from slomodel.solve.sets.convex_set import Set
from slomodel.solve.sets.epoch_set import EpochSet
from slomodel.solve.sets.product import ProductSet, SetPart
from slomodel.solve.sets.reordered import ReorderedSet
from slomodel.solve.sets.simplex import Simplex
from slomodel.solve.sets.within_ball import WithinBall
from slomodel.solve.subroutine import AcceptedStep, EpochRegion, Iterate

vectors = st.lists(st.floats(-1e3, 1e3), min_size=3, max_size=3).map(np.array)


def projection(where: Set | EpochSet, x: Vector) -> Vector:
    out = np.empty_like(x)
    where.project(x, out)
    return out


BALL_AND_BOXES: list[EuclideanBall | Box] = [
    EuclideanBall(np.array([1.0, -2.0, 0.5]), 1.5),
    Box(np.array([-1.0, 0.0, -0.5]), np.array([2.0, 0.5, 3.0])),
    Box(np.array([-np.inf, 0.0, -np.inf]), np.array([1.0, np.inf, np.inf])),
]
ONE, ONES, ORDER = np.ones(1), np.ones(2), np.array([2, 0, 1])
SETS: list[Set] = [
    *BALL_AND_BOXES,
    Box(np.array([-1.0, 0.25, 0.0]), np.array([-1.0, 0.25, 2.0])),
    Simplex((3,)),
    Simplex((3, 1), 0),
    ProductSet((SetPart(0, 1, Box(np.zeros(1), np.ones(1))), SetPart(1, 3, Simplex((2,))))),
    RowBalls(1, 0.8, np.array([0.5, -1.0, 0.0])),
    ProductSet(
        (SetPart(0, 1, Box(np.zeros(1), np.ones(1))), SetPart(1, 3, RowBalls(2, 1.5, ONES)))
    ),
    ReorderedSet(ProductSet((SetPart(0, 2, Simplex((2,))), SetPart(2, 3, Box(-ONE, ONE)))), ORDER),
]
PARTS = [WithinBall(where, projection(where, np.array([0.3, 0.1, 2.0])), 0.4) for where in SETS]


def tangent(where: Set, x: Vector, v: Vector) -> Vector:
    out = np.empty_like(v)
    where.tangent(x, v, out)
    return out


@pytest.mark.parametrize("where", [*SETS, *PARTS])
@settings(max_examples=25)
@given(x=vectors, y=vectors)
def test_a_projection_is_the_nearest_point(where: Set | WithinBall, x: Vector, y: Vector) -> None:
    """p is the projection of x exactly where ⟨x − p, y − p⟩ ≤ 0 for every y in the set."""
    nearest, other = projection(where, x), projection(where, y)
    scale = max(1.0, float(np.abs(x).max()), float(np.abs(y).max()))
    assert where.contains(nearest, slack=1e-12 * scale)
    assert (x - nearest) @ (other - nearest) <= 1e-11 * scale**2
    moved = where.project(x, x.copy())
    assert moved == (not where.contains(x))


@pytest.mark.parametrize("where", [*BALL_AND_BOXES, *PARTS])
@settings(max_examples=25)
@given(x=vectors, g=vectors)
def test_a_projected_step_is_the_projection_of_the_step(
    where: EpochSet, x: Vector, g: Vector
) -> None:
    x, out, gnorm = projection(where, x), np.empty(3), float(np.linalg.norm(g))
    for L in (0.01, 1.0, 1e3):
        where.project_step(x, g, gnorm, L, out)
        assert_allclose(out, projection(where, x - g / L), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("where", [*BALL_AND_BOXES[:2], *PARTS])
def test_an_infinite_step_goes_where_longer_and_longer_steps_go(where: EpochSet) -> None:
    x, g = projection(where, np.array([0.3, 0.1, 2.0])), np.array([1.0, -2.0, 0.0])
    out = np.empty(3)
    where.project_step(x, g, float(np.linalg.norm(g)), 0.0, out)
    assert_allclose(out, projection(where, x - 1e9 * g), rtol=1e-6)
    # Neither square of the gradient nor the step overflow.
    where.project_step(x, 1e200 * g, 1e200 * float(np.linalg.norm(g)), 1e-200, out)
    assert_allclose(out, projection(where, x - 1e9 * g), rtol=1e-6)


@pytest.mark.parametrize("where", SETS)
@settings(max_examples=25)
@given(x=vectors, v=vectors)
def test_a_tangent_is_the_derivative_of_the_projection(where: Set, x: Vector, v: Vector) -> None:
    """(P(x + tv) − x)/t → the projection of v on the tangent cone at x, as t falls to 0."""
    # On a grid, so that no coordinate is closer to a face than a difference quotient resolves.
    x = projection(where, np.round(x, 2))
    scale = max(1.0, float(np.abs(v).max()))
    t = 1e-7 / scale
    slope = (projection(where, x + t * v) - x) / t
    near = isinstance(where, EuclideanBall) and where.in_interior(x) and where.in_margin(x, 1e-5)
    if not near:
        assert_allclose(tangent(where, x, v), slope, atol=1e-5 * scale)


@pytest.mark.parametrize("where", SETS)
@settings(max_examples=25)
@given(x=vectors, r=vectors)
def test_a_face_holds_the_tangent_steepest_descent(where: Set, x: Vector, r: Vector) -> None:
    """The projection of −r on the tangent cone lies in the face, and is that of −r on the face."""
    x = projection(where, np.round(x, 2))
    v = tangent(where, x, -r)
    scale = max(1.0, float(np.abs(r).max()))
    assert_allclose(where.face(x, r).project(v), v, atol=1e-12 * scale)
    assert_allclose(where.face(x, r).project(-r), v, atol=1e-12 * scale)


@pytest.mark.parametrize("where", SETS)
@settings(max_examples=10)
@given(vectors, vectors)
def test_a_polyhedron_holds_the_points_of_its_set(where: Set, x: Vector, y: Vector) -> None:
    """Exactly those points near one of the set that satisfy its bounds and equations are in it."""
    found = where.polyhedron()
    assert (found is not None) == where.polyhedral
    if found is None:
        return
    inside = projection(where, x)
    assert ((found.low <= inside) & (inside <= found.high)).all()
    moved = inside + 0.01 * y - np.linalg.pinv(found.E) @ (found.E @ (0.01 * y))
    moved = np.clip(moved, found.low, found.high)
    holds = np.allclose(found.E @ moved, found.E @ inside, rtol=0.0, atol=1e-12)
    assert where.contains(moved, 1e-12) == holds


@pytest.mark.parametrize("where", BALL_AND_BOXES)
def test_interior_points_margins_and_diameters(where: EuclideanBall | Box) -> None:
    x = where.interior_point()
    assert where.in_interior(x)
    assert not where.in_margin(x, 0.1)
    boundary = projection(where, x + 100.0 * np.array([1.0, -1.0, 1.0]))
    assert where.contains(boundary, 1e-12)
    assert where.in_margin(boundary, 1e-9)
    inner = where.shrunk(0.1)
    assert inner.in_interior(x)
    assert not inner.contains(boundary)
    assert where.diameter == 2.0 * where.radius
    farthest = max(
        float(np.linalg.norm(projection(where, 1e4 * a) - projection(where, -1e4 * a)))
        for a in np.random.default_rng(0).choice([-1.0, 1.0], size=(50, 3))
    )
    assert farthest <= where.diameter * (1.0 + 1e-12)


def least_squares() -> tuple[Functions, Vector, Vector, Box]:
    """½‖Ax − b‖² over a box with faces that are active at the minimiser."""
    rng = np.random.default_rng(3)
    A, b = rng.standard_normal((20, 5)), rng.standard_normal(20)
    box = Box(np.full(5, -0.05), np.array([0.02, 0.3, np.inf, 0.01, 0.5]))
    fun = Functions(lambda x: 0.5 * float(np.sum((A @ x - b) ** 2)), lambda x: A.T @ (A @ x - b), 5)
    return fun, A, b, box


def test_projected_gradients_over_a_box_find_the_minimiser_on_a_face() -> None:
    """pgd with a box as the set of its epoch, against two solvers of SciPy."""
    objective, A, b, box = least_squares()
    evaluate = Evaluator(objective, RunOptions())
    x = projection(box, np.ones(5))
    g = np.empty(5)
    current = Iterate(x, evaluate.value(x), g, evaluate.gradient(x, g))
    run = DescentRun(project, evaluate, current.copy(), ends_at_boundary=True)
    L1 = float(np.linalg.norm(A, 2)) ** 2
    region = run.enter(EpochRegion(x.copy(), box, 0.0, L1, None, "number"))
    falls = []
    for _ in range(2000):
        taken = run.step(current.copy(), region)
        if not isinstance(taken, AcceptedStep):
            break
        assert box.contains(taken.point.x)
        # Condition 2.1 of the paper holds for projections on any convex set.
        falls.append(current.f - taken.point.f - 0.5 * L1 * taken.length**2)
        current = taken.point.copy()
        if np.linalg.norm(tangent(box, current.x, -current.g)) < 1e-9:
            break
    assert min(falls) >= -1e-13
    assert np.linalg.norm(tangent(box, current.x, -current.g)) < 1e-9
    assert np.linalg.norm(current.g) > 0.1
    exact = lsq_linear(A, b, bounds=(box.low, box.high), tol=1e-14).x
    assert_allclose(current.x, exact, atol=1e-8)
    bounds = [
        (low, None if high == math.inf else high)
        for low, high in zip(box.low, box.high, strict=True)
    ]
    peer = minimize(
        objective.value, np.zeros(5), jac=objective.jac, method="L-BFGS-B", bounds=bounds, tol=1e-14
    )
    assert_allclose(current.x, peer.x, atol=1e-6)
    assert sum((current.x == box.low) | (current.x == box.high)) >= 2
