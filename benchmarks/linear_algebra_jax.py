"""The likelihoods of `linear_algebra` in JAX, as someone who knows it writes them."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_solve, solve_triangular

from benchmarks.by_hand import Array, Arrays
from benchmarks.practice_jax import compiled_formula
from benchmarks.practice_jax_matrices import negative_log_density

J = jax.Array


def gaussian_process(d: Arrays, x: J) -> J:
    a, lengths, s = x[0], x[1:-1], x[-1]
    squares = (d["X"][:, None] - d["X"]) ** 2
    smooth = jnp.exp(2 * a - squares @ jnp.exp(-2 * lengths) / 2)
    n = d["y"].size
    covariance = smooth + jnp.exp(2 * s) * np.eye(n)
    return negative_log_density(covariance, d["y"]) + n * np.log(2 * np.pi) / 2


def factor_analysis(d: Arrays, x: J) -> J:
    p = len(d["S"])
    W, u = x[:-p].reshape(p, -1), x[-p:]
    factor = jnp.linalg.cholesky(W @ W.T + jnp.diag(jnp.exp(u)))
    solved = cho_solve((factor, True), d["S"])
    return jnp.sum(jnp.log(jnp.diagonal(factor))) + jnp.trace(solved) / 2


def vector_autoregression(d: Arrays, x: J) -> J:
    Y = d["Y"]
    count, size = Y.shape
    A, B = x[: 2 * size**2].reshape(2, size, size)
    c, u = x[2 * size**2 :][: 2 * size].reshape(2, size)
    L = jnp.tril(x[-(size**2) :].reshape(size, size), -1) + jnp.diag(jnp.exp(u))
    E = Y[2:] - c - Y[1:-1] @ A.T - Y[:-2] @ B.T
    Z = solve_triangular(L, E.T, lower=True)
    return jnp.sum(Z**2) / 2 + (count - 2) * jnp.sum(u)


FORMULAS: dict[str, Callable[[Arrays, J], J]] = {
    one.__name__: one for one in (gaussian_process, factor_analysis, vector_autoregression)
}


def compiled(name: str, data: Arrays) -> Callable[[Array], tuple[float, Array]]:
    """Value and gradient at x (n,), NumPy in and NumPy out; compiled at the first x."""
    return compiled_formula(FORMULAS[name], data)
