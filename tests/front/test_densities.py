"""The library of log densities: values of SciPy, derivatives in many digits, and its use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray
from scipy import special, stats

import slomodel
from slomodel.cli import main
from slomodel.errors import ShapeError
from slomodel.front.catalogue import entries_of
from slomodel.front.elaboration.functions.library import library
from tests.front.test_densities_of_arrays import OF_ARRAYS

pytestmark = pytest.mark.filterwarnings("ignore::slomodel.ModelWarning")

Array = NDArray[np.float64]
Y = np.array([0.3, 1.7, 0.9])
UNIT = np.array([0.2, 0.7, 0.5])
COUNTS = np.array([0.0, 3.0, 7.0])
BITS = np.array([1.0, 0.0, 1.0])
FAR = np.array([-40.0, 3.0, 60.0])
_poisson, _binomial, _odds = stats.poisson.logpmf, stats.binom.logpmf, special.expit
_logistic = special.log_expit


def _ordered(y: Array, eta: float, c: Array) -> float:
    ends = np.concatenate([[-np.inf], c, [np.inf]])
    upper, lower = special.expit(eta - ends[:-1]), special.expit(eta - ends[1:])
    return float(np.log(upper - lower)[y.astype(int)].sum())


def _probit(y: Array, eta: float, c: Array) -> float:
    ends = np.concatenate([[-np.inf], c, [np.inf]])
    return float(np.log(np.diff(stats.norm.cdf(ends - eta)))[y.astype(int)].sum())


def _dirichlet_multinomial(y: Array, alpha: Array) -> float:
    return float(stats.dirichlet_multinomial(alpha, int(y.sum())).logpmf(y.astype(int)))


def _lognormal(y: Array, sigma: float, scale: float) -> object:
    return stats.lognorm.logpdf(y, sigma, 0, scale)


def _nbinom(y: Array, mean: float, phi: float) -> object:
    return stats.nbinom.logpmf(y, phi, phi / (phi + mean))


def _skew_normal(y: Array, location: float, scale: float) -> object:
    return stats.skewnorm.logpdf(y, 2, location, scale)


def _exp_mod_normal(y: Array, sigma: float, rate: float) -> object:
    return stats.exponnorm.logpdf(y, 1 / (sigma * rate), 0.3, sigma)


def _inverse_chi_square(y: Array, nu: float, sigma: float) -> object:
    """With sigma = 1 the inverse of a chi-squared variable, else nu sigma^2 times that."""
    return stats.invgamma.logpdf(y, nu / 2, 0, nu * sigma**2 / 2 if sigma != 1 else 0.5)


def _beta_of_mean(y: Array, mean: float, kappa: float) -> object:
    return stats.beta.logpdf(y, mean * kappa, (1 - mean) * kappa)


def _beta_binomial(y: Array, alpha: float, beta: float) -> object:
    return stats.betabinom.logpmf(y, 9, alpha, beta)


# call of (y, p, q), the values of y, p and q, SciPy's log density
CASES: list[tuple[str, Array, float, float, Callable[[Array, float, float], object]]] = [
    ("normal_lpdf(y, p, q)", Y, 0.4, 1.3, stats.norm.logpdf),
    ("normal_lpdf(y, p, q)", FAR, 0.4, 1e-3, stats.norm.logpdf),
    ("std_normal_lpdf(y) + 0 * p * q", Y, 0.4, 1.3, lambda y, p, q: stats.norm.logpdf(y)),
    ("normal_lcdf(y, p, q)", FAR, 0.4, 1.3, stats.norm.logcdf),
    ("normal_lccdf(y, p, q)", FAR, 0.4, 1.3, stats.norm.logsf),
    ("student_t_lpdf(y, p, q, 2)", Y, 3.5, 1.3, lambda y, p, q: stats.t.logpdf(y, p, q, 2)),
    ("student_t_lpdf(y, p, q, 2)", Y, 1e8, 1.3, lambda y, p, q: stats.norm.logpdf(y, q, 2)),
    ("cauchy_lpdf(y, p, q)", FAR, 0.4, 1.3, stats.cauchy.logpdf),
    ("laplace_lpdf(y, p, q)", Y, 0.4, 1.3, stats.laplace.logpdf),
    ("double_exponential_lpdf(y, p, q)", Y, 0.4, 1.3, stats.laplace.logpdf),
    ("logistic_lpdf(y, p, q)", 30 * FAR, 0.4, 1.3, stats.logistic.logpdf),
    ("lognormal_lpdf(y, p, q)", Y, 0.4, 1.3, lambda y, p, q: _lognormal(y, q, np.exp(p))),
    ("von_mises_lpdf(y, p, q)", FAR / 20, 0.4, 1.3, lambda y, p, q: stats.vonmises.logpdf(y, q, p)),
    ("von_mises_lpdf(y, p, q)", FAR / 20, 0.4, 90, lambda y, p, q: stats.vonmises.logpdf(y, q, p)),
    ("gamma_lpdf(y, p, q)", Y, 2.4, 1.3, lambda y, p, q: stats.gamma.logpdf(y, p, 0, 1 / q)),
    ("inv_gamma_lpdf(y, p, q)", Y, 2.4, 1.3, lambda y, p, q: stats.invgamma.logpdf(y, p, 0, q)),
    ("beta_lpdf(y, p, q)", UNIT, 2.4, 0.3, stats.beta.logpdf),
    ("beta_lpdf(y, p, q)", UNIT, 2e5, 3e5, stats.beta.logpdf),
    ("exponential_lpdf(y, p) + 0 * q", Y, 2.4, 1, lambda y, p, q: stats.expon.logpdf(y, 0, 1 / p)),
    ("weibull_lpdf(y, p, q)", Y, 2.4, 1.3, lambda y, p, q: stats.weibull_min.logpdf(y, p, 0, q)),
    ("poisson_lpmf(y, p) + 0 * q", COUNTS, 2.4, 1, lambda y, p, q: stats.poisson.logpmf(y, p)),
    ("poisson_log_lpmf(y, p) + 0 * q", COUNTS, 0.4, 1, lambda y, p, q: _poisson(y, np.exp(p))),
    ("bernoulli_lpmf(y, p) + 0 * q", BITS, 0.4, 1, lambda y, p, q: stats.bernoulli.logpmf(y, p)),
    ("bernoulli_logit_lpmf(y, p) + 0 * q", BITS, 50, 1, lambda y, p, q: _logistic(2 * y * p - p)),
    ("binomial_lpmf(y, 9, p) + 0 * q", COUNTS, 0.4, 1, lambda y, p, q: _binomial(y, 9, p)),
    ("binomial_logit_lpmf(y, q, p)", COUNTS, 0.4, 9, lambda y, p, q: _binomial(y, q, _odds(p))),
    ("neg_binomial_2_lpmf(y, p, q)", COUNTS, 2.4, 1.3, _nbinom),
    ("neg_binomial_2_lpmf(y, p, q)", COUNTS, 2.4, 1e9, lambda y, p, q: _poisson(y, p)),
    ("neg_binomial_2_log_lpmf(y, p, q)", COUNTS, 0, 1.3, lambda y, p, q: _nbinom(y, 1.0, q)),
    (
        "skew_normal_lpdf(y, p, q, 2)",
        FAR,
        0.4,
        13,
        lambda y, p, q: stats.skewnorm.logpdf(y, 2, p, q),
    ),
    ("exp_mod_normal_lpdf(y, 0.3, p, q)", Y, 1.3, 0.7, _exp_mod_normal),
    ("logistic_lcdf(y, p, q)", 30 * FAR, 0.4, 1.3, stats.logistic.logcdf),
    ("logistic_lccdf(y, p, q)", 30 * FAR, 0.4, 1.3, stats.logistic.logsf),
    ("gumbel_lpdf(y, p, q)", Y, 0.4, 1.3, stats.gumbel_r.logpdf),
    ("gumbel_lcdf(y, p, q)", Y, 0.4, 1.3, stats.gumbel_r.logcdf),
    ("gumbel_lccdf(y, p, q)", 3 * Y, 0.4, 1.3, stats.gumbel_r.logsf),
    ("lognormal_lcdf(y, p, q)", Y, 0.4, 1.3, lambda y, p, q: stats.norm.logcdf(np.log(y), p, q)),
    ("lognormal_lccdf(y, p, q)", Y, 0.4, 1.3, lambda y, p, q: stats.norm.logsf(np.log(y), p, q)),
    ("chi_square_lpdf(y, p) + 0 * q", Y, 2.4, 1, lambda y, p, q: stats.chi2.logpdf(y, p)),
    ("inv_chi_square_lpdf(y, p) + 0 * q", Y, 2.4, 1, _inverse_chi_square),
    ("scaled_inv_chi_square_lpdf(y, p, q)", Y, 2.4, 1.3, _inverse_chi_square),
    ("beta_proportion_lpdf(y, p, q)", UNIT, 0.4, 7, _beta_of_mean),
    ("exponential_lcdf(y, p) + 0 * q", Y, 2.4, 1, lambda y, p, q: stats.expon.logcdf(y, 0, 1 / p)),
    ("exponential_lccdf(y, p) + 0 * q", Y, 2.4, 1, lambda y, p, q: stats.expon.logsf(y, 0, 1 / p)),
    ("pareto_lpdf(y, p, q)", Y, 0.2, 1.3, lambda y, p, q: stats.pareto.logpdf(y, q, 0, p)),
    ("rayleigh_lpdf(y, p) + 0 * q", Y, 2.4, 1, lambda y, p, q: stats.rayleigh.logpdf(y, 0, p)),
    ("weibull_lcdf(y, p, q)", Y, 2.4, 1.3, lambda y, p, q: stats.weibull_min.logcdf(y, p, 0, q)),
    ("weibull_lccdf(y, p, q)", Y, 2.4, 1.3, lambda y, p, q: stats.weibull_min.logsf(y, p, 0, q)),
    ("frechet_lpdf(y, p, q)", Y, 2.4, 1.3, lambda y, p, q: stats.invweibull.logpdf(y, p, 0, q)),
    ("loglogistic_lpdf(y, p, q)", Y, 2.4, 1.3, lambda y, p, q: stats.fisk.logpdf(y, q, 0, p)),
    ("beta_binomial_lpmf(y, 9, p, q)", COUNTS, 2.4, 1.3, _beta_binomial),
    ("neg_binomial_lpmf(y, p, q)", COUNTS, 2.4, 1.3, lambda y, p, q: _nbinom(y, p / q, p)),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("call", "y", "p", "q", "expected"), CASES)
def test_value_is_that_of_scipy(
    call: str, y: Array, p: float, q: float, expected: Callable[[Array, float, float], object]
) -> None:
    """Of an array, and summed over its elements; far parameters to what SciPy's formula allows."""
    want = float(np.sum(expected(y, p, q)))
    for text in (call, f"sum({call.replace('y,', 'y[i],').replace('(y)', '(y[i])')} for i in n)"):
        model = slomodel.compile(
            f"dim n data y[n] var p, q maximize {text}", data={"y": y}, backend="numpy"
        )
        assert model.value([p, q]) == pytest.approx(want, rel=1e-8 if p > 1e4 or q > 1e4 else 1e-12)


