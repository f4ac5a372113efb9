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
from slomodel.calculus.rays.contractions import contract_midrad
from slomodel.calculus.rays.functions import steps_of
from slomodel.calculus.rays.jets import (
    ORDERS,
    Jet,
    constant_jet,
    contraction_jet,
    known,
    mapped,
    viewed,
)
from slomodel.calculus.rays.numbers import INF, MidRad, raised
from slomodel.calculus.rays.preconditioned import (
    Preconditioned,
    along_rows,
    columns_of,
    convolved,
    frobenius,
    inverse_norm_within,
    known_size,
    norm,
    norms_over,
    over_last,
    preconditioned,
    product,
    remainder,
    template,
    total_of,
    trace,
    view_of,
    widened_by,
)
from slomodel.errors import MissingRule
from slomodel.functions import abs, add, le, log, mul, sqrt, square, where
from slomodel.ir import build
from slomodel.ir.expr import Const, Einsum, Expr, MatrixFunction, MatrixOperation
from slomodel.ir.matrices import diagonals, identities, transposed, transposed_from


def _inverse_sizes(q: Preconditioned) -> list[Expr]:
    """Bounds on ‖Q⁻¹‖ and on ‖(Q⁻¹)^(k)/k!‖_F T^k, 1 <= k <= 3, over the ray."""
    result = [q.inverse_norm]
    for k in range(1, ORDERS):
        result.append(_next(q, result, k, None))
    return result


def _next(q: Preconditioned, before: Sequence[Expr], k: int, own: Expr | None) -> Expr:
    """‖Q⁻¹‖ (own + Σ_j ‖Q_j‖ before_(k - j)), j >= 1, for numbers of the batch or columns."""
    like = before[0]
    terms = [] if own is None else [own]
    for j in range(1, k + 1):
        size = q.norms[j]
        if size is not None:
            terms.append(mul(over_last(size, like), before[k - j]))
    if not terms:
        return build.zeros(like.shape)
    return mul(over_last(q.inverse_norm, like), raised(terms))


def solved(q: Preconditioned, b: Jet, end: Expr) -> Jet:
    """The jet of A⁻¹ B = V Y: Q_0 Y_k = U B_k - Σ_j Q_j Y_(k - j), j >= 1."""
    scaled = [
        one if one is None or q.left is None else product(MidRad(q.left), one) for one in b.at
    ]
    inner: list[MidRad | None] = []
    for k in range(ORDERS):
        moved = convolved(q.at, inner, k)
        right = total_of([scaled[k], None if moved is None else -moved])
        if right is not None:
            columns = columns_of(right)
            off = mul(over_last(q.start_error, columns), columns)
            right = widened_by(right, [along_rows(off, right.mid)])
        inner.append(right)
    at = inner
    if q.right is not None:
        at = [None if one is None else product(MidRad(q.right), one) for one in inner]
    fourth = None
    if b.fourth is not None:
        fourth = columns_of(MidRad(remainder((q.left, None), b.fourth)))
    own = norms_over([None if one is None else columns_of(one) for one in scaled], fourth, end)
    first = known_size(own[0])
    result = [mul(over_last(q.inverse_norm, first), first)]
    for k in range(1, ORDERS + 1):
        result.append(_next(q, result, k, own[k]))
    return Jet(at, q.rows_times(raised([result[ORDERS]]), known(at[0])))


