"""Norms of arrays through products, sums and moves: sound, and tight somewhere.

Soundness is checked on random arrays with norms computed by NumPy from the definition.
"""

from itertools import product as every

import numpy as np
import pytest

from slomodel.bounds.rules.jets.indexing_norms import gathered, reshaped, scattered
from slomodel.bounds.rules.jets.mixed_norms import (
    below,
    canonical,
    entries,
    flattened,
    frobenius,
    measure,
)
from slomodel.bounds.rules.jets.product_norms import product_options
from slomodel.ir.dims import Dim
from slomodel.ir.expr import Affine

LETTERS = "mrc"


def words(shape):
    return sorted({canonical("".join(w), shape) for w in every(LETTERS, repeat=len(shape))})


def by_definition(array, norm):
    """The largest spectral norm over the indices of the maxima."""
    maxima = [k for k, letter in enumerate(norm) if letter == "m"]
    best = 0.0
    for where in np.ndindex(*(array.shape[k] for k in maxima)):
        pick = [slice(None)] * array.ndim
        for k, index in zip(maxima, where, strict=True):
            pick[k] = index
        part = array[tuple(pick)]
        left = [letter for letter in norm if letter != "m"]
        rows = [k for k, letter in enumerate(left) if letter == "r"]
        columns = [k for k, letter in enumerate(left) if letter == "c"]
        height = int(np.prod([part.shape[k] for k in rows]))
        matrix = np.transpose(part, rows + columns).reshape(height, -1)
        best = max(best, float(np.linalg.norm(matrix, 2)))
    return best


def total(found, arrays):
    return found.factor * min(
        float(np.prod([by_definition(a, n) for a, n in zip(arrays, one, strict=True)]))
        for one in found.norms
    )


@pytest.mark.parametrize("shape", [(3,), (3, 4), (1, 4), (2, 3, 4), (2, 3, 2, 2)])
def test_measure_is_the_norm_from_above(shape):
    array = np.random.default_rng(0).standard_normal(shape)
    for norm in words(shape):
        exact = by_definition(array, norm)
        assert exact * (1 - 1e-13) <= measure(array, None, norm) <= exact * (1 + 1e-11)
        wide = measure(array, np.full(shape, 0.1), norm)
        for sign in (np.sign(array), -np.sign(array), np.ones(shape)):
            assert by_definition(array + 0.1 * sign, norm) <= wide * (1 + 1e-14)
        assert exact <= np.sqrt(entries(norm, shape)) * np.max(np.abs(array)) * (1 + 1e-14)
        assert exact <= by_definition(array, flattened(norm)) * (1 + 1e-14)
    assert measure(array, None, frobenius(shape)) >= np.linalg.norm(array)


def test_order_of_norms_holds_for_random_arrays():
    rng = np.random.default_rng(1)
    for shape in ((3, 4), (2, 3, 2)):
        arrays = [rng.standard_normal(shape) for _ in range(6)]
        arrays.append(np.ones(shape))
        for finer, coarser in every(words(shape), repeat=2):
            if below(finer, coarser):
                for a in arrays:
                    assert by_definition(a, finer) <= by_definition(a, coarser) * (1 + 1e-13)
    assert below("rc", "rr")
    assert not below("rr", "rc")
    assert below("mr", "rc")
    assert not below("rcc", "rrc")


PRODUCTS = {
    "matrix product": ("ij,jk->ik", (3, 4, 2)),
    "entrywise": ("ij,ij->ij", (3, 4, 1)),
    "broadcast factor": ("i,ij->ij", (3, 4, 1)),
    "inner": ("ij,ij->", (3, 4, 1)),
    "outer": ("i,j->ij", (3, 4, 1)),
    "batched": ("ijk,ikl->ijl", (2, 3, 2, 3)),
    "rows with a shared label": ("ij,ik->ijk", (2, 3, 2)),
    "two sums": ("ijk,kjl->il", (3, 2, 2, 2)),
    "sum in one": ("ij,ik->ik", (3, 4, 2)),
    "shared and summed": ("ijk,ijl->ikl", (2, 2, 3, 2)),
}


def labels(text):
    inputs, output = text.split("->")
    number = {letter: k for k, letter in enumerate("ijkl")}
    return (
        [tuple(number[c] for c in own) for own in inputs.split(",")],
        tuple(number[c] for c in output),
    )


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_are_bounded_in_every_norm(name):
    text, sizes = PRODUCTS[name]
    inputs, output = labels(text)
    size = {k: sizes[k] for own in (*inputs, output) for k in own}
    rng = np.random.default_rng(2)
    for _ in range(6):
        arrays = [rng.standard_normal([size[k] for k in own]) for own in inputs]
        for a in arrays:
            a[rng.random(a.shape) < 0.4] = 0.0
        result = np.einsum(text, *arrays)
        for norm in words(result.shape):
            bound = total(product_options(inputs, output, norm, size), arrays)
            assert by_definition(result, norm) <= bound * (1 + 1e-13), norm


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_are_tight_for_arrays_of_ones(name):
    """Ones have rank 1: wherever no label is shared and kept, each inequality is an equality."""
    text, sizes = PRODUCTS[name]
    inputs, output = labels(text)
    size = {k: sizes[k] for own in (*inputs, output) for k in own}
    arrays = [np.ones([size[k] for k in own]) for own in inputs]
    result = np.einsum(text, *arrays)
    norm = frobenius(result.shape)
    bound = total(product_options(inputs, output, norm, size), arrays)
    if not set(inputs[0]) & set(inputs[1]) & set(output):
        assert 0.99 * bound < by_definition(result, norm)


