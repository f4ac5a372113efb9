"""Steps with proved constants of models: the theorems' inequalities, checked independently."""

import math

import numpy as np
import pytest

import slomodel
import slomodel.solve.objective as evaluating
from slomodel.solve.run.monitor import State

rng = np.random.default_rng(3)
MODELS = {
    "rosenbrock": (
        "var x[7] minimize sum((1 - x[i])^2 + 10 * (x[i+1] - x[i]^2)^2 for i in range(6))",
        {},
    ),
    "factors": (
        "data M[3, 4] var U[3, 2], V[4, 2] minimize sumsq(M - U @ V') / 2",
        {"M": rng.standard_normal((3, 4))},
    ),
    "logistic": (
        "data A[9, 7], y[9] var w[7] minimize mean(softplus(-y .* (A @ w))) + sumsq(w) / 50",
        {"A": rng.standard_normal((9, 7)), "y": np.sign(rng.standard_normal(9))},
    ),
    "network": (
        "data X[2, 5], y[5] var W[3, 2], v[3] minimize sumsq(y - v' @ tanh(W @ X))",
        {"X": rng.standard_normal((2, 5)), "y": rng.standard_normal(5)},
    ),
}
ROUNDING = 1e-12


def model_of(name: str) -> slomodel.Model:
    text, data = MODELS[name]
    return slomodel.compile(text, data=data)


def run(model: slomodel.Model, method: str, D: float | str, steps: int):
    states: list[State] = []
    x0 = np.random.default_rng(4).standard_normal(model.n)
    found = model.solve(
        x0=x0, method=method, lipschitz="auto", D=D, max_iter=steps, callback=states.append
    )
    assert {epoch.source for epoch in found.epochs} == {"analytic"}
    points = [x0, *(state.x for state in states if state.k > 0)]
    epochs = [state.epoch for state in states if state.k > 0]
    return found, points, epochs


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("method", ["pgd", "tgd"])
def test_every_step_keeps_what_its_constant_promises(name: str, method: str) -> None:
    """Between two points of one ball f and ∇f change as L1 says; L1 is that of no smaller ball."""
    model = model_of(name)
    found, points, epochs = run(model, method, 0.3, 6)
    assert len(points) == 7
    assert found.violations == 0
    for k, number in enumerate(epochs):
        (epoch,) = (one for one in found.epochs if one.first == number)
        x, y = points[k], points[k + 1]
        first = next(j for j, other in enumerate(epochs) if other == number)
        assert np.linalg.norm(points[first]) == pytest.approx(epoch.centre_norm, rel=1e-12)
        for point in (x, y):
            assert np.linalg.norm(point - points[first]) <= epoch.D * (1.0 + 1e-12)
        move = y - x
        length = float(np.linalg.norm(move))
        g, after = model.gradient(x), model.gradient(y)
        slack = ROUNDING * (1.0 + abs(model.value(x)) + float(np.linalg.norm(g)))
        assert float(np.linalg.norm(after - g)) <= epoch.L1 * length + slack
        promised = float(g @ move) + epoch.L1 * length**2 / 2.0
        assert model.value(y) - model.value(x) <= promised + slack
        assert math.isfinite(epoch.L1)
        curvature = float(np.linalg.norm(model.hessian(x), 2))
        assert curvature <= epoch.L1 * (1.0 + ROUNDING)


@pytest.mark.parametrize(
    ("name", "method"), [("rosenbrock", "pgd"), ("factors", "tgd"), ("logistic", "tgd")]
)
def test_certified_steps_gain_half_of_what_the_slope_says(name: str, method: str) -> None:
    """A step δ along -∇f/‖∇f‖ in its own ball gains δ‖∇f‖ - L1 δ²/2, which is half at least."""
    model = model_of(name)
    found, points, epochs = run(model, method, "auto", 2)
    for k, number in enumerate(epochs):
        (epoch,) = (one for one in found.epochs if one.first == number)
        g = model.gradient(points[k])
        size, delta = float(np.linalg.norm(g)), float(np.linalg.norm(points[k + 1] - points[k]))
        np.testing.assert_allclose(points[k] - delta * g / size, points[k + 1], rtol=1e-9)
        promised = delta * size - epoch.L1 * delta**2 / 2.0
        assert promised >= 0.5 * delta * size * (1.0 - 1e-9)
        gained = model.value(points[k]) - model.value(points[k + 1])
        assert gained >= promised - ROUNDING * abs(model.value(points[k]))


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("pgd", {"lipschitz": "analytic"}),
        ("tgd", {"D": "auto"}),
        ("agp", {"lipschitz": "analytic"}),
        ("gd", {}),
        ("bpg", {}),
        ("norm-armijo", {"verify": True}),
        ("auto", {"second_order": True}),
    ],
)
def test_a_proof_ends_with_the_time(
    method: str, options: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock goes by a second whenever it is looked at, and nobody looks after the end."""
    model = slomodel.compile("var x[4]\nminimize sumsq(x)^2 - 3*sumsq(x) + sum(x^3)")
    now = [0.0]

    def clock() -> float:
        now[0] += 1.0
        return now[0]

    monkeypatch.setattr(evaluating, "perf_counter", clock)
    x0 = np.array([0.5, -1.0, 2.0, 0.1])
    for limit in (5.5, 20.5, 60.5):
        began = now[0]
        found = model.solve(method, x0, gtol=1e-14, max_time=limit, **options)
        if found.status == "max_time":
            # The start of the run and the message look at it too.
            assert now[0] - began <= limit + 4.0
            assert np.isfinite(found.fun)
            assert model.value(found.x) == found.fun
        else:
            assert found.success
    assert method in ("auto", "bpg", "gd") or found.status == "max_time"


def test_ctrl_c_in_a_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    model = slomodel.compile("var x[4]\nminimize sumsq(x)^2 - 3*sumsq(x) + sum(x^3)")
    calls = [0]

    def interrupted(self: object) -> None:
        calls[0] += 1
        if calls[0] == 40:
            raise KeyboardInterrupt

    monkeypatch.setattr(evaluating.Evaluator, "check_time", interrupted)
    found = model.solve("pgd", np.ones(4), lipschitz="analytic")
    assert found.status == "interrupted"
    assert found.nit == 0
