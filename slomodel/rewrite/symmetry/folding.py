"""Symmetric sums over their unique terms.

Σ_{b,c,…} t[b, c, …] = Σ_ν m(ν) t[ν] if t is invariant under permutations of its k indices: ν runs
over the sorted tuples and m counts the permutations of each. Every term also occurs in the full
sum, and weights are positive integers, so there is no additional cancellation: values near 0 are as
accurate as before. For k = 4 and d = 8 there are 330 tuples instead of 4096.

In Σ (T - Σ_i x_i⊗…⊗x_i)², for a symmetric T of order k, one index is left out of the tuples: the
gradient has one free index, so that both use the same residuals, which are one matrix product.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from slomodel.calculus.symmetry import Symmetries, as_product
from slomodel.functions import mul, neg
from slomodel.ir import build
from slomodel.ir.dims import Dim, Shape, number_of_elements
from slomodel.ir.expr import Affine, Axes, Const, Einsum, Expr, Index, Map, Multiset
from slomodel.ir.walk import postorder, rewrite
from slomodel.rewrite.symmetry.multisets import Multisets, swapped

# Copying elements costs a few passes over the folded arrays; smaller savings do not pay for it.
LEAST_RANK = 3
_LEAST_GAIN = 2
_LEAST_SAVED = 2000


@dataclass(frozen=True, slots=True)
class Folded:
    """Roots with symmetric sums folded, the sizes of the dims in them, and the sums folded."""

    roots: tuple[Expr, ...]
    sizes: Mapping[str, int]
    sums: tuple[tuple[Einsum, Expr], ...] = ()


def folded(
    roots: Sequence[Expr], sizes: Mapping[str, int], symmetric: Collection[Expr] = ()
) -> Folded:
    """The roots, an objective and its derivatives together, with symmetric sums folded.

    `symmetric` are nodes that are invariant under all permutations of their axes.
    """
    folder = _Folder(sizes, frozenset(symmetric))
    result = rewrite(tuple(roots), folder.sum)
    reached = set(postorder(*result))
    sums = tuple(pair for pair in folder.sums.items() if pair[1] in reached)
    return Folded(result, folder.tuples.sizes, sums)


class _Folder:
    def __init__(self, sizes: Mapping[str, int], symmetric: frozenset[Expr]) -> None:
        self.tuples = Multisets(sizes)
        self.symmetric = symmetric
        self.known = Symmetries(symmetric)
        self.sums: dict[Einsum, Expr] = {}
        self._made: dict[tuple[Expr, Axes], Expr] = {}

    def sum(self, node: Expr) -> Expr:
        """The folded form of a node that is a symmetric sum; another node itself."""
        if not isinstance(node, Einsum) or len(set(node.output)) < node.rank:
            return node
        labels = self._foldable(node)
        if not labels or not self._pays(node, labels):
            return node
        self.sums[node] = result = self._summed(node, labels)
        return result

    def _foldable(self, node: Einsum) -> Axes:
        """The largest set of labels of one operand whose order does not matter."""
        best: Axes = ()
        for operand, own in zip(node.operands, node.inputs, strict=True):
            if operand.rank < LEAST_RANK or len(set(own)) < operand.rank:
                continue
            summed = [label for label in own if label not in node.output]
            while summed:
                group = self._exchangeable(node, summed)
                summed = [label for label in summed if label not in group]
                if len(group) == operand.rank:
                    group = group[:-1]
                best = max(best, group, key=len)
        return best if len(best) > 1 else ()

    def _exchangeable(self, node: Einsum, labels: Sequence[int]) -> Axes:
        """The first label and those that it can be exchanged with."""
        first = labels[0]
        return (first, *(k for k in labels[1:] if self._exchange(node, first, k)))

    def _exchange(self, node: Einsum, a: int, b: int) -> bool:
        if node.dims[a] != node.dims[b]:
            return False
        return self.known.same_factors(node, {a: b, b: a})

    def _pays(self, node: Einsum, labels: Axes) -> bool:
        dim = node.dims[labels[0]]
        most = max(
            (operand.shape for operand in node.operands if operand.rank >= len(labels)), key=len
        )
        full = number_of_elements(most, self.tuples.sizes)
        tuples = self.tuples.number(dim, len(labels))
        fewer = full * tuples // max(1, prod([dim.size(self.tuples.sizes)] * len(labels)))
        return full >= _LEAST_GAIN * fewer and full - fewer >= _LEAST_SAVED

    def _summed(self, node: Einsum, labels: Axes) -> Expr:
        """The sum over sorted tuples; constant factors of operands are taken out of the sum."""
        dim = node.dims[labels[0]]
        weight = self.tuples.multiplicity(dim, len(labels))
        factors, operands = _without_factors(node.operands)
        plain = Einsum(operands, node.inputs, node.output, node.dims)
        inner, own, dims = self._factors(plain, labels)
        tuples = len(dims) - 1
        widest = max(range(len(inner)), key=lambda k: len(own[k]) if tuples in own[k] else -1)
        axis = own[widest].index(tuples)
        shape = inner[widest].shape
        places = [(axis,), tuple(range(len(shape)))]
        inner[widest] = build.apply_along(mul, [weight, inner[widest]], places, shape)
        result = _contracted(inner, own, node.output, dims)
        for factor in factors:
            result = build.apply(mul, factor, result)
        return result

    def _factors(self, node: Einsum, labels: Axes) -> tuple[list[Expr], list[Axes], Shape]:
        """The operands of a contraction with the tuples' label, the last, in place of `labels`."""
        tuples = len(node.dims)
        dims = (*node.dims, self.tuples.dim(node.dims[labels[0]], len(labels)))
        operands: list[Expr] = []
        inputs: list[Axes] = []
        single: dict[tuple[Expr, Axes], list[int]] = {}
        for operand, own in zip(node.operands, node.inputs, strict=True):
            inside = [label for label in own if label in labels]
            if len(inside) == 1:
                pattern = tuple(-1 if label in labels else label for label in own)
                single.setdefault((operand, pattern), []).append(inside[0])
                continue
            if inside and set(inside) == set(labels) and self._is_symmetric(operand, own, labels):
                operand, own = self._symmetric(operand, own, labels, tuples)
            elif inside:
                operand, own = self._read(operand, own, labels, tuples)
            operands.append(operand)
            inputs.append(own)
        for (operand, pattern), reached in single.items():
            axis = pattern.index(-1)
            rest = tuple(label for label in pattern if label != -1)
            if sorted(reached) == sorted(labels):
                operands.append(self.tuples.monomial(operand, axis, len(labels)))
                inputs.append((*rest, tuples))
                continue
            for label in reached:
                own = (*pattern[:axis], label, *pattern[axis + 1 :])
                one, places = self._read(operand, own, labels, tuples)
                operands.append(one)
                inputs.append(places)
        return operands, inputs, dims

    def _is_symmetric(self, operand: Expr, own: Axes, labels: Axes) -> bool:
        axes = [own.index(label) for label in labels]
        return len(own) == len(set(own)) and all(
            self.known.is_invariant(operand, swapped(operand.rank, axes[0], other))
            for other in axes[1:]
        )

    def _symmetric(self, operand: Expr, own: Axes, labels: Axes, tuples: int) -> tuple[Expr, Axes]:
        """An operand that is symmetric along `labels` at sorted tuples.

        If it is symmetric along more axes, the tuples always run along the first of them, so that
        sums over other labels share the result.
        """
        first = own.index(labels[0])
        group = [
            axis
            for axis in range(operand.rank)
            if self.known.is_invariant(operand, swapped(operand.rank, first, axis))
        ]
        others = [own[axis] for axis in group if own[axis] not in labels]
        labelled = dict(zip(group, (*labels, *others), strict=True))
        rest = tuple(
            labelled.get(axis, label)
            for axis, label in enumerate(own)
            if labelled.get(axis, label) not in labels
        )
        return self.restricted(operand, tuple(group[: len(labels)])), (*rest, tuples)

    def restricted(self, node: Expr, axes: Axes) -> Expr:
        """A node that is symmetric along `axes` at their sorted tuples: shape [others, tuples]."""
        key = (node, axes)
        if key not in self._made:
            self._made[key] = self._restricted(node, axes)
        return self._made[key]

    def _restricted(self, node: Expr, axes: Axes) -> Expr:
        # As deep as the symmetry of the node was followed, so recursion is bounded.
        rest = tuple(axis for axis in range(node.rank) if axis not in axes)
        dim = self.tuples.dim(node.shape[axes[0]], len(axes))
        shape = (*(node.shape[axis] for axis in rest), dim)
        if _is_outer(node, axes):
            assert isinstance(node, Map)
            node = as_product(node)
        if isinstance(node, Map) and node not in self.symmetric:
            place = {axis: len(rest) for axis in axes} | {axis: k for k, axis in enumerate(rest)}
            operands, placed = [], []
            for operand, own in zip(node.operands, node.axes, strict=True):
                inside = tuple(k for k, axis in enumerate(own) if axis in axes)
                operands.append(self.restricted(operand, inside) if inside else operand)
                placed.append(tuple(sorted({place[axis] for axis in own})))
            return build.apply_along(node.function, operands, placed, shape)
        if isinstance(node, Einsum) and node not in self.symmetric:
            labels = tuple(node.output[axis] for axis in axes)
            factors, inputs, dims = self._factors(node, labels)
            output = (*(node.output[axis] for axis in rest), len(dims) - 1)
            return _contracted(factors, inputs, output, dims)
        return self._at(node, tuple(range(node.rank)), axes, (*rest, -1))

    def _read(self, operand: Expr, own: Axes, labels: Axes, tuples: int) -> tuple[Expr, Axes]:
        """An operand gathered at the entries of sorted tuples along those `labels` that it has."""
        rest = tuple(dict.fromkeys(label for label in own if label not in labels))
        return self._at(operand, own, labels, (*rest, -1)), (*rest, tuples)

    def _at(self, operand: Expr, own: Axes, labels: Axes, output: Axes) -> Expr:
        """An operand gathered at the entries of sorted tuples; `output` has their axis as -1."""
        tuples = output.index(-1)
        dim = operand.shape[next(k for k, label in enumerate(own) if label in labels)]
        degree = len(labels)
        sizes = dict(zip(own, operand.shape, strict=True))
        index: list[Index] = []
        for label in own:
            if label in labels:
                j = labels.index(label)
                index.append(Multiset(tuples, dim, degree, j, j + 1))
            else:
                index.append(Affine(Dim(), tuple(int(label == other) for other in output)))
        sizes[-1] = self.tuples.dim(dim, degree)
        return build.gather(operand, index, tuple(sizes[label] for label in output))


