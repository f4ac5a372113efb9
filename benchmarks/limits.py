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

What a program takes beyond its limit is estimated too: elements that are read or added at looked up
places, arrays that are written by one loop and read by others, and products whose shapes BLAS
multiplies at less than its best rate.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable, Mapping
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
from slomodel.codegen.lower import Blocks
from slomodel.codegen.native.compiler import library
from slomodel.codegen.program import Form
from slomodel.ir.dims import concrete
from slomodel.ir.expr import Einsum, Expr, Gather, Map, Scatter, is_listed

_REPEATED = 7
_LENGTH = 4096
"""Doubles of an array that lies in the L1 cache with another one."""
_RUNS = 20
_PLACES = 500
_OTHERS = 6.0
"""Nanoseconds an element of a costly function without a vector form: not a limit, a usual time."""


@dataclass(frozen=True, slots=True)
class Beyond:
    """What the limit leaves out: elements looked up and added at looked up places, bytes that
    loops write or read in intermediate arrays of these bytes in all, and products: (batch, rows,
    summed, columns).
    """

    read: int
    added: int
    passed: int
    stored: int
    products: tuple[tuple[int, int, int, int], ...]

    def seconds(self) -> dict[str, float]:
        """The time of each at the rates of this machine."""
        shapes = sum(_product_time(one) for one in self.products)
        flops = sum(2 * prod(one) for one in self.products)
        return {
            "lookups": 1e-9 * (self.read * lookup_time() + self.added * addition_time()),
            "intermediate arrays": self.passed / byte_rate(self.stored) if self.stored else 0.0,
            "products of these shapes": max(0.0, shapes - flops / product_rate()),
        }


@dataclass(frozen=True, slots=True)
class Work:
    """Flops of products, elements by function, elements of arithmetic, bytes; None: recurrences."""

    flops: int
    functions: dict[str, int]
    arithmetic: int
    bytes: int
    beyond: Beyond


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
    products: list[tuple[int, int, int, int]] = []
    read, added, passed, stored = 0, 0, 0, 0
    for region in fusion.regions:
        if region.stage == "data":
            continue
        for node in region.nodes:
            if program.forms[node] in (Form.RECUR, Form.SCAN):
                return None
            if is_listed(node):
                read += prod(fusion.loop_shape(node)) * isinstance(node, Gather)
                added += prod(concrete(node.operands[0].shape, numbers)) * isinstance(node, Scatter)
            if isinstance(node, Einsum) and fusion.is_matrix_product(node):
                flops += 2 * prod(dim.size(numbers) for dim in node.dims)
                products.append(_shape(node, numbers))
            elif isinstance(node, Map) and node.function.costly:
                name = node.function.name
                functions[name] = functions.get(name, 0) + prod(fusion.loop_shape(node))
            else:
                arithmetic += prod(fusion.loop_shape(node))
        own = fusion.stored & set(region.nodes)
        every = [
            fusion.accesses.of(one.node).base for node in region.nodes for one in fusion.reads(node)
        ]
        others = fusion.stored & set(every) - own
        stored += sum(_bytes(node, numbers) for node in own)
        passed += sum(_bytes(node, numbers) for node in own | others)
    data = sum(prod(concrete(node.shape, numbers)) for node in layout.data)
    beyond = Beyond(read, added, passed, stored, tuple(products))
    return Work(flops, functions, arithmetic, 8 * (data + 2 * model.n), beyond)


def _bytes(node: Expr, numbers: Mapping[str, int]) -> int:
    return 8 * prod(concrete(node.shape, numbers)) if node.rank else 0


def _shape(node: Einsum, numbers: Mapping[str, int]) -> tuple[int, int, int, int]:
    """The sizes of a lowered product: batch, rows, summed and columns."""
    parts = Blocks.of_node(node)
    batch, rows, summed, columns = (
        prod(node.dims[label].size(numbers) for label in own)
        for own in (parts.batch, parts.left, parts.summed, parts.right)
    )
    return batch, rows, summed, columns


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
def _product_time(shape: tuple[int, int, int, int]) -> float:
    """Seconds of a product of this shape by BLAS, or of a batch of them."""
    batch, rows, summed, columns = shape
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(rows, summed)), rng.normal(size=(summed, columns))
    out = np.empty((rows, columns))
    number = 1 + 2_000_000 // (rows * summed * columns)
    return batch * _best(lambda: np.dot(a, b, out=out), number)


@cache
def lookup_time() -> float:
    """Nanoseconds an element that is read at places in any order, in the L1 cache."""
    return _per_place("for (long i = 0; i < m; i++) b[i] = t[place[i]];")


@cache
def addition_time() -> float:
    """Nanoseconds an element that is added at places in any order, in the L1 cache."""
    return _per_place("for (long i = 0; i < m; i++) t[place[i]] += b[i];")


def _per_place(body: str) -> float:
    place = np.random.default_rng(2).integers(0, _PLACES, _LENGTH // 4)
    start = f"static double t[{_PLACES}]; const long *place = (const long *)a;"
    run = _compiled(f"{start} {body}")
    b = np.ones(place.size)
    places = place.ctypes.data, b.ctypes.data
    return 1e9 * _best(lambda: run(*places, place.size), 10) / place.size / _RUNS


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