def test_densities_of_vectors_and_categories() -> None:
    theta, alpha = np.array([0.2, 0.5, 0.3]), np.array([0.5, 2.0, 3.5])
    counts = np.array([3.0, 0.0, 2.0])
    y = np.array([0.0, 2.0, 1.0, 2.0, 0.0])
    for text, x, want in (
        ("dirichlet_lpdf(x, a)", theta, stats.dirichlet.logpdf(theta, alpha)),
        ("dirichlet_lpdf(x, 2.5)", theta, stats.dirichlet.logpdf(theta, [2.5] * 3)),
        ("multinomial_lpmf(c, x)", theta, stats.multinomial.logpmf(counts, 5, theta)),
        ("dirichlet_multinomial_lpmf(c, x)", alpha, _dirichlet_multinomial(counts, alpha)),
        ("categorical_lpmf(y, x)", theta, np.log(theta)[y.astype(int)].sum()),
        ("ordered_probit_lpmf(y, 0.7, x[:2])", alpha, _probit(y, 0.7, alpha[:2])),
        ("log_mix(x[1], x[0], -x[2])", theta, np.log(0.5 * np.exp(0.2) + 0.5 * np.exp(-0.3))),
        ("categorical_logit_lpmf(y, x)", alpha, special.log_softmax(alpha)[y.astype(int)].sum()),
        ("ordered_logistic_lpmf(y, 0.7, x[:2])", alpha, _ordered(y, 0.7, alpha[:2])),
        (
            "sum(ordered_logistic_lpmf(y[j], y[j] / 2, x[:2]) for j in m)",
            alpha,
            sum(_ordered(np.array([one]), one / 2, alpha[:2]) for one in y),
        ),
    ):
        declared = "dim k = 3, m data a[k], c[k], y[m] in k var x[k] maximize "
        data = {"a": alpha, "c": counts, "y": y}
        for backend in ("numpy", "c") if text.startswith("ordered") else ("numpy",):
            model = slomodel.compile(declared + text, data=data, backend=backend)
            assert model.value(x) == pytest.approx(float(want), rel=1e-13)
            assert np.isfinite(model.gradient(x)).all()


