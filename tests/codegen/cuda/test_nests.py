"""Nests that are written by hand, printed in C and in CUDA and run, against NumPy."""

from __future__ import annotations

import ctypes
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from codegen.cuda import standin

from slomodel import functions as fn
from slomodel.codegen.cuda.loops import LoopKernels, is_rectangular
from slomodel.codegen.cuda.module import cuda_text
from slomodel.codegen.cuda.names import DeviceNames
from slomodel.codegen.cuda.plain import plain_kernel
from slomodel.codegen.cuda.segments import is_segmented, segment_kernels
from slomodel.codegen.layout import Layout, Sizes
from slomodel.codegen.loops.nest import (
    Apply,
    Axis,
    Computed,
    Count,
    Element,
    Fill,
    IndexRead,
    IndexTable,
    Nest,
    Output,
    Position,
    Reduce,
    Store,
)
from slomodel.codegen.native.compiler import library
from slomodel.codegen.native.loops import BlockedLoop
from slomodel.codegen.native.names import EntryNames
from slomodel.codegen.native.plain import plain_lines
from slomodel.codegen.native.prelude import prelude
from slomodel.ir import build
from slomodel.ir.dims import literal

N = 41
RNG = np.random.default_rng(5)
LISTED = RNG.integers(0, N, N)
STARTS = np.concatenate([[0, 0], np.sort(RNG.integers(0, 90, N - 2)), [90]])
COLUMNS = RNG.integers(0, N, 90)
NUMBERS = {"x": RNG.normal(size=N), "v": RNG.normal(size=90), "M": RNG.normal(size=(N, 3))}
INTEGERS = {"listed": LISTED, "starts": STARTS, "columns": COLUMNS}
ARRAYS = {**NUMBERS, **INTEGERS}
NODES = {name: build.data(name, tuple(map(literal, one.shape))) for name, one in ARRAYS.items()}
RESULT = build.variable("y", (literal(N),))
LAYOUT = Layout((RESULT,), tuple(NODES.values()), Sizes(()))
NOTHING = SimpleNamespace(places={})

OWN = Position(0, (1,))
Y = Element(Output(0), OWN)
ZEROS = (Fill(Output(0), N, 0.0),)
ROWS = Axis.of(N)


def at(name: str, offset: int = 0, *strides: int, by: tuple[IndexRead, ...] = ()) -> Element:
    return Element(NODES[name], Position(offset, strides, by))


def looked_up(name: str, offset: int = 0, *strides: int, stride: int = 1) -> IndexRead:
    return IndexRead(NODES[name], Position(offset, strides), stride)


def bound(offset: int) -> Position:
    return Position(0, (), (looked_up("starts", offset, 1),))


def of_segments(op: str, start: float) -> Nest:
    """For each row a sum, or the largest, of the elements that compressed rows list for it."""
    column = looked_up("columns", 0, 0, 1)
    operands = (at("x", by=(column,)), at("v", 0, 0, 1)) if op == "sum" else (at("v", 0, 0, 1),)
    axes = (ROWS, Axis(bound(1), bound(0)))
    return Nest(axes, (Reduce(op, operands, Y),), (Fill(Output(0), N, start),))


X, V, M = NUMBERS.values()
ROW_OF = np.repeat(np.arange(N), np.diff(STARTS))
LARGEST = np.full(N, -np.inf)
np.maximum.at(LARGEST, ROW_OF, V)
TABLE = IndexTable(tuple(LISTED.tolist()))
NESTS = {
    "a gather": (
        Nest(
            (ROWS,),
            (Apply(fn.exp, (at("x", by=(looked_up("listed", 0, 1),)),)), Store(Y, Computed(0))),
        ),
        np.exp(X[LISTED]),
    ),
    "a gather by a table of the text": (
        Nest((ROWS,), (Store(Y, at("x", by=(IndexRead(TABLE, OWN),))),)),
        X[LISTED],
    ),
    "a column of gathered rows": (
        Nest((ROWS,), (Store(Y, at("M", 2, by=(looked_up("listed", 0, 1, stride=3),))),)),
        M[LISTED, 2],
    ),
    "an index as a number": (
        Nest((ROWS,), (Apply(fn.mul, (Count(0), at("x", 0, 1))), Store(Y, Computed(0)))),
        np.arange(N) * X,
    ),
    "a triangular sum": (
        Nest(
            (ROWS, Axis(Position(1, (1,)))),
            (Reduce("sum", (at("x", 0, 0, 1), at("x", 0, 1, -1)), Y),),
            ZEROS,
        ),
        np.convolve(X, X)[:N],
    ),
    "a triangular sum of a value": (
        Nest(
            (ROWS, Axis(Position(N), Position(1, (1,)))),
            (
                Apply(fn.sub, (at("x", 0, 1), at("x", 0, 0, 1))),
                Apply(fn.square, (Computed(0),)),
                Reduce("sum", (Computed(1),), Y),
            ),
            ZEROS,
        ),
        np.triu((X[:, None] - X) ** 2, 1).sum(axis=1),
    ),
    "a segment sum": (
        of_segments("sum", 0.0),
        np.bincount(ROW_OF, weights=X[COLUMNS] * V, minlength=N),
    ),
    "the largest of each segment": (of_segments("max", -np.inf), LARGEST),
    "a copy": (Nest((ROWS,), (Store(Y, at("x", N - 1, -1)),)), X[::-1]),
    "a sum of rows": (
        Nest((ROWS, Axis.of(3)), (Reduce("sum", (at("M", 0, 3, 1), at("x", 0, 1, 0)), Y),), ZEROS),
        M.sum(axis=1) * X,
    ),
}


