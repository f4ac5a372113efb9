"""Power series of functions and matrices, against mpmath and NumPy."""

from __future__ import annotations

from collections.abc import Callable
from math import comb, factorial, prod, sqrt

import mpmath
import numpy as np
import pytest

import slomodel.functions as fn
from slomodel.bounds.arithmetic.monomials import monomials
from slomodel.bounds.arithmetic.power_series import PowerSeries, variables
from slomodel.bounds.ranges.power_series.functions import UNARY, power
from slomodel.bounds.ranges.power_series.matrices import matrix_operation
from slomodel.bounds.ranges.power_series.sigmoid_series import log_sum_exp
from slomodel.ir.function import ScalarFunction

DEGREE = 4
EXACT: dict[ScalarFunction, Callable[[mpmath.mpf], mpmath.mpf]] = {
    fn.neg: lambda x: -x,
    fn.square: lambda x: x**2,
    fn.same: lambda x: x,
    fn.exp: mpmath.exp,
    fn.expm1: mpmath.expm1,
    fn.log: mpmath.log,
    fn.log1p: lambda x: mpmath.log(1 + x),
    fn.sqrt: mpmath.sqrt,
    fn.sin: mpmath.sin,
    fn.cos: mpmath.cos,
    fn.tan: mpmath.tan,
    fn.sigmoid: lambda x: 1 / (1 + mpmath.exp(-x)),
    fn.softplus: lambda x: mpmath.log(1 + mpmath.exp(x)),
    fn.tanh: mpmath.tanh,
    fn.logcosh: lambda x: mpmath.log(mpmath.cosh(x)),
    fn.erf: mpmath.erf,
    fn.atan: mpmath.atan,
    fn.lgamma: mpmath.loggamma,
    fn.digamma: mpmath.digamma,
}
GAMMA = {fn.lgamma: -1, fn.digamma: 0}
"""The order of the polygamma function, with log Γ as that of order -1."""
POWERS = (-2.5, -1.0, 0.3, 1.5, 3.0, 7.5)
POSITIVE = (fn.log, fn.log1p, fn.sqrt, fn.lgamma, fn.digamma)


def test_every_series_is_tried() -> None:
    assert set(EXACT) == set(UNARY)


def _holds(
    f: Callable[[mpmath.mpf], mpmath.mpf],
    series: Callable[[PowerSeries], PowerSeries],
    centre: float,
    reach: float,
    gamma: int | None = None,
) -> bool:
    """Whether coefficients, tail and error hold; False where the series is unknown."""
    table = monomials(1, DEGREE)
    with np.errstate(all="ignore"):
        own = series(variables(table, np.array([centre]), np.array([reach])))
    if not np.isfinite(own.norm).all():
        return False
    with mpmath.workdps(40):
        if gamma is None:
            exact = mpmath.taylor(lambda z: f(mpmath.mpf(centre) + reach * z), 0, DEGREE + 8)
        else:
            x, h, counts = mpmath.mpf(centre), mpmath.mpf(reach), range(1, DEGREE + 9)
            rest = (mpmath.psi(gamma + k, x) * h**k / mpmath.factorial(k) for k in counts)
            exact = [f(x), *rest]
        c = own.padded(DEGREE)[:, 0]
        off = sum(abs(mpmath.mpf(float(a)) - b) for a, b in zip(c, exact, strict=False))
        above = sum(abs(b) for b in exact[DEGREE + 1 :])
        assert off <= own.error[0]
        assert above <= own.tail[0] + own.error[0] - off
        # Not far from it either.
        assert own.error[0] <= 1e-9 * (1 + sum(abs(b) for b in exact))
    return True


@pytest.mark.parametrize("function", EXACT, ids=lambda one: one.name)
def test_series_of_functions_hold_all_coefficients(function: ScalarFunction) -> None:
    known = 0
    centres = (0.2, 1.0, 30.0) if function in POSITIVE else (-4.0, 0.0, 0.7)
    for centre in centres:
        for reach in (1e-3, 0.5):
            known += _holds(EXACT[function], UNARY[function], centre, reach, GAMMA.get(function))
    assert known >= 5


@pytest.mark.parametrize("c", POWERS)
def test_series_of_powers_hold_all_coefficients(c: float) -> None:
    known = sum(
        _holds(lambda x: x**c, lambda u: power(u, c), centre, reach)
        for centre in (0.2, 1.0, 5.0)
        for reach in (1e-3, 0.5)
    )
    assert known >= 5


