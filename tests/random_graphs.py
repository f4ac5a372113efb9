"""Random graphs like those of `strategies.graphs`, from a Generator: many, small, of all scales."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from graph_maker import LARGEST, Maker, Reals
from graph_steps import apply_function, contract, power
from literal_steps import (
    alike_rows,
    join,
    nearly_cancelling,
    scaled_function,
    smoothed_kink,
)
from strategies import REALS, SMOOTH, STEPS, Example

from slomodel import functions as fn
from slomodel.functions.shifted import logsumexp
from slomodel.ir import build
from slomodel.ir.dims import Shape, named
from slomodel.ir.expr import Const, Expr, Lookup, Scan
from slomodel.ir.function import ScalarFunction

T = TypeVar("T")
Step = Callable[[Maker], None]
SCALES = (1e-8, 1e-3, 0.1, 1.0, 1.0, 1.0, 10.0, 1e4)
POLYNOMIAL = [fn.TABLE[name] for name in ("add", "sub", "mul", "neg", "square")]


class Thrower(Maker):
    """A Maker that draws from its own generator."""

    def one_of(self, options: Sequence[T]) -> T:
        return options[int(self.rng.integers(len(options)))]

    def whole(self, least: int, most: int) -> int:
        return int(self.rng.integers(least, most + 1))

    def chance(self) -> bool:
        return bool(self.rng.integers(2))


def scan(maker: Maker) -> None:
    """y[i] = a[i] y[i-1] + x[i], its coefficients data or another node."""
    x = maker.pick(1)
    axis = maker.whole(0, x.rank - 1)
    if maker.size(x.shape[axis]) == 0:
        return  # its derivative has no shape
    by_data = fn.tanh not in maker.allowed or maker.chance()
    a: Expr = maker.data(x.shape, maker.numbers(x.shape)) if by_data else fn.tanh(x)
    maker.add(Scan(a, x, axis))


def fourth(maker: Maker) -> None:
    """A node times its square."""
    x = maker.pick()
    maker.add(fn.mul(x, fn.square(x)))


def start(maker: Maker) -> None:
    """Variables and data of any shape."""
    for k in range(maker.whole(1, 3)):
        shape = maker.shape()
        maker.add(maker.input(build.variable(f"x{k}", shape), _centre(maker, shape)))
    for _ in range(maker.whole(0, 2)):
        shape = maker.shape()
        maker.add(maker.data(shape, maker.numbers(shape)))


def start_rows(maker: Maker) -> None:
    """One or two affine functions A x + b of a vector, and weights: all (m,)."""
    m, n = named("m"), named("n")
    x = maker.input(build.variable("x0", (n,)), _centre(maker, (n,)))
    for _ in range(maker.whole(1, 2)):
        A, b = (maker.data(shape, maker.numbers(shape)) for shape in ((m, n), (m,)))
        maker.add(fn.add(build.einsum([A, x], [(0, 1), (1,)], (0,), [m, n]), b))
    maker.add(maker.data((m,), maker.numbers((m,))))


def chain(maker: Maker, activations: Sequence[ScalarFunction | None] = ()) -> Expr:
    """A product (width, m) of one to three matrices with data, or the output of a network."""
    width, m = maker.dim(), named("m")
    signal: Expr = maker.data((width, m), maker.numbers((width, m)))
    for k in range(maker.whole(1, 3)):
        below, width = width, maker.dim()
        W = maker.input(build.variable(f"x{k}", (width, below)), _centre(maker, (width, below)))
        signal = build.einsum([W, signal], [(0, 1), (1, 2)], (0, 2), [width, below, m])
        activation = maker.one_of(activations) if activations else None
        signal = signal if activation is None else activation(signal)
    return signal


def start_chain(maker: Maker, activations: Sequence[ScalarFunction | None] = ()) -> None:
    """The residuals of a product of matrices, or of a network."""
    signal = chain(maker, activations)
    maker.add(fn.sub(signal, maker.data(signal.shape, maker.numbers(signal.shape))))


ACTIVATIONS = (None, None, fn.tanh, fn.softplus, fn.sigmoid, fn.sin)


def start_layers(maker: Maker) -> None:
    """The residuals of a network of one to three layers, its activations often none."""
    start_chain(maker, ACTIVATIONS)


def start_layers_of_classes(maker: Maker) -> None:
    """Σ w_i log Σ_k exp o_ki of what a network answers, often with numbers times o."""
    o = chain(maker, ACTIVATIONS)
    sums = logsumexp(o, (0,))
    maker.add(build.inner(maker.data(sums.shape, maker.numbers(sums.shape)), sums))
    if maker.chance():
        maker.add(build.inner(maker.data(o.shape, maker.numbers(o.shape)), o))


def start_classes(maker: Maker) -> None:
    """Σ w_i log Σ_j exp u_ij, u = A x + b by samples or W z + b by classes; often with others."""
    m, k, n = named("m"), maker.dim(), named("n")
    b = maker.data((m, k), maker.numbers((m, k)))
    if maker.chance():
        A = maker.data((m, k, n), maker.numbers((m, k, n)))
        x = maker.input(build.variable("x0", (n,)), _centre(maker, (n,)))
        u = build.einsum([A, x], [(0, 1, 2), (2,)], (0, 1), [m, k, n])
    else:
        z = maker.data((m, n), maker.numbers((m, n)))
        x = maker.input(build.variable("x0", (k, n)), _centre(maker, (k, n)))
        u = build.einsum([z, x], [(0, 2), (1, 2)], (0, 1), [m, k, n])
    sums = logsumexp(fn.add(u, b), (1,))
    maker.add(build.inner(maker.data((m,), maker.numbers((m,))), sums))
    if maker.chance():
        maker.add(maker.one_of((fn.tanh, fn.square, fn.cos))(x))


def start_averages(maker: Maker) -> None:
    """Σ w_i log Σ_j exp u_ij or means under softmax, of nonlinear u; often with others."""
    m, k, n = named("m"), maker.dim(), named("n")
    A = maker.data((m, k, n), maker.numbers((m, k, n)))
    x = maker.input(build.variable("x0", (n,)), _centre(maker, (n,)))
    y = maker.input(build.variable("x1", (k,)), _centre(maker, (k,)))
    u = build.einsum([A, x], [(0, 1, 2), (2,)], (0, 1), [m, k, n])
    u = maker.one_of((fn.square, fn.tanh, fn.sin, fn.neg))(u)
    wide = build.broadcast(y, (1,), (m, k))
    u = fn.mul(u, wide) if maker.chance() else fn.add(u, wide)
    sums = logsumexp(u, (1,))
    if maker.chance():
        weights = fn.exp(fn.sub(u, build.broadcast(sums, (0,), (m, k))))
        sums = build.sum_over(fn.mul(weights, wide), (1,))
    maker.add(build.inner(maker.data((m,), maker.numbers((m,))), sums))
    if maker.chance():
        maker.add(maker.one_of((fn.tanh, fn.square, fn.cos))(x))


def start_pairs(maker: Maker) -> None:
    """Σ w_i φ(ψ(x[p_i], ..), χ(x[q_i])), p and q data that are often equal."""
    m, n = named("m"), named("n")
    x = maker.input(build.variable("x0", (n,)), _centre(maker, (n,)))
    first = maker.whole_data((m,), max(maker.size(n), 1))
    second = first if maker.chance() else maker.whole_data((m,), max(maker.size(n), 1))
    if not maker.size(n):
        maker.add(fn.sin(x))
        return
    functions = (fn.tanh, fn.square, fn.sin, fn.exp, fn.softplus)
    shift = maker.data((n,), maker.numbers((n,)))
    parts = []
    for table in (first, second):
        own = maker.one_of(functions)(fn.add(x, shift) if maker.chance() else x)
        parts.append(build.gather(own, [Lookup((0,), table)], (m,)))
    both = maker.one_of((fn.mul, fn.sub, fn.add))(*parts)
    maker.add(maker.one_of((fn.sin, fn.tanh, fn.square))(both))


def start_products(maker: Maker) -> None:
    """Functions of the elements of a product of two matrices of functions of variables."""
    m, k, n = named("m"), maker.dim(), named("n")
    x = maker.input(build.variable("x0", (m, k)), _centre(maker, (m, k)))
    y = x if maker.chance() else maker.input(build.variable("x1", (n, k)), _centre(maker, (n, k)))
    u, w = (maker.one_of((fn.neg, fn.tanh, fn.sin))(one) for one in (x, y))
    operands: list[Expr] = [u, w]
    labels: list[tuple[int, ...]] = [(0, 2), (1, 2)]
    if maker.chance():
        operands.append(maker.data((k,), maker.numbers((k,))))
        labels.append((2,))
    if maker.chance():
        labels[1] = (1, 3)  # sums over both axes by themselves
    dims = [m, m if y is x else n, k, k]
    P = build.einsum(operands, labels, (0, 1), dims[: 3 + (labels[1] == (1, 3))])
    maker.add(maker.one_of((fn.tanh, fn.sin, fn.square, fn.softplus))(P))


def start_exponentials(maker: Maker) -> None:
    """Products, quotients, roots and sums of exponentials of affine and other functions."""
    m, n = named("m"), named("n")
    A = maker.data((m, n), maker.numbers((m, n)))
    x = maker.input(build.variable("x0", (n,)), _centre(maker, (n,)))
    y = maker.input(build.variable("x1", ()), _centre(maker, ()))
    u = build.einsum([A, x], [(0, 1), (1,)], (0,), [m, n])
    exponents = [u, fn.sub(u, y), fn.mul(2.0, y), fn.neg(fn.square(y)), fn.sin(u), fn.mul(u, y)]
    positive: list[Expr] = [Const(1.0), Const(0.3)]
    for _ in range(maker.whole(2, 5)):
        positive.append(fn.exp(maker.one_of(exponents)))
        pair = maker.one_of(positive), maker.one_of(positive)
        positive.append(maker.one_of((fn.mul, fn.div, fn.add))(*pair))
        powers = (fn.square, fn.sqrt, lambda one: fn.pow(one, maker.one_of((-0.7, 1.5, 2.0))))
        if maker.chance():
            positive[-1] = maker.one_of(powers)(positive[-1])
    last = maker.one_of((fn.mul, fn.div))(maker.one_of((u, positive[-2])), positive[-1])
    last = last if last.rank else build.broadcast(last, (), (m,))
    if maker.chance():
        last = build.inner(last, build.broadcast(fn.exp(fn.neg(y)), (), (m,)))
    maker.add(maker.one_of((fn.tanh, fn.square, fn.neg))(last))


def start_norms(maker: Maker) -> None:
    """Functions of arrays over their norms along an axis, of affine and of other elements."""
    m, k, n = named("m"), maker.dim(), named("n")
    A = maker.data((m, k, n), maker.numbers((m, k, n)))
    x = maker.input(build.variable("x0", (n,)), _centre(maker, (n,)))
    u = build.einsum([A, x], [(0, 1, 2), (2,)], (0, 1), [m, k, n])
    u = maker.one_of((fn.tanh, fn.sin))(u) if maker.chance() else u
    squares = build.einsum([u, u], [(0, 1), (0, 1)], (0,), [m, k])
    norm = fn.sqrt(fn.add(squares, maker.one_of((1e-3, 0.3))))
    quotient = build.apply_along(fn.div, [u, norm], [(0, 1), (0,)], (m, k))
    maker.add(maker.one_of((fn.sin, fn.tanh, fn.square))(quotient))


def start_powers(maker: Maker) -> None:
    """A tensor of order 2 to 4 less a sum of powers of vectors."""
    width, count, order = maker.dim(), maker.dim(), maker.whole(2, 4)
    axes, turned = tuple(range(order)), maker.chance()
    shape = (width, count) if turned else (count, width)
    X = maker.input(build.variable("x0", shape), _centre(maker, shape))
    labels = [(axis, order) if turned else (order, axis) for axis in axes]
    powers = build.einsum([X] * order, labels, axes, [*[width] * order, count])
    target = maker.data((width,) * order, maker.numbers((width,) * order))
    maker.add(fn.sub(powers, target) if maker.chance() else fn.sub(target, powers))


def nothing(maker: Maker) -> None:
    """No further step."""


def _centre(maker: Maker, shape: Shape) -> Reals:
    scaled = maker.numbers(shape) * maker.one_of(SCALES)
    return np.asarray(np.clip(scaled, -LARGEST, LARGEST))


@dataclass(frozen=True, slots=True)
class Kind:
    """The functions to choose from, whether they may be near a kink, the start, the steps, and the
    least and largest dims where they are others than 1 to 3.
    """

    allowed: Sequence[ScalarFunction]
    ties: bool
    start: Step
    steps: Sequence[Step]
    dims: Mapping[str, tuple[int, int]] = field(default_factory=dict)


PLAIN = ("apply_function", "contract", "gather", "scatter", "reshape", "pad", "product")
KINDS = {
    "smooth": Kind(SMOOTH, False, start, (*STEPS, scan, fourth)),
    "any": Kind(REALS, True, start, (*STEPS, scan, fourth)),
    "polynomial": Kind(
        POLYNOMIAL,
        False,
        start,
        (*(step for step in STEPS if step.__name__ in PLAIN), scan, fourth),
    ),
    "rows": Kind(SMOOTH, False, start_rows, (apply_function, apply_function, power, fourth)),
    "long rows": Kind(SMOOTH, False, start_rows, (apply_function, power), {"n": (31, 36)}),
    "layers": Kind(SMOOTH, False, start_layers, (nothing,)),
    "layers of classes": Kind(SMOOTH, False, start_layers_of_classes, (nothing,)),
    "powers": Kind(POLYNOMIAL, False, start_powers, (nothing,)),
    "chains": Kind(SMOOTH, False, start_chain, (nothing,), {"m": (1, 40)}),
    "classes": Kind(SMOOTH, False, start_classes, (nothing,)),
    "averages": Kind(SMOOTH, False, start_averages, (nothing,)),
    "pairs": Kind(SMOOTH, False, start_pairs, (nothing,)),
    "products": Kind(SMOOTH, False, start_products, (nothing,)),
}

LITERAL = (scaled_function, nearly_cancelling, alike_rows)
WITH_LITERALS = {
    "joins": Kind(SMOOTH, True, start, (join, join, smoothed_kink, scaled_function, contract)),
    "literals": Kind(SMOOTH, False, start, (*LITERAL, *LITERAL, apply_function, contract)),
    "norms": Kind(SMOOTH, False, start_norms, (nothing,)),
    "exponentials": Kind(SMOOTH, False, start_exponentials, (nothing,)),
    "literal kinks": Kind(REALS, True, start, (*LITERAL, join, smoothed_kink, *STEPS)),
}
"""Those whose written numbers are of every size: nothing in doubles is known of their values."""


def throw(rng: np.random.Generator, kind: str, steps: int, largest: int = 3) -> Example:
    """A small graph; dims are 1 to `largest`, the scales of centre and data from 1e-8 to 1e4."""
    of_kind = {**KINDS, **WITH_LITERALS}[kind]
    ranges = {name: of_kind.dims.get(name, (1, largest)) for name in "nmp"}
    sizes = {name: int(rng.integers(low, high + 1)) for name, (low, high) in ranges.items()}
    maker = Thrower(_no_draw, sizes, rng, of_kind.allowed, of_kind.ties)
    of_kind.start(maker)
    for _ in range(maker.whole(1, steps)):
        maker.one_of(of_kind.steps)(maker)
    factor = maker.one_of(SCALES) * maker.one_of((1.0, 1e-150, 1e150, 1.0, 1.0, 1.0))
    objective = fn.mul(factor, maker.objective())
    variables = tuple(node for node in maker.inputs if node.role == "variable")
    data = tuple(node for node in maker.inputs if node.role == "data")
    return Example(objective, variables, data, sizes, maker.inputs)


def _no_draw(*given: object) -> object:
    raise AssertionError(f"drawn from Hypothesis: {given}")
