"""Self-contained HTML pages: no scripts, external files or network access."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
       color: #1b1f24; background: #fff; }
h1 { margin-bottom: 0; } h2 { margin-top: 2.2rem; border-bottom: 1px solid #d0d7de; }
pre { background: #f6f8fa; padding: .8rem 1rem; overflow-x: auto; font-size: .85rem; }
table { border-collapse: collapse; } th { text-align: left; font-weight: 600; }
th, td { padding: .2rem 1.2rem .2rem 0; vertical-align: top; }
th { white-space: nowrap; } td { overflow-wrap: anywhere; }
img { max-width: 100%; }
"""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and the HTML below it."""

    title: str
    body: str


def page(title: str, sections: Sequence[Section]) -> str:
    """A complete document; titles are plain text."""
    parts = [f"<h2>{escape(one.title)}</h2>\n{one.body}" for one in sections]
    head = f'<meta charset="utf-8">\n<title>{escape(title)}</title>\n<style>{_STYLE}</style>'
    body = "\n".join([f"<h1>{escape(title)}</h1>", *parts])
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n{head}\n</head>\n'
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def paragraph(text: str) -> str:
    """Plain text as a paragraph."""
    return f"<p>{escape(text)}</p>"


def verbatim(text: str) -> str:
    """Plain text with line breaks and spaces preserved."""
    return f"<pre>{escape(text)}</pre>"


def folded(summary: str, text: str) -> str:
    """Plain text that is expanded by a click on its summary line."""
    return f"<details><summary>{escape(summary)}</summary>{verbatim(text)}</details>"


def facts(rows: Mapping[str, str]) -> str:
    """A table with one row per label and text."""
    lines = [f"<tr><th>{escape(k)}</th><td>{escape(v)}</td></tr>" for k, v in rows.items()]
    return "<table>\n" + "\n".join(lines) + "\n</table>"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of plain text with a head."""
    lines = [f"<tr>{''.join(f'<th>{escape(one)}</th>' for one in head)}</tr>"]
    lines += [f"<tr>{''.join(f'<td>{escape(one)}</td>' for one in row)}</tr>" for row in rows]
    return "<table>\n" + "\n".join(lines) + "\n</table>"


def picture(png: bytes, says: str) -> str:
    """An embedded PNG with `says` as its alternative text."""
    return f'<img src="data:image/png;base64,{b64encode(png).decode()}" alt="{escape(says)}">'
