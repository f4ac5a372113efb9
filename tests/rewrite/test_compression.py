"""Orthogonal compression: where it fires, where it must not, and that nothing else changes."""

import pickle
import re
import types

import numpy as np
import pytest
import sympy as sp
from hypothesis import given
from strategies import Example, graphs

import slomodel
from slomodel.reference import evaluate
from slomodel.rewrite import PASSES, Facts

NAME = "orthogonal compression"
TARGETS = ("numpy", "numexpr")
M, K, H = 700, 4, 3

# Each with the numbers that are left of a column of M.
FIRES = {
    "matrices": ("sumsq(V @ W @ X - Y)", K + 2),
    "right to left": ("sumsq(Y - V @ (W @ (X - m[:, None])))", 2 + K),
    "a row": ("sum((v' @ W @ X + b - y)^2) / 7 + 0.1 * sumsq(W)", K + 2),
    "a product": ("(X' @ w - y)' @ (X' @ w - y)", K + 1),
    "norm": ("norm2(X' @ w - y)^2 / 2", K + 1),
    "mean": ("log(1 + mean((y - X' @ w)^2))", K + 1),
    "indices": ("sum((sum(X[i, j] * w[i] for i in K) - y[j])^2 for j in M)", K + 1),
    "two indices": (
        "sum((Y[a, j] - sum(V[a, h] * W[h, i] * X[i, j] for h in H, i in K))^2 for a in 2, j in M)",
        K + 2,
    ),
    "constant": ("sum((X' @ w + b + 1)^2)", K + 1),
    "weights": ("sum(c .* (X' @ w - y)^2)", K + 1),
    "weighted inside": ("sumsq(c .* (X' @ w - y) ./ (1 + c))", K + 1),
    "weighted rows": ("sum(c[j] * (y[j] - b)^2 for j in M) * exp(b)", 2),
    "masked": ("sumsq(masked(X' @ w - y, c))", K + 1),
    "standardised": ("sumsq(v' @ W @ ((X - m[:, None]) ./ d[:, None]) - y)", K + 1),
    "groups": ("sum(sqrt(1 + sum((W @ X)[h, j]^2 for j in M)) for h in H)", K),
    "all entries": ("sumsq(b * Y - X[:2, :] * w[0])", 2),
    "a factor in front": ("sumsq(exp(b) * (X' @ w) - b * y)", K + 1),
    "chosen": ("sumsq(where(y > 0, X' @ w, b - y))", K + 2),
}

NEVER = {
    "activation": "sumsq(v' @ tanh(W @ X) - y)",
    "absolute values": "sum(abs(X' @ w - y))",
    "a scale of each sample": "sumsq(u .* (X' @ w - y))",
    "weights that vary": "sum(u^2 .* (X' @ w - y)^2)",
    "fourth powers": "sum((X' @ w - y)^4)",
    "an offset of each sample": "sumsq(X' @ w - y - u)",
    "two forms": "sum((X' @ w - y) .* (X' @ w))",
    "squares of squares": "sum(((X' @ w)^2 - y)^2)",
    "more numbers than samples": "sumsq(Z' @ t - y[:5])",
    "a condition that varies": "sumsq(where(X' @ w > 0, X' @ w, y))",
    "negative weights": "sum(y .* (X' @ w - y)^2)",
    "narrow": "sumsq(A @ w - e)",
}

DATA = {
    **{"X": "K, M", "y": "M", "Y": "2, M", "c": "M", "m": "K", "d": "K"},
    **{"Z": "8, 5", "A": "6, K", "e": "6"},
}
VARIABLES = {
    **{"w": "K", "v": "H", "W": "H, K", "V": "2, H", "b": "", "u": "M", "t": "8"},
}
SIZES = {"M": M, "K": K, "H": H}


def shape(dims: str) -> tuple[int, ...]:
    return tuple(SIZES.get(dim) or int(dim) for dim in dims.replace(",", " ").split())


def drawn(seed: int = 0) -> dict[str, np.ndarray]:
    """Data of every name; `c` and `d` are not negative, and `c` is 0 here and there."""
    draw = np.random.default_rng(seed)
    data = {name: draw.standard_normal(shape(dims)) for name, dims in DATA.items()}
    return data | {"c": draw.random(M) * (draw.random(M) < 0.7), "d": draw.random(K) + 0.5}


def text_of(objective: str) -> str:
    """The model with the declarations of what its objective uses."""
    used = set(re.findall(r"[A-Za-z]\w*", objective))
    data = [f"{name}[{dims}]" for name, dims in DATA.items() if name in used]
    variables = [f"{name}[{dims}]".replace("[]", "") for name, dims in VARIABLES.items()]
    varied = [one for one in variables if one.split("[")[0] in used]
    dims = ", ".join(f"{name} = {size}" for name, size in SIZES.items())
    return f"dim {dims}\ndata {', '.join(data)}\nvar {', '.join(varied)}\nminimize {objective}"


