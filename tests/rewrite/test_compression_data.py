"""Compressed models over data of all kinds: bound again, of any rank, not finite; all targets."""

import pickle
import types

import numpy as np
import pytest
import sympy as sp

import slomodel
from tests.rewrite.compressed import (
    TARGETS,
    K,
    M,
    assert_same,
    compiled,
    drawn,
    text_of,
    told,
)

WEIGHTS = "sum(c .* (X' @ w - y)^2)"


def test_compiled_c_takes_what_is_made_of_the_data() -> None:
    objective = WEIGHTS
    model = compiled(objective, backend="c")
    assert told(model) != []
    assert_same(model, compiled(objective, rewrites=False))
    other = drawn(1)["X"]
    assert_same(model.bind(X=other), compiled(objective, rewrites=False).bind(X=other))


def test_before_there_is_data() -> None:
    """Whether data are finite is checked when they are given; weights have to be seen."""
    for objective, fires in (("sumsq(X' @ w - y)", True), (WEIGHTS, False)):
        model = slomodel.compile(text_of(objective))
        assert (told(model) != []) == fires
    model = slomodel.compile(text_of(objective))
    assert told(model.bind(**{name: drawn()[name] for name in ("X", "y", "c")})) != []


def test_data_bound_again() -> None:
    """Other data have another factor, and weights that are negative none."""
    objective = "sum(c .* (X' @ w - y)^2)"
    model = compiled(objective)
    given = drawn(1)
    for change in ({"X": given["X"]}, {"y": given["y"], "c": given["c"]}):
        other = model.bind(**change)
        assert other._compiled is model._compiled
        assert_same(other, compiled(objective, rewrites=False).bind(**change))
    signed = model.bind(c=given["y"])
    assert told(signed) == []
    assert_same(signed, compiled(objective, rewrites=False).bind(c=given["y"]))
    assert told(signed.bind(c=given["c"])) == told(model)


def test_one_factorisation_a_bind(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[int, ...]] = []
    triangle, factor = np.triu, np.linalg.qr

    def counted(matrix: np.ndarray) -> np.ndarray:
        calls.append(matrix.shape)
        return triangle(matrix)

    # What a factorisation in long double ends with; where there is none, `qr` is called.
    monkeypatch.setattr(np, "triu", counted)
    monkeypatch.setattr(np.linalg, "qr", lambda matrix, mode: counted(factor(matrix, mode)))
    model = compiled("sumsq(X' @ w - y)")
    x = np.ones(model.n)
    model.solve(x0=x, method="norm-armijo", direction="lbfgs", max_iter=3)
    model.hvp(x, x)
    assert calls == [(K + 1, K + 1)]
    model.bind(y=drawn(1)["y"]).value_and_gradient(x)
    assert calls == [(K + 1, K + 1)] * 2


@pytest.mark.parametrize("backend", TARGETS)
def test_data_without_full_rank(backend: str) -> None:
    """Equal rows, rows of zeros and labels that the rows explain."""
    given = drawn()
    X = given["X"]
    X[1], X[2] = X[0], 0.0
    data = {"X": X, "y": X[0] - 2.0 * X[3]}
    text = text_of("sumsq(X' @ w - y)")
    model = slomodel.compile(text, data=data, backend=backend)
    assert told(model) == [f"X, y: {M} columns become {K + 1}"]
    assert_same(model, slomodel.compile(text, data=data, backend=backend, rewrites=False))
    assert model.value([0.25, 0.75, 9.0, -2.0]) < 1e-26
    zeros = model.bind(X=np.zeros((K, M)), y=np.zeros(M))
    assert zeros.value(np.ones(K)) == 0.0
    assert zeros.gradient(np.ones(K)).tolist() == [0.0] * K


def test_data_that_are_not_finite() -> None:
    """A NaN or infinity made of the data goes on as written, and where it is masked as 0."""
    given = drawn()
    d = given["d"].copy()
    d[2] = 0.0
    data = {"X": given["X"], "y": given["y"], "d": d}
    text = text_of("sumsq((X ./ d[:, None])' @ w - y)")
    model = slomodel.compile(text, data=data)
    assert told(model) == []
    assert model.value(np.ones(K)) == np.inf
    assert told(model.bind(d=given["d"])) != []
    masked = "dim n data X[2, n], W[n] mask, y[n] var w[2] minimize sumsq(masked(X' @ w - y, W))"
    wide = np.where(given["c"] > 0.0, given["y"], np.nan)
    data = {"X": given["X"][:2], "y": wide, "W": (given["c"] > 0.0).astype(float)}
    one, other = (slomodel.compile(masked, data=data, rewrites=on) for on in (True, False))
    assert told(one) != []
    assert_same(one, other)


def test_pickle_and_bounds() -> None:
    """A model keeps its data, and its bounds are those of what was written."""
    objective = "sumsq(v' @ W @ X - y)"
    model, plain = compiled(objective), compiled(objective, rewrites=False)
    again = pickle.loads(pickle.dumps(model))
    x = model.x0(1)
    assert told(again) == told(model) != []
    assert again.value(x) == model.value(x)
    assert told(pickle.loads(pickle.dumps(plain))) == []
    assert model.bounds(x, 0.1).L1 == plain.bounds(x, 0.1).L1
    assert max(model.check_gradient(x).values()) < 1e-12


@pytest.mark.parametrize("target", TARGETS)
def test_the_module_runs_alone(target: str) -> None:
    objective = "sum(c .* (X' @ w + b - y)^2)"
    model = compiled(objective, backend=target)
    given = drawn()
    data = {name: given[name] for name in ("X", "y", "c")}
    module = types.ModuleType("standalone")
    exec(compile(model.source(), "standalone.py", "exec"), module.__dict__)
    x, v = np.random.default_rng(0).standard_normal((2, model.n))
    value, gradient = module.value_and_gradient(x, data)
    assert value == model.value(x)
    assert np.array_equal(gradient, model.gradient(x))
    assert np.array_equal(module.hvp(x, v, data), model.hvp(x, v))
    # Made for weights that have square roots: of others it makes nothing that looks right.
    assert np.isnan(module.value(x, {**data, "c": given["y"]}))


def test_a_name_that_is_taken() -> None:
    R = sp.IndexedBase("R[1]")
    j = sp.Symbol("j", integer=True)
    a = sp.Symbol("a")
    numbers = drawn()["y"]
    model = slomodel.compile(sp.Sum((R[j] - a) ** 2, (j, 0, M - 1)), data={"R[1]": numbers})
    assert told(model) == [f"R[1]: {M} columns become 2"]
    assert model.value([0.5]) == pytest.approx(float(((numbers - 0.5) ** 2).sum()), rel=1e-14)


def test_single_precision() -> None:
    objective = "sumsq(X' @ w - y)"
    model = compiled(objective, dtype="float32")
    assert told(model) != []
    x = np.linspace(-1.0, 1.0, model.n)
    assert model.value(x) == pytest.approx(compiled(objective).value(x), rel=1e-5)
