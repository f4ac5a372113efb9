"""The result: its fields, its file, its pickle."""

import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.optimize import OptimizeResult
from solve.objectives import Vector, elementwise, parabola, rosenbrock

from slomodel.errors import DomainError
from slomodel.solve import Solution, load_solution, solve

SCIPY = ("x", "fun", "jac", "nit", "nfev", "njev", "nhev", "success", "status", "message")


def unpack(x: Vector) -> dict[str, Vector]:
    return {"λ": x[:1].reshape(()), "W": x[1:].reshape(1, 1)}


@pytest.fixture
def found() -> Solution:
    return solve(rosenbrock(), [-1.2, 1.0], unpack=unpack, seed=3, delta_bar=2.0)


def same(one: object, other: object) -> None:
    """Equality of nested dataclasses, dicts and arrays."""
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        assert_array_equal(one, other)
        assert one.dtype == other.dtype
    elif isinstance(one, dict):
        assert list(one) == list(other)
        for name in one:
            same(one[name], other[name])
    elif hasattr(one, "__dataclass_fields__"):
        for name in one.__dataclass_fields__:
            same(getattr(one, name), getattr(other, name))
    else:
        np.testing.assert_equal(one, other)


def test_fields_of_scipy(found: Solution) -> None:
    result = OptimizeResult(found)
    for name in SCIPY:
        assert name in result
        np.testing.assert_equal(result[name], getattr(found, name))
    with pytest.raises(KeyError):
        found["save"]


def test_point_value_and_gradient_belong_together(found: Solution) -> None:
    assert found.fun == rosenbrock().value(found.x)
    assert_array_equal(found.jac, rosenbrock().jac(found.x))
    assert_array_equal(found.variables["W"], [[found.x[1]]])
    assert found.history.fun[-1] == found.fun
    assert len(found.history.time) == found.nit + 1


def test_epochs_of_single_steps_share_a_record(found: Solution) -> None:
    (record,) = found.epochs
    assert (record.first, record.count, record.iterations) == (1, found.nit, 1)
    assert (record.D, record.L1, record.source) == (2.0, None, "none")
    assert record.centre_norm == pytest.approx(np.hypot(1.2, 1.0))
    assert_array_equal(found.history.epoch, [1, *range(1, found.nit + 1)])


def test_pickle(found: Solution) -> None:
    same(pickle.loads(pickle.dumps(found)), found)


def test_file(found: Solution, tmp_path: Path) -> None:
    found.save(tmp_path / "run.npz")
    assert os.listdir(tmp_path) == ["run.npz"]
    same(load_solution(tmp_path / "run.npz"), found)


def test_name_of_the_file_is_kept(found: Solution, tmp_path: Path) -> None:
    found.save(str(tmp_path / "run"))
    same(load_solution(tmp_path / "run"), found)


def test_file_of_a_run_that_failed_at_the_start(tmp_path: Path) -> None:
    nothing = solve(elementwise(np.log, lambda x: 1.0 / x, 1), [-1.0])
    nothing.save(tmp_path / "run.npz")
    same(load_solution(tmp_path / "run.npz"), nothing)


def test_file_of_a_run_without_steps(tmp_path: Path) -> None:
    still = solve(parabola(1.0), [1.0, 1.0])
    assert still.epochs == ()
    still.save(tmp_path / "run.npz")
    same(load_solution(tmp_path / "run.npz"), still)


def write(path: Path, kind: str) -> None:
    if kind == "text":
        path.write_text("not a zip", encoding="utf-8")
    elif kind == "other arrays":
        np.savez(path, x=np.zeros(2))
    elif kind == "objects":
        np.savez(path, text=np.array([{}], dtype=object))
    elif kind == "other format":
        np.savez(path, text=np.array(json.dumps({"format": "else"})))
    elif kind == "array":
        with path.open("wb") as file:
            np.save(file, np.zeros(3))


@pytest.mark.parametrize(
    "kind", ["missing", "text", "other arrays", "objects", "other format", "array"]
)
def test_other_files_are_refused(kind: str, tmp_path: Path) -> None:
    write(tmp_path / "run.npz", kind)
    with pytest.raises(DomainError, match=r"run\.npz is not a saved solution"):
        load_solution(tmp_path / "run.npz")
