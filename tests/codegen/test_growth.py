"""The work of printing a chain of operations is proportional to its length."""

from __future__ import annotations

import sys
from types import FrameType

import pytest

from slomodel import functions as fn
from slomodel.codegen.kernels import TARGETS, Compiled, Derivatives
from slomodel.ir import build
from slomodel.ir.dims import named
from slomodel.ir.expr import Affine, Expr, Input

N = named("n")
X = build.variable("x", (N,))
S = build.variable("s", ())


def numbers(length: int) -> tuple[Expr, Input]:
    """A chain of operations on numbers."""
    y = fn.exp(S)
    for _ in range(length):
        y = fn.sin(fn.add(y, S))
    return y, S


def elementwise(length: int) -> tuple[Expr, Input]:
    """A chain of operations on arrays, each element from that at its own place."""
    y = fn.exp(X)
    for _ in range(length):
        y = fn.sin(fn.add(y, X))
    return build.sum_over(y, (0,)), X


def reversed_each_time(length: int) -> tuple[Expr, Input]:
    """A chain whose every operation needs a loop of its own, with all its arrays alive at once."""
    y = fn.exp(X)
    for _ in range(length):
        back = build.gather(y, [Affine(N - 1, (-1,))], (N,))
        y = fn.sin(fn.add(back, fn.cos(X)))
    return build.sum_over(y, (0,)), X


def lines_run(chain: tuple[Expr, Input], target: str) -> int:
    """How many lines of Python run to print value and gradient."""
    objective, variable = chain
    compiled = Compiled(
        "chain", Derivatives(objective, [variable]), [], {"n": 100}, TARGETS[target]
    )
    compiled.derivatives.entry("value_and_gradient")
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> object:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        compiled.source(("value_and_gradient",))
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("target", ["c", "cuda", "numpy", "numexpr"])
@pytest.mark.parametrize("chain", [numbers, elementwise, reversed_each_time])
def test_four_times_the_length_is_four_times_the_work(chain, target: str) -> None:
    short, long = (lines_run(chain(length), target) for length in (100, 400))
    assert long < 4.25 * short
