"""Tables beside the paper's, figures, and the command line of every script."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
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
    "lbfgs exact": "#2ca02c",
    "auto": "#000000",
}
# The least gap that is told; where f* is not 0 it is the spacing of numbers near f*.
FLOOR = 1e-32
EPS = float(np.finfo(np.float64).eps)


def main(
    name: str, cases: Sequence[Case], published: Published, argv: Sequence[str] | None = None
) -> None:
    """Run a table as the command line says; print it, draw its figure, write both below --out."""
    given = arguments(name, [case.name for case in cases]).parse_args(argv)
    chosen = [case for case in cases if case.name in given.cases]
    folder = given.out / name
    runs = all_runs(folder, chosen, given.methods, given.rounds, given.seconds, given.workers)
    text = "\n".join(table(case, runs, published.get(case.name, {})) for case in chosen)
    print(text)
    folder.mkdir(parents=True, exist_ok=True)
    folder.with_suffix(".md").write_text(text, encoding="utf-8")
    figure(chosen, runs).savefig(folder.with_suffix(".png"))
    print(f"written: {folder.with_suffix('.md')}, {folder.with_suffix('.png')}")


def arguments(
    name: str, cases: Sequence[str] = (), methods: Sequence[str] = tuple(METHODS)
) -> argparse.ArgumentParser:
    """The options that every script takes, and --cases where there are any."""
    parser = argparse.ArgumentParser(prog=f"{name}.py")
    for option, kind, default, text in (
        ("--rounds", int, 20, "starts of each case (20, as in the paper)"),
        ("--seconds", float, 10.0, "seconds on the processor a run (10, as in the paper)"),
        ("--workers", int, 1, "processes, one thread each (1)"),
        ("--out", Path, Path("out/paper"), "folder for runs, table and figure (out/paper)"),
    ):
        parser.add_argument(option, type=kind, default=default, help=text)
    for option, every in (("--methods", methods), ("--cases", cases)):
        if every:
            kind, text = option[2:-1].upper(), f"some of: {', '.join(every)}"
            parser.add_argument(
                option, nargs="+", choices=every, default=list(every), metavar=kind, help=text
            )
    return parser


def table(case: Case, runs: Sequence[Run], paper: Mapping[str, tuple[float, ...]]) -> str:
    """Markdown: one row a method, the paper's numbers in the last columns."""
    header = HEADER if paper else HEADER[:6]
    lines = [f"### {case.name}", ""]
    lines += ["| " + " | ".join(header) + " |", "|---" + "|---:" * (len(header) - 1) + "|"]
    for method, found in of_case(runs, case):
        *values, evaluations = summary(case, found)
        count = f"{evaluations:,.0f}" if found else number(math.nan)
        cells = [method, *map(number, values), count]
        if paper:
            cells += map(number, paper.get(method, (math.nan,) * 4))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, ""])


def summary(case: Case, runs: Sequence[Run]) -> tuple[float, ...]:
    """Gradient norm best and average, gap best and average, evaluations a run."""
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


def gap(case: Case, funs: Sequence[float]) -> Array:
    """f − f*, nothing below the resolution of f."""
    return np.maximum(np.array(funs) - case.least, max(FLOOR, EPS * abs(case.least)))


def number(value: float) -> str:
    """Two digits; a dash for what is not there."""
    if math.isnan(value):
        return "–"
    return f"{value:.1e}" if value else "0"


def figure(cases: Sequence[Case], runs: Sequence[Run]) -> Figure:
    """Gradient norm above value gap, against time, one column a case: the first round's curves."""
    drawn = Figure(figsize=(4.0 * max(2, len(cases)), 7.6), dpi=110.0, layout="constrained")
    FigureCanvasAgg(drawn)
    grid = drawn.subplots(2, len(cases), squeeze=False)
    for column, case in enumerate(cases):
        for method, found in of_case(runs, case):
            if found:
                gaps = gap(case, found[0].funs)
                curve(grid[0, column], found[0].times, np.array(found[0].norms), method)
                curve(grid[1, column], found[0].times, gaps, method)
        grid[0, column].set_title(case.name)
        label(grid[0, column], "gradient norm ‖∇f‖" if column == 0 else "")
        label(grid[1, column], "value gap f − f*" if column == 0 else "")
    handles = {
        name: handle
        for axes in grid[0]
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    drawn.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=5)
    return drawn


def curve(axes: Axes, times: Sequence[float], values: Array, method: str) -> None:
    """One run; the first point stands at the first millisecond."""
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
    axes.set_xlabel("seconds on the processor")
    axes.set_ylabel(what)
    axes.grid(visible=True, which="major", alpha=0.3)
