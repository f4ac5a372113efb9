"""`slomodel report`: a page about a model, its bounds and a run."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from time import perf_counter
from typing import Any

import click
import numpy as np

from slomodel import plots
from slomodel.bounds import Bounds
from slomodel.bounds.result import checked_radius, shown
from slomodel.cli import options
from slomodel.cli.bounds import DEFAULT_RADII, Radii, document
from slomodel.cli.errors import handled_errors, shown_warnings
from slomodel.cli.inputs import check_ready, request, start_of_run
from slomodel.cli.outputs import check_target, print_json, write_text
from slomodel.cli.result import Result
from slomodel.errors import TargetLimit
from slomodel.front.text.mathml import mathml
from slomodel.html import (
    Curve,
    Section,
    chart,
    facts,
    folded,
    histogram,
    page,
    paragraph,
    picture,
    pictured,
    table,
    verbatim,
)
from slomodel.model import Model
from slomodel.model.inference import Scale
from slomodel.solve import Solution

OPTIONS = (
    *options.MODEL[:-1],
    click.option("-o", "--out", type=options.FILE, required=True, help="The HTML file to write."),
    click.option(
        "--radius",
        "radii",
        type=float,
        multiple=True,
        default=DEFAULT_RADII,
        metavar="R...",
        help="Radius of a ball to bound over; several radii give one row each [0.01 0.1 1].",
    ),
    click.option(
        "--compare",
        "compared",
        multiple=True,
        metavar="METHOD[:DIRECTION]",
        help="A further method from the same start, on the same plot; may be repeated.",
    ),
    options.STANDARD_ERRORS,
    *options.RUN,
    options.MODEL[-1],
)
_SHARED = ("x0", "seed", "gtol", "max_iter", "max_nfev", "max_time")
"""The options of the run that the compared methods take as well."""


@click.command(cls=Radii)
@options.given(OPTIONS)
def report(
    file: Path,
    settings: dict[str, str],
    files: dict[str, str],
    out: Path,
    radii: tuple[float, ...],
    compared: tuple[str, ...],
    scale: Scale | None,
    x0: Path | None,
    backend: str,
    dtype: str,
    progress: bool,
    as_json: bool,
    **chosen: object,
) -> None:
    """Write a page about a model and a run: one self-contained HTML file.

    FILE is a model, or - for standard input. The page shows the model and its formula, the data,
    the run with its curves, standard errors if wanted, proved Lipschitz constants over balls about
    the final point, what is proved about it, and the command that writes the page again. Ctrl-C
    ends the run, and the page is written.

    \b
    slomodel report models/deep_linear.slo --max-time 5 -o deep_linear.html
    slomodel report models/rosenbrock.slo --set n=10 --verify --radius 0.1 1 -o rosenbrock.html
    slomodel report models/rosenbrock.slo --set n=10 --compare adgd -o rosenbrock.html
    slomodel report plots.slo --standard-errors likelihood -o plots.html
    """
    given: dict[str, Any] = {name: value for name, value in chosen.items() if value is not None}
    with handled_errors(as_json):
        check_target(out)
        for radius in radii:
            checked_radius(radius)
        requested = request(file, settings, files)
        model = requested.model(backend, dtype)
        check_ready(requested, model)
        if x0:
            given["x0"] = start_of_run(x0)
        words = {**chosen, "x0": x0, "compare": compared, "radius": radii}
        words |= {"backend": backend, "dtype": dtype, "standard_errors": scale}
        result = _run_of(model, given, progress, scale)
        others = [_other_run(model, one, given, progress) for one in compared]
        bounds = _bounds_at(model, result.solution, radii)
        sections = [
            *_model(requested.text, model),
            *data_sections(model),
            _run(result, others),
            *_standard_errors(result),
            _bounds(bounds),
            *_certificate(model, result.solution, bounds),
            Section(
                "How this page was made", verbatim(_command(file, settings, files, out, words))
            ),
        ]
        write_text(out, page(model.name or "a model", sections))
        _report(result, bounds, out, as_json)
        sys.exit(result.exit_code)


def _run_of(model: Model, given: dict[str, Any], progress: bool, scale: Scale | None) -> Result:
    began = perf_counter()
    with shown_warnings():
        solution = model.solve(progress=progress, **given)
    seconds = perf_counter() - began
    uncertainty = None if scale is None else model.uncertainty_of(solution, scale)
    return Result(
        *(model.name, solution, seconds, given.keys(), None, None, model.axis_labels),
        uncertainty=uncertainty,
    )


def _other_run(model: Model, name: str, given: dict[str, Any], progress: bool) -> Solution:
    """A run to compare with, by `METHOD` or `METHOD:DIRECTION`."""
    method, _, direction = name.partition(":")
    options = {key: given[key] for key in _SHARED if key in given}
    options |= {"direction": direction} if direction else {}
    with shown_warnings():
        return model.solve(method, progress=progress, **options)


def _report(result: Result, balls: Sequence[Bounds], out: Path, as_json: bool) -> None:
    if as_json:
        bounds = [document(one) for one in balls]
        print_json({**result.document(), "bounds": bounds, "out": str(out)})
        return
    click.echo(f"{result.solution.status}: {result.solution.message}\nwrote {out}")


def _certificate(model: Model, solution: Solution, bounds: Sequence[Bounds]) -> list[Section]:
    """Statements proved about the final point, and a picture of the bounds around it."""
    parts = [*map(paragraph, model.certify(solution).summary.splitlines())]
    balls = sorted((b for b in bounds if 0.0 < b.radius < math.inf), key=lambda b: b.radius)
    if len(balls) > 1 and math.isfinite(bounds[0].L1):
        try:
            seen = [model.sample_bounds(solution.x, ball.radius, 20).L1 for ball in balls]
            figure = plots.of_bounds(balls, seen, name=model.name)
        except TargetLimit:
            return [Section("The final point", "\n".join(parts))]
        file = BytesIO()
        figure.savefig(file, format="png")
        parts.append(picture(file.getvalue(), "L1 and the ends of the spectrum against the radius"))
    return [Section("The final point", "\n".join(parts))]


def _model(text: str, model: Model) -> list[Section]:
    latex = model.latex()
    formula = mathml(latex) + verbatim(text.strip()) + folded("in LaTeX", latex)
    return [
        Section("The model", formula + folded("what the compiler did", model.explain())),
    ]


def data_sections(model: Model) -> list[Section]:
    """The data, each with its shape, range and a histogram; no section without data."""
    rows = []
    for name, array in model.data.items():
        values = array[np.isfinite(array)].ravel()
        shape = " × ".join(map(str, array.shape)) or "number"
        cells = [name, shape]
        if values.size:
            missing = array.size - values.size
            cells += [f"{values.min():.4g}", f"{np.median(values):.4g}", f"{values.max():.4g}"]
            cells += [f"{missing:,}" if missing else ""]
        counts = np.histogram(values, bins=16)[0].tolist() if values.size > 1 else []
        rows.append(([*cells, "", "", "", ""][:6], histogram(counts) if counts else ""))
    head = ["data", "shape", "least", "median", "largest", "missing", "histogram"]
    if not any(cells[5] for cells, _ in rows):
        head.remove("missing")
        rows = [(cells[:5], drawn) for cells, drawn in rows]
    return [Section("Data", pictured(head, rows))] if rows else []


def _command(
    file: Path,
    settings: Mapping[str, str],
    files: Mapping[str, str],
    out: Path,
    chosen: Mapping[str, object],
) -> str:
    """The command line that writes this page again."""
    words = ["slomodel", "report", str(file)]
    for name, number in settings.items():
        words += ["--set", f"{name}={number}"]
    for name, path in files.items():
        words += ["--data", f"{name}={path}" if path else name]
    for name, value in chosen.items():
        flag = f"--{name}" if len(name) == 1 else f"--{name.replace('_', '-')}"
        if value is True:
            words.append(flag)
        elif isinstance(value, tuple):
            for one in value:
                words += [flag, f"{one:g}" if isinstance(one, float) else str(one)]
        elif value is not None and value is not False:
            words += [flag, str(value)]
    return shlex.join([*words, "-o", str(out)])


def _run(result: Result, others: Sequence[Solution]) -> Section:
    """The run, and the curves of all methods on the same axes."""
    parts = [facts(result.rows()), _curves([result.solution, *others], result.name)]
    if others:
        head = ("method", "status", "objective", "gradient norm", "iterations", "seconds")
        rows = [_compared(one) for one in (result.solution, *others)]
        parts.append(table(head, rows))
    if result.solution.certificate:
        parts.append(verbatim(result.solution.certificate.summary))
    return Section("The run", "\n".join(parts))


def _standard_errors(result: Result) -> list[Section]:
    """The table of estimates, if it was requested, with what it assumes."""
    fit = result.uncertainty
    return [] if fit is None else [Section("Standard errors", fit._repr_html_())]


def _compared(solution: Solution) -> tuple[str, ...]:
    """A row of the table of methods."""
    direction = str(solution.parameters.get("direction", ""))
    return (
        f"{solution.method} {direction}".strip(),
        str(solution.status),
        f"{solution.fun:.9g}",
        f"{solution.gradient_norm:.3g}",
        f"{solution.nit:,}",
        f"{float(solution.history.time[-1:].sum()):.3g}",
    )


def _curves(solutions: Sequence[Solution], name: str) -> str:
    """Gradient norm and objective against time: of one run, or of several on the same axes."""
    try:
        drawn = solutions if len(solutions) > 1 else solutions[0]
        figure = plots.convergence(drawn, name=name)
    except TargetLimit as missing:
        return paragraph(f"No curves: {missing}")
    file = BytesIO()
    figure.savefig(file, format="png")
    return picture(file.getvalue(), "gradient norm and objective against time")


def _bounds_at(model: Model, solution: Solution, radii: Sequence[float]) -> list[Bounds]:
    first = model.bounds(solution.x, radii[0])
    return [first, *(first.at(radius) for radius in radii[1:])]


def _bounds(every: Sequence[Bounds]) -> Section:
    """Table of the bounds over the balls, with foldable derivations."""
    rows: list[tuple[str, ...]] = [
        (f"{b.radius:g}", shown(b.L1), shown(b.L2), b.rule, b.reason or "") for b in every
    ]
    says = paragraph(
        "Over the ball of this radius about the final point, the gradient has the Lipschitz "
        "constant L1 and the Hessian L2. They are proved, in floating point too; inf where no "
        "bound exists or none is found."
    )
    drawn = [
        Curve(name, [one.radius for one in every], [getattr(one, name) for one in every])
        for name in ("L1", "L2")
    ]
    curves = chart(drawn, "radius", "constant", log_x=True) if len(every) > 1 else ""
    steps = [folded(f"steps of the bound, radius {b.radius:g}", b.explain()) for b in every]
    head = ["radius", "L1", "L2", "rule", "why inf"]
    if not any(b.reason for b in every):
        head, rows = head[:-1], [row[:-1] for row in rows]
    return Section(
        "Proved Lipschitz constants", "\n".join([says, table(head, rows), curves, *steps])
    )
