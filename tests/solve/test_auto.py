"""Choices of `auto` for models of every kind; directions in alternation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from solve.objectives import Vector, rosenbrock

import slomodel
from slomodel.solve import Functions, objective, solve
from slomodel.solve.directions.alternating import Turns
from slomodel.solve.directions.direction import Gradient, SecantPair
from slomodel.solve.directions.gauss_newton import GaussNewton
from slomodel.solve.directions.mixed_newton import STAY, MixedNewton
from slomodel.solve.facts import ObjectiveFacts, Product
from slomodel.solve.objective import Evaluator
from slomodel.solve.run_options import RunOptions
from slomodel.solve.subroutine import Iterate

T = np.linspace(0.1, 2.0, 8)

# text, data, the direction, what it is chosen for
CHOICES = [
    ("var x[3] minimize sumsq(x) + sum(x)", {}, "bfgs", "a smooth objective of 3 unknowns"),
    ("var x[30] minimize sumsq(x - 1)", {}, "bfgs", "a smooth objective of 30 unknowns"),
    (
        "var x[2000] minimize sumsq(x - 1)",
        {},
        "newton-cg",
        "a quadratic objective of 2000 unknowns",
    ),
    (
        "data t[m], y[m] var a, b minimize sum((a * exp(-b * t[i]) - y[i])^2 for i in m)",
        {"t": T, "y": np.exp(-T)},
        "levenberg-marquardt",
        "a sum of squares in 2 unknowns",
    ),
    (
        "var x[2] init -1 minimize (1 - x[0])^2 + 9 * (x[1] - x[0]^2)^2",
        {},
        "levenberg-marquardt",
        "a sum of squares in 2 unknowns",
    ),
    (
        "var x[10] init 2 minimize sumsq(exp(x) - 2)",
        {},
        "bfgs",
        "a smooth objective of 10 unknowns",
    ),
    (
        "var x[25] init 2 minimize sum(x^4) + sum(exp(x))",
        {},
        "bfgs",
        "a smooth objective of 25 unknowns",
    ),
    ("var x[2] init 2 minimize sum(abs(x)) + sumsq(x)", {}, "bfgs", "an objective with kinks"),
    (
        "var x init 2 minimize exp(x) + exp(-x)",
        {},
        "bfgs",
        "a smooth objective of 1 unknown",
    ),
]


@pytest.mark.filterwarnings("ignore::slomodel.errors.NonsmoothWarning")
@pytest.mark.parametrize(("text", "data", "direction", "reason"), CHOICES)
def test_choices(text: str, data: dict[str, Vector], direction: str, reason: str) -> None:
    model = slomodel.compile(text.replace("data", "dim m data"), data=data)
    found = model.solve(max_iter=50)
    assert found.parameters["direction"] == direction
    assert found.parameters["chosen_for"] == reason
    asked = model.solve(direction="lbfgs", max_iter=1)
    assert "chosen_for" not in asked.parameters


def test_plain_functions() -> None:
    few = solve(rosenbrock(), [-1.2, 1.0], method="auto")
    assert few.parameters["direction"] == "lbfgs/newton"
    many = Functions(lambda x: float(x @ x), lambda x: 2.0 * x, 21)
    assert solve(many, np.ones(21), method="auto").parameters["direction"] == "lbfgs"


class Recorded(Gradient):
    """−∇f, with the steps at which it was asked."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.learned = 0
        self.fallen = 0

    def propose(self, at: Iterate, out: Vector) -> float:
        self.asked.append(int(at.f))
        return 1.0

    def learn(self, pair: SecantPair) -> None:
        self.learned += 1

    def fallback(self, at: Iterate, out: Vector) -> float:
        self.fallen += 1
        return 1.0