def _norm(exponents: np.ndarray, c: np.ndarray, apart: tuple[int, ...]) -> float:
    """Σ over exponents of the unknowns apart and degrees in the others of (Σ |c|² α!/k!)^½."""
    squares: dict[tuple[int, ...], float] = {}
    for own, one in zip(exponents.tolist(), c.tolist(), strict=True):
        others = [k for i, k in enumerate(own) if i not in apart]
        key = (*(own[i] for i in apart), sum(others))
        size = one**2 * prod(map(factorial, others)) / factorial(sum(others))
        squares[key] = squares.get(key, 0.0) + size
    return sum(sqrt(one) for one in squares.values())


@pytest.mark.parametrize("apart", [(), (1,), (0, 2), (0, 1, 2)])
def test_products_hold_for_an_error_and_a_tail(apart: tuple[int, ...]) -> None:
    """Of (c + t + e)(c' + t' + e'), with all of t and e in one coefficient."""
    table, high = monomials(3, 3, apart), monomials(3, 8)
    low, next_degree = comb(5, 3), comb(7, 3)
    rng = np.random.default_rng(0)
    for _ in range(8):
        pairs = []
        for _ in range(2):
            c = rng.standard_normal(low) * 10.0 ** rng.integers(-90, 1)
            tail, error = rng.random(2) * 10.0 ** rng.integers(-6, 1, 2)
            full = np.zeros(len(high.exponents))
            full[:low] = c
            full[comb(6, 3) + rng.integers(next_degree - comb(6, 3))] += tail
            full[rng.integers(low)] += error
            one = PowerSeries(table, c[:, None], np.array([tail]), np.array([error]))
            assert _norm(high.exponents, full, apart) <= one.norm[0] * (1 + 1e-12)
            assert _norm(high.exponents[:low], c, apart) >= one.by_degree.sum() * 0.999 - 1e-69
            pairs.append((one, full))
        (a, whole), (b, other) = pairs
        exact = np.zeros(len(high.exponents))
        places = high.pairs(4, 4)
        np.add.at(
            exact,
            high.products(places.left, places.right),
            whole[places.left] * other[places.right],
        )
        product = a * b
        count = len(product.c)
        off = _norm(high.exponents[:count], exact[:count] - product.c[:, 0], apart)
        assert off <= product.error[0] + 1e-12
        beyond = _norm(high.exponents[count:], exact[count:], apart)
        assert beyond <= product.tail[0] + product.error[0] - off + 1e-12


@pytest.mark.parametrize("apart", [(), (1,), (0, 1, 2)])
def test_norms_bound_polynomials_over_the_region(apart: tuple[int, ...]) -> None:
    table, rng = monomials(3, 4, apart), np.random.default_rng(1)
    c = rng.standard_normal((len(table.exponents), 5))
    nothing = np.zeros(5)
    norm = PowerSeries(table, c, nothing, nothing).norm
    for _ in range(200):
        z = rng.standard_normal(3)
        others = [i for i in range(3) if i not in apart]
        z[others] /= np.linalg.norm(z[others]) or 1.0
        z[[*apart]] = np.sign(z[[*apart]])
        assert (np.abs(np.prod(z**table.exponents, axis=1) @ c) <= norm).all()
    # (a·z)^4 attains it, a the unit vector along which its unknowns lie.
    one = np.array([0.6, 0.0, 0.8]) if not apart else np.array([1.0, 0.0, 0.0])
    weights = np.array([factorial(4) / prod(map(factorial, row)) for row in table.exponents])
    own = np.where(table.exponents.sum(axis=1) == 4, weights * np.prod(one**table.exponents, 1), 0)
    size = PowerSeries(table, own[:, None], np.zeros(1), np.zeros(1)).norm[0]
    assert 1.0 <= size * (1 + 1e-12) <= 1.001


