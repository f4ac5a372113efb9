"""Certificates of spectral norms: never below a norm of 50 digits, tight, no overflow."""

import mpmath
import numpy as np
import pytest

from slomodel.bounds.norms.spectral_norm import (
    cholesky_norm,
    collatz,
    gram_cholesky,
    spectral_norm,
    stack_norm,
    symmetric_norm,
)

SYMMETRIC = (cholesky_norm, gram_cholesky, collatz, spectral_norm)
GENERAL = (gram_cholesky, collatz, spectral_norm)


def exact_norm(A):
    """‖A‖₂ with 50 digits: the root of the largest eigenvalue of AᵀA."""
    with mpmath.workdps(50):
        M = mpmath.matrix(A.tolist())
        return mpmath.sqrt(max(mpmath.eigsy(M.T * M, eigvals_only=True)))


def random_matrices(rng, count=12):
    for k in range(count):
        m, n = rng.integers(1, 9, 2)
        A = rng.standard_normal((m, n))
        yield A @ A.T if k % 3 == 0 else A * 10.0 ** rng.integers(-3, 3, (m, n))


@pytest.mark.parametrize("certificate", GENERAL)
def test_no_certificate_is_below_the_norm(certificate):
    for A in random_matrices(np.random.default_rng(1)):
        assert mpmath.mpf(certificate(A)) >= exact_norm(A)


def test_cholesky_is_not_below_the_norm_of_indefinite_matrices():
    rng = np.random.default_rng(2)
    for _ in range(8):
        A = rng.standard_normal((7, 7))
        H = A + A.T
        assert mpmath.mpf(cholesky_norm(H)) >= exact_norm(H)
        assert cholesky_norm(H) <= float(exact_norm(H)) * (1 + 2e-6)


@pytest.mark.parametrize("certificate", SYMMETRIC)
@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1.0, 1e200, 1e300])
def test_scales_by_powers_of_two(certificate, scale):
    H = np.array([[2.0, 1.0], [1.0, 2.0]]) * scale
    assert mpmath.mpf(certificate(H)) >= exact_norm(H)
    assert certificate(H) <= 3 * scale * 1.1


def test_sharpness_by_size():
    rng = np.random.default_rng(3)
    for n, most in ((30, 1e-12), (100, 1e-11), (220, 1e-5)):
        A = rng.standard_normal((n, n))
        H = A + A.T
        assert 1.0 <= spectral_norm(H) / np.linalg.norm(H, 2) * (1 + 1e-13) <= 1 + most
    A = rng.standard_normal((40, 70))
    assert spectral_norm(A) <= np.linalg.norm(A, 2) * (1 + 1e-12)
    B = rng.standard_normal((260, 400))
    assert 1.0 <= spectral_norm(B) / np.linalg.norm(B, 2) <= 1.0001


@pytest.mark.parametrize("shape", [(170, 170), (200, 900), (400, 300)])
def test_the_gram_certificate_is_tight_for_one_large_value_and_for_none(shape):
    rng = np.random.default_rng(6)
    noise = rng.standard_normal(shape)
    spike = np.multiply.outer(rng.standard_normal(shape[0]), rng.standard_normal(shape[1]))
    for A in (noise, noise + spike, noise * 1e200, np.linalg.qr(noise)[0]):
        assert 1.0 - 1e-15 <= gram_cholesky(A) / np.linalg.norm(A, 2) <= 1.0001


def test_collatz_is_sharp_for_positive_matrices():
    A = np.random.default_rng(4).uniform(0, 1, (50, 30))
    assert np.linalg.norm(A, 2) * (1 - 1e-14) <= collatz(A, 20) <= np.linalg.norm(A, 2) * 1.000001


def test_what_is_not_finite_has_no_bound_and_zero_has_zero():
    for certificate in SYMMETRIC:
        assert certificate(np.array([[1.0, np.nan], [np.nan, 1.0]])) == np.inf
        assert certificate(np.array([[1.0, np.inf], [np.inf, 1.0]])) == np.inf
        assert certificate(np.zeros((3, 3))) == 0.0
    assert spectral_norm(np.zeros((0, 3))) == 0.0


def test_stack_bounds_each_matrix():
    rng = np.random.default_rng(5)
    A = rng.standard_normal((4, 3, 6)) * np.array([1e-200, 1.0, 1e100, 0.0])[:, None, None]
    for one, bound in zip(A, stack_norm(A), strict=True):
        assert mpmath.mpf(float(bound)) >= exact_norm(one)
        assert bound <= float(exact_norm(one)) * (1 + 1e-13)
    A[1, 0, 0] = np.nan
    assert np.isinf(stack_norm(A)).tolist() == [False, True, False, False]


def test_symmetric_norm_covers_the_radius():
    """[[0, 1], [1, 0]] within 0.5: the largest norm in the set is 1.5 + 0.5."""
    mid, rad = np.array([[0.0, 1.0], [1.0, 0.0]]), np.full((2, 2), 0.5)
    assert 2.0 <= symmetric_norm(mid, rad) <= 2.0 + 1e-12
    assert symmetric_norm(mid, np.full((2, 2), np.inf)) == np.inf
