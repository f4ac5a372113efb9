"""A scan of values and curvatures at the ends of steps from a point, by compiled code."""

from __future__ import annotations

import ctypes

from slomodel.solve.compiled.library import library
from slomodel.solve.compiled.loop import LoopState, allocate
from slomodel.solve.compiled.steps import MOST_OPERATIONS
from slomodel.solve.norms import Vector
from slomodel.solve.objective import Evaluator


def first_lower(
    evaluate: Evaluator, x: Vector, steps: Vector, limits: Vector, *, bends: bool
) -> int:
    """The first of the steps (k, n) from x (n,) at whose end f may be below a limit (k,).

    With `bends` the curvature along the step has to be negative there. Evaluations for those before
    it are counted. It is k if there is none, and 0 if compiled code cannot find it.
    """
    count, n = steps.shape
    loop, lib = LoopState(), library()
    suits = evaluate.is_compiled and evaluate.operations <= MOST_OPERATIONS and lib is not None
    if not (suits and evaluate.store_product(loop)):
        return 0
    evaluate.store(loop)
    if loop.nfev + count > loop.max_nfev:
        return 0
    held = allocate(loop, {"points": 2 * n, "ways": count * n, "limits": count, "v": n, "y": n})
    held[:n], held[2 * n : (2 + count) * n] = x, steps.ravel()
    held[(2 + count) * n : (2 + count) * n + count] = limits
    loop.n, loop.ways_count, loop.bends = n, count, bends
    assert lib is not None
    routine = lib.first_lower
    routine.restype = ctypes.c_long
    first = int(routine(ctypes.byref(loop)))
    evaluate.load(loop)
    return first
