"""What a solution says about its run: the direction, the steps, the limits, the advice."""

import numpy as np
import pytest

import slomodel
from slomodel.solve import load_solution, solve
from slomodel.solve.plain_functions import Functions

VALLEY = "var x[4] init 3\nminimize sum(9*(x[i+1] - x[i]^2)^2 + (1 - x[i])^2 for i in range(3))"


def test_the_direction_and_the_steps(tmp_path: object) -> None:
    model = slomodel.compile(VALLEY, backend="numpy")
    found = model.solve(direction="bfgs")
    kinds = str(found.parameters["steps"])
    assert sum(int(one.split(" (")[0].rsplit(" ")[-1]) for one in kinds.split(", ")) == found.nit
    text = " ".join(found.explain().split())
    assert "along the direction bfgs, as requested" in text
    assert kinds in text
    assert "certify()" in text
    path = f"{tmp_path}/run.npz"
    found.save(path)
    assert load_solution(path).explain() == found.explain()


def test_the_reason_for_a_direction() -> None:
    text = slomodel.compile(VALLEY, backend="numpy").solve().explain()
    assert "which suits a sum of squares in 4 unknowns" in " ".join(text.split())
    assert "Levenberg-Marquardt" in text


def test_slow_convergence_and_a_budget() -> None:
    model = slomodel.compile(VALLEY, backend="numpy")
    text = " ".join(model.solve("norm-armijo", max_iter=120).explain().split())
    assert "which is slow" in text
    assert "a long flat valley" in text
    assert "The method auto uses curvature" in text


@pytest.mark.parametrize("method", ["tgd", "adgd", "agp"])
def test_every_method_has_an_account(method: str) -> None:
    text = slomodel.compile("var x[2] init 1\nminimize sumsq(x)^2", backend="numpy").solve(
        method, max_iter=3
    )
    assert text.explain().startswith(f"Method: {method}.")


def test_no_least_point() -> None:
    text = "data t[4], y[4]\nvar a, b\nminimize sum(softplus(-y[i]*(a + b*t[i])) for i in 4)"
    data = {"t": [-2.0, -1.0, 1.0, 2.0], "y": [-1.0, -1.0, 1.0, 1.0]}
    found = slomodel.compile(text, data=data, backend="numpy").solve()
    assert "there may be no least point" in " ".join(found.explain().split())
    inside = slomodel.compile(f"{text} + a^2 + b^2", data=data, backend="numpy").solve()
    assert "no least point" not in " ".join(inside.explain().split())


def test_kinks_are_suspected_only_where_there_may_be_one() -> None:
    smooth = slomodel.compile("var x init 2\nminimize log(x^2 - 1)", backend="numpy").solve()
    assert not smooth.success
    assert "kink" not in smooth.message
    found = solve(Functions(lambda x: abs(x[0]), np.sign, 1), [0.3], direction="lbfgs")
    assert found.success or "kink" in found.message