def test_densities_of_vectors_with_matrices() -> None:
    rng = np.random.default_rng(0)
    B, y, m = rng.normal(size=(3, 3)), rng.normal(size=3), rng.normal(size=3)
    S = B @ B.T + np.eye(3)
    R = S / np.sqrt(np.outer(np.diag(S), np.diag(S)))
    data = {"S": S, "P": np.linalg.inv(S), "L": np.linalg.cholesky(S), "R": R, "m": m}
    normal = stats.multivariate_normal(m, S).logpdf
    student = stats.multivariate_t(m, S, 4.5).logpdf
    # The density of a correlation matrix, times the derivative of R by the elements of its factor.
    factor = np.linalg.cholesky(R)
    volume = np.log(np.diag(factor)) @ (2 - np.arange(3))
    for text, want in (
        (
            "horseshoe_lpdf(y, exp(m), 2)",
            np.sum(stats.norm.logpdf(y, 0, 2 * np.exp(m)) + stats.halfcauchy.logpdf(np.exp(m))),
        ),
        ("multi_normal_lpdf(y, m, S)", normal(y)),
        ("multi_normal_lpdf(y, 0, S) - multi_normal_lpdf(y, zeros(3), S)", 0.0),
        ("multi_normal_cholesky_lpdf(y, m, L)", normal(y)),
        ("multi_normal_prec_lpdf(y, m, P)", normal(y)),
        ("multi_student_t_lpdf(y, 4.5, m, S)", student(y)),
        ("sum(multi_normal_lpdf(y * i, m, S) for i in 4)", sum(normal(y * i) for i in range(4))),
        ("lkj_corr_cholesky_lpdf(cholesky(R), 1) + 0 * y[0]", volume + np.log(2 / np.pi**2)),
        ("lkj_corr_lpdf(R, 1) + 0 * y[0]", np.log(2 / np.pi**2)),
        ("wishart_lpdf(S, 4.5, P) + 0 * y[0]", stats.wishart.logpdf(S, 4.5, data["P"])),
        ("inv_wishart_lpdf(S, 4.5, P) + 0 * y[0]", stats.invwishart.logpdf(S, 4.5, data["P"])),
    ):
        declared = "data S[3, 3] symmetric, P[3, 3], L[3, 3], R[3, 3], m[3] var y[3] maximize "
        model = slomodel.compile(declared + text, data=data, backend="numpy")
        assert model.value(y) == pytest.approx(float(want), rel=1e-12)
        assert np.isfinite(model.gradient(y)).all()


