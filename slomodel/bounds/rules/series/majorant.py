"""Majorants of polynomial objectives: bounds on each homogeneous part by blocks, for all radii.

u(c + h) = Σ_α u_α(h), u_α homogeneous of degree α_b in h_b; a_α >= sup ‖u_α(h)‖ / Π ‖h_b‖^α_b. In
sums they add; in products they multiply monomial by monomial, for each pair in the best pair of
norms; and a_0 is ‖u(c)‖ itself. They do not depend on a radius.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

import slomodel.functions as table
from slomodel.bounds.arithmetic.rounding import Array, up_norm
from slomodel.bounds.arithmetic.upper_bounds import rounded_up
from slomodel.bounds.norms.polynomial import Exponents, Polynomial
from slomodel.bounds.rules.jets.mixed_norms import Norm, below
from slomodel.bounds.rules.jets.norm_graph import Prepared
from slomodel.bounds.rules.jets.norm_rules import Choice, Linear, Product
from slomodel.bounds.rules.jets.product_norms import Options
from slomodel.calculus.degree import is_polynomial
from slomodel.ir.expr import Expr, Extreme, Input, Map

_HIGHEST_DEGREE = 60
"""Largest degree: exponents of ten blocks are coded in one integer of 64 bits."""
_MOST_MONOMIALS = 1500
"""Largest number of monomials of a node; products take its square, about 10 ms."""


class TooMany(Exception):
    """There are too many monomials, or the degree is too high, for the series to pay."""


@dataclass(slots=True)
class Majorants:
    """Exponents (M, B) by node, coefficients (M,) by node and norm.

    Constants are measured where they are `read`; the others are inf.
    """

    prepared: Prepared
    read: Collection[tuple[Expr, Norm]]
    exponents: dict[Expr, Exponents] = field(default_factory=dict)
    coefficients: dict[tuple[Expr, Norm], Array] = field(default_factory=dict)

    def look(self, node: Expr, norm: Norm) -> Array:
        return self.coefficients[node, self.prepared.available(node, norm)]


def has_polynomial_nodes(prepared: Prepared) -> bool:
    """Whether the objective is a polynomial and so are the nodes of the normal form."""
    part, varying = prepared.part, prepared.scope.varying
    if not is_polynomial(part.objective, set(part.variables)):
        return False
    for node, norms in prepared.norms.items():
        if node not in varying or isinstance(node, Input):
            continue
        rule = prepared.rules[node, norms[0]]
        if isinstance(rule, Choice):
            assert isinstance(node, Map)
            if node.function is not table.where or node.operands[0] in varying:
                return False
        elif isinstance(node, Extreme) or not isinstance(rule, (Linear, Product)):
            return False
    return True


def majorants(prepared: Prepared) -> Majorants | None:
    """The gradient's majorants and those of all its nodes; None where it is not a polynomial.

    Hypothesis: `has_polynomial_nodes`, so each node is a polynomial in h with unique parts.
    """
    if not has_polynomial_nodes(prepared):
        return None
    result = Majorants(prepared, _read(prepared))
    try:
        for node in prepared.order:
            if node in prepared.norms:
                _propagate(result, node)
    except TooMany:
        return None
    return result


def _read(prepared: Prepared) -> set[tuple[Expr, Norm]]:
    """The constants that matter: those of factors multiplied by one that depends on x.

    A node's value at the centre is measured, not computed from the constants of its operands; and
    the gradient's own constants do not enter parts of f of degree 2 or more.
    """
    result: set[tuple[Expr, Norm]] = set()
    for rule in prepared.rules.values():
        if isinstance(rule, Product):
            for words in rule.options.norms:
                factors = ((rule.left, words[0]), (rule.right, words[1]))
                for (node, word), (beside, _) in zip(factors, factors[::-1], strict=True):
                    if beside in prepared.scope.varying:
                        result.add((node, prepared.available(node, word)))
    return result


def _propagate(own: Majorants, node: Expr) -> None:
    prepared = own.prepared
    norms = prepared.norms[node]
    if node not in prepared.scope.varying or isinstance(node, Input):
        own.exponents[node] = _unit(prepared, node)
        for norm in norms:
            own.coefficients[node, norm] = np.ones(len(own.exponents[node]))
    else:
        kernel = _kernel(own, node)
        for norm in norms:
            own.coefficients[node, norm] = kernel.coefficients(own, node, norm)
    constant = own.exponents[node].sum(axis=1) == 0
    for norm in norms:
        coefficients = own.coefficients[node, norm]
        size = prepared.at_centre(node, norm) if (node, norm) in own.read else np.inf
        coefficients[constant] = rounded_up(np.asarray([size]), 0)
        for other in norms:
            if other != norm and (node, other) in own.coefficients and below(norm, other):
                np.minimum(coefficients, own.coefficients[node, other], out=coefficients)


def _unit(prepared: Prepared, node: Expr) -> Exponents:
    """The exponents of a constant node; for a variable also that of its block."""
    rows = [np.zeros(prepared.count, dtype=np.int64)]
    if isinstance(node, Input) and node in prepared.scope.varying:
        first = rows[0].copy()
        first[prepared.blocks[node.name]] = 1
        rows.append(first)
    return np.array(rows)


@dataclass(frozen=True, slots=True)
class _Kernel:
    """The index of each monomial of the operands, or of their pairs, among those of the node."""

    count: int
    places: tuple[np.ndarray[tuple[int, ...], np.dtype[np.intp]], ...]

    def coefficients(self, own: Majorants, node: Expr, norm: Norm) -> Array:
        rule = own.prepared.rules[node, norm]
        if isinstance(rule, Product):
            pairs = [
                np.multiply.outer(own.look(rule.left, one), own.look(rule.right, other))
                for one, other in rule.options.norms
            ]
            least = np.minimum.reduce(pairs).ravel()
            least = np.where(np.isnan(least), 0.0, least) * rule.options.factor
            return self._added([least])
        if isinstance(rule, Linear):
            parts = zip(rule.operands, rule.options, strict=True)
        else:
            assert isinstance(rule, Choice)
            parts = zip(rule.operands, rule.parts, strict=True)
        return self._added([_least(own, operand, options) for operand, options in parts])

    def _added(self, parts: Sequence[Array]) -> Array:
        total = np.zeros(self.count)
        for part, place in zip(parts, self.places, strict=True):
            total += np.bincount(place, weights=part, minlength=self.count)
        return rounded_up(total, 4 + sum(len(part) for part in parts))


def _least(own: Majorants, operand: Expr, options: Options) -> Array:
    least = np.minimum.reduce([own.look(operand, word) for (word,) in options.norms])
    return np.asarray(least * options.factor)


def _kernel(own: Majorants, node: Expr) -> _Kernel:
    rule = own.prepared.rules[node, own.prepared.norms[node][0]]
    if isinstance(rule, Product):
        left, right = own.exponents[rule.left], own.exponents[rule.right]
        rows = [(left[:, None, :] + right[None, :, :]).reshape(-1, left.shape[1])]
    else:
        assert isinstance(rule, (Linear, Choice))
        rows = [own.exponents[operand] for operand in rule.operands]
    every = np.concatenate(rows)
    base = np.int64(_HIGHEST_DEGREE + 4) ** np.arange(every.shape[1], dtype=np.int64)
    unique, inverse = np.unique(every @ base, return_inverse=True)
    exponents = np.zeros((len(unique), every.shape[1]), dtype=np.int64)
    exponents[inverse.ravel()] = every
    if len(unique) > _MOST_MONOMIALS or int(exponents.sum(axis=1).max()) > _HIGHEST_DEGREE:
        raise TooMany
    own.exponents[node] = exponents
    ends = np.cumsum([len(row) for row in rows])[:-1]
    return _Kernel(len(unique), tuple(np.split(inverse.ravel(), ends)))


def objective_majorant(own: Majorants) -> Polynomial:
    """The parts of f of degree >= 2, by Euler's identity: α_b f_α = ⟨h_b, (∇_b f)_(α - e_b)⟩.

    So a_α <= a_(α - e_b)(∇_b f) / α_b for every b with α_b > 0, and f_α = 0 where one of those
    parts of the gradient has no such monomial. Variables of one block are combined by the root of
    the sum of squares.
    """
    prepared = own.prepared
    blocks: dict[int, dict[tuple[int, ...], float]] = {}
    for variable, root in zip(prepared.part.variables, prepared.roots, strict=True):
        block = blocks.setdefault(prepared.blocks[variable.name], {})
        coefficients = own.look(root, prepared.root_norm(root))
        for exponent, a in zip(own.exponents[root], coefficients, strict=True):
            key = tuple(int(e) for e in exponent)
            block[key] = float(up_norm(np.array([block[key], a])) if key in block else a)
    result: dict[tuple[int, ...], float] = {}
    for b, parts in blocks.items():
        for key in parts:
            raised = (*key[:b], key[b] + 1, *key[b + 1 :])
            if sum(raised) > 1:
                result[raised] = min(_by_euler(raised, blocks))
    keys = sorted(result)
    exponents = np.array(keys, dtype=np.int64).reshape(len(keys), prepared.count)
    return Polynomial(exponents, rounded_up(np.array([result[key] for key in keys]), 2))


def _by_euler(
    alpha: tuple[int, ...], blocks: dict[int, dict[tuple[int, ...], float]]
) -> list[float]:
    result = []
    for b, power in enumerate(alpha):
        if power:
            lowered = (*alpha[:b], power - 1, *alpha[b + 1 :])
            result.append(blocks.get(b, {}).get(lowered, 0.0) / power)
    return result
