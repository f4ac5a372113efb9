"""Adam of optax on the linear autoencoder, as its users would write it."""

from __future__ import annotations

import os
import time
from functools import partial

from benchmarks.by_hand import Arrays
from benchmarks.peers import FORMULAS

# Steps in one compiled loop.
LOOP = 200


def adam(start: Arrays, data: Arrays, rate: float, seconds: float) -> float | None:
    """The lowest value met within so many seconds of the processor; None without optax."""
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
    try:
        import jax
        import optax
    except ImportError:
        return None
    jax.config.update("jax_enable_x64", True)
    rule = optax.adam(rate)
    value_and_slopes = jax.value_and_grad(partial(FORMULAS["linear_autoencoder"], jax.numpy))

    @jax.jit
    def loop(weights: object, memory: object) -> tuple[object, object, object]:
        def step(_: object, at: tuple[object, object, object]) -> tuple[object, object, object]:
            weights, memory, lowest = at
            f, slopes = value_and_slopes(weights, data)
            change, memory = rule.update(slopes, memory, weights)
            return optax.apply_updates(weights, change), memory, jax.numpy.minimum(lowest, f)

        return jax.lax.fori_loop(0, LOOP, step, (weights, memory, jax.numpy.inf))

    weights = {name: jax.numpy.asarray(array) for name, array in start.items()}
    memory = rule.init(weights)
    jax.block_until_ready(loop(weights, memory))  # compiles
    lowest = float("inf")
    begun = time.process_time()
    while time.process_time() - begun < seconds:
        weights, memory, found = jax.block_until_ready(loop(weights, memory))
        lowest = min(lowest, float(found))
    return lowest
