"""Tables, pictures and pages in HTML without scripts, external files or network access."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import isfinite, log10

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
       color: #1b1f24; background: #fff; }
h1 { margin-bottom: 0; } h2 { margin-top: 2.2rem; border-bottom: 1px solid #d0d7de; }
pre { background: #f6f8fa; padding: .8rem 1rem; overflow-x: auto; font-size: .85rem; }
table { border-collapse: collapse; } th { text-align: left; font-weight: 600; }
th, td { padding: .2rem 1.2rem .2rem 0; vertical-align: top; }
th { white-space: nowrap; } td { overflow-wrap: break-word; }
img, svg { max-width: 100%; }
.scrolled { overflow-x: auto; margin: .8rem 0; }
section { overflow-x: auto; } math { margin: 1rem 0; }
mtable.aligned > mtr > mtd { text-align: left; padding: .25rem .3rem; }
mtable.aligned > mtr > mtd:first-child { text-align: right; } mtable.cases mtd { text-align: left; }
@media (max-width: 40rem) { th { white-space: normal; } th, td { padding-right: .6rem; }
  .scrolled img { max-width: none; width: 44rem; } }
@media (prefers-color-scheme: dark) { body { color: #e6edf3; background: #0d1117; }
  pre { background: #161b22; } h2 { border-color: #30363d; } }
"""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and the HTML below it."""

    title: str
    body: str


def page(title: str, sections: Sequence[Section]) -> str:
    """A complete document; titles are plain text."""
    parts = [
        f"<section>\n<h2>{escape(section.title)}</h2>\n{section.body}\n</section>"
        for section in sections
    ]
    meta = '<meta charset="utf-8">\n<meta name="viewport" content="width=device-width">'
    head = f"{meta}\n<title>{escape(title)}</title>\n<style>{_STYLE}</style>"
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
    # Notebooks align cells to the right, which is for numbers.
    cell = '<td style="text-align:left">'
    lines = [f"<tr><th>{escape(k)}</th>{cell}{escape(v)}</td></tr>" for k, v in rows.items()]
    return "<table>\n" + "\n".join(lines) + "\n</table>"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of plain text with a head."""
    lines = [f"<tr>{''.join(f'<th>{escape(one)}</th>' for one in head)}</tr>"]
    lines += [f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows]
    return "<table>\n" + "\n".join(lines) + "\n</table>"


def _cell(text: str) -> str:
    """A cell of a table; a number or word stays on one line, also one such as 1e-17."""
    style = "" if " " in text else ' style="white-space:nowrap"'
    return f"<td{style}>{escape(text)}</td>"


def picture(png: bytes, says: str) -> str:
    """An embedded PNG with `says` as its alternative text."""
    image = f'<img src="data:image/png;base64,{b64encode(png).decode()}" alt="{escape(says)}">'
    return f'<div class="scrolled">{image}</div>'


@dataclass(frozen=True, slots=True)
class Curve:
    """A named line through points (x, y), drawn up to the last finite one."""

    name: str
    x: Sequence[float]
    y: Sequence[float]


_COLOURS = ("#2f7fc8", "#d1495b", "#2e9b5f", "#9a6fc4", "#b8862f")
"""Colours with a contrast of at least 3 on white and on the dark grounds of pages and notebooks."""
_WIDTH, _HEIGHT = 420.0, 190.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 76.0, 26.0, 12.0, 34.0
_MOST_POINTS = 400


