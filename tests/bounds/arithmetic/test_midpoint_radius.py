"""Rules of midpoints and errors against exact rational arithmetic, and against broken rules."""

from __future__ import annotations

import inspect
import math
import sys
import types
from collections.abc import Callable
from fractions import Fraction
from itertools import permutations

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slomodel.bounds.arithmetic import midpoint_radius
from slomodel.bounds.arithmetic.interval import interval

Exact = list[list[Fraction]]


def exact(A: np.ndarray) -> Exact:
    return [[Fraction(float(a)) for a in row] for row in A]


def moved(A: np.ndarray, place: int, by: float) -> Exact:
    """The matrix with one element moved, by exactly so much: a change of norm |by|."""
    X = exact(A)
    row, column = divmod(place % A.size, A.shape[1])
    X[row][column] += Fraction(by)
    return X


def product(X: Exact, Y: Exact) -> Exact:
    return [
        [
            sum((x * y for x, y in zip(row, column, strict=True)), Fraction())
            for column in zip(*Y, strict=True)
        ]
        for row in X
    ]


def plus(X: Exact, Y: Exact, sign: int = 1) -> Exact:
    pairs = zip(X, Y, strict=True)
    return [[x + sign * y for x, y in zip(row, own, strict=True)] for row, own in pairs]


def is_within(one: midpoint_radius.Bounded[float], X: Exact) -> bool:
    """Whether rows and columns of X - value are no longer than the error: its norm is no less."""
    if not np.isfinite(one.value).all() or one.error == math.inf:
        return True
    difference = plus(X, exact(one.value), -1)
    squares = [[d * d for d in row] for row in difference]
    longest = max(*map(sum, squares), *map(sum, zip(*squares, strict=True)))
    return longest <= Fraction(float(one.error)) ** 2


_NUMBERS = (
    st.floats(-4.0, 4.0)
    | st.floats(-1e-300, 1e-300)  # with subnormal ones
    | st.floats(1e-170, 1e-150)  # their products underflow
    | st.floats(-1e155, 1e155)
    | st.sampled_from([0.0, 5e-324, -5e-324, 2.3e-308, 1e16, -1e16, 1 / 3])
)


@st.composite
def matrices(draw: Callable[..., float], rows: int, columns: int) -> np.ndarray:
    own = st.lists(_NUMBERS, min_size=rows * columns, max_size=rows * columns)
    return np.array(draw(own), dtype=np.float64).reshape(rows, columns)


_ERRORS = st.sampled_from([0.0, 5e-324, 1e-200, 1e-12, 0.25])
_PLACES = st.integers(0, 5)


@settings(deadline=None)
@given(matrices(2, 3), matrices(3, 2), matrices(2, 3), _ERRORS, _ERRORS, _PLACES, _NUMBERS)
def test_rules_enclose_the_exact_results_of_the_worst_operands(A, B, C, e, d, place, factor):
    a, b, c = (midpoint_radius.Bounded(one, error) for one, error in ((A, e), (B, d), (C, d)))
    X, Y, Z = moved(A, place, e), moved(B, place, d), moved(C, place, -d)
    assert is_within(a @ b, product(X, Y))
    assert is_within(
        a @ c.transposed, product(X, [list(column) for column in zip(*Z, strict=True)])
    )
    assert is_within(a + c, plus(X, Z))
    assert is_within(a - c, plus(X, Z, -1))
    assert is_within(a.times(factor), [[Fraction(factor) * x for x in row] for row in X])
    scaled = [[x * Fraction(float(w)) for x, w in zip(row, B[:, 0], strict=True)] for row in X]
    assert is_within(a.columns_times(B[:, 0]), scaled)
    pairs = zip(X, Z, strict=True)
    shifted = product(X, Y)
    for i in range(2):
        shifted[i][i] += Fraction(factor)
    assert is_within((a @ b).plus_identity(factor), shifted)
    wide = [[Fraction(factor) * x for x in row] + [3 * z for z in own] for row, own in pairs]
    assert is_within(midpoint_radius.beside(a, factor, c, 3.0), wide)
    square = sum((x * x for row in X for x in row), Fraction())
    assert a.norm == math.inf or Fraction(float(a.norm)) ** 2 >= Fraction(e) ** 2
    assert e or Fraction(float(a.magnitude)) ** 2 >= square


@settings(deadline=None)
@given(matrices(2, 6), matrices(2, 6), _ERRORS)
def test_stacks_have_the_errors_of_their_matrices(A, B, e):
    """Each entry of a stack as the matrix by itself, but for the order of its sums."""
    left, right = A.reshape(2, 2, 3), B.reshape(2, 3, 2)
    stack = midpoint_radius.Bounded(left, np.full(2, e)) @ midpoint_radius.exact_stack(right)
    for k in range(2):
        one = midpoint_radius.Bounded(stack.value[k], float(stack.error[k]))
        assert is_within(one, product(moved(left[k], 0, e), exact(right[k])))


