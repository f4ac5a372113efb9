"""Errors of sums of products of rows against exact rational arithmetic."""

from __future__ import annotations

import inspect
import math
import sys
import types
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slomodel.bounds.arithmetic import sums_of_products as sums
from slomodel.bounds.arithmetic.interval import interval
from slomodel.bounds.arithmetic.rounding import up_add, up_norm

M, N = 3, 2
_NUMBERS = (
    st.floats(-4.0, 4.0)
    | st.floats(-1e-300, 1e-300)
    | st.floats(1e-120, 1e-100)
    | st.floats(1e60, 1e70)
    | st.sampled_from([0.0, 5e-324, 1 / 3, 1e16])
)


def _arrays(*shape: int) -> st.SearchStrategy[np.ndarray]:
    size = math.prod(shape)
    every = st.lists(_NUMBERS, min_size=size, max_size=size)
    return every.map(lambda own: np.array(own, dtype=np.float64).reshape(shape))


def _largest_error(
    of: types.ModuleType, w: np.ndarray, rows: list[np.ndarray], moved: float
) -> tuple[float, Fraction]:
    """The bound for Σ w a ⊗ b .., and how far off its elements are; the first rows are moved."""
    k = len(rows)
    computed = np.zeros((N,) * k)
    for i in range(len(w)):
        term = np.asarray(w[i])
        for own in rows:
            term = np.multiply.outer(term, own[i])
        computed += term
    errors = [np.full(len(w), moved), *[np.zeros(len(w))] * (k - 1)]
    sizes = [up_norm(own, 1) for own in rows]
    lengths = [up_add(size, error) for size, error in zip(sizes, errors, strict=True)]
    bound = of.error_of_sum(w, lengths, errors, len(w) + k + 1, N**k)
    exact = [[[Fraction(float(x)) for x in row] for row in own] for own in rows]
    for row in exact[0]:
        row[0] += Fraction(moved)
    largest = Fraction()
    for indices in product(range(N), repeat=k):
        whole = Fraction()
        for i in range(len(w)):
            term = Fraction(float(w[i]))
            for own, j in zip(exact, indices, strict=True):
                term *= own[i][j]
            whole += term
        if not np.isfinite(computed[indices]):
            return math.inf, Fraction()
        largest = max(largest, abs(whole - Fraction(float(computed[indices]))))
    return bound, largest


@settings(deadline=None)
@given(_arrays(M), _arrays(M, N), _arrays(M, N), st.sampled_from([0.0, 1e-200, 1e-9]))
def test_errors_of_sums_of_two_and_of_three_factors(w, A, B, moved):
    for rows in ([A, B], [A, B, B]):
        bound, error = _largest_error(sums, w, rows, moved)
        assert bound == math.inf or error <= Fraction(bound)


def test_terms_of_weight_0_have_no_error_and_those_without_bound_an_infinite_one():
    lengths = [np.array([np.inf, 1.0, np.nan])] * 2
    found = sums.errors_by_term(np.array([0.0, 1.0, 1.0]), lengths, [np.zeros(3)] * 2, 8, 4)
    assert found[0] == 0.0
    assert found[1] > 0.0
    assert found[2] == np.inf


@settings(deadline=None)
@given(_arrays(3, 2))
def test_error_of_a_gram_matrix(M):
    found, exact = M @ M.T, [[Fraction(float(x)) for x in row] for row in M]
    bound = sums.error_of_gram(M)
    for i, j in product(range(3), repeat=2):
        whole = sum((a * b for a, b in zip(exact[i], exact[j], strict=True)), Fraction())
        off = math.inf
        if np.isfinite(found).all() and bound < math.inf:
            off = abs(whole - Fraction(float(found[i, j])))
            assert off <= Fraction(bound)


def test_errors_of_polynomials_of_numbers_with_errors():
    """Σ c x y z for x, y, z anywhere in intervals, computed from their middles."""
    rng = np.random.default_rng(0)
    mid, c = rng.standard_normal((3, 20)), rng.standard_normal(20)
    mid[:, :5] *= 1e-9
    rad = 1e-14 * rng.random((3, 20))
    a = interval(mid - rad, mid + rad)
    largest = sums.magnitudes(a)
    assert (np.abs(a.mid) <= largest).all()
    assert (a.rad <= sums.RELATIVE_ERROR * largest).all()
    computed = float(np.sum(c * np.prod(a.mid, axis=0)))
    bound = sums.error_of_polynomial(float(np.sum(np.abs(c) * np.prod(largest, axis=0))), 4, 32)
    for ends in (a.lo, a.hi, np.where(rng.random((3, 20)) < 0.5, a.lo, a.hi)):
        exact = sum(
            Fraction(float(w)) * math.prod(Fraction(float(x)) for x in column)
            for w, column in zip(c, ends.T, strict=True)
        )
        assert abs(exact - Fraction(computed)) <= Fraction(bound)


@pytest.mark.parametrize(
    ("old", "new", "case"),
    [
        ("gamma(roundings) * prod", "0.0 * prod", "plain"),
        ("if error.any():", "if False:", "moved"),
        ("32.0 * SMALLEST", "0.0", "tiny"),
    ],
)
def test_a_rule_without_one_of_its_terms_does_not_hold(
    old: str, new: str, case: str, monkeypatch: pytest.MonkeyPatch
):
    source = inspect.getsource(sums)
    assert old in source
    broken = types.ModuleType("broken")
    monkeypatch.setitem(sys.modules, "broken", broken)
    exec(compile(source.replace(old, new), "broken", "exec"), broken.__dict__)
    rng = np.random.default_rng(0)
    size = 1e-162 if case == "tiny" else 1.0
    w, rows = np.ones(40), [size * rng.random((40, N)) + size / 3, size * rng.random((40, N))]
    moved = 0.25 if case == "moved" else 0.0
    for of, holds in ((sums, True), (broken, False)):
        bound, error = _largest_error(of, w, rows, moved)
        assert (error <= Fraction(bound)) == holds
