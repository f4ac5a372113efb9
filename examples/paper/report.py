"""Tables beside those of the paper, figures, and the command line of every script."""

from __future__ import annotations

import argparse
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image
from protocol import METHODS, Array, Case, Run, all_runs, of_case

Published = Mapping[str, Mapping[str, tuple[float, float, float, float]]]
"""Case → method → gradient norm best and average, value gap best and average."""

HEADER = (
    "method",
    "‖∇f‖ best",
    "average",
    "gap best",
    "average",
    "evaluations",
    "paper: ‖∇f‖ best",
    "average",
    "gap best",
    "average",
)
COLOURS = {
    "gd": "#e377c2",
    "std-armijo": "#7f7f7f",
    "bpg": "#8c564b",
    "norm-armijo": "#d62728",
    "tgd": "#ff9f1c",
    "pgd": "#bcbd22",
    "tgd proved": "#1f77b4",
    "tgd certified": "#17becf",
    "agp": "#9467bd",
    "certified": "#e7969c",
    "lbfgs certified": "#98df8a",
    "lbfgs exact": "#2ca02c",
    "auto": "#000000",
}
# The least gap that is reported; unless f* is 0, it is the spacing of numbers near f*.
FLOOR = 1e-32
MOST_COLUMNS = 6
# If f* is the least value seen, gaps this far below that of the start only show who saw it.
SEEN = 1e-6
COLOURS_OF_A_FILE = 256
EPS = float(np.finfo(np.float64).eps)


def main(
    name: str,
    cases: Sequence[Case],
    published: Published | None = None,
    methods: Sequence[str] = tuple(METHODS),
) -> None:
    """Run a table by the options of the command line; print it, draw its figure, write both.

    Without published numbers, all cases share two tables of averages; `methods` are the default.
    """
    given = arguments(name, [case.name for case in cases], defaults=methods).parse_args()
    chosen = [case for case in cases if case.name in given.cases]
    folder = given.out / name
    runs = all_runs(folder, chosen, given.methods, given.rounds, given.seconds, given.workers)
    seen = {case.name for case in chosen if case.least is None}
    lows = {case.name: lowest(case, runs) for case in chosen}
    chosen = [replace(case, least=lows[case.name]) for case in chosen]
    if published is None:
        text = overview(chosen, runs)
    else:
        text = "\n".join(table(case, runs, published[case.name]) for case in chosen)
    print(text)
    folder.mkdir(parents=True, exist_ok=True)
    folder.with_suffix(".md").write_text(text, encoding="utf-8")
    save(figure(chosen, runs, seen), folder.with_suffix(".png"))
    print(f"written: {folder.with_suffix('.md')}, {folder.with_suffix('.png')}")


def arguments(
    name: str,
    cases: Sequence[str] = (),
    methods: Sequence[str] = tuple(METHODS),
    defaults: Sequence[str] = (),
) -> argparse.ArgumentParser:
    """The options of every script, and --cases if there are any."""
    parser = argparse.ArgumentParser(prog=f"{name}.py")
    for option, kind, default, text in (
        ("--rounds", int, 20, "starts of each case (20, as in the paper)"),
        ("--seconds", float, 10.0, "CPU seconds per run (10, as in the paper)"),
        ("--workers", int, 1, "processes, one thread each (1)"),
        ("--out", Path, Path("out/paper"), "folder for runs, table and figure (out/paper)"),
    ):
        parser.add_argument(option, type=kind, default=default, help=text)
    for option, every, some in (("--methods", methods, defaults), ("--cases", cases, ())):
        if every:
            kind, text = option[2:-1].upper(), f"some of: {', '.join(every)}"
            chosen = list(some or every)
            parser.add_argument(
                option, nargs="+", choices=every, default=chosen, metavar=kind, help=text
            )
    return parser


def table(case: Case, runs: Sequence[Run], paper: Mapping[str, tuple[float, ...]]) -> str:
    """Markdown: one row per method, the paper's numbers in the last columns."""
    lines = [f"### {case.name}", "", *heading(HEADER)]
    for method, found in of_case(runs, case):
        *values, evaluations = summary(case, found)
        count = f"{evaluations:,.0f}" if found else number(math.nan)
        cells = [method, *map(number, values), count]
        cells += map(number, paper.get(method, (math.nan,) * 4))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, ""])


