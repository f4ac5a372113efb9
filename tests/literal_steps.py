"""Steps with literals of every magnitude: 1e-16 to 1e16 where a constant can occur.

Most come in pairs s and 1/s, so that what is computed is of ordinary size: s φ(t/s), a threshold of
s t at s a, a term 1e-13 t under a factor of 1e13. Numbers that ought to be the same are often off
in one of their last digits: then a kink is one, however small a tolerance would call it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from graph_maker import Maker
from graph_steps import CONSTANTS, fitted

from slomodel import functions as fn
from slomodel.ir import build
from slomodel.ir.dims import Shape
from slomodel.ir.expr import Axes, Expr

LARGEST_EXPONENT = 16
DIGITS = (1, 2, 4, 17)
FIRST_OFF, LAST_OFF = 9, 17
KINKED: tuple[Callable[[Expr], Expr], ...] = (fn.abs, fn.relu)
ROUNDED: tuple[Callable[[Expr], Expr], ...] = (fn.tanh, fn.sin, fn.square, fn.logcosh, fn.sigmoid)


def literal(maker: Maker) -> float:
    """A number of 1 to 17 digits with an exponent from -16 to 16."""
    digits, sign = maker.one_of(DIGITS), maker.one_of(("", "", "-"))
    exponent = maker.whole(-LARGEST_EXPONENT, LARGEST_EXPONENT)
    return float(f"{sign}{maker.rng.uniform(1.0, 9.9):.{digits - 1}f}e{exponent}")


def pair(maker: Maker) -> tuple[float, float]:
    """s and, mostly, about 1/s, else another; one time in three both are ordinary."""
    if maker.whole(0, 2) == 0:
        return maker.one_of(CONSTANTS[:3]), maker.one_of(CONSTANTS[:3])
    s = literal(maker)
    if maker.whole(0, 3) == 0:
        return s, literal(maker)
    return s, float(f"{1.0 / s:.{maker.one_of(DIGITS) - 1}e}")


def equal(maker: Maker, number: float) -> float:
    """The number, or one that differs in one of its last digits."""
    if maker.chance():
        return number
    off = 10.0 ** -maker.whole(FIRST_OFF, LAST_OFF)
    return number * (1.0 + maker.one_of((off, -off)))


def near_value(maker: Maker, node: Expr) -> float:
    """A number near an element of the node, with few digits or all."""
    values = np.ravel(maker.value(node))
    one = float(values[maker.whole(0, len(values) - 1)]) if len(values) else 0.0
    return float(f"{one + maker.one_of((0.0, 0.0, 0.01, -0.1)):.{maker.one_of(DIGITS)}g}")


def scaled_function(maker: Maker) -> None:
    """s φ(u t), s φ(u t − a) or s max(u t, a)."""
    s, u = pair(maker)
    node = maker.pick()
    a = u * near_value(maker, node)
    inner = fn.mul(u, node)
    if maker.chance():
        inner = fn.sub(inner, a) if maker.chance() else inner
        found = maker.one_of((*KINKED, *ROUNDED) if maker.ties else ROUNDED)(inner)
    elif maker.ties:
        choices = (
            fn.maximum(inner, a),
            fn.minimum(inner, a),
            fn.huber(inner, np.abs(a) + np.abs(u)),
        )
        found = maker.one_of(choices)
    else:
        found = fn.sqrt(fn.add(np.square(u), fn.square(inner)))
    maker.add(fn.mul(s, found))


def smoothed_kink(maker: Maker) -> None:
    """s k(u (t − a)) v (t − b), b = a or nearly, k a kink: C¹ where b = a only."""
    s, u = pair(maker)
    node = maker.pick()
    a = near_value(maker, node)
    kink = maker.one_of(KINKED)(fn.mul(u, fn.sub(node, a)))
    maker.add(fn.mul(s, fn.mul(kink, fn.sub(node, equal(maker, a)))))


def join(maker: Maker) -> None:
    """s·where(t > a, p(t), q(t)), whose difference often vanishes at a to some order.

    Of p and q one has the term u (t − b)^k g more than the other, with b = a or nearly so; what
    else is in both has coefficients that are the same or nearly.
    """
    s, u = pair(maker)
    (t, g), (own, other), shape = fitted(maker, [maker.pick(), maker.pick()])
    a = near_value(maker, t)
    step = fn.sub(t, equal(maker, a))
    power = maker.one_of((step, fn.square(step), fn.square(step), fn.pow(step, 3.0)))
    term = fn.mul(u, power)
    if maker.chance():
        product = build.apply_along(fn.mul, [term, fn.cos(g)], [own, other], shape)
    else:
        product = build.broadcast(term, own, shape)
    first, second = _both(maker, t, own, shape)
    product = product if first is None else fn.add(product, first)
    rest: Expr = build.broadcast(build.const(0.0), (), shape) if second is None else second
    w = maker.one_of((1.0, 1.0, u))
    compare = maker.one_of((fn.gt, fn.ge, fn.lt, fn.le))
    holds = build.broadcast(compare(fn.mul(w, t), w * a), own, shape)
    branches = (product, rest) if maker.chance() else (rest, product)
    maker.add(fn.mul(s, fn.where(holds, *branches)))


def _both(maker: Maker, t: Expr, own: Axes, shape: Shape) -> tuple[Expr | None, Expr | None]:
    """The same c t in both branches, or nearly the same; or nothing."""
    if maker.chance():
        return None, None
    c = literal(maker) if maker.chance() else maker.one_of(CONSTANTS[:3])
    both = [fn.mul(one, t) for one in (c, equal(maker, c))]
    return build.broadcast(both[0], own, shape), build.broadcast(both[1], own, shape)


def nearly_cancelling(maker: Maker) -> None:
    """s (c t² − c' t²): with c' = c or nearly, times what makes the rest of ordinary size."""
    node = maker.pick()
    c = literal(maker)
    s = maker.one_of((1.0, 1.0 / c, 1e13 / c))
    terms = [fn.mul(one, fn.square(node)) for one in (c, equal(maker, c))]
    maker.add(fn.mul(s, fn.sub(*terms)))


def alike_rows(maker: Maker) -> None:
    """φ(A t) with rows that repeat, or nearly; or tᵀ A t with A symmetric, or nearly."""
    node = maker.pick(least_rank=1, most_rank=1)
    n = node.shape[0]
    if maker.chance():
        A = maker.numbers((n, n))
        A = (A + A.T) * (1.0 + 10.0 ** -maker.whole(FIRST_OFF, LAST_OFF) * np.sign(A))
        data = maker.data((n, n), A * np.abs(literal(maker)))
        maker.add(build.einsum([node, data, node], [(0,), (0, 1), (1,)], (), [n, n]))
        return
    m = maker.dim()
    row = maker.numbers((m, n))[:1]
    off = 10.0 ** -maker.whole(FIRST_OFF, LAST_OFF)
    data = maker.data((m, n), row * (1.0 + off * maker.numbers((m, n))) * maker.one_of((1.0, 1e8)))
    u = build.einsum([data, node], [(0, 1), (1,)], (0,), [m, n])
    maker.add(maker.one_of(ROUNDED)(u))
