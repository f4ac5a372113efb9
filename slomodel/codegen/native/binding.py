"""Calls of a compiled unit: addresses are stored once in a table, and a call passes its pointer."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial

import numexpr
import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from slomodel.codegen.entry import Entry
from slomodel.codegen.layout import Layout
from slomodel.codegen.native.compiler import library
from slomodel.codegen.native.source import Unit
from slomodel.codegen.runtime import aligned_empty
from slomodel.codegen.target import Maker
from slomodel.errors import Diagnostic, DomainError
from slomodel.ir.dims import concrete
from slomodel.ir.expr import Input

Vector = NDArray[np.float64]
_BRIEF = 20_000
"""Scalar operations that take about ten microseconds."""


def bound(text: str, unit: Unit, entry: Entry, layout: Layout, numbers: Mapping[str, int]) -> Maker:
    """Compile the text; the result constructs the function of the entry from data."""
    single = layout.precision == "float32"
    result = library(text, single)
    # Releasing the interpreter lock costs as much as a short call itself.
    called = ctypes.PyDLL(result._name) if unit.work < _BRIEF else result
    call = called[entry.name]
    # Without `argtypes` a pointer is passed unconverted, which is quicker.
    call.restype = ctypes.c_double
    prepare = getattr(result, f"prepare_{entry.name}")
    prepare.restype, prepare.argtypes = None, [ctypes.c_void_p]

    def make(data: Mapping[str, Vector]) -> Callable[..., float]:
        kind: np.dtype[np.float64] = np.dtype(layout.precision)  # type: ignore[assignment]
        workspace = aligned_empty((unit.workspace,), kind)
        given = [_array(data, node, layout, numbers) for node in layout.data]
        blas = (ctypes.c_void_p * 8)(*_blas(single), 1, *_lapack(single), _alone())
        addresses = [one.ctypes.data for one in (workspace, *given)]
        addresses[1:1] = [ctypes.addressof(blas)]
        table = (ctypes.c_void_p * (3 + len(addresses)))(0, 0, 0, *addresses)
        prepare(ctypes.addressof(table))
        frame = _Frame(table, unit.n, kind, (given, workspace, blas))
        if unit.shared:
            return _function(_sharing(call, blas), frame, entry)
        function = _function(call, frame, entry)
        if frame.n < _LONG and not single:
            address = ctypes.cast(result[entry.name], ctypes.c_void_p).value
            table_at = ctypes.addressof(table)
            function.compiled = CompiledFunction(address or 0, table_at, frame)  # type: ignore[attr-defined]
        return function

    return make


def _sharing(
    call: Callable[..., float], blas: ctypes.Array[ctypes.c_void_p]
) -> Callable[..., float]:
    """The call with as many threads as numexpr uses now, so that one option sets both."""

    def shared(pointer: ctypes.c_void_p) -> float:
        blas[2] = numexpr.get_num_threads()
        return call(pointer)

    return shared


@dataclass(frozen=True, slots=True)
class _Frame:
    """The table of addresses: a point, a direction and a result (n,), then the arrays in `kept`.

    `own` are arrays for the first three, allocated on first use.
    """

    table: ctypes.Array[ctypes.c_void_p]
    n: int
    kind: np.dtype[np.float64]
    kept: object
    own: dict[int, Vector] = field(default_factory=dict)

    def copy(self, place: int) -> Vector:
        """The frame's own array at a place of the table, which the function now works in."""
        if place not in self.own:
            self.own[place] = aligned_empty((self.n,), self.kind)
        self.table[place] = self.own[place].ctypes.data
        return self.own[place]

    def takes(self, vector: Vector, place: int) -> bool:
        """Let the function work in a caller's array; False for one that has to be copied."""
        if vector.dtype != self.kind or not vector.flags.c_contiguous:
            return False
        self.table[place] = vector.ctypes.data
        return True


@dataclass(frozen=True, slots=True)
class CompiledFunction:
    """A compiled function for callers in C: `double address(void **table)`.

    The addresses of a point, a direction and a result (n,) are the first three of the table, which
    a caller sets for its call and then restores. `frame` owns the memory that the others point to.
    """

    address: int
    table: int
    frame: object


_LONG = 4096
"""From this length on looking up the address of an array is quicker than copying it."""
_POINT, _DIRECTION, _RESULT = range(3)


