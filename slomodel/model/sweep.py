"""Runs of a model over a grid of its data: regularisation paths, cross-validation, scans."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from slomodel.errors import Diagnostic, DomainError, SlomodelError
from slomodel.html import Curve, chart, table
from slomodel.model.model import Model
from slomodel.solve import Progress, Solution, Status
from slomodel.solve.run.live import display_of
from slomodel.solve.run.monitor import State
from slomodel.solve.run.multistart import rank, state_of

if TYPE_CHECKING:
    from pandas import DataFrame

Cell: TypeAlias = float | int | str | None


@dataclass(frozen=True, slots=True)
class SweepRun:
    """A run of a sweep: its place in the grid, the data, and the solution or why there is none."""

    place: tuple[int, ...]
    values: Mapping[str, object]
    solution: Solution | None
    error: str = ""

    def row(self) -> dict[str, Cell]:
        """The run as a row of a table; an array is shown by its number in its list."""
        result: dict[str, Cell] = {
            name: value if isinstance(value, (int, float)) else k
            for k, (name, value) in zip(self.place, self.values.items(), strict=True)
        }
        one = self.solution
        if one is None:
            rest: dict[str, Cell] = dict.fromkeys(_COLUMNS)
            return {**result, **rest, "status": self.error or "not run"}
        counts: dict[str, Cell] = {name: getattr(one, name) for name in _COLUMNS}
        return {**result, **counts, "status": one.status.value}


_FEWEST_DRAWN = 3
_WORTH_A_LOG_AXIS = 10.0
_COLUMNS = ("fun", "gradient_norm", "nit", "nfev", "njev")


class Sweep(Sequence[SweepRun]):
    """The runs of a sweep in the order of the grid; the last name varies fastest.

    After Ctrl-C, or where a run failed, the other runs are still there.
    """

    def __init__(self, runs: Sequence[SweepRun], sign: float) -> None:
        """`sign` is -1 for a maximum."""
        self._runs = tuple(runs)
        self._sign = sign

    def __len__(self) -> int:
        return len(self._runs)

    def __getitem__(self, k: Any) -> Any:
        return self._runs[k]

    @property
    def solutions(self) -> list[Solution | None]:
        """The solution of each run; None for a run that failed or was not reached."""
        return [run.solution for run in self._runs]

    @property
    def best(self) -> SweepRun:
        """The run with the best objective. Raises DomainError if no run was completed."""
        done = [(run.solution, run) for run in self._runs if run.solution is not None]
        if not done:
            message = "no run of the sweep was completed"
            raise DomainError(Diagnostic("E707", message, help="see the status of each run"))
        return min(done, key=lambda pair: rank(pair[0], self._sign))[1]

    def rows(self) -> list[dict[str, Cell]]:
        """The table as a list of rows."""
        return [run.row() for run in self._runs]

    def frame(self) -> DataFrame:
        """The table as a pandas DataFrame."""
        try:
            from pandas import DataFrame
        except ModuleNotFoundError:
            message = "a DataFrame needs pandas, which is not installed"
            remedy = "pip install pandas, or use .rows()"
            raise DomainError(Diagnostic("E701", message, help=remedy)) from None
        return DataFrame(self.rows())

    def _printed(self) -> list[dict[str, str]]:
        return [
            {name: f"{v:.6g}" if isinstance(v, float) else str(v) for name, v in row.items()}
            for row in self.rows()
        ]

    def _repr_html_(self) -> str:
        """The table, and the objective against the first name if its values are numbers."""
        rows = self._printed()
        if not rows:
            return table(("no runs",), ())
        shown = table(tuple(rows[0]), [tuple(row.values()) for row in rows])
        first, *others = self._runs[0].values
        along = [run.row() for run in self._runs]
        points = [(row[first], row["fun"]) for row in along if isinstance(row["fun"], float)]
        numbers = [(x, f) for x, f in points if isinstance(x, int | float)]
        if others or len(numbers) < _FEWEST_DRAWN or len(numbers) < len(along):
            return shown
        across, heights = zip(*numbers, strict=True)
        log_x = min(across) > 0.0 and max(across) >= _WORTH_A_LOG_AXIS * min(across)
        curve = Curve("f", [float(x) for x in across], [float(f) for f in heights])
        return shown + chart([curve], first, "objective", log_x=log_x)

    def __repr__(self) -> str:
        """The table as text."""
        rows = self._printed()
        if not rows:
            return "no runs"
        widths = {name: max(len(name), *(len(row[name]) for row in rows)) for name in rows[0]}
        lines = ["  ".join(name.rjust(width) for name, width in widths.items())]
        lines += ["  ".join(row[name].rjust(widths[name]) for name in widths) for row in rows]
        return "\n".join(lines)


def sweep(
    model: Model,
    grid: Mapping[str, Sequence[object]],
    *,
    warm: bool = True,
    client: object = None,
    progress: Progress | bool | None = None,
    **options: Any,
) -> Sweep:
    """Runs of `solve` for all combinations of the values of data, `{"lam": [1, 0.1], "w": […]}`.

    With `warm`, each run along the first name starts from the solution of the run before, and the
    first one of each such path from `x0`; otherwise all runs start from `x0`. `options` are those
    of `Model.solve`. With a `dask.distributed` client the paths run on its workers. Ctrl-C ends the
    sweep with the runs so far; a run that fails is recorded, and the others go on.
    """
    _check_types(model, grid)
    if client is not None:
        from slomodel.model.cluster import checked

        checked(client)
    paths = _paths(model, grid, warm)
    count = sum(map(len, paths))
    display = display_of(progress, None, f"of {count} runs")
    done: dict[tuple[int, ...], SweepRun] = {}
    sign = -1.0 if model._problem.sense == "maximize" else 1.0
    try:
        for run in _runs(model, paths, options, client):
            done[run.place] = run
            if display:
                display.update(_state(done.values(), count, sign))
            if run.solution is not None and run.solution.status is Status.interrupted:
                break
    except KeyboardInterrupt:
        pass  # between two runs: the results so far are returned
    finally:
        if display:
            display.close()
    if done and all(one.error for one in done.values()):
        _check_arguments(model, next(iter(done.values())), options)
    every = sorted((one for path in paths for one in path), key=lambda one: one[0])
    return Sweep([done.get(place, SweepRun(place, values, None)) for place, values in every], sign)


_WRONG_ARGUMENTS = ("E602", "E604", "E605", "E706")
"""Codes of errors in options, starts and missing data, which are not those of a run alone."""


def _check_types(model: object, grid: object) -> None:
    if not isinstance(model, Model) or not isinstance(grid, Mapping):
        message = "sweep takes a compiled model, and a dict of lists of values by the names of data"
        remedy = 'slomodel.sweep(slomodel.compile(text, data=…), {"lam": [1, 0.1]})'
        raise DomainError(Diagnostic("E602", message, help=remedy))


def _check_arguments(model: Model, run: SweepRun, options: Mapping[str, Any]) -> None:
    """Raise the error of a run that failed, if it would fail with any data."""
    try:
        model.bind(**run.values).solve(**options)
    except SlomodelError as error:
        if error.diagnostics[0].code in _WRONG_ARGUMENTS:
            raise


_Point: TypeAlias = tuple[tuple[int, ...], dict[str, object]]
"""A place in the grid, and the data there."""


def _paths(model: Model, grid: Mapping[str, Sequence[object]], warm: bool) -> list[list[_Point]]:
    """The points of the grid; with `warm` those along the first name are a path."""
    if not grid:
        raise DomainError(Diagnostic("E602", "a sweep needs data", help='write {"lam": [1, 0.1]}'))
    known = [one.name for one in model._problem.data if not one.owner]
    lists: dict[str, list[object]] = {}
    for name, values in grid.items():
        if name not in known:
            listed = ", ".join(f"`{one}`" for one in known) or "none"
            raise DomainError(
                Diagnostic("E309", f"the model has no data `{name}`", help=f"there is {listed}")
            )
        lists[name] = _listed(values)
        if not lists[name]:
            message = f"the values of `{name}` are not a list"
            raise DomainError(Diagnostic("E602", message, help=f'write {{"{name}": [1, 0.1]}}'))
    paths: dict[tuple[int, ...], list[_Point]] = {}
    for place in itertools.product(*(range(len(values)) for values in lists.values())):
        data = {name: lists[name][k] for name, k in zip(lists, place, strict=True)}
        paths.setdefault(place[1:] if warm else place, []).append((place, data))
    return list(paths.values())


def _listed(values: object) -> list[object]:
    """The values of an iterable; none of a number or a text."""
    single = isinstance(values, np.ndarray) and values.ndim == 0
    if single or isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        return []
    return list(values)


def _runs(
    model: Model, paths: Sequence[Sequence[_Point]], options: Mapping[str, Any], client: Any
) -> Iterator[SweepRun]:
    """The runs in order of completion."""
    if client is None:
        for path in paths:
            before: SweepRun | None = None
            for point in path:
                before = _run(model, point, before, options)
                yield before
        return
    from slomodel.model.cluster import RETRIES, completed, sent

    own = sent(client, model)
    tasks: dict[Any, _Point] = {}
    for path in paths:
        task: Any = None
        for point in path:
            task = client.submit(
                *(_run, own, point, task, dict(options)), pure=False, retries=RETRIES
            )
            tasks[task] = point
    for task, run in completed(client, list(tasks)):
        place, values = tasks[task]
        yield SweepRun(place, values, None, str(run)) if isinstance(run, Exception) else run


def _run(
    model: Model, point: _Point, before: SweepRun | None, options: Mapping[str, Any]
) -> SweepRun:
    """One run, from the solution of the run before if there is one."""
    place, values = point
    start = None if before is None else before.solution
    warm = {} if start is None else {"x0": start}
    try:
        solution = model.bind(**values).solve(**{**options, **warm})
    except SlomodelError as error:
        return SweepRun(place, values, None, error.diagnostics[0].message)
    return SweepRun(place, values, replace(solution, model=None))


def _state(runs: Iterable[SweepRun], count: int, sign: float) -> State:
    """The runs so far for the display."""
    known = [run.solution for run in runs if run.solution is not None]
    known.sort(key=lambda one: rank(one, sign))
    if not known:
        return State(0, np.zeros(0), math.nan, math.nan, 0.0, count, 0.0, 0, 0, 0)
    return state_of(known, count, 0.0)