def test_turns() -> None:
    """Of 3, 6, 12 and 24 evaluations, the first one's again after the last one's."""
    objective = Functions(lambda x: float(x @ x), lambda x: 2.0 * x, 1)
    evaluate = Evaluator(objective, RunOptions())
    directions = Recorded(), Recorded(), Recorded()
    turns = Turns(evaluate, directions, work=3)
    x, out = np.ones(1), np.empty(1)
    for k in range(30):
        turns.propose(Iterate(x, float(k), x, 1.0), out)
        turns.fallback(Iterate(x, float(k), x, 1.0), out)
        turns.learn(SecantPair(x, x, 1.0, 1.0, 1.0))
        evaluate.value(x)
    asked = [direction.asked for direction in directions]
    assert asked == [[0, 1, 2, *range(21, 30)], [*range(3, 9)], [*range(9, 21)]]
    assert [direction.learned for direction in directions] == [30, 30, 30]
    assert [direction.fallen for direction in directions] == list(map(len, asked))


def test_turns_say_whose_step_it_was() -> None:
    """Curvature is learned from every step, lengths only from one's own."""
    objective = Functions(lambda x: float(x @ x), lambda x: 2.0 * x, 1)
    evaluate = Evaluator(objective, RunOptions())
    x, out = np.ones(1), np.empty(1)
    seen: dict[str, list[bool]] = {"a": [], "b": []}

    class Watching(Gradient):
        def __init__(self, name: str) -> None:
            self.name = name

        def learn(self, pair: SecantPair) -> None:
            seen[self.name].append(pair.own)

    turns = Turns(evaluate, (Watching("a"), Watching("b")), work=2)
    for own in (True, False, True, True, False, True):
        turns.propose(Iterate(x, 0.0, x, 1.0), out)
        turns.learn(SecantPair(x, x, 1.0, 1.0, 1.0, own))
        evaluate.value(x)
    assert seen == {
        "a": [True, False, False, False, False, False],
        "b": [False, False, True, True, False, True],
    }


def test_damping_is_learned_from_own_steps() -> None:
    """The same direction whatever steps of others come between."""
    objective = Square(1.0)
    evaluate = Evaluator(objective, RunOptions())
    f, g = objective.value_and_gradient(np.ones(1))
    at = Iterate(np.ones(1), f, g, float(abs(g[0])))
    short = SecantPair(np.full(1, 1e-12), np.full(1, 1e-12), 1e-24, 1e-12, 1e-12)
    v = np.empty(1)

    def proposed(*pairs: SecantPair) -> float:
        direction = GaussNewton(evaluate, at, 10.0)
        for pair in pairs:
            direction.propose(at, v)
            direction.learn(pair)
        return direction.propose(at, v)

    alone = proposed()
    assert proposed(*4 * [replace(short, own=False)]) == alone
    assert proposed(short) < 1e-3 * alone


def test_gradients_of_residuals_come_from_their_jacobian() -> None:
    """Only the last gradient, which the solution has, is computed by itself."""
    text = "dim m data t[m], y[m] var a, b minimize sum((a * exp(-b*t[i]) - y[i])^2 for i in m)"
    model = slomodel.compile(text, data={"t": T, "y": np.exp(-T) + 0.1 * np.sin(9 * T)})
    found = model.solve(x0=[0.5, 0.5])
    assert found.success
    assert found.nit > 2
    assert found.njev == 1
    assert np.array_equal(found.jac, model.gradient(found.x))


CHAINED = "sum((x[i] * x[i+1] - 1)^2 for i in range(n - 1))"
# The unknowns, the place of a start among eight, and a tolerance. With steps of others taken for
# its own, Gauss and Newton's direction was damped to nothing in all of these.
STALLED = [(8, 5, 1e-8), (12, 0, 1e-8), (20, 0, 1e-8), (20, 5, 1e-6), (20, 6, 1e-6), (20, 7, 1e-8)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("n", "k", "gtol"), STALLED)
def test_chained_products_do_not_stall(n: int, k: int, gtol: float) -> None:
    generator = np.random.default_rng(n)
    x0 = [size * generator.normal(size=n) for size in (1.0, 10.0) for _ in range(4)][k]
    model = slomodel.compile(f"dim n = {n}\nvar x[n]\nminimize {CHAINED}")
    direction = "levenberg-marquardt"
    found = model.solve(x0=x0, gtol=gtol, max_iter=1000, direction=direction)
    # Each pair of equal neighbours costs 1; in between the values are approached at infinity only.
    assert found.success or abs(found.fun - round(found.fun)) < 1e-4, found.message


