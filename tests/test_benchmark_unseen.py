"""The unseen models run and have peers, and the benchmark finds the targets that are missed."""

from importlib.util import find_spec

import numpy as np
import pytest

import slomodel
from benchmarks.limits import work
from benchmarks.unseen import Row, summary, table
from benchmarks.unseen_fifth import FIFTH
from benchmarks.unseen_fourth import FOURTH
from benchmarks.unseen_models import MODELS
from benchmarks.unseen_more import MORE
from benchmarks.unseen_seventh import SEVENTH
from benchmarks.unseen_sixth import SIXTH
from benchmarks.unseen_third import THIRD


def test_names_differ_and_every_model_can_be_bound() -> None:
    every = (*MODELS, *MORE, *THIRD, *FOURTH, *FIFTH, *SIXTH, *SEVENTH)
    names = {one.name for one in every}
    assert len(names) == len(every) >= 20
    short = [one for one in every if one.name in ("pulse_train", "chess_ratings", "pose_graph")]
    for one in short:
        rng = np.random.default_rng(0)
        model = slomodel.compile(one.source, data=one.data(rng), backend="numpy")
        assert np.isfinite(model.value(one.point(model.n, rng)))


def test_work_is_counted_in_the_program() -> None:
    text = "dim N, d data A[N, d] var x[d] minimize sum(exp(A @ x))"
    model = slomodel.compile(text, data={"A": np.ones((50, 30))}, backend="c")
    found = work(model)
    assert found is not None
    assert found.flops == 2 * 2 * 50 * 30
    assert found.functions == {"exp": 50}
    assert found.bytes == 8 * (50 * 30 + 2 * 30)
    assert found.beyond.products == ((1, 50, 30, 1), (1, 1, 50, 30))


def test_lookups_are_counted_in_the_program() -> None:
    text = "dim N, n = 9 data a[N] in n var x[n] minimize sum(exp(x[a[i]]) for i in N)"
    model = slomodel.compile(text, data={"a": np.arange(40) % 9}, backend="c")
    found = work(model)
    assert found is not None
    assert (found.beyond.read, found.beyond.added) == (40, 40)


@pytest.mark.skipif(find_spec("jax") is None, reason="needs jax")
def test_every_model_has_a_formula_in_jax() -> None:
    from benchmarks.unseen_jax import EVERY

    assert set(EVERY) == {
        one.name for one in (*MODELS, *MORE, *THIRD, *FOURTH, *FIFTH, *SIXTH, *SEVENTH)
    }


def test_table_names_what_misses() -> None:
    good = Row("good", "fields", 3, 2.0, 3.0, 8.0, 4.0, None, 0.7, "products", {}, 0.3, 0.5)
    near = Row("near", "fields", 3, 2.0, 3.0, 0.96, 4.0, None, 0.9, "products", {}, 0.3, 0.5)
    rest = {"lookups": 0.2, "intermediate arrays": 0.01}
    bad = Row("bad", "fields", 3, 2.0, 3.0, 0.5, 1.0, 0.9, 0.3, "functions", rest, 0.3, 0.5)
    rows = [good, near, bad]
    assert "70 %" in table(rows)
    told = summary(rows)
    assert "- bad: JAX 0.50, numba 0.90, 30 % of the limit by functions (beyond it loops" in told
    assert "loops 49 %, lookups 20 %)" in told
    assert "- good" not in told
    assert "- near" not in told
    assert "worst 0.50 (bad)" in told
