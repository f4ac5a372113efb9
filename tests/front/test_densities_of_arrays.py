"""Log densities of vectors and matrices, and of categories: values and slopes in many digits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import mpmath as mp
import numpy as np
import pytest

import slomodel

pytestmark = pytest.mark.filterwarnings("ignore::slomodel.ModelWarning")


def _matrix(x: Sequence[object]) -> mp.matrix:
    """[[x_0 + 2, x_1], [x_1, x_2 + 3]]."""
    return mp.matrix([[x[0] + 2, x[1]], [x[1], x[2] + 3]])


def _normal_of(*x: object) -> object:
    r, S = mp.matrix([x[3] - x[5], x[4] - x[5]]), _matrix(x)
    return -((r.T * S**-1 * r)[0] + mp.log(mp.det(S))) / 2 - mp.log(2 * mp.pi)


def _precision_of(*x: object) -> object:
    r, P = mp.matrix([x[3] - x[5], x[4] - x[5]]), _matrix(x)
    return -((r.T * P * r)[0] - mp.log(mp.det(P))) / 2 - mp.log(2 * mp.pi)


def _student_of(*x: object) -> object:
    r, S, nu = mp.matrix([x[3], x[4]]), _matrix(x), x[5] + 4
    gap = mp.loggamma(nu / 2 + 1) - mp.loggamma(nu / 2) - mp.log(nu * mp.pi)
    return gap - mp.log(mp.det(S)) / 2 - (nu / 2 + 1) * mp.log(1 + (r.T * S**-1 * r)[0] / nu)


def _factor_of(*x: object) -> object:
    z = (x[3] - x[5]) / (x[0] + 2)
    w = (x[4] - x[5] - x[1] * z) / (x[2] + 3)
    return -(z * z + w * w) / 2 - mp.log((x[0] + 2) * (x[2] + 3)) - mp.log(2 * mp.pi)


def _lkj_of(*x: object) -> object:
    eta = x[5] + 2
    beta = mp.loggamma(eta) + mp.loggamma(eta) - mp.loggamma(2 * eta)
    logs = (2 * eta - 1) * mp.log((x[0] + 2) / 2) + (2 * eta - 2) * mp.log(x[2] + 3)
    return logs - beta


def _ordered_of(*x: object) -> object:
    def above(c: object) -> object:
        return 1 / (1 + mp.exp(c - x[3]))

    ends = [mp.mpf(1), *(above(c) for c in (x[0], x[1] + 1, x[2] + 2)), mp.mpf(0)]
    return sum(mp.log(ends[k] - ends[k + 1]) for k in range(4))


def _above(x: object, c: object) -> object:
    return mp.ncdf(x - c)


def _probit_of(*x: object) -> object:
    above = [_above(x[3], c) for c in (x[0], x[1] + 1, x[2] + 2)]
    ends = [mp.mpf(1), *above, mp.mpf(0)]
    return sum(mp.log(ends[k] - ends[k + 1]) for k in range(4))


def _lkj_of_matrix(*x: object) -> object:
    eta = x[5] + 2
    beta = mp.log(mp.beta(eta, mp.mpf(1) / 2))
    return (eta - 1) * mp.log(mp.det(_matrix(x))) - beta


def _gammas(nu: object) -> object:
    """log of the gamma function of 2 by 2 matrices at nu/2."""
    return mp.log(mp.pi) / 2 + mp.loggamma(nu / 2) + mp.loggamma((nu - 1) / 2)


def _wishart_of(*x: object) -> object:
    W, nu, V = _matrix(x), x[5] + 4, mp.matrix([[2, x[3]], [x[3], 3]])
    trace = V**-1 * W
    powers = (nu - 3) * mp.log(mp.det(W)) - nu * mp.log(mp.det(V)) - trace[0, 0] - trace[1, 1]
    return powers / 2 - nu * mp.log(2) - _gammas(nu)


def _inv_wishart_of(*x: object) -> object:
    W, nu, V = _matrix(x), x[5] + 4, mp.matrix([[2, x[3]], [x[3], 3]])
    trace = W**-1 * V
    powers = nu * mp.log(mp.det(V)) - (nu + 3) * mp.log(mp.det(W)) - trace[0, 0] - trace[1, 1]
    return powers / 2 - nu * mp.log(2) - _gammas(nu)


def _poisson_glm_of(*x: object) -> object:
    eta = [x[2] + i * x[0] + x[1] for i in range(4)]
    return sum(i * e - mp.exp(e) - mp.loggamma(i + 1) for i, e in enumerate(eta))


def _logit_glm_of(*x: object) -> object:
    eta = [x[2] + i * x[0] + x[1] for i in range(4)]
    return sum(-mp.log(1 + mp.exp(-e if i else e)) for i, e in zip((0, 1, 1, 1), eta, strict=True))


def _dirichlet_multinomial_of(*x: object) -> object:
    n, a = [mp.exp(one) for one in x[:3]], [mp.exp(one) for one in x[3:]]
    total = mp.gamma(sum(n) + 1) * mp.gamma(sum(a)) / mp.gamma(sum(n) + sum(a))
    each = (mp.gamma(k + b) / mp.gamma(b) / mp.gamma(k + 1) for k, b in zip(n, a, strict=True))
    return mp.log(total) + sum(map(mp.log, each))


S, L = "[[x[0] + 2, x[1]], [x[1], x[2] + 3]]", "[[x[0] + 2, 0], [x[1], x[2] + 3]]"
OF_ARRAYS: list[tuple[str, Callable[..., object]]] = [
    (f"multi_normal_lpdf(x[3:5], x[5], {S})", _normal_of),
    (f"multi_normal_prec_lpdf(x[3:5], x[5], {S})", _precision_of),
    (f"multi_normal_cholesky_lpdf(x[3:5], x[5], {L})", _factor_of),
    (f"multi_student_t_lpdf(x[3:5], x[5] + 4, 0, {S})", _student_of),
    (f"lkj_corr_cholesky_lpdf({L}, x[5] + 2)", _lkj_of),
    (
        "dirichlet_lpdf(exp(x[:3]), exp(x[3:]))",
        lambda *x: (
            mp.loggamma(sum(map(mp.exp, x[3:])))
            + sum(
                (mp.exp(a) - 1) * t - mp.loggamma(mp.exp(a))
                for t, a in zip(x[:3], x[3:], strict=True)
            )
        ),
    ),
    (
        "multinomial_lpmf(exp(x[:3]), exp(x[3:]))",
        lambda *x: (
            mp.loggamma(sum(map(mp.exp, x[:3])) + 1)
            + sum(
                mp.exp(n) * t - mp.loggamma(mp.exp(n) + 1)
                for n, t in zip(x[:3], x[3:], strict=True)
            )
        ),
    ),
    (
        "sum(categorical_logit_lpmf(y[i], x) for i in 4)",
        lambda *x: sum(x[k] - mp.log(sum(map(mp.exp, x))) for k in range(4)),
    ),
    ("ordered_logistic_lpmf(y, x[3], [x[0], x[1] + 1, x[2] + 2])", _ordered_of),
    ("ordered_probit_lpmf(y, x[3], [x[0], x[1] + 1, x[2] + 2])", _probit_of),
    ("sum(categorical_lpmf(y[i], exp(x)) for i in 4)", lambda *x: sum(x[:4])),
    ("dirichlet_multinomial_lpmf(exp(x[:3]), exp(x[3:]))", _dirichlet_multinomial_of),
    (f"lkj_corr_lpdf({S}, x[5] + 2)", _lkj_of_matrix),
    (f"wishart_lpdf({S}, x[5] + 4, [[2, x[3]], [x[3], 3]])", _wishart_of),
    (f"inv_wishart_lpdf({S}, x[5] + 4, [[2, x[3]], [x[3], 3]])", _inv_wishart_of),
    ("poisson_log_glm_lpmf(c, A, x[2], x[:2])", _poisson_glm_of),
    ("bernoulli_logit_glm_lpmf(min(c, 1), A, x[2], x[:2])", _logit_glm_of),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("text", "formula"), OF_ARRAYS)
def test_derivatives_by_arrays(text: str, formula: Callable[..., object]) -> None:
    y = np.arange(4.0)
    declared = "dim k = 6 data y[4] in k, c[4], A[4, 2] var x[6] maximize "
    data = {"y": y, "c": y, "A": np.stack([y, np.ones(4)], axis=1)}
    model = slomodel.compile(declared + text, data=data, backend="numpy")
    point = [0.3, 0.4, -0.5, 0.7, -0.2, 0.9]
    with mp.workdps(30):
        exact = tuple(map(mp.mpf, point))
        assert model.value(point) == pytest.approx(float(formula(*exact)), rel=1e-13)
        orders = [tuple(int(j == k) for j in range(6)) for k in range(6)]
        slopes = [float(mp.diff(formula, exact, one)) for one in orders]
    np.testing.assert_allclose(model.gradient(point), slopes, rtol=1e-12, atol=1e-13)