@pytest.mark.parametrize("n", [5, 12, 20])
@pytest.mark.parametrize(
    "objective",
    [
        "sum((x[i] + 10*x[i+1])^2 + 5*(x[i+2] - x[i+3])^2 + (x[i+1] - 2*x[i+2])^4"
        " + 10*(x[i] - x[i+3])^4 for i in range(n - 3))",
        "(x[0] - 1)^2 + sum((2*x[i+1]^2 - x[i])^2 for i in range(n - 1))",
        "sum((x[i]^2 - x[i+1])^4 + 100*(x[i+1] - x[i+2])^2 for i in range(n - 2))",
        "sum(100*(x[i+1] - x[i]^2)^2 + ((1 - x[i])^2)^2 for i in range(n - 1))",
    ],
    ids=["powell", "dixon", "cragg", "rosenbrock"],
)
def test_chained_quartics_of_the_books(objective: str, n: int) -> None:
    model = slomodel.compile(f"dim n = {n}\nvar x[n]\nminimize {objective}")
    for x0 in (np.resize([3.0, -1.0, 0.0, 1.0], n), np.full(n, -1.2)):
        found = model.solve(x0=x0, gtol=1e-8)
        assert found.success, found.message


class Square:
    """f = ½r², r = x + c x³ from x, with the products that a compiled model has; `asked` of which.

    Gauss and Newton's matrix is r'², Newton's r'² + r r''.
    """

    n = 1
    facts = ObjectiveFacts(curvature=True, squares=True)

    def __init__(self, c: float) -> None:
        self.c = c
        self.asked: list[str] = []

    def value(self, x: Vector) -> float:
        return 0.5 * float(self._r(x) ** 2)

    def value_and_gradient(self, x: Vector, out: Vector | None = None) -> tuple[float, Vector]:
        return self.value(x), np.array([self._r(x) * self._slope(x)])

    def load(self, product: Product) -> None:
        pass

    def hvp(self, x: Vector, v: Vector) -> Vector:
        self.asked.append("N")
        return (self._slope(x) ** 2 + self._r(x) * 6.0 * self.c * x[0]) * v

    def gauss_newton(self, x: Vector, v: Vector) -> Vector:
        self.asked.append("G")
        return self._slope(x) ** 2 * v

    def _r(self, x: Vector) -> float:
        return float(x[0] + self.c * x[0] ** 3)

    def _slope(self, x: Vector) -> float:
        return float(1.0 + 3.0 * self.c * x[0] ** 2)


def test_mixed_newton() -> None:
    """While r is nearly linear Gauss and Newton's alone; where that predicts badly, Newton's."""
    straight, bent = Square(1e-3), Square(-0.2)
    for square, start in ((straight, 1.0), (bent, 1.3)):
        assert solve(square, [start], direction="gauss-newton/newton", gtol=1e-9).success
    assert set(straight.asked) == {"G"}
    assert "".join(bent.asked).startswith("GN")


def test_mixed_newton_returns() -> None:
    objective = Square(1.0)
    evaluate = Evaluator(objective, RunOptions())
    f, g = objective.value_and_gradient(np.ones(1))
    at = Iterate(np.ones(1), f, g, float(abs(g[0])))
    direction = MixedNewton(evaluate, at, 1.0)
    for _ in range(2 * STAY + 3):
        # f has not fallen.
        direction.propose(at, np.empty(1))
    assert "".join(objective.asked) == 2 * ("G" + STAY * "N") + "G"


