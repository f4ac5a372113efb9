"""Sums of squares of a product of matrices: bounds of the parts by cyclic products.

Recognised as a chain of factors however it is written; `chain_norms` has what bounds its parts:
the residual counts by how it lines up, and not by its length.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from slomodel.bounds.forms.near import Near
from slomodel.bounds.intervals.enclose import boxed, enclose
from slomodel.bounds.intervals.interval import Interval, point
from slomodel.bounds.intervals.settled import settled
from slomodel.bounds.series.chain_gaps import gaps_of
from slomodel.bounds.series.chain_norms import Monomials, parts
from slomodel.bounds.series.gram_form import as_written
from slomodel.bounds.series.symmetric_sums import SumOfSquares, difference, sums_of_squares
from slomodel.bounds.setting import Setting
from slomodel.ir.expr import Axes, Einsum, Expr, Input
from slomodel.ir.labels import repeats
from slomodel.ir.walk import dependents, postorder

_LEAST, _MOST = 1e-30, 1e30
"""Norms of which ten may be multiplied or divided without any that over- or underflows."""
_MOST_FACTORS = 6


@dataclass(frozen=True, slots=True)
class Chain:
    """weight · ‖F_m .. F_1 X - Y‖² up to a quadratic (`is_all`: up to an affine function).

    The factors from right to left, and the data X and Y (None: 0), each with whether it is turned;
    an array of one axis is a row, or a column where it is turned.
    """

    weight: Expr
    factors: tuple[tuple[Input, bool], ...]
    X: tuple[Expr, bool]
    Y: tuple[Expr, bool] | None
    is_all: bool


def chain_parts(setting: Setting, blocks: Sequence[str]) -> Monomials | None:
    """Bounds of the parts of f of degree >= 2 by exponents in the blocks' lengths, in order.

    Those of degree 2 are inf where the objective has other ones. None where it is no such chain.
    """
    setting = as_written(setting)
    chain = _chain(setting)
    if chain is None:
        return None
    data = [chain.X, *([] if chain.Y is None else [chain.Y])]
    found = enclose([chain.weight, *(one for one, _ in data)], boxed(setting.values), setting.sizes)
    weight = float(found[chain.weight].magnitude)
    X, *others = (_matrix(found[one], turned) for one, turned in data)
    W = [_matrix(point(setting.values[one]), turned) for one, turned in chain.factors]
    gaps = gaps_of(W, X, others[0] if others else None)
    if not all(norm == 0.0 or _LEAST <= norm <= _MOST for norm in gaps.norms.values()):
        return None
    names = [blocks.index(one.name) for one, _ in chain.factors]
    result: Monomials = {}
    for layers, value in parts(gaps).items():
        key = [0] * len(blocks)
        for block, power in zip(names, layers, strict=True):
            key[block] = power
        whole = sum(layers) > 2 or chain.is_all
        result[tuple(key)] = float(settled(np.asarray(value * weight))) if whole else np.inf
    return result


def _matrix(a: Interval, turned: bool) -> Near:
    row = Near.of(a.each(lambda array: array[np.newaxis]) if len(a.shape) == 1 else a)
    return row.turned() if turned else row


def _chain(setting: Setting) -> Chain | None:
    """The one sum of squares of which the objective is a multiple, up to a quadratic."""
    moving = dependents(postorder(setting.objective), set(setting.variables).__contains__)
    for squares in sums_of_squares(setting):
        found = _residual(squares, moving)
        if found is not None and _is_once(found):
            return found
    return None


def _is_once(chain: Chain) -> bool:
    own = [one for one, _ in chain.factors]
    return 2 <= len(own) <= _MOST_FACTORS and len(set(own)) == len(own)


def _residual(squares: SumOfSquares, moving: Collection[Expr]) -> Chain | None:
    """± (F X - Y), F a product of variables."""
    product, Y = difference(squares.residual, moving)
    factors = matrix_factors(product, True)
    if factors is None:
        return None
    reverse = factors[0][0] not in moving
    if reverse:
        factors = [(one, not turned) for one, turned in factors[::-1]]
    own = tuple((one, turned) for one, turned in factors[-2::-1] if isinstance(one, Input))
    X = factors[-1]
    if X[0] in moving or len(own) < len(factors) - 1 or any(one not in moving for one, _ in own):
        return None
    turned = None if Y is None else (Y, reverse)
    return Chain(squares.weight, own, X, turned, squares.rest < 2)


def matrix_factors(node: Expr, is_row: bool, depth: int = 0) -> list[tuple[Expr, bool]] | None:
    """A product of matrices from left to right, each with whether it is turned: an array of one
    axis is a row, or a column where it is turned.
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
    """Which operand is the left factor: of an array of one axis, the one that lacks it in a row."""
    first: Axes = node.inputs[0]
    if node.rank == 2:
        return (0, 1) if node.output[0] in first else (1, 0)
    if is_row:
        return (0, 1) if len(first) == 1 else (1, 0)
    return (0, 1) if len(first) == 2 else (1, 0)