def heading(cells: Sequence[str]) -> list[str]:
    """The first two lines of a table in markdown, numbers to the right."""
    return ["| " + " | ".join(cells) + " |", "|---" + "|---:" * (len(cells) - 1) + "|"]


def overview(cases: Sequence[Case], runs: Sequence[Run]) -> str:
    """Markdown: one row per case, one column per method; average gaps, then gradient norms."""
    lines = []
    for title, place in (("value gap, average", 3), ("‖∇f‖, average", 1)):
        lines += [f"### {title}", "", *heading(["case", *dict.fromkeys(r.method for r in runs)])]
        for case in cases:
            values = [summary(case, found)[place] for _, found in of_case(runs, case)]
            lines.append("| " + " | ".join([case.name, *map(number, values)]) + " |")
        lines.append("")
    return "\n".join(lines)


def summary(case: Case, runs: Sequence[Run]) -> tuple[float, ...]:
    """Gradient norm best and average, gap best and average, evaluations per run."""
    if not runs:
        return (math.nan,) * 5
    norms = np.array([run.gradient_norm for run in runs])
    gaps = gap(case, [run.fun for run in runs])
    evaluations = float(np.mean([run.nfev for run in runs]))
    return (
        float(norms.min()),
        float(norms.mean()),
        float(gaps.min()),
        float(gaps.mean()),
        evaluations,
    )


def lowest(case: Case, runs: Sequence[Run]) -> float:
    """f*, or the least value of any run if f* is unknown."""
    if case.least is not None:
        return case.least
    return min((run.fun for _, found in of_case(runs, case) for run in found), default=math.nan)


def gap(case: Case, funs: Sequence[float]) -> Array:
    """f − f*, nothing below the resolution of f."""
    assert case.least is not None
    return np.maximum(np.array(funs) - case.least, max(FLOOR, EPS * abs(case.least)))


def number(value: float) -> str:
    """Two digits; a dash for a missing number."""
    if math.isnan(value):
        return "–"
    return f"{value:.1e}" if value else "0"


def save(drawn: Figure, path: Path) -> None:
    """A PNG with a palette, less than half the size of one without."""
    canvas = FigureCanvasAgg(drawn)
    canvas.draw()
    image = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    image.quantize(COLOURS_OF_A_FILE).save(path, optimize=True)


def figure(cases: Sequence[Case], runs: Sequence[Run], seen: Collection[str]) -> Figure:
    """Gradient norm above value gap, against time, one column per case: curves of the first round.

    `seen`: names of the cases whose f* is the least value seen.
    """
    columns = min(MOST_COLUMNS, len(cases))
    blocks = math.ceil(len(cases) / columns)
    drawn = Figure((3.3 * max(2, columns), 5.6 * blocks + 0.6), dpi=110.0, layout="constrained")
    FigureCanvasAgg(drawn)
    grid = drawn.subplots(2 * blocks, columns, squeeze=False)
    for axes in grid[-2:, len(cases) - columns * (blocks - 1) :].flat:
        axes.set_visible(False)
    handles = {}
    for place, case in enumerate(cases):
        block, column = divmod(place, columns)
        upper, lower = grid[2 * block, column], grid[2 * block + 1, column]
        for method, found in of_case(runs, case):
            if found:
                curve(upper, found[0].times, np.array(found[0].norms), method)
                curve(lower, found[0].times, gap(case, found[0].funs), method)
        if case.name in seen:
            lower.set_ylim(bottom=SEEN * lower.dataLim.ymax)
        upper.set_title(case.name)
        label(upper, "gradient norm ‖∇f‖" if column == 0 else "")
        label(lower, "value gap f − f*" if column == 0 else "")
        handles |= {line.get_label(): line for line in upper.get_lines()}
    drawn.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=5)
    return drawn


def curve(axes: Axes, times: Sequence[float], values: Array, method: str) -> None:
    """One run; the first point is drawn at 1 ms."""
    axes.plot(
        np.maximum(times, 1e-3),
        np.maximum(values, FLOOR),
        color=COLOURS[method],
        label=method,
        linewidth=1.3,
    )


def label(axes: Axes, what: str) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("CPU seconds")
    axes.set_ylabel(what)
    axes.grid(visible=True, which="major", alpha=0.3)
