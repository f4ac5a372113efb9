"""What bounds an evaluation on this machine: products, functions, arithmetic and memory.

    python -m benchmarks.limits [MODEL …]

Rates are measured here, on one thread: flops of a product of matrices by BLAS, elements a second of
each function that libmvec has, of simple arithmetic in the cache, and bytes that are read from
arrays of a given size. The work of an entry is counted in its program: two flops for every term of
a product, one element for every element of a function or of a sum. Data, point and result are
read or written once. The limit is the sum of the times of products, functions and arithmetic, or
the time of memory if that is longer, and the cost of an empty call. It is a limit for the
operations of this program: another formula may need fewer. Steps of recurrences wait for one
another, so they have no limit of this kind.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import prod

import numpy as np

import slomodel
from benchmarks.by_hand import Array
from benchmarks.evaluate import in_columns
from slomodel.codegen.entry import EntryName
from slomodel.codegen.loops.fusion import Fusion
from slomodel.codegen.loops.planning import planned
from slomodel.codegen.native.compiler import library
from slomodel.codegen.program import Form
from slomodel.ir.dims import concrete
from slomodel.ir.expr import Einsum, Map

_REPEATED = 7
_LENGTH = 4096
"""Doubles of an array that lies in the L1 cache with another one."""
_RUNS = 20
_OTHERS = 6.0
"""Nanoseconds an element of a costly function without a vector form: not a limit, a usual time."""


@dataclass(frozen=True, slots=True)
class Work:
    """Flops of products, elements by function, elements of arithmetic, bytes; None: recurrences."""

    flops: int
    functions: dict[str, int]
    arithmetic: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Limit:
    """Seconds that an entry needs at least, by cause."""

    products: float
    functions: float
    arithmetic: float
    memory: float

    @property
    def seconds(self) -> float:
        return call() + max(self.products + self.functions + self.arithmetic, self.memory)

    @property
    def cause(self) -> str:
        """The largest of the causes."""
        parts = {
            "products": self.products,
            "functions": self.functions,
            "arithmetic": self.arithmetic,
            "memory": self.memory,
            "the call": call(),
        }
        return max(parts, key=parts.__getitem__)


def work(model: slomodel.Model, entry: EntryName = "value_and_gradient") -> Work | None:
    """The work of an evaluation at a new point; None for a model with recurrences."""
    compiled = model._compiled
    numbers, layout = compiled.numbers, compiled._layout
    program, _ = planned(compiled.derivatives.entry(entry), layout, numbers, in_order=True)
    fusion = Fusion(program, numbers, in_order=True)
    flops, arithmetic, functions = 0, 0, dict[str, int]()
    for region in fusion.regions:
        if region.stage == "data":
            continue
        for node in region.nodes:
            if program.forms[node] in (Form.RECUR, Form.SCAN):
                return None
            if isinstance(node, Einsum) and fusion.is_matrix_product(node):
                flops += 2 * prod(dim.size(numbers) for dim in node.dims)
            elif isinstance(node, Map) and node.function.costly:
                name = node.function.name
                functions[name] = functions.get(name, 0) + prod(fusion.loop_shape(node))
            else:
                arithmetic += prod(fusion.loop_shape(node))
    data = sum(prod(concrete(node.shape, numbers)) for node in layout.data)
    return Work(flops, functions, arithmetic, 8 * (data + 2 * model.n))


def limit(found: Work) -> Limit:
    """The times that this work takes at the rates of this machine."""
    nanoseconds = sum(count * function_time(name) for name, count in found.functions.items())
    return Limit(
        found.flops / product_rate(),
        1e-9 * nanoseconds,
        1e-9 * found.arithmetic * arithmetic_time(),
        found.bytes / byte_rate(found.bytes),
    )


def _best(run: Callable[[], object], number: int) -> float:
    """Processor seconds of one run: the least of several blocks of runs."""
    times = []
    for _ in range(_REPEATED):
        began = time.process_time()
        for _ in range(number):
            run()
        times.append((time.process_time() - began) / number)
    return min(times)


@cache
def product_rate() -> float:
    """Flops a second of a product of matrices (400, 400)."""
    a = np.random.default_rng(0).normal(size=(400, 400))
    out = np.empty_like(a)
    return 2 * 400**3 / _best(lambda: np.dot(a, a, out=out), 3)


@cache
def byte_rate(size: int) -> float:
    """Bytes a second of a sum over an array of this many bytes."""
    return _rate(1 << max(15, size.bit_length()))


@cache
def _rate(size: int) -> float:
    a = np.ones(size // 8)
    total = _compiled(
        "double s[32] = {0}; for (long i = 0; i < m; i += 32) "
        "for (int k = 0; k < 32; k++) s[k] += a[i + k]; for (int k = 0; k < 32; k++) b[k] = s[k];"
    )
    place, number = a.ctypes.data, 1 + (1 << 21) // size
    return _RUNS * size / _best(lambda: total(place, place, a.size), number)


@cache
def arithmetic_time() -> float:
    """Nanoseconds an element of a multiplication and an addition in the L1 cache, each counted."""
    run = _compiled("for (long i = 0; i < m; i++) b[i] = b[i] * 0.5 + a[i];")
    return _per_element(run) / 2


@cache
def function_time(name: str) -> float:
    """Nanoseconds an element of a scalar function whose spelling is one call with a vector form."""
    spelling = slomodel.functions.TABLE[name].spelling.get("c", "")
    own = spelling.split("(")[0]
    if spelling != f"{own}({{0}})" or not own.isidentifier() or own.startswith("slo_"):
        return _OTHERS
    declared = f'__attribute__((simd("notinbranch"), const)) double {own}(double);'
    run = _compiled(f"for (long i = 0; i < m; i++) b[i] = {own}(a[i]);", declared)
    return _per_element(run)


def _per_element(run: Callable[..., object]) -> float:
    a = np.random.default_rng(1).uniform(0.1, 0.9, _LENGTH // 2)
    b = np.ones(a.size)
    places = a.ctypes.data, b.ctypes.data
    return 1e9 * _best(lambda: run(*places, a.size), 10) / a.size / _RUNS


def _compiled(body: str, declared: str = "") -> Callable[..., object]:
    head = "void run(const double *restrict a, double *restrict b, long m)"
    # Many runs in one call, whose overhead then does not count.
    repeated = f'for (int r = 0; r < {_RUNS}; r++) {{ {body} __asm__ volatile("" ::: "memory"); }}'
    run = library(f"{declared}\n{head} {{ {repeated} }}\n", False).run
    run.restype, run.argtypes = None, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long]
    found: Callable[..., object] = run
    return found


@cache
def call() -> float:
    """Seconds of a call for a model with one unknown."""
    model = slomodel.compile("var x\nminimize x^2", backend="c")
    x: Array = np.ones(1)
    return _best(lambda: model.value_and_gradient(x), 2000)


def main(names: list[str]) -> int:
    """Print the rates, and the limits of the unseen models."""
    from benchmarks.unseen_models import MODELS

    print(f"products {1e-9 * product_rate():.1f} Gflop/s, arithmetic {arithmetic_time():.3f} ns")
    for size in (1 << 15, 1 << 20, 1 << 24, 1 << 27):
        print(f"memory, {size >> 10} KiB: {1e-9 * _rate(size):.1f} GB/s")
    for name in ("exp", "log", "log1p", "tanh", "sin", "cos", "pow"):
        print(f"{name}: {function_time(name):.2f} ns an element")
    lines: list[tuple[str, ...]] = [
        ("model", "products us", "functions us", "arithmetic us", "memory us")
    ]
    for one in MODELS:
        if names and one.name not in names:
            continue
        model = slomodel.compile(one.source, data=one.data(np.random.default_rng(0)), backend="c")
        found = work(model)
        if found is not None:
            own = limit(found)
            parts = (own.products, own.functions, own.arithmetic, own.memory)
            lines.append((one.name, *(f"{1e6 * part:.1f}" for part in parts)))
    print(in_columns(lines, False))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
