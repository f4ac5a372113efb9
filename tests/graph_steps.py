"""The steps by which a random graph grows: each adds one node kind, in all its forms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np
from graph_maker import LARGEST, MAX_RANK, Maker, Reals, total

from slomodel import functions as fn
from slomodel.ir import build
from slomodel.ir.dims import Dim, Shape
from slomodel.ir.expr import Axes, Expr
from slomodel.ir.function import ScalarFunction

MARGIN = 0.02
MAX_LABELS = 6
CONSTANTS = (2.0, -0.5, 1.0, 0.0, 3.0, -1.0)
EXPONENTS = (2.0, 3.0, 0.5, -1.0, 1.0, 0.0, 4.0, -0.5, -2.0, 2.5)

SWITCHES: dict[ScalarFunction, Callable[..., Sequence[Reals]]] = {
    fn.abs: lambda x: [x],
    fn.sign: lambda x: [x],
    fn.relu: lambda x: [x],
    fn.maximum: lambda a, b: [a - b],
    fn.minimum: lambda a, b: [a - b],
    fn.clip: lambda x, low, high: [x - low, x - high, low - high],
    fn.huber: lambda t, delta: [np.abs(t) - delta, np.where(delta < 0, t, 1.0)],
}
"""What changes sign where a function has a kink or jump."""

RANGES = {
    (fn.tan, 0): (-1.4, 1.4),
    (fn.div, 1): (0.25, np.inf),
    (fn.pow, 0): (0.0, np.inf),
    (fn.TABLE["bose"], 0): (0.0, np.inf),
    # The first operand is at least 1/2, and their sum has to be positive.
    (fn.log_rising_factorial, 1): (-0.9, np.inf),
    (fn.digamma_difference, 1): (-0.9, np.inf),
    (fn.trigamma_difference, 1): (-0.9, np.inf),
}
"""Operands to keep in a range that the table's domains do not state."""


def fitted(maker: Maker, operands: Sequence[Expr]) -> tuple[list[Expr], list[Axes], Shape]:
    """Operands laid along the axes of one shape; what does not fit is summed to a scalar."""
    rank = sum(operand.rank for operand in operands)
    if len(operands) > 1 and rank <= MAX_RANK and maker.chance():
        starts = [sum(o.rank for o in operands[:k]) for k in range(len(operands))]
        apart = [tuple(range(s, s + o.rank)) for s, o in zip(starts, operands, strict=True)]
        return list(operands), apart, tuple(dim for o in operands for dim in o.shape)
    shape = max((operand.shape for operand in operands), key=len)
    laid: list[Expr] = []
    axes: list[Axes] = []
    for operand in operands:
        options = [
            chosen
            for chosen in combinations(range(len(shape)), operand.rank)
            if tuple(shape[axis] for axis in chosen) == operand.shape
        ]
        laid.append(operand if options else total(operand))
        axes.append(maker.one_of(options) if options else ())
    return laid, axes, shape


def inside(function: ScalarFunction, k: int, operand: Expr) -> Expr:
    """The operand moved into the domain of the function's operand k, away from its edges."""
    low, high = function.domain[k] if function.domain else (-np.inf, np.inf)
    low, high = RANGES.get((function, k), (low, high))
    if np.isfinite(low) and np.isfinite(high):
        return fn.add((low + high) / 2, fn.mul(0.45 * (high - low), fn.tanh(operand)))
    if np.isfinite(low):
        return fn.add(low + 0.5, fn.square(operand))
    if np.isfinite(high):
        return fn.sub(high - 0.5, fn.square(operand))
    return operand


def near_tie(
    maker: Maker,
    function: ScalarFunction,
    operands: Sequence[Expr],
    axes: Sequence[Axes],
    rank: int,
) -> bool:
    """Whether an element is close to where the function's derivative switches."""
    if function not in SWITCHES:
        return False
    arrays = [
        np.expand_dims(maker.value(operand), [axis for axis in range(rank) if axis not in own])
        for operand, own in zip(operands, axes, strict=True)
    ]
    return any(np.min(np.abs(s), initial=1.0) < MARGIN for s in SWITCHES[function](*arrays))


def apply_function(maker: Maker) -> None:
    """A function of the table on nodes and constants, with broadcasts."""
    function = maker.one_of(maker.allowed)
    operands = []
    for k in range(function.arity):
        operand = build.const(maker.one_of(CONSTANTS)) if k and maker.chance() else maker.pick()
        operands.append(operand)
    # Into the domain once they fit: an empty sum is 0.
    operands, axes, shape = fitted(maker, operands)
    for k, operand in enumerate(operands):
        if (function, k) != (fn.pow, 1):
            operands[k] = inside(function, k, operand)
    if function is fn.pow and np.max(np.abs(maker.value(operands[1])), initial=0.0) > LARGEST:
        operands[1] = fn.sin(operands[1])  # a sum of many, as an exponent, would overflow
    if not maker.ties and near_tie(maker, function, operands, axes, len(shape)):
        maker.add(fn.sin(operands[0]))
    else:
        maker.add(build.apply_along(function, operands, axes, shape))


