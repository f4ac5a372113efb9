"""Sums over pairs that data or indices order, of terms that separate: as running sums."""

from collections.abc import Callable

import numpy as np
import pytest

import slomodel
from slomodel.ir.walk import postorder

pytestmark = pytest.mark.filterwarnings("ignore::slomodel.ModelWarning")
RNG = np.random.default_rng(4)
N, M = 11, 6
T, S, W = (
    RNG.integers(0, 8, N) / 4,
    RNG.integers(0, 8, M) / 4,
    RNG.normal(size=N),
)
X = RNG.normal(size=(N, 2))
HEAD = """dim N, M
data t[N], s[M], w[N], X[N, 2]
var b[2], u[M], a
let e[j in N] = dot(X[j, :], b)
"""
Pairs = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
BODIES: dict[str, Pairs] = {
    "exp(e[j] - u[i])": lambda e, u, a: np.exp(e - u),
    "exp(dot(X[j, :], b) - 2 * u[i] + a * t[j])": lambda e, u, a: np.exp(e - 2 * u + a * T),
    "w[j] * exp(e[j] - u[i]) / a": lambda e, u, a: W * np.exp(e - u) / a,
    "u[i] * exp(-(e[j] + u[i]))": lambda e, u, a: u * np.exp(-e - u),
    "a * exp(-a * (s[i] - t[j]))": lambda e, u, a: a * np.exp(-a * (S[:, None] - T)),
    "e[j] / exp(a * (s[i] - t[j]))": lambda e, u, a: e * np.exp(a * (T - S[:, None])),
    "-sin(u[i]) * e[j] / (1 + u[i]^2)": lambda e, u, a: -np.sin(u) * e / (1 + u**2),
}
CONDITIONS: dict[str, np.ndarray] = {
    "t[j] >= s[i]": S[:, None] <= T,
    "t[j] > s[i]": S[:, None] < T,
    "s[i] >= t[j]": S[:, None] >= T,
    "t[j] - s[i] < 0": S[:, None] > T,
    "t[j] >= s[i] and w[j] > 0": (S[:, None] <= T) & (W > 0),
}
FORMS = {
    "each": "sum(sin(sum({body} for j in N if {condition})) for i in M)",
    "choice": "sum(sin(sum(where({condition}, {body}, 0) for j in N)) for i in M)",
    "log": "sum(log(1 + sum({body} for j in N if {condition})^2) for i in M)",
    "pairs": "sum({body} for i in M, j in N if {condition} and s[i] > 0.3)",
}
USES = {"each": np.sin, "choice": np.sin, "log": lambda r: np.log(1 + r**2)}


def _check(text: str, value: Callable[[np.ndarray], np.ndarray]) -> None:
    data = {"t": T, "s": S, "w": W, "X": X}
    head = text.partition("var")[0]
    declared = {name: array for name, array in data.items() if f"{name}[" in head}
    model = slomodel.compile(text, data=declared, backend="numpy")
    x, v = RNG.uniform(0.3, 1.1, model.n), RNG.normal(size=model.n)
    assert model.value(x) == pytest.approx(float(value(x)), rel=1e-12)
    slope = value(x + 1e-30j * v).imag / 1e-30
    assert model.gradient(x) @ v == pytest.approx(slope, rel=1e-11)
    step = 1e-6
    ends = model.gradient(x + step * v), model.gradient(x - step * v)
    np.testing.assert_allclose(
        model.hvp(x, v), (ends[0] - ends[1]) / 2 / step, rtol=1e-6, atol=1e-5
    )
    for node in postorder(model._problem.objective):
        wide = [dim for dim in node.shape if str(dim) in {"N", "M"}]
        assert len(wide) < 2


@pytest.mark.sampled(8)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("body", BODIES)
def test_pairs_that_data_order(body: str, form: str) -> None:
    conditions = list(CONDITIONS)
    condition = conditions[(list(BODIES).index(body) + list(FORMS).index(form)) % len(conditions)]
    text = f"{HEAD}minimize {FORMS[form].format(body=body, condition=condition)}"
    holds = CONDITIONS[condition]

    def value(x: np.ndarray) -> np.ndarray:
        terms = np.where(holds, BODIES[body](X @ x[:2], x[2:-1, None], x[-1]), 0.0)
        if form == "pairs":
            return terms[S > 0.3].sum()
        return USES[form](terms.sum(1)).sum()

    _check(text, value)


@pytest.mark.parametrize("body", BODIES)
def test_pairs_that_indices_order(body: str) -> None:
    condition = ("j < i", "j <= i", "j > i", "i <= j")[list(BODIES).index(body) % 4]
    own = body.replace("u[i]", "e[i]").replace("s[i]", "t[i]")
    text = f"""{HEAD.replace(", u[M]", "").replace(", s[M]", "").replace(", M", "")}
    minimize sum(sin(sum({own} for j in N if {condition})) for i in N)
        + sum({own} for i in N, j in N if {condition})"""
    i, j = np.indices((N, N))
    holds = {"j < i": j < i, "j <= i": j <= i, "j > i": j > i, "i <= j": i <= j}[condition]

    def value(x: np.ndarray) -> np.ndarray:
        e = X @ x[:2]
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(globals(), "S", T)
            terms = np.where(holds, BODIES[body](e, e[:, None], x[-1]), 0.0)
        return np.sin(terms.sum(1)).sum() + terms.sum()

    _check(text, value)


