"""Definitions and variables by name at a point, and predictions on new data."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

import slomodel

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 2))
SITES = np.array(["north", "south", "west"])[RNG.integers(3, size=30)]
EFFECT = {"north": 0.5, "south": -0.2, "west": 0.1}
Y = X @ [1.0, -2.0] + np.array([EFFECT[s] for s in SITES]) + 0.1 * RNG.normal(size=30)
TEXT = """
dim N, K, S
data X[N, K], y[N], site[N] in S labels
var b[K], u[S]
var s > 0
let eta = X @ b + u[site]
let odds = exp(b)
let smooth[i in N] = eta[i] + smooth[i - 1]  first eta[0]
minimize loss: sum((y - eta)^2) / (2 * s^2) + N * log(s)
"""
MODEL = slomodel.compile(TEXT, data={"X": X, "y": Y, "site": SITES}, backend="numpy")
SOLUTION = MODEL.solve()


def eta_by_hand(X: np.ndarray, sites: np.ndarray) -> np.ndarray:
    b, u = SOLUTION.variables["b"], SOLUTION.variables["u"]
    return X @ b + u[np.searchsorted(["north", "south", "west"], sites)]


def test_definitions_have_values_at_any_point() -> None:
    assert MODEL.definitions == {"eta": (30,), "odds": (2,), "smooth": (30,)}
    point = {"b": [1.0, 2.0], "u": [0.0, 1.0, 2.0], "s": 3.0}
    np.testing.assert_allclose(MODEL.evaluate("odds", point), np.exp([1.0, 2.0]), rtol=1e-15)
    assert MODEL.evaluate("s", point) == 3.0
    x = MODEL.pack(point)
    assert MODEL.evaluate("loss", x) == pytest.approx(MODEL.value(x), rel=1e-14)


def test_a_solution_gives_them_by_name() -> None:
    np.testing.assert_allclose(SOLUTION["eta"], eta_by_hand(X, SITES), rtol=1e-13)
    np.testing.assert_allclose(SOLUTION["smooth"], np.cumsum(SOLUTION["eta"]), rtol=1e-12)
    assert SOLUTION["u"] is SOLUTION.variables["u"]
    with pytest.raises(KeyError, match="did you mean `eta`"):
        SOLUTION["etta"]


def test_held_variables_have_values_too() -> None:
    fixed = MODEL.fix(s=0.1)
    solution = fixed.solve()
    assert fixed.evaluate("s", solution) == 0.1
    b, u = solution.variables["b"], solution.variables["u"]
    expected = X @ b + u[np.searchsorted(["north", "south", "west"], SITES)]
    np.testing.assert_allclose(solution["eta"], expected, rtol=1e-13)


@pytest.mark.parametrize("rows", [1, 4, 30])
def test_predictions_bind_rows_anew(rows: int) -> None:
    new = {"X": RNG.normal(size=(rows, 2)), "site": np.array(["west"] * rows)}
    found = SOLUTION.predict(data=new)
    assert set(found) == {"eta", "odds", "smooth"}
    np.testing.assert_allclose(found["eta"], eta_by_hand(**{"X": new["X"], "sites": new["site"]}))
    np.testing.assert_array_equal(SOLUTION.predict("eta", data=new), found["eta"])


def test_predictions_refuse_what_was_not_fitted() -> None:
    with pytest.raises(slomodel.DomainError, match="east"):
        SOLUTION.predict(data={"X": X[:1], "site": ["east"]})
    with pytest.raises(slomodel.ShapeError, match="depends on `site`"):
        SOLUTION.predict("eta", data={"X": X[:1]})
    with pytest.raises(slomodel.SlomodelError, match="K"):
        SOLUTION.predict(data={"X": np.zeros((1, 5))})


def test_a_definition_of_the_new_rows_alone_needs_nothing_else() -> None:
    assert set(SOLUTION.predict(data={"X": X[:3]})) == {"odds"}


def test_files_that_a_model_names_are_not_read_for_new_rows(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("t,y\n0,1\n1,3\n2,5\n")
    path = tmp_path / "m.slo"
    path.write_text(
        'dim n\ndata t[n], y[n] from "m.csv"\nvar a, b\n'
        "let line = a + b * t\nminimize sumsq(y - line)\n"
    )
    solution = slomodel.compile(path, backend="numpy").solve(gtol=1e-10)
    np.testing.assert_allclose(solution.predict("line", data={"t": [10.0]}), [21.0], rtol=1e-8)
    assert set(solution.predict(data={"t": [10.0]})) == {"line"}


def test_saved_solutions_take_their_model_again(tmp_path: Path) -> None:
    SOLUTION.save(tmp_path / "run.npz")
    alone = slomodel.load_solution(tmp_path / "run.npz")
    with pytest.raises(KeyError, match="give the model"):
        alone["eta"]
    with pytest.raises(slomodel.DomainError, match="model=model"):
        alone.predict()
    again = slomodel.load_solution(tmp_path / "run.npz", model=MODEL)
    np.testing.assert_array_equal(again["eta"], SOLUTION["eta"])


def test_pickled_solutions_keep_their_model() -> None:
    again = pickle.loads(pickle.dumps(SOLUTION))
    np.testing.assert_allclose(again["odds"], SOLUTION["odds"], rtol=1e-15)


def test_every_run_of_several_knows_the_model() -> None:
    model = slomodel.compile("var x[2] init normal(0, 1) let y = x^2 minimize sum(y)")
    for run in model.solve(starts=2).runs:
        np.testing.assert_array_equal(run["y"], run.x**2)


def test_a_solution_prints_its_variables_by_name() -> None:
    text = repr(SOLUTION)
    assert "variables['b']: [" in text
    assert " x: " not in text


class Frame:
    """A stand-in for the DataFrames of pandas and polars: named columns of any kind."""

    def __init__(self, columns: dict[str, object]) -> None:
        self._columns = columns

    @property
    def columns(self) -> list[str]:
        return list(self._columns)

    def __getitem__(self, name: object) -> object:
        return self._columns[str(name)]


def test_frames_are_data_and_new_rows() -> None:
    frame = Frame({"t": [0.0, 1.0, 2.0], "y": [1.0, 3.0, 5.0], "note": ["a", "b", "c"]})
    text = "dim n data t[n], y[n] var a, b let line = a + b * t minimize sumsq(y - line)"
    solution = slomodel.compile(text, data=frame, backend="numpy").solve(gtol=1e-10)
    new = Frame({"t": [3.0], "note": ["d"]})
    np.testing.assert_allclose(solution.predict("line", data=new), [7.0], rtol=1e-8)
    with pytest.raises(slomodel.DomainError, match="DataFrame"):
        slomodel.compile(text, data=[1.0])
