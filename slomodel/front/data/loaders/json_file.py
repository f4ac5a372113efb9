"""JSON: an object with one array (nested lists) per key, or one nested list of numbers."""

from __future__ import annotations

import json
import math
from typing import BinaryIO

import numpy as np

from slomodel.front.data.loaders.content import (
    Raw,
    UnreadableFile,
    missing_entry,
    not_utf8,
    shown,
    text_of,
)

# Each number becomes a Python object of 32 bytes, 16 times the 2 bytes that its text may take.
_MOST_BYTES = 200_000_000


def read_json(file: BinaryIO, key: str) -> Raw:
    """The array `key` of an object, or the only array of a file that is a list or a number.

    NaN, Infinity and -Infinity are numbers, true and false are 1 and 0; null is refused.
    """
    return _array(_value(file, key), key)


def read_json_labels(file: BinaryIO, key: str) -> Raw:
    """The array `key` of texts or numbers."""
    value = _value(file, key)
    try:
        array: Raw = np.asarray(value)
    except ValueError:
        raise _element_error(value, key) from None
    return array if array.dtype.kind == "U" else _array(value, key)


def json_names(file: BinaryIO) -> tuple[str, ...]:
    """The keys of an object, empty for another value."""
    value = _content(file)
    return tuple(value) if isinstance(value, dict) else ()


def _value(file: BinaryIO, key: str) -> object:
    value = _content(file)
    if isinstance(value, dict):
        if key not in value:
            raise missing_entry("array", key, list(value))
        value = value[key]
    return value


def _content(file: BinaryIO) -> object:
    try:
        with text_of(file, _MOST_BYTES) as lines:
            text = lines.read()
    except UnicodeDecodeError:
        raise not_utf8() from None
    if not text.strip():
        raise UnreadableFile("E305", "is empty")
    try:
        value: object = json.loads(
            text, parse_float=_number, parse_int=_number, object_pairs_hook=_object
        )
    except json.JSONDecodeError as error:
        result = f"{error.msg[:1].lower()}{error.msg[1:]}"
        place = f"line {error.lineno}, column {error.colno}"
        raise UnreadableFile("E305", f"is not JSON in {place}: {result}") from None
    except RecursionError:
        raise _too_deep() from None
    return value


def _number(text: str) -> float:
    # Integers are parsed as floats too: an integer of a million digits would take quadratic time.
    number = float(text)
    if math.isinf(number):
        raise UnreadableFile("E316", f"has the number `{shown(text)}`, which no float64 can hold")
    return number


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise UnreadableFile("E305", f"has two entries `{shown(twice)}` in one object")
    return result


def _array(value: object, key: str) -> Raw:
    try:
        array: Raw = np.asarray(value)
    except ValueError:
        raise _element_error(value, key) from None
    if array.dtype.kind not in "bf":
        raise _element_error(value, key)
    return array


def _element_error(value: object, key: str) -> UnreadableFile:
    """The error for the first element that does not fit into a rectangular array of numbers."""
    sizes: list[int] = []
    first = value
    while isinstance(first, list):
        sizes.append(len(first))
        first = first[0] if first else None
    waiting: list[tuple[object, tuple[int, ...]]] = [(value, ())]
    while waiting:
        item, index = waiting.pop()
        place = "`" + shown(key) + "".join(f"[{k}]" for k in index) + "`"
        size = sizes[len(index)] if len(index) < len(sizes) else None
        if isinstance(item, list) and len(item) == size:
            waiting += [(part, (*index, k)) for k, part in reversed(list(enumerate(item)))]
        elif isinstance(item, list) and size is not None:
            reason = f"has a list of {len(item)} in {place}, and of {size} before it"
            return UnreadableFile("E316", reason, "give every list of one depth the same length")
        elif size is not None or not isinstance(item, (bool, float)):
            wanted = "a number" if size is None else f"a list of {size}"
            remedy = "write NaN for a missing number" if item is None else ""
            reason = f"has {_kind(item)} in {place}, where {wanted} is expected"
            return UnreadableFile("E316", reason, remedy)
    return _too_deep()


def _too_deep() -> UnreadableFile:
    return UnreadableFile("E316", "has lists nested deeper than an array can be")


def _kind(item: object) -> str:
    if isinstance(item, str):
        return f"the text `{shown(item)}`"
    if isinstance(item, dict):
        return "an object"
    if isinstance(item, list):
        return "a list"
    return f"the number {item:.6g}" if isinstance(item, float) else json.dumps(item)
