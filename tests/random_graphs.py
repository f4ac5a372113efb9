"""Random graphs as those of `strategies.graphs`, from a Generator: many, small, of every scale."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from graph_maker import LARGEST, Maker
from strategies import REALS, SMOOTH, STEPS, Example

from slomodel import functions as fn
from slomodel.ir import build
from slomodel.ir.expr import Expr, Scan

T = TypeVar("T")
SCALES = (1e-8, 1e-3, 0.1, 1.0, 1.0, 1.0, 10.0, 1e4)
POLYNOMIAL = [fn.TABLE[name] for name in ("add", "sub", "mul", "neg", "square")]


class Thrower(Maker):
    """A Maker that draws from its own generator."""

    def one_of(self, options: Sequence[T]) -> T:
        return options[int(self.rng.integers(len(options)))]

    def whole(self, least: int, most: int) -> int:
        return int(self.rng.integers(least, most + 1))

    def chance(self) -> bool:
        return bool(self.rng.integers(2))


def scan(maker: Maker) -> None:
    """y[i] = a[i] y[i-1] + x[i], its coefficients data or another node."""
    x = maker.pick(1)
    by_data = fn.tanh not in maker.allowed or maker.chance()
    a: Expr = maker.data(x.shape, maker.numbers(x.shape)) if by_data else fn.tanh(x)
    maker.add(Scan(a, x, maker.whole(0, x.rank - 1)))


def fourth(maker: Maker) -> None:
    """A node times its square."""
    x = maker.pick()
    maker.add(fn.mul(x, fn.square(x)))


KINDS: dict[str, tuple[Sequence[object], bool]] = {
    "smooth": (SMOOTH, False),
    "any": (REALS, True),
    "polynomial": (POLYNOMIAL, False),
}
"""By name the functions to choose from and whether they may be near a kink."""


def throw(rng: np.random.Generator, kind: str, steps: int, largest: int = 3) -> Example:
    """A small graph; dims are 1 to `largest`, the scales of centre and data from 1e-8 to 1e4."""
    allowed, ties = KINDS[kind]
    sizes = {name: int(rng.integers(1, largest + 1)) for name in "nmp"}
    maker = Thrower(_no_draw, sizes, rng, allowed, ties)
    for k in range(maker.whole(1, 3)):
        shape = maker.shape()
        values = np.clip(maker.numbers(shape) * maker.one_of(SCALES), -LARGEST, LARGEST)
        maker.add(maker.input(build.variable(f"x{k}", shape), np.asarray(values)))
    for _ in range(maker.whole(0, 2)):
        shape = maker.shape()
        maker.add(maker.data(shape, maker.numbers(shape)))
    choices: Sequence[Callable[[Maker], None]] = (*STEPS, scan, fourth)
    if kind == "polynomial":
        plain = ("apply_function", "contract", "gather", "scatter", "reshape", "pad", "product")
        choices = (*(step for step in STEPS if step.__name__ in plain), scan, fourth)
    for _ in range(maker.whole(1, steps)):
        maker.one_of(choices)(maker)
    factor = maker.one_of(SCALES) * maker.one_of((1.0, 1e-150, 1e150, 1.0, 1.0, 1.0))
    objective = fn.mul(factor, maker.objective())
    variables = tuple(node for node in maker.inputs if node.role == "variable")
    data = tuple(node for node in maker.inputs if node.role == "data")
    return Example(objective, variables, data, sizes, maker.inputs)


def _no_draw(*given: object) -> object:
    raise AssertionError(f"drawn from Hypothesis: {given}")