@pytest.mark.parametrize("condition", ["t[j] < t[i]", "t[i] - t[j] > 0", "j < i"])
def test_decays_of_times_far_from_0_are_as_exact_as_close_to_it(condition: str) -> None:
    text = f"""dim n
    data t[n]
    var a, mu
    minimize sum(log(mu + sum(a * exp(-a * (t[i] - t[j])) for j in n if {condition})) for i in n)"""
    t, x = np.arange(7.0) ** 2 / 4, np.array([0.7, 0.2])
    near, far = (slomodel.compile(text, data={"t": t + k}, backend="numpy") for k in (0, 2.0**40))
    assert far.value(x) == pytest.approx(near.value(x), rel=1e-15)
    np.testing.assert_allclose(far.gradient(x), near.gradient(x), rtol=1e-14)


@pytest.mark.parametrize("condition", ["t[j] >= t[i]", "j >= i"])
@pytest.mark.parametrize("weight", ["", "w[j] * "])
def test_logarithms_of_pairs_neither_overflow_nor_underflow(weight: str, condition: str) -> None:
    text = f"""dim n
    data t[n], w[n]
    var e[n]
    minimize sum(log(sum({weight}exp(e[j] - e[i]) for j in n if {condition})) for i in n)"""
    t, w = np.arange(5.0), np.array([1.0, 3.0, 0.5, 2.0, 1.0])
    model = slomodel.compile(text, data={"t": t, "w": w}, backend="numpy")
    e = 1e4 * np.array([0.3, -1.0, 2.0, 0.1, -0.4])
    logs = e + np.log(w) if weight else e
    wanted = (np.logaddexp.accumulate(logs[::-1])[::-1] - e).sum()
    assert model.value(e) == pytest.approx(wanted, rel=1e-14)
    assert np.isfinite(model.gradient(e)).all()


@pytest.mark.parametrize("condition", ["t[j] > t[i]", "j < i", "t[j] > t[i] and t[j] > 0"])
@pytest.mark.parametrize("body", ["exp(e[j] - e[i])", "e[j] * exp(-e[i] + e[j])", "exp(-t[i])"])
@pytest.mark.parametrize("size", [0, 1])
def test_pairs_of_none_and_of_one(size: int, body: str, condition: str) -> None:
    text = f"""dim n
    data t[n]
    var e[n], a
    minimize sum(sin(sum(a * {body} for j in n if {condition})) for i in n) + a^2"""
    model = slomodel.compile(text, data={"t": np.ones(size)}, backend="numpy")
    x = np.full(size + 1, 3.0)
    assert model.value(x) == 9.0
    np.testing.assert_array_equal(model.gradient(x), [*np.zeros(size), 6.0])
    np.testing.assert_array_equal(model.hvp(x, x), [*np.zeros(size), 6.0])


@pytest.mark.parametrize("body", ["u[j] - v[i]", "a * t[j]", "a * (t[j] - t[i])"])
@pytest.mark.parametrize("condition", ["t[j] <= t[i]", "t[j] < t[i]", "j <= i", "j < i"])
def test_log_sum_exps_whose_first_terms_are_left_out(condition: str, body: str) -> None:
    """Those over none of the terms are -inf, and exponentials of them have derivatives 0."""
    text = """dim n
    data t[n], w[n]
    var u[n], v[n], a
    minimize sum(exp(LOGS - v[i]) for i in n) + 0 * a"""
    terms = f"for j in n if {condition} and w[j] > 0"
    t, w = np.array([0.0, 1.0, 2.0, 3.0, 4.0]), np.array([0.0, 0.0, 1.0, 0.0, 1.0])
    i, j = np.indices((5, 5))
    holds = ((j < i) if "<=" not in condition else (j <= i)) & (w > 0)

    def value(x: np.ndarray) -> np.ndarray:
        u, v, a = x[:5], x[5:10, None], x[10]
        logs = {"u": u - v, "a * t": a * t + 0 * v, "a * (": a * (t - t[:, None])}
        own = next(logs[key] for key in logs if body.startswith(key))
        return (np.where(holds, np.exp(own), 0).sum(1) * np.exp(-x[5:10])).sum()

    x, v = RNG.uniform(0.3, 1.1, 11), RNG.normal(size=11)
    of_data = condition.startswith("t")
    logs = f"logsumexp({body} {terms})" if of_data else f"log(sum(exp({body}) {terms}))"
    model = slomodel.compile(text.replace("LOGS", logs), data={"t": t, "w": w}, backend="numpy")
    assert model.value(x) == pytest.approx(float(value(x)), rel=1e-12)
    slopes = [value(x + 1e-30j * e).imag / 1e-30 for e in np.eye(11)]
    np.testing.assert_allclose(model.gradient(x), slopes, rtol=1e-11, atol=1e-14)
    ends = [[value(x + s * v + 1e-30j * e).imag / 1e-30 for e in np.eye(11)] for s in (1e-5, -1e-5)]
    curved = (np.array(ends[0]) - ends[1]) / 2e-5
    np.testing.assert_allclose(model.hvp(x, v), curved, rtol=1e-6, atol=1e-8)
