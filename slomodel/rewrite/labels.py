"""Labels of contractions: where samples are among them, and products over any numbers of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from slomodel.ir import build
from slomodel.ir.dims import Dim
from slomodel.ir.expr import Axes, Expr

Place = tuple[int | None, ...]
"""For each sample label the axis that a node has it on."""


def placed(samples: Sequence[int | None], labels: Axes) -> Place:
    """The axis that each sample label is on, for a node with these labels."""
    return tuple(
        labels.index(label) if label is not None and label in labels else None for label in samples
    )


def product(
    operands: Sequence[Expr], labels: Sequence[Axes], output: Axes, dims: Mapping[int, Dim]
) -> Expr:
    """An einsum whose labels are any numbers, of sizes `dims`."""
    every = dict.fromkeys(label for own in (*labels, output) for label in own)
    number = {label: k for k, label in enumerate(every)}
    inputs = [tuple(number[label] for label in own) for own in labels]
    result = tuple(number[label] for label in output)
    return build.einsum(operands, inputs, result, [dims[label] for label in every])
