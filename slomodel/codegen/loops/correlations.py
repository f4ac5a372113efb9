"""Adjoints of convolutions as correlations: no array of all products is made.

The adjoint of y_i = Σ_p w_p x_(i+p) adds w_p y_i to place i + p. That is, for each place u, the sum
over p of w_p y_(u-p), where y is 0 outside its range: a product with windows of y between zeros,
which loops compute in registers. The terms are the same, and zeros are added to them. Where the
kernel runs backwards, as that of a Toeplitz matrix, place i - p sums the w_p y_(u+p).
"""

from __future__ import annotations

from dataclasses import dataclass

from slomodel.codegen.loops.access import Numbers
from slomodel.codegen.lower import lowered
from slomodel.ir import build
from slomodel.ir.dims import Dim
from slomodel.ir.expr import Affine, Axes, Einsum, Expr, Scatter
from slomodel.ir.walk import rewrite


def with_correlations(roots: tuple[Expr, ...], numbers: Numbers) -> tuple[Expr, ...]:
    """Lowered roots with sums of products over windows in place of products added to windows."""

    def rule(node: Expr) -> Expr:
        if not isinstance(node, Scatter) or not isinstance(node.operands[0], Einsum):
            return node
        result = _correlation(node, node.operands[0])
        return node if result is None else lowered(result, numbers)

    return rewrite(roots, rule)


@dataclass(frozen=True, slots=True)
class _Axis:
    """How an axis of the result is reached: from `offset` on, by a label, and one of a window.

    `sign` is that of the window's steps.
    """

    offset: Dim
    label: int
    window: int | None
    sign: int


def _correlation(node: Scatter, product: Einsum) -> Expr | None:
    """The scatter of a product as a product; None if the scatter does not add windows."""
    axes = _axes(node, product)
    if axes is None or len(product.operands) != 2:
        return None
    windows = {axis.window for axis in axes if axis.window is not None}
    moved = {one.label for one in axes if one.window is not None}
    if not windows:
        return None
    for kernel, values in ((0, 1), (1, 0)):
        own, other = (set(product.inputs[k]) for k in (kernel, values))
        if windows <= own - other and moved <= other - own:
            return _product(node, product, axes, kernel, values)
    return None


def _axes(node: Scatter, product: Einsum) -> list[_Axis] | None:
    result = []
    for one in node.index:
        if not isinstance(one, Affine):
            return None
        own = [axis for axis, c in enumerate(one.coefficients) if c]
        if not 1 <= len(own) <= 2 or one.coefficients[own[0]] != 1:
            return None
        if abs(one.coefficients[own[-1]]) != 1:
            return None
        # The later axis is that of the window: a convolution runs over places, then over shifts.
        labels = [product.output[axis] for axis in own]
        window = labels[1] if len(own) > 1 else None
        result.append(_Axis(one.offset, labels[0], window, one.coefficients[own[-1]]))
    used = [label for one in result for label in (one.label, one.window) if label is not None]
    in_place = all(
        one.window is not None or (not one.offset.terms and not one.offset.const) for one in result
    )
    return result if in_place and sorted(used) == sorted(product.output) else None


def _product(node: Scatter, product: Einsum, axes: list[_Axis], kernel: int, values: int) -> Expr:
    array, labels = _without_permutation(product.operands[values], product.inputs[values])
    places = {one.label: k for k, one in enumerate(axes) if one.window is not None}
    # The array between zeros, as long as all windows that end or begin at one of its places.
    shape, offsets = [], []
    for dim, label in zip(array.shape, labels, strict=True):
        if label not in places:
            shape.append(dim)
            offsets.append(Dim())
            continue
        one = axes[places[label]]
        assert one.window is not None
        before = product.dims[one.window] - 1
        shape.append(node.shape[places[label]] + before)
        offsets.append(one.offset + before if one.sign > 0 else one.offset)
    rank = array.rank
    padded = build.scatter(
        array,
        [Affine(offsets[k], tuple(int(j == k) for j in range(rank))) for k in range(rank)],
        tuple(shape),
    )
    # Its windows have an axis for each place and one for each shift, which has the opposite sign.
    dims, new = list(product.dims), dict[int, int]()
    for label, k in places.items():
        new[label] = len(dims)
        dims.append(node.shape[k])
    inside: list[int] = []
    for label in labels:
        inside += [label] if label not in places else [new[label], _window(axes, places[label])]
    index = []
    for label in labels:
        here = [int(other == new.get(label, label)) for other in inside]
        before = Dim()
        if label in places:
            window, sign = _window(axes, places[label]), axes[places[label]].sign
            here = [c - sign * int(other == window) for c, other in zip(here, inside, strict=True)]
            before = product.dims[window] - 1 if sign > 0 else Dim()
        index.append(Affine(before, tuple(here)))
    windows = build.gather(padded, index, tuple(dims[label] for label in inside))
    output = tuple(new.get(axis.label, axis.label) for axis in axes)
    operands, inputs = [product.operands[kernel], windows], [product.inputs[kernel], tuple(inside)]
    used = sorted({label for own in (*inputs, output) for label in own})
    number = {label: k for k, label in enumerate(used)}
    return build.einsum(
        operands,
        [tuple(number[label] for label in own) for own in inputs],
        tuple(number[label] for label in output),
        tuple(dims[label] for label in used),
    )


def _without_permutation(array: Expr, labels: Axes) -> tuple[Expr, Axes]:
    """The array of which a node is a permutation of axes, with the labels of its own axes."""
    while isinstance(array, Einsum) and len(array.operands) == 1:
        (own,) = array.inputs
        if sorted(own) != sorted(array.output):
            break
        shown = dict(zip(array.output, labels, strict=True))
        array, labels = array.operands[0], tuple(shown[label] for label in own)
    return array, labels


def _window(axes: list[_Axis], place: int) -> int:
    window = axes[place].window
    assert window is not None
    return window
