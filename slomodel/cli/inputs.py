"""Input of the command line: a model with sizes and data, and a start."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from slomodel.cli.errors import shown_warnings
from slomodel.errors import Diagnostic, DomainError, ShapeError
from slomodel.front.data.arrays import arrays_in_file
from slomodel.front.data.bind import bind
from slomodel.front.data.random_data import random_data
from slomodel.front.elaboration.elaborate import elaborate
from slomodel.front.explanation import facts
from slomodel.front.source import problem_of, source_of
from slomodel.front.text.parse import parse
from slomodel.model import Model, compile
from slomodel.problem import Problem
from slomodel.solve import Solution, load_solution
from slomodel.solve.files import load
from slomodel.solve.options import whole

Arrays = Mapping[str, NDArray[np.generic]]


@dataclass(frozen=True, slots=True)
class Request:
    """A model as specified on the command line: file or text, with its data and sizes."""

    source: Path | str
    data: Mapping[str, object]
    dims: Mapping[str, int]

    @property
    def blocks(self) -> dict[str, Path]:
        """The data that are given as folders of npy files, in blocks of samples."""
        return {k: one for k, one in self.data.items() if isinstance(one, Path) and one.is_dir()}

    @property
    def text(self) -> str:
        """The text of the model."""
        return source_of(self.source)[0].text

    def model(self, backend: str = "auto", dtype: str = "float64") -> Model:
        """Compile the model; warnings are printed."""
        with shown_warnings():
            data = {name: one for name, one in self.data.items() if name not in self.blocks}
            return compile(self.source, data=data, dims=self.dims, backend=backend, dtype=dtype)

    def random_data(self, seed: int) -> tuple[Problem, dict[str, NDArray[np.float64]]]:
        """The problem of the model, and random data for it."""
        whole("seed", seed, 0)
        text, _ = source_of(self.source)
        problem = elaborate(parse(text), text)
        return problem, random_data(problem, self.data, self.dims, np.random.default_rng(seed))

    def facts(self) -> dict[str, object]:
        """The content of `explain` as data."""
        text, folder = source_of(self.source)
        problem = problem_of(text)
        return facts(problem, bind(problem, self.data, self.dims, folder))


def request(file: Path, settings: Mapping[str, str], files: Mapping[str, str]) -> Request:
    """The model in `file`, or on standard input for `-`.

    `--set` gives the size of a dim if the model declares one of that name, and scalar data
    otherwise. `files` maps names of data to paths, and files of several data to "".
    """
    twice = sorted(settings.keys() & files.keys())
    if twice:
        raise click.UsageError(f"`{twice[0]}` is given with --set and with --data")
    source = standard_input() if str(file) == "-" else file
    named = {name: Path(path).expanduser() for name, path in files.items() if path}
    whole_files = [Path(file).expanduser() for file, path in files.items() if not path]
    if not settings and not whole_files:
        return Request(source, named, {})
    program = parse(source_of(source)[0])
    data: dict[str, object] = {}
    for one in whole_files:
        data |= arrays_in_file(one, [declared.name.text for declared in program.data])
    data |= named
    names = [dim.name.text for dim in program.dims]
    scalars = [one.name.text for one in program.data if not one.shape]
    dims = {name: _size(name, text) for name, text in settings.items() if name in names}
    for name in settings.keys() - dims.keys():
        if name not in scalars:
            raise _not_settable(name, names, scalars, [one.name.text for one in program.data])
        data[name] = _number(name, settings[name])
    return Request(source, data, dims)


def standard_input() -> str:
    """The text on standard input. Raises DomainError if it is not UTF-8."""
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig") if sys.stdin else ""
    except UnicodeDecodeError:
        message, remedy = "standard input is not UTF-8 text", "convert it to UTF-8"
        raise DomainError(Diagnostic("E002", message, help=remedy)) from None


def _size(name: str, text: str) -> int:
    try:
        size = int(text)
    except ValueError:
        size = -1
    if not 0 <= size <= sys.maxsize:
        message = f"dim `{name}` needs a whole number from 0 on, not `{text}`"
        raise DomainError(Diagnostic("E703", message, help=f"for example --set {name}=10"))
    return size


def _number(name: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        message = f"data `{name}` needs a number, not `{text}`"
        remedy = f"give --set {name}=0.5 for a value, --data {name}=FILE for a file"
        raise DomainError(Diagnostic("E703", message, help=remedy))
    return number


def _not_settable(
    name: str, dims: list[str], scalars: list[str], declared: list[str]
) -> DomainError:
    if name in declared:
        message = f"data `{name}` is an array, and --set gives single numbers"
        return DomainError(Diagnostic("E703", message, help=f"give --data {name}=FILE.npy"))
    known = ", ".join(f"`{one}`" for one in (*dims, *scalars)) or "nothing"
    message = f"the model has no dim and no scalar data `{name}`"
    return DomainError(Diagnostic("E703", message, help=f"--set can give {known}"))


def check_ready(requested: Request, model: Model, *, values: bool = True) -> None:
    """Raise DomainError if data or sizes are missing; with `values=False` check sizes only."""
    if values and model.missing:
        listed = ", ".join(f"`{name}`" for name in model.missing)
        remedy = " ".join(["give", *(f"--data {name}=FILE" for name in model.missing)])
        raise DomainError(Diagnostic("E706", f"no values for data {listed}", help=remedy))
    if _is_sized(model):
        return
    dims = requested.facts()["dims"]
    assert isinstance(dims, dict)
    unsized = [name for name, size in dims.items() if size is None]
    listed = ", ".join(f"`{name}`" for name in unsized)
    needed = model._binding.needed
    sizes = [f"--set {name}={needed.get(name, 10)}" for name in unsized]
    remedy = " ".join(sizes) + ", or --data with arrays"
    if needed.keys() & unsized:
        remedy += "; the positions in the data require at least this size"
    raise DomainError(Diagnostic("E706", f"the size of dim {listed} is not known", help=remedy))


def _is_sized(model: Model) -> bool:
    try:
        return model.n >= 0
    except ShapeError:
        return False


def start_from(path: Path) -> NDArray[np.generic] | Arrays:
    """Read a start: the point of a saved solution, an npz of named variables, or an npy vector."""
    start = start_of_run(path)
    if isinstance(start, Solution):
        return start.variables or start.x
    return start


def start_of_run(path: Path) -> NDArray[np.generic] | Arrays | Solution:
    """Read a start: an array, named arrays or, from a run in open sets, the whole solution.

    Its x may be rounded to the edge of a set, where its unconstrained point is not.
    """
    try:
        arrays = load(path)
    except (OSError, ValueError) as error:
        reason = error.strerror.lower() if isinstance(error, OSError) and error.strerror else ""
        message = f"cannot read the start `{path}`: {reason or 'it is not an npz or npy file'}"
        remedy = "give a file written by --out, or by numpy.savez with one array per variable"
        raise DomainError(Diagnostic("E704", message, help=remedy)) from None
    if not isinstance(arrays, dict) or not {"text", "history_time"} <= arrays.keys():
        return arrays
    solution = load_solution(path)
    return solution if solution.unconstrained is not None else solution.variables or solution.x
