"""Arrays laid out anew: `reshape` and `concat`."""

from __future__ import annotations

from collections import Counter

from slomodel.front.elaboration.comprehension import size_product
from slomodel.front.elaboration.site import Site
from slomodel.front.elaboration.values import Value, combine
from slomodel.functions import add, eq
from slomodel.ir import build
from slomodel.ir.dims import Dim, Shape, show_shape
from slomodel.ir.expr import Affine
from slomodel.problem import Check


def reshaped(site: Site) -> Value:
    """The elements in C order in another shape; a different total is refused, here or at bind."""
    x, sizes = site.x, site.sizes("sizes")
    before, after = _without_common(x.dims, sizes)
    counts = size_product(before), size_product(after)
    same = combine(eq, *counts).expr
    if same is build.const(False):
        message = f"`reshape` to {show_shape(sizes)} needs an array of as many elements"
        raise site.refuse(message, "the product of the sizes stays the same")
    if same is not build.const(True):
        text = site.span.text
        wrong = f"`{text}` would not keep the number of elements"
        site.scope.model.checks.append(Check(same, text, site.span, wrong))
    labels = tuple(label.dim for label in x.labels)
    return Value(build.reshape(x.expr, labels + sizes), x.labels, sizes)


def _without_common(a: Shape, b: Shape) -> tuple[list[Dim], list[Dim]]:
    """The dims of each that the other has not; equal ones cancel in the totals."""
    left, right = Counter(a), Counter(b)
    return list((left - right).elements()), list((right - left).elements())


def concat(site: Site) -> Value:
    """One array after the other along an axis; the other axes have equal dims."""
    a, b = site.values
    axis = site.one_axis() if a.rank else 0
    rest = [tuple(d for k, d in enumerate(v.dims) if k != axis) for v in (a, b)]
    if not a.rank or a.rank != b.rank or rest[0] != rest[1]:
        raise site.refuse(
            "`concat` takes two arrays that differ at most in the size of the axis",
            "make a number an array with `reshape(c, 1)`, a vector a matrix with `x[:, None]`",
        )
    size = a.dims[axis] + b.dims[axis]
    dims = (*a.dims[:axis], size, *a.dims[axis + 1 :])
    return combine(
        add,
        _placed(a, dims, axis, Dim()),
        _placed(b, dims, axis, a.dims[axis]),
    )


def _placed(value: Value, dims: Shape, axis: int, start: Dim) -> Value:
    """Zeros of shape `dims` with the value at `start` along an axis."""
    own = tuple(label.dim for label in value.labels)
    rank = len(own) + len(dims)
    index = [
        Affine(start if k == len(own) + axis else Dim(), tuple(int(j == k) for j in range(rank)))
        for k in range(rank)
    ]
    return Value(build.scatter(value.expr, index, own + dims), value.labels, dims)
