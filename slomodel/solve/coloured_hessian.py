"""Sparse Hessians from few products: unknowns of one colour share a product.

Powell & Toint, On the estimation of sparse Hessian matrices (1979); Gebremedhin, Manne & Pothen,
What color is your Jacobian? Graph coloring for computing derivatives (2005), Section 4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from slomodel.solve.norms import Vector

Sparse: TypeAlias = Any
"""A square matrix of scipy.sparse."""
Indices = NDArray[np.signedinteger[Any]]
"""Of 32 bits where there is one for each entry or unknown, to save memory."""

# A row is that of a hub if it has HUB times the mean number of entries, and at least FULL.
# Hubs are eliminated last, and are left out of the ordering by which fill is estimated.
HUB, FULL = 10.0, 20
# The most elements of a factor (400 MB), and operations to compute it (some seconds).
MOST_FILL, MOST_FLOPS = 5e7, 2e10
# Unknowns whose neighbours are lists of Python at the same time while colours are chosen.
CHUNK = 4096
# Largest bandwidth for which LAPACK's band factorisation takes less time than a general one.
WIDEST = 20


@dataclass(frozen=True, slots=True)
class Band:
    """An order of the unknowns in which all entries (n, n) are within `width` of the diagonal.

    The entries `chosen`, those on and below it, are the elements `at` of LAPACK's array of a band,
    (width + 1, n) in Fortran order.
    """

    order: Indices
    width: int
    chosen: Indices
    at: Indices


@dataclass(frozen=True, slots=True)
class ColouredHessian:
    """A symmetric pattern (n, n) with colours (n,) such that every entry is in some product.

    `products` is the number of colours. The entries are at `rows`, `columns`; those of row i begin
    with number `first[i]`. The product with the sum of the unit vectors of colour c has the entries
    `order[ends[c]]`, …, up to `ends[c + 1]`, as its elements at the same places of `at`. `fill`
    estimates, from above, the entries of a Cholesky factor, and `flops` the multiplications to
    compute it. `band` is that of the matrix, if it is narrow.
    """

    n: int
    colours: Indices
    products: int
    rows: Indices
    columns: Indices
    first: Indices
    order: Indices
    at: Indices
    ends: tuple[int, ...]
    fill: float
    flops: float
    band: Band | None = None

    def entries(self, product: Callable[[Vector, Vector], None]) -> Vector:
        """The entries of the Hessian; `product(v, out)` writes its product with v (n,) into out."""
        result, v, Hv = np.empty(len(self.order)), np.empty(self.n), np.empty(self.n)
        for colour, (first, end) in enumerate(pairwise(self.ends)):
            np.equal(self.colours, colour, out=v)
            product(v, Hv)
            result[self.order[first:end]] = Hv[self.at[first:end]]
        return result

    def matrix(self, entries: Vector) -> Sparse:
        """The matrix (n, n) of some entries, the same for (i, j) and (j, i), in CSC format."""
        from scipy.sparse import csc_array

        return csc_array((entries, self.columns, self.first), shape=(self.n, self.n))


def coloured(
    pattern: Sparse, most: int | None = None, *, factored: bool = False
) -> ColouredHessian | None:
    """The colours of a symmetric Boolean pattern in CSR format; None for more than `most` colours.

    With `factored` None too, before colours are looked for, if a factor would be too large.
    Two unknowns with a common neighbour share a colour only if the colour of the neighbour is
    lower, and adjacent ones never do. Then for an entry between colours c < d the unknown of
    colour c is the only neighbour of that colour of the other.
    """
    n = pattern.shape[0]
    # An unknown has at most one neighbour of each lower colour.
    if most is not None and pattern.nnz - n > 2 * n * (most - 1):
        return None
    factor = _factor(pattern)
    fill, flops, _ = factor
    if factored and (fill > MOST_FILL or flops > MOST_FLOPS):
        return None
    # Bit sets: the colours of the neighbours of each unknown so far.
    near = [0] * n
    colours = [-1] * n
    products = 0
    for v, own in _by_degree(pattern):
        taken = 0
        for w in own:
            colour = colours[w]
            taken |= near[w] if colour < 0 else (near[w] & ((1 << colour) - 1)) | (1 << colour)
        free = (~taken & (taken + 1)).bit_length() - 1
        colours[v] = free
        bit = 1 << free
        for w in own:
            if w != v:
                near[w] |= bit
        products = max(products, free + 1)
        if most is not None and products > most:
            return None
    narrow = np.int16 if products < np.iinfo(np.int16).max else np.int32
    return _of(pattern, np.array(colours, narrow), products, factor)


def _by_degree(pattern: Sparse) -> Iterator[tuple[int, list[int]]]:
    """The unknowns with their neighbours, those with most neighbours first."""
    indptr, indices = pattern.indptr, pattern.indices
    order = np.argsort(-np.diff(indptr), kind="stable")
    for k in range(0, len(order), CHUNK):
        chunk = order[k : k + CHUNK]
        ranges = zip(
            chunk.tolist(), indptr[chunk].tolist(), indptr[chunk + 1].tolist(), strict=True
        )
        for v, first, end in ranges:
            yield v, indices[first:end].tolist()


def _of(
    pattern: Sparse, colours: Indices, products: int, factor: tuple[float, float, Indices | None]
) -> ColouredHessian:
    pattern.sort_indices()
    columns, first = pattern.indices.astype(np.int32), pattern.indptr.astype(np.int32)
    rows = _rows(pattern)
    lower = colours[rows] < colours[columns]
    group = np.where(lower, colours[rows], colours[columns])
    order = np.argsort(group, kind="stable").astype(np.int32)
    at = np.where(lower, columns, rows)[order]
    ends = (0, *np.cumsum(np.bincount(group, minlength=products)).tolist())
    fill, flops, place = factor
    band = None if place is None else _band(place, rows, columns)
    n = len(colours)
    return ColouredHessian(
        *(n, colours, products, rows, columns, first, order, at, ends, fill, flops, band)
    )


def _rows(pattern: Sparse) -> Indices:
    """The row of each entry of a matrix in CSR format."""
    return np.repeat(np.arange(pattern.shape[0], dtype=np.int32), np.diff(pattern.indptr))


def _factor(pattern: Sparse) -> tuple[float, float, Indices | None]:
    """Estimates of fill and flops of a Cholesky factor: those of the profile after reordering.

    And the places (n,) of the unknowns in that order, if there are no hubs.
    """
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    n = pattern.shape[0]
    degrees = np.diff(pattern.indptr)
    kept = degrees <= max(FULL, HUB * float(degrees.mean() if n else 0.0))
    hubs = n - int(kept.sum())
    rest = pattern[kept][:, kept].tocsr() if hubs else pattern
    order = reverse_cuthill_mckee(rest, symmetric_mode=True)
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    first = np.arange(len(order), dtype=np.int32)
    np.minimum.at(first, place[_rows(rest)], place[rest.indices])
    widths = np.arange(len(order)) - first + 1.0 + hubs
    fill, flops = (
        float(widths.sum()) + hubs * hubs,
        float((widths * widths).sum()) + float(hubs) ** 3,
    )
    return fill, flops, None if hubs else place


def _band(place: Indices, rows: Indices, columns: Indices) -> Band | None:
    """The band of entries in the order of these places (n,); None if it is wide."""
    below = place[rows] - place[columns]
    width = int(below.max(initial=0))
    if width > WIDEST:
        return None
    chosen = np.flatnonzero(below >= 0)
    at = below[chosen] + (width + 1) * place[columns[chosen]].astype(np.intp)
    return Band(np.argsort(place), width, chosen, at)
