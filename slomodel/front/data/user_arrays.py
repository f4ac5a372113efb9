"""User-supplied arrays and tables: conversion by NumPy, or an error about the wrong object."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from decimal import Decimal
from numbers import Real
from types import MappingProxyType
from typing import NoReturn, Protocol, runtime_checkable

import numpy as np

from slomodel.codegen.runtime import on_host
from slomodel.errors import Diagnostic, DomainError
from slomodel.front.data.loaders import Raw

_TEXTS = (
    "texts that name groups are declared as labels, `data g[N] in G labels`; cast numbers written "
    "as texts by .astype(float)"
)
_KINDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "c": ("complex", "pass its real part, or the two parts as arrays of their own"),
        "V": ("structured", "pass one field as an array"),
        **dict.fromkeys("UST", ("text", _TEXTS)),
        "M": ("date", "pass numbers, such as days since the first"),
        "m": ("duration", "pass numbers, such as value / numpy.timedelta64(1, 's')"),
        "O": ("object", "cast it first, for example with .astype(float)"),
    }
)
_NUMBERS = "pass real numbers, or lists or arrays of them"


def user_array(what: str, value: object) -> Raw:
    """`value` as an array of real numbers, not always a copy; `what` names it in errors.

    Raises DomainError for anything else, including masked arrays.
    """
    if isinstance(value, str):
        _refuse(f"{what} is a text", _NUMBERS)
    if value is None:
        _refuse(f"{what} is None", "leave it out, or give it a value")
    if _has_mask(value):
        message = f"{what} is a masked array, whose mask a model does not see"
        _refuse(message, "pass .filled(numpy.nan) and use `masked(E, mask)`")
    try:
        array: Raw = np.asarray(on_host(value))
    except MemoryError:
        _refuse(f"{what} does not fit in memory", "pass a smaller part of it")
    except Exception as error:  # Any exception, since an object may define its own conversion.
        _refuse_shape(what, error)
    if array.dtype == object:
        _refuse_objects(what, value, array)
    if array.dtype.kind not in "biuf":
        message = f"{what} holds {kind_in_words(array.dtype)} values, and a model computes with"
        _refuse(f"{message} real numbers", _KINDS.get(array.dtype.kind, ("", _NUMBERS))[1])
    return array


@runtime_checkable
class ColumnTable(Protocol):
    """An object with named columns."""

    @property
    def columns(self) -> Iterable[object]: ...

    def __getitem__(self, name: object) -> object: ...


def columns_of(data: object, declared: Collection[str]) -> dict[str, object]:
    """Data by name: a mapping as it is, of a table the columns that have a declared name.

    Raises DomainError for anything else.
    """
    if isinstance(data, Mapping):
        return {str(name): value for name, value in data.items()}
    if isinstance(data, ColumnTable):
        return {str(name): data[name] for name in data.columns if str(name) in declared}
    kind = type(data).__name__
    message = f"data= takes a dict of arrays, a DataFrame or a Path, not an object of {kind}"
    raise DomainError(Diagnostic("E602", message, help="write data={'name': value}"))


def kind_in_words(dtype: np.dtype[np.generic]) -> str:
    """The elements of an array that does not contain numbers, in words."""
    return _KINDS.get(dtype.kind, (str(dtype), ""))[0]


def no_memory(what: str, shape: tuple[int, ...]) -> DomainError:
    """The error for an array of this shape, of 8 bytes per number, that does not fit in memory."""
    message = f"{what} of shape {shape} takes {8 * math.prod(shape):.3g} bytes, and memory ran out"
    return DomainError(Diagnostic("E707", message, help="give less of it"))


def _refuse(message: str, remedy: str) -> NoReturn:
    raise DomainError(Diagnostic("E306", message, help=remedy)) from None


def _has_mask(value: object) -> bool:
    """Whether `value` is a masked array or a list containing one, whose mask NumPy would drop."""
    if isinstance(value, (list, tuple)):
        return any(isinstance(one, np.ma.MaskedArray) for one in value)
    return isinstance(value, np.ma.MaskedArray)


def _refuse_shape(what: str, error: Exception) -> NoReturn:
    if "inhomogeneous" in str(error):
        _refuse(f"{what} is not an array: its rows have different lengths", "give each the same")
    if "maximum number of dimension" in str(error):
        _refuse(f"{what} is not an array: it is nested deeper than an array can be", _NUMBERS)
    _refuse(f"{what} is not an array: {error}", "pass what numpy.asarray accepts")


def _refuse_objects(what: str, value: object, array: Raw) -> NoReturn:
    """Raise DomainError, naming the first element that is not a number."""
    from scipy.sparse import issparse

    if issparse(value):
        _refuse(f"{what} is a sparse matrix", "declare the data `sparse`, or pass .toarray()")
    if not array.ndim and not isinstance(value, (Real, Decimal, np.ndarray)):
        _refuse(f"{what} of type {type(value).__name__} is not an array of numbers", _NUMBERS)
    elements: Iterable[tuple[tuple[int, ...], object]] = np.ndenumerate(array)
    for index, one in elements:
        if not isinstance(one, (Real, Decimal)):
            place = f" at [{', '.join(map(str, index))}]" if index else ""
            if isinstance(one, str):
                _refuse(f"{what} holds a text{place}, where a number is expected", _TEXTS)
            result = "None" if one is None else f"an object of type {type(one).__name__}"
            remedy = "write numpy.nan for a missing number" if one is None else _NUMBERS
            _refuse(f"{what} holds {result}{place}, where a number is expected", remedy)
    kinds = ", ".join(sorted({type(one).__name__ for one in array.flat})) or "none"
    message = f"{what} holds numbers as objects of Python (of type {kinds}), not as floats"
    _refuse(message, "make them floats: float(…), or numpy.array(…, dtype=float)")
