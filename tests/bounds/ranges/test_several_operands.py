"""Bounds of functions of several arguments hold at all pairs of points, in any order.

Gradients are difference quotients of the definitions in 120 digits, so that a derivative rule that
is wrong shows here too.
"""

from __future__ import annotations

import math
from itertools import combinations, cycle, product

import mpmath
import numpy as np
import pytest
from marks import every

from slomodel import functions as fn
from slomodel.bounds import ObjectivePart, bounds
from slomodel.bounds.arithmetic.interval import interval
from slomodel.bounds.ranges.derivatives import derivative_range
from slomodel.ir import build
from slomodel.ir.build import variable
from tests.functions.several_operands import CASES, DIGITS, GRID, STEP, Case, at, bends, slopes

RADII = (0.05, 0.4, 1.5)
CENTRES = 12
PAIRS = 12


def planes(arity: int) -> list[np.ndarray]:
    """Unit normals of x_k = 0, x_j = x_k and x_j = -x_k, where kinks lie."""
    units = np.eye(arity)
    found = [*units]
    for j, k in combinations(range(arity), 2):
        found += [(units[j] - units[k]) / math.sqrt(2), (units[j] + units[k]) / math.sqrt(2)]
    return found


def pairs(
    centre: np.ndarray, radius: float, moving: int, rng: np.random.Generator
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Points of the ball in the first `moving` coordinates, at random and across each plane."""

    def inside() -> np.ndarray:
        step = rng.normal(size=moving)
        return radius * rng.uniform(0.0, 0.99) * step / np.linalg.norm(step)

    found = []
    for _ in range(PAIRS):
        ends = [centre.copy(), centre.copy()]
        for end in ends:
            end[:moving] += inside()
        found.append((ends[0], ends[1]))
    for normal in planes(len(centre)):
        free = np.where(np.arange(len(centre)) < moving, normal, 0.0)
        if not free.any():
            continue
        for _ in range(3):
            x = centre.copy()
            x[:moving] += inside()
            x -= (normal @ x) / (normal @ free) * free
            if np.linalg.norm(x - centre) < 0.98 * radius:
                step = 1e-3 * radius * free / np.linalg.norm(free)
                skew = np.where(np.arange(len(centre)) < moving, rng.normal(size=len(centre)), 0.0)
                step += 1e-4 * radius * skew / np.linalg.norm(skew)
                found.append((x + step, x - step))
    return found


def exact_gradient(case: Case, x: np.ndarray, moving: int) -> list[mpmath.mpf] | None:
    exact = [mpmath.mpf(float(one)) for one in x]
    found = []
    for k in range(moving):
        ends = [at(case, [*exact[:k], exact[k] + s, *exact[k + 1 :]]) for s in (STEP, -STEP)]
        if None in ends:
            return None
        found.append((ends[0] - ends[1]) / (2 * STEP))
    return found


def quotient(case: Case, x: np.ndarray, y: np.ndarray, moving: int) -> mpmath.mpf | None:
    """|∇f(x) − ∇f(y)| over |x − y|; inf where a point of the ball has no gradient."""
    with mpmath.workdps(DIGITS):
        found = [exact_gradient(case, one, moving) for one in (x, y)]
        if None in found:
            return mpmath.inf
        apart = [mpmath.mpf(float(a)) - mpmath.mpf(float(b)) for a, b in zip(x, y, strict=True)]
        slopes = [a - b for a, b in zip(*found, strict=True)]
        return mpmath.sqrt(sum(s * s for s in slopes)) / mpmath.sqrt(sum(a * a for a in apart))


def exact_hessian(case: Case, x: np.ndarray, moving: int) -> np.ndarray | None:
    """The Hessian (moving, moving) by second difference quotients, rounded to doubles."""
    found = np.empty((moving, moving))
    with mpmath.workdps(DIGITS):
        exact = [mpmath.mpf(float(one)) for one in x]
        for j, k in product(range(moving), repeat=2):
            total = mpmath.mpf(0)
            for s, t in product((STEP, -STEP), repeat=2):
                end = list(exact)
                end[j] += s
                end[k] += t
                value = at(case, end)
                if value is None:
                    return None
                total += value if s == t else -value
            found[j, k] = total / (4 * STEP * STEP)
    return found


def second_quotient(case: Case, x: np.ndarray, y: np.ndarray, moving: int) -> float:
    """‖H(x) − H(y)‖ over |x − y|, less what the roundings of H may add; inf as above."""
    one, other = (exact_hessian(case, end, moving) for end in (x, y))
    if one is None or other is None:
        return math.inf
    slack = 1e-14 * float(np.abs([one, other]).max())
    difference = float(np.linalg.norm(one - other, 2))
    return (difference - slack) / float(np.linalg.norm(x - y))


def part_of(case: Case, centre: np.ndarray, moving: int) -> ObjectivePart:
    """The function of variables, from operand `moving` on of data."""
    inputs = [
        variable(f"x{k}", ()) if k < moving else build.data(f"x{k}", ()) for k in range(case.arity)
    ]
    values = dict(zip(inputs, map(np.asarray, centre), strict=True))
    return ObjectivePart(case.build(*inputs), tuple(inputs[:moving]), values, {})


def centres(arity: int) -> list[np.ndarray]:
    rng = np.random.default_rng(arity)
    on_grid = rng.choice(GRID, (CENTRES, arity))
    return [*on_grid, *rng.normal(size=(CENTRES // 2, arity))]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", every(2, CASES), ids=str)
@pytest.mark.parametrize("moves", [pytest.param("all", marks=pytest.mark.slow), "first"])
def test_no_pair_shows_more_than_a_finite_bound(case: Case, moves: str) -> None:
    """With all operands variables, and with all but the first data.

    A quotient by 0 has no value at all: there is no gradient that a pair could show.
    """
    moving = case.arity if moves == "all" else 1
    rng = np.random.default_rng(1)
    finite = 0
    for centre, radius in zip(centres(case.arity), cycle(RADII), strict=False):
        if moves == "first" and case.function is fn.div and centre[1] == 0.0:
            continue
        for k, (low, high) in enumerate(case.function.domain):
            centre[k] = low + abs(centre[k] - low) if low > -math.inf else centre[k]
            if k >= moving and not low < centre[k] < high:
                centre[k] = low + 1.0
        with np.errstate(all="ignore"):
            found = bounds(part_of(case, centre, moving), radius)
        if math.isinf(found.L1):
            assert found.gradient.reason
            continue
        finite += 1
        for x, y in pairs(centre, radius, moving, rng):
            shown = quotient(case, x, y, moving)
            # Quotients with a step of 1e-30 are off by as much.
            assert shown <= found.L1 * (1 + mpmath.mpf(10) ** -20) + 1e-20, (centre, radius)
            if math.isfinite(found.L2):
                shown = second_quotient(case, x, y, moving)
                assert shown <= found.L2 * (1 + 1e-12) + 1e-20, (centre, radius)
    assert finite > CENTRES / 4


def test_huber_has_no_bound_across_its_kink_for_delta_below_zero() -> None:
    (huber,) = (case for case in CASES if case.name == "huber")
    for moving in (1, 2):
        found = bounds(part_of(huber, np.array([0.0, -1.0]), moving), 0.4)
        assert found.L1 == found.L2 == math.inf
        assert "kink" in found.reason
        assert bounds(part_of(huber, np.array([-1.0, -1.0]), moving), 0.4).L1 < 1.62


def boxes(arity: int, count: int = 40) -> list[tuple[np.ndarray, np.ndarray]]:
    """Ends of boxes of every sign, some of them points or with one end in common."""
    rng = np.random.default_rng(arity)
    ends = np.where(
        rng.uniform(size=(count, 2, arity)) < 0.7,
        rng.choice(GRID, (count, 2, arity)),
        rng.normal(size=(count, 2, arity)),
    )
    ends[: count // 4, 1, -1] = ends[: count // 4, 0, -1]
    return [(np.min(one, axis=0), np.max(one, axis=0)) for one in ends]


def orders_of(arity: int) -> list[tuple[int, ...]]:
    """None, each first and each second derivative."""
    units = np.eye(arity, dtype=int)
    pairs = [units[j] + units[k] for j in range(arity) for k in range(j, arity)]
    return [tuple(map(int, one)) for one in (0 * units[0], *units, *pairs)]


def derivative(case: Case, x: np.ndarray, orders: tuple[int, ...]) -> mpmath.mpf | None:
    """Of the definition; None at a kink, and where there is none."""
    by = [k for k, order in enumerate(orders) for _ in range(order)]
    point = tuple(map(float, x))
    if not by:
        return at(case, [mpmath.mpf(one) for one in point])
    sides = slopes(case, point, by[0]) if len(by) == 1 else bends(case, point, by[0], by[1])
    if sides is None or max(sides) - min(sides) > mpmath.mpf(10) ** -15:
        return None
    return sides[0]


IN_TABLE = [case for case in CASES if case.function is not fn.where]


@pytest.mark.sampled(10)
@pytest.mark.parametrize("case", IN_TABLE, ids=str)
def test_ranges_hold_values_and_derivatives_in_every_box(case: Case) -> None:
    rng = np.random.default_rng(2)
    seen = 0
    for low, high in boxes(case.arity):
        operands = [interval(a, b) for a, b in zip(low, high, strict=True)]
        corners = [np.where(rng.uniform(size=case.arity) < 0.5, low, high) for _ in range(4)]
        points = [*corners, *(low + (high - low) * rng.uniform(size=(4, case.arity)))]
        for orders in orders_of(case.arity):
            with np.errstate(all="ignore"):
                found = derivative_range(case.function, orders, *operands)
            for x in points:
                with mpmath.workdps(DIGITS):
                    value = derivative(case, np.clip(x, low, high), orders)
                if value is not None:
                    seen += 1
                    # A quotient with a step of 1e-30 is off by as much.
                    slack = mpmath.mpf(10) ** -25 if any(orders) else 0
                    ends = mpmath.mpf(float(found.lo)), mpmath.mpf(float(found.hi))
                    with mpmath.workdps(DIGITS):
                        inside = ends[0] - slack <= value <= ends[1] + slack
                    assert inside, (low, high, x, orders)
    assert seen > 300
