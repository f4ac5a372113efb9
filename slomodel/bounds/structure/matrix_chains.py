"""Recognition of ‖F_m .. F_1 X - Y‖², a chain of matrix factors, in any way of writing it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from slomodel.bounds.part import ObjectivePart
from slomodel.bounds.structure.sums_of_squares import SumOfSquares, difference, sums_of_squares
from slomodel.ir.expr import Axes, Einsum, Expr, Input
from slomodel.ir.linear import repeats

_MOST_FACTORS = 6
"""Largest number of variable factors: the monomials of f are 3⁶ at most."""


@dataclass(frozen=True, slots=True)
class Chain:
    """weight · ‖F_m .. F_1 X - Y‖² up to a quadratic (`is_all`: up to an affine function).

    The factors from right to left, and the data X and Y (None: 0), each with a flag for
    transposition; an array of one axis is a row, or a column if transposed.
    """

    weight: Expr
    factors: tuple[tuple[Input, bool], ...]
    X: tuple[Expr, bool]
    Y: tuple[Expr, bool] | None
    is_all: bool


def matrix_chain(part: ObjectivePart) -> Chain | None:
    """The single sum of squares that the objective is a multiple of, up to a quadratic."""
    for squares in sums_of_squares(part):
        result = _residual(squares, part.varying)
        if result is not None and _is_once(result):
            return result
    return None


def _is_once(chain: Chain) -> bool:
    own = [one for one, _ in chain.factors]
    return 2 <= len(own) <= _MOST_FACTORS and len(set(own)) == len(own)


def _residual(squares: SumOfSquares, varying: Collection[Expr]) -> Chain | None:
    """The chain of a residual ± (F X - Y), F a product of variables."""
    product, Y = difference(squares.residual, varying)
    factors = matrix_factors(product, True)
    if factors is None:
        return None
    reverse = factors[0][0] not in varying
    if reverse:
        factors = [(one, not turned) for one, turned in factors[::-1]]
    own = tuple((one, turned) for one, turned in factors[-2::-1] if isinstance(one, Input))
    X = factors[-1]
    if X[0] in varying or len(own) < len(factors) - 1 or any(one not in varying for one, _ in own):
        return None
    turned = None if Y is None else (Y, reverse)
    return Chain(squares.weight, own, X, turned, squares.rest < 2)


def matrix_factors(node: Expr, is_row: bool, depth: int = 0) -> list[tuple[Expr, bool]] | None:
    """The factors of a product of matrices from left to right, each with a flag for transposition:
    an array of one axis is a row, or a column if transposed.
    """
    if not isinstance(node, Einsum):
        return [(node, not is_row if node.rank == 1 else False)]
    if len(node.operands) != 2 or depth > 2 * _MOST_FACTORS or repeats(node):
        return None
    shared = set(node.inputs[0]) & set(node.inputs[1])
    if len(shared) != 1 or shared & set(node.output) or len(set(node.output)) < node.rank:
        return None
    if any(len(set(own)) < len(own) or not 1 <= len(own) <= 2 for own in node.inputs):
        return None
    (summed,) = shared
    left, right = _sides(node, is_row)
    parts = []
    for k, place in ((left, 1), (right, 0)):
        own = node.inputs[k]
        part = matrix_factors(node.operands[k], place == 1, depth + 1)
        if part is None:
            return None
        if len(own) == 2 and own[place] != summed:
            part = [(one, not turned) for one, turned in part[::-1]]
        parts.append(part)
    return [*parts[0], *parts[1]]


def _sides(node: Einsum, is_row: bool) -> tuple[int, int]:
    """Which operand is the left factor: in a row the one with one axis, in a column the other."""
    first: Axes = node.inputs[0]
    if node.rank == 2:
        return (0, 1) if node.output[0] in first else (1, 0)
    if is_row:
        return (0, 1) if len(first) == 1 else (1, 0)
    return (0, 1) if len(first) == 2 else (1, 0)
