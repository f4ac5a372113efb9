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
# A gain from threads is not counted on: for one kernel two threads gave 1.0 to 2.1, by how busy the
# machine was. Nor is a kernel's single pass over arrays beyond the cache: of nine models of a
# million elements it was quicker in none, as it reads in short turns from many places.

QUICK = 0.3
"""Nanoseconds in which an element is computed about as quickly as it is read from memory."""

COSTS: dict[str, tuple[float, float]] = {
    "add": (0.25, 0.35),
    "sub": (0.25, 0.35),
    "mul": (0.25, 0.35),
    "neg": (0.16, 0.17),
    "square": (0.18, 0.35),
    "div": (0.35, 0.67),
    "abs": (0.16, 1.7),
    "sign": (0.6, 1.65),
    "relu": (0.5, 2.3),
    "maximum": (0.28, 2.3),
    "minimum": (0.28, 2.3),
    "clip": (1.0, 5.6),
    # With conditions that the processor can foresee 0.9 and 0.8; both pay for those it cannot.
    "where": (2.5, 2.5),
    "sqrt": (1.2, 2.4),
    "root": (1.2, 2.4),
    "exp": (0.82, 4.2),
    "log": (0.82, 3.4),
    "log1p": (1.05, 6.5),
    "expm1": (1.2, 6.1),
    "tanh": (1.7, 11.0),
    "sinh": (1.2, 10.2),
    "cosh": (1.1, 6.0),
    "atan": (1.25, 8.3),
    "asinh": (2.0, 17.5),
    "sin": (8.1, 8.4),
    "cos": (8.1, 8.3),
    "tan": (1.3, 8.9),
    "pow": (2.3, 10.5),
}
OTHER = (0.2, 0.5)
"""For comparisons and connectives."""


def numpy_time(functions: Iterable[ScalarFunction], elements: int) -> float:
    """Nanoseconds for one pass an operation."""
    each = [COSTS.get(function.name, OTHER)[0] for function in functions]
    return sum(NUMPY_CALL + elements * cost for cost in each)


def numexpr_time(functions: Iterable[ScalarFunction], elements: int) -> float:
    """Nanoseconds for one kernel of all operations."""
    work = sum(COSTS.get(function.name, OTHER)[1] for function in functions)
    waking = THREADS_WAKE if elements >= THREADS_FROM else 0.0
    return NUMEXPR_CALL + waking + elements * work


def is_quick(function: ScalarFunction) -> bool:
    """Whether an element is computed about as quickly as it is read from memory."""
    return COSTS.get(function.name, OTHER)[0] <= QUICK
