"""Contraction order: products of many arrays are multiplied in the cheapest order of pairs.

A contraction of contractions is one sum of products, Σ_a P_a (Σ_b Q_ab S_b) = Σ_ab P_a Q_ab S_b,
and such a sum may be computed pair by pair in any order; each order has a rounding error of eps
times the product of the magnitudes. The cheapest order depends on the sizes. It is chosen before
derivatives are taken, because the reverse sweep through a tree of pairs needs two products per pair
and shares the partial products of the value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from slomodel.functions.cost import Sizes, cheapest, work_of_product
from slomodel.ir import build
from slomodel.ir.dims import Shape, concrete, number_of_elements
from slomodel.ir.expr import Axes, Einsum, Expr, Input, remake
from slomodel.ir.linear import ContractionTree, contraction_tree
from slomodel.ir.walk import dependents, postorder, users
from slomodel.rewrite.facts import Facts
from slomodel.rewrite.work import is_varying_input

_MOST_TERMS = 30
# An order that saves less than this fraction is not worth a change of the generated source.
_WORTH = 0.9


def contraction_order(root: Expr, facts: Facts) -> tuple[Expr, tuple[str, ...]]:
    """The graph with products in the cheapest order, and a note on each product changed."""
    order = postorder(root)
    if not any(isinstance(node, Einsum) for node in order):
        return root, ()
    varying = dependents(order, is_varying_input)
    above = users(order)
    inner = {node for node in order if _joins(node, varying, above)}
    notes: list[str] = []
    done: dict[Expr, Expr] = {}
    for node in order:
        result = None
        if isinstance(node, Einsum) and node in varying and node not in inner:
            tree = contraction_tree(node, inner)
            result = _multiplied(tree, done, facts.sizes)
            if result is not None:
                notes.append(_note(tree))
        done[node] = result or remake(node, tuple(done[operand] for operand in node.operands))
    return done[root], tuple(notes)


def _joins(node: Expr, varying: set[Expr], above: Mapping[Expr, list[Expr]]) -> bool:
    """Whether a contraction depends on x and has one user, which is a contraction."""
    if not isinstance(node, Einsum) or node not in varying or len(above[node]) != 1:
        return False
    return isinstance(above[node][0], Einsum) and _is_plain(node)


def _is_plain(node: Einsum) -> bool:
    """Whether the result has no diagonals and every label belongs to an operand."""
    present = {label for own in node.inputs for label in own}
    return len(set(node.output)) == len(node.output) and len(present) == len(node.dims)


def _multiplied(tree: ContractionTree, done: Mapping[Expr, Expr], sizes: Sizes) -> Expr | None:
    """The product pair by pair in the cheapest order; None if that does not save work.

    Equal factors stay together, since the calculus and the schedule share their work.
    """
    count = len(tree.factors)
    if not 2 < count <= _MOST_TERMS or len({factor for factor, _ in tree.factors}) < count:
        return None
    if not _is_plain(tree.contractions[0]):
        return None
    numbers = concrete(tree.dims, sizes)
    path, least = cheapest([own for _, own in tree.factors], tree.output, numbers)
    if least >= _WORTH * _present_work(tree, sizes):
        return None
    parts = [(done[factor], own) for factor, own in tree.factors]
    for step in path:
        chosen = [parts.pop(k) for k in sorted(step, reverse=True)][::-1]
        if len(chosen) != 2:
            return None
        read = {label for _, own in parts for label in own} | set(tree.output)
        parts.append(_pair(chosen, read, tree.output if not parts else None, tree.dims))
    return parts[0][0]


def _present_work(tree: ContractionTree, sizes: Sizes) -> float:
    """Operations of the tree as written; of all terms at once if it is a single contraction."""
    if len(tree.contractions) == 1:
        return float(len(tree.factors) * number_of_elements(tree.dims, sizes))
    parts = ((one.inputs, one.output, concrete(one.dims, sizes)) for one in tree.contractions)
    return sum(work_of_product(*part) for part in parts)


def _pair(
    parts: Sequence[tuple[Expr, Axes]], read: set[int], output: Axes | None, dims: Shape
) -> tuple[Expr, Axes]:
    """The product of parts, summed over the labels that later products and the output lack."""
    labels = [own for _, own in parts]
    every = dict.fromkeys(label for own in labels for label in own)
    kept = tuple(label for label in every if label in read) if output is None else output
    number = {label: k for k, label in enumerate(every)}
    inputs = [tuple(number[label] for label in own) for own in labels]
    einsum = build.einsum(
        [node for node, _ in parts],
        inputs,
        tuple(number[label] for label in kept),
        tuple(dims[label] for label in every),
    )
    return einsum, kept


def _note(tree: ContractionTree) -> str:
    names = [factor.name if isinstance(factor, Input) else "…" for factor, _ in tree.factors]
    return f"product of {', '.join(names)}"