def test_densities_of_linear_predictors() -> None:
    X, b = np.array([[1.0, 0.5], [-2.0, 0.3], [0.0, 4.0]]), np.array([0.4, 0.7])
    eta = 0.3 + X @ b
    for name, y, want in (
        ("poisson_log_glm_lpmf", COUNTS, stats.poisson.logpmf(COUNTS, np.exp(eta))),
        ("bernoulli_logit_glm_lpmf", BITS, stats.bernoulli.logpmf(BITS, special.expit(eta))),
    ):
        text = f"dim N, p data X[N, p], y[N] var b[p] maximize {name}(y, X, 0.3, b)"
        model = slomodel.compile(text, data={"X": X, "y": y}, backend="numpy")
        assert model.value(b) == pytest.approx(float(want.sum()), rel=1e-12)


def test_every_density_is_compared_with_scipy() -> None:
    """Its name is called in the tests above."""
    above, _ = Path(__file__).read_text(encoding="utf-8").split("\nFORMULAS")
    suffixes = ("_lpdf", "_lpmf", "_lcdf", "_lccdf")
    missing = {name for name in library() if name.endswith(suffixes) and f"{name}(" not in above}
    assert missing == {"poisson_log_glm_lpmf", "bernoulli_logit_glm_lpmf"}, "named without a call"
    assert all(f'"{name}", ' in above for name in missing)


