"""White space between two tokens of one line, in the standard layout."""

from __future__ import annotations

from collections.abc import Sequence

from slomodel.front.text.failure import ENDS_OPERAND

_WIDEST_KEYWORD = len("data")
_PADDED = ("DIM", "DATA", "VAR", "LET", "FN")
_OPENING = ("LPAR", "LSQB")
_CLOSING = ("RPAR", "RSQB")


def padded(keyword: str, kind: str) -> str:
    """A keyword with the space after it: declarations begin in one column."""
    return keyword.ljust(_WIDEST_KEYWORD) + " " if kind in _PADDED else keyword + " "


def is_sign(kinds: Sequence[str], k: int) -> bool:
    """True for a `+` or `-` with nothing on its left."""
    return kinds[k] == "ADDOP" and (k == 0 or kinds[k - 1] not in ENDS_OPERAND)


def is_attached(kinds: Sequence[str], k: int) -> bool:
    """True where token k belongs on the line of the one before: a call, an index, a transpose."""
    if kinds[k] == "LPAR":
        return kinds[k - 1] == "NAME"
    return kinds[k] in ("LSQB", "TRANSPOSE", "COMMA")


def space_before(kinds: Sequence[str], words: Sequence[str], k: int, innermost: str) -> str:
    """The space between tokens k - 1 and k of a statement, inside the bracket `innermost`."""
    left, right = kinds[k - 1], kinds[k]
    if is_attached(kinds, k) or left in _OPENING or right in _CLOSING:
        return ""
    if "COLON" in (left, right) and left != "COMMA":
        return " " if left == "COLON" and innermost != "LSQB" else ""
    if "EQUAL" in (left, right):
        return "" if innermost == "LPAR" else " "
    if is_sign(kinds, k - 1):
        return ""
    if _is_tight(left, words[k - 1], innermost) or _is_tight(right, words[k], innermost):
        return ""
    return " "


def _is_tight(kind: str, word: str, innermost: str) -> bool:
    """Powers stand close, and so do sums and multiples in an index: `x^2`, `x[2*i+1]`."""
    if kind == "POWOP":
        return word != ".^"
    return innermost == "LSQB" and (kind == "ADDOP" or word == "*")
