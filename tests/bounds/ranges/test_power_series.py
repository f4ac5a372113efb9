"""Power series of functions and matrices, against mpmath and NumPy."""

from __future__ import annotations

from collections.abc import Callable
from math import comb

import mpmath
import numpy as np
import pytest

import slomodel.functions as fn
from slomodel.bounds.arithmetic.monomials import monomials
from slomodel.bounds.arithmetic.power_series import PowerSeries, variables
from slomodel.bounds.ranges.power_series.functions import UNARY, power
from slomodel.bounds.ranges.power_series.matrices import matrix_operation
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


def test_products_hold_for_an_error_and_a_tail() -> None:
    """Of (c + t + e)(c' + t' + e'), with all of t and e in one coefficient."""
    table = monomials(2, 3)
    rng = np.random.default_rng(0)
    high = monomials(2, 8)
    for _ in range(20):
        pairs = []
        for _ in range(2):
            c = rng.standard_normal(comb(5, 2))
            tail, error = rng.random(2) * 10.0 ** rng.integers(-6, 1, 2)
            full = np.zeros(len(high.exponents))
            full[: len(c)] = c
            full[comb(5, 2) + rng.integers(5)] += tail
            full[rng.integers(len(c))] += error
            one = PowerSeries(table, c[:, None], np.array([tail]), np.array([error]))
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
        off = np.abs(exact[:count] - product.c[:, 0]).sum()
        assert off <= product.error[0] + 1e-12
        assert np.abs(exact[count:]).sum() <= product.tail[0] + product.error[0] - off + 1e-12


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
    table = monomials(2, 4)
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


def test_a_matrix_that_may_be_singular_is_unknown() -> None:
    table = monomials(1, 4)
    c = np.stack([np.diag([1.0, 2.0]), np.diag([1.0, 0.0])])
    A = PowerSeries(table, c, np.zeros((2, 2)), np.zeros((2, 2)))
    for name in ("inverse", "logdet", "cholesky", "det"):
        assert not np.isfinite(matrix_operation(name, [A]).norm).any()  # type: ignore[arg-type]
