"""Target `c`: size of the workspace beyond data, the point and the gradient."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import slomodel
from slomodel import functions as fn
from slomodel.codegen.kernels import TARGETS, Compiled, Derivatives, Kernels
from slomodel.codegen.native.compiler import FLAGS
from slomodel.ir import build
from slomodel.ir.dims import Dim, named
from slomodel.ir.expr import Affine

ROWS, COLUMNS = 1000, 20
HEAD = "dim m = 1000, n = 20\ndata A[m, n], y[m]\nvar x[n]\nminimize "
MODELS = {
    "quartic": "sum(((A @ x)[i]^2 - y[i])^2 for i in m)",
    "logistic": "sum(softplus(-y[i] * (A @ x)[i]) for i in m)",
    "mask": "sum(where(y[i] != 0, (A @ x)[i] - y[i], 0)^4 for i in m)",
    # The residuals are read once more after their sines have been written.
    "read twice": "sum(sin((A @ x)[i] - y[i]) for i in m) * sum(((A @ x)[i] - y[i])^2 for i in m)",
}
NETWORK = """
dim N = 1000, d = 5, h = 8
data X[d, N], y[N]
var W[h, d], v[h]
minimize sumsq(v' @ softplus(W @ X) - y)
"""


def model_of(text: str, backend: str) -> slomodel.Model:
    rng = np.random.default_rng(0)
    data = {"A": rng.normal(size=(ROWS, COLUMNS)), "y": np.sign(rng.normal(size=ROWS))}
    if "X[" in text:
        data = {"X": rng.normal(size=(5, ROWS)), "y": data["y"]}
    return slomodel.compile(text, data=data, backend=backend)


def workspace(text: str) -> int:
    """The numbers that value and gradient take, as the head of their text says."""
    source = model_of(text, "c")._compiled.source(("value_and_gradient",))
    found = re.search(r"a workspace of (\d+) numbers", source)
    assert found
    return int(found[1])


@pytest.mark.parametrize("name", MODELS)
def test_an_array_is_written_over_where_it_is_read_last(name: str) -> None:
    kept = 2 if name == "read twice" else 1
    assert kept * ROWS <= workspace(HEAD + MODELS[name]) <= kept * ROWS + 5 * COLUMNS + 32


def test_a_gradient_that_is_made_of_data_alone() -> None:
    # -c is as quick to make as to read, but nothing reads it: it is the gradient.
    text = "dim n = 3 data c[n] var x[n], y[n] minimize sumsq(y) - sum(c .* x)"
    model = slomodel.compile(text, data={"c": [1.0, 2.0, 3.0]}, backend="c")
    np.testing.assert_array_equal(model.gradient(np.ones(6)), [-1.0, -2.0, -3.0, 2.0, 2.0, 2.0])


def test_an_outer_product_is_never_made() -> None:
    # The activations and their slopes; the gradient by them takes the place of the slopes.
    assert 2 * 8 * ROWS <= workspace(NETWORK) <= 2 * 8 * ROWS + ROWS + 200


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_gcc_has_nothing_to_warn_of(tmp_path: Path) -> None:
    text = model_of(HEAD + "logsumexp(A @ x) + sumsq(A @ x - y) + sum(x)", "c").source()
    strict = ["-Wall", "-Wextra", "-Werror", "-DVECTOR_MATH=0", "-xc", "-", "-lm"]
    call = ["gcc", *(flag for flag in FLAGS if flag != "-w"), *strict, "-o", str(tmp_path / "k.so")]
    done = subprocess.run(call, input=text, capture_output=True, text=True, check=False)
    assert not done.stderr
    assert not done.returncode


@pytest.mark.parametrize("text", [*(HEAD + text for text in MODELS.values()), NETWORK])
def test_what_is_written_over_had_been_read(text: str) -> None:
    ours, plain = model_of(text, "c"), model_of(text, "numpy")
    x = np.random.default_rng(1).normal(size=ours.n)
    for _ in range(2):
        value, gradient = ours.value_and_gradient(x)
        assert value == pytest.approx(plain.value(x), rel=1e-12)
        np.testing.assert_allclose(gradient, plain.gradient(x), rtol=1e-10)


@pytest.mark.parametrize("n", [5, 2000])
def test_an_array_that_is_filled_in_steps_is_not_written_over_too_early(n: int) -> None:
    # It is read back to front while the loop that reads it writes an array of the same length.
    dim = named("n")
    x = build.variable("x", (dim,))

    def from_place(k: int) -> list[Affine]:
        return [Affine(Dim((), k), (1,))]

    parts = (build.scatter(f(x), from_place(k), (dim + 1,)) for k, f in enumerate((fn.exp, fn.sin)))
    back = build.gather(fn.add(*parts), [Affine(dim, (-1,))], (dim + 1,))
    result = fn.exp(fn.mul(back, 0.1))
    head, tail = (build.gather(result, from_place(k), (dim,)) for k in (0, 1))
    derivatives = Derivatives(build.sum_over(fn.mul(head, tail), (0,)), [x])
    point = np.random.default_rng(0).normal(size=n)
    kernels = Kernels(Compiled("own", derivatives, [], {"n": n}, TARGETS["c"]), {})
    filled = np.append(np.exp(point), 0.0) + np.append(0.0, np.sin(point))
    expected = np.exp(0.1 * filled[::-1])
    found = kernels.function("value")(point)
    assert found == pytest.approx(float(expected[1:] @ expected[:-1]), rel=1e-12)
