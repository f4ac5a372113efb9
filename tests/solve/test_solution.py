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
        np.savez(path, text=np.array(json.dumps({"format": "else"})), history_time=np.zeros(1))
    elif kind == "array":
        with path.open("wb") as file:
            np.save(file, np.zeros(3))
    elif kind == "folder":
        path.mkdir()


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("missing", "cannot read `{}`: no such file or directory"),
        ("folder", "cannot read `{}`: is a directory"),
        ("text", "`{}` is not a saved solution: it is not a valid npz file"),
        ("cut short", "`{}` is not a saved solution: it is not a valid npz file"),
        ("objects", "`{}` is not a saved solution: it is not a valid npz file"),
        ("other arrays", "`{}` is not a saved solution: it holds x"),
        ("array", "`{}` is not a saved solution: it holds a single array"),
        ("other format", "`{}` is not a saved solution: its format is that of another version"),
    ],
)
def test_other_files_are_refused(kind: str, told: str, found: Solution, tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    write(path, kind)
    if kind == "cut short":
        found.save(path)
        path.write_bytes(path.read_bytes()[:-2000])
    with pytest.raises(DomainError) as caught:
        load_solution(path)
    assert str(caught.value).startswith(f"error[E601]: {told.format(path)}")


def test_a_file_that_cannot_be_written(found: Solution, tmp_path: Path) -> None:
    path = tmp_path / "none" / "run.npz"
    with pytest.raises(DomainError) as caught:
        found.save(path)
    assert f"cannot write `{path}`: there is no folder `{path.parent}`" in str(caught.value)


def test_printed_in_a_few_lines() -> None:
    found = solve(parabola(0.25, n=500), np.ones(500))
    lines = str(found).splitlines()
    assert repr(found) == str(found)
    assert 11 <= len(lines) <= 20
    assert max(map(len, lines)) <= 90
    shown = dict(line.split(": ", 1) for line in lines if ": " in line)
    assert shown["       status"] == "converged"
    assert float(shown["          fun"]) == pytest.approx(found.fun, rel=1e-11)
    assert shown["            x"] == "[0.25 0.25 0.25 ... 0.25 0.25 0.25]"


def test_names_of_other_libraries_lead_to_the_fields(found: Solution) -> None:
    assert found.time == found.history.time[-1]
    for name, better in (
        ("objective", r"solution\.fun"),
        ("gradient", r"solution\.jac"),
        ("W", r'solution\["W"\]'),
    ):
        with pytest.raises(AttributeError, match=f"{name}.*; it is `{better}`"):
            getattr(found, name)
    assert not hasattr(found, "nothing")
