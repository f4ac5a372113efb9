"""`slomodel certify`: what is proved about a point."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from slomodel.bounds import EFFORTS
from slomodel.cli import options
from slomodel.cli.bounds import shown_work
from slomodel.cli.errors import handled_errors
from slomodel.cli.inputs import check_ready, request, start_of_run
from slomodel.cli.outputs import print_json

OPTIONS = (
    *options.MODEL[:-1],
    click.option(
        "--at",
        type=options.FILE,
        help="The point: a file of --out, or an npz of named variables [the start of --seed].",
    ),
    click.option("--seed", type=int, default=0, help="Seed of the start [0]."),
    click.option(
        "--effort",
        type=click.Choice([one.name for one in EFFORTS]),
        default="default",
        help="Work that a proof may take [default].",
    ),
    click.option(
        "--modulo",
        type=click.Choice(["invariances"]),
        help="Hold elements across the invariances of the model, which are listed.",
    ),
    options.MODEL[-1],
)


@click.command()
@options.given(OPTIONS)
def certify(
    file: Path,
    settings: dict[str, str],
    files: dict[str, str],
    at: Path | None,
    seed: int,
    effort: str,
    modulo: Literal["invariances"] | None,
    as_json: bool,
) -> None:
    """Prove statements about a point: a critical point near it, its kind, and error bars.

    FILE is a model, or - for standard input. All of it is proved, in floating point too; where
    there is no proof the output has the reason.

    \b
    slomodel solve models/rosenbrock.slo --set n=10 --gtol 1e-10 --out run.npz
    slomodel certify models/rosenbrock.slo --set n=10 --at run.npz
    """
    with handled_errors(as_json):
        requested = request(file, settings, files)
        model = requested.model()
        check_ready(requested, model)
        point = start_of_run(at) if at else model.x0(seed)
        with shown_work():
            result = model.certify(point, effort=effort, modulo=modulo or "")
        if as_json:
            print_json({"model": model.name, "certificate": result.as_json()})
        else:
            if not at:
                click.echo("The point x is the start; `--at run.npz` takes the one of a run.")
            click.echo(result.summary)
