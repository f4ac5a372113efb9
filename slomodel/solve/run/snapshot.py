"""The state of a run as numbers, strings and arrays, and back into objects of the same classes.

Objects of the classes in `saved_classes` are decomposed into their attributes; shared objects
remain shared. Everything other than numbers, strings, arrays, collections and random generators is
omitted (functions, evaluators, options): the resumed run has its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from slomodel.solve.run.saved_classes import CREATED, SAVED

Code = object
Arrays = list[NDArray[np.generic]]

_ABSENT = object()


class Freezer:
    """Decomposes objects into JSON values; each array is stored once, in `arrays`."""

    def __init__(self) -> None:
        self.arrays: Arrays = []
        self._numbers: dict[int, int] = {}
        self._held: list[object] = []

    def freeze(self, value: object) -> Code:
        """The code of a value: a JSON value or a list [kind, …]."""
        if isinstance(value, Enum):
            return value.value if isinstance(value.value, str) else ["kept"]
        if value is None or isinstance(value, str | bool | int | float):
            return value
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, np.ndarray | np.random.Generator) or type(value) in SAVED:
            return self._shared(value)
        if isinstance(value, list | tuple | deque):
            kind = next(k for k, cls in _SEQUENCES.items() if isinstance(value, cls))
            return [kind, *map(self.freeze, value)]
        if isinstance(value, dict) and all(isinstance(key, str) for key in value):
            return ["dict", {key: self.freeze(one) for key, one in value.items()}]
        return ["kept"]

    def _shared(self, value: object) -> Code:
        if id(value) in self._numbers:
            return ["same", self._numbers[id(value)]]
        number = self._numbers[id(value)] = len(self._held)
        self._held.append(value)
        if isinstance(value, np.ndarray):
            self.arrays.append(value)
            return ["array", number, len(self.arrays) - 1]
        if isinstance(value, np.random.Generator):
            return ["generator", number, value.bit_generator.state]
        entry = SAVED[type(value)]
        parts = {
            entry.attributes.get(name, name): self.freeze(one)
            for name, one in _attributes(value).items()
        }
        return ["object", number, entry.name, parts]


class Thawer:
    """Reconstructs the objects that a Freezer decomposed."""

    def __init__(self, arrays: Sequence[NDArray[np.generic]]) -> None:
        self._arrays = arrays
        self._made: dict[int, object] = {}
        self._filled: set[int] = set()

    def thaw(self, code: Code, fresh: object = None) -> object:
        """The value of a code; `fresh` is the object in its place in the resumed run.

        Raises ValueError for a code that does not fit.
        """
        if not isinstance(code, list):
            return type(fresh)(code) if isinstance(fresh, Enum) else code
        kind, *rest = code
        if kind == "kept":
            return fresh
        if kind == "same":
            return self._made[rest[0]]
        if kind == "dict":
            known = fresh if isinstance(fresh, dict) else {}
            return {key: self.thaw(one, known.get(key)) for key, one in rest[0].items()}
        if kind in _SEQUENCES:
            return self._sequence(kind, rest, fresh)
        number, *rest = rest
        if kind == "object":
            return self._object(number, rest[0], rest[1], fresh)
        self._made[number] = self._leaf(kind, rest[0])
        return self._made[number]

    def _sequence(self, kind: str, codes: Sequence[Code], fresh: object) -> object:
        known: Iterable[object] = fresh if isinstance(fresh, list | tuple | deque) else ()
        before = [*known, *[None] * len(codes)]
        values = [self.thaw(one, old) for one, old in zip(codes, before, strict=False)]
        length = fresh.maxlen if isinstance(fresh, deque) else None
        return deque(values, length) if kind == "deque" else _SEQUENCES[kind](values)

    def _leaf(self, kind: str, held: object) -> object:
        if kind == "array" and isinstance(held, int):
            return self._arrays[held].copy()
        if kind == "generator" and isinstance(held, dict):
            generator = np.random.default_rng()
            generator.bit_generator.state = held
            return generator
        raise ValueError(kind)

    def _object(self, number: int, name: str, parts: dict[str, Code], fresh: object) -> object:
        entry = SAVED.get(type(fresh))
        same = entry is not None and entry.name == name and id(fresh) not in self._filled
        if not same:
            if name not in CREATED:
                raise ValueError(name)
            entry = CREATED[name]
        assert entry is not None
        result = fresh if same else object.__new__(entry.cls)
        self._filled.add(id(result))
        self._made[number] = result
        before = _attributes(result) if same else {}
        renamed = {saved: attribute for attribute, saved in entry.attributes.items()}
        for saved, code in (entry.upgrade(parts) if entry.upgrade else parts).items():
            attribute = renamed.get(saved, saved)
            object.__setattr__(result, attribute, self.thaw(code, before.get(attribute)))
        return result


_SEQUENCES: dict[str, type] = {"list": list, "tuple": tuple, "deque": deque}


def _attributes(value: object) -> dict[str, object]:
    """The attributes of an object by name, from its slots and its dict."""
    slots = [name for cls in type(value).__mro__ for name in getattr(cls, "__slots__", ())]
    names = [*slots, *getattr(value, "__dict__", {})]
    result = {name: getattr(value, name, _ABSENT) for name in names}
    return {name: one for name, one in result.items() if one is not _ABSENT}
