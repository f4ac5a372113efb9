"""Cost of elementwise kernels, so that each is printed for the faster of NumPy and numexpr.

The costs in the functions' records are of NumPy 2.4 and numexpr 2.14 (no VML) on one thread of an
x86-64 machine with AVX-512; `benchmarks/kernel_costs.py` measures them again. Where NumPy has no
vector code (older processors) both call the same libm and the choice hardly matters.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from slomodel.errors import MissingRule
from slomodel.ir.expr import Input, Map
from slomodel.ir.function import Cost, ScalarFunction
from slomodel.ir.walk import postorder

NUMPY_CALL = 350.0
# Measured 880: a little less, so that two plain operations are fused for few elements as they are
# for many, and a polynomial model has one text for both.
NUMEXPR_CALL = 690.0

# From this many elements on numexpr wakes its other threads, which takes this long.
THREADS_FROM = 2048
THREADS_WAKE = 20_000.0
# No gain from threads is assumed: for one kernel two threads gave 1.0 to 2.1, depending on the load
# of the machine. Nor is a kernel's single pass over arrays beyond the cache: of nine models of a
# million elements it was quicker in none, as it reads in short turns from many places.

QUICK = 0.3
"""Nanoseconds per element below which computing it takes no longer than reading it from memory."""


def numpy_time(functions: Iterable[ScalarFunction], elements: int) -> float:
    """Nanoseconds of one pass per operation."""
    return sum(NUMPY_CALL + elements * cost_of(function).numpy for function in functions)


def numexpr_time(functions: Iterable[ScalarFunction], elements: int) -> float:
    """Nanoseconds of one kernel for all operations."""
    work = sum(cost_of(function).numexpr for function in functions)
    waking = THREADS_WAKE if elements >= THREADS_FROM else 0.0
    return NUMEXPR_CALL + waking + elements * work


def is_quick(function: ScalarFunction) -> bool:
    """Whether computing an element takes no longer than reading it from memory."""
    return cost_of(function).numpy <= QUICK


@cache
def cost_of(function: ScalarFunction) -> Cost:
    """A function's own cost; without one, the sum over the operations of its stable form."""
    if function.cost is not None:
        return function.cost
    if function.stable is None:
        raise MissingRule(f"the function {function} has neither a cost nor a form to take it from")
    operands = [
        Input(f"x{k}", "variable", (), "bool" if kind == "bool" else "real")
        for k, kind in enumerate(function.operand_types or ("real",) * function.arity)
    ]
    parts = [n for n in postorder(function.stable(*operands)) if isinstance(n, Map)]
    found = [cost_of(node.function) for node in parts]
    return Cost(sum(one.numpy for one in found), sum(one.numexpr for one in found))
