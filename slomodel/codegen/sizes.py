"""Names in generated source for the sizes of dims."""

from __future__ import annotations

from collections.abc import Sequence

from slomodel.ir.dims import Dim


def plain(text: str) -> str:
    """A user's names as comments and docstrings can hold them: nothing ends the line or the text.

    A SymPy symbol may have any name, `\\alpha` or a program, and all but quotes are shown.
    """
    escaped = text.replace("\\", "\\\\").replace('"', "'")
    return "".join(c if c.isprintable() else f"\\\\u{ord(c):04x}" for c in escaped)


class Sizes:
    """Names `n0, n1, …` of the named dims, in a fixed order."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._number = {name: f"n{k}" for k, name in enumerate(names)}

    def text(self, dim: Dim) -> str:
        """A dim as an expression in those names."""
        parts = [str(dim.const)] if dim.const or not dim.terms else []
        for name, coefficient in dim.terms:
            factor = "" if abs(coefficient) == 1 else f"{abs(coefficient)}*"
            parts.append(f"{'-' if coefficient < 0 else ''}{factor}{self._number[name]}")
        return " + ".join(parts[::-1]).replace("+ -", "- ")

    def shape(self, shape: Sequence[Dim]) -> str:
        """A shape as a tuple."""
        inner = ", ".join(self.text(dim) for dim in shape)
        return f"({inner},)" if len(shape) == 1 else f"({inner})"

    def product(self, shape: Sequence[Dim]) -> str:
        """The number of elements of a shape."""
        factors = [self.text(dim) for dim in shape]
        return "*".join(f"({f})" if " " in f else f for f in factors) or "1"