def power(maker: Maker) -> None:
    """A constant exponent, on any base where it is whole."""
    exponent = maker.one_of(EXPONENTS)
    base = maker.pick()
    whole = exponent >= 0 and exponent == int(exponent)
    maker.add(fn.pow(base if whole else inside(fn.pow, 0, base), exponent))


def gap(values: Reals) -> float:
    """The middle of the widest gap between the values: a threshold that all are far from."""
    ordered = np.unique(values)
    gaps = np.diff(ordered)
    if not gaps.size or np.max(gaps) < 2 * MARGIN:
        return float(np.min(ordered, initial=0.0)) - 0.5
    widest = int(np.argmax(gaps))
    return float(ordered[widest] + ordered[widest + 1]) / 2


def condition(maker: Maker, node: Expr) -> Expr:
    """A truth value for each element of the node, by a margin."""
    compare = maker.one_of((fn.gt, fn.ge, fn.lt, fn.le))
    result = compare(node, gap(maker.value(node)))
    if maker.chance():
        mask = maker.data(node.shape, maker.zeros_and_ones(node.shape))
        other = maker.one_of((fn.eq, fn.ne))(mask, 1.0)
        result = maker.one_of((fn.land, fn.lor))(result, other)
    return fn.lnot(result) if maker.chance() else result


def choose(maker: Maker) -> None:
    """`where` over a condition and two branches, each broadcast its own way."""
    operands, axes, shape = fitted(maker, [maker.pick(), maker.pick(), maker.pick()])
    operands[0] = condition(maker, operands[0])
    maker.add(build.apply_along(fn.where, operands, axes, shape))


def choose_domain(maker: Maker) -> None:
    """`where` whose branch not taken is a NaN or infinite, also below a sum."""
    node = maker.pick()
    above = fn.sub(node, gap(maker.value(node)))
    unsafe = maker.one_of((fn.sqrt, fn.log, fn.root, lambda x: fn.pow(x, 1.5)))
    live = fn.gt(above, 0.0)
    choice = fn.where(live, unsafe(above), fn.sin(node))
    maker.add(build.sum_over(choice, (0,)) if node.rank and maker.chance() else choice)


def choose_observed(maker: Maker) -> None:
    """Data that are NaN where a mask is 0, elementwise or a row at a time under a product."""
    node = maker.pick(least_rank=1)
    by_row = node.rank == 1 and maker.chance()
    shape = (maker.dim(), *node.shape) if by_row else node.shape
    seen = maker.zeros_and_ones(shape[:1] if by_row else shape)
    values = maker.numbers(shape)
    values[seen == 0.0] = np.nan
    mask, data = maker.data(shape[: seen.ndim], seen), maker.data(shape, values)
    residual = build.matmul(data, node) if by_row else fn.mul(fn.sub(data, node), node)
    maker.add(fn.where(fn.ne(mask, 0.0), fn.sin(residual), 0.0))


def contract(maker: Maker) -> None:
    """An einsum of 1 to 4 operands: shared labels, diagonals in and out, sums, broadcasts."""
    dims: list[Dim] = []

    def label(dim: Dim) -> int:
        options = [k for k, known in enumerate(dims) if known == dim]
        if options and (len(dims) >= MAX_LABELS or maker.chance()):
            return maker.one_of(options)
        dims.append(dim)
        return len(dims) - 1

    operands, inputs = [], []
    for _ in range(maker.whole(1, 4)):
        operand = maker.pick(most_rank=min(MAX_RANK, MAX_LABELS - len(dims)))
        operands.append(operand)
        inputs.append(tuple(label(dim) for dim in operand.shape))
    for _ in range(maker.one_of((0, 0, 1))):
        dims.append(maker.dim())
    rank = maker.whole(0, min(MAX_RANK, len(dims)))
    output = tuple(maker.whole(0, len(dims) - 1) for _ in range(rank))
    maker.add(build.einsum(operands, inputs, output, dims))


def measure(maker: Maker) -> None:
    """The numbers along an axis, or its size, times a node."""
    node = maker.pick(least_rank=1)
    axis = maker.whole(0, node.rank - 1)
    number, own = (
        (build.iota(node.shape[axis]), (axis,))
        if maker.chance()
        else (build.size_of(node.shape[axis]), ())
    )
    every = tuple(range(node.rank))
    maker.add(build.apply_along(fn.mul, [number, node], [own, every], node.shape))
