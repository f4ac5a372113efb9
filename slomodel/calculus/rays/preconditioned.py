"""Matrices A(t) along a ray, multiplied by preconditioners so that they are near I.

Coefficients at the start have errors in norm, of the size of roundings; over the ray they are
bounded in the Frobenius norm by recurrences of scalars, in the scale of powers of T of all jets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from slomodel.calculus.rays.contractions import contract_midrad, contract_sizes
from slomodel.calculus.rays.jets import (
    Jet,
    known,
    sizes,
)
from slomodel.calculus.rays.numbers import INF, UNIT, MidRad, enlarged, raised
from slomodel.functions import abs, add, div, lt, mul, sqrt, square, sub, where
from slomodel.ir import build
from slomodel.ir.dims import Shape
from slomodel.ir.expr import Const, Einsum, Expr
from slomodel.ir.matrices import diagonals, identities, transposed

_LEAST_SQUARE = 1e-300
"""More than any sum of squares that underflow."""


@dataclass(frozen=True, slots=True)
class Preconditioned:
    """Q(t) = U A(t) V; None stands for I as U or V, and for a coefficient that is 0.

    `at` are the coefficients of Q at the start, `start` >= ‖Q(0) - I‖_F and `norms` bounds on
    ‖Q(t) - I‖_F and on ‖Q^(k)/k!‖_F T^k, 1 <= k <= 4, over the ray.
    """

    left: Expr | None
    right: Expr | None
    at: Sequence[MidRad | None]
    start: Expr
    norms: Sequence[Expr | None]

    @property
    def transposed(self) -> Preconditioned:
        """Vᵀ A(t)ᵀ Uᵀ."""
        return Preconditioned(
            None if self.right is None else transposed(self.right),
            None if self.left is None else transposed(self.left),
            [None if one is None else view_of(one, transposed) for one in self.at],
            self.start,
            self.norms,
        )

    @property
    def inverse_norm(self) -> Expr:
        """Upper bound on ‖Q(t)⁻¹‖ over the ray."""
        return inverse_norm_within(known_size(self.norms[0]))

    @property
    def start_error(self) -> Expr:
        """Upper bound on ‖Q(0)⁻¹ - I‖_F."""
        return raised([mul(self.start, inverse_norm_within(self.start))])

    def rows_times(self, columns: Expr, like: MidRad) -> Expr:
        """Bounds on the elements of V X for X with columns of these norms."""
        shape = like.mid.shape
        batch = tuple(range(len(shape) - 2))
        spread = along_rows(columns, like.mid)
        if self.right is None:
            return spread
        rows = norm(abs(self.right), (self.right.rank - 1,))
        return raised([mul(build.broadcast(rows, (*batch, len(shape) - 2), shape), spread)])


def along_rows(columns: Expr, like: Expr) -> Expr:
    """Numbers of the columns of matrices, repeated along their rows."""
    batch = tuple(range(like.rank - 2))
    return build.broadcast(columns, (*batch, like.rank - 1), like.shape)


def known_size(one: Expr | None) -> Expr:
    return Const(0.0) if one is None else one


def over_last(scalars: Expr, like: Expr) -> Expr:
    """Numbers of the batch, repeated along the other axes of an array."""
    return build.broadcast(scalars, tuple(range(scalars.rank)), like.shape)


def inverse_norm_within(distance: Expr) -> Expr:
    """1/(1 - ρ); unbounded for ρ >= 1."""
    above = raised([distance])
    return where(lt(above, 0.999), raised([div(1.0, sub(1.0, above))]), INF)


def view_of(one: MidRad, view: Callable[[Expr], Expr]) -> MidRad:
    return MidRad(view(one.mid), None if one.rad is None else view(one.rad))


def norm(size: Expr, axes: Sequence[int]) -> Expr:
    """Upper bound on the Euclidean norms along some axes of computed numbers >= 0."""
    total = build.sum_over(square(size), tuple(axes))
    count: Expr = Const(8.0)
    for axis in axes:
        count = mul(count, build.size_of(size.shape[axis]))
    whole = mul(add(1.0, mul(4.0 * UNIT, count)), add(total, _LEAST_SQUARE))
    return raised([sqrt(whole)])


def frobenius(one: MidRad) -> Expr:
    """Upper bounds on the Frobenius norms of matrices."""
    size = one.size
    return norm(size, (size.rank - 2, size.rank - 1))


def columns_of(one: MidRad) -> Expr:
    """Upper bounds on the norms of the columns of matrices."""
    size = one.size
    return norm(size, (size.rank - 2,))


def template(left: Shape, right: Shape) -> Einsum:
    """The product of matrices of these shapes, with variables in place of the factors."""
    result = build.product(build.variable("left", left), build.variable("right", right))
    assert isinstance(result, Einsum)
    return result


def product(a: MidRad, b: MidRad) -> MidRad:
    """The products of matrices."""
    return contract_midrad(template(a.mid.shape, b.mid.shape), [a, b])


def trace(*factors: MidRad) -> MidRad:
    """The traces of products of one or two matrices."""
    rank = factors[0].mid.rank
    batch, row, column = tuple(range(rank - 2)), rank - 2, rank - 1
    if len(factors) == 1:
        own = view_of(factors[0], diagonals)
        one = build.variable("diagonals", own.mid.shape)
        summed = build.einsum([one], [(*batch, row)], batch, own.mid.shape)
        return contract_midrad(summed, [own]) if isinstance(summed, Einsum) else own
    both = [build.variable(f"factor {k}", one.mid.shape) for k, one in enumerate(factors)]
    inputs = [(*batch, row, column), (*batch, column, row)]
    result = build.einsum(both, inputs, batch, factors[0].mid.shape)
    assert isinstance(result, Einsum)
    return contract_midrad(result, factors)


def total_of(terms: Sequence[MidRad | None]) -> MidRad | None:
    """The sum of numbers, of which None stands for 0."""
    result: MidRad | None = None
    for term in terms:
        if term is not None:
            result = term if result is None else result + term
    return result


def convolved(a: Sequence[MidRad | None], b: Sequence[MidRad | None], k: int) -> MidRad | None:
    """Σ a_j b_(k - j) for 1 <= j <= min(k, len(a) - 1) and k - j < len(b)."""
    pairs = [(a[j], b[k - j]) for j in range(1, min(k, len(a) - 1) + 1) if k - j < len(b)]
    return total_of([None if p is None or q is None else product(p, q) for p, q in pairs])


def norms_over(at: Sequence[Expr | None], fourth: Expr | None, end: Expr) -> list[Expr | None]:
    """The bounds M_k of a jet in norm, from those at the start and that on the remainder."""
    return sizes(Jet([None if one is None else MidRad(one) for one in at], fourth), end)


def remainder(factors: Sequence[Expr | None], fourth: Expr) -> Expr:
    """|U| S |V| for bounds S on the elements of a remainder."""
    result = fourth
    left, right = factors
    if left is not None:
        result = contract_sizes(template(left.shape, result.shape), [abs(left), result])
    if right is not None:
        result = contract_sizes(template(result.shape, right.shape), [result, abs(right)])
    return result


def preconditioned(a: Jet, left: Expr | None, right: Expr | None, end: Expr) -> Preconditioned:
    """Q(t) = U A(t) V from the jet of A."""

    def turned(one: MidRad | None) -> MidRad | None:
        if one is None:
            return None
        result = one if left is None else product(MidRad(left), one)
        return result if right is None else product(result, MidRad(right))

    at = [turned(one) for one in a.at]
    first = known(at[0])
    distance = frobenius(first - MidRad(identities(first.mid)))
    norms = [None if one is None else frobenius(one) for one in at]
    fourth = None
    if a.fourth is not None:
        fourth = frobenius(MidRad(remainder((left, right), a.fourth)))
    return Preconditioned(
        left, right, at, distance, norms_over([distance, *norms[1:]], fourth, end)
    )


def widened_by(one: MidRad, errors: Sequence[Expr]) -> MidRad:
    own = [] if one.rad is None else [one.rad]
    return MidRad(one.mid, enlarged([*own, raised(errors)]))
