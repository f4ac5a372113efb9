"""Compiled loops against the same steps in Python: iterates, counts, ends, budgets, checkpoints."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import slomodel
from slomodel.model.objective import CompiledObjective
from slomodel.solve import State
from slomodel.solve.compiled import beyond as scans
from slomodel.solve.compiled import steps
from slomodel.solve.compiled.library import library
from slomodel.solve.directions.newton import inverse_magnitude, whole_hessian
from slomodel.solve.objective import Evaluator
from slomodel.solve.run import stationary_point
from slomodel.solve.run.stationary_point import SoFar, falls_beyond
from slomodel.solve.run_options import RunOptions
from slomodel.solve.subroutine import BlockLimits, Iterate

pytestmark = pytest.mark.skipif(library() is None, reason="no C compiler")

VALLEY = """model valley
var x[4] init [-1.2, 1, -1.2, 1]
minimize sum(100*(x[i + 1] - x[i]^2)^2 + (1 - x[i])^2 for i in range(3)) + log(1 + sum(x^2))
"""
FITS = """model fits
dim m
data t[m], y[m]
var a init 1, b init 0.5, c init 0.2
minimize sum(log(1 + (y - a*exp(-b*t) - c)^2))
"""
BOWL = """model bowl
dim n
data w[n]
var x[n] init 1
minimize sum(w*(exp(x) - x)) + 0.1*sum(x)^2
"""
FLAT = """model flat
var x init 3, y init -2
maximize -(x - 1)^4 - (x - y)^2 - exp(-x*y/10)
"""

DECAY = """model decay
dim m
data t[m], y[m]
var a init 1, b init 0.5, c init 0.2
minimize sum((y - a*exp(-b*t) - c)^2)
"""
CIRCLES = """model circles
dim m
data u[m], v[m], w[m]
var p init 3, q init 1, r init 0.5
minimize sum((w*(sqrt((u - p)^2 + (v - q)^2 + 0.01) - r))^2)
"""
FORM = """model form
dim n
data A[n, n]
var x[n]
minimize sum(x[i]*A[i, j]*x[j] for i in n, j in n)/2
"""
LONG = """model long
var x[12] init -1
minimize sum((x[i + 1] - 2*x[i]^2 + 1)^2 for i in range(11)) + (x[0] - 1)^2/4
"""
WALLS = """model walls
var x[12] in [-1.5, 0.9]
minimize sum(100*(x[i + 1] - x[i]^2)^2 + (1 - x[i])^2 for i in range(11))
"""
RATES = """model rates
dim m
dim n
data A[m, n], y[m]
var x[n] >= 0 init 1
minimize sum(A@x + 0.1) - sum(y*log(A@x + 0.1))
"""


def models() -> dict[str, slomodel.Model]:
    rng = np.random.default_rng(1)
    t = np.linspace(0.0, 4.0, 25)
    y = 2.0 * np.exp(-0.8 * t) + 0.3 + 0.02 * rng.standard_normal(25)
    own = np.random.default_rng(3)
    A = own.uniform(size=(30, 15))
    counts = own.poisson(A @ np.maximum(5.0 * own.standard_normal(15), 0.0)).astype(float)
    return {
        "valley": slomodel.compile(VALLEY, backend="c"),
        "fits": slomodel.compile(FITS, data={"t": t, "y": y}, backend="c"),
        "decay": slomodel.compile(DECAY, data={"t": t, "y": y}, backend="c"),
        "circles": slomodel.compile(
            CIRCLES, data={"u": np.cos(t), "v": np.sin(2.0 * t), "w": t + 1.0}, backend="c"
        ),
        "bowl": slomodel.compile(BOWL, data={"w": rng.uniform(0.5, 20.0, 30)}, backend="c"),
        "flat": slomodel.compile(FLAT, backend="c"),
        "walls": slomodel.compile(WALLS, backend="c"),
        "many_walls": slomodel.compile(WALLS.replace("12", "40").replace("11", "39"), backend="c"),
        "rates": slomodel.compile(RATES, data={"A": A, "y": counts}, backend="c"),
    }


MODELS = models()
DIRECTIONS = {
    **dict.fromkeys(("decay", "circles"), "levenberg-marquardt"),
    **dict.fromkeys(("walls", "rates"), "lbfgs/newton"),
    "many_walls": "lbfgs/newton-cg",
}


@contextmanager
def in_python(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patched:
        patched.setattr(steps, "library", lambda: None)
        yield


@pytest.fixture
def block_sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of steps in each block that is taken."""
    sizes: list[int] = []
    take = steps.CompiledSteps.block

    def watched(self: steps.CompiledSteps, count: int, kind: str) -> steps.Block:
        sizes.append(count)
        return take(self, count, kind)

    monkeypatch.setattr(steps.CompiledSteps, "block", watched)
    return sizes


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("seed", [0, 1])
def test_both_take_the_same_steps(
    name: str, seed: int, monkeypatch: pytest.MonkeyPatch, block_sizes: list[int]
) -> None:
    model = MODELS[name]
    x0 = model.x0() + 0.3 * np.random.default_rng(seed).standard_normal(model.n)
    if model._within is not None:
        model._within.project(x0, x0)
    direction = DIRECTIONS.get(name, "bfgs")
    compiled = model.solve(x0=x0, direction=direction)
    assert sum(block_sizes) > compiled.nit // 3
    with in_python(monkeypatch):
        plain = model.solve(x0=x0, direction=direction)
    assert compiled.status == plain.status == "converged"
    assert abs(compiled.nit - plain.nit) <= 2
    first = min(10, plain.nit)
    for column in ("fun", "gradient_norm", "step"):
        ours, theirs = getattr(compiled.history, column), getattr(plain.history, column)
        np.testing.assert_allclose(ours[:first], theirs[:first], rtol=1e-8)
    np.testing.assert_array_equal(compiled.history.epoch[1:], np.arange(1, compiled.nit + 1))
    np.testing.assert_allclose(compiled.x, plain.x, rtol=1e-5)
    assert compiled.epochs[0].count == compiled.nit