RNG = np.random.default_rng(3)
S, T = RNG.standard_normal((2, 3, 3))
BASE = np.eye(3) * 3.0 + S @ S.T
B = RNG.standard_normal((3, 2))
OPERATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "cholesky": np.linalg.cholesky,
    "solve": lambda A: np.linalg.solve(A, B),
    "solve_symmetric": lambda A: np.linalg.solve(A, B),
    "solve_lower": lambda A: np.linalg.solve(np.tril(A), B),
    "solve_upper": lambda A: np.linalg.solve(np.triu(A), B),
    "inverse": np.linalg.inv,
    "inverse_posdef": np.linalg.inv,
    "inverse_symmetric": np.linalg.inv,
    "logdet": lambda A: np.linalg.slogdet(A)[1],
    "logdet_posdef": lambda A: np.linalg.slogdet(A)[1],
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_on_matrices_hold_at_every_point(name: str) -> None:
    table = monomials(2, 4, (0, 1))
    symmetric = name.endswith(("posdef", "symmetric")) or name == "cholesky"
    directions = [M + M.T if symmetric else M for M in (S, T)]
    for reach in (1e-3, 0.05, 0.1):
        c = np.stack([BASE, *(reach * M for M in directions)])
        A = PowerSeries(table, c, np.zeros((3, 3)), np.zeros((3, 3)))
        right = PowerSeries(table, B[np.newaxis], np.zeros((3, 2)), np.zeros((3, 2)))
        operands = [A, right] if name.startswith("solve") else [A]
        own = matrix_operation(name, operands)  # type: ignore[arg-type]
        assert np.isfinite(own.norm).all()
        for z in (*RNG.uniform(-1.0, 1.0, (30, 2)), np.array([1.0, -1.0])):
            exact = OPERATIONS[name](np.tensordot(np.array([1.0, *z]), c, 1))
            value = np.tensordot(np.prod(z**table.exponents, axis=1)[: len(own.c)], own.c, 1)
            part = np.abs(z).max() ** 5
            assert (np.abs(value - exact) <= own.tail * part + own.error + 1e-13).all()
        assert (own.tail <= 3.0 * reach**2 * (1.0 + own.norm)).all()


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_hold_far_from_the_centre_with_a_tail_and_an_error(name: str) -> None:
    """Of A + τz⁵ + εz', up to norms of the change beyond 1/4, where inverses are polynomials."""
    table = monomials(2, 4, (0, 1))
    symmetric = name.endswith(("posdef", "symmetric")) or name == "cholesky"
    directions = [M + M.T if symmetric else M for M in (S, T)]
    known, sizes = 0, ((0.1, 1e-3, 1e-3), (0.2, 1e-3, 1e-4), (0.3, 1e-2, 0.0), (0.4, 0.0, 1e-2))
    for reach, tail, error in sizes:
        c = np.stack([BASE, *(reach * M for M in directions)])
        A = PowerSeries(table, c, np.full((3, 3), tail), np.full((3, 3), error))
        right = PowerSeries(table, B[np.newaxis], np.zeros((3, 2)), np.zeros((3, 2)))
        own = matrix_operation(name, [A, right] if name.startswith("solve") else [A])  # type: ignore[arg-type]
        known += bool(np.isfinite(own.norm).all())
        if not np.isfinite(own.norm).all():
            continue
        for z in (*RNG.uniform(-1.0, 1.0, (30, 2)), np.array([1.0, -1.0]), np.array([-1.0, 1.0])):
            moved = tail * z[0] ** 5 + error * z[1]
            exact = OPERATIONS[name](np.tensordot(np.array([1.0, *z]), c, 1) + moved)
            value = np.tensordot(np.prod(z**table.exponents, axis=1)[: len(own.c)], own.c, 1)
            part = np.abs(z).max() ** 5
            assert (np.abs(value - exact) <= own.tail * part + own.error + 1e-13).all()
    assert known >= 2


def test_a_matrix_that_may_be_singular_is_unknown() -> None:
    table = monomials(1, 4)
    c = np.stack([np.diag([1.0, 2.0]), np.diag([1.0, 0.0])])
    A = PowerSeries(table, c, np.zeros((2, 2)), np.zeros((2, 2)))
    for name in ("inverse", "logdet", "cholesky", "det"):
        assert not np.isfinite(matrix_operation(name, [A]).norm).any()  # type: ignore[arg-type]


def test_log_sum_exp_converges_up_to_its_poles() -> None:
    """Of 0, z, 2z - 40, -inf and 3 - z for |z| <= 1.5: as log of a sum it needs |z| < 0.7."""
    table = monomials(1, 8)
    z = variables(table, np.zeros(1), np.array([1.5]))
    shifts = np.array([0.0, 0.0, -40.0, -np.inf, 3.0])
    slopes = np.array([0.0, 1.0, 2.0, 0.0, -1.0])
    u = PowerSeries(
        table,
        np.concatenate([shifts[None], np.outer(z.c[1:, 0], slopes)]),
        np.zeros(5),
        np.zeros(5),
    )
    with np.errstate(all="ignore"):
        own = log_sum_exp(u, (0,))
    assert np.isfinite(own.norm)
    for at in np.linspace(-1.0, 1.0, 9):
        exact = np.log(np.sum(np.exp(shifts + 1.5 * at * slopes)))
        rest = abs(np.polynomial.polynomial.polyval(at, own.c) - exact)
        assert rest <= own.tail * abs(at) ** 9 + own.error + 1e-14
