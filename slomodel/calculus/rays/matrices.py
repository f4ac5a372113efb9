"""Jets of functions of matrices A(t), by preconditioners of A at the start of the ray.

For numbers U, V with U A(0) V near I, of which nothing is assumed, Q(t) = U A(t) V has
A⁻¹ = V Q⁻¹ U and log|A| = log|Q| - log|U V|. With ‖Q(t) - I‖_F <= ρ < 1 over the ray, Q is
invertible there, ‖Q⁻¹‖ <= 1/(1 - ρ), and if A is symmetric and V = Uᵀ, A is positive definite. The
distance of Q(0) from I has all errors of the factorisation, and is of the size of roundings.

Coefficients at the start are computed from those of A, with errors in norm. Over the ray the
coefficients of Q⁻¹, of its products and of the factor of Q are bounded in the Frobenius norm by
recurrences of scalars, in the scale of powers of T of all jets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from slomodel.calculus.matrices import lower_triangle
from slomodel.calculus.rays.contractions import contract_midrad, contract_sizes
from slomodel.calculus.rays.functions import steps_of
from slomodel.calculus.rays.jets import (
    ORDERS,
    Jet,
    constant_jet,
    contraction_jet,
    known,
    mapped,
    sizes,
    viewed,
)
from slomodel.calculus.rays.numbers import UNIT, MidRad, enlarged, raised
from slomodel.errors import MissingRule
from slomodel.functions import abs, add, div, le, log, lt, mul, sqrt, square, sub, where
from slomodel.ir import build
from slomodel.ir.dims import Shape
from slomodel.ir.expr import Const, Einsum, Expr, MatrixOperation
from slomodel.ir.matrices import diagonals, identities, transposed, transposed_from

_INF = Const(float("inf"))
_LEAST_SQUARE = 1e-300
"""Above the sum of squares that underflow."""


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
            [None if one is None else _view(one, transposed) for one in self.at],
            self.start,
            self.norms,
        )

    @property
    def inverse_norm(self) -> Expr:
        """Upper bound on ‖Q(t)⁻¹‖ over the ray."""
        return _inverse_norm(known_size(self.norms[0]))

    @property
    def start_error(self) -> Expr:
        """Upper bound on ‖Q(0)⁻¹ - I‖_F."""
        return raised([mul(self.start, _inverse_norm(self.start))])

    def rows_times(self, columns: Expr, like: MidRad) -> Expr:
        """Bounds on the elements of V X for X with columns of these norms."""
        shape = like.mid.shape
        batch = tuple(range(len(shape) - 2))
        spread = _along_rows(columns, like.mid)
        if self.right is None:
            return spread
        rows = norm(abs(self.right), (self.right.rank - 1,))
        return raised([mul(build.broadcast(rows, (*batch, len(shape) - 2), shape), spread)])


def _along_rows(columns: Expr, like: Expr) -> Expr:
    """Numbers of the columns of matrices, repeated along their rows."""
    batch = tuple(range(like.rank - 2))
    return build.broadcast(columns, (*batch, like.rank - 1), like.shape)


def known_size(one: Expr | None) -> Expr:
    return Const(0.0) if one is None else one


def _over(scalars: Expr, like: Expr) -> Expr:
    """Numbers of the batch, repeated along the last axis of other numbers."""
    return build.broadcast(scalars, tuple(range(scalars.rank)), like.shape)


def _inverse_norm(distance: Expr) -> Expr:
    """1/(1 - ρ); unbounded for ρ >= 1."""
    above = raised([distance])
    return where(lt(above, 0.999), raised([div(1.0, sub(1.0, above))]), _INF)


def _view(one: MidRad, view: Callable[[Expr], Expr]) -> MidRad:
    return MidRad(view(one.mid), None if one.rad is None else view(one.rad))


def norm(size: Expr, axes: Sequence[int]) -> Expr:
    """Upper bound on the Euclidean norms along some axes of computed numbers >= 0."""
    total = build.sum_over(square(size), tuple(axes))
    count: Expr = Const(8.0)
    for axis in axes:
        count = mul(count, build.size_of(size.shape[axis]))
    whole = mul(add(1.0, mul(4.0 * UNIT, count)), add(total, _LEAST_SQUARE))
    return raised([sqrt(whole)])


def _frobenius(one: MidRad) -> Expr:
    """Upper bounds on the Frobenius norms of matrices."""
    size = one.size
    return norm(size, (size.rank - 2, size.rank - 1))


def _columns(one: MidRad) -> Expr:
    """Upper bounds on the norms of the columns of matrices."""
    size = one.size
    return norm(size, (size.rank - 2,))


def _template(left: Shape, right: Shape) -> Einsum:
    """The product of matrices of these shapes, with variables in place of the factors."""
    found = build.product(build.variable("left", left), build.variable("right", right))
    assert isinstance(found, Einsum)
    return found


def product(a: MidRad, b: MidRad) -> MidRad:
    """The products of matrices."""
    return contract_midrad(_template(a.mid.shape, b.mid.shape), [a, b])


def _trace(*factors: MidRad) -> MidRad:
    """The traces of products of one or two matrices."""
    rank = factors[0].mid.rank
    batch, row, column = tuple(range(rank - 2)), rank - 2, rank - 1
    if len(factors) == 1:
        own = _view(factors[0], diagonals)
        one = build.variable("diagonals", own.mid.shape)
        summed = build.einsum([one], [(*batch, row)], batch, own.mid.shape)
        return contract_midrad(summed, [own]) if isinstance(summed, Einsum) else own
    both = [build.variable(f"factor {k}", one.mid.shape) for k, one in enumerate(factors)]
    inputs = [(*batch, row, column), (*batch, column, row)]
    found = build.einsum(both, inputs, batch, factors[0].mid.shape)
    assert isinstance(found, Einsum)
    return contract_midrad(found, factors)


def _total(terms: Sequence[MidRad | None]) -> MidRad | None:
    """The sum of numbers, of which None stands for 0."""
    found: MidRad | None = None
    for one in terms:
        if one is not None:
            found = one if found is None else found + one
    return found


def _convolved(a: Sequence[MidRad | None], b: Sequence[MidRad | None], k: int) -> MidRad | None:
    """Σ a_j b_(k - j) for 1 <= j <= min(k, len(a) - 1) and k - j < len(b)."""
    pairs = [(a[j], b[k - j]) for j in range(1, min(k, len(a) - 1) + 1) if k - j < len(b)]
    return _total([None if p is None or q is None else product(p, q) for p, q in pairs])


def _of_norms(at: Sequence[Expr | None], fourth: Expr | None, end: Expr) -> list[Expr | None]:
    """The bounds M_k of a jet in norm, from those at the start and that on the remainder."""
    return sizes(Jet([None if one is None else MidRad(one) for one in at], fourth), end)


def _remainder(factors: Sequence[Expr | None], fourth: Expr) -> Expr:
    """|U| S |V| for bounds S on the elements of a remainder."""
    found = fourth
    left, right = factors
    if left is not None:
        found = contract_sizes(_template(left.shape, found.shape), [abs(left), found])
    if right is not None:
        found = contract_sizes(_template(found.shape, right.shape), [found, abs(right)])
    return found


def preconditioned(a: Jet, left: Expr | None, right: Expr | None, end: Expr) -> Preconditioned:
    """Q(t) = U A(t) V from the jet of A."""

    def turned(one: MidRad | None) -> MidRad | None:
        if one is None:
            return None
        found = one if left is None else product(MidRad(left), one)
        return found if right is None else product(found, MidRad(right))

    at = [turned(one) for one in a.at]
    first = known(at[0])
    distance = _frobenius(first - MidRad(identities(first.mid)))
    norms = [None if one is None else _frobenius(one) for one in at]
    fourth = None
    if a.fourth is not None:
        fourth = _frobenius(MidRad(_remainder((left, right), a.fourth)))
    return Preconditioned(left, right, at, distance, _of_norms([distance, *norms[1:]], fourth, end))


def _inverse_sizes(q: Preconditioned) -> list[Expr]:
    """Bounds on ‖Q⁻¹‖ and on ‖(Q⁻¹)^(k)/k!‖_F T^k, 1 <= k <= 3, over the ray."""
    found = [q.inverse_norm]
    for k in range(1, ORDERS):
        found.append(_next(q, found, k, None))
    return found


def _next(q: Preconditioned, before: Sequence[Expr], k: int, own: Expr | None) -> Expr:
    """‖Q⁻¹‖ (own + Σ_j ‖Q_j‖ before_(k - j)), j >= 1, for numbers of the batch or columns."""
    like = before[0]
    terms = [] if own is None else [own]
    for j in range(1, k + 1):
        size = q.norms[j]
        if size is not None:
            terms.append(mul(_over(size, like), before[k - j]))
    if not terms:
        return build.zeros(like.shape)
    return mul(_over(q.inverse_norm, like), raised(terms))


def solved(q: Preconditioned, b: Jet, end: Expr) -> Jet:
    """The jet of A⁻¹ B = V Y: Q_0 Y_k = U B_k - Σ_j Q_j Y_(k - j), j >= 1."""
    scaled = [
        one if one is None or q.left is None else product(MidRad(q.left), one) for one in b.at
    ]
    inner: list[MidRad | None] = []
    for k in range(ORDERS):
        moved = _convolved(q.at, inner, k)
        right = _total([scaled[k], None if moved is None else -moved])
        if right is not None:
            columns = _columns(right)
            off = mul(_over(q.start_error, columns), columns)
            right = _widened(right, [_along_rows(off, right.mid)])
        inner.append(right)
    at = inner
    if q.right is not None:
        at = [None if one is None else product(MidRad(q.right), one) for one in inner]
    fourth = None
    if b.fourth is not None:
        fourth = _columns(MidRad(_remainder((q.left, None), b.fourth)))
    own = _of_norms([None if one is None else _columns(one) for one in scaled], fourth, end)
    first = known_size(own[0])
    found = [mul(_over(q.inverse_norm, first), first)]
    for k in range(1, ORDERS + 1):
        found.append(_next(q, found, k, own[k]))
    return Jet(at, q.rows_times(raised([found[ORDERS]]), known(at[0])))


def log_determinant(q: Preconditioned) -> Jet:
    """The jet of log|A| for V = Uᵀ and triangular U.

    For Q_0 = I the coefficients are tr Q_1, tr Q_2 - tr Q_1²/2, tr Q_3 - tr Q_1 Q_2 + tr Q_1³/3.
    Each of m factors of norms s changes by less than η s, η = ‖Q_0⁻¹ - I‖ <= 1, and the trace of
    their product by less than ((1 + η)^m - 1) Π s <= (2^m - 1) η Π s.
    """
    assert q.left is not None
    diagonal = abs(_view(MidRad(q.left), diagonals).mid)
    logs = log(diagonal)
    scale = build.variable("logarithms", logs.shape)
    batch = tuple(range(logs.rank - 1))
    node = build.einsum([scale], [(*batch, logs.rank - 1)], batch, logs.shape)
    own = MidRad(logs).rounded(steps=steps_of(log))
    total = contract_midrad(node, [own]) if isinstance(node, Einsum) else own
    rest = q.at[0]
    eta = where(le(q.start_error, 1.0), q.start_error, _INF)
    # |log|Q_0| - tr(Q_0 - I)| <= ε²/(2 - 2ε) for ε = ‖Q_0 - I‖_F.
    deviation = _trace(known(rest) - MidRad(identities(known(rest).mid)))
    value = total.times(2.0)
    errors = [deviation.size, mul(eta, q.start)]
    at: list[MidRad | None] = [_widened(-value, errors)]
    one, two, three = q.at[1:]
    norms = [Const(0.0) if x is None else _frobenius(x) for x in (one, two, three)]
    s1, s2, s3 = norms
    first = None if one is None else _widened(_trace(one), [mul(eta, s1)])
    pair = None if one is None else _trace(one, one).times(0.5)
    second = _total([None if two is None else _trace(two), None if pair is None else -pair])
    if second is not None:
        second = _widened(second, [mul(eta, add(s2, mul(1.5, square(s1))))])
    terms = [None if three is None else _trace(three)]
    if one is not None:
        terms.append(_trace(product(one, one), one).times(1.0 / 3.0))
        terms.append(None if two is None else -_trace(one, two))
    third = _total(terms)
    if third is not None:
        cube = mul(2.4, mul(s1, square(s1)))
        third = _widened(third, [mul(eta, add(s3, add(mul(3.0, mul(s1, s2)), cube)))])
    inverse = _inverse_sizes(q)
    # tr(Q_4 W) <= √n ‖Q_4‖_F ‖W‖, and the others by both Frobenius norms.
    parts = [
        mul(0.25 * j, mul(known_size(q.norms[j]), inverse[ORDERS - j])) for j in range(1, ORDERS)
    ]
    root = sqrt(build.size_of(q.left.shape[-1]))
    parts.append(mul(root, mul(known_size(q.norms[ORDERS]), inverse[0])))
    return Jet([*at, first, second, third], raised(parts))


def _widened(one: MidRad, errors: Sequence[Expr]) -> MidRad:
    own = [] if one.rad is None else [one.rad]
    return MidRad(one.mid, enlarged([*own, raised(errors)]))


def _lower_with_half_diagonal(one: MidRad) -> MidRad:
    """Φ: the lower triangle with half the diagonal, of numbers with radii."""
    half = where(build.apply(le, identities(one.mid), Const(0.0)), 1.0, 0.5)
    return _view(one, lambda part: lower_triangle(mul(half, part)))


@dataclass(frozen=True, slots=True)
class Factor:
    """The factor L(t) of a positive definite A(t), and U L(t) for the U of the preconditioners."""

    jet: Jet
    scaled: Preconditioned


def factored(q: Preconditioned, computed: Expr, end: Expr) -> Factor:
    """The jets of the Cholesky factor of A(t), of which `computed` is that at the start.

    Q = G Gᵀ with G_k = G_0 Φ(G_0⁻¹ H_k G_0⁻ᵀ), H_k = Q_k - Σ G_j G_(k - j)ᵀ for 0 < j < k, and
    ‖Φ(S)‖_F <= ‖S‖_F/√2. With ε = ‖Q_0 - I‖_F <= 1/8, ‖G_0 - I‖_F <= δ = √2 ε (from
    Δ = Φ(E - ΔΔᵀ)), hence G_k is within 3 δ ‖H_k‖_F of Φ(H_k). Over the ray ‖G‖² <= 1 + ρ and
    ‖G⁻¹‖² <= 1/(1 - ρ).

    L = U⁻¹ G, and U⁻¹ is within ‖F‖/(1 - ‖F‖) of the computed L̂ times I, for F = I - U L̂.
    """
    assert q.left is not None
    delta = where(le(q.start, 0.125), mul(1.4143, q.start), _INF)
    square_ = known(q.at[0])
    ones = identities(square_.mid)
    at: list[MidRad | None] = [
        _triangular(MidRad(ones, build.broadcast(delta, tuple(range(delta.rank)), ones.shape)))
    ]
    for k in range(1, ORDERS):
        turned = [None if one is None else _view(one, transposed) for one in at]
        inner = _convolved([None, *at[1:k]], [None, *turned[1:k]], k)
        right = _total([q.at[k], None if inner is None else -inner])
        if right is None:
            at.append(None)
            continue
        off = mul(3.0, mul(delta, _frobenius(right)))
        own = _lower_with_half_diagonal(right)
        at.append(_triangular(_widened(own, [_over_matrix(off, own.mid)])))
    distance = known_size(q.norms[0])
    gap = q.inverse_norm
    factor = mul(0.7072, mul(gap, sqrt(add(1.0, distance))))
    found: list[Expr] = [Const(0.0)]
    for k in range(1, ORDERS + 1):
        terms = [known_size(q.norms[k]), *(mul(found[j], found[k - j]) for j in range(1, k))]
        found.append(raised([mul(factor, raised(terms))]))
    # ‖G - I‖_F <= √2 ρ while ρ <= 1/2.
    size = where(le(distance, 0.5), mul(1.4143, distance), _INF)
    scaled = Preconditioned(q.left, None, at, raised([delta]), [raised([size]), *found[1:]])
    residual = product(MidRad(q.left), MidRad(computed)) - MidRad(ones)
    lost = _frobenius(residual)
    off = raised([mul(lost, _inverse_norm(lost))])
    return Factor(_of_factor(at, found[ORDERS], computed, off), scaled)


def _of_factor(at: Sequence[MidRad | None], fourth: Expr, computed: Expr, off: Expr) -> Jet:
    """The jet of L = L̂ (I + Θ) G for ‖Θ‖_F <= `off`."""
    rows = norm(abs(computed), (computed.rank - 1,))
    batch = tuple(range(computed.rank - 2))

    def spread(size: Expr) -> Expr:
        """Bounds on the elements of L̂ X for ‖X‖_F <= `size`."""
        over = mul(rows, _over(size, rows))
        return build.broadcast(over, (*batch, computed.rank - 2), computed.shape)

    found: list[MidRad | None] = []
    for one in at:
        if one is None:
            found.append(None)
            continue
        own = product(MidRad(computed), one)
        found.append(_triangular(_widened(own, [spread(mul(off, _frobenius(one)))])))
    rest = mul(fourth, add(1.0, off))
    return Jet(found, lower_triangle(raised([spread(rest)])))


def _over_matrix(scalars: Expr, like: Expr) -> Expr:
    return build.broadcast(scalars, tuple(range(scalars.rank)), like.shape)


def _triangular(one: MidRad) -> MidRad:
    return _view(one, lower_triangle)


class MatrixJets:
    """The jets of the functions of matrices of a graph.

    A matrix that occurs as positive definite is preconditioned by its factor in its systems too.
    """

    def __init__(self, order: Sequence[Expr], end: Expr) -> None:
        self._end = end
        self._definite = {
            node.operands[0]
            for node in order
            if isinstance(node, MatrixOperation) and node.function in _OF_DEFINITE
        }
        self._preconditioned: dict[tuple[Expr, str], Preconditioned] = {}
        self._factors: dict[Expr, Factor] = {}

    def jet(self, node: MatrixOperation, jets: Mapping[Expr, Jet]) -> Jet:
        """The jet of a function of matrices from those of its operands."""
        found = self._jet(node, jets)
        moves = any(jets[operand].moves for operand in node.operands)
        return found if moves else constant_jet(known(found.at[0]))

    def _jet(self, node: MatrixOperation, jets: Mapping[Expr, Jet]) -> Jet:
        matrix, function = node.operands[0], node.function
        a = jets[matrix]
        if function == "cholesky":
            return self._factor(matrix, a).jet
        if function == "logdet_posdef":
            return log_determinant(self._by_factor(matrix, a))
        if function == "logdet":
            return self._log_determinant(matrix, a)
        if function.startswith("inverse"):
            ones = constant_jet(MidRad(identities(matrix)))
            return solved(self._of_system(function, matrix, a), ones, self._end)
        if function.startswith("solve"):
            right = jets[node.operands[1]]
            if function in ("solve_lower", "solve_upper"):
                a = viewed(a, _STORED[function])
            return solved(self._of_system(function, matrix, a), right, self._end)
        raise MissingRule("it has a determinant that changes; its logarithm has bounds")

    def _factor(self, matrix: Expr, a: Jet) -> Factor:
        if matrix not in self._factors:
            own = self._by_factor(matrix, a)
            computed = build.matrix_operation("cholesky", known(a.at[0]).mid)
            self._factors[matrix] = factored(own, computed, self._end)
        return self._factors[matrix]

    def _by_factor(self, matrix: Expr, a: Jet) -> Preconditioned:
        """Preconditioners L⁻¹ and L⁻ᵀ of a positive definite matrix."""
        key = (matrix, "definite")
        if key not in self._preconditioned:
            middle = known(a.at[0]).mid
            factor = build.matrix_operation("cholesky", middle)
            left = build.matrix_operation("solve_lower", factor, identities(middle))
            self._preconditioned[key] = preconditioned(a, left, transposed(left), self._end)
        return self._preconditioned[key]

    def _of_system(self, function: str, matrix: Expr, a: Jet) -> Preconditioned:
        """Preconditioners of a matrix in a system, or whose inverse is taken."""
        if function == "inverse_posdef" or matrix in self._definite:
            return self._by_factor(matrix, a)
        if function == "solve_lower" and _is_factor(matrix):
            return self._factors[matrix.operands[0]].scaled
        inner = transposed_from(matrix)
        if function == "solve_upper" and inner is not None and _is_factor(inner):
            return self._factors[inner.operands[0]].scaled.transposed
        key = (matrix, function if function in _STORED else "general")
        if key not in self._preconditioned:
            middle = known(a.at[0]).mid
            if function in ("solve_lower", "solve_upper"):
                left = build.matrix_operation(function, middle, identities(middle))
            else:
                left = build.matrix_operation("inverse", middle)
            self._preconditioned[key] = preconditioned(a, left, None, self._end)
        return self._preconditioned[key]

    def _log_determinant(self, matrix: Expr, a: Jet) -> Jet:
        """log|det A| = log det(AᵀA)/2."""
        turned = viewed(a, transposed)
        shape = matrix.shape
        square_ = contraction_jet(_template(shape, shape), [turned, a], self._end)
        found = log_determinant(self._by_factor(build.product(transposed(matrix), matrix), square_))
        return mapped(found, lambda one: one.times(0.5))


_OF_DEFINITE = ("cholesky", "logdet_posdef", "inverse_posdef")


def _upper_triangle(matrix: Expr) -> Expr:
    return transposed(lower_triangle(transposed(matrix)))


_STORED = {"solve_lower": lower_triangle, "solve_upper": _upper_triangle}


def _is_factor(node: Expr) -> bool:
    return isinstance(node, MatrixOperation) and node.function == "cholesky"
