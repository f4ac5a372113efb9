"""Derivatives at the centre of networks and symmetric powers: written by hand, and by graphs.

    python benchmarks/centre_derivatives.py

CPU times, the least of several alternating runs, of ‖H(c)‖ and ‖D³f(c)‖ with their norms. By graphs
they follow from `calculus`, enclosed in intervals, at effort "thorough", as the default one has no
D³f beyond 40 unknowns. Derivatives stay written by hand only where they take less than a third;
measured on a loaded machine, by hand and by graphs in ms:

    network, one layer     n = 16   H  2.7 and 14.9    D³f   12 and  172
    network, one layer     n = 56   H  3.3 and 51      D³f  390 and 3862
    network, two layers    n = 44   H  3.6 and 55      D³f  101 and 5058
    symmetric cubes        n = 12                      D³f  4.4 and  158
    symmetric cubes        n = 24                      D³f  9.7 and 1503
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).parent.parent))

import slomodel
from slomodel.bounds import ObjectivePart, effort_of
from slomodel.bounds.centre import hessian_at_centre, third_at_centre
from slomodel.bounds.rules import layered_networks, symmetric_powers
from slomodel.bounds.rules.networks import centre_derivatives as networks
from slomodel.bounds.structure.sums_of_squares import power_sum

Norm = Callable[[], float]
RUNS = 3

NETWORK = """
dim N, D, H
data X[N, D], y[N]
var W[H, D], b[H], u[H]
minimize sumsq(tanh(X @ W' + b[None, :]) @ u - y)
"""
DEEP = """
dim N, D, H, K
data X[N, D], y[N]
var W[H, D], b[H], V[K, H], e[K], u[K]
minimize sumsq(tanh(tanh(X @ W' + b[None, :]) @ V' + e[None, :]) @ u - y)
"""
POWERS = """
dim D, R
data Y[D, D, D]
var U[R, D]
minimize sum((Y[i, j, k] - sum(U[r, i]*U[r, j]*U[r, k] for r in R))^2 for i in D, j in D, k in D)
"""


def part_of(text: str, dims: dict[str, int], **data: NDArray[np.float64]) -> ObjectivePart:
    """The objective at a random centre."""
    model = slomodel.compile(text, data=data, dims=dims)
    centre = 0.3 * np.random.default_rng(1).standard_normal(model.n)
    return replace(model._part(centre), effort=effort_of("thorough"))


def of_network(text: str, inputs: int, dims: dict[str, int]) -> dict[str, tuple[Norm, Norm]]:
    """Both norms of a network with 100 samples, by hand and by graphs."""
    rng = np.random.default_rng(0)
    part = part_of(text, dims, X=rng.standard_normal((100, inputs)), y=rng.standard_normal(100))
    prepared = layered_networks._prepared(part)
    assert prepared is not None
    values = prepared.values
    return {
        "H": (
            lambda: networks.network_hessian_norm(values, part.effort),
            lambda: hessian_at_centre(replace(part)),
        ),
        "D3f": (
            lambda: networks.network_third_norm(values, part.effort),
            lambda: third_at_centre(replace(part)),
        ),
    }


def of_powers(size: int, rank: int) -> dict[str, tuple[Norm, Norm]]:
    """‖D³f(c)‖ of a sum of cubes of vectors less a tensor; H(c) is by graphs alone."""
    Y = np.random.default_rng(0).standard_normal((size,) * 3)
    part = part_of(POWERS, {"R": rank}, Y=Y)

    def by_hand() -> float:
        found = power_sum(part)
        centre = found and symmetric_powers._centre(part, found)
        assert centre is not None
        return symmetric_powers._third_norm(centre)

    return {"D3f": (by_hand, lambda: third_at_centre(replace(part)))}


def main() -> None:
    cases = {
        "one layer, n = 16": of_network(NETWORK, 2, {"H": 4}),
        "one layer, n = 56": of_network(NETWORK, 5, {"H": 8}),
        "two layers, n = 44": of_network(DEEP, 4, {"H": 4, "K": 4}),
        "symmetric cubes, n = 12": of_powers(6, 2),
        "symmetric cubes, n = 24": of_powers(8, 3),
    }
    for case, norms in cases.items():
        for name, pair in norms.items():
            seconds, values = [np.inf, np.inf], [np.nan, np.nan]
            for _ in range(RUNS):
                for k, norm in enumerate(pair):
                    start = time.process_time()
                    values[k] = norm()
                    seconds[k] = min(seconds[k], time.process_time() - start)
            print(
                f"{case:24} {name:4} {1e3 * seconds[0]:8.1f} ms {1e3 * seconds[1]:8.1f} ms "
                f"{seconds[1] / seconds[0]:6.1f}   {values[0]:.6g} {values[1]:.6g}",
                flush=True,
            )


if __name__ == "__main__":
    main()
