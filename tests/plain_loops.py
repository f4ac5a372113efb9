"""The meaning of the node kinds by plain loops, independent of NumPy's own einsum and indexing."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]


def einsum_by_loops(
    arrays: Sequence[Reals],
    inputs: Sequence[tuple[int, ...]],
    output: tuple[int, ...],
    sizes: Sequence[int],
) -> Reals:
    """Every assignment of the labels adds its product to one element of the result."""
    result = np.zeros([sizes[label] for label in output])
    for at in product(*map(range, sizes)):
        factors = [
            float(array[tuple(at[label] for label in own)])
            for array, own in zip(arrays, inputs, strict=True)
        ]
        result[tuple(at[label] for label in output)] += prod(factors)
    return result


def position(index: Sequence[tuple[int, tuple[int, ...]]], at: tuple[int, ...]) -> tuple[int, ...]:
    """Where `index`, an (offset, coefficients) for each axis, sends the output position."""
    return tuple(
        offset + sum(c * k for c, k in zip(coefficients, at, strict=True))
        for offset, coefficients in index
    )
