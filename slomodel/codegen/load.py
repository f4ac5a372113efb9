"""The only place where generated source is executed; all names in it are chosen by slomodel."""

from __future__ import annotations

import linecache
from collections.abc import Callable


def load(text: str, name: str) -> dict[str, Callable[..., object]]:
    """The functions that a generated module defines. `name` labels it in tracebacks."""
    filename = f"<slomodel {name}>"
    lines = text.splitlines(keepends=True)
    linecache.cache[filename] = (len(text), None, lines, filename)
    space: dict[str, object] = {"__name__": f"slomodel.generated.{name}"}
    exec(compile(text, filename, "exec"), space)
    return {key: value for key, value in space.items() if callable(value)}
