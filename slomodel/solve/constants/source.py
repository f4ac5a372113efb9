"""Sources of the Lipschitz constants of an epoch: a number, a function, samples."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.random import Generator

from slomodel.solve.norms import Vector, norm
from slomodel.solve.objective import Evaluator
from slomodel.solve.options import bad_value
from slomodel.solve.subroutine import Constants, ConstantsOver, Iterate

# On a deep linear network (n = 416) this choice, of 10, 30 and 100, needs the fewest gradients and
# values in total. Quadratics and Rosenbrock's function are insensitive to it, since an L1 that is
# too small is doubled.
SAMPLES = 30
# The points are processed in groups, whose two arrays (points, n) take at most this much memory;
# pairs are formed within a group.
GROUP_BYTES = 2**28
# The gradients of points closer than this fraction of the radius differ mainly by rounding error.
CLOSE = 1e-6


BallFunction = Callable[[Vector, float], object]


class LipschitzSource(Protocol):
    """A source of Lipschitz constants.

    `estimated`: some constants may be too small. `gives_second`: L2 is available too.
    """

    @property
    def name(self) -> str: ...

    @property
    def estimated(self) -> bool: ...

    @property
    def gives_second(self) -> bool: ...

    @property
    def for_every_step(self) -> LipschitzSource | None:
        """The source for methods that prove every step: without estimates; None if none is left."""
        ...

    @property
    def worth(self) -> float:
        """The number of gradient steps that take about as long as the constants of a ball."""
        ...

    @property
    def parameters(self) -> dict[str, float | str]: ...

    def start(self, evaluate: Evaluator, seed: int) -> ConstantsOver:
        """The constants as a function of centre and radius, for one run."""
        ...


@dataclass(frozen=True, slots=True)
class GivenNumber:
    """A user-supplied L1 for every ball, the value of `option`."""

    L1: float
    option: str = "lipschitz"

    name = "number"
    estimated = False
    worth = 1.0
    gives_second = False

    @property
    def for_every_step(self) -> GivenNumber:
        return self

    @property
    def parameters(self) -> dict[str, float | str]:
        return {self.option: self.L1}

    def start(self, evaluate: Evaluator, seed: int) -> ConstantsOver:
        constants = Constants(self.L1, None, self.name, self.estimated)
        return lambda centre, radius: constants


@dataclass(frozen=True, slots=True)
class GivenFunction:
    """A user-supplied function (centre (n,), radius) -> L1 or (L1, L2); inf where unknown."""

    function: BallFunction

    name = "function"
    estimated = False
    worth = 1.0
    gives_second = True

    @property
    def for_every_step(self) -> GivenFunction:
        return self

    @property
    def parameters(self) -> dict[str, float | str]:
        return {"lipschitz": self.name}

    def start(self, evaluate: Evaluator, seed: int) -> ConstantsOver:
        def over(centre: Iterate, radius: float) -> Constants:
            L1, L2 = checked(self.function(centre.x.copy(), radius))
            return Constants(L1, L2, self.name, self.estimated)

        return over


@dataclass(frozen=True, slots=True)
class Sampled:
    """`safety` times the largest ‖∇f(x) − ∇f(x')‖/‖x − x'‖ over pairs of `samples` points.

    The points are drawn uniformly from the ball, and its centre is added. In a set, the points are
    projected on it. The result is a lower estimate, never a bound. Points where the gradient
    is not finite are left out. With `second`, L2 is estimated by the largest
    ‖∇f(c + h) − 2∇f(c) + ∇f(c − h)‖/‖h‖² over half as many steps h.
    Paper: sec:numerical.
    """

    samples: int
    safety: float
    second: bool = False

    name = "sampled"
    estimated = True
    worth = 1.0
    gives_second = True
    for_every_step = None

    @property
    def parameters(self) -> dict[str, float | str]:
        return {"lipschitz": self.name, "samples": self.samples, "safety": self.safety}

    def start(self, evaluate: Evaluator, seed: int) -> ConstantsOver:
        return SampledConstants(self, evaluate, np.random.default_rng(seed))

    def second_ratio(
        self, evaluate: Evaluator, generator: Generator, centre: Iterate, radius: float
    ) -> float:
        """The estimate of L2 without the safety factor; 0 if no pair of gradients is finite."""
        n, largest = len(centre.x), 0.0
        g, other = np.empty(n), np.empty(n)
        for _ in range(max(1, self.samples // 2) if n else 0):
            evaluate.check_time()
            h = radius * in_unit_ball(generator, n)
            first = evaluate.gradient(centre.x + h, g)
            if math.isfinite(first + evaluate.gradient(centre.x - h, other)):
                length = norm(h)
                bend = norm(g - 2.0 * centre.g + other)
                if length > CLOSE * radius:
                    largest = max(largest, bend / length / length)
        return largest

    def largest_ratio(
        self, evaluate: Evaluator, generator: Generator, centre: Iterate, radius: float
    ) -> float:
        """The estimate of L1 without safety factor; inf if all gradients but one are not finite."""
        n = len(centre.x)
        if n == 0:
            return 0.0
        group = max(1, min(self.samples, GROUP_BYTES // (16 * n) - 1))
        largest = -math.inf
        for first in range(0, self.samples, group):
            count = min(group, self.samples - first)
            # The last row is the centre: zero offset, zero change of the gradient.
            U, G = np.zeros((count + 1, n)), np.zeros((count + 1, n))
            for u, g in zip(U[:-1], G[:-1], strict=True):
                evaluate.check_time()
                # The projection on a set is not farther from the centre, a point of the set.
                x = evaluate.inside(centre.x + radius * in_unit_ball(generator, n))
                if math.isfinite(evaluate.gradient(x, g)):
                    np.subtract(g, centre.g, out=g)
                    np.divide(np.subtract(x, centre.x, out=u), radius, out=u)
                else:
                    g[:] = u[:] = 0.0
            largest = max(largest, steepest_pair(U, G) / radius)
        return largest if largest >= 0.0 else math.inf


@dataclass(frozen=True, slots=True)
class SampledConstants:
    """The estimates for one run, all drawn from one random generator."""

    source: Sampled
    evaluate: Evaluator
    generator: Generator

    def __call__(self, centre: Iterate, radius: float) -> Constants:
        source = self.source
        ratio = source.largest_ratio(self.evaluate, self.generator, centre, radius)
        L2 = None
        if source.second:
            bend = source.second_ratio(self.evaluate, self.generator, centre, radius)
            L2 = source.safety * bend
        return Constants(source.safety * ratio, L2, source.name, source.estimated)


def in_unit_ball(generator: Generator, n: int) -> Vector:
    """A point uniform in the unit ball of ℝⁿ."""
    point = generator.standard_normal(n)
    point *= generator.random() ** (1.0 / n) / norm(point)
    return point


def steepest_pair(U: Vector, G: Vector) -> float:
    """The largest ‖G_i − G_j‖/‖U_i − U_j‖ over distinct rows of U (m, n); −inf if all are equal.

    The rows of U have length ≤ 1. The pair is selected by Gram matrices, and its ratio is then
    computed directly.
    """
    scale = float(np.abs(G).max())
    H = G / scale if scale > 0.0 else G
    apart = squared_distances(U)
    ratios = np.divide(
        squared_distances(H), apart, out=np.full_like(apart, -1.0), where=apart > CLOSE**2
    )
    i, j = divmod(int(np.argmax(ratios)), len(U))
    if ratios[i, j] < 0.0:
        return -math.inf
    return scale * norm(H[i] - H[j]) / norm(U[i] - U[j])


def squared_distances(A: Vector) -> Vector:
    """‖A_i − A_j‖² (m, m) of the rows of A (m, n), with an error of eps times the largest."""
    products = A @ A.T
    squares = np.diag(products)
    return np.maximum(squares[:, None] + squares[None, :] - 2.0 * products, 0.0)


def checked(answer: object) -> tuple[float, float | None]:
    """L1 or (L1, L2) of a user's function; DomainError for anything else."""
    values = answer if isinstance(answer, tuple) and len(answer) == 2 else (answer,)
    constants = []
    for given in values:
        value = given.item() if isinstance(given, np.ndarray) and given.ndim == 0 else given
        if isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_):
            constants.append(float(value))
    if len(constants) != len(values) or not all(c >= 0.0 for c in constants):
        raise bad_value("lipschitz(centre, radius)", "L1 or (L1, L2), numbers ≥ 0", answer)
    return constants[0], constants[1] if len(constants) == 2 else None
