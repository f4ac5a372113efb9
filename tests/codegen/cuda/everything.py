"""An objective with every kind of kernel, for any length, and its evaluation by any target."""

from __future__ import annotations

from functools import cache

import numpy as np

from slomodel import functions as fn
from slomodel.codegen.kernels import TARGETS, Compiled, Derivatives, Kernels
from slomodel.ir import build
from slomodel.ir.dims import Dim, literal, named
from slomodel.ir.expr import Affine, Expr, Input, Lookup
from slomodel.rewrite.work import prepared

LENGTHS = (0, 1, 31, 32, 33, 255, 256, 257, 1000)
_N = named("n")
_ROWS = literal(3)
X = build.variable("x", (_N + 2,))
Y = build.variable("Y", (_ROWS, _N))
C = build.variable("c", ())
A = build.data("A", (literal(4), _N))
P = build.data("p", (literal(6),))
PLACES = (0, 1, 1, 0, 1, 0)


def _at(step: int, offset: int) -> Affine:
    return Affine(Dim((), offset), (step,))


def _sum(node: Expr) -> Expr:
    return build.sum_over(node, tuple(range(node.rank)))


def objective() -> Expr:
    """A sum of terms that need each kind of kernel, in value, gradient or product."""
    head = build.gather(X, [_at(1, 0)], (_N,))
    tail = build.gather(X, [_at(1, 2)], (_N,))
    back = build.gather(X, [Affine(_N + 1, (-1,))], (_N,))
    windows = build.gather(X, [Affine(Dim(), (1, 1))], (_N, _ROWS))
    listed = build.gather(X, [Lookup((0,), P)], (literal(6),))
    turned = build.transpose(Y, (1, 0))
    flat = build.reshape(build.transpose(fn.mul(Y, 1.5), (1, 0)), (_N * 3,))
    terms = [
        _sum(fn.mul(fn.softplus(fn.mul(head, 0.1)), fn.sin(tail))),
        _sum(fn.square(fn.sub(fn.mul(head, back), C))),
        _sum(fn.mul(fn.square(windows), 0.3)),
        _sum(fn.exp(fn.mul(listed, 0.5))),
        _sum(fn.square(build.sum_over(fn.tanh(Y), (0,)))),
        fn.mul(1e-3, _sum(fn.square(build.sum_over(fn.square(Y), (1,))))),
        _sum(fn.square(build.extreme(fn.add(Y, 0.1), "max", (0,)))),
        # Of nothing the least number is inf.
        _sum(fn.minimum(build.extreme(fn.mul(Y, 0.2), "min", (1,)), 5.0)),
        fn.minimum(build.extreme(fn.mul(Y, 0.3), "min", (0, 1)), 5.0),
        fn.mul(1e-3, _sum(fn.square(build.matmul(A, head)))),
        fn.mul(1e-3, _sum(fn.square(build.matmul(A, fn.sin(turned))))),
        _sum(fn.square(build.einsum([Y, Y], [(0, 1), (0, 1)], (1,), (_ROWS, _N)))),
        fn.mul(1e-3, _sum(fn.mul(build.scan(fn.sin(Y), fn.cos(Y), 1), Y))),
        _sum(fn.cos(fn.mul(flat, build.iota(_N * 3)))),
        build.product_over(fn.add(1.0, fn.mul(P, C)), 0),
    ]
    total = terms[0]
    for term in terms[1:]:
        total = fn.add(total, term)
    return total


@cache
def _prepared() -> tuple[Expr, dict[Input, Expr]]:
    (root,), made = prepared((objective(),), ())
    return root, dict(made)


@cache
def derivatives() -> Derivatives:
    return Derivatives(_prepared()[0], [X, Y, C])


def compiled(n: int, target: str, dtype: str = "float64") -> Compiled:
    """The objective at one length for one target."""
    own = (derivatives(), [A, P], {"n": n}, TARGETS[target], dtype)
    return Compiled("everything", *own, prepared=_prepared()[1])


def evaluated(n: int, target: str, results: int = 2, dtype: str = "float64") -> list[np.ndarray]:
    """Value and gradient, and the Hessian product, at a point that the length alone decides."""
    rng = np.random.default_rng(n)
    data = {"A": rng.normal(size=(4, n)), "p": np.array(PLACES, float)}
    kernels = Kernels(compiled(n, target, dtype), data)
    size = n + 2 + 3 * n + 1
    x, v = rng.normal(size=size), rng.normal(size=size)
    gradient, product = np.full(size, np.nan), np.full(size, np.nan)
    value = kernels.function("value_and_gradient")(x, gradient)
    both = np.append(gradient, value)
    if results == 1:
        return [both]
    kernels.function("hvp")(x, v, product)
    return [both, product]


def differs(found: list[np.ndarray], expected: list[np.ndarray]) -> float:
    """The largest difference relative to a number and the median of all; nan for a NaN."""
    return max(
        float(np.max(np.abs(one - other) / (np.abs(other) + np.median(np.abs(other)))))
        for one, other in zip(found, expected, strict=True)
    )
