"""Norms of forms by blocks, and the closure of bounds by blocks."""

import math

import numpy as np
import pytest

from slomodel.bounds.closure import close
from slomodel.bounds.rules.jets.block_norms import (
    BlockBounds,
    close_blocks,
    form_norm,
    stacked,
    symmetric,
)

INF = math.inf


def test_blocks_of_the_hessian_move_separately() -> None:
    """x³ + 10y² round (1, 0): only the first block moves, and it reaches 9 at r = 0.5."""
    third = np.zeros((2, 2, 2))
    third[0, 0, 0] = 6.0
    over = (np.full((2, 2), INF), third, np.full((2,) * 4, INF))
    blocks = np.diag([6.0, 20.0])
    known = close_blocks(BlockBounds(over, 0.5, 20.0, INF, blocks))
    assert known.second_by.inequality == "‖H(c)‖ + r sup ‖D³f‖ by blocks"
    found = close(known, 0.5).first
    assert 20.0 <= found.value <= 20.0 * (1.0 + 1e-6)


def test_a_block_alone_closes_as_the_whole_does() -> None:
    """x⁴ at 1, where D⁴f is all that is known over the ball."""
    over = (np.full((1, 1), INF), np.full((1,) * 3, INF), np.full((1,) * 4, 24.0))
    found = close(close_blocks(BlockBounds(over, 0.5, 12.0, 24.0, np.array([[12.0]]))), 0.5)
    assert 27.0 <= found.first.value <= 27.0 * (1.0 + 1e-13)
    assert 36.0 <= found.second.value <= 36.0 * (1.0 + 1e-13)


# Symmetric forms by blocks with norms that are known.
SPLIT = np.zeros((3, 3, 3))
for order in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
    SPLIT[order] = SPLIT[order[::-1]] = 1.0
PAIRS = np.zeros((2, 2, 2, 2))
for order in ((0, 0, 1, 1), (0, 1, 0, 1), (0, 1, 1, 0)):
    PAIRS[order] = PAIRS[tuple(1 - k for k in order)] = 1.0
NORMS = {
    "matrix": (np.array([[1.0, 2.0], [2.0, 1.0]]), 3.0, 1.0),
    "exchange": (np.array([[0.0, 5.0], [5.0, 0.0]]), 5.0, 1.0),
    # 6 t1 t2 t3 is 6/√27 at most.
    "three blocks": (SPLIT, 6.0 / math.sqrt(27.0), 1.0),
    "one block, third": (np.full((1, 1, 1), 7.0), 7.0, 1.0),
    # 6 t1² t2² is 3/2 at most; its unfolding has the norm 2.
    "two blocks twice": (PAIRS, 1.5, 4.0 / 3.0),
    "one block, fourth": (np.full((1, 1, 1, 1), 7.0), 7.0, 1.0),
}


@pytest.mark.parametrize("name", NORMS)
def test_norms_of_forms(name: str) -> None:
    A, norm, loose = NORMS[name]
    found = form_norm(A)
    assert norm * (1 - 1e-15) <= found <= norm * loose * (1 + 1e-6)


def test_a_form_without_a_bound_or_without_blocks() -> None:
    assert form_norm(np.array([[INF, 1.0], [1.0, 1.0]])) == INF
    assert form_norm(np.zeros((2, 2, 2))) == form_norm(np.zeros((0, 0))) == 0.0


@pytest.mark.parametrize("order", [2, 3, 4])
def test_a_form_by_blocks_is_above_its_values(order: int) -> None:
    rng = np.random.default_rng(order)
    for _ in range(20):
        blocks = int(rng.integers(1, 5))
        A = symmetric(rng.random((blocks,) * order) * rng.integers(0, 2, (blocks,) * order))
        bound = form_norm(A)
        for _ in range(50):
            value, t = A, np.abs(rng.standard_normal(blocks))
            for _ in range(order):
                value = value @ (t / np.linalg.norm(t))
            assert value <= bound


def test_the_least_of_all_orders_counts() -> None:
    A = np.array([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_array_equal(symmetric(A), [[1.0, 2.0], [2.0, 4.0]])


def test_variables_of_one_block_count_by_the_root_of_the_sum_of_squares() -> None:
    parts = [(1, np.array([3.0, 0.0])), (0, np.array([1.0, 1.0])), (1, np.array([4.0, 2.0]))]
    np.testing.assert_allclose(stacked(parts, 2), [[1.0, 1.0], [5.0, 2.0]], rtol=1e-12)
    assert (stacked(parts, 2) >= [[1.0, 1.0], [5.0, 2.0]]).all()
