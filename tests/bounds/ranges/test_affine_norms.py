"""The range of ‖A x - b‖² over a ball, against the least and largest values there."""

import numpy as np
import pytest
from scipy.linalg import eigh

from slomodel import functions as fn
from slomodel.bounds import ObjectivePart
from slomodel.bounds.ranges.affine_norms import squared_lengths
from slomodel.ir import build
from slomodel.ir.dims import literal
from slomodel.ir.expr import Einsum
from slomodel.ir.walk import postorder

RADII = (1e-6, 1e-2, 0.3, 1.0, 3.0, 30.0)


def residual(m, n):
    A, b = build.data("A", (literal(m), literal(n))), build.data("b", (literal(m),))
    x = build.variable("x", (literal(n),))
    return A, b, x, fn.sub(build.einsum([A, x], [(0, 1), (1,)], (0,), (literal(m), literal(n))), b)


def length_over_ball(A, b, c, radius):
    setting, node = setting_for(A, b, c)
    return squared_lengths(postorder(setting.objective), setting, setting.values, radius)[node]


def setting_for(A, b, c):
    own_A, own_b, x, r = residual(*A.shape)
    node = build.inner(r, r)
    assert isinstance(node, Einsum)
    values = {own_A: A, own_b: b, x: c}
    return ObjectivePart(fn.log(fn.add(1.0, node)), (x,), values, {}), node


def least_of_all(A, b, c, radius):
    """min ‖A x - b‖ over the ball, by bisection on the multiplier of its radius."""
    r, (values, V) = A @ c - b, eigh(A.T @ A)
    g = V.T @ (A.T @ r)

    def step(shift):
        return -g / (values + shift)

    if values[0] > 1e-12 * values[-1] and np.linalg.norm(step(0.0)) <= radius:
        return np.linalg.norm(r + A @ (V @ step(0.0)))
    low, high = 0.0, np.linalg.norm(g) / radius + 1.0
    for _ in range(200):
        shift = 0.5 * (low + high)
        low, high = (shift, high) if np.linalg.norm(step(shift)) > radius else (low, shift)
    return np.linalg.norm(r + A @ (V @ step(high)))


@pytest.mark.parametrize("conditioning", [1.0, 1e4])
@pytest.mark.parametrize(("m", "n"), [(1, 3), (3, 3), (5, 2), (12, 4), (40, 8), (4, 9)])
def test_it_holds_all_values_and_few_more(m, n, conditioning):
    rng = np.random.default_rng(m + n)
    for _ in range(3):
        A = rng.standard_normal((m, n)) * np.geomspace(1.0, 1.0 / conditioning, n)
        b, c = 3.0 * rng.standard_normal(m), rng.standard_normal(n)
        for radius in RADII:
            found = length_over_ball(A, b, c, radius)
            least = least_of_all(A, b, c, radius)
            assert found.lo <= least**2 * (1 + 1e-9) + 1e-18
            assert found.lo >= 0.93 * least**2 - 1e-6 * float(b @ b)
            largest = np.linalg.norm(A @ c - b) + radius * np.linalg.norm(A, 2)
            assert found.hi <= largest**2 * (1 + 1e-6)
            directions = rng.standard_normal((200, n))
            directions *= radius / np.linalg.norm(directions, axis=1)[:, None]
            values = np.sum(((c + directions) @ A.T - b) ** 2, axis=1)
            assert found.lo <= values.min() * (1 + 1e-12)
            assert values.max() * (1 - 1e-12) <= found.hi


def test_a_zero_in_the_ball_is_not_a_lower_bound():
    rng = np.random.default_rng(0)
    A, x = rng.standard_normal((9, 3)), rng.standard_normal(3)
    for offset in (0.0, 1e-9, 0.4):
        assert length_over_ball(A, A @ x, x + offset, 1.0).lo == 0.0


def test_what_is_not_affine_has_no_such_range():
    _, _, x, r = residual(3, 2)
    curved = fn.sin(r)
    node = build.inner(curved, curved)
    values = {one: np.ones((3, 2)) if one.rank == 2 else np.ones(3) for one in _data(node)}
    setting = ObjectivePart(fn.exp(node), (x,), {**values, x: np.ones(2)}, {})
    assert not squared_lengths(postorder(setting.objective), setting, setting.values, 1.0)


def _data(node):
    return [one for one in postorder(node) if getattr(one, "role", "") == "data"]


def test_a_matrix_of_residuals_and_a_constant_one():
    X = build.variable("X", (literal(2), literal(3)))
    D = build.data("D", (literal(2), literal(3)))
    r = fn.sub(X, D)
    node = build.inner(r, r)
    c = np.arange(6.0).reshape(2, 3)
    setting = ObjectivePart(fn.sqrt(node), (X,), {X: c, D: c + 2.0}, {})
    found = squared_lengths(postorder(setting.objective), setting, setting.values, 1.0)[node]
    truth = (np.sqrt(24.0) - 1.0) ** 2, (np.sqrt(24.0) + 1.0) ** 2
    assert truth[0] * (1 - 1e-12) <= found.lo <= truth[0] * (1 + 1e-15)
    assert truth[1] * (1 - 1e-15) <= found.hi <= truth[1] * (1 + 1e-12)
