"""The work of printing a chain of operations is proportional to its length."""

from __future__ import annotations

import re
import sys
from types import FrameType

import numpy as np
import pytest

import slomodel
from slomodel import functions as fn
from slomodel.codegen.kernels import TARGETS, Compiled, Derivatives, Kernels
from slomodel.codegen.native import pieces, repeated
from slomodel.codegen.native.compiler import flags_of
from slomodel.codegen.python import functions
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


@pytest.mark.sampled(4)
@pytest.mark.parametrize("target", ["c", "cuda", "numpy", "numexpr"])
@pytest.mark.parametrize("chain", [numbers, elementwise, reversed_each_time])
def test_four_times_the_length_is_four_times_the_work(chain, target: str) -> None:
    short, long = (lines_run(chain(length), target) for length in (60, 240))
    assert long < 4.25 * short


@pytest.mark.parametrize(
    ("chain", "length"), [(numbers, 1200), (elementwise, 300), (reversed_each_time, 150)]
)
def test_no_function_in_c_grows_with_the_chain(
    chain, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A compiler's time for one function grows faster than its length.
    monkeypatch.setattr(repeated, "MANY", 10**9)
    objective, variable = chain(length)
    own = Compiled("chain", Derivatives(objective, [variable]), [], {"n": 100}, TARGETS["c"])
    text = own.source(("value_and_gradient",))
    assert len(text) > pieces.LONG + 20_000
    functions = re.split(r"^(?:static )?(?:void|double) ", text, flags=re.MULTILINE)
    assert max(map(len, functions[1:])) < pieces.LONG + 20_000


@pytest.mark.parametrize(("length", "is_long"), [(40, False), (400, True)])
def test_no_vectors_are_sought_in_long_runs_of_scalars(length: int, is_long: bool) -> None:
    # gcc's time for that grows with the square of the run; only flags tell whether it does so.
    objective, variable = numbers(length)
    own = Compiled("chain", Derivatives(objective, [variable]), [], {}, TARGETS["c"])
    text = own.source(("value_and_gradient",))
    assert ("-fno-tree-slp-vectorize" in flags_of(text)) == is_long


@pytest.mark.parametrize(("loops", "length", "level"), [(40, 3, 3), (3, 3, 1), (300, 20, 1)])
def test_long_texts_keep_the_optimisation_of_their_loops(
    loops: int, length: int, level: int
) -> None:
    """-O1, from 200,000 characters on, only where few loops or far more text make -O3 a loss."""
    text = loops * "#pragma GCC ivdep\n" + length * 100_000 * " "
    assert ("-O1" in flags_of(text)) == (level == 1)


@pytest.mark.parametrize("chain", [numbers, elementwise, reversed_each_time])
def test_a_function_in_pieces_gives_the_same_numbers(
    chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    objective, variable = chain(20)
    derivatives = Derivatives(objective, [variable])
    size = 7 if variable.rank else 1
    point = np.random.default_rng(0).normal(size=size)
    found = []
    for most in (10**9, 0):
        monkeypatch.setattr(pieces, "LONG", most)
        monkeypatch.setattr(pieces, "_PIECE", 500)
        compiled = Compiled("chain", derivatives, [], {"n": 7}, TARGETS["c"])
        assert ("_piece_1" in compiled.source()) == (not most)
        gradient, product = np.full(size, np.nan), np.full(size, np.nan)
        kernels = Kernels(compiled, {})
        value = kernels.function("value_and_gradient")(point, gradient)
        for _ in range(2):  # the second one finds what depends on the point alone
            kernels.function("hvp")(point, np.ones(size), product)
        found.append([value, *gradient, *product])
    # To the last digits: the compiler may take a vector form of a function here and not there.
    np.testing.assert_allclose(found[1], found[0], rtol=1e-13)


LAYERS = """data A[3, 3], c[40]
var W[3, 3], x[3]
"""


def layers(steps: int) -> str:
    """A network that is written out, with a matrix, a variable and data of its own in each step."""
    lets = [f"let p{k} = tanh((W + A) @ p{k - 1} + c[{k % 40}] * x)" for k in range(1, steps)]
    return "\n".join([LAYERS, "let p0 = x", *lets, f"minimize sumsq(p{steps - 1})"])


def test_repeated_blocks_are_one_function_with_the_same_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(5)
    data = {"A": rng.normal(size=(3, 3)), "c": rng.normal(size=40)}
    point, v = 0.3 * rng.normal(size=(2, 12))
    found, lengths = [], []
    for many in (10**9, 8):
        monkeypatch.setattr(repeated, "MANY", many)
        model = slomodel.compile(layers(20), data=data, backend="c", rewrites=False)
        text = model.source("c")
        assert ("_form_0(" in text) == (many == 8)
        found.append([model.value(point), *model.gradient(point), *model.hvp(point, v)])
        lengths.append(len(model.source("c")))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-13, atol=1e-15)
    assert lengths[1] < 0.6 * lengths[0]


@pytest.mark.parametrize("target", ["numpy", "numexpr"])
def test_variables_beyond_a_limit_are_elements_of_a_list(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = """dim n
data A[n, n], c
var x[n], s, t
minimize sum(tanh(A @ tanh(A @ x)) * s) + exp(sin(s * t) * s) * cos(t / (c + s^2)) * s
"""
    rng = np.random.default_rng(3)
    data, point, v = {"A": rng.normal(size=(4, 4)), "c": 0.7}, rng.normal(size=6), np.arange(6.0)
    expected = slomodel.compile(text, data=data, backend=target)
    monkeypatch.setattr(functions, "MOST_NAMES", 3)
    model = slomodel.compile(text, data=data, backend=target)
    for _ in range(2):
        np.testing.assert_array_equal(model.gradient(point), expected.gradient(point))
        np.testing.assert_array_equal(model.hvp(point, v), expected.hvp(point, v))
    hvp = model.source().split("def make_hvp")[1].split("\n\n\n")[0]
    inside = set(re.findall(r"\w+", hvp.split("def hvp(point")[1]))
    outside = {line.split(" = ")[0].strip() for line in hvp.splitlines() if line[4:5].isalpha()}
    assert len(inside & outside - {"data", "hvp", "seen", "more", "x", "v", "g"}) <= 3
    assert "more[1]" in hvp