@settings(deadline=None)
@given(matrices(1, 3), matrices(1, 3), _ERRORS, _ERRORS)
def test_elementwise_products_hold_the_worst_operands(A, B, e, d):
    a, b = (
        midpoint_radius.Bounded(A[0], np.full(3, e)),
        midpoint_radius.Bounded(B[0], np.full(3, d)),
    )
    found = a * b
    for k in range(3):
        for x in (Fraction(float(A[0, k])) + Fraction(e), Fraction(float(A[0, k])) - Fraction(e)):
            y = Fraction(float(B[0, k])) - Fraction(d)
            if np.isfinite(found.value[k]) and found.error[k] < math.inf:
                off = abs(x * y - Fraction(float(found.value[k])))
                assert off <= Fraction(float(found.error[k]))


def test_values_of_functions_are_within_steps():
    y = np.array([1.0, 5e-324, 0.0, 1.7e308, 0.1])
    found = midpoint_radius.computed(y, 3)
    steps = 3.0 * np.spacing(y)
    assert (found.error >= steps).all()


@settings(deadline=None)
@given(matrices(2, 2))
def test_scaled_arrays_are_exact_but_for_what_underflows(A):
    B, e = midpoint_radius.normalised(A)
    assert is_within(B, [[x / Fraction(2) ** e for x in row] for row in exact(A)])
    assert not A.any() or 0.5 <= np.max(np.abs(B.value)) <= 1.0
    stack, exponents = midpoint_radius.normalised_stack(A[np.newaxis])
    assert np.array_equal(stack.value[0], B.value)
    assert exponents[0] == e


@pytest.mark.parametrize("n", [1, 2, 5, 40])
def test_ends_proved_by_a_factorisation_are_above_the_largest_eigenvalue(n: int):
    rng = np.random.default_rng(n)
    S = rng.integers(-8, 9, (n, n)).astype(float)
    B = (S + S.T + np.eye(n)) / 32.0
    B = midpoint_radius.normalised(B)[0].value
    with mpmath.workdps(40):
        largest = max(mpmath.eigsy(mpmath.matrix(B.tolist()), eigvals_only=True))
    trace = float(np.sum(np.abs(np.diag(B))))
    for excess in (1e-15, 1e-14, 1e-12, 1e-6):
        t = float(largest) + excess
        if midpoint_radius.runs_through(B, np.asarray(t)):
            end = midpoint_radius.proved_end(t, trace, n)
            assert largest <= mpmath.mpf(float(end)) <= largest + excess + 1e-12 * n
    assert not midpoint_radius.runs_through(B, np.asarray(float(largest) - 1e-3))


def test_middles_of_intervals_hold_them():
    lo = np.array([[1.0, -2.0], [5e-324, 3.0]])
    hi = np.array([[1.5, -1.0], [1e-323, 3.0]])
    whole, rows = (
        make(interval(lo, hi)) for make in (midpoint_radius.midpoint, midpoint_radius.midpoints)
    )
    for end in (lo, hi):
        assert is_within(whole, exact(end))
        for k, error in enumerate(rows.error):
            assert is_within(
                midpoint_radius.Bounded(rows.value[[k]], float(error)), exact(end[[k]])
            )


def test_what_is_not_finite_has_no_finite_norm():
    for wrong in (np.inf, -np.inf, np.nan):
        assert midpoint_radius.exact(np.array([[1.0, wrong]])).norm == np.inf


_TINY = np.full((1, 50), 1.55e-162)  # each product is below half the least double
_THIRD = np.array([[1 / 3, 0.1], [1 / 7, 3.3]])
_BROKEN: dict[str, tuple[str, str, Callable[[types.ModuleType], bool]]] = {}
"""By the rule: what is replaced in it by what, and whether an example holds with it."""


def _breaks(name: str, old: str, new: str) -> Callable[[Callable[..., bool]], None]:
    def register(holds: Callable[..., bool]) -> None:
        _BROKEN[name] = (old, new, holds)

    return register


@_breaks("rounding of sums", "_outward(error + gamma(1) * magnitude)", "_outward(error)")
def _sums(of: types.ModuleType) -> bool:
    a, b = of.exact(_THIRD), of.exact(_THIRD / 3.0)
    return is_within(a + b, plus(exact(a.value), exact(b.value)))


@_breaks("errors of operands of sums", "self.error + other.error", "0.0 * self.error")
def _moved_sums(of: types.ModuleType) -> bool:
    a, b = of.Bounded(_THIRD, 0.25), of.exact(_THIRD)
    both = is_within(a + b, plus(moved(_THIRD, 0, 0.25), exact(_THIRD)))
    return both and is_within(a - b, plus(moved(_THIRD, 0, 0.25), exact(_THIRD), -1))