def log_determinant(q: Preconditioned) -> Jet:
    """The jet of log|A| for V = Uᵀ and triangular U.

    For Q_0 = I the coefficients are tr Q_1, tr Q_2 - tr Q_1²/2, tr Q_3 - tr Q_1 Q_2 + tr Q_1³/3.
    Each of m factors of norms s changes by less than η s, η = ‖Q_0⁻¹ - I‖ <= 1, and the trace of
    their product by less than ((1 + η)^m - 1) Π s <= (2^m - 1) η Π s.
    """
    assert q.left is not None
    diagonal = abs(view_of(MidRad(q.left), diagonals).mid)
    logs = log(diagonal)
    scale = build.variable("logarithms", logs.shape)
    batch = tuple(range(logs.rank - 1))
    node = build.einsum([scale], [(*batch, logs.rank - 1)], batch, logs.shape)
    own = MidRad(logs).rounded(steps=steps_of(log))
    total = contract_midrad(node, [own]) if isinstance(node, Einsum) else own
    rest = q.at[0]
    eta = where(le(q.start_error, 1.0), q.start_error, INF)
    # |log|Q_0| - tr(Q_0 - I)| <= ε²/(2 - 2ε) for ε = ‖Q_0 - I‖_F.
    deviation = trace(known(rest) - MidRad(identities(known(rest).mid)))
    value = total.times(2.0)
    errors = [deviation.size, mul(eta, q.start)]
    at: list[MidRad | None] = [widened_by(-value, errors)]
    one, two, three = q.at[1:]
    norms = [Const(0.0) if x is None else frobenius(x) for x in (one, two, three)]
    s1, s2, s3 = norms
    first = None if one is None else widened_by(trace(one), [mul(eta, s1)])
    pair = None if one is None else trace(one, one).times(0.5)
    second = total_of([None if two is None else trace(two), None if pair is None else -pair])
    if second is not None:
        second = widened_by(second, [mul(eta, add(s2, mul(1.5, square(s1))))])
    terms = [None if three is None else trace(three)]
    if one is not None:
        terms.append(trace(product(one, one), one).times(1.0 / 3.0))
        terms.append(None if two is None else -trace(one, two))
    third = total_of(terms)
    if third is not None:
        cube = mul(2.4, mul(s1, square(s1)))
        third = widened_by(third, [mul(eta, add(s3, add(mul(3.0, mul(s1, s2)), cube)))])
    inverse = _inverse_sizes(q)
    # tr(Q_4 W) <= √n ‖Q_4‖_F ‖W‖, and the others by both Frobenius norms.
    parts = [
        mul(0.25 * j, mul(known_size(q.norms[j]), inverse[ORDERS - j])) for j in range(1, ORDERS)
    ]
    root = sqrt(build.size_of(q.left.shape[-1]))
    parts.append(mul(root, mul(known_size(q.norms[ORDERS]), inverse[0])))
    return Jet([*at, first, second, third], raised(parts))


def _lower_with_half_diagonal(one: MidRad) -> MidRad:
    """Φ: the lower triangle with half the diagonal, of numbers with radii."""
    half = where(build.apply(le, identities(one.mid), Const(0.0)), 1.0, 0.5)
    return view_of(one, lambda part: lower_triangle(mul(half, part)))


@dataclass(frozen=True, slots=True)
class FactorAlongRay:
    """The factor L(t) of a positive definite A(t), and U L(t) for the U of the preconditioners."""

    jet: Jet
    scaled: Preconditioned