def in_c(nest: Nest) -> np.ndarray:
    names = EntryNames(NOTHING, LAYOUT, (), {})
    lines = BlockedLoop(nest, names).lines() if nest.is_blocked else plain_lines(nest, names)
    kinds = ["const long" if name in INTEGERS else "const real" for name in ARRAYS]
    heads = [f"{kind} *const d{k} = c[{k}];" for k, kind in enumerate(kinds)]
    body = "\n".join([*heads, f"real *const g = c[{len(kinds)}];", *lines])
    text = f"void run(void **c) {{\n{body}\n}}\n"
    result = np.full(N, np.nan)
    addresses = [one.ctypes.data for one in (*ARRAYS.values(), result)]
    library(prelude(text, False) + text, False).run((ctypes.c_void_p * len(addresses))(*addresses))
    return result


def in_cuda(nest: Nest, module: type[standin.RawModule]) -> np.ndarray:
    names = DeviceNames(NOTHING, LAYOUT, (), {})
    if is_rectangular(nest):
        (kernel,) = LoopKernels(nest, names).kernels("run")
    elif is_segmented(nest):
        (kernel,) = segment_kernels("run", nest, names)
    else:
        (kernel,) = plain_kernel("run", nest, names)
    text = cuda_text("nest", [kernel], LAYOUT, {})
    result = np.full(N, np.nan).view(standin.ndarray)
    arrays = {f"d{k}": one.view(standin.ndarray) for k, one in enumerate(ARRAYS.values())}
    arrays["g"] = result
    run = module(code=text, options=("-std=c++17",)).get_function("run")
    assert [one.size for one in kernel.arrays] == [arrays[one.name].size for one in kernel.arrays]
    run(kernel.blocks, (kernel.threads,), [arrays[one.name] for one in kernel.arrays])
    return result.get()


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.parametrize("name", NESTS)
def test_c(name: str) -> None:
    nest, expected = NESTS[name]
    np.testing.assert_allclose(in_c(nest), expected, rtol=1e-13, atol=1e-13)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", NESTS)
def test_cuda(name: str, cupy_on_cpu: type[standin.RawModule]) -> None:
    nest, expected = NESTS[name]
    np.testing.assert_allclose(in_cuda(nest, cupy_on_cpu), expected, rtol=1e-13, atol=1e-13)
    assert (name in ("a copy", "a sum of rows")) == nest.is_blocked


def test_places_that_two_threads_would_write_are_left_to_one() -> None:
    # Both terms go to y[i + j]: rows meet, so that one thread does it all.
    meeting = Element(Output(0), Position(0, (1, 1)))
    nest = Nest((Axis.of(3), Axis.of(3)), (Store(meeting, Count(0)),))
    (kernel,) = plain_kernel("run", nest, DeviceNames(NOTHING, LAYOUT, (), {}))
    assert "i < 1;" in kernel.text
    apart = Element(Output(0), Position(0, (3, 1)))
    nest = Nest((Axis.of(3), Axis.of(3)), (Store(apart, Count(0)),))
    (kernel,) = plain_kernel("run", nest, DeviceNames(NOTHING, LAYOUT, (), {}))
    assert "i < 9;" in kernel.text