def _function(call: Callable[..., float], frame: _Frame, entry: Entry) -> Callable[..., float]:
    """The function of points; it owns its working arrays, so it serves one thread at a time."""
    if frame.n >= _LONG:
        return partial(_long, call, frame, bool(entry.arrays))
    x = frame.copy(_POINT)
    v = frame.copy(_DIRECTION) if entry.directions else x
    g = frame.copy(_RESULT) if entry.arrays else x
    # The pointer holds a reference to the frame, which owns the memory that it points to.
    pointer = ctypes.c_void_p(ctypes.addressof(frame.table))
    pointer.frame = frame  # type: ignore[attr-defined]

    def value(point: Vector) -> float:
        x[...] = point
        return call(pointer)

    def value_and_gradient(point: Vector, out: Vector) -> float:
        x[...] = point
        result = call(pointer)
        out[...] = g
        return result

    def fresh(point: Vector) -> tuple[float, Vector]:
        x[...] = point
        return call(pointer), g.copy()

    def hvp(point: Vector, direction: Vector, out: Vector) -> float:
        x[...] = point
        v[...] = direction
        result = call(pointer)
        out[...] = g
        return result

    if entry.directions:
        return hvp
    value_and_gradient.fresh = fresh  # type: ignore[attr-defined]
    return value_and_gradient if entry.arrays else value


def _long(call: Callable[..., float], frame: _Frame, fills: bool, *vectors: Vector) -> float:
    """A call that copies only the vectors that cannot be used in place."""
    points = vectors[:-1] if fills else vectors
    for place, point in enumerate(points):
        if not frame.takes(point, place):
            frame.copy(place)[...] = point
    pointer = ctypes.c_void_p(ctypes.addressof(frame.table))
    if not fills:
        return call(pointer)
    out = vectors[-1]
    apart = not any(np.may_share_memory(out, point) for point in points)
    if apart and frame.takes(out, _RESULT):
        return call(pointer)
    own = frame.copy(_RESULT)
    result = call(pointer)
    np.copyto(out, own)
    return result


def _array(
    data: Mapping[str, Vector], node: Input, layout: Layout, numbers: Mapping[str, int]
) -> Vector:
    if node.name in data:
        kind = "int64" if node.dtype == "whole" else layout.precision
        return np.array(data[node.name], kind, order="C", copy=None)
    if node not in layout.defaults:
        message = f"the kernels need data `{node.name}`"
        raise DomainError(Diagnostic("E706", message, help=f"give data={{{node.name!r}: …}}"))
    return np.full(concrete(node.shape, numbers), layout.defaults[node], layout.precision)


@cache
def _blas(single: bool) -> tuple[int, ...]:
    """The addresses of gemm and gemv in SciPy's BLAS."""
    from scipy.linalg import cython_blas

    return _addresses(cython_blas.__pyx_capi__, ("gemm", "gemv"), single)


@cache
def _lapack(single: bool) -> tuple[int, ...]:
    """The addresses of trsm in SciPy's BLAS, and of potrf, potri and getrf in its LAPACK."""
    from scipy.linalg import cython_blas, cython_lapack

    routines = ("potrf", "potri", "getrf")
    return (
        *_addresses(cython_blas.__pyx_capi__, ("trsm",), single),
        *_addresses(cython_lapack.__pyx_capi__, routines, single),
    )


def _addresses(
    capsules: Mapping[str, object], routines: Sequence[str], single: bool
) -> tuple[int, ...]:
    get_name = ctypes.pythonapi.PyCapsule_GetName
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype = ctypes.c_void_p
    get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    letter = "s" if single else "d"
    addresses = []
    for routine in routines:
        capsule = capsules[letter + routine]
        addresses.append(get_pointer(capsule, get_name(capsule)))
    return tuple(addresses)


class _Alone(ctypes.Structure):
    """`slo_alone` of the prelude: functions of the library, and those that hold its number."""

    _fields_ = (
        ("get", ctypes.c_void_p),
        ("set", ctypes.c_void_p),
        ("locked", ctypes.c_long),
        ("users", ctypes.c_long),
        ("before", ctypes.c_long),
    )


_kept: list[object] = []


@cache
def _alone() -> int:
    """The address of what all kernels of the process share; 0 without OpenBLAS.

    While they multiply, they set the number of its threads to one: they divide long products
    themselves, so that no bits depend on it. SciPy's BLAS takes sizes of 32 bits, so that its names
    have no suffix.
    """
    for one in ThreadpoolController().lib_controllers:
        if one.internal_api != "openblas":
            continue
        opened = ctypes.CDLL(one.filepath)
        for prefix in ("scipy_", ""):
            get = getattr(opened, f"{prefix}openblas_get_num_threads", None)
            put = getattr(opened, f"{prefix}openblas_set_num_threads", None)
            if get is not None and put is not None:
                pointers = (ctypes.cast(function, ctypes.c_void_p).value for function in (get, put))
                held = _Alone(*pointers, 0, 0, 1)
                _kept.extend((opened, held))
                return ctypes.addressof(held)
    return 0