def factored(q: Preconditioned, computed: Expr, end: Expr) -> FactorAlongRay:
    """The jets of the Cholesky factor of A(t), of which `computed` is that at the start.

    Q = G Gᵀ with G_k = G_0 Φ(G_0⁻¹ H_k G_0⁻ᵀ), H_k = Q_k - Σ G_j G_(k - j)ᵀ for 0 < j < k, and
    ‖Φ(S)‖_F <= ‖S‖_F/√2. With ε = ‖Q_0 - I‖_F <= 1/8, ‖G_0 - I‖_F <= δ = √2 ε (from
    Δ = Φ(E - ΔΔᵀ)), hence G_k is within 3 δ ‖H_k‖_F of Φ(H_k). Over the ray ‖G‖² <= 1 + ρ and
    ‖G⁻¹‖² <= 1/(1 - ρ).

    L = U⁻¹ G, and U⁻¹ is within ‖F‖/(1 - ‖F‖) of the computed L̂ times I, for F = I - U L̂.
    """
    assert q.left is not None
    delta = where(le(q.start, 0.125), mul(1.4143, q.start), INF)
    square_ = known(q.at[0])
    ones = identities(square_.mid)
    at: list[MidRad | None] = [
        _triangular(MidRad(ones, build.broadcast(delta, tuple(range(delta.rank)), ones.shape)))
    ]
    for k in range(1, ORDERS):
        turned = [None if one is None else view_of(one, transposed) for one in at]
        inner = convolved([None, *at[1:k]], [None, *turned[1:k]], k)
        right = total_of([q.at[k], None if inner is None else -inner])
        if right is None:
            at.append(None)
            continue
        off = mul(3.0, mul(delta, frobenius(right)))
        own = _lower_with_half_diagonal(right)
        at.append(_triangular(widened_by(own, [over_last(off, own.mid)])))
    distance = known_size(q.norms[0])
    gap = q.inverse_norm
    factor = mul(0.7072, mul(gap, sqrt(add(1.0, distance))))
    result: list[Expr] = [Const(0.0)]
    for k in range(1, ORDERS + 1):
        terms = [known_size(q.norms[k]), *(mul(result[j], result[k - j]) for j in range(1, k))]
        result.append(raised([mul(factor, raised(terms))]))
    # ‖G - I‖_F <= √2 ρ while ρ <= 1/2.
    size = where(le(distance, 0.5), mul(1.4143, distance), INF)
    scaled = Preconditioned(q.left, None, at, raised([delta]), [raised([size]), *result[1:]])
    residual = product(MidRad(q.left), MidRad(computed)) - MidRad(ones)
    lost = frobenius(residual)
    off = raised([mul(lost, inverse_norm_within(lost))])
    return FactorAlongRay(_of_factor(at, result[ORDERS], computed, off), scaled)


def _of_factor(at: Sequence[MidRad | None], fourth: Expr, computed: Expr, off: Expr) -> Jet:
    """The jet of L = L̂ (I + Θ) G for ‖Θ‖_F <= `off`."""
    rows = norm(abs(computed), (computed.rank - 1,))
    batch = tuple(range(computed.rank - 2))

    def spread(size: Expr) -> Expr:
        """Bounds on the elements of L̂ X for ‖X‖_F <= `size`."""
        over = mul(rows, over_last(size, rows))
        return build.broadcast(over, (*batch, computed.rank - 2), computed.shape)

    result: list[MidRad | None] = []
    for one in at:
        if one is None:
            result.append(None)
            continue
        own = product(MidRad(computed), one)
        result.append(_triangular(widened_by(own, [spread(mul(off, frobenius(one)))])))
    rest = mul(fourth, add(1.0, off))
    return Jet(result, lower_triangle(raised([spread(rest)])))


def _triangular(one: MidRad) -> MidRad:
    return view_of(one, lower_triangle)


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
        self._factors: dict[Expr, FactorAlongRay] = {}

    def jet(self, node: MatrixOperation, jets: Mapping[Expr, Jet]) -> Jet:
        """The jet of a function of matrices from those of its operands."""
        result = self._jet(node, jets)
        moves = any(jets[operand].moves for operand in node.operands)
        return result if moves else constant_jet(known(result.at[0]))

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

    def _factor(self, matrix: Expr, a: Jet) -> FactorAlongRay:
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

    def _of_system(self, function: MatrixFunction, matrix: Expr, a: Jet) -> Preconditioned:
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
        square_ = contraction_jet(template(shape, shape), [turned, a], self._end)
        result = log_determinant(
            self._by_factor(build.product(transposed(matrix), matrix), square_)
        )
        return mapped(result, lambda one: one.times(0.5))


_OF_DEFINITE = ("cholesky", "logdet_posdef", "inverse_posdef")


def _upper_triangle(matrix: Expr) -> Expr:
    return transposed(lower_triangle(transposed(matrix)))


_STORED: dict[MatrixFunction, Callable[[Expr], Expr]] = {
    "solve_lower": lower_triangle,
    "solve_upper": _upper_triangle,
}


def _is_factor(node: Expr) -> bool:
    return isinstance(node, MatrixOperation) and node.function == "cholesky"
