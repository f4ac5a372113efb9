"""Arrays that are put together from disjoint slices: each element is stored, and none is added."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from math import prod

from slomodel.codegen.loops.access import Numbers
from slomodel.codegen.program import Form, Program, Step, is_slice
from slomodel.ir.dims import concrete
from slomodel.ir.expr import Expr, Scatter, affine

_MOST = 32
"""Slices of an array that are compared with each other."""

Range = tuple[int, int]


def assembled(program: Program, numbers: Numbers) -> dict[Expr, tuple[Expr, ...]]:
    """The nodes that put slices into such arrays, with all those of the same array.

    The last node of an array stands for all of it.
    """
    steps = {step.node: step for step in program.steps}
    continued = {step.in_place for step in program.steps if step.in_place is not None}
    result: dict[Expr, tuple[Expr, ...]] = {}
    for last in program.steps:
        if last.form is Form.ACCUMULATE and last.node not in continued:
            chain = _chain(last, steps)
            if chain and _covers(chain, numbers):
                nodes = tuple(step.node for step in chain)
                result.update(dict.fromkeys(nodes, nodes))
    return result


def _chain(last: Step, steps: Mapping[Expr, Step]) -> list[Step]:
    """The steps that add to an array of zeros, the last one first; empty for another beginning."""
    chain = [last]
    while chain[-1].form is Form.ACCUMULATE and len(chain) <= _MOST:
        start = chain[-1].in_place
        if start is None or start not in steps or steps[start].stage != last.stage:
            return []
        chain.append(steps[start])
    return chain if chain[-1].form is Form.PUT else []


def _covers(chain: list[Step], numbers: Numbers) -> bool:
    """Whether the slices are disjoint boxes whose elements are those of the array."""
    boxes: list[list[Range]] = []
    for step in chain:
        scatter = step.added or step.node
        assert isinstance(scatter, Scatter)
        box = _box(scatter, numbers)
        if box is None:
            return False
        boxes.append(box)
    total = sum(prod(stop - start for start, stop in box) for box in boxes)
    disjoint = all(
        any(a[1] <= b[0] or b[1] <= a[0] for a, b in zip(one, other, strict=True))
        for one, other in combinations(boxes, 2)
    )
    return disjoint and total == prod(concrete(chain[0].node.shape, numbers))


def _box(scatter: Scatter, numbers: Numbers) -> list[Range] | None:
    """The range along each axis to which a scatter copies its operand, element by element."""
    operand, rank = scatter.operands[0], scatter.rank
    if operand.rank != rank or not is_slice(scatter.index):
        return None
    index = affine(scatter.index)
    if any(
        one.coefficients != tuple(int(k == axis) for k in range(rank))
        for axis, one in enumerate(index)
    ):
        return None
    starts = [one.offset.value(numbers) for one in index]
    sizes = concrete(operand.shape, numbers)
    return [(start, start + size) for start, size in zip(starts, sizes, strict=True)]
