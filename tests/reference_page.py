"""The examples of the pages of grammar/."""

import re
from collections.abc import Iterator
from pathlib import Path

from slomodel.front.catalogue import catalogue

GRAMMAR = Path(__file__).parents[1] / "grammar"
LISTED = GRAMMAR / "functions.md"
PAGE = "".join(
    path.read_text(encoding="utf-8")
    for path in (GRAMMAR / "reference.md", LISTED, GRAMMAR / "codes.md")
)
TABLE = re.compile(r"(?<=<!-- functions -->\n).*?(?=<!-- end -->)", re.DOTALL)
_STATED = re.compile(r"^(.*?) *# ([EW]\d{3})$")


def _blocks(fence: str) -> list[str]:
    found = re.findall(rf"^```{fence}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert found, f"no block {fence}"
    return found


def function_table() -> str:
    """The elementwise functions as a table of the page."""
    entries = [entry for entry in catalogue() if entry.is_scalar]
    rows = [
        f"| `{one.signature}` | {one.meaning} | {one.domain} | {one.smoothness} |"
        for one in entries
    ]
    return "\n".join(["| | | domain | smoothness |", "|---|---|---|---|", *rows, ""])


def slo_blocks() -> list[str]:
    return _blocks("slo")


def refused_lines() -> Iterator[tuple[str, str]]:
    """Each line that ends with a code, after the lines of its block without one."""
    for block in _blocks("slo refused"):
        lines = block.splitlines()
        before = "\n".join(line for line in lines if not _STATED.match(line))
        for line in lines:
            stated = _STATED.match(line)
            if stated:
                yield f"{before}\n{stated[1]}\n", stated[2]
