"""The benchmarks run, and the sizes they tell are right where they can be counted by hand."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import slomodel
from benchmarks.by_hand import BY_HAND, Array, student_t
from benchmarks.cases import STUDENT_T, cases
from benchmarks.evaluate import one_source
from benchmarks.kernel_costs import added_nanoseconds, numpy_nanoseconds
from benchmarks.measure import largest_by_hand, largest_kept, seconds
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

    assert largest_kept(call, 40) == 2_000
    held.clear()
    assert largest_kept(lambda point: (call(point), np.ones(9_000) + 1.0), 40) > 9_000


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


def test_costs_are_positive_and_in_order() -> None:
    assert 0.0 < numpy_nanoseconds(TABLE["add"], 1_000) < numpy_nanoseconds(TABLE["sin"], 1_000)
    assert added_nanoseconds(TABLE["tanh"], 1_000) > 0.0
