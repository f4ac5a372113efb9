"""How bounds by block close: each rule is exact somewhere, so that 1 % less would be too little."""

import math

import numpy as np
import pytest

from slomodel.bounds.rules.jets.closing import (
    Pieces,
    close_first,
    close_second,
    form_norm,
    stacked,
    symmetric,
)

INF = math.inf
FIRST = (
    "sup ‖H‖ by blocks",
    "‖H(c)‖ + r sup ‖D³f‖ by blocks",
    "‖H(c)‖ + r L2",
    "‖H(c)‖ + r ‖D³f(c)‖ + r²/2 sup ‖D⁴f‖",
)
SECOND = ("sup ‖D³f‖ by blocks", "‖D³f(c)‖ + r sup ‖D⁴f‖")


def pieces(r: float, over: tuple[float, ...], at_centre: tuple[float, ...]) -> Pieces:
    """For one block: sup |f''|, |f'''|, |f''''|, and |f''| and |f'''| at the centre."""
    first, second, third = (np.full((1,) * (k + 2), value) for k, value in enumerate(over))
    H, T = at_centre
    return Pieces((first, second, third), r, H, T, np.array([[H]]))


# f(x) over |x - c| ≤ r: the rule, its inputs, and the constant, which the rule attains.
R = 0.5
EXACT1 = {
    # exp at 0, where only the supremum itself is exact.
    FIRST[0]: (pieces(R, (math.exp(R),) * 3, (1.0, 1.0)), INF, math.exp(R)),
    # x³ at 1: f'' = 6x.
    FIRST[1]: (pieces(R, (INF, 6.0, 0.0), (6.0, INF)), INF, 9.0),
    FIRST[2]: (pieces(R, (INF, INF, INF), (6.0, INF)), 6.0, 9.0),
    # x⁴ at 1: f'' = 12x².
    FIRST[3]: (pieces(R, (INF, INF, 24.0), (12.0, 24.0)), INF, 27.0),
}
EXACT2 = {
    SECOND[0]: (pieces(R, (INF, math.exp(R), INF), (1.0, 1.0)), math.exp(R)),
    SECOND[1]: (pieces(R, (INF, INF, 24.0), (12.0, 24.0)), 36.0),
}


@pytest.mark.parametrize("rule", FIRST)
def test_each_rule_for_the_gradient_is_exact(rule: str) -> None:
    inputs, L2, constant = EXACT1[rule]
    found = close_first(inputs, L2)
    assert found.rule == rule
    assert [name for name, _ in found.tried] == list(FIRST)
    assert 0.99 * found.value < constant <= found.value


@pytest.mark.parametrize("rule", SECOND)
def test_each_rule_for_the_hessian_is_exact(rule: str) -> None:
    inputs, constant = EXACT2[rule]
    found = close_second(inputs)
    assert found.rule == rule
    assert 0.99 * found.value < constant <= found.value


def test_a_radius_of_zero_leaves_the_centre() -> None:
    found = close_first(pieces(0.0, (INF, INF, INF), (6.0, 5.0)), INF)
    assert 6.0 <= found.value <= 6.0 * (1.0 + 1e-13)


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