# The density of one number as its formula says, in mpmath.
FORMULAS: dict[str, Callable[..., object]] = {
    "normal_lpdf": lambda y, m, s: mp.log(mp.npdf(y, m, s)),
    "student_t_lpdf": lambda y, v, m, s: mp.log(
        mp.gamma((v + 1) / 2) / mp.gamma(v / 2) / mp.sqrt(v * mp.pi) / s
        * (1 + ((y - m) / s) ** 2 / v) ** (-(v + 1) / 2)
    ),
    "cauchy_lpdf": lambda y, m, s: -mp.log(mp.pi * s * (1 + ((y - m) / s) ** 2)),
    "logistic_lpdf": lambda y, m, s: mp.log(mp.sech((y - m) / s / 2) ** 2 / 4 / s),
    "lognormal_lpdf": lambda y, m, s: mp.log(mp.npdf(mp.log(y), m, s) / y),
    "gamma_lpdf": lambda y, a, b: mp.log(b**a / mp.gamma(a) * y ** (a - 1) * mp.exp(-b * y)),
    "inv_gamma_lpdf": lambda y, a, b: mp.log(b**a / mp.gamma(a) * y ** (-a - 1) * mp.exp(-b / y)),
    "beta_lpdf": lambda y, a, b: mp.log(y ** (a - 1) * (1 - y) ** (b - 1) / mp.beta(a, b)),
    "exponential_lpdf": lambda y, b: mp.log(b * mp.exp(-b * y)),
    "weibull_lpdf": lambda y, a, s: mp.log(a / s * (y / s) ** (a - 1) * mp.exp(-((y / s) ** a))),
    "neg_binomial_2_log_lpmf": lambda n, e, v: mp.log(
        mp.binomial(n + v - 1, n) * (mp.exp(e) / (mp.exp(e) + v)) ** n * (v / (mp.exp(e) + v)) ** v
    ),
    "normal_lcdf": lambda y, m, s: mp.log(mp.ncdf((y - m) / s)),
    "normal_lccdf": lambda y, m, s: mp.log(mp.ncdf((m - y) / s)),
    "std_normal_lpdf": lambda y: mp.log(mp.npdf(y)),
    "laplace_lpdf": lambda y, m, s: mp.log(mp.exp(-abs(y - m) / s) / (2 * s)),
    "double_exponential_lpdf": lambda y, m, s: mp.log(mp.exp(-abs(y - m) / s) / (2 * s)),
    "von_mises_lpdf": lambda y, m, k: mp.log(
        mp.exp(k * mp.cos(y - m)) / (2 * mp.pi * mp.besseli(0, k))
    ),
    "horseshoe_lpdf": lambda b, s, t: mp.log(mp.npdf(b, 0, s * t) * 2 / mp.pi / (1 + s**2)),
    "poisson_lpmf": lambda n, r: mp.log(r**n * mp.exp(-r) / mp.gamma(n + 1)),
    "poisson_log_lpmf": lambda n, a: n * a - mp.exp(a) - mp.loggamma(n + 1),
    "bernoulli_lpmf": lambda y, p: y * mp.log(p) + (1 - y) * mp.log(1 - p),
    "bernoulli_logit_lpmf": lambda y, a: -mp.log(1 + mp.exp((1 - 2 * y) * a)),
    "binomial_lpmf": lambda n, k, p: mp.log(mp.binomial(k, n) * p**n * (1 - p) ** (k - n)),
    "neg_binomial_2_lpmf": lambda n, m, v: mp.log(
        mp.binomial(n + v - 1, n) * (m / (m + v)) ** n * (v / (m + v)) ** v
    ),
    "lchoose": lambda k, n: mp.log(mp.binomial(k, n)),
    "binomial_logit_lpmf": lambda n, k, a: mp.log(
        mp.binomial(k, n) * mp.exp(a * n) / (1 + mp.exp(a)) ** k
    ),
    "log_diff_exp": lambda a, b: mp.log(mp.exp(a) - mp.exp(b)),
    "log_inv_logit": lambda x: -mp.log(1 + mp.exp(-x)),
    "log1m_inv_logit": lambda x: -mp.log(1 + mp.exp(x)),
    "cloglog": lambda p: mp.log(-mp.log(1 - p)),
    "inv_cloglog": lambda x: 1 - mp.exp(-mp.exp(x)),
    "log_mix": lambda t, a, b: mp.log(t * mp.exp(a) + (1 - t) * mp.exp(b)),
    "skew_normal_lpdf": lambda y, x, o, a: mp.log(
        2 * mp.npdf(y, x, o) * mp.ncdf(a * (y - x) / o)
    ),
    "exp_mod_normal_lpdf": lambda y, m, s, r: mp.log(
        r / 2 * mp.exp(r / 2 * (2 * m + r * s**2 - 2 * y))
        * mp.erfc((m + r * s**2 - y) / (mp.sqrt(2) * s))
    ),
    "logistic_lcdf": lambda y, m, s: -mp.log(1 + mp.exp((m - y) / s)),
    "logistic_lccdf": lambda y, m, s: -mp.log(1 + mp.exp((y - m) / s)),
    "gumbel_lpdf": lambda y, m, b: mp.log(mp.exp((m - y) / b - mp.exp((m - y) / b)) / b),
    "gumbel_lcdf": lambda y, m, b: mp.log(mp.exp(-mp.exp((m - y) / b))),
    "gumbel_lccdf": lambda y, m, b: mp.log(1 - mp.exp(-mp.exp((m - y) / b))),
    "lognormal_lcdf": lambda y, m, s: mp.log(mp.ncdf((mp.log(y) - m) / s)),
    "lognormal_lccdf": lambda y, m, s: mp.log(mp.ncdf((m - mp.log(y)) / s)),
    "chi_square_lpdf": lambda y, v: mp.log(
        y ** (v / 2 - 1) * mp.exp(-y / 2) / 2 ** (v / 2) / mp.gamma(v / 2)
    ),
    "inv_chi_square_lpdf": lambda y, v: mp.log(
        y ** (-v / 2 - 1) * mp.exp(-1 / (2 * y)) / 2 ** (v / 2) / mp.gamma(v / 2)
    ),
    "scaled_inv_chi_square_lpdf": lambda y, v, s: mp.log(
        (v / 2) ** (v / 2) / mp.gamma(v / 2) * s**v * y ** (-v / 2 - 1)
        * mp.exp(-v * s**2 / (2 * y))
    ),
    "beta_proportion_lpdf": lambda y, m, k: mp.log(
        y ** (m * k - 1) * (1 - y) ** ((1 - m) * k - 1) / mp.beta(m * k, (1 - m) * k)
    ),
    "exponential_lcdf": lambda y, b: mp.log(1 - mp.exp(-b * y)),
    "exponential_lccdf": lambda y, b: mp.log(mp.exp(-b * y)),
    "pareto_lpdf": lambda y, m, a: mp.log(a * m**a / y ** (a + 1)),
    "rayleigh_lpdf": lambda y, s: mp.log(y / s**2 * mp.exp(-(y**2) / (2 * s**2))),
    "weibull_lcdf": lambda y, a, s: mp.log(1 - mp.exp(-((y / s) ** a))),
    "weibull_lccdf": lambda y, a, s: mp.log(mp.exp(-((y / s) ** a))),
    "frechet_lpdf": lambda y, a, s: mp.log(
        a / s * (y / s) ** (-1 - a) * mp.exp(-((y / s) ** -a))
    ),
    "loglogistic_lpdf": lambda y, a, b: mp.log(
        b / a * (y / a) ** (b - 1) / (1 + (y / a) ** b) ** 2
    ),
    "beta_binomial_lpmf": lambda n, k, a, b: mp.log(
        mp.binomial(k, n) * mp.beta(n + a, k - n + b) / mp.beta(a, b)
    ),
    "neg_binomial_lpmf": lambda n, a, b: mp.log(
        mp.binomial(n + a - 1, n) * (b / (b + 1)) ** a / (b + 1) ** n
    ),
}  # fmt: skip


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", FORMULAS)
def test_derivatives_by_all_arguments(name: str) -> None:
    formula = FORMULAS[name]
    parameters = [one.name.text for one in library()[name].fn.parameters]
    point = [0.6, 1.4, 0.8, 1.1][: len(parameters)]
    if "binomial_l" in name and "neg" not in name:
        point = [2.3, 5.2, *point[2:]]
    elif name == "beta_proportion_lpdf":
        point = [0.6, 0.4, 1.1]
    elif name in ("bernoulli_lpmf", "lchoose", "log_diff_exp"):
        point = [0.6, 0.4]
    names = ", ".join(f"v{k}" for k in range(len(point)))
    model = slomodel.compile(f"var {names} maximize {name}({names})", backend="numpy")
    with mp.workdps(40):
        exact = [mp.mpf(x) for x in point]
        assert model.value(point) == pytest.approx(float(formula(*exact)), rel=1e-13)
        slopes = [
            float(mp.diff(formula, tuple(exact), tuple(int(j == k) for j in range(len(point)))))
            for k in range(len(point))
        ]
    np.testing.assert_allclose(model.gradient(point), slopes, rtol=1e-12, atol=1e-13)


