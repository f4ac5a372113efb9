"""The options of every command, as data: names, types and meanings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from pathlib import Path
from typing import Any, TypeVar

import click

from slomodel.model.plans import BACKENDS, PRECISIONS, TARGET_NAMES
from slomodel.solve import DIRECTIONS, METHODS
from slomodel.solve.run_options import DEFAULTS, OPTIONS, type_of

F = TypeVar("F", bound=Callable[..., object])
Decorator = Callable[[F], F]

FILE = click.Path(path_type=Path)


def given(options: Sequence[Decorator[F]]) -> Decorator[F]:
    """All of `options` as one decorator, in the order in which --help lists them."""
    return lambda command: reduce(lambda f, option: option(f), reversed(options), command)


def pairs(
    context: click.Context, parameter: click.Parameter, values: Sequence[str]
) -> dict[str, str]:
    """Strings `name=value` as a mapping; no name may occur twice."""
    result: dict[str, str] = {}
    for text in values:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (equals and name and value):
            raise click.BadParameter(f"`{text}` is not name=value", context, parameter)
        if name in result:
            raise click.BadParameter(f"`{name}` is given twice", context, parameter)
        result[name] = value
    return result


def data_files(
    context: click.Context, parameter: click.Parameter, values: Sequence[str]
) -> dict[str, str]:
    """Strings `name=path` as a mapping; a path alone, of a file of several data, maps to ''."""
    named = pairs(context, parameter, [text for text in values if "=" in text])
    return named | {text.strip(): "" for text in values if "=" not in text}


class NumberOrWord(click.ParamType):  # type: ignore[type-arg]
    """A parameter type: the text as a number if it is one, otherwise the text itself."""

    name = "value"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> object:
        try:
            return float(str(value))
        except ValueError:
            return value


def _run_option(name: str) -> Decorator[Any]:
    """Command-line option for the run option `name`; flags on by default can be negated."""
    flag, kind = f"--{name.replace('_', '-')}", type_of(name)
    if kind is not bool:
        return click.option(flag, type=kind, help=OPTIONS[name].meaning)
    switch = f"{flag}/--no-{flag[2:]}" if DEFAULTS[name] else flag
    return click.option(switch, is_flag=True, default=None, help=OPTIONS[name].meaning)


MODEL = (
    click.argument("file", type=FILE),
    click.option(
        "--set",
        "settings",
        multiple=True,
        callback=pairs,
        metavar="NAME=VALUE",
        help="Size of a dim, or value of scalar data. Repeatable.",
    ),
    click.option(
        "--data",
        "files",
        multiple=True,
        callback=data_files,
        metavar="[NAME=]PATH",
        help="File with the array NAME: npz, npy, csv, tsv, json or mtx; FILE.csv:COLUMN is one "
        "column, FILE.npz:KEY or FILE.json:KEY one array. Without NAME=, all data whose names are "
        "columns or arrays of the file. Repeatable.",
    ),
    click.option("--json", "as_json", is_flag=True, help="Print one JSON document."),
)

RUN = (
    click.option(
        "--method",
        metavar="NAME",
        help=f"One of {', '.join(METHODS)} [auto]; `slomodel methods` explains them.",
    ),
    click.option("--direction", metavar="NAME", help=f"Search direction: {', '.join(DIRECTIONS)}."),
    click.option("--initial-step", metavar="NAME", help="First trial step of a line search."),
    *(_run_option(name) for name, one in OPTIONS.items() if one.meaning),
    click.option(
        "--starts",
        type=int,
        help="Run from this many random starts, with seeds --seed, --seed + 1, …; the best counts.",
    ),
    click.option(
        "--hops",
        type=int,
        help="Further runs, each from a random point round an earlier end; the best counts.",
    ),
    click.option("--workers", type=int, help="Processes for the runs of --starts [1]."),
    click.option(
        "--dask",
        metavar="ADDRESS",
        help="Cluster for the runs of --starts, or for data in folders of blocks: tcp://HOST:PORT "
        "of a scheduler, or local:2 for two local workers.",
    ),
    click.option("--x0", type=FILE, help="Start: a file of --out, or an npz of named variables."),
    click.option(
        "--delta-bar", type=float, help="Longest step [max(1, norm of x0); auto: 10 times that]."
    ),
    click.option("--theta", type=float, help="Factor by which a step is shortened [0.5]."),
    click.option("--sigma", type=float, help="Least fraction of the predicted decrease [0.3]."),
    click.option(
        "--alpha",
        type=float,
        help="Least cosine between direction and -gradient [1e-4; newton, gauss-newton: 1e-8].",
    ),
    click.option(
        "--line-search", metavar="NAME", help="armijo, or exact for polynomials [armijo]."
    ),
    click.option(
        "--D",
        "D",
        type=NumberOrWord(),
        help="pgd, tgd, agp, gd: radius of a ball; pgd, tgd: or auto [by the start; agp: 0.1].",
    ),
    click.option(
        "--d",
        "d",
        type=float,
        help="pgd, tgd: margin of a ball [pgd: 0, tgd: a quarter of D]; ngd: the step.",
    ),
    click.option(
        "--lipschitz",
        type=NumberOrWord(),
        help="pgd, tgd, gd: the constant; agp too: or auto, analytic or sampled [auto].",
    ),
    click.option("--samples", type=int, help="pgd, tgd, gd: points of a sampled constant [30]."),
    click.option("--safety", type=float, help="pgd, tgd, gd: factor on a sampled constant [1]."),
    click.option("--lift", metavar="NAME", help="agp: scale-free or paper [scale-free]."),
    click.option("--L", "L", type=float, help="gd, bpg: the constant of the step."),
    click.option(
        "--p", "p", type=float, help="bpg: power of the kernel [degree of the objective]."
    ),
    click.option("--lam0", type=float, help="adgd: the first step over the gradient norm [1e-6]."),
    click.option("--threads", type=int, help="Threads of the kernels and the BLAS."),
    click.option("--checkpoint", type=FILE, help="Write the run to this npz every few seconds."),
    click.option("--resume", type=FILE, help="Continue the run in a file of --checkpoint."),
    click.option(
        "--backend", default="auto", metavar="NAME", help=f"Kernels: {', '.join(BACKENDS)} [auto]."
    ),
    click.option(
        "--dtype",
        default="float64",
        metavar="NAME",
        help=f"Kernels in {' or '.join(PRECISIONS)} [float64].",
    ),
    click.option("--progress/--no-progress", default=True, help="Live line, on a terminal only."),
)
"""Options of a run."""

STANDARD_ERRORS = click.option(
    "--standard-errors",
    "scale",
    type=click.Choice(["auto", "likelihood", "least-squares"]),
    help="Show standard errors of the variables; the choice says how the objective is read.",
)

SOLVE = (
    *RUN[:-1],
    click.option("--plot", type=FILE, help="Draw gradient norm and objective against time."),
    click.option("--out", type=FILE, help="Save the whole result (npz)."),
    click.option(
        "--evaluate",
        "quantities",
        multiple=True,
        metavar="NAME",
        help="Show this definition (let) at the result. Repeatable.",
    ),
    STANDARD_ERRORS,
    RUN[-1],
)

FMT = (
    click.argument("files", type=FILE, nargs=-1, required=True, metavar="FILE..."),
    click.option("--check", "only_check", is_flag=True, help="Exit 1 if a file would change."),
    click.option("--diff", "show_diff", is_flag=True, help="Print what would change."),
    MODEL[-1],
)

RANDOM_DATA = (
    *MODEL[:2],
    click.option("-o", "--out", type=FILE, required=True, help="The npz file to write."),
    click.option("--seed", type=int, default=0, help="Seed of the random numbers [0]."),
    MODEL[-1],
)

CODEGEN = (
    click.option(
        "--target",
        default="numexpr",
        metavar="NAME",
        help=f"One of {', '.join(TARGET_NAMES)} [numexpr]: auto is what would run here, graph the "
        "expression graph, one node per line.",
    ),
    click.option(
        "--rays", is_flag=True, help="Write the kernel of proved bounds along a ray instead."
    ),
    click.option("-o", "--out", type=FILE, help="File to write; standard output if left out."),
)