def test_diagonals_broadcasts_and_sizes_of_a_sum_of_products():
    vector, size = np.array([3.0, -4.0, 1.0]), {0: 3}
    for norm, exact in (("rr", np.sqrt(26)), ("rc", 4.0), ("mr", 4.0), ("mm", 4.0)):
        found = product_options([(0,)], (0, 0), norm, size)
        assert total(found, [vector]) == pytest.approx(exact, rel=1e-14)
    found = product_options([], (0, 0), "rc", size)
    assert (found.factor, found.norms) == (1.0, ((),))
    assert product_options([], (0,), "r", size).factor == pytest.approx(np.sqrt(3), rel=1e-15)
    assert 7.0 <= product_options([], (), "", {0: 7}).factor <= 7.0 * (1 + 1e-15)
    matrix = np.arange(9.0).reshape(3, 3)
    found = product_options([(0, 0)], (0,), "r", size)
    assert np.linalg.norm(np.diag(matrix)) <= total(found, [matrix])


def affine(offset, *coefficients):
    return Affine(Dim((), offset), coefficients)


MOVES = {
    "slice": ([affine(1, 1, 0), affine(0, 0, 1)], (2, 4), (3, 4)),
    "element": ([affine(1, 0), affine(0, 1)], (4,), (3, 4)),
    "reversed": ([affine(2, -1, 0), affine(0, 0, 2)], (3, 2), (3, 4)),
    "diagonal": ([affine(0, 1), affine(0, 1)], (3,), (3, 4)),
    "window": ([affine(0, 1, 1)], (3, 2), (4,)),
    "window of rows": ([affine(0, 1, 1, 0), affine(0, 0, 0, 1)], (2, 2, 3), (3, 3)),
    "slanted": ([affine(0, 1, 0), affine(0, 1, 1)], (3, 2), (3, 4)),
    "repeated": ([affine(0, 1, 0)], (3, 4), (3,)),
    "repeated element": ([affine(1, 0, 0)], (2, 3), (3,)),
    "repeated once": ([affine(0, 1, 0)], (3, 1), (4,)),
    "repeated diagonal": ([affine(0, 1, 0), affine(1, 1, 0)], (3, 2), (3, 4)),
    "repeated matrix": ([affine(1, 0, 1, 0), affine(0, 0, 0, 1)], (2, 2, 3), (3, 3)),
}


def positions(index, iterated):
    grid = np.indices(iterated)
    return tuple(
        one.offset.const + sum(c * grid[k] for k, c in enumerate(one.coefficients)) for one in index
    )


@pytest.mark.parametrize("name", MOVES)
def test_moves_are_bounded_in_every_norm(name):
    index, iterated, indexed = MOVES[name]
    rng = np.random.default_rng(3)
    for trial in range(5):
        source = np.ones(indexed) if trial == 0 else rng.standard_normal(indexed)
        taken = source[positions(index, iterated)]
        for norm in words(iterated):
            bound = total(gathered(index, iterated, indexed, norm), [source])
            assert by_definition(taken, norm) <= bound * (1 + 1e-13), norm
        source = np.ones(iterated) if trial == 0 else rng.standard_normal(iterated)
        added = np.zeros(indexed)
        np.add.at(added, positions(index, iterated), source)
        for norm in words(indexed):
            bound = total(scattered(index, iterated, indexed, norm), [source])
            assert by_definition(added, norm) <= bound * (1 + 1e-13), norm


def test_multiplicity_is_tight_for_a_window():
    """w[i, j] = u[i + j] of ones with as many rows as columns reads the middle twice."""
    index, iterated, indexed = [affine(0, 1, 1)], (2, 2), (3,)
    middle = np.array([0.0, 1.0, 0.0])
    taken = middle[positions(index, iterated)]
    bound = total(gathered(index, iterated, indexed, "rr"), [middle])
    assert 0.99 * bound < by_definition(taken, "rr") <= bound


@pytest.mark.parametrize(
    ("before", "after"),
    [((6,), (2, 3)), ((2, 3), (6,)), ((2, 3), (3, 2)), ((2, 6), (2, 3, 2)), ((4,), (1, 4, 1))],
)
def test_reshapes_are_bounded_in_every_norm(before, after):
    rng = np.random.default_rng(4)
    for _ in range(4):
        source = rng.standard_normal(before)
        for norm in words(after):
            bound = total(reshaped(before, after, norm), [source])
            assert by_definition(source.reshape(after), norm) <= bound * (1 + 1e-13), norm
