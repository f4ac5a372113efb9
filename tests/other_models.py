"""The models beside the nine: small data, and their objectives in plain NumPy."""

from collections.abc import Callable
from functools import reduce
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Arrays = dict[str, Array]


def outer_power(x: Array, order: int) -> Array:
    """x ⊗ … ⊗ x, `order` factors."""
    return reduce(np.multiply.outer, [x] * order)


def symmetric(T: Array) -> Array:
    return np.mean([T.transpose(axes) for axes in permutations(range(T.ndim))], axis=0)


def softplus(t: Array) -> Array:
    return np.logaddexp(0.0, t)


def hard_instance(v: Arrays, data: Arrays) -> float:
    """Section 5 with d = 4, its three pieces as they are printed."""
    (x1, x2), Delta, top = v["x"], float(data["Delta"]), float(np.exp(data["log_J"]))

    def r(z: float) -> float:
        return 1.0 / (2.0 + np.log(1.0 + z * z))

    def slope(z: float) -> float:
        return -2.0 * z / (1.0 + z * z) * r(z) ** 2

    a = -slope(top - 1.0) / 2.0
    b = r(top - 1.0) + slope(top - 1.0) / 2.0
    if x1 <= 1.0:
        g = r(1.0) + slope(1.0) * (x1 - 1.0)
    elif x1 < top - 1.0:
        g = r(x1)
    else:
        g = a * (x1 - top) ** 2 + b
    return Delta * g + (x1**2 + 1.0) * x2**2


def autoencoder(v: Arrays, data: Arrays) -> float:
    layers = [v[f"W{k}"] for k in range(1, 6)]
    output = reduce(lambda signal, W: softplus(W @ signal), layers, data["X"])
    return float(np.sum((data["X"] - output) ** 2))


def neural_net(v: Arrays, data: Arrays) -> float:
    H = reduce(lambda signal, W: np.tanh(W @ signal), [v["W1"], v["W2"], v["W3"]], data["X"])
    return float(np.sum((data["y"] - np.tanh(v["w4"] @ H)) ** 2))


def weighted_powers(v: Arrays, T: Array) -> float:
    weights = v.get("g", np.ones(len(v["X"])))
    found = sum(g * outer_power(row, T.ndim) for g, row in zip(weights, v["X"], strict=True))
    return float(np.sum((T - found) ** 2))


def cp_tensor(v: Arrays, data: Arrays) -> float:
    found = sum(np.multiply.outer(np.outer(v["A"][i], v["B"][i]), v["C"][i]) for i in range(2))
    return float(np.sum((data["T"] - found) ** 2))


def hanging_chain(v: Arrays, data: Arrays) -> float:
    height = np.array([1.0, *v["y"], 3.0])
    h = 1.0 / (len(height) - 1)
    length = np.hypot(h, np.diff(height))
    return float(np.sum((height[1:] + height[:-1]) / 2.0 * length))


def torsion_box(v: Arrays, data: Arrays) -> float:
    u = np.pad(v["u"], 1)
    slopes = np.sum(np.diff(u, axis=0) ** 2) + np.sum(np.diff(u, axis=1) ** 2)
    return float(slopes / 2.0 - 5.0 * np.sum(u) / (len(u) - 1) ** 2)


def small_polygon(v: Arrays, data: Arrays) -> float:
    """The shoelace formula for the corners beside the one at the origin."""
    x, y = v["r"] * np.cos(v["angle"]), v["r"] * np.sin(v["angle"])
    return float(np.sum(x[:-1] * y[1:] - x[1:] * y[:-1]) / 2.0)


def normal(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape)


Objective = Callable[[Arrays, Arrays], float]
OTHER_MODELS: dict[str, tuple[dict[str, int], Arrays, Objective]] = {
    "hard_instance": ({}, {"Delta": np.asarray(3.0), "log_J": np.asarray(2.0)}, hard_instance),
    "softplus_toy": (
        {},
        {"s": np.asarray(0.7), "y": np.asarray(0.4)},
        lambda v, data: float(softplus(v["w2"] * softplus(v["w1"] * data["s"])) - data["y"]) ** 2,
    ),
    "autoencoder": ({}, {"X": normal(3, 5)}, autoencoder),
    "neural_net": ({}, {"X": normal(3, 5), "y": np.sign(normal(5))}, neural_net),
    "sym_tensor4": (
        {"m": 2},
        {"T": symmetric(normal(3, 3, 3, 3))},
        lambda v, data: weighted_powers(v, data["T"]),
    ),
    "sym_tensor7": (
        {"m": 2},
        {"T": outer_power(normal(2), 7) - outer_power(normal(3)[1:], 7)},
        lambda v, data: weighted_powers(v, data["T"]),
    ),
    "cp_tensor": ({"m": 2}, {"T": normal(3, 4, 5)}, cp_tensor),
    "hanging_chain": ({"n": 5}, {}, hanging_chain),
    "torsion_box": ({"n": 4}, {}, torsion_box),
    "small_polygon": ({"n": 5}, {}, small_polygon),
}
"""Name → dims that the data does not give, data, the objective by hand."""
