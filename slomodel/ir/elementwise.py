"""Constructors of `Map`: constants folded, exact identities applied, broadcasts absorbed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from slomodel.errors import ShapeError
from slomodel.ir.dims import Shape, show_shape
from slomodel.ir.exact import exact_value, may_fold
from slomodel.ir.expr import Axes, Const, Einsum, Expr, Map
from slomodel.ir.function import ScalarFunction, constructs_calls
from slomodel.ir.linear import broadcast, einsum


def aligned(node: Map) -> list[Expr]:
    """The operands of a `Map`, each broadcast to its shape; scalars stay scalars."""
    return [
        broadcast(operand, axes, node.shape) if operand.rank else operand
        for operand, axes in zip(node.operands, node.axes, strict=True)
    ]


def apply(function: ScalarFunction, *operands: Expr) -> Expr:
    """A function applied elementwise to operands of one shape; scalars are broadcast."""
    shape = max((operand.shape for operand in operands), key=len)
    whole = tuple(range(len(shape)))
    axes = tuple(whole if operand.shape else () for operand in operands)
    return apply_along(function, operands, axes, shape)


@constructs_calls
def _call(function: ScalarFunction, *operands: Expr | float) -> Expr:
    return apply(function, *(Const(o) if isinstance(o, (int, float)) else o for o in operands))


def apply_along(
    function: ScalarFunction, operands: Sequence[Expr], axes: Sequence[Axes], shape: Shape
) -> Expr:
    """A function of operands whose axis k is output axis `axes[operand][k]` (increasing).

    The result is constant along output axes that no operand has. Raises ShapeError if sizes differ.
    """
    _check_map(function, operands, axes, shape)
    unwrapped, placed = _without_broadcasts(operands, axes) if shape else (operands, axes)
    simple = _simplified(function, unwrapped, placed, shape)
    if simple is not None:
        return simple
    if not shape:
        return Map(function, tuple(operands), tuple(axes), shape)
    covered = sorted({axis for own in placed for axis in own})
    inner = tuple(tuple(covered.index(axis) for axis in own) for own in placed)
    node = Map(function, tuple(unwrapped), inner, tuple(shape[axis] for axis in covered))
    if len(covered) == len(shape):
        return node
    return broadcast(node, tuple(covered), shape)


def _check_map(
    function: ScalarFunction, operands: Sequence[Expr], axes: Sequence[Axes], shape: Shape
) -> None:
    if len(operands) != function.arity or len(axes) != function.arity:
        raise ShapeError(f"{function} takes {function.arity} operands, not {len(operands)}")
    is_scalar = not shape and not function.operand_types
    if is_scalar and all(o.dtype == "real" and not o.shape for o in operands) and not any(axes):
        return  # nearly every node of a long text
    wanted = function.operand_types or ("real",) * function.arity
    for operand, own, dtype in zip(operands, axes, wanted, strict=True):
        if operand.dtype != dtype:
            raise ShapeError(f"{function} needs a {dtype} operand, not {operand.dtype}")
        if not own and not operand.shape:
            continue
        sizes = tuple(shape[axis] for axis in own) if max(own, default=-1) < len(shape) else None
        if sizes != operand.shape or list(own) != sorted(set(own)):
            result = f"{show_shape(operand.shape)} along axes {own} of {show_shape(shape)}"
            raise ShapeError(f"an operand of {function} does not fit: {result}")


def _without_broadcasts(
    operands: Sequence[Expr], axes: Sequence[Axes]
) -> tuple[list[Expr], list[Axes]]:
    unwrapped: list[Expr] = []
    placed: list[Axes] = []
    for operand, own in zip(operands, axes, strict=True):
        narrow, kept = _narrowed(operand) if isinstance(operand, Einsum) else (operand, None)
        unwrapped.append(narrow)
        placed.append(own if kept is None else tuple(own[axis] for axis in kept))
    return unwrapped, placed


def _narrowed(node: Einsum) -> tuple[Expr, Axes]:
    """The node without the axes along which it is constant, and the remaining axes."""
    present = {label for own in node.inputs for label in own}
    repeated = {label for label in node.output if node.output.count(label) > 1}
    kept = tuple(k for k, label in enumerate(node.output) if label in present | repeated)
    if len(kept) == node.rank:
        return node, kept
    output = [node.output[axis] for axis in kept]
    dropped = set(node.output) - set(output)
    number = {k: new for new, k in enumerate(k for k in range(len(node.dims)) if k not in dropped)}
    inputs = [tuple(number[label] for label in own) for own in node.inputs]
    dims = [node.dims[label] for label in number]
    return einsum(node.operands, inputs, tuple(number[label] for label in output), dims), kept


def _folded(function: ScalarFunction, numbers: Sequence[Const]) -> Const | None:
    """The value of a function of constants, with the exact number as it was written.

    None where it remains a node because its double would be rounded (`without_rounding`).
    """
    with np.errstate(all="ignore"):
        result = function.numpy(*(np.asarray(number.value) for number in numbers))
    if function.result == "bool":
        return Const(bool(result))
    value = float(result)
    if not may_fold(function, numbers, value):
        return None
    return Const(value, exact_value(function, numbers, value))


def _simplified(
    function: ScalarFunction, operands: Sequence[Expr], axes: Sequence[Axes], shape: Shape
) -> Expr | None:
    numbers = [operand for operand in operands if isinstance(operand, Const)]
    if len(numbers) == len(operands) and operands:
        folded = _folded(function, numbers)
        if folded is not None:
            return broadcast(folded, (), shape)
    if function.simplify is None:
        return None
    simple = function.simplify(*operands)
    if simple is None:
        return None
    places = {own for operand, own in zip(operands, axes, strict=True) if simple is operand}
    if len(places) > 1:
        return None  # the same node along two sets of axes: it is unknown which of them remains
    if places:
        return broadcast(simple, places.pop(), shape)
    # A simplification that builds a new node reads one operand and has its shape.
    widest = max(axes, key=len)
    return broadcast(simple, widest if simple.shape else (), shape)
