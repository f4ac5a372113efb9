"""Chains of 20,000 nodes of every kind through all stages before printing.

Python's stack is 1,000 calls deep: a constructor, rule or pass that calls itself along a chain
fails here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest
import sympy as sp

import slomodel
from slomodel import functions as fn
from slomodel.calculus import gradient
from slomodel.codegen.lower import lower
from slomodel.ir import build
from slomodel.ir.dims import literal
from slomodel.ir.expr import Affine, Expr, Input
from slomodel.ir.walk import postorder
from slomodel.reference import evaluate
from slomodel.rewrite import Facts, chosen, optimized, rewritten
from slomodel.rewrite.rolling import Rolled

WIDTH = 7
X: Input = build.variable("x", (literal(WIDTH),))
AT = np.linspace(0.98, 1.02, WIDTH)
MATRIX: Input = build.data("A", (literal(2), literal(2)))
TURN = np.array([[0.6, -0.8], [0.8, 0.6]])


def element(k: int) -> Expr:
    return build.gather(X, [Affine(literal(k % WIDTH), ())], ())


def pair() -> Expr:
    return build.gather(X, [Affine(literal(0), (1,))], (literal(2),))


Step = Callable[[Expr, Expr, int], Expr]
"""The next node from the one before, an element of x and its number: in the graph and in NumPy."""

SCALARS: dict[str, Step] = {
    "add": lambda p, x, k: fn.add(p, fn.mul(1e-3, x)),
    "add on the right": lambda p, x, k: fn.add(fn.mul(1e-3, x), p),
    "sub": lambda p, x, k: fn.sub(x, fn.mul(0.5, p)),
    "neg": lambda p, x, k: fn.neg(fn.mul(x, p)),
    "mul": lambda p, x, k: fn.mul(p, x),
    "mul on the right": lambda p, x, k: fn.mul(x, p),
    "mul and scale": lambda p, x, k: fn.mul(2.0 if k % 2 else 0.5, fn.mul(p, x)),
    "div": lambda p, x, k: fn.div(p, x),
    "div on the right": lambda p, x, k: fn.div(x, fn.add(1.0, p)),
    "quotients of sums": lambda p, x, k: fn.div(fn.mul(p, x), fn.add(p, 1.0)),
    "power": lambda p, x, k: fn.pow(fn.add(p, x), fn.mul(0.1, x)),
    "square": lambda p, x, k: fn.square(fn.sub(p, x)),
    "sqrt": lambda p, x, k: fn.sqrt(fn.add(fn.square(p), fn.square(x))) if k % 2 else fn.div(p, 2),
    "exp": lambda p, x, k: fn.exp(fn.neg(fn.mul(p, x))),
    "log": lambda p, x, k: fn.log(fn.add(fn.exp(p), fn.exp(x))) if k % 2 else fn.mul(0.5, p),
    "tanh": lambda p, x, k: fn.tanh(fn.add(p, x)),
    "maximum": lambda p, x, k: fn.maximum(fn.mul(0.9, p), x),
    "where": lambda p, x, k: fn.where(fn.gt(p, x), fn.mul(0.5, p), fn.mul(2.0, p)),
    "mixed": lambda p, x, k: fn.add(fn.mul(0.5, fn.sin(p)), fn.div(x, fn.add(2.0, fn.square(p)))),
}
"""Kinds of chains of numbers."""

ARRAYS: dict[str, Step] = {
    "array times numbers": lambda p, x, k: fn.mul(x, p),
    "array over numbers": lambda p, x, k: fn.div(p, x),
    "tanh of arrays": lambda p, x, k: fn.tanh(fn.mul(fn.add(1.0, x), p)),
    "matmul": lambda p, x, k: build.matmul(MATRIX, p),
    "matmul of vectors in between": lambda p, x, k: fn.mul(x, fn.tanh(build.matmul(MATRIX, p))),
    "sums in between": lambda p, x, k: fn.mul(fn.div(1.0, build.sum_over(p, (0,))), p),
}
"""Kinds of chains of vectors (2,)."""


def chain(step: Step, start: Expr, nodes: int) -> Expr:
    """About so many nodes under one root."""
    ends = [start]
    for k in range(nodes // 2):
        ends.append(step(ends[-1], element(k), k))
    per_step = (len(postorder(ends[-1])) - WIDTH) / (nodes // 2)
    return ends[min(len(ends) - 1, round(nodes / per_step))]


def scalar(node: Expr) -> Expr:
    return build.sum_over(node, (0,)) if node.rank else node


def values(root: Expr, tables: Mapping[Input, np.ndarray] | None = None) -> np.ndarray:
    with np.errstate(all="ignore"):
        return evaluate([root], {X: AT, MATRIX: TURN, **(tables or {})})[0]


def through(root: Expr) -> tuple[Expr, ...]:
    """The objective after all rewriting, and itself with its gradient lowered."""
    rolled = Rolled(root)
    known = {MATRIX: TURN, **rolled.tables}
    stable = rewritten(rolled.root)[rolled.root]
    found = optimized(stable, Facts({}, known), chosen(True), [X]).objective
    lowered = lower([found, *gradient(found, [X])], {}, lambda f: "numexpr" in f.spelling)
    for one in (found, lowered[0]):
        np.testing.assert_allclose(values(one, rolled.tables), values(root), rtol=1e-10)
    return lowered


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", [*SCALARS, *ARRAYS])
@pytest.mark.parametrize(
    "nodes",
    [
        800,
        pytest.param(2_400, marks=pytest.mark.slow),
        pytest.param(20_000, marks=pytest.mark.slow),
    ],
)
def test_a_chain_goes_through(kind: str, nodes: int) -> None:
    step = SCALARS.get(kind) or ARRAYS[kind]
    start = element(3) if kind in SCALARS else pair()
    root = scalar(chain(step, start, nodes))
    for on_top in (fn.square, fn.neg, fn.log, lambda p: fn.mul(4.0, p), lambda p: fn.div(1.0, p)):
        assert on_top(root).shape == ()
    value, slope = through(fn.mul(2.0, fn.square(root)))
    assert (value.shape, slope.shape) == ((), (literal(WIDTH),))


@pytest.mark.parametrize("scale", ["", "2 * ", "-"])
def test_a_product_by_definitions(scale: str) -> None:
    """p_k = p_{k-1} x_k, a definition each: the gradient of p² is 2 p² / x."""
    n = 250
    lets = "".join(f"let p{k} = p{k - 1} * x[{k}]\n" for k in range(1, n))
    text = f"var x[{n}]\nlet p0 = {scale}x[0]\n{lets}minimize p{n - 1}^2"
    at = np.exp(0.01 * np.cos(np.arange(n)))
    value, slope = slomodel.compile(text, backend="numexpr").value_and_gradient(at)
    want = np.prod(at) ** 2 * (4.0 if "2" in scale else 1.0)
    assert value == pytest.approx(want, rel=1e-12)
    np.testing.assert_allclose(slope, 2.0 * want / at, rtol=1e-12)


def test_a_product_and_a_sum_in_sympy() -> None:
    n = 600
    x = sp.symbols(f"x:{n}")
    at = np.exp(0.01 * np.cos(np.arange(n)))
    model = slomodel.compile(2 * sp.Mul(*x) ** 2 + sp.log(sp.Add(*x)), backend="numexpr")
    value, slope = model.value_and_gradient(model.pack(dict(zip(map(str, x), at, strict=True))))
    product = 2.0 * np.prod(at) ** 2
    assert value == pytest.approx(product + np.log(at.sum()), rel=1e-12)
    found = model.unpack(slope)
    want = 2.0 * product / at + 1.0 / at.sum()
    np.testing.assert_allclose([float(found[str(one)]) for one in x], want, rtol=1e-12)
