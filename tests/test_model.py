"""Input and output of a model: sources, points, data of any kind, fresh arrays, the solver."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import slomodel

ROSENBROCK = Path(__file__).parent.parent / "models" / "rosenbrock.slo"
LEAST_SQUARES = """dim m, n
data A[m, n], y[m], lam = 0.5
var x[n], c, Z[2, n]
minimize sumsq(A @ x + c - y) + lam * sumsq(Z - x[None, :])^2
"""
A = np.arange(12.0).reshape(4, 3) % 5 - 1.0
Y = np.array([1.0, -2.0, 0.0, 3.0])


def least_squares(**options: object) -> slomodel.Model:
    return slomodel.compile(LEAST_SQUARES, data={"A": A, "y": Y}, **options)


def expected_value(parts: dict[str, np.ndarray]) -> float:
    residual = A @ parts["x"] + parts["c"] - Y
    return float(residual @ residual + 0.5 * np.sum((parts["Z"] - parts["x"]) ** 2) ** 2)


def test_a_path_a_name_and_a_text_are_the_same_model() -> None:
    x = np.linspace(-1.0, 1.0, 6)
    sources = (ROSENBROCK, str(ROSENBROCK), ROSENBROCK.read_text(encoding="utf-8"))
    models = [slomodel.compile(source, dims={"n": 6}) for source in sources]
    assert len({model.value(x) for model in models}) == 1
    assert {model.name for model in models} == {"rosenbrock"}


def test_a_relative_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROSENBROCK.parent.parent)
    assert slomodel.compile("models/rosenbrock.slo", dims={"n": 3}).n == 3


@pytest.mark.parametrize(
    ("source", "kind", "words"),
    [
        ("models/rosen", slomodel.ModelSyntaxError, "must end in .slo"),
        ("nofile", slomodel.ModelSyntaxError, "E001(.|\n)*there is no file `nofile`"),
        (" no-file\n", slomodel.ModelSyntaxError, "E001(.|\n)*there is no file `no-file`"),
        ("n" * 300, slomodel.ModelSyntaxError, "E104"),
        ("var", slomodel.ModelSyntaxError, "E101.*expected a name"),
        ("rosenbrock.txt", slomodel.ModelSyntaxError, "must end in .slo"),
        ("models/rosenbrok.slo", slomodel.ModelSyntaxError, "no such file"),
        ("", slomodel.ModelSyntaxError, "the model is empty"),
        (ROSENBROCK.parent, slomodel.ModelSyntaxError, "is a directory"),
        (None, slomodel.DomainError, "an object of NoneType"),
        (b"var x minimize x^2", slomodel.DomainError, "an object of bytes"),
        (["var x minimize x^2"], slomodel.DomainError, "an object of list"),
        (
            'dim n data a[n] from "a.npz" var x[n] minimize sum(a * x)',
            slomodel.DomainError,
            "data=",
        ),
    ],
)
def test_what_is_not_a_model(source: object, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        slomodel.compile(source)


def test_a_name_without_its_ending(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROSENBROCK.parent)
    with pytest.raises(slomodel.ModelSyntaxError, match=r"did you mean `rosenbrock\.slo`\?"):
        slomodel.compile("rosenbrock")


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"data": [A]}, slomodel.DomainError, "data= takes a dict"),
        ({"dims": ("n", 3)}, slomodel.DomainError, "dims= takes a dict"),
        ({"data": {1: A}}, slomodel.DomainError, "no data `1`"),
        ({"data": {"Y": Y}}, slomodel.DomainError, "did you mean `y`"),
        ({"dims": {"N": 3}}, slomodel.DomainError, "no dim `N`"),
        ({"dims": {"n": 2.5}}, slomodel.DomainError, "whole number"),
        ({"dims": {"n": True}}, slomodel.DomainError, "whole number"),
        ({"backend": "nump"}, slomodel.DomainError, "E602(.|\n)*did you mean 'numpy'"),
        ({"backend": "cuda"}, slomodel.DomainError, "it is source text only: use backend='cupy'"),
        ({"dtype": "float16"}, slomodel.DomainError, "dtype: expected one of float64, float32"),
        ({"variables": ["x"]}, slomodel.DomainError, "SymPy"),
    ],
)
def test_wrong_options(options: dict[str, object], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        slomodel.compile(LEAST_SQUARES, **options)


def test_pack_and_unpack() -> None:
    model = least_squares()
    assert model.variables == {"x": (3,), "c": (), "Z": (2, 3)}
    assert model.n == 10
    x = np.arange(10.0)
    parts = model.unpack(x)
    assert parts["x"].tolist() == [0.0, 1.0, 2.0]
    assert parts["c"].shape == ()
    assert parts["c"] == 3.0
    assert parts["Z"].tolist() == [[4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]
    assert model.pack(parts).tolist() == x.tolist()
    parts["x"][:] = 9.0
    assert x[0] == 0.0


def test_a_dict_is_a_point() -> None:
    model = least_squares()
    x = model.x0(3)
    assert (
        model.value(model.unpack(x))
        == model.value(x)
        == pytest.approx(expected_value(model.unpack(x)), rel=1e-14)
    )
    assert np.array_equal(model.gradient(model.unpack(x)), model.gradient(x))
    assert np.array_equal(model.hvp(model.unpack(x), model.unpack(x)), model.hvp(x, x))
    reordered = dict(reversed(model.unpack(x).items()))
    assert model.value(reordered) == model.value(x)


@pytest.mark.parametrize(
    ("point", "kind", "words"),
    [
        (
            np.zeros(9),
            slomodel.ShapeError,
            r"shape \(9,\), not \(10,\)(.|\n)*x \[3\], c \[\], Z \[2, 3\]",
        ),
        (np.zeros((10, 1)), slomodel.ShapeError, r"shape \(10, 1\)"),
        (3.0, slomodel.ShapeError, r"shape \(\)"),
        ("text", slomodel.DomainError, "real numbers"),
        (object(), slomodel.DomainError, "real numbers"),
        (np.zeros(10, complex), slomodel.DomainError, "holds complex values"),
        ([1.0, [2.0]], slomodel.DomainError, "different lengths"),
        ({"w": np.zeros(3)}, slomodel.ShapeError, "no variable `w`"),
        (
            {"x": np.zeros(3), "c": 0.0, "Z": np.zeros((3, 2))},
            slomodel.ShapeError,
            r"`Z` has shape \(2, 3\), not \(3, 2\)",
        ),
    ],
)
def test_points_that_do_not_fit(point: object, kind: type[Exception], words: str) -> None:
    model = least_squares()
    for call in (model.value, model.gradient, lambda p: model.hvp(model.x0(), p)):
        with pytest.raises(kind, match=words):
            call(point)
    with pytest.raises(kind, match=words):
        model.solve(x0=point)


@pytest.mark.parametrize("given", [{"c": 4.0}, {"Z": np.ones((2, 3)), "x": [1.0, 2.0, 3.0]}])
def test_variables_without_a_given_start_take_their_own(given: dict[str, Any]) -> None:
    model = least_squares()
    with pytest.raises(slomodel.ShapeError, match="no value for variable"):
        model.value(given)
    first = model.solve(x0=given, seed=3, max_iter=0).x
    named, own = model.unpack(first), model.unpack(model.x0(3))
    for name, value in named.items():
        assert np.array_equal(value, given.get(name, own[name]))
    with pytest.raises(slomodel.ShapeError, match="no variable `w`"):
        model.solve(x0={**given, "w": 1.0})


def in_other_forms(array: np.ndarray) -> list[object]:
    """The same whole numbers as other types and layouts."""
    wide = np.full((*array.shape[:-1], 2 * array.shape[-1]), 77.0)
    wide[..., ::2] = array
    frozen = array.copy()
    frozen.flags.writeable = False
    kinds = [array.astype(kind) for kind in (np.int64, np.int8, np.float32, np.float16, ">f8")]
    reverse = array[..., ::-1].copy()[..., ::-1]
    return [*kinds, np.asfortranarray(array), wide[..., ::2], reverse, frozen, array.tolist()]


@pytest.mark.parametrize("backend", ["numpy", "numexpr"])
def test_points_of_other_types_and_layouts(backend: str) -> None:
    model = least_squares(backend=backend)
    x = np.array([1.0, -2.0, 3.0, 0.0, 2.0, 1.0, -1.0, 4.0, -3.0, 2.0])
    value, gradient = model.value_and_gradient(x)
    for point in in_other_forms(x):
        assert model.value(point) == value
        assert np.array_equal(model.gradient(point), gradient)
        assert np.array_equal(model.hvp(point, point), model.hvp(x, x))


@pytest.mark.parametrize("backend", ["numpy", "numexpr"])
def test_data_of_other_types_and_layouts(backend: str) -> None:
    model = least_squares(backend=backend)
    x = model.x0(1)
    value, gradient = model.value_and_gradient(x)
    for matrix, vector in zip(in_other_forms(A), in_other_forms(Y), strict=True):
        other = model.bind(A=matrix, y=vector)
        assert other.value(x) == value
        assert np.array_equal(other.gradient(x), gradient)
    flags = slomodel.compile(
        "data b[3] var x[3] minimize sum(b * x^2)", data={"b": [True, False, 1]}
    )
    assert flags.value([1.0, 2.0, 3.0]) == 10.0


def test_fresh_arrays() -> None:
    model = least_squares()
    x = model.x0(1)
    kept = x.copy()
    calls = (model.gradient, lambda p: model.hvp(p, p), model.hessian, lambda p: model.x0(1))
    for call in calls:
        first = call(x)
        again = first.copy()
        first[:] = np.nan
        assert np.array_equal(call(x), again)
    out = np.full(model.n, np.nan)
    value, gradient = model.value_and_gradient(x, out)
    assert gradient is out
    assert np.array_equal(out, model.gradient(x))
    assert value == model.value(x)
    assert isinstance(value, float)
    assert np.array_equal(x, kept)
    solution = model.solve(x0=x, max_iter=3)
    assert np.array_equal(x, kept)
    assert not np.array_equal(solution.x, x)


def test_starts() -> None:
    model = slomodel.compile(
        "dim n = 400 data s[n] = 3 "
        "var a[n] init uniform(2, 5), b[n] init normal(-1, 0.1), d[n], h[n] init s, "
        "i[2, 3] init eye, f[2] init ones, g init -1.5, c[n] "
        "minimize sumsq(a + b + c + d + h) + sumsq(i) + sumsq(f) + g"
    )
    parts = model.unpack(model.x0(4))
    assert parts["a"].min() >= 2.0
    assert parts["a"].max() < 5.0
    assert parts["a"].mean() == pytest.approx(3.5, abs=0.2)
    assert parts["b"].mean() == pytest.approx(-1.0, abs=0.03)
    assert parts["b"].std() == pytest.approx(0.1, rel=0.2)
    assert parts["c"].std() == pytest.approx(1.0, rel=0.2)
    assert np.all(parts["d"] == 3.0)
    assert np.all(parts["h"] == 3.0)
    assert parts["i"].tolist() == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    assert parts["f"].tolist() == [1.0, 1.0]
    assert parts["g"] == -1.5
    assert np.array_equal(model.x0(4), model.x0(4))
    assert not np.array_equal(model.x0(4), model.x0(5))


@pytest.mark.parametrize("backend", ["numpy", "numexpr"])
def test_a_maximum(backend: str) -> None:
    text = "var x[3] maximize gain: 5 - sumsq(x - 2) - sum((x - 2)^4)"
    model = slomodel.compile(text, backend=backend)
    assert model.value([2.0, 2.0, 3.0]) == 3.0
    assert model.gradient([2.0, 2.0, 3.0]).tolist() == [0.0, 0.0, -6.0]
    assert model.hvp([2.0, 2.0, 2.0], [1.0, 0.0, 0.0]).tolist() == [-2.0, 0.0, 0.0]
    found = model.solve(seed=2)
    assert found.status is slomodel.Status.converged
    assert found.fun == model.value(found.x) == pytest.approx(5.0, abs=1e-10)
    np.testing.assert_allclose(found.variables["x"], 2.0, atol=1e-5)
    assert np.all(np.diff(found.history.fun) >= 0.0)


def test_the_solver_starts_at_the_given_point() -> None:
    model = least_squares()
    x = model.x0(7)
    assert model.solve(seed=7, max_iter=0).x.tolist() == x.tolist()
    assert model.solve(x0=model.unpack(x), max_iter=0).x.tolist() == x.tolist()
    first, second = (model.solve(seed=7, max_iter=20) for _ in range(2))
    assert np.array_equal(first.x, second.x)
    assert np.array_equal(first.history.fun, second.history.fun)


def test_a_hessian_that_is_too_large() -> None:
    model = slomodel.compile(ROSENBROCK, dims={"n": 5001})
    with pytest.raises(slomodel.DomainError, match="use hvp"):
        model.hessian(model.x0())


def test_public_names() -> None:
    assert len(slomodel.__all__) <= 25
    assert sorted(slomodel.__all__) == list(slomodel.__all__)
    assert all(hasattr(slomodel, name) for name in slomodel.__all__)