@_breaks("underflow", ") * SMALLEST", ") * 0.0")
def _tiny_products(of: types.ModuleType) -> bool:
    a = of.exact(_TINY)
    return is_within(a @ a.transposed, product(exact(_TINY), exact(_TINY.T)))


@_breaks("rounding of products", "gamma(k) * (self.magnitude * other.magnitude)", "0.0")
def _products(of: types.ModuleType) -> bool:
    a = of.exact(_THIRD)
    return is_within(a @ a, product(exact(_THIRD), exact(_THIRD)))


@_breaks("error of the left factor", "self.error * other.magnitude", "0.0")
def _left(of: types.ModuleType) -> bool:
    one, other = np.array([[1.0]]), np.array([[1.0]])
    return is_within(of.Bounded(one, 0.5) @ of.exact(other), [[Fraction(3, 2)]])


@_breaks("error of the right factor", "(self.magnitude + self.error) * other.error", "0.0")
def _right(of: types.ModuleType) -> bool:
    return is_within(of.exact(np.eye(1)) @ of.Bounded(np.eye(1), 0.5), [[Fraction(3, 2)]])


@_breaks("both errors together", "(self.magnitude + self.error) *", "self.magnitude *")
def _both(of: types.ModuleType) -> bool:
    a = of.Bounded(np.eye(1), 0.5)
    return is_within(a @ a, [[Fraction(9, 4)]])


@_breaks("roundings of errors", "(1.0 + gamma(40)) + 16.0 * SMALLEST", "1.0")
def _own_roundings(of: types.ModuleType) -> bool:
    error = float(np.nextafter(1.0, 0.0))  # its square is rounded down
    a = of.Bounded(np.zeros((1, 1)), error)
    return is_within(a @ a, [[Fraction(error) ** 2]])


@_breaks("error times a number", "abs(factor) * self.error", "self.error")
def _times(of: types.ModuleType) -> bool:
    return is_within(of.Bounded(np.eye(1), 0.5).times(-2.0), [[Fraction(-3)]])


@_breaks("error of scaled columns", "np.max(np.abs(factors), axis=-1) *", "1.0 *")
def _columns(of: types.ModuleType) -> bool:
    return is_within(of.Bounded(np.eye(1), 0.5).columns_times(np.array([2.0])), [[Fraction(3)]])


@_breaks("rounding of a shift", "_outward(self.error + own)", "_outward(self.error)")
def _shift(of: types.ModuleType) -> bool:
    X = plus(exact(_THIRD), [[Fraction(0.1), Fraction()], [Fraction(), Fraction(0.1)]])
    return is_within(of.exact(_THIRD).plus_identity(0.1), X)


@_breaks("rounding of a mean", "self.error + self._underflow(mean, 2)", "0.0")
def _mean(of: types.ModuleType) -> bool:
    return is_within(of.Bounded(np.eye(1), 0.5).symmetric(), [[Fraction(3, 2)]])


@_breaks("rounding of a mean over orders", "own = gamma(4) * one.magnitude", "own = 0.0")
def _orders(of: types.ModuleType) -> bool:
    T = np.random.default_rng(0).standard_normal((2, 2, 2))
    found = of.symmetrised(of.exact(T))
    exactly = [Fraction(0)] * 8
    for k, indices in enumerate(np.ndindex(2, 2, 2)):
        exactly[k] = sum(Fraction(T[order]) for order in permutations(indices)) / 6
    assert all(
        np.array_equal(found.value, found.value.transpose(o)) for o in permutations(range(3))
    )
    return is_within(of.Bounded(found.value.reshape(2, 4), found.error), [exactly[:4], exactly[4:]])


@_breaks("errors side by side", "up_add(left.error, right.error)", "left.error")
def _beside(of: types.ModuleType) -> bool:
    one = of.beside(of.exact(np.eye(1)), 1.0, of.Bounded(np.eye(1), 0.5), 1.0)
    return is_within(one, [[Fraction(1), Fraction(3, 2)]])


@_breaks("radii of an interval", "float(up_norm(a.rad))", "0.0")
def _radii(of: types.ModuleType) -> bool:
    return is_within(of.midpoint(interval(np.zeros((1, 1)), np.ones((1, 1)))), [[Fraction(1)]])


@pytest.mark.parametrize("name", _BROKEN)
def test_a_rule_without_one_of_its_terms_does_not_hold(name: str, monkeypatch: pytest.MonkeyPatch):
    old, new, holds = _BROKEN[name]
    source = inspect.getsource(midpoint_radius)
    assert old in source
    broken = types.ModuleType("broken")
    monkeypatch.setitem(sys.modules, "broken", broken)
    exec(compile(source.replace(old, new), "broken", "exec"), broken.__dict__)
    assert holds(midpoint_radius)
    assert not holds(broken)
