"""The benchmarks run, and the sizes that they report are right where they can be counted."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import slomodel
from benchmarks.by_hand import BY_HAND, Array, student_t
from benchmarks.cases import STUDENT_T, Case, cases, standardised_case
from benchmarks.evaluate import one_source
from benchmarks.kernel_costs import added_nanoseconds, form_nanoseconds, numpy_nanoseconds
from benchmarks.measure import largest_by_hand, memory, seconds
from benchmarks.peers import FORMULAS, LAYERED
from benchmarks.points import distance, pieces
from benchmarks.rewrites import Saved
from slomodel.functions import TABLE

EVALUATE = Path(__file__).parent.parent / "benchmarks" / "evaluate.py"


@pytest.mark.slow
def test_evaluate_in_both_memory_settings() -> None:
    ended = subprocess.run(
        [sys.executable, str(EVALUATE), "--quick", "--json", "--model", "deep_linear"],
        capture_output=True,
        text=True,
        check=True,
    )
    told = json.loads(ended.stdout)
    assert [row["malloc"] for row in told["rows"]] == ["kept", "default"]
    assert told["machine"]["threads"] == "1"
    for row in told["rows"]:
        assert row["n"] == 22 * 15 + 15 * 10 + 10 * 5 + 5
        assert row["deviation"] < 1e-12
        assert min(row["hand_us"], row["auto_us"], row["numpy_us"], row["compile_ms"]) > 0.0


@pytest.mark.slow
def test_what_the_passes_save() -> None:
    options = ["--rewrites", "--quick", "--json", "--model", "linear_autoencoder"]
    ended = subprocess.run(
        [sys.executable, str(EVALUATE), *options], capture_output=True, text=True, check=True
    )
    (row,) = json.loads(ended.stdout)["rows"]
    assert row["passes"] == ["orthogonal compression", "contraction order"]
    assert row["deviation"] < 1e-12
    assert row["faster"] > 5.0
    assert row["peer"] in ("layers", "jax")
    assert row["speeds"]["layers"] > 5.0


@pytest.mark.parametrize("case", [standardised_case(), *cases(quick=True)], ids=lambda c: c.model)
def test_formulas_have_the_value_by_hand(case: Case) -> None:
    model = slomodel.compile(case.source, data=case.data, dims=case.dims)
    variables = pieces(model, model.x0(3))
    value, _ = case.hand(variables, case.known)
    assert FORMULAS[case.model](np, variables, case.known) == pytest.approx(value, rel=1e-11)


@pytest.mark.parametrize("name", LAYERED)
def test_layer_by_layer_is_the_same(name: str) -> None:
    every = [standardised_case(), *cases(quick=True)]
    (case,) = (one for one in every if one.model == name)
    model = slomodel.compile(case.source, data=case.data)
    x = model.x0(3)
    assert distance(model, x, *LAYERED[name](pieces(model, x), case.known)) < 1e-11
    assert distance(model, x, *case.hand(pieces(model, x), case.known)) < 1e-11


def test_a_target_that_is_missed_is_reported() -> None:
    times = {"by hand": 60.0, "layers": 900.0}
    speeds = {"by hand": 0.8, "layers": 15.0}
    row = Saved("deep_linear", "", (), 60.0, 60.0, 1.0, times, speeds, 0.0)
    assert row.missed == ("20 times layers", "by hand")
    assert replace(row, speeds={"by hand": 0.9, "layers": 20.0}).missed == ()
    quicker = replace(row, us={**times, "jax": 500.0}, speeds={**speeds, "jax": 9.0})
    assert quicker.peer == "jax"
    alone = replace(row, model="sym_tensor", us={"by hand": 60.0}, speeds={"by hand": 3.0})
    assert alone.missed == ("3.5 times by hand",)


def test_rosenbrock_has_one_text() -> None:
    assert one_source()


def test_every_model_is_timed() -> None:
    assert {case.model for case in cases(quick=True)} == {*BY_HAND, "student_t"}


@pytest.mark.parametrize("backend", ["numpy", "numexpr"])
def test_student_t_by_hand(backend: str) -> None:
    rng = np.random.default_rng(0)
    data = {"t": rng.uniform(0.0, 6.0, 50), "y": rng.standard_normal(50)}
    model = slomodel.compile(STUDENT_T, data=data, backend=backend)
    x = np.array([1.3, 0.8, -0.4])
    value, gradient = student_t(model.unpack(x), {**data, "nu": np.asarray(3.0)})
    found, found_gradient = model.value_and_gradient(x)
    assert found == pytest.approx(value, rel=1e-13)
    np.testing.assert_allclose(found_gradient, model.pack(gradient), rtol=1e-12)


def test_largest_array_by_hand_leaves_out_views_and_inputs() -> None:
    def hand(v: dict[str, Array], data: dict[str, Array]) -> tuple[float, dict[str, Array]]:
        flat = data["A"].reshape(-1)[:7]  # a view of 12 numbers
        both = np.concatenate([flat * 2.0, v["x"]])  # 7, then 10
        both[:3] -= np.outer(v["x"], v["x"])[0]  # 9
        return float(both.sum()), {"x": np.where(both > 0.0, both, 0.0)[:3]}

    assert largest_by_hand(hand, {"x": np.ones(3)}, {"A": np.ones((3, 4))}) == 10


def test_largest_array_of_a_model() -> None:
    held: list[Array] = []

    def call(point: int) -> Array:
        if not held:
            held.extend([np.zeros(2_000), np.zeros(30)])
        return np.full(40, float(point))

    # One point and one result are the caller's.
    assert memory(call, 40) == 2_030 - 2 * 40
    held.clear()
    assert memory(lambda point: (call(point), np.ones(9_000) + 1.0), 40) > 9_000


def test_runs_alternate_over_all_points() -> None:
    seen: list[tuple[str, int]] = []
    calls = [lambda k: seen.append(("a", k)), lambda k: seen.append(("b", k))]
    ticks = iter(range(1_000))
    found = seconds(calls, 5, 0.0, lambda: float(next(ticks)))
    assert found.shape == (5, 2)
    assert (found == 1.0).all()
    timed = seen[-10:]
    assert timed[:4] == [("a", 0), ("b", 0), ("b", 1), ("a", 1)]
    assert {point for _, point in timed} == set(range(5))


def test_a_form_is_measured_as_generated() -> None:
    for target in ("numpy", "numexpr"):
        assert form_nanoseconds(TABLE["huber"], target, 1_000) > 0.0


def test_costs_are_positive_and_in_order() -> None:
    assert 0.0 < numpy_nanoseconds(TABLE["add"], 1_000) < numpy_nanoseconds(TABLE["sin"], 1_000)
    assert added_nanoseconds(TABLE["tanh"], 1_000) > 0.0
