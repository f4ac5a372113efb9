"""Binding: data in any form give the same bits, sizes determine the plan, nothing is shared."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from front.elaborated import problem_of
from numpy.typing import NDArray

import slomodel
from slomodel.errors import DomainError, ShapeError
from slomodel.front.data.bind import Binding, bind

TEXT = """dim m, n
data A[m, n], y[m], lam = 0.5
var x[n], c
minimize mean(log(1 + exp(A @ x + c - y))) + lam * sumsq(x)
"""
BACKENDS = ("numpy", "numexpr")
Array = NDArray[np.generic]
Form = Callable[[Array, Path], object]


def drawn(m: int, n: int, seed: int = 0) -> dict[str, Array]:
    draw = np.random.default_rng(seed)
    return {"A": draw.normal(size=(m, n)), "y": draw.normal(size=m), "lam": np.float64(0.3)}


def by_hand(x: Array, A: Array, y: Array, lam: float) -> tuple[float, Array]:
    """The value (scalar) and gradient (n + 1,) of TEXT at x (n + 1,)."""
    residual = A @ x[:-1] + x[-1] - y
    weights = 1 / (1 + np.exp(-residual)) / len(y)
    gradient = np.append(A.T @ weights + 2 * lam * x[:-1], weights.sum())
    return float(np.mean(np.logaddexp(0, residual)) + lam * x[:-1] @ x[:-1]), gradient


def strided(array: Array, _folder: Path) -> object:
    wide = np.full([2 * size + 1 for size in array.shape], 99, dtype=array.dtype)
    every_other = wide[(slice(1, None, 2),) * array.ndim]
    every_other[...] = array
    return every_other


def reversed_(array: Array, _folder: Path) -> object:
    return np.flip(np.flip(array).copy())


def read_only(array: Array, _folder: Path) -> object:
    frozen = array.copy()
    frozen.flags.writeable = False
    return frozen


def mapped(array: Array, folder: Path) -> object:
    path = folder / f"{array.ndim}.npy"
    np.save(path, array)
    return np.load(path, mmap_mode="r")


def swapped(array: Array, _folder: Path) -> object:
    return array.astype(array.dtype.newbyteorder(">"))


def unaligned(array: Array, _folder: Path) -> object:
    raw = np.zeros(array.nbytes + 1, dtype=np.uint8)[1:]
    made = raw.view(array.dtype).reshape(array.shape)
    made[...] = array
    return made


def file(array: Array, folder: Path) -> object:
    path = folder / f"{array.ndim}.csv"
    np.savetxt(path, np.atleast_1d(array), delimiter=",", fmt="%.17g")
    return path


FORMS: dict[str, Form] = {
    "C": lambda array, _: array.copy(),
    "F": lambda array, _: np.asfortranarray(array),
    "list": lambda array, _: array.tolist(),
    "broadcast": lambda array, _: np.broadcast_to(array, (2, *array.shape))[1],
    "memoryview": lambda array, _: memoryview(array),
    "strided": strided,
    "reversed": reversed_,
    "read-only": read_only,
    "memory-mapped": mapped,
    "swapped": swapped,
    "unaligned": unaligned,
    "csv": file,
}
KINDS = ("f8", "f4", "f2", "i8", "i4", "i1", "u8", "u1", "?")


def given(kind: str, form: Form, folder: Path) -> tuple[dict[str, object], dict[str, Array]]:
    """Data of some dtype and memory layout, and the same numbers as float64 in C order."""
    raw = {name: (3 * array).astype(kind) for name, array in positive(5, 3).items()}
    plain = {name: np.array(array.tolist(), dtype="f8") for name, array in raw.items()}
    return {name: form(array, folder) for name, array in raw.items()}, plain


def positive(m: int, n: int) -> dict[str, Array]:
    return {name: np.abs(array) for name, array in drawn(m, n).items() if name != "lam"}


def of(data: dict[str, object], text: str = TEXT, **dims: int) -> Binding:
    return bind(problem_of(text), data, dims, None)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_every_form_of_data_is_the_same_float64(form: Form, kind: str, tmp_path: Path) -> None:
    data, plain = given(kind, form, tmp_path)
    arrays = of(data).arrays
    for name, expected in plain.items():
        assert arrays[name].dtype == np.float64
        assert arrays[name].flags.c_contiguous
        assert arrays[name].flags.aligned
        assert arrays[name].tobytes() == expected.tobytes()
        if not isinstance(data[name], (list, Path)):
            assert not np.shares_memory(arrays[name], np.asarray(data[name]))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", ["f8", "f4", "u1", "?"])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_results_are_the_same_to_the_bit(
    form: Form, kind: str, backend: str, tmp_path: Path
) -> None:
    data, plain = given(kind, form, tmp_path)
    x = np.random.default_rng(1).normal(size=4)
    model = slomodel.compile(TEXT, data=plain, backend=backend)
    other = model.bind(**data)
    value, gradient = model.value_and_gradient(x)
    expected_value, expected_gradient = by_hand(x, **plain, lam=0.5)
    assert value == pytest.approx(expected_value, rel=1e-14)
    np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-13)
    assert other._compiled is model._compiled
    assert other.value(x) == value
    assert other.gradient(x).tobytes() == gradient.tobytes()
    assert other.hvp(x, x).tobytes() == model.hvp(x, x).tobytes()


@pytest.mark.parametrize("backend", BACKENDS)
def test_arrays_of_the_caller_stay_the_callers(backend: str) -> None:
    data = drawn(6, 4)
    data["lam"] = np.array(0.3)
    kept = {name: array.copy() for name, array in data.items()}
    model = slomodel.compile(TEXT, data=data, backend=backend)
    bound = slomodel.compile(TEXT, backend=backend).bind(**data)
    x = np.random.default_rng(1).normal(size=5)
    value, gradient = model.value_and_gradient(x)
    model.solve(x0=x, max_iter=5)
    assert all(np.array_equal(data[name], kept[name]) for name in data)
    for array in data.values():
        array[...] = np.nan
    for one in (model, bound, model.bind(y=kept["y"]), bound.bind()):
        assert one.value(x) == value
        assert one.gradient(x).tobytes() == gradient.tobytes()


def test_the_dictionary_of_the_caller_is_copied() -> None:
    data: dict[str, object] = dict(drawn(6, 4))
    model = slomodel.compile(TEXT, data=data)
    x = np.ones(5)
    value = model.value(x)
    data.clear()
    assert model.bind().value(x) == value


@pytest.mark.parametrize("backend", BACKENDS)
def test_one_plan_serves_all_data_of_the_same_sizes(backend: str) -> None:
    model = slomodel.compile(TEXT, data=drawn(6, 4), backend=backend)
    x = np.random.default_rng(1).normal(size=5)
    chain, seen = model, []
    for seed in range(1, 4):
        data = drawn(6, 4, seed)
        chain = chain.bind(**data)
        seen.append(chain)
        assert chain._compiled is model._compiled
        value, gradient = chain.value_and_gradient(x)
        expected_value, expected_gradient = by_hand(x, **data)
        assert value == pytest.approx(expected_value, rel=1e-14)
        np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-13)
    values = [one.value(x) for one in (model, *seen)]
    assert len(set(values)) == 4
    assert values == [one.value(x) for one in (model, *seen)]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("m", "n"), [(9, 4), (6, 2), (1, 1), (40, 30), (4, 6)])
def test_other_sizes_are_planned_and_the_first_model_is_kept(backend: str, m: int, n: int) -> None:
    first = drawn(6, 4)
    model = slomodel.compile(TEXT, data=first, backend=backend)
    x, z = (np.random.default_rng(1).normal(size=size + 1) for size in (4, n))
    value = model.value(x)
    data = drawn(m, n, 1)
    other = model.bind(**data)
    assert other._compiled is not model._compiled
    assert other._compiled.derivatives is model._compiled.derivatives
    assert other.variables == {"x": (n,), "c": ()}
    found, gradient = other.value_and_gradient(z)
    expected_value, expected_gradient = by_hand(z, **data)
    assert found == pytest.approx(expected_value, rel=1e-13)
    np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-12, atol=1e-15)
    assert model.value(x) == value
    back = other.bind(**first)
    assert back.value(x) == value


def test_a_default_takes_the_size_of_the_other_data() -> None:
    text = "dim n data a[n], b[n] = 2, s = 3 var x[n] minimize s * sum(a * b * x^2)"
    binding = of({"a": [1, 2, 3]}, text)
    assert binding.arrays["b"].tolist() == [2, 2, 2]
    assert binding.sizes == {"n": 3}
    assert of({"a": [1]}, text, n=1).arrays["b"].tolist() == [2]
    binding = of({}, text)
    assert (binding.missing, binding.unsized) == (("a", "b"), ("n",))


@pytest.mark.parametrize(
    ("text", "data", "dims", "kind", "words"),
    [
        # Errors are reported whatever else is missing.
        (
            "data s check s > 0 data t var x minimize s*t*x^2",
            {"s": -2},
            {},
            DomainError,
            "E314.*`s > 0` does not hold: s = -2",
        ),
        (
            "dim n, m data t[m] var x[n] minimize x[4]^2 + sum(t)",
            {},
            {"n": 4},
            ShapeError,
            "E313.*takes 4 in",
        ),
        (
            "dim n, m data t[m] var x[n] minimize sum(x[i]^2 for i in range(n - 3)) + sum(t)",
            {},
            {"n": 2},
            ShapeError,
            "E315.*negative with n = 2",
        ),
        (
            "dim n, m data t[m] var x[n] minimize mean(x^2) + sum(t)",
            {},
            {"n": 0},
            DomainError,
            "E314.*`mean.x.2.` has no elements: n = 0",
        ),
        (TEXT, {"B": 1}, {}, DomainError, "E309.*no data `B`"),
        (TEXT, {}, {"k": 1}, DomainError, "E309.*no dim `k`"),
        (TEXT, {}, {"n": -1}, DomainError, r"E310.*whole number from 0 to 10\^15, not -1"),
        (TEXT, {"A": np.ones((2, 3)), "y": np.ones(3)}, {}, ShapeError, "E311.*`m` is 3 in data"),
        (TEXT, {"A": np.ones((2, 3))}, {"m": 5}, ShapeError, r"E311.*but 5 in dims=\{'m': 5\}"),
        ("data a[3] var x minimize sum(a)*x^2", {"a": [1, 2]}, {}, ShapeError, "E311.*axis 0"),
        ("data a[2] mask var x minimize sum(a)*x^2", {"a": [1, 2]}, {}, DomainError, "E312.*2.0"),
        (
            "dim n data T[n, n] symmetric var x[n] minimize x @ T @ x",
            {"T": [[1, 2], [3, 1]]},
            {},
            DomainError,
            "E312.*swapping axes 0 and 1 changes it by 1",
        ),
        ("dim n var x[n] minimize x[0]^2 + x[4]^2", {}, {"n": 4}, ShapeError, "E313.*takes 4 in"),
        ("dim n var x[n] minimize x[-n]^2", {}, {"n": 4}, ShapeError, r"E313(.|\n)*`x\[-1\]`"),
        ("dim n var x[n] minimize sum(x[i-n] for i in n)", {}, {"n": 4}, ShapeError, "E313.*-4 to"),
        (
            "data s check s > 0 var x minimize s*x^2",
            {"s": -2},
            {},
            DomainError,
            r"E314.*does not hold: s = -2",
        ),
        (
            "dim n var x[n] minimize sum(x[i]^2 for i in range(n - 3))",
            {},
            {"n": 2},
            ShapeError,
            "E315.*negative with n = 2",
        ),
    ],
)
def test_what_does_not_fit(
    text: str, data: dict[str, object], dims: dict[str, int], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        of(data, text, **dims)
