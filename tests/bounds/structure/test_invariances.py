"""Invariances that graphs prove, against values at moved points; none where there is none."""

import numpy as np
import pytest

import slomodel
from slomodel.bounds.structure.invariances import Invariance

RNG = np.random.default_rng(5)
NET = "dim k=3,n=2,N\ndata X[N,n], y[N]\nvar W[k,n], b[k], v[k]\n"
SAMPLES = {"X": RNG.standard_normal((6, 2)), "y": RNG.standard_normal(6)}
POINTS = "dim n,d=2\ndata D[n,n]\nvar X[n,d]\n"
DISTANCES = {"D": np.ones((5, 5))}
CLASSES = {"X": RNG.standard_normal((5, 2)), "y": np.array([0, 1, 2, 0, 1])}
TABLE = RNG.standard_normal((3, 4))
MODELS: dict[str, tuple[str, dict, list[str]]] = {
    "layers": (
        "dim m=3,k=2,n=4,N\ndata X[N,n], Y[N,m]\nvar A[m,k], B[k,n]\n"
        "minimize sumsq(X @ B' @ A' - Y)",
        {"X": RNG.standard_normal((6, 4)), "Y": RNG.standard_normal((6, 3))},
        ["regular matrices of `A` along axis 1 and `B` along axis 0 by the inverse"],
    ),
    "units": (
        NET + "minimize sum((dot(v, tanh(W @ X[i,:] + b)) - y[i])^2 for i in N)",
        SAMPLES,
        [
            "permutations of `W` along axis 0 and `b` and `v`",
            "changes of signs of `W` along axis 0 and `b` and `v`",
        ],
    ),
    "softplus units": (
        NET + "minimize sum((dot(v, softplus(W @ X[i,:] + b)) - y[i])^2 for i in N)",
        SAMPLES,
        ["permutations of `W` along axis 0 and `b` and `v`"],
    ),
    "points": (
        POINTS + "minimize sum((sumsq(X[i,:]-X[j,:]) - D[i,j]^2)^2 for i in n, j in n if i<j)",
        DISTANCES,
        ["rotations and reflections of `X` along axis 1", "shifts of `X` along axis 0"],
    ),
    "anchored points": (
        POINTS + "minimize sum((sumsq(X[i,:]-X[j,:]) - D[i,j]^2)^2 for i in n, j in n if i<j)"
        " + sumsq(X)",
        DISTANCES,
        ["rotations and reflections of `X` along axis 1"],
    ),
    "softmax": (
        "dim N,k=3,n=2\ndata X[N,n], y[N] in k\nvar W[k,n], b[k]\nlet U=X @ W' + b[None,:]\n"
        "minimize sum(logsumexp(U[i,:]) - U[i,y[i]] for i in N)",
        CLASSES,
        ["shifts of `W` along axis 0", "shifts of `b`"],
    ),
    "one class fixed": (
        "dim N,k=3,n=2\ndata X[N,n], y[N] in k\nvar W[k,n]\nlet U=X @ W'\n"
        "minimize sum(log1p(sum(exp(U[i,:]))) - U[i,y[i]] for i in N)",
        CLASSES,
        [],
    ),
    "pairs": (
        "dim p=4,N\ndata a[N] in p, b[N] in p\nvar s[p]\n"
        "minimize sum(log1p(exp(s[b[i]]-s[a[i]])) for i in N)",
        {"a": np.array([0, 1, 2, 3, 0, 1]), "b": np.array([1, 2, 3, 0, 2, 3])},
        ["shifts of `s`"],
    ),
    "additive": (
        "dim a=3,b=4\ndata Y[a,b]\nvar m, u[a], v[b]\n"
        "minimize sum((Y[i,j]-m-u[i]-v[j])^2 for i in a, j in b)",
        {"Y": TABLE},
        [
            "shifts of `m` and `u` by the opposite",
            "shifts of `m` and `v` by the opposite",
            "shifts of `u` and `v` by the opposite",
        ],
    ),
    "factors": (
        "dim m,n,k=2\ndata Y[m,n]\nvar U[m,k], V[n,k]\n"
        "minimize sumsq(U @ V' - Y) + 0.1*(sumsq(U)+sumsq(V))",
        {"Y": TABLE},
        ["rotations and reflections of `U` along axis 1 and `V` along axis 1"],
    ),
    "weighted": ("dim n=3\ndata w[n]\nvar x[n]\nminimize sum(w .* exp(x))", {"w": TABLE[:, 0]}, []),
    "alike": ("dim n=3\nvar x[n]\nminimize sum(exp(x)) + sumsq(x)", {}, ["permutations of `x`"]),
}


