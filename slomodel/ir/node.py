"""The base class of nodes, and the table that makes two equal expressions one object."""

from __future__ import annotations

import gc
import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Literal, NoReturn, Self, TypeVar
from weakref import WeakValueDictionary

from slomodel.ir.dims import Shape, show_shape

DType = Literal["real", "bool", "whole"]

Kind = TypeVar("Kind", bound="Expr")
_table: WeakValueDictionary[Hashable, Expr] = WeakValueDictionary()
_lock = threading.RLock()


class Expr:
    """A node: `operands`, `shape` and `dtype`. Compare with `is`; hash is identity."""

    __slots__ = ("__weakref__", "dtype", "operands", "shape")
    operands: tuple[Expr, ...]
    shape: Shape
    dtype: DType

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} nodes are immutable")

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {show_shape(self.shape)}>"

    @property
    def rank(self) -> int:
        return len(self.shape)


def interned(
    cls: type[Kind],
    operands: tuple[Expr, ...],
    shape: Shape,
    dtype: DType,
    key: Hashable | None = None,
    **own: object,
) -> Kind:
    """The unique node of this class with these fields; `key` identifies `own` if given.

    `own` are the fields of the class, in the order of its `__slots__`.
    """
    full = (cls, operands, shape, dtype, tuple(own.values()) if key is None else key)
    with _lock:
        result = _table.get(full)
        if result is None:
            result = object.__new__(cls)
            put = object.__setattr__
            put(result, "operands", operands)
            put(result, "shape", shape)
            put(result, "dtype", dtype)
            for name, value in own.items():
                put(result, name, value)
            _table[full] = result
    assert isinstance(result, cls)
    return result


def own_fields(node: Expr) -> dict[str, object]:
    """The fields that a node has besides those of every node."""
    return {name: getattr(node, name) for name in type(node).__slots__}


@contextmanager
def without_gc() -> Iterator[None]:
    """Suspend the cyclic garbage collector inside the block.

    Collection takes nearly half of the time to compile a long text, whose nodes all stay alive. If
    several threads are inside such blocks, the first one to leave enables it again.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
