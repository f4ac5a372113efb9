"""The peers of the models of practice agree with the records, and the benchmark finds its rows."""

from importlib.util import find_spec

import pytest

from benchmarks.practice import DATA, MODELS, Row, arrays, is_right, records, summary, table
from benchmarks.practice_by_hand import BY_HAND


def data(name: str) -> dict:
    return arrays(MODELS / "data" / f"{name}.npz")


@pytest.mark.parametrize("name", BY_HAND)
def test_hand_written_numpy_agrees_with_the_record(name: str) -> None:
    points = records()[name]["points"]
    evaluate = BY_HAND[name](data(name))
    xs = arrays(DATA / f"{name}.npz")["x"]
    assert is_right(evaluate, xs, points)
    assert not is_right(lambda x: (evaluate(x)[0], 1.00001 * evaluate(x)[1]), xs, points)
    assert not is_right(lambda x: (1.00001 * evaluate(x)[0], evaluate(x)[1]), xs, points)


@pytest.mark.skipif(find_spec("jax") is None, reason="needs jax")
def test_every_model_has_a_formula_in_jax() -> None:
    from benchmarks.practice_jax import FORMULAS

    assert set(FORMULAS) == set(records())


def test_table_names_what_misses() -> None:
    seconds = {"slomodel": 0.5, "JAX": 1.0}
    targets = ["c", "numexpr", "numpy"]
    good = Row("good", 3, targets, "yes", 2.0, {"JAX": 8.0}, seconds, 800)
    bad = Row("bad", 3, ["c"], "no: 1.5", 2.0, {"JAX": 2.0, "numba": 0.5}, seconds, 1600)
    assert "1,600" in table([good, bad])
    told = summary([good, bad])
    assert "JAX, 2 models: geometric mean 4.00, worst 2.00 (bad)" in told
    assert "- bad: numba 0.50, right on ['c'], no: 1.5" in told
    assert "- good" not in told
