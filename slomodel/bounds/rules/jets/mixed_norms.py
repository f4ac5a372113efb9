"""Mixed norms of arrays, in which bounds are propagated, and their values for known arrays.

A norm of an array is a word with a letter for each axis: `m` for an axis over which the maximum is
taken, `r` and `c` for the row and column axes of the matrices whose spectral norm is taken. For a
matrix, `rr` is the Frobenius norm (one column), `rc` the spectral norm, `mr` the largest Euclidean
norm of a row, `rm` of a column, `mm` the largest entry; `r` is a vector's length. Exchanging rows
and columns does not change the norm of a word, and axes of length 1 are maxima.
"""

from __future__ import annotations

from math import prod

import numpy as np

from slomodel.bounds.arithmetic.rounding import Array, up_add, up_norm
from slomodel.bounds.norms.spectral_norm import spectral_norm, stack_norm

Norm = str
Sizes = tuple[int, ...]


def canonical(norm: Norm, shape: Sizes) -> Norm:
    """The unique word of this norm for arrays of this shape."""
    letters = ["m" if size == 1 else letter for letter, size in zip(norm, shape, strict=True)]
    first = next((letter for letter in letters if letter != "m"), "r")
    if first == "c":
        letters = [{"r": "c", "c": "r", "m": "m"}[letter] for letter in letters]
    return "".join(letters)


def frobenius(shape: Sizes) -> Norm:
    return canonical("r" * len(shape), shape)


def flattened(norm: Norm) -> Norm:
    """The norm with the matrices' Frobenius norms in place of the spectral ones: not smaller."""
    return norm.replace("c", "r")


def is_entrywise(norm: Norm) -> bool:
    """Whether the norm depends on |entries| only, and increases with each of them."""
    return "c" not in norm


def below(finer: Norm, coarser: Norm) -> bool:
    """Whether ‖u‖ in the first norm is at most that in the second, for every u.

    Fixing indices takes a submatrix, whose spectral norm is not larger; and a spectral norm is at
    most the Frobenius norm of the same entries.
    """
    pairs = [(f, c) for f, c in zip(finer, coarser, strict=True) if f != "m"]
    if any(c == "m" for _, c in pairs):
        return False
    if "c" not in coarser:
        return True
    split = {(f, c) for f, c in pairs}
    return len({f for f, _ in split}) == len(split) == len({c for _, c in split})


def entries(norm: Norm, shape: Sizes) -> int:
    """The number of entries of the matrices of the norm: ‖u‖ <= √entries max|u|."""
    return prod(size for letter, size in zip(norm, shape, strict=True) if letter != "m")


def measure(mid: Array, rad: Array | None, norm: Norm) -> float:
    """Upper bound on the norm of every array within `rad` of `mid`: ‖mid‖ + ‖rad‖.

    An entrywise larger nonnegative array has a larger Frobenius norm, which is the one added.
    """
    if mid.size == 0:
        return 0.0
    value = _measure(np.asarray(mid, dtype=np.float64), norm)
    if rad is None or not np.any(rad):
        return value
    return float(up_add(value, _measure(np.asarray(rad, dtype=np.float64), flattened(norm))))


def _measure(array: Array, norm: Norm) -> float:
    if not np.isfinite(array).all():
        return float(np.inf)
    if "r" not in norm:
        return float(np.max(np.abs(array)))
    axes = {letter: [k for k, own in enumerate(norm) if own == letter] for letter in "mrc"}
    if not axes["c"]:
        return float(np.max(up_norm(array, tuple(axes["r"]))))
    p, m, n = (prod(array.shape[k] for k in axes[letter]) for letter in "mrc")
    stack = array.transpose(*axes["m"], *axes["r"], *axes["c"]).reshape(p, m, n)
    return spectral_norm(stack[0]) if p == 1 else float(np.max(stack_norm(stack)))
