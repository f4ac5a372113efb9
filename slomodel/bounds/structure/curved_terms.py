"""The nonlinear terms of an objective, from which its Hessian is a sum over all their elements.

Every node is linear in nonlinear terms and in the variables; a term is φ(u_1, .., u_k) of nodes u,
elementwise, or log Σ exp u. With λ the derivative of f by an element of a term (its adjoint),

    H = Σ over the elements of Σ_pq λ φ_pq ∇u_p ∇u_qᵀ,

as D²(φ(u)) = Σ φ_pq ∇u_p ∇u_qᵀ + Σ φ_p D²u_p, and linear nodes have D² = 0 of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import slomodel.functions as table
from slomodel.bounds.effort import MOST_NODES
from slomodel.bounds.structure.linear_predictors import Fused, Laid, fused, is_linear, is_of_one
from slomodel.bounds.structure.log_sum_exp import log_sum_operand
from slomodel.functions.compound import stop_gradient
from slomodel.ir import build
from slomodel.ir.dims import Shape
from slomodel.ir.expr import Axes, Einsum, Expr, Input, Map, remake
from slomodel.ir.walk import postorder

_MOST_TERMS = 200
"""Largest number of terms, each of which is bounded over every cell: about a millisecond."""
_MOST_PASSES = 8
"""Passes that divide terms until none of them holds another: one for each level of nesting."""


@dataclass(frozen=True, slots=True)
class CurvedElements:
    """Elements Π factors · φ(u_1, .., u_k), over `shape`, that add up to the elements of `node`.

    `value` is φ as a graph of scalars; its `arguments` stand for the nodes of `places`, its data
    inputs for those of `data`. Axis k of `node` is the axis `output[k]` of the elements.
    """

    node: Expr
    shape: Shape
    output: Axes
    value: Expr
    arguments: tuple[Input, ...]
    places: tuple[Laid, ...]
    data: Mapping[Input, Laid]
    factors: tuple[Laid, ...] = ()

    @property
    def operands(self) -> tuple[Expr, ...]:
        return tuple(laid.node for laid in self.places)


@dataclass(frozen=True, slots=True)
class CurvedLogSum:
    """`node` = log Σ exp u over the axes `summed` of u."""

    node: Expr
    u: Expr
    summed: Axes

    @property
    def operands(self) -> tuple[Expr, ...]:
        return (self.u,)


@dataclass(frozen=True, slots=True)
class CurvedLogDet:
    """`node` = log |det N| of matrices N near the identity."""

    node: Expr
    matrix: Expr
    is_symmetric: bool

    @property
    def operands(self) -> tuple[Expr, ...]:
        return (self.matrix,)


CurvedTerm = CurvedElements | CurvedLogSum | CurvedLogDet


@dataclass(frozen=True, slots=True)
class MeanOfLogSum:
    """log Σ exp u with the weights p at some point, and those at the centre, as inputs.

    With the mean ū of u under the weights at the centre, the gradient of the sum is that of ū +
    Σ p (u - ū): as Σ p = 1, it is the mean of the ∇u, and only their differences meet p.
    """

    term: CurvedLogSum
    weights: Input
    at_centre: Input

    def mean(self, u: Expr) -> Expr:
        """ū + Σ p (u - ū) of u."""
        at_centre = mean_with(self.at_centre, self.term)(u)
        return table.add(at_centre, mean_with(self.weights, self.term)(self.apart(u)))

    def apart(self, u: Expr) -> Expr:
        """u - ū."""
        axes = tuple(range(u.rank))
        kept = tuple(axis for axis in axes if axis not in self.term.summed)
        pair = [u, mean_with(self.at_centre, self.term)(u)]
        return build.apply_along(table.sub, pair, [axes, kept], u.shape)

    @property
    def inner(self) -> tuple[Expr, ...]:
        """The nodes between the sum and u."""
        (total,) = self.term.node.operands
        (exponential,) = total.operands
        return total, exponential, exponential.operands[0]


def mean_with(weights: Input, term: CurvedLogSum) -> Callable[[Expr], Expr]:
    """Σ p u as a function of u."""
    axes = tuple(range(weights.rank))
    kept = tuple(axis for axis in axes if axis not in term.summed)
    return lambda u: build.einsum([weights, u], [axes, axes], kept, weights.shape)


def with_means(
    objective: Expr, means: Mapping[CurvedLogSum, Callable[[Expr], Expr]]
) -> dict[Expr, Expr]:
    """All nodes of the objective, with log Σ exp u replaced by functions of u."""
    sums = {term.node: (term, mean) for term, mean in means.items()}
    done: dict[Expr, Expr] = {}
    for node in postorder(objective):
        if node in sums:
            term, mean = sums[node]
            done[node] = mean(done[term.u])
        else:
            operands = tuple(done[operand] for operand in node.operands)
            done[node] = remake(node, operands) if operands else node
    return done


def curved_terms(
    objective: Expr,
    varying: Collection[Expr],
    affine: Collection[Expr],
    exponents: Collection[Expr] = (),
    given: Mapping[Expr, tuple[CurvedTerm, ...]] = MappingProxyType({}),
) -> tuple[CurvedTerm, ...] | None:
    """The terms of the objective, those next to it first; None where a node is of another kind.

    `varying` are the nodes that depend on the variables, `exponents` linear ones that are arguments
    wherever they are read; `given` are the terms of nodes of other kinds. A term may consist of
    several nodes, but none that is a term itself, so that the gradient by the nodes of the terms is
    that by the terms.
    """
    if len(varying) > MOST_NODES:
        return None
    terms: set[Expr] = set()
    for _ in range(_MOST_PASSES):
        result = _found(objective, varying, affine, terms.union(exponents), given)
        if result is None:
            return None
        if terms.issuperset(result):
            return tuple(result.values())
        terms.update(result)
    return None


def _found(
    objective: Expr,
    varying: Collection[Expr],
    affine: Collection[Expr],
    terms: Collection[Expr],
    given: Mapping[Expr, tuple[CurvedTerm, ...]],
) -> dict[Expr, CurvedTerm] | None:
    """The terms met on the way down, by node; nodes of `terms` are not part of another one.

    None where a node is of another kind, and for more than `_MOST_TERMS`.
    """
    result: dict[Expr, CurvedTerm] = {}
    seen, stack = {objective}, [objective]
    while stack:
        node = stack.pop()
        if node not in varying or node in affine:
            continue
        if node in given:
            result.update((term.node, term) for term in given[node])
            below = node.operands
        elif is_linear(node, varying):
            below = node.operands
        else:
            term = _term(node, varying, affine, terms)
            if term is None:
                return None
            result[node] = term
            below = term.operands
        if len(result) > _MOST_TERMS:
            return None
        fresh = [operand for operand in dict.fromkeys(below) if operand not in seen]
        seen.update(fresh)
        stack += fresh
    return result


def _term(
    node: Expr, varying: Collection[Expr], affine: Collection[Expr], terms: Collection[Expr]
) -> CurvedTerm | None:
    if isinstance(node, Map):
        log_sum = log_sum_operand(node, varying)
        if log_sum is not None:
            return CurvedLogSum(node, *log_sum)
        return _of_map(node, varying, affine, terms)
    return _of_product(node, varying, affine, terms) if isinstance(node, Einsum) else None


def _argument(
    roots: Collection[Expr],
    varying: Collection[Expr],
    affine: Collection[Expr],
    terms: Collection[Expr],
) -> Callable[[Expr], bool]:
    """Which nodes are arguments: terms, affine nodes, and other nodes that are not elementwise."""

    def is_argument(node: Expr) -> bool:
        if node not in varying or node in roots:
            return False
        if node in affine:
            return not is_of_one(node, varying)
        return node in terms or not isinstance(node, Map) or node.function is stop_gradient

    return is_argument


def _of_map(
    node: Map, varying: Collection[Expr], affine: Collection[Expr], terms: Collection[Expr]
) -> CurvedElements | None:
    """The function with the elementwise ones below it, or alone if these have many arguments."""
    whole = tuple(range(node.rank))
    root = Laid(node, whole)
    wide = _argument({node}, varying, affine, terms)
    result = fused([root], varying, wide)
    if result is None:
        result = fused(
            [root], varying, lambda one: one in varying and (wide(one) or one is not node)
        )
    if result is None:
        return None
    return _elements(node, node.shape, whole, result)


def _of_product(
    node: Einsum, varying: Collection[Expr], affine: Collection[Expr], terms: Collection[Expr]
) -> CurvedElements | None:
    """Products over all labels: of the functions below, where there are few arguments."""
    if len(set(node.output)) < node.rank:
        return None
    pairs = [Laid(o, own) for o, own in zip(node.operands, node.inputs, strict=True)]
    own = [laid for laid in pairs if laid.node in varying]
    factors = tuple(laid for laid in pairs if laid.node not in varying)
    roots = {laid.node for laid in own}
    result = fused(own, varying, _argument(roots - set(terms), varying, affine, terms))
    if result is None:
        result = fused(own, varying, lambda one: one in varying)
    return None if result is None else _elements(node, node.dims, node.output, result, factors)


def _elements(
    node: Expr, shape: Shape, output: Axes, made: Fused, factors: tuple[Laid, ...] = ()
) -> CurvedElements:
    return CurvedElements(
        node, shape, output, made.value, made.arguments, made.places, made.data, factors
    )


def varying_nodes(order: Collection[Expr], variables: Collection[Expr]) -> set[Expr]:
    """The nodes of a postorder that depend on the variables, but for those marked constant."""
    result: set[Expr] = set(variables)
    for node in order:
        is_still = isinstance(node, Map) and node.function is stop_gradient
        if not is_still and any(operand in result for operand in node.operands):
            result.add(node)
    return result
