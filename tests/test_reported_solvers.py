"""Problems reported by users of similar optimisers, as models, for every method and direction."""

from __future__ import annotations

import re
import threading
import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

import slomodel
from slomodel.errors import DomainError, NonsmoothWarning, SlomodelError
from slomodel.solve import METHODS, Solution, State
from slomodel.solve.directions.table import DIRECTIONS

Array = NDArray[np.float64]
SEARCHES: dict[str, dict[str, Any]] = {
    name: {"method": "norm-armijo", "direction": name} for name in DIRECTIONS
}
EVERY: dict[str, dict[str, Any]] = SEARCHES | {
    name: {"method": name} for name in METHODS if name != "norm-armijo"
}
QUARTIC = "var x[2]\nminimize ((x[0] - 1)^2)^2 + ((x[0] - x[1])^2)^2"
# Their steps have one length, or may raise f.
FREE = ("ngd", "adgd")
of_every = pytest.mark.parametrize("name", EVERY)
of_searches = pytest.mark.parametrize("name", SEARCHES)


def constants(name: str, L1: float) -> dict[str, Any]:
    """Constants, given so that no bound need be found."""
    given = {"pgd": L1, "tgd": L1, "gd": L1, "agp": lambda centre, radius: (L1, L1)}
    if name == "bpg":
        return {"L": L1, "p": 4}
    return {"lipschitz": given[name]} if name in given else {}


@cache
def compiled(text: str) -> slomodel.Model:
    return slomodel.compile(text)


def checked(model: slomodel.Model, found: Solution) -> Solution:
    """The solution, after a look at whether it is what it says."""
    assert found.x.dtype == np.float64
    assert found.fun == model.value(found.x)
    np.testing.assert_array_equal(found.jac, model.gradient(found.x))
    assert len(found.history.fun) == found.nit + 1
    assert found.message
    return found


@of_every
@pytest.mark.parametrize(
    ("text", "x0", "said"),
    [
        (
            "var x[2]\nminimize sum((log(x[i]) - 1)^2 for i in 2)",
            [1.0, -1.0],
            ["log", "x[1] = -1.0 is nan", "line 2"],
        ),
        ("var x[2]\nminimize sumsq(x)", [1.0, np.nan], ["`x[1]` is nan"]),
        ("var x[2]\nminimize sumsq(x)", [np.inf, 1.0], ["`x[0]` is inf"]),
    ],
    ids=["log of -1", "nan", "inf"],
)
def test_no_number_at_the_start_is_not_success(
    text: str, x0: list[float], said: list[str], name: str
) -> None:
    model = compiled(text)
    found = model.solve(x0=x0, **EVERY[name], **constants(name, 1.0))
    assert found.status == "nonfinite_start"
    assert not found.success
    for part in said:
        assert part in found.message


@pytest.mark.sampled(6)
@of_every
@pytest.mark.parametrize("dtype", [np.float32, np.int64, bool])
def test_numbers_of_x0_are_promoted(dtype: type, name: str) -> None:
    model = compiled("var x[2]\nminimize sum((x[i] - 1.5)^2 for i in 2)")
    options: dict[str, Any] = {"d": 1e-2, "max_iter": 1000} if name == "ngd" else {}
    found = checked(model, model.solve(x0=np.zeros(2, dtype=dtype), **EVERY[name], **options))
    near = 1e-2 if name == "ngd" else 1e-6
    np.testing.assert_allclose(found.x, 1.5, atol=near)
    fives = checked(model, model.solve(x0=np.full(2, 5).astype(dtype), **EVERY[name], **options))
    np.testing.assert_allclose(fives.x, 1.5, atol=near)


@of_every
def test_kernels_in_float32_reach_what_they_can(name: str) -> None:
    text = "var x[2]\nminimize sum((x[i] - 1.5)^2 for i in 2)"
    model = slomodel.compile(text, dtype="float32")
    options: dict[str, Any] = {"d": 1e-2} if name == "ngd" else {}
    found = model.solve(x0=np.float32([0.0, 0.0]), max_iter=1000, **EVERY[name], **options)
    assert found.x.dtype == np.float64
    np.testing.assert_allclose(found.x, 1.5, atol=1e-2 if name == "ngd" else 1e-6)


