"""Arrays laid out anew: `reshape` and `concat`."""

from __future__ import annotations

from collections import Counter
from math import prod

from slomodel.front.site import Site
from slomodel.front.values import Value, combine
from slomodel.functions import add
from slomodel.ir import build
from slomodel.ir.dims import Dim, Shape, show_shape
from slomodel.ir.expr import Affine


def reshaped(site: Site) -> Value:
    """The elements in C order in another shape; a different total is refused where it is known."""
    x, sizes = site.x, site.sizes("sizes")
    labels = tuple(label.dim for label in x.labels)
    if _differ(x.dims, sizes):
        message = f"`reshape` to {show_shape(sizes)} needs as many elements"
        raise site.refuse(message, "the product of the sizes stays the same")
    return Value(build.reshape(x.expr, labels + sizes), x.labels, sizes)


def _differ(a: Shape, b: Shape) -> bool:
    """True when the totals differ for all sizes; dims of equal form cancel."""
    left, right = Counter(a), Counter(b)
    rest = [*(left - right).elements(), *(right - left).elements()]
    if not all(dim.is_literal for dim in rest):
        return False
    return prod(d.const for d in (left - right).elements()) != prod(
        d.const for d in (right - left).elements()
    )


def concat(site: Site) -> Value:
    """One array after the other along an axis; the other axes have equal dims."""
    a, b = site.values
    axis = site.one_axis() if a.rank else 0
    rest = [tuple(d for k, d in enumerate(v.dims) if k != axis) for v in (a, b)]
    if not a.rank or a.rank != b.rank or rest[0] != rest[1]:
        raise site.refuse(
            "`concat` takes two arrays that differ at most in the size of the axis",
            "make a number an array with `reshape(c, 1)`" if 0 in (a.rank, b.rank) else "",
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
