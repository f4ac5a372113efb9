"""Values, Hessians and least curvatures about a point, by compiled code."""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass

import numpy as np

from slomodel.solve.compiled.library import library
from slomodel.solve.compiled.loop import LoopState, address, allocate
from slomodel.solve.compiled.steps import MOST_OPERATIONS
from slomodel.solve.norms import Vector
from slomodel.solve.objective import Evaluator

MOST_COLUMNS = 300
"""Largest n for which a Hessian is computed in one call, which no limit of time interrupts."""

_NOTHING = np.empty(0)


def hessian_at(evaluate: Evaluator, x: Vector) -> Vector | None:
    """The products (n, n) of the Hessian at x (n,) with unit vectors; None if not compiled."""
    n = len(x)
    loop, lib = LoopState(), _library_for(evaluate)
    if n > MOST_COLUMNS or lib is None or not evaluate.store_product(loop):
        return None
    columns = np.empty((n, n))
    held = allocate(loop, {"points": n, "v": n})
    held[:n] = x
    loop.n, loop.hessian = n, address(columns) if n else 0
    lib.hessian_columns(ctypes.byref(loop))
    evaluate.nhev += n
    return columns


@dataclass(frozen=True, slots=True)
class LeastInBox:
    """A Rayleigh quotient of the Hessian on a face of a box, its vector (n,) and its residual.

    `largest` is an estimate of the norm of the Hessian there, `steps` the number of products.
    """

    value: float
    vector: Vector
    residual: float
    largest: float
    steps: int


def least_in_box(
    evaluate: Evaluator, x: Vector, g: Vector, start: Vector, close: float, noise: float
) -> LeastInBox | None:
    """The estimate after two products at most, on the face of x (n,) that a gradient g (n,) has.

    It is that of Lanczos' method from the part of `start` (n,) on the face, 0 without one: then
    there are no steps. It ends where a negative value has converged, `close` and `noise` as for
    `least_eigenvalue`. None without compiled code.
    """
    loop, lib, n = LoopState(), _library_for(evaluate), len(x)
    if evaluate.within is None or not evaluate.within.is_box or lib is None:
        return None
    if evaluate.operations > MOST_OPERATIONS or not evaluate.store_product(loop):
        return None
    held = allocate(loop, dict.fromkeys(("points", "y", "s", "r", "d", "v", "w"), n))
    x_held, g_held, s_held = held[: 3 * n].reshape(3, n)
    x_held[:], g_held[:], s_held[:] = x, g, start
    low, high = (np.ascontiguousarray(end) for end in evaluate.within.limits())
    loop.low, loop.high = address(low), address(high)
    loop.n, loop.alpha, loop.eps = n, close, noise
    routine = lib.least_on_face
    routine.restype = ctypes.c_long
    steps = int(routine(ctypes.byref(loop)))
    evaluate.nhev += max(steps, -steps)
    if steps < 0:
        return LeastInBox(math.nan, _NOTHING, 0.0, 0.0, -steps)
    return LeastInBox(loop.f, held[5 * n : 6 * n].copy(), loop.gnorm, loop.reach, steps)


def _library_for(evaluate: Evaluator) -> ctypes.CDLL | None:
    return library() if evaluate.is_compiled else None


def first_lower(
    evaluate: Evaluator, x: Vector, steps: Vector, limits: Vector, *, bends: bool
) -> int:
    """The first of the steps (k, n) from x (n,) at whose end f may be below a limit (k,).

    With `bends` the curvature along the step has to be negative there. Evaluations for those before
    it are counted. It is k if there is none, and 0 if compiled code cannot find it.
    """
    count, n = steps.shape
    loop, lib = LoopState(), _library_for(evaluate)
    if lib is None or evaluate.operations > MOST_OPERATIONS or not evaluate.store_product(loop):
        return 0
    evaluate.store(loop)
    if loop.nfev + count > loop.max_nfev:
        return 0
    held = allocate(loop, {"points": 2 * n, "ways": count * n, "limits": count, "v": n, "y": n})
    held[:n], held[2 * n : (2 + count) * n] = x, steps.ravel()
    held[(2 + count) * n : (2 + count) * n + count] = limits
    loop.n, loop.ways_count, loop.bends = n, count, bends
    routine = lib.first_lower
    routine.restype = ctypes.c_long
    first = int(routine(ctypes.byref(loop)))
    evaluate.load(loop)
    return first