@pytest.mark.sampled(2)
@of_searches
def test_a_kink_is_distinguished_from_rounding(name: str) -> None:
    with pytest.warns(NonsmoothWarning):
        model = slomodel.compile("var x[2]\nminimize sum(abs(x))")
    if DIRECTIONS[name].squares:
        pytest.skip("no sum of squares")
    found = checked(model, model.solve(x0=[1.0, -0.3], **SEARCHES[name]))
    if found.success:  # at 0, where |x|' = 0
        np.testing.assert_array_equal(found.x, 0.0)
        return
    assert found.status == "line_search_stalled"
    assert found.fun == min(found.history.fun)
    assert found.fun < 1.3
    assert re.search(r"Gradient norm [\d.]+", found.message)
    assert re.search(r"rounding error of the objective about [\de.-]+", found.message)
    assert re.search(r"a step of [\de.-]+", found.message)
    assert re.search("Look for a kink|minimum at a kink is likely", found.message)


@pytest.mark.sampled(2)
@of_every
def test_small_units_are_not_solved_at_once(name: str) -> None:
    model = compiled("var x[2]\nminimize 1e-12 * sum((x[i] - 3)^2 for i in 2)")
    options: dict[str, Any] = {"d": 1e-2, "max_iter": 1000} if name == "ngd" else {}
    options |= {"delta_bar": 1e13} if name == "std-armijo" else {}
    found = checked(model, model.solve(x0=[0.0, 0.0], **EVERY[name], **options))
    assert found.nit > 0
    assert found.success or name == "ngd", found.message
    np.testing.assert_allclose(found.x, 3.0, atol=1e-2 if name == "ngd" else 1e-5)
    if name not in ("ngd", "auto"):
        (tolerance,) = re.findall(r"tolerance ([\de.+-]+\d)", found.message)
        assert float(tolerance) == pytest.approx(1e-6 * 1.8e-11, rel=1e-2)
    absolute = model.solve(x0=[0.0, 0.0], scaled=False, **EVERY[name], **options)
    assert absolute.nit == 0


@of_searches
def test_a_steep_start_takes_steps_of_bounded_length(name: str) -> None:
    t = np.linspace(0.0, 1.0, 20)
    text = "dim n data t[n], y[n] var a minimize sum((exp(a * t[i]) - y[i])^2 for i in n)"
    fit = slomodel.compile(text, data={"t": t, "y": np.exp(-t)})
    quartic = slomodel.compile("var x minimize (x^2)^2")
    for model, x0, there in ((fit, 80.0, -1.0), (quartic, 1e5, 0.0)):
        found = checked(model, model.solve(x0=[x0], **SEARCHES[name], gtol=1e-9))
        assert found.success, found.message
        assert np.all(np.diff(found.history.fun) <= 0.0)
        assert max(found.history.step) <= x0 * (1.0 + 1e-12)
        assert found.x[0] == pytest.approx(there, abs=1e-3)


@pytest.mark.sampled(2)
@of_searches
def test_steps_at_their_cap_are_accepted(name: str) -> None:
    model = compiled("var x minimize (x - 1000)^2")
    found = checked(model, model.solve(x0=[0.0], delta_bar=1.0, **SEARCHES[name]))
    assert found.status == "converged"
    assert found.x[0] == pytest.approx(1000.0)
    steps = found.history.step[1:]
    assert max(steps) <= 1.0 + 1e-12
    # The damping of gauss-newton may ask for a little less.
    assert min(steps[:900]) >= (0.3 if DIRECTIONS[name].squares else 1.0 - 1e-12)
    assert found.nfev <= 1.1 * found.nit


@pytest.mark.parametrize("name", METHODS)
def test_a_gradient_of_the_wrong_sign_has_a_name(name: str) -> None:
    options = {"L": 2.0, "p": 2} if name == "bpg" else {"L": 2.0} if name == "gd" else {}
    found = minimize(
        lambda x: float((x[0] - 1.0) ** 2),
        [3.0],
        jac=lambda x: -2.0 * (x - 1.0),
        method=slomodel.scipy_method(name),
        options={"max_iter": 1000, **options},
    )
    assert not found.success
    assert found.fun <= 4.0 * (1.0 + 1e-12)
    assert "status" in repr(found)
    # The last two take the user's L at its word, and step after step the wrong way.
    rising = (*FREE, "gd", "bpg")
    wanted = {"max_iter", "unbounded", "line_search_stalled"} if name in rising else {"not_descent"}
    assert found.status in wanted, found.message