@pytest.mark.parametrize("matrix", ["newton", "gauss-newton"])
def test_loading_of_products_is_not_charged_to_the_run(
    matrix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]

    class Loaded(Square):
        loads = 0

        def load(self, product: Product) -> None:
            self.loads += 1
            now[0] += 100.0

    monkeypatch.setattr(objective, "perf_counter", lambda: now[0])
    bent = Loaded(-0.2)
    found = solve(bent, [0.5], direction=matrix, max_time=1.0)
    assert (found.status, bent.loads) == ("converged", 1)


class InUnits:
    """The objective of a model with f and x in other units: c·f(x/s)."""

    def __init__(self, model: slomodel.Model, c: float, s: float) -> None:
        self._inner = model._objective()
        self._c, self._s = c, s
        self.n = model.n
        self.facts = self._inner.facts
        self.has_residuals = self._inner.has_residuals
        self.load = self._inner.load
        self.coloured_hessian = self._inner.coloured_hessian

    def value(self, x: Vector) -> float:
        return self._c * self._inner.value(x / self._s)

    def value_and_gradient(self, x: Vector, out: Vector | None = None) -> tuple[float, Vector]:
        f, g = self._inner.value_and_gradient(x / self._s)
        return self._c * f, self._c / self._s * g

    def hvp(self, x: Vector, v: Vector) -> Vector:
        return self._c / self._s**2 * self._inner.hvp(x / self._s, v)

    def gauss_newton(self, x: Vector, v: Vector) -> Vector:
        return self._c / self._s**2 * self._inner.gauss_newton(x / self._s, v)

    def affine_unknowns(self) -> Vector:
        return self._inner.affine_unknowns()

    def jacobian(self, x: Vector, columns: Vector | None = None) -> tuple[Vector, Vector]:
        r, J = self._inner.jacobian(x / self._s, columns)
        return np.sqrt(self._c) * r, np.sqrt(self._c) / self._s * J


UNITS = [(2.0**20, 1.0), (2.0**-20, 1.0), (1.0, 2.0**10), (1.0, 2.0**-10), (2.0**30, 2.0**-7)]
IN_UNITS = [
    ("var x[2] init -1.2\nminimize 100*(x[1] - x[0]^2)^2 + (1 - x[0])^2", 1e-6),
    ("var x[4] init 3\nminimize sum(exp(x) + exp(-2*x)) + (x[0] - x[1]*x[2])^4", 1e-6),
    ("var x[30] init 2\nminimize sum(log(1 + x^2)) + sum(x)^2 + 1", 1e-9),
    ("dim n = 150\nvar x[n] init 1\nminimize sum((x[i] - i)^2*(i + 1) for i in n) + 1", 1e-6),
]


@pytest.mark.parametrize(("text", "gtol"), IN_UNITS)
def test_units_of_f_and_x_change_no_step(text: str, gtol: float) -> None:
    """Powers of 2 are exact: c·f and s·x lead to the same bits, times c and s, and the same end."""
    model = slomodel.compile(text, backend="numpy")
    x0 = model.x0(0)
    plain = solve(InUnits(model, 1.0, 1.0), x0, method="auto", gtol=gtol)
    for c, s in UNITS:
        found = solve(InUnits(model, c, s), s * x0, method="auto", gtol=gtol)
        assert found.status == plain.status
        assert (found.x / s).tolist() == plain.x.tolist()
        assert (found.history.fun / c).tolist() == plain.history.fun.tolist()


def test_an_interrupted_run_of_an_earlier_version_keeps_its_direction() -> None:
    """`auto` has made other choices since; a checkpoint continues with its own."""
    text = """
        var x[4] init -1.2
        minimize sum(100*(x[i+1] - x[i]^2)^2 + (1 - x[i])^2 for i in range(3))
    """
    path = Path(__file__).parent.parent / "data" / "checkpoints" / "chosen" / "auto.npz"
    found = slomodel.compile(text, backend="numpy").solve(resume=path)
    assert found.parameters["direction"] == "gauss-newton/newton-cg/lbfgs/newton"
    assert found.success
    assert found.nit > 6
    np.testing.assert_allclose(found.x, 1.0, rtol=1e-5)


