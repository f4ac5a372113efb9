"""Arrays that are linear in wide data: the data they depend on, and their form for other data.

An array r[…, j] is a linear form over the samples j if r = Σ_p C_p D_p with data D_p[…, j] and
coefficients C_p independent of j. The walk goes down from r through additions, scalings and
contractions to the D_p, its *pieces*. There may be several sample labels; a node has some of them,
each on one axis. If a node is not linear over a sample label, the label is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from slomodel.functions import add, div, lnot, mul, neg, sub, where
from slomodel.ir import build
from slomodel.ir.dims import Dim, Shape
from slomodel.ir.expr import Axes, Einsum, Expr, Map

Build = Callable[[Sequence[Expr]], Expr]
Place = tuple[int | None, ...]
"""The axis of a node for each sample label; None for labels that it lacks."""


def placed(samples: Sequence[int | None], labels: Axes) -> Place:
    """The axis of each sample label in a node with these labels."""
    return tuple(
        labels.index(label) if label is not None and label in labels else None for label in samples
    )


def product(
    operands: Sequence[Expr], labels: Sequence[Axes], output: Axes, dims: Mapping[int, Dim]
) -> Expr:
    """An einsum whose labels are arbitrary integers, of sizes `dims`."""
    every = dict.fromkeys(label for own in (*labels, output) for label in own)
    number = {label: k for k, label in enumerate(every)}
    inputs = [tuple(number[label] for label in own) for own in labels]
    result = tuple(number[label] for label in output)
    return build.einsum(operands, inputs, result, [dims[label] for label in every])


@dataclass(frozen=True, slots=True)
class At:
    """A node whose axes `place` are samples; `scales` are data over all samples.

    A scale multiplies each sample; a scale of truth values replaces the samples where it is false
    by 0. The first scale is the innermost.
    """

    node: Expr
    place: Place
    scales: tuple[Expr, ...] = ()

    @property
    def own(self) -> Axes:
        """The axes that are not samples."""
        return tuple(axis for axis in range(self.node.rank) if axis not in self.place)

    @property
    def own_shape(self) -> Shape:
        return tuple(self.node.shape[axis] for axis in self.own)

    @property
    def is_free(self) -> bool:
        """True if no axis of the node is a sample axis."""
        return all(axis is None for axis in self.place)

    def scaled(self, scale: Expr) -> At:
        return At(self.node, self.place, (scale, *self.scales))

    def over(self, shape: Shape) -> Expr:
        """The node, all of whose axes are samples, broadcast along all sample axes."""
        labels = tuple(self.place.index(axis) for axis in range(self.node.rank))
        return build.einsum([self.node], [labels], tuple(range(len(shape))), shape)


@dataclass(frozen=True, slots=True)
class LinearNode:
    """A node as a linear function of others, its `parts`, from which `build` constructs it.

    `build` takes the parts with their samples replaced: their own axes in order, then one axis in
    place of all sample axes.
    """

    parts: tuple[At, ...]
    build: Build


@dataclass(frozen=True, slots=True)
class Refused:
    """The positions in `place` of labels over which a node is not linear."""

    labels: frozenset[int]


def refused(*ats: At) -> Refused:
    """The refusal of all sample labels that occur in the given nodes."""
    labels = (k for at in ats for k, axis in enumerate(at.place) if axis is not None)
    return Refused(frozenset(labels))


@dataclass(frozen=True, slots=True)
class Samples:
    """The sizes of the sample labels, and the nodes that depend on x."""

    shape: Shape
    varying: frozenset[Expr]

    def step(self, at: At) -> LinearNode | Refused | None:
        """A node as a linear function of others; None for a piece."""
        node = at.node
        if at.is_free:
            return None if node is build.const(1.0) else self._constant(at)
        if node not in self.varying:
            return None
        if isinstance(node, Map):
            return self._map(node, at)
        return self._einsum(node, at) if isinstance(node, Einsum) else refused(at)

    def _constant(self, at: At) -> LinearNode:
        """A node that is the same for all samples, as itself times a piece of ones."""
        return LinearNode((self._ones(at),), lambda made: build.outer(at.node, made[0]))

    def _ones(self, at: At) -> At:
        return At(build.const(1.0), (None,) * len(self.shape), at.scales)

    def _map(self, node: Map, at: At) -> LinearNode | Refused:
        operands = [_operand(node, k, at) for k in range(len(node.operands))]
        if node.function in (add, sub, neg):
            return LinearNode(tuple(operands), lambda made: _applied(node, at, made, ()))
        if node.function is where:
            return self._choice(node, operands, at)
        if node.function not in (mul, div):
            return refused(at)
        left, right = operands
        if right.is_free:
            return LinearNode((left,), lambda made: _applied(node, at, [made[0], right.node], (1,)))
        if node.function is div:
            return self._scaling(node, left, right)
        if left.is_free:
            return LinearNode((right,), lambda made: _applied(node, at, [left.node, made[0]], (0,)))
        if left.node in self.varying:
            return self._scaling(node, left, right)
        return self._scaling(node, right, left)

    def _scaling(self, node: Map, form: At, scale: At) -> LinearNode | Refused:
        """`form`, which has all other axes of the node, times or divided by data per sample."""
        if scale.node in self.varying or scale.own:
            return refused(scale)
        factor = scale.over(self.shape)
        if node.function is div:
            factor = build.apply(div, build.const(1.0), factor)
        return LinearNode((form.scaled(factor),), lambda made: made[0])

    def _choice(self, node: Map, operands: Sequence[At], at: At) -> LinearNode | Refused:
        """One of two linear forms, by a condition on data per sample or one without samples."""
        condition, *branches = operands
        if condition.is_free:
            whole = [condition.node]
            return LinearNode(
                tuple(branches), lambda made: _applied(node, at, [*whole, *made], (0,))
            )
        if condition.node in self.varying or condition.own:
            return refused(condition)
        holds = condition.over(self.shape)
        masked = [branches[0].scaled(holds), branches[1].scaled(build.apply(lnot, holds))]
        if branches[1].node is build.const(0.0):
            return LinearNode((masked[0],), lambda made: made[0])
        own = [_result_axes(node, k, at) for k in (1, 2)]
        shape = at.own_shape

        def chosen(made: Sequence[Expr]) -> Expr:
            last = len(shape)
            axes = [(*one, last) for one in own]
            return build.apply_along(add, made, axes, (*shape, made[0].shape[-1]))

        return LinearNode(tuple(masked), chosen)

    def _einsum(self, node: Einsum, at: At) -> LinearNode | Refused:
        present = {label for own in node.inputs for label in own}
        if len(set(node.output)) < len(node.output) or len(present | {*node.output}) < len(
            node.dims
        ):
            return refused(at)
        samples = [None if axis is None else node.output[axis] for axis in at.place]
        whole = tuple(node.output[axis] for axis in at.own)
        wide = [k for k, own in enumerate(node.inputs) if set(own) & set(samples)]
        free = [k for k in range(len(node.operands)) if k not in wide]
        moved = [k for k in wide if node.operands[k] in self.varying]

        def operand(k: int) -> At:
            own = node.inputs[k]
            return At(node.operands[k], placed(samples, own), at.scales)

        if len(moved) > 1 or any(len(set(node.inputs[k])) < len(node.inputs[k]) for k in moved):
            return refused(*(operand(k) for k in moved))
        if moved:
            form, labels = operand(moved[0]), node.inputs[moved[0]]
            for k in wide:
                if k in moved:
                    continue
                scale = operand(k)
                if scale.own or len(set(node.inputs[k])) < len(node.inputs[k]):
                    return refused(scale)
                form = form.scaled(scale.over(self.shape))
        elif wide:
            read = {label for k in free for label in node.inputs[k]} | set(whole)
            form, labels = _joined(node, wide, samples, read, at.scales)
        else:
            form, labels = self._ones(at), ()
        own = tuple(labels[axis] for axis in form.own)
        return LinearNode((form,), lambda made: _contracted(node, free, made[0], own, whole))


def _operand(node: Map, k: int, at: At) -> At:
    """Operand k with the sample labels on its own axes."""
    axes = node.axes[k]
    place = tuple(axes.index(axis) if axis in axes else None for axis in at.place)
    return At(node.operands[k], place, at.scales)


def _result_axes(node: Map, k: int, at: At) -> Axes:
    """The result's axes for operand k's own axes, after samples are replaced."""
    kept = (axis for axis in node.axes[k] if axis not in at.place)
    return tuple(at.own.index(axis) for axis in kept)


def _applied(node: Map, at: At, operands: Sequence[Expr], free: Axes) -> Expr:
    """The function of a `Map` on operands whose samples are replaced, except those in `free`."""
    size = next(one.shape[-1] for k, one in enumerate(operands) if k not in free)
    shape = (*at.own_shape, size)
    last = len(shape) - 1
    axes = [
        _result_axes(node, k, at) + (() if k in free else (last,)) for k in range(len(operands))
    ]
    return build.apply_along(node.function, operands, axes, shape)


def _joined(
    node: Einsum,
    wide: Sequence[int],
    samples: Sequence[int | None],
    read: set[int],
    scales: tuple[Expr, ...],
) -> tuple[At, Axes]:
    """The product of the operands `wide` as one piece, and its labels: those in `read`, samples."""
    labels = [node.inputs[k] for k in wide]
    if len(wide) == 1 and len(set(labels[0])) == len(labels[0]):
        return At(node.operands[wide[0]], placed(samples, labels[0]), scales), labels[0]
    every = dict.fromkeys(label for own in labels for label in own)
    kept = tuple(label for label in every if label in read or label in samples)
    result = product([node.operands[k] for k in wide], labels, kept, dict(enumerate(node.dims)))
    return At(result, placed(samples, kept), scales), kept


def _contracted(node: Einsum, free: Sequence[int], form: Expr, own: Axes, output: Axes) -> Expr:
    """The contraction with a form whose samples are replaced by one label, the last."""
    new = len(node.dims)
    operands = [node.operands[k] for k in free]
    labels = [node.inputs[k] for k in free]
    dims = {**dict(enumerate(node.dims)), new: form.shape[-1]}
    return product([*operands, form], [*labels, (*own, new)], (*output, new), dims)
