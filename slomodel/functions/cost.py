"""Cost of evaluations: time of elementwise kernels, operations of a node, cheapest order of pairs.

Passes compare numbers of operations, since they run before a target is known. Kernels compare
nanoseconds: each is printed for the faster of NumPy and numexpr.

The costs in the functions' records are of NumPy 2.4 and numexpr 2.14 (no VML) on one thread of an
x86-64 machine with AVX-512; `benchmarks/kernel_costs.py` measures them again. Where NumPy has no
vector code (older processors) both call the same libm and the choice hardly matters.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

import opt_einsum

from slomodel.errors import MissingRule
from slomodel.ir.dims import concrete, number_of_elements
from slomodel.ir.expr import Axes, Einsum, Expr, Gather, Input, Map, MatrixOperation, Reshape
from slomodel.ir.function import Cost, ScalarFunction
from slomodel.ir.walk import postorder

Sizes = Mapping[str, int]

NUMPY_CALL = 350.0
# Measured: 880. A lower value lets two cheap operations be fused for few elements as for many, so
# that a polynomial model has the same source for both.
NUMEXPR_CALL = 690.0

# Elements from which numexpr wakes its other threads, and the nanoseconds that this takes.
THREADS_FROM = 2048
THREADS_WAKE = 20_000.0
# A speedup by threads is not assumed: measured for one kernel with two threads, it was 1.0 to 2.1,
# depending on the load of the machine. Nor is it assumed for one pass of a kernel over arrays that
# exceed the cache: it was slower for each of nine models of a million elements, since it alternates
# between short reads of many arrays.

_MANY_TERMS = 9
"""From this many factors on an optimal search for the order takes longer than it saves."""

QUICK = 0.3
"""Nanoseconds up to which computing an element takes no longer than reading it from memory."""


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
    result = [cost_of(node.function) for node in parts]
    return Cost(sum(one.numpy for one in result), sum(one.numexpr for one in result))


def own_work(node: Expr, sizes: Sizes) -> float:
    """Operations of one node, without those of its operands."""
    if isinstance(node, Einsum):
        return work_of_product(node.inputs, node.output, concrete(node.dims, sizes))
    if isinstance(node, (Input, Gather, Reshape)):
        return 0.0
    if isinstance(node, MatrixOperation):
        rows = node.operands[0].shape[-1].size(sizes)
        return float(rows * number_of_elements(node.operands[-1].shape, sizes))
    passes = len(node.operands) if isinstance(node, Map) else 1
    return float(max(passes, 1) * number_of_elements(node.shape, sizes))


def work_of_product(terms: Sequence[Axes], output: Axes, dims: Sequence[int]) -> float:
    """Operations of a contraction computed pair by pair in the cheapest order."""
    if len(terms) < 2:
        summed = len(set(output)) < len(dims)
        return float(math.prod(dims)) if summed else 0.0
    if len(terms) == 2:
        summed = bool({*terms[0], *terms[1]} - set(output))
        return float(math.prod(dims)) * (2.0 if summed else 1.0)
    return cheapest(terms, output, dims)[1]


def cheapest(
    terms: Sequence[Axes], output: Axes, dims: Sequence[int]
) -> tuple[list[tuple[int, ...]], float]:
    """The cheapest order of a product of three or more terms, an opt_einsum path, and its work."""
    present = {label for own in terms for label in own}
    kept = dict.fromkeys(label for label in output if label in present)
    letters = [opt_einsum.get_symbol(label) for label in range(len(dims))]
    sides = ["".join(letters[label] for label in own) for own in (*terms, tuple(kept))]
    shapes = [tuple(dims[label] for label in own) for own in terms]
    method = "optimal" if len(terms) < _MANY_TERMS else "greedy"
    spec = f"{','.join(sides[:-1])}->{sides[-1]}"
    path, info = opt_einsum.contract_path(spec, *shapes, shapes=True, optimize=method)
    return [tuple(step) for step in path], float(info.opt_cost)
