"""What a lowered node is to a schedule: something computed, a view of another, or a scalar."""

from __future__ import annotations

from enum import Enum

from slomodel.functions import add
from slomodel.ir.expr import (
    Affine,
    Const,
    Einsum,
    Expr,
    Extreme,
    Gather,
    Index,
    Input,
    Iota,
    Map,
    Scan,
    Scatter,
    Triangle,
    affine,
)


class Form(Enum):
    """How a lowered node comes to be."""

    INPUT = "input"
    CONSTANT = "constant"
    COUNT = "count"
    ONES = "ones"
    ELEMENTWISE = "elementwise"
    SUM = "sum"
    PRODUCT = "product"
    AXES = "axes"
    SLICE = "slice"
    TAKE = "take"
    PUT = "put"
    ACCUMULATE = "accumulate"
    RESHAPE = "reshape"
    EXTREME = "extreme"
    SCAN = "scan"
    TRIANGLE = "triangle"


def form_of(node: Expr) -> Form:
    """The form of a lowered node by itself."""
    if isinstance(node, Input):
        return Form.INPUT
    if isinstance(node, Const):
        return Form.CONSTANT
    if isinstance(node, Iota):
        return Form.COUNT
    if isinstance(node, Map):
        return Form.ELEMENTWISE
    if isinstance(node, Einsum):
        return _form_of_einsum(node)
    if isinstance(node, (Extreme, Scan)):
        return Form.EXTREME if isinstance(node, Extreme) else Form.SCAN
    if isinstance(node, Triangle):
        return Form.TRIANGLE
    if isinstance(node, Gather):
        return Form.SLICE if is_slice(node.index) else Form.TAKE
    return Form.PUT if isinstance(node, Scatter) else Form.RESHAPE


def _form_of_einsum(node: Einsum) -> Form:
    if len(node.operands) == 2:
        return Form.PRODUCT
    if not node.operands:
        return Form.ONES
    return Form.AXES if set(node.output) == set(range(len(node.dims))) else Form.SUM


def is_slice(index: tuple[Index, ...]) -> bool:
    """True when each output axis runs along one axis of the operand, and no two along the same."""
    if not all(isinstance(one, Affine) for one in index):
        return False
    runs = [[axis for axis, c in enumerate(one.coefficients) if c] for one in affine(index)]
    axes = [axis for run in runs for axis in run]
    return all(len(run) <= 1 for run in runs) and len(axes) == len(set(axes))


def scattered(node: Expr, single: set[Expr]) -> Scatter | None:
    """The operand of an addition that is a slice filled into zeros: it can be added in place.

    `single` holds the nodes with one use.
    """
    if not isinstance(node, Map) or node.function is not add or not node.rank:
        return None
    whole = tuple(range(node.rank))
    if node.axes != (whole, whole):
        return None
    for operand in reversed(node.operands):
        if isinstance(operand, Scatter) and is_slice(operand.index) and operand in single:
            return operand
    return None
