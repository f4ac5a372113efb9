"""Sums of squares over many samples in terms of the Gram matrices of their data.

Let r = Σ_k ± t_k with t_k[i, j] = Σ C_k[i, p] D_k[p, j], the C_k independent of the sample j and
the D_k data only. Then Σ_ij r² = Σ_kl ± Σ C_k[i, p] C_l[i, q] G_kl[p, q], G_kl[p, q] = Σ_j D_k[p,
j] D_l[q, j], exactly: the samples are eliminated. Gram matrices are nodes of the graph, so
enclosing the graph also encloses their rounding errors.

A Gram form does not show that it is a sum of squares: its interval over a ball may contain negative
numbers. Where a nonlinear function reads it, the original form is held beside it (`same`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import slomodel.functions as table
from slomodel.bounds.part import ObjectivePart, once_per_part
from slomodel.bounds.structure.linear_predictors import is_linear
from slomodel.calculus import Known
from slomodel.calculus.degree import degree
from slomodel.calculus.gradient import total
from slomodel.functions.compound import same
from slomodel.ir import build
from slomodel.ir.dims import Dim, number_of_elements
from slomodel.ir.expr import Axes, Einsum, Expr, Map, remake
from slomodel.ir.linear import contraction_tree, repeats

_MOST_TERMS = 8
"""Largest number of terms of a residual: there is a Gram matrix for each pair."""


@dataclass(frozen=True, slots=True)
class SignedContraction:
    """sign · Σ Π factors: labels 0, 1, .. are the axes of the whole, others are summed.

    `varying` are the labels of factors that depend on x.
    """

    sign: float
    factors: tuple[tuple[Expr, Axes], ...]
    dims: tuple[Dim, ...]
    varying: frozenset[int] = frozenset()


@once_per_part
def in_gram_form(part: ObjectivePart) -> ObjectivePart:
    """The part with sums of squares in terms of Gram matrices that are smaller than the data."""
    order, varying = part.order, part.varying
    holding = _with_data(order, varying)
    ranged = _read_by_range(order, varying, part)
    products = {node for node in order if isinstance(node, Einsum) and _is_product(node)}
    symmetric: set[Expr] = set()
    done: dict[Expr, Expr] = {}
    for node in order:
        result = None
        if isinstance(node, Einsum):
            result = _gram(node, varying, holding, part, symmetric)
            if node in ranged and node in varying:
                written = node if result else _as_squares(node, varying, products)
                result = build.apply(same, result or node, written) if written else result
        done[node] = result or remake(node, tuple(done[operand] for operand in node.operands))
    known = Known(part.known.finite, part.known.symmetric | symmetric)
    return part.rewritten(done, known, written=part)


def _read_by_range(
    order: Sequence[Expr], varying: Collection[Expr], part: ObjectivePart
) -> set[Expr]:
    """The nodes whose ranges matter: operands of nonlinear nodes, and all nodes below.

    Empty for a polynomial: its derivatives are bounded from those of its parts.
    """
    if degree(part.objective, part.variables) is not None:
        return set()
    result: set[Expr] = set()
    for node in reversed(order):
        if node in varying and (node in result or not is_linear(node, varying)):
            result.update(node.operands)
    return result


def _as_squares(node: Einsum, varying: Collection[Expr], products: Collection[Expr]) -> Expr | None:
    """Σ w h² where the node is a product of two equal halves, as xᵀAᵀA x = Σ h² for h = A x.

    The factors w have labels that both halves share. None where the node is not such a product.
    Once the `products` among its factors are written out, each factor occurs twice or is a w, and
    an involution maps the labels of one half to those of the other, fixing shared labels.
    """
    if node not in products:
        return None
    term = _flattened(1.0, node, products)
    places: dict[Expr, list[Axes]] = {}
    for factor, labels in term.factors:
        places.setdefault(factor, []).append(labels)
    pairs = [(factor, own) for factor, own in places.items() if len(own) == 2]
    alone = [(factor, own[0]) for factor, own in places.items() if len(own) == 1]
    if len(pairs) + len(alone) < len(places) or not any(factor in varying for factor, _ in pairs):
        return None
    halves: list[tuple[Expr, Axes]] = []
    turned: dict[int, int] = {label: label for label in range(node.rank)}
    turned |= {label: label for _, labels in alone for label in labels}
    mine: set[int] = set()
    for factor, (one, other) in sorted(pairs, key=lambda pair: -pair[0].rank):
        if not mine.isdisjoint(label for label in other if turned.get(label) != label):
            one, other = other, one
        for label, image in zip(one, other, strict=True):
            if turned.setdefault(label, image) != image or turned.setdefault(image, label) != label:
                return None
        mine.update(one)
        halves.append((factor, one))
    both = tuple(sorted(label for label in mine if turned[label] == label))
    apart = all(turned[label] not in mine for label in mine.difference(both))
    if not apart or len(both) == len(mine) or len(turned) < len(term.dims):
        return None
    half = _einsum(halves, both, term.dims)
    return _einsum([(half, both), (half, both), *alone], tuple(range(node.rank)), term.dims)


def as_written(part: ObjectivePart) -> ObjectivePart:
    """The part before it was brought into Gram form."""
    return part.written or part


def _gram(
    node: Einsum,
    varying: Collection[Expr],
    holding: Collection[Expr],
    part: ObjectivePart,
    symmetric: set[Expr],
) -> Expr | None:
    """The sum of squares with one axis eliminated; None if it is not one or no axis qualifies."""
    if len(node.operands) != 2 or node.operands[0] is not node.operands[1] or node.output:
        return None
    r = node.operands[0]
    whole = tuple(range(r.rank))
    if r not in varying or node.inputs != (whole, whole) or len(node.dims) != r.rank:
        return None
    terms = _terms(r, varying, holding)
    if terms is None:
        return None
    for sample in whole:
        if any(sample in term.varying for term in terms):
            continue
        parts: list[Expr] = []
        for k, one in enumerate(terms):
            for other in terms[k:]:
                term = _pair(one, other, r, sample, part, symmetric)
                if term is None:
                    return None
                parts.append(term)
        return total(parts)
    return None


def _terms(
    r: Expr, varying: Collection[Expr], holding: Collection[Expr]
) -> list[SignedContraction] | None:
    """r as a sum of products, through sums and differences of arrays of its shape."""
    result: list[SignedContraction] = []
    stack = [(1.0, r)]
    while stack:
        sign, node = stack.pop()
        if len(result) + len(stack) > _MOST_TERMS or node.shape != r.shape:
            return None
        whole = tuple(range(r.rank))
        if isinstance(node, Map) and node.function in (table.add, table.sub) and node in varying:
            if any(own != whole for own in node.axes):
                return None
            turned = sign if node.function is table.add else -sign
            stack += [(sign, node.operands[0]), (turned, node.operands[1])]
        elif isinstance(node, Map) and node.function is table.neg and node in varying:
            stack.append((-sign, node.operands[0]))
        elif isinstance(node, Einsum) and node in varying and not repeats(node):
            if len(set(node.output)) < len(node.output):
                return None
            result.append(_joined(_flattened(sign, node, holding), r.rank, varying))
        else:
            labels = frozenset(whole if node in varying else ())
            result.append(SignedContraction(sign, ((node, whole),), r.shape, labels))
    return result


def _flattened(sign: float, node: Einsum, holding: Collection[Expr]) -> SignedContraction:
    """A product in which factors that are themselves products with data are written out; the labels
    of the output come first, in its order.
    """
    tree = contraction_tree(node, holding)
    summed = [label for label in range(len(tree.dims)) if label not in tree.output]
    order = [*tree.output, *summed]
    number = {label: k for k, label in enumerate(order)}
    factors = [(one, tuple(number[label] for label in own)) for one, own in tree.factors]
    return SignedContraction(sign, tuple(factors), tuple(tree.dims[label] for label in order))


def _with_data(order: Sequence[Expr], varying: Collection[Expr]) -> set[Expr]:
    """The products that depend on x and contain data at any depth."""
    result: set[Expr] = set()
    for node in order:
        if not isinstance(node, Einsum) or node not in varying or not _is_product(node):
            continue
        if any(operand not in varying or operand in result for operand in node.operands):
            result.add(node)
    return result


def _is_product(node: Einsum) -> bool:
    """Whether neither an operand nor the output repeats a label."""
    return not repeats(node) and len(set(node.output)) == node.rank


def _joined(term: SignedContraction, rank: int, varying: Collection[Expr]) -> SignedContraction:
    """The factors that depend on x merged, with the labels that the whole and the data need."""
    own = [(factor, labels) for factor, labels in term.factors if factor in varying]
    data = [(factor, labels) for factor, labels in term.factors if factor not in varying]
    if len(own) < 2:
        labels = frozenset(label for _, axes in own for label in axes)
        return SignedContraction(term.sign, term.factors, term.dims, labels)
    needed = {*range(rank), *(label for _, labels in data for label in labels)}
    kept = tuple(dict.fromkeys(label for _, labels in own for label in labels if label in needed))
    product = _einsum(own, kept, term.dims)
    return SignedContraction(term.sign, ((product, kept), *data), term.dims, frozenset(kept))


def _pair(
    one: SignedContraction,
    other: SignedContraction,
    r: Expr,
    sample: int,
    part: ObjectivePart,
    symmetric: set[Expr],
) -> Expr | None:
    """Twice the inner product of two terms (once for one term), data contracted over samples."""
    rank = r.rank
    shift = len(one.dims) - rank
    dims = (*one.dims, *other.dims[rank:])
    second = [
        (factor, tuple(label + shift if label >= rank else label for label in own))
        for factor, own in other.factors
    ]
    factors = [*one.factors, *second]
    joined = [(factor, own) for factor, own in factors if sample in own]
    kept = [(factor, own) for factor, own in factors if sample not in own]
    labels = tuple(dict.fromkeys(label for _, own in joined for label in own if label != sample))
    if not joined:
        return None
    size = number_of_elements(tuple(dims[label] for label in labels), part.sizes)
    before = sum(number_of_elements(factor.shape, part.sizes) for factor, _ in joined)
    if size >= before:
        return None
    gram = _einsum(joined, labels, dims)
    if one is other and len(joined) == 2 and len(labels) == 2:
        symmetric.add(gram)
    product = _einsum([*kept, (gram, labels)], (), dims)
    factor = one.sign * other.sign * (1.0 if one is other else 2.0)
    return table.mul(build.const(factor), product)


def _einsum(factors: Sequence[tuple[Expr, Axes]], output: Axes, dims: Sequence[Dim]) -> Expr:
    """A contraction over the labels of these factors only."""
    used = dict.fromkeys(label for _, own in factors for label in own)
    number = {label: k for k, label in enumerate(used)}
    return build.einsum(
        [factor for factor, _ in factors],
        [tuple(number[label] for label in own) for _, own in factors],
        tuple(number[label] for label in output),
        [dims[label] for label in used],
    )
