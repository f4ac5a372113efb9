"""Target `c` on texts of random expressions over odd sizes: 0, 1, primes, just over a block."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import pytest
from agreeing import Question, assert_agreement, expected, in_c, of_model

import slomodel

SIZES = (0, 1, 2, 3, 5, 7, 13, 31, 513)
TEXT = """
dim m = {m}, n = {n}, p = {p}, h = {h}, l = {l}
data A[m, n], a[n], b[m], q, km[m] mask, kn[n] mask
var x[n], y[m], W[m, n], t, z[l], P[m, h], Q[h, n]
let rn[j in n] = x[n-1-j] * a[j]
let rm[i in m] = y[m-1-i] + b[i]
minimize {objective}
"""


class Writer:
    """Writes expressions: vectors over m or n, matrices (m, n) and numbers, of some depth."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def one(self, texts: Sequence[str]) -> str:
        return texts[int(self.rng.integers(len(texts)))]

    def vector(self, k: str, depth: int) -> str:
        if not depth:
            return self.one({"n": ["x", "a", "rn"], "m": ["y", "b", "rm"]}[k])
        own, other = (self.vector(k, depth - 1) for _ in range(2))
        turned, rest, axis = ("'", "m", 0) if k == "n" else ("", "n", 1)
        choices = [
            f"({self.matrix(depth - 1)}{turned} @ {self.vector(rest, depth - 1)})",
            f"({own} {self.one(['+', '-', '.*'])} {other})",
            f"{self.one(['sin', 'tanh', 'softplus', 'square', 'abs'])}(0.3 * {own})",
            f"sum({self.matrix(depth - 1)}, axis={axis})",
            f"where({self.vector(k, 0)} > 0.1, {own}, {other})",
            f"({self.number(depth - 1)} * {own})",
            f"({own} ./ (2 + square({other})))",
            f"masked({own}, k{k})",
        ]
        return self.one(choices)

    def matrix(self, depth: int) -> str:
        if not depth:
            return self.one(["A", "W", "P @ Q"]).join("()")
        own, other = (self.matrix(depth - 1) for _ in range(2))
        column, row = self.vector("m", depth - 1), self.vector("n", depth - 1)
        choices = [
            f"outer({column}, {row})",
            f"({own} + {column}[:, None])",
            f"({own} .* {row}[None, :])",
            f"({own} {self.one(['-', '.*'])} {other})",
            f"tanh(0.3 * {own})",
            f"({own} @ {other}' @ {own})",
        ]
        return self.one(choices)

    def number(self, depth: int) -> str:
        if not depth:
            return self.one(["t", "q", "sum(x)"])
        k = self.one("mn")
        choices = [
            f"sum({self.vector(k, depth - 1)})",
            f"sumsq({self.matrix(depth - 1)})",
            f"dot({self.vector(k, depth - 1)}, {self.vector(k, depth - 1)})",
            "sum(z[3*i+2] * z[3*i+1]^2 for i in range(p))",
            "sum(z[l-1-2*i] * z[2*i+1] for i in range(p))",
            "sum(W[i, n-1-j] * W[m-1-i, j] * x[j] for i in m, j in n)",
            f"sin(0.1 * {self.number(depth - 1)})",
        ]
        return self.one(choices)


def question(seed: int) -> Question:
    rng = np.random.default_rng(seed)
    m, n, p, h = (int(SIZES[rng.integers(len(SIZES) - (k > 1))]) for k in range(4))
    n = min(n, 50_000 // max(m, 1))
    writer = Writer(rng)
    objective = " + ".join(writer.number(int(rng.integers(1, 4))) for _ in range(3))
    text = TEXT.format(m=m, n=n, p=p, h=h, l=3 * p, objective=objective)
    scale = max(m, n, 1) ** -0.5
    data = {"A": scale * rng.normal(size=(m, n)), "a": rng.normal(size=n), "b": rng.normal(size=m)}
    masks = {"km": (rng.random(m) < 0.6) * 1.0, "kn": (rng.random(n) < 0.6) * 1.0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", slomodel.ModelWarning)
        model = slomodel.compile(text, data={**data, **masks, "q": 0.7}, backend="numpy")
    return of_model(model, rng)


@pytest.mark.parametrize(
    "seeds", [range(8), pytest.param(range(8, 408), marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_c_agrees_with_the_reference_interpreter(seeds: range) -> None:
    for first in seeds[::8]:
        questions = [question(seed) for seed in range(first, first + 8)]
        wanted = [expected(one, np.random.default_rng(1)) for one in questions]
        assert_agreement(list(in_c(questions)), wanted, first)
