"""Lowering: the same functions in the few simple forms that a schedule can execute.

After it every `Einsum` is a sum along axes of one operand, a permutation, a broadcast, or a product
of two operands with at least one summed label; the output labels of a product are the batch labels,
then the left operand's own, then the right's. Products without a sum have become `Map`s, and
functions that the target cannot spell are replaced by their stable forms. Sizes only determine the
order of contractions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch

from slomodel.codegen.factorisations import factored
from slomodel.codegen.powers import power_by_products
from slomodel.functions import add, mul, pow
from slomodel.functions.cost import Sizes, cheapest
from slomodel.ir import build
from slomodel.ir.dims import Dim, Shape, concrete
from slomodel.ir.expr import Affine, Axes, Const, Einsum, Expr, Map, MatrixOperation, Recur
from slomodel.ir.function import ScalarFunction
from slomodel.ir.loop import Loop
from slomodel.ir.walk import rewrite


def lower(
    roots: Sequence[Expr], sizes: Sizes, spells: Callable[[ScalarFunction], bool]
) -> tuple[Expr, ...]:
    """The roots in simple forms, for a target that has the functions for which `spells` holds."""
    simple = expand(tuple(roots), spells)
    loops: dict[Loop, Loop] = {}

    def rule(node: Expr) -> Expr:
        if not isinstance(node, Recur):
            return lowered(node, sizes)
        if node.loop not in loops:
            loops[node.loop] = _lowered_loop(node.loop, sizes, spells)
        return Recur(node.operands, loops[node.loop], node.state)

    return shared(rewrite(simple, rule))


def _lowered_loop(loop: Loop, sizes: Sizes, spells: Callable[[ScalarFunction], bool]) -> Loop:
    """The loop with the values of its updates in simple forms."""
    values = lower([update.value for update in loop.updates], sizes, spells)
    updates = (replace(one, value=v) for one, v in zip(loop.updates, values, strict=True))
    return replace(loop, updates=tuple(updates))


def expand(roots: tuple[Expr, ...], spells: Callable[[ScalarFunction], bool]) -> tuple[Expr, ...]:
    """The roots with every function that the target lacks replaced by its stable form."""

    def rule(node: Expr) -> Expr:
        if not isinstance(node, Map) or spells(node.function) or node.function.stable is None:
            return node
        value = node.function.stable(*build.aligned(node))
        return value if value.shape == node.shape else build.broadcast(value, (), node.shape)

    while True:
        again = rewrite(roots, rule)
        if again == roots:
            return roots
        roots = again


@singledispatch
def lowered(node: Expr, sizes: Sizes) -> Expr:
    """A node over lowered operands in simple forms."""
    return node


@lowered.register
def _(node: Map, sizes: Sizes) -> Expr:
    base, *others = node.operands
    if node.function is pow and base.rank and isinstance(others[0], Const):
        product = power_by_products(base, others[0].value)
        if product is not None:
            return build.broadcast(product, node.axes[0], node.shape)
    # Reconstructed because an operand may have become a broadcast, which a Map absorbs.
    return build.apply_along(node.function, node.operands, node.axes, node.shape)


@lowered.register
def _(node: Einsum, sizes: Sizes) -> Expr:
    einsum = build.einsum(node.operands, node.inputs, node.output, node.dims)
    if not isinstance(einsum, Einsum):
        return einsum
    node = einsum
    unique = tuple(dict.fromkeys(node.output))
    if any(not node.dims[k].size(sizes) for k in range(len(node.dims)) if k not in unique):
        return build.zeros(node.shape)  # an empty sum, whatever its factors are
    terms = _Terms(node, sizes)
    scale = terms.take_scalars() if node.dtype == "real" else []
    terms.take_diagonals()
    terms.sum_alone(unique)
    operand, labels = terms.contract(unique)
    kept = tuple(label for label in unique if label in labels)
    result = build.transpose(operand, tuple(labels.index(label) for label in kept))
    for factor in scale:
        result = build.apply(mul, factor, result)
    shape = tuple(node.dims[label] for label in unique)
    places = tuple(unique.index(label) for label in kept)
    result = build.broadcast(result, places, shape)
    return result if len(unique) == len(node.output) else _on_diagonal(result, unique, node.output)


@lowered.register
def _(node: MatrixOperation, sizes: Sizes) -> Expr:
    result = factored(node)
    return result if result is node else rewrite((result,), lambda one: lowered(one, sizes))[0]


def _on_diagonal(value: Expr, unique: Axes, output: Axes) -> Expr:
    dims = dict(zip(unique, value.shape, strict=True))
    index = [Affine(Dim(), tuple(int(other == label) for other in unique)) for label in output]
    return build.scatter(value, index, tuple(dims[label] for label in output))


class _Terms:
    """The operands of one Einsum with their labels, during its decomposition."""

    def __init__(self, node: Einsum, sizes: Sizes) -> None:
        self.operands = list(node.operands)
        self.labels = list(node.inputs)
        self.dims = node.dims
        self.sizes = sizes
        present = {label for own in (*self.labels, node.output) for label in own}
        self.factors = [
            build.size_of(dim) for label, dim in enumerate(node.dims) if label not in present
        ]

    def take_scalars(self) -> list[Expr]:
        """Scalar operands and sizes of labels without an operand: final factors of the result."""
        scalars = [operand for operand in self.operands if not operand.rank]
        self.labels = [own for own in self.labels if own]
        self.operands = [operand for operand in self.operands if operand.rank]
        return [*self.factors, *scalars]

    def take_diagonals(self) -> None:
        """Replace a label that an operand has twice by a gather of the diagonal."""
        for k, own in enumerate(self.labels):
            unique = tuple(dict.fromkeys(own))
            if len(unique) < len(own):
                index = [Affine(Dim(), tuple(int(u == label) for u in unique)) for label in own]
                shape = self._shape(unique)
                self.operands[k] = build.gather(self.operands[k], index, shape)
                self.labels[k] = unique

    def sum_alone(self, output: Axes) -> None:
        """Sum each operand along the labels that occur in it alone, before any product."""
        for k, own in enumerate(self.labels):
            others = {label for j, labels in enumerate(self.labels) if j != k for label in labels}
            alone = [label for label in own if label not in others and label not in output]
            if alone:
                axes = tuple(own.index(label) for label in alone)
                self.operands[k] = build.sum_over(self.operands[k], axes)
                self.labels[k] = tuple(label for label in own if label not in alone)

    def contract(self, output: Axes) -> tuple[Expr, Axes]:
        """The product of all operands, pair by pair in the cheapest order, and its labels."""
        if not self.operands:
            return build.const(1.0), ()
        path = self._path(output)
        self._arrange(path)
        for step in path:
            group = [self._pop(k) for k in sorted(step, reverse=True)][::-1]
            while len(group) > 1:
                waiting = [own for _, own in group[2:]]
                kept = {label for own in (*self.labels, *waiting, output) for label in own}
                last = not self.operands and len(group) == 2
                wanted = output if last else ()
                group[:2] = [_pair(group[0], group[1], kept, self.dims, wanted)]
            self.operands.append(group[0][0])
            self.labels.append(group[0][1])
        return self.operands[0], self.labels[0]

    def _arrange(self, path: Sequence[tuple[int, ...]]) -> None:
        """Let equal operands enter the path in the order in which they were written.

        The cost is the same in any order; in this one their labels stay together in the products,
        and fewer products have to be permuted.
        """
        leaves = [[k] for k in range(len(self.operands))]
        for step in path:
            group = [leaves.pop(k) for k in sorted(step, reverse=True)][::-1]
            leaves.append([leaf for part in group for leaf in part])
        places: dict[Expr, list[int]] = {}
        for leaf in leaves[0]:
            places.setdefault(self.operands[leaf], []).append(leaf)
        terms = list(zip(self.operands, self.labels, strict=True))
        for reached in places.values():
            for place, leaf in zip(reached, sorted(reached), strict=True):
                self.operands[place], self.labels[place] = terms[leaf]

    def _pop(self, k: int) -> tuple[Expr, Axes]:
        return self.operands.pop(k), self.labels.pop(k)

    def _shape(self, labels: Axes) -> Shape:
        return tuple(self.dims[label] for label in labels)

    def _path(self, output: Axes) -> list[tuple[int, ...]]:
        if len(self.operands) < 3:
            return [(0, 1)] * (len(self.operands) - 1)
        return cheapest(self.labels, output, concrete(self.dims, self.sizes))[0]


def _pair(
    left: tuple[Expr, Axes],
    right: tuple[Expr, Axes],
    kept: set[int],
    dims: Shape,
    wanted: Axes,
) -> tuple[Expr, Axes]:
    """The product of two operands, summed over the labels that are not in `kept`.

    `wanted` is the order of labels in the final result: the operands are swapped to follow it.
    """
    (a, own), (b, other) = left, right
    summed = [label for label in own if label in other and label not in kept]
    if not summed:
        return _product(left, right, dims, wanted)
    blocks = Blocks.of(own, other, kept)
    if blocks.batch + blocks.right + blocks.left == wanted != blocks.output:
        (a, own), (b, other) = (b, other), (a, own)
        blocks = Blocks.of(own, other, kept)
    a, own = _laid_out(a, own, (*blocks.batch, *blocks.left, *blocks.summed), blocks)
    b, other = _laid_out(b, other, (*blocks.batch, *blocks.right, *blocks.summed), blocks)
    # Numbered by first appearance, so that equal products are one node.
    order = {label: k for k, label in enumerate(dict.fromkeys((*own, *other)))}
    output = blocks.output
    node = Einsum(
        (a, b),
        (tuple(order[k] for k in own), tuple(order[k] for k in other)),
        tuple(order[k] for k in output),
        tuple(dims[label] for label in order),
    )
    return node, output


def _laid_out(operand: Expr, labels: Axes, wanted: Axes, blocks: Blocks) -> tuple[Expr, Axes]:
    """The operand itself if its blocks are contiguous in memory, else permuted into `wanted`.

    The schedule copies a permutation that is the operand of a product.
    """
    if blocks.fits(labels):
        return operand, labels
    return build.transpose(operand, tuple(labels.index(label) for label in wanted)), wanted


def _product(
    left: tuple[Expr, Axes], right: tuple[Expr, Axes], dims: Shape, wanted: Axes
) -> tuple[Expr, Axes]:
    (a, own), (b, other) = left, right
    if set(own).isdisjoint(other) and wanted[: len(other)] == other:
        (a, own), (b, other) = (b, other), (a, own)
    # The order of the wider operand is preserved, so that only the narrower one is ever permuted.
    if len(other) > len(own):
        (a, own), (b, other) = (b, other), (a, own)
    output = own + tuple(label for label in other if label not in own)
    order = tuple(sorted(range(len(other)), key=lambda k: output.index(other[k])))
    b = build.transpose(b, order)
    axes = [tuple(range(len(own))), tuple(sorted(output.index(label) for label in other))]
    shape = tuple(dims[label] for label in output)
    return build.apply_along(mul, (a, b), axes, shape), output


@dataclass(frozen=True, slots=True)
class Blocks:
    """Labels of a product: `batch` in both operands and the result, own ones, and summed ones."""

    batch: Axes
    left: Axes
    right: Axes
    summed: Axes

    @classmethod
    def of(cls, own: Axes, other: Axes, kept: Iterable[int]) -> Blocks:
        """The blocks of a product of operands labelled `own` and `other`, for output labels `kept`.

        The order of the summed labels is that of an operand that then needs no permutation.
        """
        shared = set(own) & set(other)
        batch = tuple(label for label in own if label in shared and label in kept)
        left = tuple(label for label in own if label not in shared)
        right = tuple(label for label in other if label not in shared)
        summed = tuple(label for label in own if label in shared and label not in kept)
        blocks = cls(batch, left, right, summed)
        if not blocks.fits(other):
            by_other = tuple(label for label in other if label in summed)
            again = cls(batch, left, right, by_other)
            if again.fits(own) and again.fits(other):
                return again
        return blocks

    @classmethod
    def of_node(cls, node: Einsum) -> Blocks:
        """The blocks of a lowered product."""
        return cls.of(node.inputs[0], node.inputs[1], node.output)

    @property
    def output(self) -> Axes:
        return self.batch + self.left + self.right

    def fits(self, labels: Axes) -> bool:
        """Whether an operand's batch labels lead and its other blocks are each contiguous."""
        rest = labels[len(self.batch) :]
        free = tuple(label for label in rest if label not in self.summed)
        in_order = rest in (free + self.summed, self.summed + free)
        return labels[: len(self.batch)] == self.batch and in_order

    def summed_last(self, labels: Axes) -> bool:
        """Whether the summed block is the last of an operand that needs no permutation."""
        return labels[len(labels) - len(self.summed) :] == self.summed


