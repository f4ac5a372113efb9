"""Standard errors and intervals against closed forms, SciPy and the certified values of NIST."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import scipy.optimize
import scipy.special
from scipy.special import ndtri, stdtrit

import slomodel
from tests.marks import every
from tests.nist_problems import NAMES, model_of, recorded

RNG = np.random.default_rng(2)
N, K = 60, 3
X = np.column_stack([np.ones(N), RNG.normal(size=(N, K - 1)) * [10.0, 0.01]])
Y = X @ [1.0, -0.2, 30.0] + 0.5 * RNG.normal(size=N)
LINEAR = """
dim N, K
data X[N, K], y[N]
var b[K]
let eta = X @ b
let ratio = b[1] / b[2]
minimize 0.5 * sumsq(y - eta)
"""
LOGISTIC = """
dim N, K
data X[N, K], y[N]
var b[K]
let p = sigmoid(X @ b)
let odds = exp(b[1])
maximize sum(y .* (X @ b) - softplus(X @ b))
"""


def compiled(text: str, **options: object) -> slomodel.Model:
    return slomodel.compile(text, backend="numpy", **options)  # type: ignore[arg-type]


@cache
def linear() -> slomodel.Solution:
    return compiled(LINEAR, data={"X": X, "y": Y}).solve(gtol=1e-10)


def ols() -> tuple[np.ndarray, np.ndarray]:
    """Estimate and covariance by the normal equations."""
    inverse = np.linalg.inv(X.T @ X)
    b = inverse @ X.T @ Y
    return b, inverse * ((Y - X @ b) ** 2).sum() / (N - K)


@pytest.mark.parametrize("curvature", ["auto", "hessian", "gauss-newton"])
def test_ordinary_least_squares(curvature: str) -> None:
    b, covariance = ols()
    found = linear().uncertainty(curvature=curvature)  # type: ignore[arg-type]
    np.testing.assert_allclose(found.covariance, covariance, rtol=1e-9)
    np.testing.assert_allclose(found.standard_errors["b"], np.sqrt(np.diag(covariance)), rtol=1e-9)
    width = stdtrit(N - K, 0.95) * np.sqrt(np.diag(covariance))
    expected = np.stack([b - width, b + width], axis=-1)
    np.testing.assert_allclose(found.interval("b", 0.9), expected, rtol=1e-7)
    np.testing.assert_allclose(found.interval("b", 0.9, "profile"), expected, rtol=1e-6)
    assert "60 residuals" in found.assumption
    assert "57 degrees of freedom" in found.assumption


def test_the_scale_of_the_objective_does_not_matter_for_least_squares() -> None:
    mean = compiled(LINEAR.replace("0.5 * sumsq(y - eta)", "sumsq(y - eta) / N"), data=DATA)
    errors = mean.solve(gtol=1e-12).uncertainty().standard_errors["b"]
    np.testing.assert_allclose(errors, np.sqrt(np.diag(ols()[1])), rtol=1e-9)


DATA = {"X": X, "y": Y}


def test_a_known_variance_is_a_likelihood() -> None:
    known = linear().uncertainty("likelihood", factor=4.0)
    np.testing.assert_allclose(known.covariance, np.linalg.inv(X.T @ X) / 4.0, rtol=1e-9)
    z = ndtri(0.975) * known.standard_error("b")
    np.testing.assert_allclose(known.interval("b")[:, 1], ols()[0] + z, rtol=1e-7)
    density = "maximize sum(normal_lpdf(y[i], eta[i], 0.5) for i in N)"
    text = LINEAR.replace("minimize 0.5 * sumsq(y - eta)", density)
    auto = compiled(text, data=DATA).solve(gtol=1e-10).uncertainty()
    assert "log-likelihood" in auto.assumption
    np.testing.assert_allclose(auto.covariance, np.linalg.inv(X.T @ X) / 4.0, rtol=1e-9)


def test_functions_of_the_variables_and_new_rows() -> None:
    b, covariance = ols()
    found = linear().uncertainty()
    slope = np.array([0.0, 1.0 / b[2], -b[1] / b[2] ** 2])
    np.testing.assert_allclose(
        found.standard_error("ratio"), np.sqrt(slope @ covariance @ slope), rtol=1e-7
    )
    rows = X[:2] + 1.0
    ahead = found.predict("eta", {"X": rows})
    error = np.sqrt(np.einsum("ij,jk,ik->i", rows, covariance, rows))
    np.testing.assert_allclose(ahead.value, rows @ b, rtol=1e-7)
    np.testing.assert_allclose(ahead.standard_error, error, rtol=1e-8)
    width = stdtrit(N - K, 0.975) * error
    np.testing.assert_allclose(ahead.high - ahead.low, 2.0 * width, rtol=1e-8)


def test_logistic_regression() -> None:
    """SEs from Fisher's information XᵀWX at the estimate of Newton's method, by hand."""
    y = (RNG.random(N) < scipy.special.expit(X @ [0.2, 0.1, 20.0])).astype(float)
    b = np.zeros(K)
    for _ in range(30):
        p = scipy.special.expit(X @ b)
        information = X.T @ (X * (p * (1.0 - p))[:, None])
        b = b + np.linalg.solve(information, X.T @ (y - p))
    solution = compiled(LOGISTIC, data={"X": X, "y": y}).solve(gtol=1e-10)
    found = solution.uncertainty()
    np.testing.assert_allclose(found.covariance, np.linalg.inv(information), rtol=1e-6)
    odds = np.exp(b[1]) * found.standard_error("b")[1]
    np.testing.assert_allclose(found.standard_error("odds"), odds, rtol=1e-6)
    low, high = found.interval("b", method="profile")[1]

    def deviance(slope: float) -> float:
        def rest(c: np.ndarray) -> float:
            eta = X @ np.array([c[0], slope, c[1]])
            return float(np.logaddexp(0.0, eta).sum() - y @ eta)

        return 2.0 * float(scipy.optimize.minimize(rest, b[[0, 2]], tol=1e-10).fun)

    best = 2.0 * (np.logaddexp(0.0, X @ b).sum() - y @ (X @ b))
    for end in (low, high):
        assert deviance(end) - best == pytest.approx(ndtri(0.975) ** 2, rel=1e-4)


def test_curve_fit_of_scipy() -> None:
    t = np.linspace(0.0, 4.0, 40)

    def curve(t: np.ndarray, a: float, k: float, c: float) -> np.ndarray:
        return a * np.exp(-k * t) + c

    y = curve(t, 2.5, 1.3, 0.5) + 0.1 * RNG.normal(size=t.size)
    best, covariance = scipy.optimize.curve_fit(curve, t, y, (1, 1, 1), xtol=1e-14, ftol=1e-14)
    text = "dim n data t[n], y[n] var a, k, c init 1 minimize sumsq(y - (a * exp(-k * t) + c))"
    solution = compiled(text, data={"t": t, "y": y}).solve(gtol=1e-12)
    np.testing.assert_allclose(solution.x, best, rtol=1e-6)
    # curve_fit differentiates by differences.
    np.testing.assert_allclose(solution.uncertainty().covariance, covariance, rtol=1e-5)


@pytest.mark.parametrize("name", every(2, NAMES))
def test_certified_standard_deviations_of_nist(name: str) -> None:
    certified = recorded(name)["certified"]
    solution = model_of(name).solve(x0=certified["b"], gtol=1e-14, direction="gauss-newton")
    found = solution.uncertainty("least-squares")
    errors = [found.standard_errors[one][()] for one in recorded(name)["parameters"]]
    np.testing.assert_allclose(errors, certified["std_dev"], rtol=1e-6)
    assert not found.undetermined


def test_undetermined_directions_are_named_and_the_rest_is_known() -> None:
    sites = np.repeat([0, 1, 2], 5)
    y = RNG.normal(size=15)
    text = """
    dim n, S = 3
    data y[n], g[n] in S
    var c, u[S] init 0
    let eta = c + u[g]
    let contrast = u[1] - u[0]
    minimize sumsq(y - eta)
    """
    found = compiled(text, data={"y": y, "g": sites}).solve().uncertainty()
    assert len(found.undetermined) == 1
    assert sorted(found.undetermined[0].replace("- ", "-").replace("+ ", "").split()) in (
        ["-c", "u[0]", "u[1]", "u[2]"],
        ["-u[0]", "-u[1]", "-u[2]", "c"],
    )
    assert np.isinf(found.standard_errors["u"]).all()
    groups = y.reshape(3, 5)
    variance = ((groups - groups.mean(axis=1, keepdims=True)) ** 2).sum() / (15 - 3)
    assert found.standard_error("contrast") == pytest.approx(np.sqrt(2 * variance / 5), rel=1e-8)
    np.testing.assert_allclose(found.standard_error("eta"), np.sqrt(variance / 5), rtol=1e-8)
    assert "Not determined" in str(found)


def test_the_scaling_of_a_factorisation_is_undetermined_and_its_product_known() -> None:
    text = """
    dim m, n data M[m, n] var u[m] init 1, v[n] init 1
    let fit = outer(u, v)
    minimize sumsq(M - fit)
    """
    M = np.outer([1.0, 2.0, 3.0], [1.0, -1.0]) + 0.1 * RNG.normal(size=(3, 2))
    solution = compiled(text, data={"M": M}).solve(gtol=1e-9)
    for curvature in ("gauss-newton", "hessian"):
        found = solution.uncertainty(curvature=curvature)  # type: ignore[arg-type]
        assert len(found.undetermined) == 1
        assert np.isfinite(found.standard_error("fit")).all()
        assert np.isinf(found.standard_error("u")).all()


def test_variables_in_open_sets() -> None:
    """The normal sample: SE of σ is σ/√(2n); profile ends are those of the deviance."""
    y = RNG.normal(size=50)
    text = """
    dim n data y[n] var m var s > 0
    maximize sum(normal_lpdf(y[i], m, s) for i in n)
    """
    solution = compiled(text, data={"y": y}).solve(gtol=1e-10)
    found, s = solution.uncertainty(), y.std()
    np.testing.assert_allclose(found.standard_errors["s"], s / 10.0, rtol=1e-6)
    np.testing.assert_allclose(found.standard_errors["m"], s / np.sqrt(50), rtol=1e-6)
    for end in found.interval("s", method="profile"):
        deviance = 2 * 50 * np.log(end) + 50 * s**2 / end**2 - 100 * np.log(s) - 50
        assert deviance == pytest.approx(ndtri(0.975) ** 2, rel=1e-5)


def test_probabilities_in_a_simplex() -> None:
    """Multinomial proportions: covariance (diag(p) − ppᵀ)/n."""
    counts = np.array([20.0, 50.0, 30.0])
    text = "data y[3] var p[3] in open_simplex maximize sum(y .* log(p))"
    found = compiled(text, data={"y": counts}).solve(gtol=1e-10).uncertainty()
    p = counts / 100.0
    expected = (np.diag(p) - np.outer(p, p)) / 100.0
    np.testing.assert_allclose(found.covariance, expected, rtol=1e-5, atol=1e-9)
    with pytest.raises(slomodel.DomainError, match="not a variable with independent"):
        found.interval("p", method="profile")


def test_intervals_stay_where_quantities_have_values() -> None:
    """By hand: log scale of s, logit scales of q in (0, 10) and of p in a simplex, images of both.

    The log-scale interval of s is s exp(± z SE/s); the logit-scale one of q has the slope
    10/(q (10 - q)); the functions of s alone are monotone, and r is of neither.
    """
    text = """
    data n = 3 var s > 0, q in (0, 10)
    let half = log(2) / s  let v = s^2  let w = 1 / (1 + s)  let r = q - 2 * s  let b = min(s, 9)
    minimize n * (s - 1 - log(s)) + 0.05 * (q - 2)^2 + 0.001 * (s - 1) * (q - 2)
    """
    found, z = compiled(text).solve(gtol=1e-12).uncertainty("likelihood"), ndtri(0.975)
    s, q = (found.rows(name)[0].estimate for name in "sq")
    growth = np.exp(z * found.standard_error("s") / s)
    low, high = s / growth, s * growth
    np.testing.assert_allclose(found.interval("s"), [low, high], rtol=1e-9)
    np.testing.assert_allclose(found.interval("half"), np.log(2) / [high, low], rtol=1e-9)
    np.testing.assert_allclose(found.interval("v"), [low**2, high**2], rtol=1e-9)
    np.testing.assert_allclose(found.interval("w"), [1 / (1 + high), 1 / (1 + low)], rtol=1e-9)
    change = z * found.standard_error("q") * 10 / (q * (10 - q))
    ends = 10 * scipy.special.expit(scipy.special.logit(q / 10) + np.array([-change, change]))
    np.testing.assert_allclose(found.interval("q"), ends, rtol=1e-9)
    r = found.rows("r")[0]
    assert r.high - r.estimate == pytest.approx(r.estimate - r.low, rel=1e-12)
    counts = "data y[3] var p[3] in open_simplex maximize sum(y .* log(p))"
    wide = compiled(counts, data={"y": [1.0, 20.0, 30.0]}).solve().uncertainty()
    p, error = 1 / 51, np.sqrt(50) / 51**1.5
    ends = scipy.special.expit(
        scipy.special.logit(p) + z * error / (p * (1 - p)) * np.array([-1, 1])
    )
    np.testing.assert_allclose(wide.interval("p[0]"), ends, rtol=1e-4)


def test_intervals_of_rates_and_probabilities_are_images_of_those_of_the_predictor() -> None:
    y = (RNG.random(N) < scipy.special.expit(X @ [0.2, 0.3, 40.0])).astype(float)
    text = LOGISTIC.replace("let p", "let eta = X @ b let p")
    found = compiled(text, data={"X": X, "y": y}).solve().uncertainty()
    rows = {"X": 3 * X[:9]}
    p, eta = found.predict("p", rows), found.predict("eta", rows)
    np.testing.assert_allclose(p.low, scipy.special.expit(eta.low), rtol=1e-9)
    np.testing.assert_allclose(p.high, scipy.special.expit(eta.high), rtol=1e-9)
    np.testing.assert_allclose(found.interval("odds"), np.exp(found.interval("b[1]")), rtol=1e-9)


def test_intervals_in_closed_sets_are_cut_with_a_note() -> None:
    text = "data y[2], hi = 1 var b[2] in [0, hi] minimize sumsq(b - y)"
    found = compiled(text, data={"y": [0.1, 0.5]}).solve().uncertainty("likelihood")
    np.testing.assert_allclose(found.interval("b"), [[0, 1], [0, 1]])
    np.testing.assert_allclose(found.standard_errors["b"], np.sqrt(0.5))
    assert "`b` are cut at the ends" in str(found)
    assert "`b` are cut at the ends" in found._repr_html_()
    assert "cut" not in found.table(level=0.01)


def test_variables_at_bounds_are_held() -> None:
    """The slope of the first column would be negative: the second is fitted alone."""
    column = X[:, 2]
    text = "dim n data A[n, 2], y[n] var b[2] >= 0 minimize sumsq(y - A @ b)"
    data = {"A": np.column_stack([np.ones(N), column]), "y": 30.0 * column - 1.0 + 0.01 * X[:, 1]}
    solution = compiled(text, data=data).solve(gtol=1e-10)
    found = solution.uncertainty()
    assert solution.active["b"].tolist() == [True, False]
    rest = data["y"] - column * (column @ data["y"]) / (column @ column)
    error = np.sqrt(rest @ rest / (N - 1) / (column @ column))
    np.testing.assert_allclose(found.standard_errors["b"], [np.nan, error], rtol=1e-7)
    assert "1 element is at bounds" in str(found)


def test_refusals_say_why() -> None:
    saddle = compiled("var x, y minimize x^2 - y^2 + y^4").solve(
        x0=[0.0, 0.0], method="norm-armijo"
    )
    with pytest.raises(slomodel.DomainError, match="curves downwards"):
        saddle.uncertainty()
    quartic = compiled("var x init 1 minimize exp(x) - x").solve()
    with pytest.raises(slomodel.DomainError, match="not a sum of squares"):
        quartic.uncertainty("least-squares")
    steep = compiled("var x init 354.3 minimize exp(2 * x)").solve(max_iter=0)
    with pytest.raises(slomodel.DomainError, match="overflow"):
        steep.uncertainty()
    simplex = compiled("var p[3] in simplex minimize sumsq(p - 1)").solve()
    with pytest.raises(slomodel.DomainError, match="in open_simplex"):
        simplex.uncertainty()
    with pytest.raises(slomodel.DomainError, match="scale"):
        quartic.uncertainty("normal")  # type: ignore[arg-type]
    with pytest.raises(slomodel.DomainError, match="residuals do not determine"):
        compiled("var x[2] minimize sumsq(x - 1)").solve().uncertainty("least-squares")


def test_a_point_far_from_the_optimum_is_said_to_be() -> None:
    solution = compiled(LINEAR, data=DATA).solve(max_iter=1, direction="gradient", x0=np.ones(3))
    said = " ".join(str(solution.uncertainty()).split())
    assert "standard errors from a stationary point" in said


def test_table_by_labels() -> None:
    text = """
    dim n, S data y[n], site[n] in S labels var u[S]
    minimize sumsq(y - u[site])
    """
    y, site = np.arange(6.0), np.array(["b", "a"] * 3)
    found = compiled(text, data={"y": y, "site": site}).solve().uncertainty()
    assert [row.name for row in found.rows()] == ["u[a]", "u[b]"]
    assert found.rows()[0].estimate == pytest.approx(3.0)
    assert "u[a]" in str(found)


@pytest.mark.parametrize("method", ["delta", "profile"])
def test_an_element_is_named_as_in_the_table(method: str) -> None:
    fit = linear().uncertainty()
    every = fit.interval("b", method=method)  # type: ignore[arg-type]
    np.testing.assert_array_equal(fit.interval("b[1]", method=method), every[1])  # type: ignore[arg-type]
    (row,) = fit.rows("b[1]")
    assert (row.name, row.estimate) == ("b[1]", linear()["b"][1])
    assert [one.name for one in fit.rows("b")] == ["b[0]", "b[1]", "b[2]"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("b[7]", "there is `b[0]`, `b[1]`"),
        ("c[0]", "no definition `c`"),
        ("b[0] - b[1]", "as in `let q = b[0] - b[1]`"),
        ("exp(b[0])", "as in `let q = exp(b[0])`"),
    ],
)
def test_other_names_are_refused_with_what_to_write(name: str, said: str) -> None:
    with pytest.raises(slomodel.DomainError) as caught:
        linear().uncertainty().interval(name)
    assert said in str(caught.value)
