"""Value and gradient of the models in models/, hand-written in NumPy: the reference for timings.

Each function takes the variables and the data by name and returns the value and the gradient by
variable, computed as a careful NumPy user would: products in a cheap order, nothing twice.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Arrays = dict[str, Array]
Evaluate = Callable[[Arrays, Arrays], tuple[float, Arrays]]


def sumsq(A: Array) -> float:
    """Sum of squares of an array of any shape."""
    return float(np.vdot(A, A))


def sigmoid(t: Array) -> Array:
    """1 / (1 + exp(-t)), elementwise, without overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * t))


def sym_tensor(v: Arrays, data: Arrays) -> tuple[float, Arrays]:
    """The five slots of the gradient are one, because T is symmetric."""
    T, X = data["T"], v["X"]
    m, d = X.shape
    pairs = (X[:, :, None] * X[:, None, :]).reshape(m, d * d)
    triples = (pairs[:, :, None] * X[:, None, :]).reshape(m, d**3)
    residual = T.reshape(d**3, d * d) - triples.T @ pairs
    # Contracting two slots, then two more, leaves the slot of the derivative.
    left = (residual @ pairs.T).reshape(d, d * d, m)
    return sumsq(residual), {"X": -10.0 * np.einsum("apm,mp->ma", left, pairs)}


def linear_autoencoder(v: Arrays, data: Arrays) -> tuple[float, Arrays]:
    """The weights are multiplied first: they are small beside X (d, N)."""
    X = data["X"]
    A2 = v["W2"] @ v["W1"]
    A3 = v["W3"] @ A2
    A4 = v["W4"] @ A3
    R = X - (v["W5"] @ A4) @ X
    G5 = -2.0 * (R @ X.T)
    G4 = v["W5"].T @ G5
    G3 = v["W4"].T @ G4
    G2 = v["W3"].T @ G3
    G1 = v["W2"].T @ G2
    gradient = {"W1": G1, "W2": G2 @ v["W1"].T, "W3": G3 @ A2.T, "W4": G4 @ A3.T, "W5": G5 @ A4.T}
    return sumsq(R), gradient


def deep_linear(v: Arrays, data: Arrays) -> tuple[float, Arrays]:
    """The weights from the left make one row; X is touched twice."""
    X, y = data["X"], data["y"]
    c3 = v["w4"] @ v["W3"]
    c2 = c3 @ v["W2"]
    r = y - (c2 @ v["W1"]) @ X
    g1 = -2.0 * (X @ r)
    g2 = v["W1"] @ g1
    g3 = v["W2"] @ g2
    gradient = {
        "W1": np.outer(c2, g1),
        "W2": np.outer(c3, g2),
        "W3": np.outer(v["w4"], g3),
        "w4": v["W3"] @ g3,
    }
    return sumsq(r), gradient


def softplus_net(v: Arrays, data: Arrays) -> tuple[float, Arrays]:
    """softplus as logaddexp(0, ·), its derivative the sigmoid."""
    X, y, lam = data["X"], data["y"], data["lam"]
    N = y.size
    Z = v["W"] @ X + v["b"][:, None]
    H = np.logaddexp(0.0, Z)
    r = v["v"] @ H + v["c"] - y
    g = (2.0 / N) * r
    G = np.outer(v["v"], g) * sigmoid(Z)
    gradient = {
        "W": G @ X.T + 2.0 * lam * v["W"],
        "b": G.sum(axis=1),
        "v": H @ g + 2.0 * lam * v["v"],
        "c": g.sum(),
    }
    return sumsq(r) / N + float(lam) * (sumsq(v["W"]) + sumsq(v["v"])), gradient


def robust_logistic(v: Arrays, data: Arrays) -> tuple[float, Arrays]:
    """Margins t = y (A w); the penalty's derivative is 2 eps w / (eps + w²)²."""
    A, y, lam, eps, w = data["A"], data["y"], data["lam"], data["eps"], v["w"]
    t = y * (A @ w)
    squares = w * w
    below = eps + squares
    value = np.logaddexp(0.0, -t).mean() + lam * (squares / below).sum()
    gradient = A.T @ (sigmoid(-t) * y / -y.size) + lam * 2.0 * eps * w / below**2
    return float(value), {"w": gradient}


def tukey_regression(v: Arrays, data: Arrays) -> tuple[float, Arrays]:
    """The derivative is r (1 - (r/c)²)² inside, 0 outside."""
    A, y, c = data["A"], data["y"], data["c"]
    r = A @ v["w"] - y
    u = np.maximum(0.0, 1.0 - (r / c) ** 2)
    return float(c * c / 6.0 * (1.0 - u**3).sum()), {"w": A.T @ (r * u * u)}


def rosenbrock(v: Arrays, data: Arrays) -> tuple[float, Arrays]:
    """Each term touches two neighbours."""
    a, b, x = data["a"], data["b"], v["x"]
    valley = x[1:] - x[:-1] ** 2
    slope = a - x[:-1]
    gradient = np.zeros_like(x)
    gradient[1:] = 2.0 * b * valley
    gradient[:-1] -= 4.0 * b * valley * x[:-1] + 2.0 * slope
    return float(b * (valley @ valley) + slope @ slope), {"x": gradient}


def phase_retrieval(v: Arrays, data: Arrays) -> tuple[float, Arrays]:
    """f = Σ (p² - y)² / (4m) with p = A x."""
    A, y = data["A"], data["y"]
    p = A @ v["x"]
    r = p * p - y
    return sumsq(r) / (4.0 * y.size), {"x": A.T @ (r * p / y.size)}


def matrix_completion(v: Arrays, data: Arrays) -> tuple[float, Arrays]:
    """Entries outside the mask are 0 whatever M holds there."""
    U, V, lam = v["U"], v["V"], data["lam"]
    R = np.where(data["Omega"] != 0, U @ V.T - data["M"], 0.0)
    value = sumsq(R) / 2.0 + float(lam) / 2.0 * (sumsq(U) + sumsq(V))
    return value, {"U": R @ V + lam * U, "V": R.T @ U + lam * V}


def student_t(v: Arrays, data: Arrays) -> tuple[float, Arrays]:
    """A sinusoid fitted under Student's t: f = Σ log(1 + r²/ν), r = y - a sin(w t + p)."""
    t, y, nu, a = data["t"], data["y"], data["nu"], v["a"]
    phase = v["w"] * t + v["p"]
    sine = np.sin(phase)
    r = y - a * sine
    squares = r * r
    slope = -2.0 * r / (nu + squares)
    turned = slope * np.cos(phase)
    gradient = {"a": slope @ sine, "w": a * (turned @ t), "p": a * turned.sum()}
    return float(np.log1p(squares / nu).sum()), gradient


BY_HAND: dict[str, Evaluate] = {
    "sym_tensor": sym_tensor,
    "linear_autoencoder": linear_autoencoder,
    "deep_linear": deep_linear,
    "softplus_net": softplus_net,
    "robust_logistic": robust_logistic,
    "tukey_regression": tukey_regression,
    "rosenbrock": rosenbrock,
    "phase_retrieval": phase_retrieval,
    "matrix_completion": matrix_completion,
}
