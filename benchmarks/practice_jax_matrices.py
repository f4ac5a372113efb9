"""The models of practice that factor matrices, in JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular

from benchmarks.by_hand import Arrays

J = jax.Array


def negative_log_density(covariance: J, e: J) -> J:
    """log det(K)/2 + eᵀK⁻¹e/2 from the Cholesky factor."""
    factor = jnp.linalg.cholesky(covariance)
    z = solve_triangular(factor, e, lower=True)
    return jnp.sum(jnp.log(jnp.diagonal(factor))) + z @ z / 2


def _squared_exponential(d: Arrays, rho: J, alpha: J) -> J:
    squares = (d["x"][:, None] - d["x"]) ** 2
    return alpha**2 * jnp.exp(-squares / (2 * rho**2))


def gp_regression(d: Arrays, x: J) -> J:
    rho, alpha, sigma = jnp.exp(x)
    covariance = _squared_exponential(d, rho, alpha) + sigma * np.eye(d["x"].size)
    prior = -24 * jnp.log(rho) + 4 * rho + alpha**2 / 8 + sigma**2 / 2
    return negative_log_density(covariance, d["y"]) + prior


def gp_poisson(d: Arrays, x: J) -> J:
    rho, alpha, f = jnp.exp(x[0]), jnp.exp(x[1]), x[2:]
    covariance = _squared_exponential(d, rho, alpha) + 1e-4 * np.eye(d["x"].size)
    g = jnp.linalg.cholesky(covariance) @ f
    prior = f @ f / 2 - 24 * jnp.log(rho) + 4 * rho + alpha**2 / 8
    return jnp.sum(jnp.exp(g) - d["k"] * g) + prior


def topography_kriging(d: Arrays, x: J) -> J:
    s2, r, nugget = jnp.exp(x[:3])
    squares = (d["x"][:, None] - d["x"]) ** 2 + (d["y"][:, None] - d["y"]) ** 2
    t = np.sqrt(3 * squares) / r
    covariance = s2 * (1 + t) * jnp.exp(-t) + nugget * np.eye(d["x"].size)
    trend = x[3] + x[4] * d["x"] + x[5] * d["y"]
    return negative_log_density(covariance, (d["z"] - trend) / 100)
