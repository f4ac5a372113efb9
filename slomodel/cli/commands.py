"""The commands, each of which calls the library once and prints a table or JSON."""

from __future__ import annotations

import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import click

from slomodel.cli import options
from slomodel.cli.errors import handled_errors, shown_warnings
from slomodel.cli.inputs import check_ready, request, start_of_run
from slomodel.cli.outputs import check_target, print_json, save_arrays, write_text
from slomodel.cli.result import Result, check_outputs
from slomodel.model.blocks import over_blocks
from slomodel.model.cluster import connected

_EXIT_CODES = """\b
Exit codes:
  0    solved, or ended by a --max-time, --max-iter or --max-nfev that was given
  1    bad input: the model, its data, an option's value, a file that cannot be written
  2    the command line itself
  3    ended without a solution: the status says why
  130  Ctrl-C

\b
--json:
  values     the variables if they have at most 100 numbers in all; else null (use --out)
  nonfinite  the numbers that are NaN or infinite, as text; in their place stands null
"""


@click.command()
@options.given(options.MODEL)
def check(file: Path, settings: dict[str, str], files: dict[str, str], as_json: bool) -> None:
    """Report the errors of a model, or its variables, sizes and data.

    FILE is a model, or - for standard input. Data may be missing; files, defaults and checks that
    the model names are examined as far as that is possible without it. Nothing is solved.

    \b
    slomodel check models/deep_linear.slo
    slomodel check models/deep_linear.slo --set h1=30 --json
    """
    with handled_errors(as_json):
        requested = request(file, settings, files)
        model = requested.model()
        if as_json:
            print_json(requested.facts())
            return
        click.echo(model.explain())
        if model.missing:
            click.echo(f"missing    {', '.join(model.missing)} (give with --data NAME=PATH)")


@click.command()
@options.given(options.MODEL)
@options.given(options.CODEGEN)
def codegen(
    file: Path,
    settings: dict[str, str],
    files: dict[str, str],
    as_json: bool,
    target: str,
    rays: bool,
    out: Path | None,
) -> None:
    """Write the kernels of a model as source code that runs without slomodel.

    For numpy, numexpr and cupy it is a Python module with value(x, data), gradient(x, data),
    value_and_gradient(x, data) and hvp(x, v, data). For c and cuda it is the text of the kernels
    alone, with comments at the top that say how to call them. With --rays it has
    ray_bounds(x, v, T, data): bounds on the objective along x + t v, 0 <= t <= T.

    \b
    slomodel codegen models/deep_linear.slo --target numpy -o deep_linear.py
    """
    with handled_errors(as_json):
        if out:
            check_target(out)
        requested = request(file, settings, files)
        model = requested.model()
        check_ready(requested, model, values=False)
        source = model.ray_source(target) if rays else model.source(target)
        if out:
            write_text(out, source)
        if as_json:
            print_json({"model": model.name, "out": str(out) if out else None, "source": source})
        else:
            click.echo(f"wrote {out}" if out else source, nl=bool(out))


@click.command("random-data")
@options.given(options.RANDOM_DATA)
def draw_data(file: Path, settings: dict[str, str], out: Path, seed: int, as_json: bool) -> None:
    """Write random data that a model accepts: right in shape, attributes and checks.

    FILE is a model, or - for standard input. Dims without a size get a small one; data with a
    default are left out.

    \b
    slomodel random-data models/phase_retrieval.slo --set n=20 --set m=100 -o data.npz
    slomodel solve models/phase_retrieval.slo --data A=data.npz --data y=data.npz
    """
    with handled_errors(as_json):
        check_target(out)
        problem, arrays = request(file, settings, {}).random_data(seed)
        save_arrays(out, arrays)
        shapes = {name: list(array.shape) for name, array in arrays.items()}
        if as_json:
            print_json({"model": problem.name, "out": str(out), "data": shapes})
            return
        for name, shape in shapes.items():
            click.echo(f"{name.ljust(10)} {shape}")
        click.echo(f"wrote {out}")


@click.command(epilog=_EXIT_CODES)
@options.given(options.MODEL)
@options.given(options.SOLVE)
def solve(
    file: Path,
    settings: dict[str, str],
    files: dict[str, str],
    as_json: bool,
    x0: Path | None,
    backend: str,
    dtype: str,
    plot: Path | None,
    out: Path | None,
    progress: bool,
    quantities: tuple[str, ...],
    scale: str | None,
    dask: str | None,
    **chosen: object,
) -> None:
    """Minimise or maximise a model, as it states, and print the result.

    FILE is a model, or - for standard input. Ctrl-C ends the run; its best point is printed and
    saved like any other result.

    \b
    slomodel solve models/linear_autoencoder.slo --max-time 20 --plot run.png
    slomodel solve models/rosenbrock.slo --set n=10 --direction gradient --gtol 1e-8
    slomodel solve models/sym_tensor.slo --starts 20 --workers 2
    slomodel solve models/linear_autoencoder.slo --data X=blocks/ --dask local:2

    \b
    Without --method, the direction depends on kinks, degree, squares and the number of
    unknowns; `slomodel methods` lists all methods, their requirements and their options.
    """
    given: dict[str, Any] = {name: value for name, value in chosen.items() if value is not None}
    with handled_errors(as_json):
        check_outputs(plot, out)
        requested = request(file, settings, files)
        model = requested.model(backend, dtype)
        if requested.blocks and (quantities or scale is not None):
            raise click.UsageError("data in folders of blocks have no quantities and errors")
        if not requested.blocks:
            check_ready(requested, model)
        for name in quantities:
            model.shape_of(name)
        if x0:
            given["x0"] = start_of_run(x0)
        with connected(dask) as client, shown_warnings():
            blocks = (
                over_blocks(model, requested.blocks, client=client) if requested.blocks else None
            )
            if blocks is None and client is not None:
                given["client"] = client
            began = perf_counter()
            solution = (blocks or model).solve(progress=progress, **given)
            seconds = perf_counter() - began
        given.pop("client", None)
        labels = (blocks or model).axis_labels
        evaluated = {name: model.evaluate(name, solution) for name in quantities}
        uncertainty = None if scale is None else model.uncertainty_of(solution, scale)  # type: ignore[arg-type]
        result = Result(
            *(model.name, solution, seconds, given.keys(), out, plot, labels),
            evaluated,
            uncertainty,
        )
        sys.exit(result.finish(as_json))
