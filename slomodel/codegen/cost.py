"""What elementwise kernels cost, so that each is printed for the quicker of NumPy and numexpr.

Nanoseconds an element in cache, NumPy 2.4 and numexpr 2.14 (no VML) on one thread of an x86-64
machine with AVX-512; `benchmarks/kernel_costs.py` measures them anew. Where NumPy has no vector
code (older processors) both call the same libm and the choice hardly matters.
"""

from __future__ import annotations

from collections.abc import Iterable

from slomodel.ir.function import ScalarFunction

NUMPY_CALL = 350.0
# Measured 880: a little less, so that two plain operations are fused for few elements as they are
# for many, and a polynomial model has one text for both.
NUMEXPR_CALL = 690.0

# From this many elements on numexpr wakes its other threads, which takes this long.
THREADS_FROM = 2048
THREADS_WAKE = 20_000.0
# Beyond this many elements arrays leave the cache: each NumPy pass waits for memory, and the
# threads of numexpr (two are assumed) pay.
LARGE = 400_000
MEMORY_PASS = 0.3
THREADS_GAIN = 1.6

COSTS: dict[str, tuple[float, float]] = {
    "add": (0.25, 0.35),
    "sub": (0.25, 0.35),
    "mul": (0.25, 0.35),
    "neg": (0.18, 0.30),
    "square": (0.18, 0.35),
    "div": (0.35, 0.75),
    "abs": (0.18, 1.7),
    "relu": (0.28, 2.3),
    "maximum": (0.28, 2.3),
    "minimum": (0.28, 2.3),
    "clip": (0.5, 4.6),
    "where": (2.5, 2.5),
    "sqrt": (1.2, 2.4),
    "root": (1.2, 2.4),
    "exp": (0.82, 4.2),
    "log": (0.82, 4.3),
    "log1p": (1.05, 7.5),
    "expm1": (1.2, 7.3),
    "tanh": (1.7, 11.5),
    "sinh": (1.2, 11.5),
    "cosh": (1.2, 11.5),
    "atan": (1.25, 8.5),
    "asinh": (2.0, 12.0),
    "sin": (8.3, 8.6),
    "cos": (8.3, 8.6),
    "tan": (10.0, 10.0),
    "pow": (2.7, 10.1),
}
OTHER = (0.3, 0.6)
"""For comparisons and connectives."""


def numpy_time(functions: Iterable[ScalarFunction], elements: int) -> float:
    """Nanoseconds for one pass an operation."""
    each = [COSTS.get(function.name, OTHER)[0] for function in functions]
    waiting = MEMORY_PASS if elements >= LARGE else 0.0
    return sum(NUMPY_CALL + elements * (cost + waiting) for cost in each)


def numexpr_time(functions: Iterable[ScalarFunction], elements: int) -> float:
    """Nanoseconds for one kernel of all operations."""
    work = elements * sum(COSTS.get(function.name, OTHER)[1] for function in functions)
    if elements < THREADS_FROM:
        return NUMEXPR_CALL + work
    if elements < LARGE:
        return NUMEXPR_CALL + THREADS_WAKE + work
    return NUMEXPR_CALL + THREADS_WAKE + work / THREADS_GAIN
