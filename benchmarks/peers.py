"""The models as other users write them: networks layer by layer in NumPy, every model in JAX.

`by_hand.py` multiplies small matrices first; these follow the formula, in its order.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from types import ModuleType

import numpy as np

from benchmarks.by_hand import Array, Arrays, Evaluate, sumsq


def _chain(weights: list[Array], X: Array, target: Array) -> tuple[float, list[Array]]:
    """‖W_k … W_1 X - target‖² and its derivatives by W_1, …, by layers forwards and back."""
    outputs = [X]
    for W in weights:
        outputs.append(W @ outputs[-1])
    residual = outputs[-1] - target
    back = 2.0 * residual
    slopes = []
    for W, below in zip(reversed(weights), reversed(outputs[:-1]), strict=True):
        slopes.append(back @ below.T)
        back = W.T @ back
    return sumsq(residual), slopes[::-1]


def linear_autoencoder(v: Arrays, data: Arrays) -> tuple[float, Arrays]:
    names = ("W1", "W2", "W3", "W4", "W5")
    value, slopes = _chain([v[name] for name in names], data["X"], data["X"])
    return value, dict(zip(names, slopes, strict=True))


def deep_linear(v: Arrays, data: Arrays) -> tuple[float, Arrays]:
    weights = [v["W1"], v["W2"], v["W3"], v["w4"][None, :]]
    value, slopes = _chain(weights, data["X"], data["y"][None, :])
    return value, dict(zip(("W1", "W2", "W3", "w4"), [*slopes[:3], slopes[3][0]], strict=True))


def standardised(v: Arrays, data: Arrays) -> tuple[float, Arrays]:
    """The data are standardised at every call, as the objective says."""
    X = data["X"]
    centred = X - X.mean(axis=1, keepdims=True)
    Z = centred / np.sqrt(1e-6 + (centred * centred).mean(axis=1, keepdims=True))
    return deep_linear(v, {"X": Z, "y": data["y"]})


LAYERED: dict[str, Evaluate] = {
    "linear_autoencoder": linear_autoencoder,
    "deep_linear": deep_linear,
    "deep_linear_standardised": standardised,
}


def in_jax(model: str) -> Evaluate | None:
    """The compiled value and gradient of a model in double precision; None without JAX.

    On one thread, unless the environment sets another number.
    """
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
    try:
        import jax
        import jax.numpy
    except ImportError:
        return None
    jax.config.update("jax_enable_x64", True)
    evaluate = jax.jit(jax.value_and_grad(partial(FORMULAS[model], jax.numpy)))
    return lambda v, data: jax.block_until_ready(evaluate(v, data))


# Formulas over `np`, which is NumPy's or JAX's, as the models state them.


def _sym_tensor(np: ModuleType, v: Arrays, d: Arrays) -> object:
    X = v["X"]
    return np.sum((d["T"] - np.einsum("ia,ib,ic,id,ie->abcde", X, X, X, X, X)) ** 2)


def _linear_autoencoder(np: ModuleType, v: Arrays, d: Arrays) -> object:
    X = d["X"]
    return np.sum((X - v["W5"] @ (v["W4"] @ (v["W3"] @ (v["W2"] @ (v["W1"] @ X))))) ** 2)


def _deep_linear(np: ModuleType, v: Arrays, d: Arrays) -> object:
    return np.sum((d["y"] - v["w4"] @ (v["W3"] @ (v["W2"] @ (v["W1"] @ d["X"])))) ** 2)


def _standardised(np: ModuleType, v: Arrays, d: Arrays) -> object:
    centred = d["X"] - d["X"].mean(axis=1, keepdims=True)
    Z = centred / np.sqrt(1e-6 + (centred**2).mean(axis=1, keepdims=True))
    return _deep_linear(np, v, {"X": Z, "y": d["y"]})


def _softplus_net(np: ModuleType, v: Arrays, d: Arrays) -> object:
    hidden = np.logaddexp(0.0, v["W"] @ d["X"] + v["b"][:, None])
    r = v["v"] @ hidden + v["c"] - d["y"]
    return np.mean(r**2) + d["lam"] * (np.sum(v["W"] ** 2) + np.sum(v["v"] ** 2))


def _robust_logistic(np: ModuleType, v: Arrays, d: Arrays) -> object:
    squares = v["w"] ** 2
    loss = np.mean(np.logaddexp(0.0, -d["y"] * (d["A"] @ v["w"])))
    return loss + d["lam"] * np.sum(squares / (d["eps"] + squares))


def _tukey_regression(np: ModuleType, v: Arrays, d: Arrays) -> object:
    u = np.maximum(0.0, 1.0 - ((d["A"] @ v["w"] - d["y"]) / d["c"]) ** 2)
    return d["c"] ** 2 / 6.0 * np.sum(1.0 - u**3)


def _rosenbrock(np: ModuleType, v: Arrays, d: Arrays) -> object:
    x = v["x"]
    return np.sum(d["b"] * (x[1:] - x[:-1] ** 2) ** 2 + (d["a"] - x[:-1]) ** 2)


def _phase_retrieval(np: ModuleType, v: Arrays, d: Arrays) -> object:
    return np.mean(((d["A"] @ v["x"]) ** 2 - d["y"]) ** 2) / 4.0


def _matrix_completion(np: ModuleType, v: Arrays, d: Arrays) -> object:
    R = np.where(d["Omega"] != 0, v["U"] @ v["V"].T - d["M"], 0.0)
    return np.sum(R**2) / 2.0 + d["lam"] / 2.0 * (np.sum(v["U"] ** 2) + np.sum(v["V"] ** 2))


def _student_t(np: ModuleType, v: Arrays, d: Arrays) -> object:
    r = d["y"] - v["a"] * np.sin(v["w"] * d["t"] + v["p"])
    return np.sum(np.log1p(r**2 / d["nu"]))


FORMULAS: dict[str, Callable[[ModuleType, Arrays, Arrays], object]] = {
    "sym_tensor": _sym_tensor,
    "linear_autoencoder": _linear_autoencoder,
    "deep_linear": _deep_linear,
    "deep_linear_standardised": _standardised,
    "softplus_net": _softplus_net,
    "robust_logistic": _robust_logistic,
    "tukey_regression": _tukey_regression,
    "rosenbrock": _rosenbrock,
    "phase_retrieval": _phase_retrieval,
    "matrix_completion": _matrix_completion,
    "student_t": _student_t,
}