def moved(model: slomodel.Model, one: Invariance, x: np.ndarray) -> np.ndarray:
    """x under a random element of the group."""
    parts = {name: np.array(array) for name, array in model.unpack(x).items()}
    variable, axis = one.places[0]
    shape = parts[variable.name].shape
    k = shape[axis] if shape else 1
    M = RNG.standard_normal((k, k)) + 2.0 * np.eye(k)
    if one.kind == "rotation":
        M = np.linalg.qr(M)[0]
    elif one.kind == "permutation":
        M = np.eye(k)[RNG.permutation(k)]
    elif one.kind == "sign":
        M = np.diag(RNG.choice([-1.0, 1.0], k))
    left = tuple(size for at, size in enumerate(shape) if at != axis)
    s = RNG.standard_normal(left)
    for (place, at), letter in zip(one.places, one.letters, strict=True):
        own = parts[place.name]
        if one.kind == "shift":
            sign = 1.0 if letter == "g" else -1.0
            parts[place.name] = own + sign * (np.expand_dims(s, at) if at >= 0 else s)
        else:
            N = M if letter == "g" else np.linalg.inv(M).T
            parts[place.name] = np.moveaxis(np.moveaxis(own, at, -1) @ N, -1, at)
    return model.pack(parts)


@pytest.mark.parametrize("name", MODELS)
def test_the_graph_proves_these(name: str) -> None:
    text, data, expected = MODELS[name]
    model = slomodel.compile(text, data=data, backend="numpy")
    found = model.invariances()
    assert sorted(one.text for one in found) == sorted(expected)
    x = RNG.standard_normal(model.n)
    value, gradient = model.value_and_gradient(x)
    for one in found:
        assert model.value(moved(model, one, x)) == pytest.approx(value, rel=1e-9)
        G = one.generators(model._part(x), x)
        assert np.abs(gradient @ G).max(initial=0.0) <= 1e-12 * np.linalg.norm(gradient)


def test_there_are_none_with_closed_sets() -> None:
    model = slomodel.compile("var x[3] >= 0\nminimize sum(exp(x))", backend="numpy")
    assert model.invariances() == ()


ISOLATED = ["layers", "points", "softmax", "pairs", "factors"]


@pytest.mark.parametrize("name", ISOLATED)
def test_minima_are_certified_on_a_slice(name: str) -> None:
    text, data, _ = MODELS[name]
    if name == "points":
        P = RNG.standard_normal((5, 2))
        data = {"D": np.linalg.norm(P[:, None] - P[None], axis=-1)}
    model = slomodel.compile(text, data=data, backend="numpy")
    x0 = RNG.standard_normal(model.n)
    solution = model.solve(x0=x0, gtol=1e-11, max_iter=2000)
    assert not solution.certify().exists
    found = solution.certify(modulo="invariances")
    if found.kind != "minimum":
        assert found.reason or found.kind == "saddle"
        return
    assert found.invariances
    assert found.held.any()
    # Newton's method on the slice ends at a critical point of the objective itself.
    x, free = solution.x.copy(), ~found.held
    for _ in range(3):
        H, g = model.hessian(x), model.gradient(x)
        x[free] -= np.linalg.solve(H[np.ix_(free, free)], g[free])
    assert np.linalg.norm(model.gradient(x)) <= 1e-9
    assert (np.abs(x - solution.x) <= found.error + 1e-12).all()


def test_directions_that_nothing_determines_are_named() -> None:
    model = slomodel.compile("var a, b, c\nminimize (a + b - 1)^2 + c^2", backend="numpy")
    found = model.certify(np.array([0.5, 0.5, 0.0]), modulo="invariances")
    assert found.invariances == ("shifts of `a` and `b` by the opposite",)
    assert found.kind == "minimum"
    model = slomodel.compile("var a, b, c\nminimize (2*a + b - 1)^2 + c^2", backend="numpy")
    found = model.certify(np.array([0.25, 0.5, 0.0]), modulo="invariances")
    assert not found.exists
    assert found.undetermined == ("-0.5 a + b",)
    assert "Not determined: -0.5 a + b." in found.summary


def test_another_modulo_is_refused() -> None:
    model = slomodel.compile("var a\nminimize a^2", backend="numpy")
    with pytest.raises(slomodel.errors.DomainError, match="expected 'invariances'"):
        model.certify(np.zeros(1), modulo="symmetries")  # type: ignore[arg-type]