def test_names_of_the_model_do_not_matter_to_the_library() -> None:
    names = "k, i, n, a, weight, constant, powers, gap, first, last"
    text = f"var {names} var L[2, 2], t[2] data eta = 2 maximize "
    text += "lkj_corr_cholesky_lpdf(L, eta) + dirichlet_lpdf(t, eta)"
    model = slomodel.compile(text)
    other = slomodel.compile(f"var L[2, 2], t[2] data eta = 2 maximize {text.split('maximize')[1]}")
    x = np.array([1.0, 0.0, 0.3, 0.9, 0.4, 0.6])
    assert model.value([*np.zeros(10), *x]) == other.value(x)


def test_every_density_is_compared_with_its_formula() -> None:
    called = {text.partition("(")[0] for text, _ in OF_ARRAYS}
    called |= {"categorical_logit_lpmf", "categorical_lpmf"}
    assert set(library()) <= called | set(FORMULAS)


def test_every_density_is_on_the_page_of_functions() -> None:
    page = (Path(__file__).parents[2] / "grammar" / "functions.md").read_text(encoding="utf-8")
    assert [name for name in library() if f"`{name}`" not in page] == []


def test_a_model_uses_its_own_function_of_the_same_name() -> None:
    model = slomodel.compile("var x fn normal_lpdf(t) = t^2 minimize normal_lpdf(x)")
    assert model.value([3.0]) == 9.0
    data = slomodel.compile("data cauchy_lpdf = 2 var x minimize cauchy_lpdf * x^2")
    assert data.value([3.0]) == 18.0


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("minimize normal_lpfd(x, 0, 1)", "E203", "did you mean `normal_lpdf`?"),
        ("minimize normal_lpdf(x, 0)", "E208", "it is `normal_lpdf(y[...], mu[...], sigma[...])`"),
        ("minimize normal_lpdf(x, [1, 2], 1)", "E220", "does not accept these arguments"),
        ("minimize normal_lpdf(z, 0, 1)", "E201", "unknown name `z`"),
        ("minimize dirichlet_lpdf(x, [1, 2])", "E220", "does not accept these arguments"),
    ],
)
def test_messages_point_to_the_call(text: str, code: str, words: str) -> None:
    with pytest.raises(slomodel.SlomodelError) as caught:
        slomodel.compile(f"var x[3] {text}")
    (found,) = caught.value.diagnostics
    assert found.code == code
    assert words in str(caught.value)
    assert "<model>:1:" in str(caught.value)
    assert "densities.slo" not in str(caught.value)


