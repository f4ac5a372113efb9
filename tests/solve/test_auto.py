"""What `auto` chooses, from models of every kind; directions that take turns."""

from __future__ import annotations

import numpy as np
import pytest
from solve.objectives import Vector, rosenbrock

import slomodel
from slomodel.solve import Functions, solve
from slomodel.solve.controls import Controls
from slomodel.solve.direction import Gradient, Pair
from slomodel.solve.objective import Evaluator
from slomodel.solve.subroutine import Iterate
from slomodel.solve.turns import Turns

T = np.linspace(0.1, 2.0, 8)

# text, data, the direction, what it is chosen for
CHOICES = [
    ("var x[3] minimize sumsq(x) + sum(x)", {}, "newton-cg", "a quadratic objective"),
    ("var x[30] minimize sumsq(x - 1)", {}, "newton-cg", "a quadratic objective"),
    (
        "data t[m], y[m] var a, b minimize sum((a * exp(-b * t[i]) - y[i])^2 for i in m)",
        {"t": T, "y": np.exp(-T)},
        "gauss-newton",
        "a sum of squares in 2 unknowns",
    ),
    (
        "var x[2] init -1 minimize (1 - x[0])^2 + 9 * (x[1] - x[0]^2)^2",
        {},
        "newton-cg/newton",
        "a smooth objective of 2 unknowns",
    ),
    (
        "var x[25] init 2 minimize sum(x^4) + sum(exp(x))",
        {},
        "lbfgs/newton-cg",
        "a smooth objective of 25 unknowns",
    ),
    ("var x[2] init 2 minimize sum(abs(x)) + sumsq(x)", {}, "lbfgs", "an objective with kinks"),
    (
        "var x init 2 minimize exp(x) + exp(-x)",
        {},
        "newton-cg/newton",
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

    def learn(self, pair: Pair) -> None:
        self.learned += 1

    def fallback(self, at: Iterate, out: Vector) -> float:
        self.fallen += 1
        return 1.0


@pytest.mark.parametrize("again", [True, False])
def test_turns(again: bool) -> None:
    objective = Functions(lambda x: float(x @ x), lambda x: 2.0 * x, 1)
    evaluate = Evaluator(objective, Controls())
    first, second = Recorded(), Recorded()
    turns = Turns(evaluate, (first, second), work=3, again=again)
    x, out = np.ones(1), np.empty(1)
    for k in range(20):
        turns.propose(Iterate(x, float(k), x, 1.0), out)
        turns.fallback(Iterate(x, float(k), x, 1.0), out)
        turns.learn(Pair(x, x, 1.0, 1.0, 1.0))
        evaluate.value(x)
    firsts = [0, 1, 2, *(range(6, 12) if again else ()), *((18, 19) if again else ())]
    assert first.asked == firsts
    assert second.asked == [k for k in range(20) if k not in firsts]
    assert first.learned == second.learned == 20
    assert (first.fallen, second.fallen) == (len(first.asked), len(second.asked))