def compiled(objective: str, **options: object) -> slomodel.Model:
    text = text_of(objective)
    data = {name: array for name, array in drawn().items() if f"{name}[" in text.split("var ")[0]}
    return slomodel.compile(text, data=data, **options)


def told(model: slomodel.Model) -> list[str]:
    """What was compressed, a line each."""
    lines = model.explain().splitlines()
    if not any(f"rewritten  {NAME}" in line for line in lines):
        return []
    return [line.strip() for line in lines if "columns become" in line]


def assert_same(one: slomodel.Model, other: slomodel.Model, scale: float = 1.0) -> None:
    """Value, gradient and Hessian product agree to rounding at three points."""
    for seed in range(3):
        draw = np.random.default_rng(seed)
        x, v = draw.standard_normal((2, one.n))
        value, gradient = one.value_and_gradient(x)
        expected, other_gradient = other.value_and_gradient(x)
        assert value == pytest.approx(expected, rel=1e-13 * scale)
        assert one.value(x) == pytest.approx(expected, rel=1e-13 * scale)
        large = np.abs(other_gradient).max()
        np.testing.assert_allclose(gradient, other_gradient, rtol=0, atol=1e-13 * scale * large)
        product = other.hvp(x, v)
        atol = 1e-12 * scale * np.abs(product).max()
        np.testing.assert_allclose(one.hvp(x, v), product, rtol=0, atol=atol)


@pytest.mark.parametrize("backend", TARGETS)
@pytest.mark.parametrize("name", FIRES)
def test_fires(name: str, backend: str) -> None:
    objective, rows = FIRES[name]
    model = compiled(objective, backend=backend)
    columns = 2 * M if name == "all entries" else M
    assert [line.split(": ")[1] for line in told(model)] == [f"{columns} columns become {rows}"]
    assert_same(model, compiled(objective, backend=backend, rewrites=False))


@pytest.mark.filterwarnings("ignore::slomodel.NonsmoothWarning")
@pytest.mark.parametrize("name", NEVER)
def test_does_not_fire(name: str) -> None:
    assert told(compiled(NEVER[name])) == []


def sympy_forms() -> dict[str, tuple[sp.Expr, list[object]]]:
    """‖Xᵀ w - y‖² as a sum by index, by the elements of a matrix, and as a trace."""
    i, j = sp.symbols("i j", integer=True)
    X, y, w = sp.IndexedBase("X"), sp.IndexedBase("y"), sp.IndexedBase("w", shape=(K,))
    inner = sp.Sum(X[i, j] * w[i], (i, 0, K - 1)) - y[j]
    wide, column, weights = (
        sp.MatrixSymbol("X", K, M),
        sp.MatrixSymbol("y", M, 1),
        sp.MatrixSymbol("w", K, 1),
    )
    r = wide.T * weights - column
    return {
        "sum": (sp.Sum(inner**2, (j, 0, M - 1)), [w]),
        "elements": (sp.Sum(r[j, 0] ** 2, (j, 0, M - 1)), [weights]),
        "trace": (sp.Trace(r.T * r), [weights]),
    }


@pytest.mark.parametrize("name", ["sum", "elements", "trace"])
def test_fires_on_sympy(name: str) -> None:
    expression, variables = sympy_forms()[name]
    given = drawn()
    data = {"X": given["X"], "y": given["y"] if name == "sum" else given["y"][:, None]}
    model = slomodel.compile(expression, variables, data=data)
    assert [line.split(": ")[1] for line in told(model)] == [f"{M} columns become {K + 1}"]
    assert_same(model, slomodel.compile(expression, variables, data=data, rewrites=False))


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
    factor = np.linalg.qr

    def counted(matrix: np.ndarray, mode: str) -> object:
        calls.append(matrix.shape)
        return factor(matrix, mode=mode)

    monkeypatch.setattr(np.linalg, "qr", counted)
    model = compiled("sumsq(X' @ w - y)")
    x = np.ones(model.n)
    model.solve(x0=x, max_iter=3)
    model.hvp(x, x)
    assert calls == [(M, K + 1)]
    model.bind(y=drawn(1)["y"]).value_and_gradient(x)
    assert calls == [(M, K + 1)] * 2


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


@given(example=graphs(max_steps=6))
def test_random_graphs_keep_their_values(example: Example) -> None:
    """The passes give the same number, by the plain interpreter, for any graph and data."""
    data = {node: np.asarray(example.values[node], float) for node in example.data}
    for one in PASSES:
        made, _ = one.run(example.objective, Facts(example.sizes, data))
        (found,) = evaluate([made], example.values, example.sizes)
        (expected,) = evaluate([example.objective], example.values, example.sizes)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
