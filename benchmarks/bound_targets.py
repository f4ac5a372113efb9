"""Targets for the ratio of proved bounds to the constants, by class of objective and radius."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.fresh_instances import (
    Draw,
    factorizations,
    linear_networks,
    logistic,
    networks,
    phases,
    rosenbrocks,
    small,
    symmetric_tensors,
)

RADII = (0.01, 0.1, 0.5, 1.0)
Bars = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Target:
    """Targets by radius of `RADII` for the worst instance and centre; `gated` ones must be met."""

    name: str
    draw: Draw
    L1: Bars
    L2: Bars
    gated: bool = True


def _same(bar: float) -> Bars:
    return (bar, bar, bar, bar)


_SMALL = (((4, 6, 1), 60), ((5, 6, 1), 80), ((3, 8, 1), 50), ((6, 6, 1), 90), ((4, 8, 1), 70))
_LARGE = (
    ((10, 20, 1), 500),
    ((8, 25, 1), 400),
    ((12, 15, 1), 300),
    ((14, 18, 1), 600),
    ((9, 24, 1), 350),
)
_CODERS = (((8, 3, 8), 40), ((7, 4, 7), 50), ((6, 4, 6), 40), ((9, 3, 9), 30), ((10, 2, 10), 45))
_DEEP = (
    ((5, 8, 4, 1), 200),
    ((6, 7, 4, 1), 150),
    ((4, 9, 5, 1), 120),
    ((5, 7, 6, 1), 180),
    ((7, 6, 5, 1), 200),
)

TARGETS = (
    Target(
        "softplus, sigmoid net n<=60",
        networks(("softplus", "sigmoid"), _SMALL),
        (1.02, 1.10, 1.8, 2.8),
        (1.3, 1.6, 3.1, 4.0),
    ),
    Target(
        "softplus, sigmoid net n<=300",
        networks(("softplus", "sigmoid"), _LARGE),
        (1.02, 1.10, 1.7, 2.2),
        (2.8, 3.0, 3.7, 4.6),
    ),
    Target(
        "tanh net n<=60",
        networks(("tanh",), (((6, 7, 1), 100), *_SMALL[1:])),
        (1.03, 1.6, 4.8, 6.8),
        (1.8, 5.2, 11.0, 11.0),
    ),
    Target(
        "tanh autoencoder n<=60",
        networks(("tanh",), _CODERS, coder=True),
        (1.10, 3.8, 7.0, 5.5),
        (2.0, 11.0, 13.5, 18.0),
    ),
    Target(
        "tanh net, 2 hidden layers",
        networks(("tanh",), _DEEP),
        (1.05, 3.7, 21.0, 33.0),
        (3.2, 27.0, 110.0, 135.0),
        gated=False,
    ),
    Target(
        "deep linear, U centres",
        linear_networks(False, "U"),
        (1.01, 1.03, 1.06, 1.10),
        (1.06, 1.06, 1.10, 1.15),
    ),
    Target(
        "deep linear, Gaussian",
        linear_networks(False, "N"),
        (1.05, 1.4, 2.1, 2.1),
        _same(2.0),
    ),
    Target(
        "linear autoencoder, U[0,.1]",
        linear_networks(True, "U[0,.1]"),
        (1.03, 1.3, 2.9, 2.3),
        (1.8, 2.2, 2.4, 1.7),
    ),
    Target(
        "linear autoencoder, U[0,1]",
        linear_networks(True, "U[0,1]"),
        (1.01, 1.02, 1.02, 1.03),
        _same(1.05),
    ),
    Target(
        "linear autoencoder, Gaussian",
        linear_networks(True, "N"),
        (1.03, 1.2, 1.6, 1.8),
        (1.6, 1.7, 1.8, 1.9),
    ),
    Target("n <= 4 smooth", small, (1.01, 1.05, 1.05, 1.05), _same(1.06)),
    Target("rosenbrock", rosenbrocks, (1.02, 1.10, 1.35, 1.35), (1.2, 1.25, 1.25, 1.15)),
    Target(
        "symmetric tensors",
        symmetric_tensors,
        (1.07, 1.20, 1.25, 1.25),
        (1.1, 1.35, 1.45, 1.45),
    ),
    Target("logistic", logistic, (1.01, 1.12, 1.66, 1.66), (1.6, 1.9, 3.4, 3.4)),
    Target("phase retrieval", phases, (1.01, 1.12, 1.66, 1.66), (1.6, 1.9, 3.4, 3.4)),
    Target("factorization", factorizations, (1.005, 1.01, 1.06, 1.06), _same(1.12)),
)