def test_a_start_where_f_is_huge_is_not_a_measure_of_its_end() -> None:
    """f falls from 1e86 to 0; no fraction of it at the start may end the run."""
    t = np.arange(1.0, 101.0)
    text = "dim m\ndata t[m], y[m]\nvar a, k\nminimize sum((a*exp(k*t[i]) - y[i])^2 for i in m)"
    model = slomodel.compile(text, data={"t": t, "y": 3.0 * np.exp(-0.01 * t)})
    for gtol in (1e-3, 1e-6):
        found = model.solve(x0=[1.0, 1.0], gtol=gtol, max_iter=300)
        assert not found.success or found.fun < 1e-6


def test_the_unconstrained_model_takes_the_steps_of_its_own() -> None:
    """Its variables on a logarithmic scale move as little in a step as those of the model."""
    text = "dim m\ndata y[m]\nvar s > 0, a\nminimize sum(0.5*((y[i] - a)/s)^2 + log(s) for i in m)"
    model = slomodel.compile(text, data={"y": np.array([100.0, 200.0, 400.0])}, backend="numpy")
    x0 = np.array([1e-3, 0.0])
    one, other = model.solve(x0=x0), model.unconstrained.solve(x0=model.to_unconstrained(x0))
    assert one.history.fun.tolist() == other.history.fun.tolist()


def test_a_hessian_is_not_computed_where_pairs_soon_converge() -> None:
    """The one at the end confirms the minimum; with a gradient that hardly falls there are more."""
    n = 12
    convex = f"var x[{n}]\nminimize sum(softplus(x[i] - i/9) - 0.3*x[i] for i in {n})"
    found = slomodel.compile(convex, backend="numpy").solve()
    assert found.success
    assert found.nhev <= n + 1
    valley = (
        f"var x[{n}] init -1.2\nminimize sum(100*(x[i+1] - x[i]^2)^2 for i in {n - 1}) + cos(x[0])"
    )
    assert slomodel.compile(valley, backend="numpy").solve(max_iter=300).nhev > n + 1


def test_a_second_descent_leaves_a_valley_without_end(tmp_path: Path) -> None:
    """Two peaks whose first steps end where both grow without end, as one of infinite width."""
    t = np.linspace(0.0, 10.0, 60)
    y = 5.0 * np.exp(-(((t - 3.0) / 0.7) ** 2)) + 3.0 * np.exp(-(((t - 6.0) / 1.5) ** 2)) + 0.2
    peaks = " + ".join(f"a[{k}]*exp(-((t - c[{k}])*exp(-s[{k}]))^2)" for k in range(2))
    text = f"dim m data t[m], y[m] var b, a[2], c[2], s[2] minimize sum((y - b - {peaks})^2)"
    model = slomodel.compile(text, data={"t": t, "y": y}, backend="c")
    x0 = np.array([0.0, 1.0, 1.0, 2.0, 7.0, 0.0, 0.0])
    found = model.solve(x0=x0)
    assert found.success
    assert found.fun < 43.0
    assert found.nit < 2000
    assert "second descent 1" in str(found.parameters["steps"])
    np.testing.assert_array_equal(model.solve(x0=x0, callback=lambda state: None).x, found.x)
    path = tmp_path / "run.npz"
    before = int(found.history.step[1:].argmax())
    for most in (0, 200, before, found.nit - 1):
        assert model.solve(x0=x0, max_iter=most, checkpoint=path).nit == most
        again = model.solve(resume=path, max_iter=10_000)
        np.testing.assert_array_equal(again.history.fun, found.history.fun)
        for name in ("nit", "nfev", "njev", "nhev", "gradient_norm"):
            assert getattr(again, name) == getattr(found, name)
    asked = iter(k == before for k in range(found.nit + 1))
    stopped = model.solve(x0=x0, callback=lambda state: next(asked))
    assert (stopped.status, stopped.nit) == ("user_stopped", before)