def test_bounds_are_finite_and_speak_of_the_call() -> None:
    model = slomodel.compile("var m, s\nminimize\n  -normal_lpdf(1.5, m, s)")
    assert np.isfinite(model.bounds([0.0, 2.0], 0.5).L2)
    assert "in line 3" in model.bounds([0.0, 0.1], 0.5).gradient.reason


def test_the_command_line_shows_a_density() -> None:
    told = CliRunner().invoke(main, ["functions", "normal_lpdf"]).stdout
    assert told.startswith("normal_lpdf(y[...], mu[...], sigma[...])\n  normal density")
    assert "fn normal_lpdf(y[...], mu[...], sigma[...]) = -sum(" in told
    listed = CliRunner().invoke(main, ["functions"]).stdout
    assert all(name in listed for name in library())


@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_a_density_is_summed_already(reduction: str) -> None:
    text = f"dim n\ndata y[n]\nvar s > 0, mu\nmaximize {reduction}(normal_lpdf(y, mu, s))"
    with pytest.raises(ShapeError, match=f"`normal_lpdf` is summed.* leave `{reduction}` out"):
        slomodel.compile(text)


def test_every_name_that_is_one_letter_away_is_offered() -> None:
    with pytest.raises(slomodel.SlomodelError) as caught:
        slomodel.compile("data y[3] var k > 0 maximize weibull_lcddf(y, k, 1)")
    assert "did you mean `weibull_lcdf` or `weibull_lccdf`?" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "meant"), [("weibull", "weibull_lpdf"), ("poisson", "poisson_lpmf")]
)
def test_the_name_of_a_distribution_is_completed(name: str, meant: str) -> None:
    with pytest.raises(slomodel.SlomodelError, match=f"did you mean `{meant}`"):
        entries_of(name)
    with pytest.raises(slomodel.SlomodelError, match=f"did you mean `{meant}`"):
        slomodel.compile(f"data y var a > 0 maximize {name}(y, a)")