_COMMUTATIVE = (add, mul)


def shared(roots: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Lowered roots, where sums and products that differ in the order of operands are one node."""
    seen: set[Expr] = set()

    def rule(node: Expr) -> Expr:
        result = _swapped(node, seen) or node
        seen.add(result)
        return result

    return rewrite(roots, rule)


def _swapped(node: Expr, seen: set[Expr]) -> Expr | None:
    """The equal node with swapped operands among those `seen`, permuted to this node's order."""
    if len(node.operands) != 2 or node.operands[0] is node.operands[1]:
        return None
    if isinstance(node, Map) and node.function in _COMMUTATIVE:
        other = Map(node.function, node.operands[::-1], node.axes[::-1], node.shape)
        return other if other in seen else None
    return _transposed(node, seen) if isinstance(node, Einsum) else None


def _transposed(node: Einsum, seen: set[Expr]) -> Expr | None:
    blocks = Blocks.of_node(node)
    if not blocks.summed:
        return None
    b, a = node.inputs
    number = {label: k for k, label in enumerate(dict.fromkeys((*a, *b)))}
    own = tuple(number[label] for label in a), tuple(number[label] for label in b)
    # In the other node's order of labels: batch, then its left operand's, then its right one's.
    output = (*blocks.batch, *blocks.right, *blocks.left)
    dims = tuple(node.dims[label] for label in number)
    other = Einsum(node.operands[::-1], own, tuple(number[label] for label in output), dims)
    if other not in seen:
        return None
    return build.transpose(other, tuple(output.index(label) for label in node.output))
