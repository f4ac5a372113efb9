"""All targets on random graphs and on the models, within 1e-12 of the sum of the terms."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from agreeing import ALLOWED, Question, asked, expected, in_c, in_python, of_model, worst
from random_graphs import KINDS, throw

import slomodel

MODELS = Path(__file__).parents[2] / "models"


def graph(number: int) -> Question:
    rng = np.random.default_rng(number)
    with np.errstate(all="ignore"):
        example = throw(rng, tuple(KINDS)[number % len(KINDS)], 6, (3, 9)[number % 2])
    return asked(example, rng)


def drawn(name: str) -> dict[str, np.ndarray]:
    """Data of the models that leave them open."""
    rng = np.random.default_rng(0)
    if name == "matrix_completion":
        return {"M": rng.normal(size=(9, 7)), "Omega": rng.integers(0, 2, (9, 7)) + 0.0}
    if name in ("robust_logistic", "tukey_regression", "phase_retrieval"):
        A, y = rng.normal(size=(600, 5)), np.sign(rng.normal(size=600))
        return {"A": A, "y": np.abs(y) if name == "phase_retrieval" else y}
    return {}


def models() -> list[Question]:
    found = []
    for path in sorted(MODELS.glob("*.slo")):
        dims = {"n": 700} if path.stem == "rosenbrock" else {}
        model = slomodel.compile(path, data=drawn(path.stem), dims=dims, backend="numpy")
        found.append(of_model(model, np.random.default_rng(1)))
    return found


@pytest.fixture(scope="module")
def questions() -> list[Question]:
    return [*models(), *map(graph, range(30))]


@pytest.fixture(scope="module")
def wanted(questions: list[Question]) -> list[dict[str, tuple[np.ndarray, float]]]:
    return [expected(question, np.random.default_rng(2)) for question in questions]


def assert_agreement(found: list, wanted: list) -> None:
    off = [worst(one, right) for one, right in zip(found, wanted, strict=True)]
    assert max(off) <= ALLOWED, int(np.argmax(off))


@pytest.mark.parametrize("target", ["numpy", "numexpr"])
def test_python(target: str, questions: list[Question], wanted: list) -> None:
    assert_agreement([in_python(question, target) for question in questions], wanted)


def test_c(questions: list[Question], wanted: list) -> None:
    assert_agreement(list(in_c(questions)), wanted)


def test_a_wrong_answer_is_seen(questions: list[Question], wanted: list) -> None:
    for question, right in zip(questions[:12], wanted[:12], strict=True):
        found = in_python(question, "numpy")
        for name, array in found.items():
            value, scale = right["value" if name == "again" else name]
            if np.all(np.isfinite(value)) and scale > 0:
                off = {**found, name: array + 1e-11 * scale}
                assert worst(off, right) > ALLOWED