@of_every
@pytest.mark.parametrize("limit", [{"max_nfev": 5}, {"max_iter": 3}], ids=["max_nfev", "max_iter"])
def test_counts_in_a_message_are_those_made(limit: dict[str, int], name: str) -> None:
    model = compiled(QUARTIC)
    found = checked(
        model, model.solve(x0=[7.0, -5.0], **limit, **EVERY[name], **constants(name, 1e4))
    )
    assert found.status == next(iter(limit))
    (said,) = re.findall(r"(\d+) iterations?, (\d+) values?, (\d+) gradients?\.", found.message)
    assert tuple(map(int, said)) == (found.nit, found.nfev, found.njev)
    assert found.nfev <= limit.get("max_nfev", found.nfev)


def test_an_objective_that_is_not_a_number_is_an_error_of_the_model() -> None:
    with pytest.raises(SlomodelError) as caught:
        slomodel.compile("var x[2]\nminimize x^2")
    text = str(caught.value)
    assert "2:10" in text
    assert "[2]" in text
    assert "sum(" in text
    assert "^^^" in text


@of_every
def test_a_callback_keeps_what_it_gets(name: str) -> None:
    model = compiled(QUARTIC)
    seen: list[State] = []
    found = model.solve(
        x0=[3.0, -2.0], callback=seen.append, max_iter=30, **EVERY[name], **constants(name, 1e4)
    )
    assert [state.k for state in seen] == list(range(found.nit + 1))
    for state, fun, size in zip(seen, found.history.fun, found.history.gradient_norm, strict=True):
        assert state.fun == fun == model.value(state.x)
        assert state.gradient_norm == size
    assert len({state.x.tobytes() for state in seen}) > 1
    meddling = model.solve(
        x0=[3.0, -2.0],
        callback=lambda state: state.x.fill(7.0),
        max_iter=30,
        **EVERY[name],
        **constants(name, 1e4),
    )
    np.testing.assert_array_equal(meddling.x, found.x)


@of_every
def test_one_rule_for_what_a_callback_returns(name: str) -> None:
    model = compiled(QUARTIC)

    def stop(state: State) -> bool:
        if state.k == 2:
            raise StopIteration
        return False

    for callback in (lambda state: state.k == 2, stop):
        found = checked(
            model,
            model.solve(x0=[3.0, -2.0], callback=callback, **EVERY[name], **constants(name, 1e4)),
        )
        assert found.status == "user_stopped"
        assert not found.success
        assert found.nit == 2
    with pytest.raises(TypeError):
        model.solve(
            x0=[3.0, -2.0], callback=lambda state: "stop", **EVERY[name], **constants(name, 1e4)
        )


@of_every
def test_a_run_among_nans_ends_with_what_it_has(name: str) -> None:
    """A narrow bowl with a slope towards its edge, past which there are no numbers."""
    model = compiled("var x\nminimize (x + sqrt(1 - x^2))^2 + (0.001 * x)^2")
    limits = {"max_iter": 500, "max_time": 20.0}
    found = model.solve(x0=[-0.999], **limits, **EVERY[name], **constants(name, 10.0))
    checked(model, found)
    assert np.isfinite(found.fun)
    assert np.isfinite(found.gradient_norm)
    assert np.all(np.isfinite(found.history.fun))
    assert found.fun <= model.value([-0.999])


def test_each_diagnostic_comes_once_and_before_any_start_is_drawn() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = slomodel.compile("var x[3] init uniform(-1, 1)\nminimize sum(abs(x)) + sumsq(x)")
        for seed in range(3):
            model.solve(seed=seed, max_iter=20)
    assert [one.category for one in caught] == [NonsmoothWarning]
    with pytest.raises(DomainError) as refused:
        model.solve("pgdd", x0=[np.nan] * 3)
    assert "x0" not in str(refused.value)


@of_searches
def test_two_models_in_two_threads_are_as_one_after_the_other(name: str) -> None:
    models = [
        compiled("var x[40] init normal(0, 1)\nminimize sumsq(x .* x - 1) + 0.1 * sumsq(x - 2)"),
        compiled("var x[60] init normal(0, 1)\nminimize sumsq(exp(x) - 2) + 0.1 * sumsq(x)"),
    ]
    alone = [model.solve(seed=1, max_iter=200, **SEARCHES[name]) for model in models]
    together: dict[int, Solution] = {}

    def work(k: int) -> None:
        together[k] = models[k].solve(seed=1, max_iter=200, **SEARCHES[name])

    threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k, found in enumerate(alone):
        np.testing.assert_array_equal(together[k].x, found.x)
        np.testing.assert_array_equal(together[k].history.fun, found.history.fun)
