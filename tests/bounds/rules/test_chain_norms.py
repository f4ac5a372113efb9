"""Parts of ‖(W_m + h_m) .. (W_1 + h_1) X - Y‖²: bounds above all attained values, and tight."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from numpy.random import Generator
from numpy.typing import NDArray

from slomodel.bounds.arithmetic.midpoint_radius import Bounded, beside, exact
from slomodel.bounds.norms.spectral_norm import norms_of
from slomodel.bounds.rules.series.chain_gaps import gaps_of
from slomodel.bounds.rules.series.chain_norms import Monomials, parts

Array = NDArray[np.float64]
SHAPES = ((3, 4, 2, 3), (2, 3, 1, 2, 2), (2, 3, 1))
POINTS = 4


def chain(rng: Generator, widths: tuple[int, ...]) -> tuple[list[Array], Array, Array]:
    W = [rng.standard_normal((b, a)) for a, b in pairwise(widths)]
    X = rng.standard_normal((widths[0], widths[0] + 1))
    return W, X, rng.standard_normal((widths[-1], widths[0] + 1))


def bounds_of(W: list[Array], X: Array, Y: Array | None) -> Monomials:
    return parts(gaps_of([exact(one) for one in W], exact(X), None if Y is None else exact(Y)))


def part(W: list[Array], X: Array, Y: Array, h: list[Array], moves: tuple[int, ...]) -> complex:
    """The coefficient of Π z_k^(moves_k) in f along z_k h_k, from its values at roots of unity."""
    roots = np.exp(2j * np.pi * np.arange(3) / 3)
    total = 0j
    for chosen in product(range(3), repeat=len(W)):
        product_of = X.astype(complex)
        for w, own, k in zip(W, h, chosen, strict=True):
            product_of = (w + roots[k] * own) @ product_of
        turn = np.prod([roots[k] ** -a for k, a in zip(chosen, moves, strict=True)])
        total += turn * np.sum((product_of - Y) ** 2)
    return complex(total / 3 ** len(W))


def highest(
    W: list[Array], X: Array, Y: Array, moves: tuple[int, ...], rng: Generator, starts: int
) -> float:
    """The most of |F_α| over h of length 1 that ascents layer by layer reach."""
    best = 0.0
    for _ in range(starts):
        h = [rng.standard_normal(w.shape) for w in W]
        h = [one / np.linalg.norm(one) for one in h]
        for _ in range(6):
            for k, times in enumerate(moves):
                if times:
                    h[k] = _uphill(W, X, Y, h, moves, k)
            best = max(best, abs(part(W, X, Y, h, moves).real))
    return best


def _uphill(
    W: list[Array], X: Array, Y: Array, h: list[Array], moves: tuple[int, ...], k: int
) -> Array:
    """The unit h_k of the largest |F_α|, of which it is a linear or quadratic form."""

    def value(own: Array) -> float:
        return part(W, X, Y, [*h[:k], own.reshape(W[k].shape), *h[k + 1 :]], moves).real

    units = np.eye(W[k].size)
    first = np.array([value(e) for e in units])
    if moves[k] == 1:
        return (first / np.linalg.norm(first)).reshape(W[k].shape)
    both = np.array([[value(e + d) for d in units] for e in units])
    values, vectors = np.linalg.eigh(both - np.add.outer(first, first))
    return vectors[:, np.argmax(np.abs(values))].reshape(W[k].shape)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("widths", SHAPES)
def test_no_part_is_above_its_bound(widths: tuple[int, ...]) -> None:
    """At random h; in few layers of degree 2 and 3 also where ascents end."""
    rng = np.random.default_rng(len(widths))
    W, X, Y = chain(rng, widths)
    found = bounds_of(W, X, Y)
    assert set(found) == {a for a in product(range(3), repeat=len(W)) if sum(a) >= 2}
    for moves, bound in found.items():
        for _ in range(POINTS):
            h = [rng.standard_normal(w.shape) for w in W]
            length = np.prod([np.linalg.norm(x) ** k for x, k in zip(h, moves, strict=True)])
            assert abs(part(W, X, Y, h, moves).real) <= bound * length * (1.0 + 1e-9), moves
        if sum(moves) < 4 and len(W) < 4:
            assert highest(W, X, Y, moves, rng, 1) <= bound * (1.0 + 1e-9), moves


ATTAINED = {
    "random": ((2, 0, 1), (0, 1, 2), (1, 2, 1)),
    "diagonal": ((1, 0, 2), (1, 1, 1), (1, 1, 2)),
}


@pytest.mark.parametrize("kind", ATTAINED)
def test_what_the_rules_for_a_pair_bound_is_attained(kind: str) -> None:
    """A layer that moves twice, and one that moves in either of two ways, for 1 % of the bound."""
    rng = np.random.default_rng(5)
    W, X, Y = chain(rng, (3, 2, 2, 3))
    if kind == "diagonal":
        W = [np.eye(*w.shape) * rng.random(w.shape[1]) for w in W]
        X, Y = np.eye(*X.shape), 0.0 * Y
    found = bounds_of(W, X, Y)
    for moves in ATTAINED[kind]:
        reached = highest(W, X, Y, moves, rng, 1)
        assert reached <= found[moves] <= reached / 0.99, moves


def test_norms_of_many_near_matrices_hold_errors() -> None:
    rng = np.random.default_rng(3)
    every = {k: rng.standard_normal(shape) for k, shape in enumerate(((3, 9), (9, 4), (1, 2)))}
    norms = norms_of({k: Bounded(A, 0.25) for k, A in every.items()})
    for k, A in every.items():
        exact = np.linalg.norm(A, 2)
        assert exact + 0.25 <= norms[k] <= exact + 0.25 + 1e-9


def test_errors_of_products_and_of_what_stands_beside() -> None:
    """A + E and B + F for the worst errors E and F of numbers."""
    A, B = Bounded(np.array([[2.0]]), 0.5), Bounded(np.array([[3.0]]), 0.25)
    assert abs((A @ B).value[0, 0] - 2.5 * 3.25) <= (A @ B).error <= 2.126
    assert abs((A - B).value[0, 0] - (1.5 - 3.25)) <= (A - B).error <= 0.751
    both = beside(A, 2.0, B, 4.0)
    assert np.hypot(1.0, 1.0) <= both.error <= 2.001
