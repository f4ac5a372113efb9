"""`slomodel bounds`: Lipschitz constants of gradient and Hessian over balls about one point."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

import click

from slomodel.bounds import EFFORTS, Bounds, current_work, stopped_by
from slomodel.bounds.result import shown
from slomodel.cli import options
from slomodel.cli.errors import handled_errors
from slomodel.cli.inputs import check_ready, request, start_from
from slomodel.cli.outputs import print_json
from slomodel.cli.rays import bounds_along, ray_document, ray_table

DEFAULT_RADII = (0.01, 0.1, 1.0)
OPTIONS = (
    *options.MODEL[:-1],
    click.option(
        "--at",
        type=options.FILE,
        help="Centre: a file of --out, or an npz of named variables [the start of --seed].",
    ),
    click.option(
        "--radius",
        "radii",
        type=float,
        multiple=True,
        default=DEFAULT_RADII,
        metavar="R...",
        help="Radius of the ball; several radii give one line each [0.01 0.1 1].",
    ),
    click.option("--seed", type=int, default=0, help="Seed of the start and of samples [0]."),
    click.option(
        "--effort",
        type=click.Choice([one.name for one in EFFORTS]),
        default="default",
        help="Work that a proof may take [default].",
    ),
    click.option("--sampled", is_flag=True, help="Estimate from samples instead of proving."),
    click.option(
        "--along",
        metavar="gradient|FILE",
        help="Bound f'' and f''' along a ray from the centre instead, for each R as its length: "
        "the ray of -grad f, scaled to norm 1, or of the direction in a file as of --at.",
    ),
    click.option("--explain", is_flag=True, help="Print every rule with its result."),
    options.MODEL[-1],
)

_SILENT, _EVERY = 2.0, 0.5
"""Seconds before the first line about the progress of a proof, and between two such lines."""
_MOST_IN_JSON = 100
"""Most numbers of a majorant for JSON."""
_ERASE = "\r\x1b[K"


class Radii(click.Command):
    """A command whose `--radius` takes all numbers that follow it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return click.Command.parse_args(self, ctx, spread(args, "--radius"))


def spread(args: Sequence[str], option: str) -> list[str]:
    """Arguments with `--radius 0.1 1` written as `--radius 0.1 --radius 1`."""
    result: list[str] = []
    open_option = False
    for arg in args:
        number = _is_number(arg)
        if open_option and number and result[-1] != option:
            result.append(option)
        open_option = arg == option or (open_option and number)
        result.append(arg)
    return result


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@click.command(cls=Radii)
@options.given(OPTIONS)
def bounds(
    file: Path,
    settings: dict[str, str],
    files: dict[str, str],
    at: Path | None,
    radii: tuple[float, ...],
    seed: int,
    effort: str,
    sampled: bool,
    along: str | None,
    explain: bool,
    as_json: bool,
) -> None:
    """Bound the Lipschitz constants of gradient (L1) and Hessian (L2) over balls.

    FILE is a model, or - for standard input. Bounds are proved, in floating point too; where none
    exists the output has inf and the reason.

    \b
    slomodel bounds models/deep_linear.slo --radius 0.1 1
    slomodel bounds models/rosenbrock.slo --set n=10 --at run.npz --radius 0.1 --explain
    slomodel bounds models/rosenbrock.slo --set n=10 --along gradient --radius 0.001 0.01
    """
    if along is not None and (sampled or explain):
        raise click.UsageError("--along takes neither --sampled nor --explain")
    with handled_errors(as_json):
        requested = request(file, settings, files)
        model = requested.model()
        check_ready(requested, model)
        center = start_from(at) if at else model.x0(seed)
        if along is not None:
            rays = bounds_along(model, center, along, radii)
            if as_json:
                listed = [ray_document(ray) for ray in rays]
                print_json({"model": model.name, "bounds": [], "rays": listed})
            else:
                click.echo(ray_table(rays))
            return
        with shown_work():
            if sampled:
                first = model.sample_bounds(center, radii[0], seed=seed)
            else:
                first = model.bounds(center, radii[0], effort)
            result = [first, *(first.at(radius) for radius in radii[1:])]
        if as_json:
            print_json({"model": model.name, "bounds": [document(one) for one in result]})
        elif explain:
            click.echo("\n\n".join(one.explain() for one in result))
        else:
            click.echo(table(result))


@contextmanager
def shown_work() -> Iterator[None]:
    """Show on a terminal what a proof is computing, once it takes more than `_SILENT` seconds.

    The line is written to standard error between parts of the work, and erased at the end.
    """
    if not sys.stderr.isatty():
        yield
        return
    start = shown = monotonic()

    def show() -> None:
        nonlocal shown
        now = monotonic()
        if now - start >= _SILENT and now - shown >= _EVERY:
            shown = now
            line = f"proving bounds for {now - start:.0f} s: {current_work()} (Ctrl-C stops)"
            sys.stderr.write(f"{_ERASE}{line}")
            sys.stderr.flush()

    try:
        with stopped_by(show):
            yield
    finally:
        if shown > start:
            sys.stderr.write(_ERASE)
            sys.stderr.flush()


def document(bounds: Bounds) -> dict[str, object]:
    """The result as data for JSON; inf is null, and `reason` says why."""
    return {
        "radius": _finite(bounds.radius),
        "n": bounds.n,
        "L1": _finite(bounds.L1),
        "L2": _finite(bounds.L2),
        "source": bounds.source,
        "rigor": bounds.rigor,
        "lower": _finite(bounds.lower),
        "upper": _finite(bounds.upper),
        "convex": bounds.convex,
        "blocks": {f"{v}, {w}": _finite(norm) for (v, w), norm in bounds.blocks.items()},
        "majorant": _listed(bounds),
        "rule": bounds.rule,
        "runner_up": bounds.runner_up,
        "reason": bounds.reason,
        "explanation": bounds.explain(),
    }


def _listed(bounds: Bounds) -> list[float] | None:
    """The diagonal majorant, if it is short and proved."""
    if bounds.n > _MOST_IN_JSON or not math.isfinite(bounds.upper):
        return None
    numbers: list[float] = bounds.majorant.tolist()
    return numbers


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def table(every: Sequence[Bounds]) -> str:
    """One line per ball, the eigenvalues over each, and the reasons for bounds that are inf."""
    lines = [f"{'radius':>10}  {'L1':>12}  {'L2':>12}  source    rule"]
    lines += [
        f"{one.radius:>10g}  {shown(one.L1):>12}  {shown(one.L2):>12}  {one.source:<8}  {one.rule}"
        for one in every
    ]
    lines += [
        f"{one.radius:>10g}  {one.spectrum_in_words}"
        for one in every
        if one.source == "analytic" and one.n and math.isfinite(one.L1)
    ]
    reasons = dict.fromkeys(one.reason for one in every if one.reason)
    return "\n".join([*lines, *reasons])