def chart(curves: Sequence[Curve], x_label: str, y_label: str, *, log_x: bool = False) -> str:
    """Curves as an SVG picture; the vertical axis is logarithmic if all values are positive.

    Points that are not finite, or not positive on a logarithmic axis, are left out.
    """
    log_y = all(v > 0.0 for one in curves for v in one.y if isfinite(v))
    scaled = [(curve.name, _points(curve, log_x, log_y)) for curve in curves]
    every = [point for _, points in scaled for point in points]
    if not every:
        return paragraph("There is nothing finite to draw.")
    low_x, high_x = _ends([x for x, _ in every])
    low_y, high_y = _ends([y for _, y in every])

    def place(x: float, y: float) -> tuple[float, float]:
        across = (x - low_x) / (high_x - low_x)
        up = (y - low_y) / (high_y - low_y)
        return (
            _LEFT + across * (_WIDTH - _LEFT - _RIGHT),
            _HEIGHT - _BOTTOM - up * (_HEIGHT - _TOP - _BOTTOM),
        )

    parts = [_axes(x_label, y_label)]
    parts += [_tick(place(x, low_y), _number(x, log_x), "middle") for x in _thirds(low_x, high_x)]
    parts += [_tick(place(low_x, y), _number(y, log_y), "end") for y in _thirds(low_y, high_y)]
    for k, (name, points) in enumerate(scaled):
        colour = _COLOURS[k % len(_COLOURS)]
        line = " ".join("{:.1f},{:.1f}".format(*place(x, y)) for x, y in points)
        parts.append(
            f'<polyline fill="none" stroke="{colour}" stroke-width="1.6" points="{line}"/>'
        )
        if len(points) == 1:
            parts.append('<circle cx="{:.1f}" cy="{:.1f}" r="2.5"/>'.format(*place(*points[0])))
        if len(scaled) > 1:
            y = _TOP + 12.0 * (k + 1)
            at = f'x="{_LEFT + 8.0}" y="{y}"'
            parts.append(f'<text {at} fill="{colour}">{escape(name)}</text>')
    says = escape(f"{y_label} against {x_label}")
    return (
        f'<svg role="img" aria-label="{says}" viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" '
        f'width="{_WIDTH:g}" fill="currentColor" style="max-width:100%;font:11px sans-serif">'
        f"{''.join(parts)}</svg>"
    )


def histogram(counts: Sequence[int]) -> str:
    """A small bar for each count, as an SVG picture."""
    most = max(counts, default=0) or 1
    bars = "".join(
        f'<rect x="{8 * k}" y="{24.0 - 24.0 * count / most:.1f}" width="7" '
        f'height="{24.0 * count / most:.1f}" fill="{_COLOURS[0]}"/>'
        for k, count in enumerate(counts)
    )
    width = 8 * len(counts)
    # With max-width, a column of a table may take no width for its pictures.
    style = f"width:{width}px;height:24px;max-width:none"
    box = f'viewBox="0 0 {width} 24" style="{style}"'
    return f'<svg role="img" aria-label="histogram" {box}>{bars}</svg>'


def pictured(head: Sequence[str], rows: Sequence[tuple[Sequence[str], str]]) -> str:
    """A table of plain text whose last column has a picture."""
    lines = [f"<tr>{''.join(f'<th>{escape(one)}</th>' for one in head)}</tr>"]
    for cells, picture_of in rows:
        text = "".join(map(_cell, cells))
        lines.append(f"<tr>{text}<td>{picture_of}</td></tr>")
    return "<table>\n" + "\n".join(lines) + "\n</table>"


def _points(curve: Curve, log_x: bool, log_y: bool) -> list[tuple[float, float]]:
    """The points on the scales of the axes, at most a few hundred of them."""
    usable = [
        (log10(x) if log_x else x, log10(y) if log_y else y)
        for x, y in zip(curve.x, curve.y, strict=True)
        if isfinite(x) and isfinite(y) and (x > 0.0 or not log_x)
    ]
    step = max(1, len(usable) // _MOST_POINTS)
    return [*usable[:-1:step], *usable[-1:]]


def _ends(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    if high - low <= 1e-12 * max(abs(low), abs(high), 1e-300):
        return low - 0.5 * (abs(low) or 1.0), high + 0.5 * (abs(high) or 1.0)
    return low, high


def _thirds(low: float, high: float) -> tuple[float, float, float]:
    return low, 0.5 * (low + high), high


def _number(value: float, is_log: bool) -> str:
    return f"{10.0**value if is_log else value:.3g}" if not is_log or value < 308 else "1e308"


def _axes(x_label: str, y_label: str) -> str:
    x, y = _LEFT, _HEIGHT - _BOTTOM
    below = f'x="{(x + _WIDTH) / 2}" y="{_HEIGHT - 4}"'
    return (
        f'<path d="M{x} {_TOP}V{y}H{_WIDTH - _RIGHT}" fill="none" stroke="#8b949e"/>'
        f'<text {below} text-anchor="middle">{escape(x_label)}</text>'
        f'<text transform="translate(11 {(y + _TOP) / 2}) rotate(-90)" '
        f'text-anchor="middle">{escape(y_label)}</text>'
    )


def _tick(place: tuple[float, float], text: str, anchor: str) -> str:
    x, y = place
    dx, dy = (0.0, 14.0) if anchor == "middle" else (-5.0, 4.0)
    return f'<text x="{x + dx:.1f}" y="{y + dy:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
