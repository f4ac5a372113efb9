"""Random instances for the targets of proved bounds: models with random data and centres."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from string import ascii_lowercase

import numpy as np
from numpy.random import Generator
from scipy.optimize import minimize

import slomodel
from benchmarks.by_hand import Array
from benchmarks.cases import MODELS

SEED = 90_000
TRAINED_STEPS = 60
Centres = Mapping[str, Array]


@dataclass(frozen=True, slots=True)
class Instance:
    name: str
    model: slomodel.Model
    centres: Centres


Draw = Callable[[Generator], Iterator[Instance]]


def small(rng: Generator) -> Iterator[Instance]:
    """At most four unknowns: Rosenbrock, a network of two weights, the hard instance."""
    for n in (2, 3, 4):
        model = slomodel.compile(MODELS / "rosenbrock.slo", dims={"n": n})
        yield Instance(f"rosenbrock {n}", model, {"N(0,1)": rng.standard_normal(n)})
    for _ in range(2):
        given = {"s": rng.uniform(0.5, 2.0), "y": rng.uniform(-1.0, 1.0)}
        model = slomodel.compile(MODELS / "softplus_toy.slo", data=given)
        yield Instance("softplus_toy", model, {"U[0,3]": rng.uniform(0.0, 3.0, 2)})
    model = slomodel.compile(MODELS / "hard_instance.slo")
    for _ in range(2):
        centre = np.array([rng.uniform(2.5, 8.0), rng.uniform(-1.5, 1.5)])
        yield Instance("hard_instance", model, {"one piece": centre})


def rosenbrocks(rng: Generator) -> Iterator[Instance]:
    for n in (6, 10, 14, 25, 40):
        model = slomodel.compile(MODELS / "rosenbrock.slo", dims={"n": n})
        start = np.where(np.arange(n) % 2, 1.0, -1.2)
        centres = {"start": start, "0": np.zeros(n), "N(0,1)": rng.standard_normal(n)}
        yield Instance(f"rosenbrock {n}", model, centres)


def symmetric_tensors(rng: Generator) -> Iterator[Instance]:
    """T = Σ q_i^{⊗k} of orthogonal q_i with lengths in [0.5, 2]."""
    for d, k, m in ((8, 5, 5), (6, 5, 4), (7, 5, 3), (6, 4, 5), (5, 3, 4)):
        axes = ascii_lowercase[:k]
        head = ", ".join(f"{a} in p" for a in axes)
        term = " * ".join(f"X[z, {a}]" for a in axes)
        text = (
            f"dim p, m\ndata T[{', '.join('p' * k)}] symmetric\nvar X[m, p]\n"
            f"let P[{head}] = sum({term} for z in m)\nminimize sumsq(T - P)"
        )
        Q = np.linalg.qr(rng.standard_normal((d, d)))[0][:, :m].T * rng.uniform(0.5, 2.0, (m, 1))
        T = sum(reduce(np.multiply.outer, [q] * k) for q in Q)
        model = slomodel.compile(text, data={"T": T}, dims={"m": m})
        centres = {
            "U[0,.1]": rng.uniform(0.0, 0.1, m * d),
            "U[0,.5]": rng.uniform(0.0, 0.5, m * d),
            "near a solution": (Q + 0.05 * rng.standard_normal(Q.shape)).ravel(),
        }
        yield Instance(f"d={d} k={k} m={m}", model, centres)


def logistic(rng: Generator) -> Iterator[Instance]:
    text = "dim N, n data A[N, n], y[N] var x[n] minimize mean(softplus(-y .* (A @ x)))"
    for N, n in ((200, 30), (150, 20), (300, 40), (120, 12), (400, 25)):
        data = {"A": rng.standard_normal((N, n)), "y": np.sign(rng.standard_normal(N))}
        centres = {"0": np.zeros(n), "N(0,1)": rng.standard_normal(n)}
        yield Instance(f"{N}x{n}", slomodel.compile(text, data=data), centres)


def phases(rng: Generator) -> Iterator[Instance]:
    text = "dim N, n data A[N, n], y[N] var x[n] minimize mean(((A @ x).^2 - y).^2)"
    for N, n in ((80, 20), (60, 12), (120, 25), (100, 30), (90, 15)):
        A, x = rng.standard_normal((N, n)), rng.standard_normal(n) / np.sqrt(n)
        near = x + 0.1 * rng.standard_normal(n)
        centres = {"0": np.zeros(n), "near": near, "N(0,1)": rng.standard_normal(n)}
        model = slomodel.compile(text, data={"A": A, "y": (A @ x) ** 2})
        yield Instance(f"{N}x{n}", model, centres)


def factorizations(rng: Generator) -> Iterator[Instance]:
    text = "dim p, q, k data M[p, q] var U[p, k], V[k, q] minimize sumsq(U @ V - M)"
    for p, q, k in ((15, 12, 3), (10, 20, 4), (8, 8, 2), (20, 15, 5), (12, 9, 3)):
        M = rng.standard_normal((p, k)) @ rng.standard_normal((k, q))
        model = slomodel.compile(text, data={"M": M}, dims={"k": k})
        centres = {
            "N(0,.1)": 0.1 * rng.standard_normal(model.n),
            "N(0,1)": rng.standard_normal(model.n),
        }
        yield Instance(f"{p}x{q}, rank {k}", model, centres)


def network(
    function: str, widths: Sequence[int], N: int, rng: Generator, coder: bool = False
) -> Instance:
    """A regression by layers with biases and one output, or an autoencoder without biases.

    Targets are those of a network of the same kind with weights 1.5 times as large, and noise.
    """
    layers = range(1, len(widths) - (0 if coder else 1))
    names = [f"W{k}[{widths[k]}, {widths[k - 1]}]" for k in layers]
    scale = 0.5 if coder else 1.0
    X = scale * rng.standard_normal((widths[0], N))
    hidden = "X"
    for k in layers:
        bias = "" if coder else f" + b{k}[:, None]"
        hidden = f"{function}(W{k} @ {hidden}{bias})"
    if coder:
        head, target, out = "", "X", hidden
    else:
        names += [f"b{k}[{widths[k]}]" for k in layers] + [f"v[{widths[-2]}]", "c"]
        head, target, out = ", y[N]", "y", f"v' @ {hidden} + c"
    text = f"dim N data X[{widths[0]}, N]{head} var {', '.join(names)} "
    text += f"minimize sumsq({out} - {target}) / N"
    data = {"X": X} if coder else {"X": X, "y": np.zeros(N)}
    model = slomodel.compile(text, data=data)
    deviation = _by_fan(model, widths, coder)
    if not coder:
        true = model.pack(model.unpack(1.5 * deviation * rng.standard_normal(model.n)))
        data["y"] = _outputs(function, model, true, X) + 0.1 * rng.standard_normal(N)
        model = slomodel.compile(text, data=data)
    start = deviation * rng.standard_normal(model.n)
    centres = {
        "N(0,.3)": 0.3 * rng.standard_normal(model.n),
        "N(0,1/fan)": start,
        "trained": _trained(model, start),
    }
    return Instance(f"{function} {'-'.join(map(str, widths))}, N={N}", model, centres)


def _by_fan(model: slomodel.Model, widths: Sequence[int], coder: bool) -> Array:
    """1/√fan for each weight (n,), the bias counted."""
    fans = {}
    for name, shape in model.variables.items():
        k = len(widths) - 1 if name in ("v", "c") else int(name[1:])
        fans[name] = np.full(shape, 1.0 / np.sqrt(widths[k - 1] + (not coder)))
    return model.pack(fans)


FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "tanh": np.tanh,
    "softplus": lambda t: np.logaddexp(0.0, t),
    "sigmoid": lambda t: 1.0 / (1.0 + np.exp(-t)),
}


def _outputs(function: str, model: slomodel.Model, x: Array, X: Array) -> Array:
    """The output of a regression network (N,)."""
    values = model.unpack(x)
    hidden = X
    for k in range(1, len(values) // 2):
        hidden = FUNCTIONS[function](values[f"W{k}"] @ hidden + values[f"b{k}"][:, None])
    return np.asarray(values["v"] @ hidden + values["c"])


def _trained(model: slomodel.Model, start: Array) -> Array:
    found = minimize(
        model.value_and_gradient,
        start,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": TRAINED_STEPS},
    )
    return np.asarray(found.x, dtype=np.float64)


def networks(
    functions: Sequence[str], shapes: Sequence[tuple[tuple[int, ...], int]], coder: bool = False
) -> Draw:
    """One network for each shape (widths, N), with functions in rotation."""

    def draw(rng: Generator) -> Iterator[Instance]:
        for k, (widths, N) in enumerate(shapes):
            yield network(functions[k % len(functions)], widths, N, rng, coder)

    return draw


def linear_networks(coder: bool, kind: str) -> Draw:
    """Products of matrices on ijcnn1, (1/N) times the sum of squares."""

    def draw(rng: Generator) -> Iterator[Instance]:
        with np.load(MODELS / "data" / "ijcnn1_6000.npz", allow_pickle=False) as archive:
            X, y = archive["X"], archive["y"]
        middles = _CODERS if coder else _DEEP
        for middle in middles:
            widths = (len(X), *middle, len(X) if coder else 1)
            layers = range(1, len(widths) - (0 if coder else 1))
            names = [f"W{k}[{widths[k]}, {widths[k - 1]}]" for k in layers]
            product = " @ ".join(f"W{k}" for k in reversed(layers))
            if not coder:
                names.append(f"v[{widths[-2]}]")
                product = f"v' @ {product}"
            target, head = ("X", "") if coder else ("y", ", y[N]")
            text = f"dim N data X[{len(X)}, N]{head} var {', '.join(names)} "
            text += f"minimize sumsq({target} - {product} @ X) / N"
            model = slomodel.compile(text, data={"X": X} if coder else {"X": X, "y": y})
            fan = [np.full(s, 1.0 / np.sqrt(s[-1])).ravel() for s in model.variables.values()]
            centre = {
                "U[0,.1]": rng.uniform(0.0, 0.1, model.n),
                "U[0,1]": rng.uniform(0.0, 1.0, model.n),
                "N(0,1/fan)": np.concatenate(fan) * rng.standard_normal(model.n),
            }
            chosen = {name: x for name, x in centre.items() if name.startswith(kind)}
            yield Instance("-".join(map(str, widths)), model, chosen)

    return draw


_DEEP = ((15, 10, 5), (12, 8, 4), (20, 10, 6), (10, 10, 10), (16, 6, 3))
_CODERS = ((20, 10, 4, 10), (16, 8, 3, 8), (18, 12, 5, 12), (15, 10, 6, 10), (12, 6, 2, 6))