def _is_outer(node: Expr, axes: Axes) -> bool:
    """Whether a node is a product in which some factor has some but not all of the axes."""
    return (
        isinstance(node, Map)
        and node.function is mul
        and any(0 < len(set(own) & set(axes)) < len(axes) for own in node.axes)
    )


def _contracted(
    operands: Sequence[Expr], inputs: Sequence[Axes], output: Axes, dims: Shape
) -> Expr:
    """A contraction over only those labels that the operands or the output have."""
    used = sorted({label for own in (*inputs, output) for label in own})
    renamed = [tuple(used.index(label) for label in own) for own in (*inputs, output)]
    return build.einsum(operands, renamed[:-1], renamed[-1], [dims[label] for label in used])


def _without_factors(operands: Sequence[Expr]) -> tuple[list[Expr], tuple[Expr, ...]]:
    """The operands without their constant factors, and these factors."""
    factors: list[Expr] = []
    rest: list[Expr] = []
    for operand in operands:
        while isinstance(operand, Map) and operand.function in (mul, neg):
            *scale, inner = operand.operands
            if operand.function is mul and inner.rank == 0 and scale[0].rank:
                scale, inner = [inner], scale[0]
            if inner.shape != operand.shape or any(one.rank for one in scale):
                break
            factors += scale or [build.const(-1.0)]
            operand = inner
        rest.append(operand)
    number = prod(one.value for one in factors if isinstance(one, Const))
    others = [factor for factor in factors if not isinstance(factor, Const)]
    return ([build.const(number)] if number != 1.0 else []) + others, tuple(rest)
