"""Bounds on the derivatives of the elements of a node over a ball, and their sums and multiples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval
from slomodel.bounds.arithmetic.rounding import (
    Array,
    down,
    down_mul,
    down_sqrt,
    up,
    up_add,
    up_div,
    up_mul,
)
from slomodel.ir.expr import Axes

_SKEW = float(up_div(8.0, down_mul(6.0, down_sqrt(3.0))))
"""|κ₃| <= R³/(6 √3) for numbers in an interval of length R = 2ρ, in units of ρ³."""
Triple = tuple[Array, Array, Array]
View = Callable[[Array], Array]


@dataclass(frozen=True, slots=True, eq=False)
class PathNorms:
    """Bounds for u = scale · log Σ_π exp S_π over any family of functions S_π ("paths").

    For every element and every path: ‖∇S‖, ‖D²S‖ and ‖D³S‖ over the ball. A function is a family of
    one path for every scale; families add up by pairs, and log Σ exp of families is one family.
    """

    scale: Fraction
    norms: Triple


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """Bounds on ‖D^k(u_a - u_b)‖, k = 1, 2, 3, for elements a, b that differ along `axes` alone.

    The arrays have u's shape and are constant along these axes.
    """

    axes: frozenset[int]
    norms: Triple


@dataclass(frozen=True, slots=True, eq=False)
class NodeNorms:
    """Bounds over the ball for each element u of a node, all of the node's shape.

    `slope` ‖∇u‖, `ends` λ_max(D²u) and λ_max(-D²u), both at least 0, `third` ‖D³u‖. `slopes` are
    ∇u at the centre (n, *shape); `value` and `range` those of u, None where no function reads them.
    `terms` are nodes that add up to u, each with the axes of u that its own axes are. `radius` is
    that of the ball.
    """

    slope: Array
    ends: tuple[Array, Array]
    third: Array
    path: PathNorms | None = None
    spread: Spread | None = None
    terms: tuple[tuple[NodeNorms, Axes], ...] = ()
    slopes: Interval | None = None
    value: Interval | None = None
    range: Interval | None = None
    is_constant: bool = False
    radius: float = inf

    @classmethod
    def constant(
        cls, shape: tuple[int, ...], value: Interval | None = None, range: Interval | None = None
    ) -> NodeNorms:
        """Those of numbers that do not depend on x."""
        zero = np.zeros(shape)
        bounds = cls(zero, (zero, zero), zero, value=value, range=range, is_constant=True)
        return replace(bounds, radius=0.0)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.slope.shape

    @property
    def curvature(self) -> Array:
        """Upper bounds on ‖D²u‖."""
        return np.maximum(*self.ends)

    @property
    def norms(self) -> Triple:
        return self.slope, self.curvature, self.third

    def each(self, view: View) -> NodeNorms:
        """The bounds with the same index or axes applied to all; without spread and terms."""
        path = self.path
        if path is not None:
            path = PathNorms(path.scale, _each(path.norms, view))
        upper, lower = map(view, self.ends)
        return NodeNorms(
            *(view(self.slope), (upper, lower), view(self.third), path),
            is_constant=self.is_constant,
            radius=self.radius,
        )


def _each(norms: Triple, view: View) -> Triple:
    return view(norms[0]), view(norms[1]), view(norms[2])


def at_step(u: NodeNorms, t: int) -> NodeNorms:
    """Slice t along the first axis."""

    def view(array: Array) -> Array:
        return np.asarray(array[t])

    def later(array: Array) -> Array:
        return np.asarray(array[:, t])

    spread = u.spread
    if spread is not None:
        axes = frozenset(axis - 1 for axis in spread.axes)
        spread = None if 0 in spread.axes else Spread(axes, _each(spread.norms, view))
    return replace(
        u.each(view),
        spread=spread,
        slopes=None if u.slopes is None else u.slopes.each(later),
        value=None if u.value is None else u.value.each(view),
        range=None if u.range is None else u.range.each(view),
    )


def family(u: NodeNorms, scale: Fraction) -> Triple:
    """Bounds for u as a family of this scale: its own, or that of the one path u / scale."""
    if u.path is not None and u.path.scale == scale:
        return u.path.norms
    if u.is_constant:
        return u.norms
    least = np.asarray(down(abs(float(scale))))
    first, second, third = (np.asarray(up_div(own, least)) for own in u.norms)
    return first, second, third


def with_path(u: NodeNorms, path: PathNorms | None) -> NodeNorms:
    """The bounds with those that a family gives.

    With the weights p ∝ exp S, ∇u/scale is the mean of the ∇S; D²u/scale that of the D²S plus the
    variance of ∇S·v, which is at most ρ² for ‖∇S‖ <= ρ; D³u/scale that of the D³S, plus three times
    the covariance of ∇S·v and D²S[v, v], plus the third cumulant of ∇S·v.
    """
    if path is None:
        return u
    first, second, third = path.norms
    scale = np.asarray(up(abs(float(path.scale))))
    far = up_add(second, up_mul(first, first))
    ends = (far, second) if path.scale > 0 else (second, far)
    skew = up_mul(np.asarray(_SKEW), up_mul(first, up_mul(first, first)))
    mixed = up_mul(np.asarray(3.0), up_mul(first, second))
    last = up_add(third, up_add(mixed, skew))
    return replace(
        u,
        path=path,
        slope=np.minimum(u.slope, up_mul(scale, first)),
        ends=(
            np.minimum(u.ends[0], up_mul(scale, ends[0])),
            np.minimum(u.ends[1], up_mul(scale, ends[1])),
        ),
        third=np.minimum(u.third, up_mul(scale, last)),
    )


def sum_of(a: NodeNorms, b: NodeNorms, sign: int = 1) -> NodeNorms:
    """The bounds for a + b or a - b, of the same shape."""
    other = b.ends if sign > 0 else b.ends[::-1]
    result = NodeNorms(
        up_add(a.slope, b.slope),
        (up_add(a.ends[0], other[0]), up_add(a.ends[1], other[1])),
        up_add(a.third, b.third),
        is_constant=a.is_constant and b.is_constant,
    )
    scale = a.path.scale if a.path is not None else None
    if scale is None and b.path is not None:
        scale = sign * b.path.scale
    if scale is None:
        return result
    first, second, third = (
        np.asarray(up_add(one, two))
        for one, two in zip(family(a, scale), family(b, sign * scale), strict=True)
    )
    return with_path(result, PathNorms(scale, (first, second, third)))


def multiple(u: NodeNorms, factor: Fraction) -> NodeNorms:
    """The bounds for factor · u."""
    size = np.asarray(up(abs(float(factor))))
    ends = u.ends if factor >= 0 else u.ends[::-1]
    path = u.path
    if path is not None:
        path = PathNorms(path.scale * factor, path.norms) if factor else None
    return NodeNorms(
        up_mul(size, u.slope),
        (up_mul(size, ends[0]), up_mul(size, ends[1])),
        up_mul(size, u.third),
        path,
        is_constant=u.is_constant,
    )


def stacked(parts: list[NodeNorms], shape: tuple[int, ...]) -> NodeNorms:
    """The bounds of slices along a new first axis."""
    if not parts:
        return NodeNorms.constant((0, *shape))

    def joined(arrays: list[Array]) -> Array:
        return np.stack([np.broadcast_to(one, shape) for one in arrays])

    result = NodeNorms(
        joined([one.slope for one in parts]),
        (joined([one.ends[0] for one in parts]), joined([one.ends[1] for one in parts])),
        joined([one.third for one in parts]),
        is_constant=all(one.is_constant for one in parts),
    )
    scales = {one.path.scale for one in parts if one.path is not None}
    if len(scales) == 1:
        (scale,) = scales
        own = [family(one, scale) for one in parts]
        norms = tuple(joined([one[k] for one in own]) for k in range(3))
        result = replace(result, path=PathNorms(scale, (norms[0], norms[1], norms[2])))
    axes = {one.spread.axes for one in parts if one.spread is not None}
    if len(axes) == 1 and all(one.spread is not None for one in parts):
        (common,) = axes
        spreads = [one.spread.norms for one in parts if one.spread is not None]
        norms = tuple(joined([one[k] for one in spreads]) for k in range(3))
        result = replace(
            result,
            spread=Spread(frozenset(a + 1 for a in common), (norms[0], norms[1], norms[2])),
        )
    return result
