"""Blocks of plain steps by the compiled loops, from and into the state of a run in Python."""

from __future__ import annotations

import ctypes
from time import perf_counter

from slomodel.solve.compiled.boxes import BoxArrays
from slomodel.solve.compiled.library import library
from slomodel.solve.compiled.loop import (
    COPY,
    MOST_ROTATED,
    HessianArrays,
    LoopState,
    address,
    allocate,
)
from slomodel.solve.norms import Vector
from slomodel.solve.objective import Evaluator
from slomodel.solve.subroutine import Block, BlockLimits, Iterate

# Steps and seconds of a block, so that limits of time, interrupts and displays are observed.
MOST_STEPS, SECONDS = 200, 0.02
# An evaluation of more operations takes longer than the Python of a step, which for a box is that
# of a minimisation.
MOST_OPERATIONS, MOST_OPERATIONS_IN_BOX = 1e6, 1e7
# Most steps in Python after a block in which no step was plain; there are 1, 1, 2, 4, … of them.
LONGEST_WAIT = 16


class Pace:
    """Which steps a compiled loop is tried for: not the next one after a step that was not plain.

    Where none has been plain since the last step in Python, more steps are taken there.
    """

    def __init__(self) -> None:
        self._wait = self._plain = self._in_vain = 0

    def is_due(self) -> bool:
        """Whether to try the next step; if not, it is taken in Python."""
        if not self._wait:
            return True
        self._wait -= 1
        self.pass_over()
        return False

    def pass_over(self) -> None:
        """Record that the next step is taken in Python.

        Plain steps before it count as in a longer block, which would have ended there.
        """
        if self._plain:
            self._in_vain = 0
        self._plain = 0

    def record(self, steps: int, was_left: bool) -> None:
        """Record the steps of a block, and whether the one after them was not plain."""
        self._plain += steps
        if was_left:
            self._in_vain = 0 if self._plain else self._in_vain + 1
            self._wait = min(2 ** max(self._in_vain - 2, 0), LONGEST_WAIT)


class CompiledSteps:
    """The compiled loop of one run, over ℝⁿ or a box, with its buffers."""

    def __init__(
        self, evaluate: Evaluator, n: int, memory: int, logarithmic: Vector | None
    ) -> None:
        self.loop = loop = LoopState()
        self._evaluate = evaluate
        self._logarithmic = logarithmic
        loop.n = n
        sizes = {"points": 6 * n, "rows": 5 * MOST_STEPS, "best": 2 * n}
        sizes |= dict.fromkeys(("v", "s", "y", "w"), n) | {"coefficients": memory}
        held = allocate(loop, sizes)
        at, end = 6 * n, 6 * n + 5 * MOST_STEPS
        self._points, self._rows = held[:at].reshape(6, n), held[at:end].reshape(-1, 5)
        self._best, self._v = held[end : end + 2 * n].reshape(2, n), held[end + 2 * n : end + 3 * n]
        loop.logarithmic = 0 if logarithmic is None else address(logarithmic)
        within = evaluate.within
        self._box = None if within is None else BoxArrays(loop, within.limits(), memory)
        self.hessians: HessianArrays | None = None
        if within is None and n <= MOST_ROTATED:
            self.hessians = HessianArrays(loop)

    @property
    def last_step(self) -> Vector:
        """The direction (n,) of the last step."""
        return self._v

    @property
    def best(self) -> Iterate | None:
        """A copy of the best point at the resolution of f, if steps have found another."""
        if self.loop.best_is != COPY:
            return None
        x, g = self._best.copy()
        return Iterate(x, self.loop.best_f, g, self.loop.best_gnorm)

    def has_products(self) -> bool:
        """Whether steps may compute products with the Hessian."""
        return bool(self.loop.product) or self._evaluate.store_product(self.loop)

    def inverse_hessian(self, at: Iterate, longest: float) -> tuple[Vector, Vector | None] | None:
        """The Hessian (n, n) at a point and its inverse, made positive, as `inverse_magnitude`.

        None where its products are not in C, or n too large for rotations.
        """
        loop, hessians = self.loop, self.hessians
        if hessians is None or not self.has_products():
            return None
        self._evaluate.check_time()
        self._evaluate.nhev += len(at.x)
        self._points[0], self._points[1], loop.f = at.x, at.g, at.f
        loop.eps, loop.sign, loop.farthest = self._evaluate.eps, self._evaluate.sign, longest
        lib = library()
        assert lib is not None
        routine = lib.inverse_hessian
        routine.restype = ctypes.c_long
        exists = routine(ctypes.byref(loop))
        return hessians.hessian.copy(), hessians.inverse.copy() if exists else None

    def run(self, name: str, at: Iterate, limits: BlockLimits) -> int:
        """Take plain steps from a point; their number."""
        loop, evaluate, points = self.loop, self._evaluate, self._points
        left = evaluate.deadline - perf_counter()
        lib = library()
        if left <= 0.0 or lib is None:
            loop.was_left = loop.meets_test = loop.confirmed = loop.computed = loop.gave_up = 0
            return 0
        points[0], points[1] = at.x, at.g
        loop.f, loop.gnorm = at.f, at.gnorm
        loop.clock = perf_counter() - evaluate.started
        loop.most_seconds = min(left, SECONDS)
        loop.most_steps = min(limits.most, MOST_STEPS)
        loop.epoch, loop.tolerance = limits.epoch, limits.tolerance
        loop.examined = limits.examined
        limits.pole.store(loop)
        evaluate.store(loop)
        routine = getattr(lib, name)
        routine.restype = ctypes.c_long
        steps = int(routine(ctypes.byref(loop)))
        evaluate.load(loop)
        return steps

    def block(self, steps: int, kind: str) -> Block:
        """The rows of the steps just taken, and the point at their end."""
        loop, (x, g) = self.loop, self._points[:2].copy()
        point = Iterate(x, loop.f, g, loop.gnorm)
        return Block(self._rows[:steps].copy(), point, kind, loop.by_rounding)


def compiled_steps(
    evaluate: Evaluator, n: int, memory: int, logarithmic: Vector | None
) -> CompiledSteps | None:
    """The compiled loop of a run; None without kernels in C, or where they take longer."""
    most = MOST_OPERATIONS if evaluate.within is None else MOST_OPERATIONS_IN_BOX
    if not evaluate.is_compiled or evaluate.operations > most or library() is None:
        return None
    return CompiledSteps(evaluate, n, memory, logarithmic)
