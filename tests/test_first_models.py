"""Mistakes of a first hour, whose messages alone have to suffice; examples; solutions as points."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import slomodel
from slomodel.cli import main

MISTAKES = {
    "no data": (
        "dim N data x[N], y[N] var a minimize sumsq(y - a * x)",
        "no values for data `x`, `y`",
    ),
    "a comparison as a number": (
        "dim N data y[N] var a minimize sum((y > 0) * (a - y)^2)",
        "`a if condition else b`",
    ),
    "one sign for an equality": (
        "dim N data y[N] var a minimize sum(where(y = 0, a, a^2))",
        "`y == …`",
    ),
    "a statement of Stan": ("dim N data y[N] var a\ny ~ poisson(a)", "there is no `~`"),
    "an indexed statement of Stan": ("dim N data y[N] var a\ny[i] ~ poisson(a)", "there is no `~`"),
    "a distribution in an objective": (
        "dim N data y[N] var a > 0 maximize y ~ poisson(a)",
        "there is no `~`",
    ),
    "a distribution without its ending": (
        "dim N data y[N] var a > 0 maximize poisson(y, a)",
        "did you mean `poisson_lpmf`?",
    ),
    "a condition of SQL": (
        "dim N data y[N] var a minimize sum((y[i] - a)^2 for i in N where y[i] > 0)",
        "a condition on indices follows `if`",
    ),
    "no shape": ("data y var a minimize sum((y - a)^2)", "`data y[n]` an array"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_the_message_says_what_to_write(name: str) -> None:
    text, remedy = MISTAKES[name]
    with pytest.raises(slomodel.SlomodelError) as caught:
        slomodel.compile(text, backend="numpy").solve()
    assert remedy in str(caught.value)


def test_a_table_with_texts_says_which_columns_hold_numbers(tmp_path: Path) -> None:
    (tmp_path / "plots.csv").write_text("plot,count,rain\nplot_05,3,1.5\nplot_06,4,2\n")
    path = tmp_path / "m.slo"
    path.write_text('dim N data X[N, 2] from "plots.csv" var a[2] minimize sumsq(X @ a - 1)')
    with pytest.raises(slomodel.DomainError, match=r'"file\.csv:count,rain"'):
        slomodel.compile(path)


def test_examples_come_with_the_package() -> None:
    path = slomodel.example("rosenbrock")
    assert path.name == "rosenbrock.slo"
    assert slomodel.compile(path, dims={"n": 2}, backend="numpy").solve().success
    with pytest.raises(slomodel.DomainError, match="deep_linear"):
        slomodel.example("rosenbrok")


def test_a_solution_is_a_point_everywhere() -> None:
    model = slomodel.compile("var a > 0\nvar x minimize a - log(a) + (x - a)^2", backend="numpy")
    solution = model.solve()
    assert model.value(solution) == model.value(solution.x)
    np.testing.assert_array_equal(model.gradient(solution), model.gradient(solution.x))
    np.testing.assert_array_equal(model.hessian(solution), model.hessian(solution.x))
    assert model.bounds(solution, 0.1).L1 == model.bounds(solution.x, 0.1).L1
    assert model.trace_nonfinite(solution) is None
    inner, u = model.unconstrained, solution.unconstrained
    assert u is not None
    assert inner.value(solution) == inner.value(u)


def test_slow_steps_are_blamed_on_the_scale_of_a_covariate() -> None:
    rng = np.random.default_rng(0)
    data = {"x": 1000.0 + 300.0 * rng.normal(size=20), "y": rng.random(20)}
    text = "dim N data x[N], y[N] var a, b init 0\nlet e = a + b * x\n"
    model = slomodel.compile(
        text + "minimize sum(softplus(e) - y .* e)", data=data, backend="numpy"
    )
    message = model.solve("pgd", max_iter=3).message
    assert "divide the data that multiply `b` by about 1e+03" in message
    assert "A smaller D" in message
    scaled = slomodel.compile(
        text.replace("b * x", "b * (x - 1000) / 300") + "minimize sum(softplus(e) - y .* e)",
        data=data,
        backend="numpy",
    )
    assert "divide" not in scaled.solve("pgd", max_iter=3).message


def test_definitions_and_standard_errors_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "xy.csv").write_text("t,y\n0,1\n1,3.1\n2,4.9\n3,7\n")
    path = tmp_path / "line.slo"
    path.write_text(
        'dim n data t[n], y[n] from "xy.csv" var a, b\n'
        "let line = a + b * t\nminimize sumsq(y - line)\n"
    )
    asked = [str(path), "--evaluate", "line", "--standard-errors", "auto", "--backend", "numpy"]
    text = CliRunner().invoke(main, ["solve", *asked])
    assert text.exit_code == 0, text.output
    assert "std. error" in text.output
    found = json.loads(CliRunner().invoke(main, ["solve", *asked, "--json"]).output)
    slope, intercept = np.polyfit([0.0, 1.0, 2.0, 3.0], [1.0, 3.1, 4.9, 7.0], 1)
    line = intercept + slope * np.arange(4.0)
    np.testing.assert_allclose(found["definitions"]["line"], line, rtol=1e-9)
    residual = np.array([1.0, 3.1, 4.9, 7.0]) - line
    error = np.sqrt(residual @ residual / 2.0 / 5.0)
    assert found["standard_errors"]["variables"]["b"] == pytest.approx(error, rel=1e-9)
    wrong = CliRunner().invoke(main, ["solve", str(path), "--evaluate", "lime"])
    assert wrong.exit_code == 1
    assert "did you mean `line`" in wrong.output
