"""Value and gradient of the benchmark's models in other libraries, written as their users would.

JAX's formulas are those of `peers.py`; PyTorch's are here, over `xp`, which is torch. CasADi and
numba, which need separate formulations, only have the models that suit them. Libraries that are not
installed are omitted.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.by_hand import Array, Arrays
from benchmarks.peers import in_jax

Value = Callable[[ModuleType, dict[str, Any], dict[str, Any]], Any]
Peer = Callable[[Arrays], tuple[float, Array]]
"""A function from variables by name to the value and the flat gradient, both computed."""


def sym_tensor(xp: ModuleType, v: dict[str, Any], data: dict[str, Any]) -> Any:
    X = v["X"]
    m, d = X.shape
    pairs = (X[:, :, None] * X[:, None, :]).reshape(m, d * d)
    triples = (pairs[:, :, None] * X[:, None, :]).reshape(m, d**3)
    return ((data["T"].reshape(d**3, d * d) - triples.T @ pairs) ** 2).sum()


def linear_autoencoder(xp: ModuleType, v: dict[str, Any], data: dict[str, Any]) -> Any:
    H = data["X"]
    for name in ("W1", "W2", "W3", "W4", "W5"):
        H = v[name] @ H
    return ((data["X"] - H) ** 2).sum()


def deep_linear(xp: ModuleType, v: dict[str, Any], data: dict[str, Any]) -> Any:
    H = data["X"]
    for name in ("W1", "W2", "W3"):
        H = v[name] @ H
    return ((data["y"] - v["w4"] @ H) ** 2).sum()


def standardised(xp: ModuleType, v: dict[str, Any], data: dict[str, Any]) -> Any:
    centred = data["X"] - data["X"].mean(1, keepdim=True)
    Z = centred / xp.sqrt(1e-6 + (centred**2).mean(1, keepdim=True))
    return deep_linear(xp, v, {"X": Z, "y": data["y"]})


def softplus_net(xp: ModuleType, v: dict[str, Any], data: dict[str, Any]) -> Any:
    Z = v["W"] @ data["X"] + v["b"][:, None]
    H = xp.logaddexp(xp.zeros_like(Z), Z)
    r = v["v"] @ H + v["c"] - data["y"]
    return (r**2).mean() + data["lam"] * ((v["W"] ** 2).sum() + (v["v"] ** 2).sum())


def robust_logistic(xp: ModuleType, v: dict[str, Any], data: dict[str, Any]) -> Any:
    t = data["y"] * (data["A"] @ v["w"])
    squares = v["w"] ** 2
    penalty = (squares / (data["eps"] + squares)).sum()
    return xp.logaddexp(xp.zeros_like(t), -t).mean() + data["lam"] * penalty


def tukey_regression(xp: ModuleType, v: dict[str, Any], data: dict[str, Any]) -> Any:
    r = data["A"] @ v["w"] - data["y"]
    u = 1.0 - (r / data["c"]) ** 2
    u = xp.where(u > 0.0, u, xp.zeros_like(u))
    return data["c"] ** 2 / 6.0 * (1.0 - u**3).sum()


def rosenbrock(xp: ModuleType, v: dict[str, Any], data: dict[str, Any]) -> Any:
    x = v["x"]
    valley = x[1:] - x[:-1] ** 2
    return (data["b"] * valley**2 + (data["a"] - x[:-1]) ** 2).sum()


def phase_retrieval(xp: ModuleType, v: dict[str, Any], data: dict[str, Any]) -> Any:
    p = data["A"] @ v["x"]
    return ((p**2 - data["y"]) ** 2).mean() / 4.0


def matrix_completion(xp: ModuleType, v: dict[str, Any], data: dict[str, Any]) -> Any:
    R = data["Omega"] * (v["U"] @ v["V"].T - data["M"])
    return (R**2).sum() / 2.0 + data["lam"] / 2.0 * ((v["U"] ** 2).sum() + (v["V"] ** 2).sum())


def student_t(xp: ModuleType, v: dict[str, Any], data: dict[str, Any]) -> Any:
    r = data["y"] - v["a"] * xp.sin(v["w"] * data["t"] + v["p"])
    return xp.log1p(r**2 / data["nu"]).sum()


VALUES: dict[str, Value] = {
    "sym_tensor": sym_tensor,
    "linear_autoencoder": linear_autoencoder,
    "deep_linear": deep_linear,
    "deep_linear_standardised": standardised,
    "softplus_net": softplus_net,
    "robust_logistic": robust_logistic,
    "tukey_regression": tukey_regression,
    "rosenbrock": rosenbrock,
    "phase_retrieval": phase_retrieval,
    "matrix_completion": matrix_completion,
    "student_t": student_t,
}


def _flat(arrays: list[Any]) -> Array:
    return np.concatenate([np.ravel(np.asarray(one)) for one in arrays])


def jax_jit(model: str, data: Arrays) -> Peer | None:
    """`jax.jit` of value_and_grad, NumPy in and NumPy out."""
    function = in_jax(model)
    if function is None:
        return None
    import jax.numpy as jnp

    known = {name: jnp.asarray(array) for name, array in data.items()}

    def peer(v: Arrays) -> tuple[float, Array]:
        value, gradient = function(v, known)
        return float(value), _flat([gradient[name] for name in v])

    return peer


def torch_eager(model: str, data: Arrays) -> Peer:
    """PyTorch's autograd, eager."""
    return _torch(model, data, compiled=False)


