"""All targets on random graphs and on the models, within 1e-12 of the sum of the terms."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from agreeing import (
    ALLOWED,
    Question,
    Wanted,
    asked,
    assert_agreement,
    expected,
    in_c,
    in_python,
    of_model,
    worst,
)
from random_graphs import KINDS, throw

import slomodel
from slomodel.codegen.native import binding, parallel
from slomodel.front.data.random_data import random_data

MODELS = Path(__file__).parents[2] / "models"


def graph(number: int) -> Question:
    rng = np.random.default_rng(number)
    with np.errstate(all="ignore"):
        example = throw(rng, tuple(KINDS)[number % len(KINDS)], 6, (3, 9)[number % 2])
    return asked(example, rng)


def models() -> list[Question]:
    """Every model of models/, with small sizes and random data where its file leaves them open."""
    found = []
    for path in sorted(MODELS.glob("*.slo")):
        rng = np.random.default_rng(1)
        model = slomodel.compile(path, backend="numpy")
        open_dims = {name: 5 + k for k, name in enumerate(model._binding.unsized)}
        if path.stem == "rosenbrock":
            open_dims = {"n": 700}
        own, sizes = model._binding.arrays, model._binding.sizes
        declared = {dim.name for dim in model._problem.dims}
        known = {name: size for name, size in sizes.items() if name in declared}
        data = random_data(model._problem, own, {**known, **open_dims}, rng)
        model = slomodel.compile(path, data=data, dims=open_dims, backend="numpy")
        found.append(of_model(model, rng))
    return found


@pytest.fixture(scope="module")
def questions() -> list[Question]:
    return [*models(), *map(graph, range(10))]


@pytest.fixture(scope="module")
def wanted(questions: list[Question]) -> Wanted:
    return [expected(question, np.random.default_rng(2)) for question in questions]


@pytest.mark.parametrize("target", ["numpy", "numexpr"])
def test_python(target: str, questions: list[Question], wanted: Wanted) -> None:
    assert_agreement([in_python(question, target) for question in questions], wanted)


def test_c(questions: list[Question], wanted: Wanted) -> None:
    assert_agreement(list(in_c(questions)), wanted)


def test_c_in_parts(
    questions: list[Question], wanted: Wanted, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Every loop is cut after each element, and any number of threads finds the same bits.
    for name, number in (("LONG", 0), ("_PART", 1), ("BLOCK", 1), ("_MOST", 10_000)):
        monkeypatch.setattr(parallel, name, number)
    chosen = [k for k in range(len(questions)) if k % 4 == 1]
    found = []
    for threads in (1, 3):
        monkeypatch.setattr(binding.numexpr, "get_num_threads", lambda n=threads: n)
        found.append(list(in_c([questions[k] for k in chosen])))
        assert_agreement(found[-1], [wanted[k] for k in chosen])
    for one, other in zip(*found, strict=True):
        for name in one:
            np.testing.assert_array_equal(one[name], other[name])


def test_a_wrong_answer_is_seen(questions: list[Question], wanted: Wanted) -> None:
    for question, right in zip(questions[:12], wanted[:12], strict=True):
        found = in_python(question, "numpy")
        for name, array in found.items():
            value, scale = right["value" if name == "again" else name]
            if np.all(np.isfinite(value)) and scale > 0:
                off = {**found, name: array + 1e-11 * scale}
                assert worst(off, right) > ALLOWED
