"""Text that C and CUDA have in common: numbers, blocks, helpers of functions."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from slomodel.functions import maximum, minimum
from slomodel.ir.function import ScalarFunction, every_function

_CALLED = re.compile(r"\b([a-z_]\w*)\(")
_DEFINED = re.compile(r"^static inline \w+ (\w+)\(", re.MULTILINE)
_EVERYWHERE = (maximum, minimum)
"""Functions whose helpers `EXTREME` calls in every text."""


def literal(value: float) -> str:
    """A literal that C reads back as exactly the same double."""
    if isinstance(value, bool):
        return "1" if value else "0"
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "(-INFINITY)"
    text = repr(float(value))
    return f"({text})" if text.startswith("-") else text


def indented(lines: Sequence[str]) -> list[str]:
    """Lines of a block; directives stay at the margin."""
    return [line if line.startswith("#") else f"    {line}" for line in lines]


def helpers(text: str) -> str:
    """Definitions of the helpers that scalar functions in a text call, for C and CUDA."""
    sources = [part for one in called(text) for part in _definitions(one.c.source)]
    return "".join(f"{source}\n" for source in dict.fromkeys(sources))


def called(text: str) -> Iterator[ScalarFunction]:
    """The scalar functions whose helpers or library functions a text calls."""
    names = set(_CALLED.findall(text))
    for function in every_function():
        own = {*_DEFINED.findall(function.c.source), *function.c.library}
        if function in _EVERYWHERE or not names.isdisjoint(own):
            yield function


def _definitions(source: str) -> list[str]:
    """The helpers of a record one by one, as several records may share a helper."""
    return [part.strip() for part in re.split(r"^(?=static )", source, flags=re.M) if part]