def torch_compile(model: str, data: Arrays) -> Peer:
    """PyTorch's autograd of the value through `torch.compile`."""
    return _torch(model, data, compiled=True)


def _torch(model: str, data: Arrays, compiled: bool) -> Peer:
    import torch

    torch.set_num_threads(1)
    known = {name: torch.from_numpy(np.array(array, float)) for name, array in data.items()}

    def value_of(v: dict[str, Any]) -> Any:
        return VALUES[model](torch, v, known)

    function = torch.compile(value_of) if compiled else value_of

    def peer(v: Arrays) -> tuple[float, Array]:
        tensors = {
            name: torch.from_numpy(np.array(a, float)).requires_grad_() for name, a in v.items()
        }
        value = function(tensors)
        gradient = torch.autograd.grad(value, list(tensors.values()))
        return float(value), _flat(list(gradient))

    return peer


def numba_loops(model: str, data: Arrays) -> Peer | None:
    """Hand-written loops for numba; None for products of matrices, which are BLAS calls."""
    if model == "rosenbrock":
        return _rosenbrock_loop(float(data["a"]), float(data["b"]))
    if model == "student_t":
        return _student_t_loop(data["t"], data["y"], float(data["nu"]))
    return None


def _rosenbrock_loop(a: float, b: float) -> Peer:
    import numba

    @numba.njit
    def rosen(x: Array, g: Array) -> float:
        f, n, carried = 0.0, x.size, 0.0
        for i in range(n - 1):
            valley = x[i + 1] - x[i] * x[i]
            slope = a - x[i]
            f += b * valley * valley + slope * slope
            g[i] = carried - 4.0 * b * valley * x[i] - 2.0 * slope
            carried = 2.0 * b * valley
        g[n - 1] = carried
        return f

    def peer(v: Arrays) -> tuple[float, Array]:
        gradient = np.empty_like(v["x"])
        return rosen(v["x"], gradient), gradient

    return peer


def _student_t_loop(t: Array, y: Array, nu: float) -> Peer:
    import numba

    @numba.njit
    def student(a: float, w: float, p: float, g: Array) -> float:
        f, ga, gw, gp = 0.0, 0.0, 0.0, 0.0
        for i in range(t.size):
            phase = w * t[i] + p
            sine = np.sin(phase)
            r = y[i] - a * sine
            f += np.log1p(r * r / nu)
            slope = -2.0 * r / (nu + r * r)
            turned = slope * np.cos(phase)
            ga += slope * sine
            gw += a * turned * t[i]
            gp += a * turned
        g[0], g[1], g[2] = ga, gw, gp
        return f

    def peer(v: Arrays) -> tuple[float, Array]:
        gradient = np.empty(3)
        value = student(float(v["a"]), float(v["w"]), float(v["p"]), gradient)
        return value, gradient

    return peer


def casadi_vm(model: str, data: Arrays) -> Peer | None:
    """CasADi's virtual machine on MX expressions, through its buffer; None if not formulated."""
    import casadi

    if model != "rosenbrock":
        return None
    a, b = float(data["a"]), float(data["b"])
    made: dict[int, Callable[[Array], tuple[float, Array]]] = {}

    def make(n: int) -> Callable[[Array], tuple[float, Array]]:
        x = casadi.MX.sym("x", n)
        f = casadi.sum1(b * (x[1:] - x[:-1] ** 2) ** 2 + (a - x[:-1]) ** 2)
        function = casadi.Function("f", [x], [f, casadi.gradient(f, x)])
        buffer, trigger = function.buffer()
        point, value, gradient = np.zeros(n), np.zeros(1), np.zeros(n)
        buffer.set_arg(0, memoryview(point))
        buffer.set_res(0, memoryview(value))
        buffer.set_res(1, memoryview(gradient))

        def call(vector: Array, owner: object = buffer) -> tuple[float, Array]:
            np.copyto(point, vector)
            trigger()
            return float(value[0]), gradient.copy()

        return call

    def peer(v: Arrays) -> tuple[float, Array]:
        n = v["x"].size
        if n not in made:
            made[n] = make(n)
        return made[n](v["x"])

    return peer


PEERS: dict[str, tuple[str, Callable[[str, Arrays], Peer | None]]] = {
    "jax": ("jax", jax_jit),
    "torch": ("torch", torch_eager),
    "torch.compile": ("torch", torch_compile),
    "numba": ("numba", numba_loops),
    "casadi": ("casadi", casadi_vm),
}
"""The module of each peer, and its constructor for a model and its data."""


def installed() -> list[str]:
    """The peers whose library is installed."""
    return [name for name, (module, _) in PEERS.items() if find_spec(module) is not None]