@pytest.mark.parametrize("name", ["bowl", "decay", "circles", "walls", "rates"])
def test_counts_are_those_of_the_calls(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where all steps are the same, so are the counts."""
    model = MODELS[name]
    compiled = model.solve()
    with in_python(monkeypatch):
        plain = model.solve()
    assert (compiled.nfev, compiled.njev, compiled.nhev) == (plain.nfev, plain.njev, plain.nhev)


@pytest.mark.parametrize("name", ["valley", "decay", "walls", "many_walls"])
def test_watched_runs_have_the_same_bits(name: str) -> None:
    """A callback or a display ends blocks, which changes nothing."""
    model, seen = MODELS[name], list[State]()
    alone = model.solve()
    watched = model.solve(callback=seen.append)
    assert [state.k for state in seen] == list(range(alone.nit + 1))
    np.testing.assert_array_equal(watched.x, alone.x)
    np.testing.assert_array_equal([state.fun for state in seen], alone.history.fun)
    assert [state.nfev for state in seen] == sorted(state.nfev for state in seen)


@pytest.mark.parametrize("limit", ["max_iter", "max_nfev"])
@pytest.mark.parametrize("most", [1, 2, 20])
def test_budgets_are_kept(limit: str, most: int) -> None:
    found = MODELS["valley"].solve(**{limit: most})
    assert found.status == limit
    assert (found.nit if limit == "max_iter" else found.nfev) == most
    assert len(found.history.fun) == found.nit + 1


@pytest.mark.parametrize(
    ("name", "most"),
    [("valley", 5), ("valley", 21), ("bowl", 1), ("decay", 3), ("many_walls", 20), ("rates", 2)],
)
def test_resumed_runs_have_the_same_bits(name: str, most: int, tmp_path: Path) -> None:
    model = MODELS[name]
    whole = model.solve()
    path = tmp_path / "run.npz"
    model.solve(max_iter=most, checkpoint=path)
    resumed = model.solve(resume=path)
    np.testing.assert_array_equal(resumed.x, whole.x)
    np.testing.assert_array_equal(resumed.history.fun, whole.history.fun)
    assert (resumed.nfev, resumed.njev, resumed.nhev) == (whole.nfev, whole.njev, whole.nhev)


@pytest.mark.parametrize("name", ["valley", "circles", "walls"])
def test_the_clock_changes_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = MODELS[name].solve()
    monkeypatch.setattr(steps, "SECONDS", 0.0)
    np.testing.assert_array_equal(MODELS[name].solve().history.fun, whole.history.fun)


@pytest.mark.parametrize("power", [-40, 40])
def test_units_of_f_change_no_bits(power: int) -> None:
    text = VALLEY.replace("minimize sum", f"minimize {2.0**power!r}*(sum", 1).rstrip() + ")\n"
    scaled = slomodel.compile(text, backend="c").solve(direction="bfgs")
    own = MODELS["valley"].solve(direction="bfgs")
    np.testing.assert_array_equal(scaled.x, own.x)
    np.testing.assert_array_equal(scaled.history.step, own.history.step)


def test_a_time_limit_and_an_interrupt_end_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a long narrow valley, whose steps are all plain."""
    model = slomodel.compile(LONG, backend="c")
    options = {"direction": "bfgs", "gtol": 1e-14, "max_iter": 10**9}
    found = model.solve(max_time=0.05, **options)
    assert found.status == "max_time"
    assert found.history.time[-1] < 5.0  # its steps would take an hour

    # Ctrl-C comes while the loop runs: not before it begins, and nothing else ends it.
    inside, run = threading.Event(), steps.CompiledSteps.run

    def marked(self: steps.CompiledSteps, name: str, at: Iterate, limits: BlockLimits) -> int:
        inside.set()
        return run(self, name, at, limits)

    monkeypatch.setattr(steps.CompiledSteps, "run", marked)
    thread = threading.Thread(
        target=lambda: inside.wait(60.0) and signal.raise_signal(signal.SIGINT), daemon=True
    )
    thread.start()
    assert model.solve(max_time=60.0, **options).status == "interrupted"
    thread.join()


def test_the_time_to_compile_residuals_is_not_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    model = slomodel.compile(DECAY, data={"t": np.arange(4.0), "y": np.ones(4)}, backend="c")
    has_residuals = CompiledObjective.has_residuals

    def slow(self: CompiledObjective) -> bool:
        if "_squares" not in model.__dict__:
            time.sleep(1.0)
        return has_residuals(self)

    monkeypatch.setattr(CompiledObjective, "has_residuals", slow)
    assert model.solve().history.time[0] < 1.0


@pytest.mark.parametrize("n", [2, 16])
def test_inverse_hessian_is_that_of_lapack(n: int) -> None:
    """For indefinite and singular matrices in units that differ by up to 1e16, too."""
    rng = np.random.default_rng(n)
    model = slomodel.compile(FORM, data={"A": np.eye(n)}, backend="c")
    for rank, spread in ((n, 0.0), (n, 8.0), (n - 1, 0.0), (n - 1, 8.0)):
        factor = rng.standard_normal((n, rank))
        units = 10.0 ** rng.uniform(-spread, spread, n)
        matrix = (factor * rng.choice([-1.0, 1.0], rank)) @ factor.T * np.outer(units, units)
        bound = model.bind(A=matrix)
        evaluate = Evaluator(bound._objective(), RunOptions.of({})[0])
        compiled = steps.compiled_steps(evaluate, n, 1, None)
        assert compiled is not None
        x = rng.standard_normal(n)
        found = compiled.inverse_hessian(Iterate(x, 0.0, bound.gradient(x), 1.0), math.inf)
        assert found is not None
        hessian, inverse = found
        assert evaluate.nhev == n
        np.testing.assert_allclose(hessian, 0.5 * (matrix + matrix.T), rtol=1e-12)
        expected = inverse_magnitude(hessian, evaluate.eps)
        assert inverse is not None
        assert expected is not None
        scale = 1.0 / np.sqrt(np.abs(np.diag(expected)))
        error = np.abs(inverse - expected) * np.outer(scale, scale)
        condition = np.linalg.cond(hessian / np.outer(units, units)) if rank == n else 1e13
        assert error.max() <= 1e-14 * n * min(condition, 1e13)


def test_unknowns_on_which_f_hardly_depends_do_not_hide_others() -> None:
    """Their part of a step is at most as long as the longest, and theirs is no huge curvature."""
    longest, x = 10.0, np.array([1.0, 1e-3])
    model = slomodel.compile(FORM, data={"A": np.diag([2.0, 1e-90])}, backend="c")
    evaluate = Evaluator(model._objective(), RunOptions.of({})[0])
    compiled = steps.compiled_steps(evaluate, 2, 1, None)
    assert compiled is not None
    at = Iterate(x, model.value(x), np.array([2.0, 1e-45]), 2.0)
    found = compiled.inverse_hessian(at, longest)
    assert found is not None
    expected = inverse_magnitude(found[0], evaluate.eps, at, longest)
    assert expected is not None
    np.testing.assert_allclose(found[1], expected, rtol=1e-12)
    np.testing.assert_allclose(expected[0], [0.5, 0.0])
    assert expected[1, 1] <= longest**2 / (evaluate.eps * abs(at.f))


IN_BOX = """model in_box
dim n
data A[n, n]
var x[n] in [-1, 1]
minimize sum(x[i]*A[i, j]*x[j] for i in n, j in n)/2 + sum(x^4)/7
"""


@pytest.mark.parametrize("n", [1, 2, 7])
def test_looks_about_a_point_are_those_in_python(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hessians, least curvatures on faces, and the first of several points that are lower."""
    rng = np.random.default_rng(n)
    for rank in {0, 1, n}:
        factor = rng.standard_normal((n, rank))
        A = (factor * rng.choice([-1.0, 1.0], rank)) @ factor.T
        model = slomodel.compile(IN_BOX, data={"A": A}, backend="c")
        x = np.clip(2.0 * rng.standard_normal(n), -1.0, 1.0)
        at = Iterate(x, model.value(x), 1e-9 * rng.standard_normal(n), 1e-9)
        boxed, whole = (
            Evaluator(model._objective(), RunOptions(), w) for w in (model.within, None)
        )
        whole.columns_in_c = partial(scans.hessian_at, whole)
        np.testing.assert_allclose(whole_hessian(whole, x), model.hessian(x), atol=1e-13)
        compiled = stationary_point._least(boxed, at, None)
        beyond = falls_beyond(whole, at, SoFar(1.0, 1.0), model.hessian(x))
        counts = [(one.nfev, one.njev, one.nhev) for one in (boxed, whole)]
        with monkeypatch.context() as patched:
            patched.setattr(scans, "library", lambda: None)
            for one in (boxed, whole):
                one.nfev = one.njev = one.nhev = 0
            np.testing.assert_allclose(whole_hessian(whole, x), model.hessian(x), atol=1e-13)
            plain = stationary_point._least(boxed, at, None)
            expected = falls_beyond(whole, at, SoFar(1.0, 1.0), model.hessian(x))
        assert counts == [(one.nfev, one.njev, one.nhev) for one in (boxed, whole)]
        assert (compiled is None) == (plain is None)
        if compiled is not None and plain is not None:
            assert compiled.steps == plain.steps
            assert compiled.value == pytest.approx(plain.value, abs=1e-12)
            assert compiled.residual == pytest.approx(plain.residual, abs=1e-7)
            assert compiled.largest == pytest.approx(plain.largest, abs=1e-12)
            assert abs(compiled.vector @ plain.vector) == pytest.approx(1.0, abs=1e-7)
        assert (beyond is None) == (expected is None)
        if beyond is not None and expected is not None:
            np.testing.assert_array_equal(beyond.step, expected.step)
            assert beyond.f == expected.f


def test_without_a_compiler_runs_are_in_python(
    monkeypatch: pytest.MonkeyPatch, block_sizes: list[int]
) -> None:
    with in_python(monkeypatch):
        assert MODELS["valley"].solve().success
    numpy = slomodel.compile(VALLEY, backend="numpy").solve(direction="bfgs")
    single = slomodel.compile(VALLEY, backend="c", dtype="float32").solve(direction="bfgs")
    assert block_sizes == []
    assert numpy.success
    assert single.success


def steps_in_python(plain: list[bool], due: list[bool], longest: int) -> list[int]:
    """The steps that the pace gives to Python, with blocks of at most `longest` plain steps.

    A block ends before a step that is not plain, or at which another direction is due.
    """
    pace, k = steps.Pace(), 0
    taken: list[int] = []
    while k < len(plain):
        run, was_left = 0, False
        if pace.is_due():
            if due[k]:
                pace.pass_over()
            else:
                while run < longest and k + run < len(plain) and not was_left:
                    was_left = due[k + run] or not plain[k + run]
                    run += not was_left
                pace.record(run, was_left)
        if not run:
            if was_left:
                pace.is_due()
            taken.append(k)
        k += run or 1
    return taken


def test_the_pace_does_not_depend_on_the_lengths_of_blocks() -> None:
    """Steps in Python differ in rounding, and so would runs with a callback, of single steps."""
    rng = np.random.default_rng(0)
    for share in (0.1, 0.5, 0.9):
        plain, due = (rng.random(300) < share).tolist(), (rng.random(300) < 0.1).tolist()
        assert steps_in_python(plain, due, 1) == steps_in_python(plain, due, 200)


def test_underdetermined_squares_do_not_bend_steps_by_the_hessian() -> None:
    """The compiled loop meets the test of convergence there, and leaves no factors of J."""
    text = """dim m, n
data M[m, n], known[m, n] mask
var u[m], v[n] init 1
minimize sumsq(masked(outer(u, v) - M, known))
"""
    rng = np.random.default_rng(0)
    first = {"M": np.array([[5.0, 0.0, 3.0], [0.0, 4.0, 1.0]])}
    first["known"] = (first["M"] != 0.0).astype(float)
    model = slomodel.compile(text, data=first, backend="c")
    for k in range(20):
        if k:
            M = np.outer(rng.standard_normal(2), rng.standard_normal(3))
            model = model.bind(M=M, known=(rng.random((2, 3)) < 0.6).astype(float))
        found = model.solve(x0=np.ones(5))
        assert found.success
        np.testing.assert_array_equal(
            model.solve(x0=np.ones(5), callback=lambda _: None).x, found.x
        )
