"""Norms of a product of two arrays summed over labels: one inequality for all cases.

Let w = Σ u v, the labels of w split by its norm into maxima P, rows A and columns B. For fixed P, w
is the matrix of A against B. Reading x over A, first u then v act on it:

    ‖w‖ <= ‖u‖ ‖v‖,  u: rows its own labels in A, columns its own labels in B, summed labels and
                        shared labels in B, maxima P and shared labels in A;
                     v: rows its own labels in A, summed labels and shared labels in A, columns
                        its own labels in B, maxima P and shared labels in B.

Proof. u ⊗ 1 maps x to an array over (u's own B, v's own A, summed, shared): it is block diagonal in
the shared labels in A, which are preserved, so its norm is the largest norm of a block; v ⊗ 1 maps
that to an array over B, block diagonal in the shared labels in B. The rule with v acting first is
of the same kind. For matrices these are ‖UV‖_F <= ‖U‖₂‖V‖_F, the longest row of UV at most that of
U times ‖V‖₂, and so on; ‖U∘V‖₂ <= the longest row of U times the longest column of V.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from slomodel.bounds.arithmetic.rounding import up_mul, up_sqrt
from slomodel.bounds.rules.jets.mixed_norms import Norm, below, canonical
from slomodel.ir.expr import Axes

Sides = dict[int, str]


@dataclass(frozen=True, slots=True)
class Options:
    """‖w‖ <= factor · Π_k ‖operand k‖ in the norms of each option; the least of them is used."""

    factor: float
    norms: tuple[tuple[Norm, ...], ...]


def product_options(
    inputs: Sequence[Axes], output: Axes, norm: Norm, size: Mapping[int, int]
) -> Options:
    """Options that bound a sum of products of at most two operands (labels as in `Einsum`).

    A label that only one operand has and the result lacks is summed against a vector of ones; one
    that no operand has is a vector of ones or a factor; one that occurs twice in the result makes a
    diagonal.
    """
    sides = output_sides(output, norm)
    present = {label for own in inputs for label in own}
    factor = 1.0
    for label, side in sides.items():
        if label not in present and side != "m":
            factor = float(up_mul(factor, up_sqrt(float(size[label]))))
    for label in size:
        if label not in present and label not in sides:
            factor = float(up_mul(factor, float(size[label])))
    alone = [label for label in sorted(present - set(sides)) if _uses(inputs, label) == 1]
    for label in alone:
        factor = float(up_mul(factor, up_sqrt(float(size[label]))))
    result = [_option(inputs, sides, order, size) for order in ("cr", "rc")]
    return Options(factor, undominated(result))


def output_sides(output: Axes, norm: Norm) -> Sides:
    """The side of each label; a diagonal of rows with columns consists of blocks: the maximum."""
    letters: dict[int, set[str]] = {}
    for label, letter in zip(output, norm, strict=True):
        letters.setdefault(label, set()).add(letter)
    return {label: own.pop() if len(own) == 1 else "m" for label, own in letters.items()}


def _uses(inputs: Sequence[Axes], label: int) -> int:
    return sum(label in own for own in inputs)


def _option(
    inputs: Sequence[Axes], sides: Sides, order: str, size: Mapping[int, int]
) -> tuple[Norm, ...]:
    """The operands' norms; `order` has the sides of summed labels, `c` for the first to act."""
    result = []
    for k, own in enumerate(inputs):
        acts_on = "r" if order[k] == "c" else "c"
        letters = []
        for label in own:
            side = sides.get(label, order[k])
            shared = label in sides and _uses(inputs, label) == 2
            letters.append("m" if shared and side == acts_on else side)
        result.append(canonical("".join(letters), tuple(size[label] for label in own)))
    return tuple(result)


def undominated(choices: Sequence[tuple[Norm, ...]]) -> tuple[tuple[Norm, ...], ...]:
    """The options without those that another one never exceeds."""
    kept: list[tuple[Norm, ...]] = []
    for fromkey in dict.fromkeys(choices):
        if any(all(map(below, other, fromkey)) for other in kept):
            continue
        kept = [other for other in kept if not all(map(below, fromkey, other))]
        kept.append(fromkey)
    return tuple(kept)