@pytest.mark.parametrize(
    ("call", "p", "q", "formula"),
    [
        ("beta_binomial_lpmf(2, 5, p, q)", 1e8, 1e8, lambda p, q: _of_beta_binomial(2, 5, p, q)),
        ("beta_binomial_lpmf(2, 5, p, q)", 1e8, 3.0, lambda p, q: _of_beta_binomial(2, 5, p, q)),
        (
            "neg_binomial_2_lpmf(4, p, q)",
            3.0,
            1e10,
            lambda p, q: (
                mp.log(mp.rf(q, 4) / 24) + 4 * mp.log(p / (p + q)) + q * mp.log(q / (p + q))
            ),
        ),
        (
            "student_t_lpdf(1.5, q, 0, p)",
            1.3,
            1e9,
            lambda p, q: (
                mp.loggamma((q + 1) / 2)
                - mp.loggamma(q / 2)
                - mp.log(q * mp.pi * p * p) / 2
                - (q + 1) / 2 * mp.log1p((mp.mpf(1.5) / p) ** 2 / q)
            ),
        ),
    ],
)
def test_large_shapes(call: str, p: float, q: float, formula: Callable[..., object]) -> None:
    """Near the binomial, Poisson and normal limits the terms are large and the value is not."""
    model = slomodel.compile(f"var p, q maximize {call}", backend="numpy")
    with mp.workdps(50):
        exact = float(formula(mp.mpf(p), mp.mpf(q)))  # type: ignore[arg-type]
    assert model.value([p, q]) == pytest.approx(exact, rel=1e-12)


def _of_beta_binomial(n: int, total: int, p: mp.mpf, q: mp.mpf) -> object:
    both = mp.rf(p, n) * mp.rf(q, total - n) / mp.rf(p + q, total)
    return mp.log(mp.binomial(total, n) * both)
