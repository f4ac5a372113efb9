"""Final part of `slomodel solve`: files, table or JSON, and the exit code."""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from slomodel import plots
from slomodel.cli.outputs import (
    BAD_INPUT,
    INTERRUPTED,
    NOT_SOLVED,
    check_target,
    print_json,
)
from slomodel.errors import Diagnostic, DomainError
from slomodel.solve import Solution, Status
from slomodel.solve.run.message import counted
from slomodel.solve.uncertainty import Uncertainty

_BUDGETS = {
    Status.max_iter: "max_iter",
    Status.max_time: "max_time",
    Status.max_nfev: "max_nfev",
}
_MEASURES = {"gradient": "gradient norm"}
_MOST_SHOWN = 6
_MOST_LABELLED = 30
_MOST_IN_JSON = 100


def check_outputs(plot: Path | None, out: Path | None) -> None:
    """Raise DomainError before the run if its files could not be written afterwards."""
    if plot and plot == out:
        message = f"--plot and --out name the same file, `{out}`"
        raise DomainError(Diagnostic("E705", message, help="write the two to different files"))
    for path in filter(None, (plot, out)):
        check_target(path)
    if plot:
        plots.check_format(plot)


def exit_code(status: Status, budgets: Collection[str]) -> int:
    """0 if solved or if one of `budgets` ended the run, 130 for Ctrl-C, 3 otherwise."""
    if status.success or _BUDGETS.get(status) in budgets:
        return 0
    return INTERRUPTED if status is Status.interrupted else NOT_SOLVED


@dataclass(frozen=True, slots=True)
class Result:
    """A run that has ended: name of the model, options, files to write, labels of variables.

    `evaluated` are definitions at the result by name.
    """

    name: str
    solution: Solution
    seconds: float
    budgets: Collection[str]
    out: Path | None
    plot: Path | None
    labels: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict)
    evaluated: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    uncertainty: Uncertainty | None = None

    def finish(self, as_json: bool) -> int:
        """Write the files, print, and return the exit code, even if a file cannot be written."""
        wrote: dict[str, Path | None] = {"out": None, "plot": None}
        problems = []
        for key, path, write in (("out", self.out, self._save), ("plot", self.plot, self._draw)):
            if path is None:
                continue
            try:
                write(path)
                wrote[key] = path
            except DomainError as error:
                problems.append(str(error))
        if as_json:
            paths = {key: path and str(path) for key, path in wrote.items()}
            print_json({**self.document(), **paths})
        else:
            self._print_table()
            if self.uncertainty is not None:
                click.echo(self.uncertainty.table())
            if self.solution.certificate:
                click.echo(self.solution.certificate.summary)
            for path in filter(None, wrote.values()):
                click.echo(f"wrote {path}")
        for problem in problems:
            click.echo(problem, err=True)
        if problems:
            return BAD_INPUT
        return self.exit_code

    @property
    def held(self) -> str:
        """The label of the counts of active elements."""
        return "active" if self.constrained else "at bounds"

    @property
    def constrained(self) -> bool:
        """Whether the model has constraints besides the sets of its variables."""
        return self.solution.measure == "gradient of the Lagrangian"

    @property
    def exit_code(self) -> int:
        """The exit code."""
        return exit_code(
            Status.interrupted if self._stopped else self.solution.status, self.budgets
        )

    @property
    def _stopped(self) -> bool:
        """Whether Ctrl-C ended a run of several starts after at least one of them."""
        runs = self.solution.runs
        cut = len(runs) < self.solution.starts and runs and "max_time" not in self.budgets
        return bool(cut) or any(run.status is Status.interrupted for run in runs)

    def _save(self, path: Path) -> None:
        self.solution.save(path)

    def _draw(self, path: Path) -> None:
        plots.convergence(self.solution, path, name=self.name)

    def document(self) -> dict[str, object]:
        """The solution in a form that JSON can represent.

        Numbers that are not finite are null, and listed as text in `nonfinite`.
        """
        solution = self.solution
        shown = {*solution.variables, *self.evaluated}
        labels = {name: axes for name, axes in self.labels.items() if name in shown}
        numbers = {"fun": solution.fun, "gradient_norm": solution.gradient_norm}
        return {
            "model": self.name,
            "status": solution.status.value,
            "success": solution.success,
            "message": solution.message,
            **{key: value if math.isfinite(value) else None for key, value in numbers.items()},
            **({"violation": solution.violation} if self.constrained else {}),
            "nonfinite": nonfinite_of(solution),
            "nit": solution.nit,
            "nfev": solution.nfev,
            "njev": solution.njev,
            "time": round(self.seconds, 6),
            "method": solution.method,
            "parameters": solution.parameters,
            "seed": solution.seed,
            "certificate": solution.certificate and solution.certificate.as_json(),
            "n": len(solution.x),
            "variables": {key: list(array.shape) for key, array in solution.variables.items()},
            "values": values_of(solution),
            **self._answers(),
            **({"labels": labels} if labels else {}),
            **_in_sets(solution),
            "starts": solution.starts,
            "runs": [_short(run) for run in solution.runs],
        }

    @property
    def _time(self) -> str:
        """The time of the call, and how much of it was not the run: kernels, proofs, checks."""
        run = float(self.solution.history.time[-1:].sum())
        before = self.seconds - run
        if self.solution.runs or before < max(0.05, 0.1 * self.seconds):
            return f"{self.seconds:.2f} s"
        return f"{self.seconds:.2f} s, of which {before:.2f} s to set up kernels"

    def _answers(self) -> dict[str, object]:
        """The definitions and standard errors that were requested, for JSON."""
        result: dict[str, object] = {}
        if self.evaluated:
            result["definitions"] = {k: _boxed(a).tolist() for k, a in self.evaluated.items()}
        if self.uncertainty is not None:
            result["standard_errors"] = {
                "assumption": self.uncertainty.assumption,
                "notes": list(self.uncertainty.notes),
                "undetermined": list(self.uncertainty.undetermined),
                "variables": {
                    name: _boxed(array).tolist()
                    for name, array in self.uncertainty.standard_errors.items()
                },
            }
        return result

    def _print_table(self) -> None:
        table = Table(box=box.SIMPLE, show_header=False)
        table.add_column(style="bold", no_wrap=True)
        table.add_column(overflow="fold")
        for label, text in self.rows().items():
            table.add_row(label, Text(text))
        Console(file=sys.stdout, highlight=False).print(table)

    def rows(self) -> dict[str, str]:
        """The printed summary of the run, by label."""
        solution = self.solution
        steps = solution.parameters.get("steps")
        rows = {
            "model": self.name,
            "status": f"{solution.status} ({_verdict(solution)})",
            "": solution.message,
            "objective": f"{solution.fun:.12g}",
            _MEASURES.get(solution.measure, solution.measure): f"{solution.gradient_norm:.4g}",
            **({"violation": f"{solution.violation:.4g}"} if self.constrained else {}),
            "iterations": f"{solution.nit:,}",
            "evaluations": f"{counted(solution.nfev, 'value')}, "
            f"{counted(solution.njev, 'gradient')}",
            "time": self._time,
            "method": f"{solution.method}: {_listed(solution.parameters)}",
            **({"steps (decrease)": str(steps)} if steps else {}),
            "seed": str(solution.seed),
            **({"runs": solution.summary} if solution.runs else {}),
            "unknowns": f"{len(solution.x):,}",
            **({self.held: at_bounds(solution)} if solution.active else {}),
        }
        shown = {
            f"  {key}": _shown(array, self.labels.get(key, ()))
            for key, array in solution.variables.items()
        }
        computed = {
            f"  {key}": _shown(array, self.labels.get(key, ()))
            for key, array in self.evaluated.items()
        }
        return rows | shown | computed | self._multipliers()

    def _multipliers(self) -> dict[str, str]:
        """The multipliers of active bounds and constraints, by label."""
        solution = self.solution
        return {
            f"  multiplier {key}": _shown(array, self.labels.get(key, ()))
            for key, array in solution.multipliers.items()
            if solution.active[key].any()
        }


def at_bounds(solution: Solution) -> str:
    """How many elements of each variable in a set are at bounds, and of constraints active."""
    return ", ".join(
        f"{name}: {int(active.sum()):,} of {counted(active.size, 'element')}"
        for name, active in solution.active.items()
    )


def _in_sets(solution: Solution) -> dict[str, object]:
    """Active elements and multipliers for JSON; counts alone if there are too many."""
    if not solution.active:
        return {}
    result: dict[str, object] = {"at_bounds": {k: int(a.sum()) for k, a in solution.active.items()}}
    if solution.x.size <= _MOST_IN_JSON:
        lists = {name: _boxed(array).tolist() for name, array in solution.multipliers.items()}
        result["multipliers"] = lists
    return result


def _short(run: Solution) -> dict[str, object]:
    """One of several runs, in a form that JSON can represent."""
    numbers = {"fun": run.fun, "gradient_norm": run.gradient_norm}
    return {
        "seed": run.seed,
        "status": run.status.value,
        **{key: value if math.isfinite(value) else None for key, value in numbers.items()},
        "nit": run.nit,
        "nfev": run.nfev,
        "njev": run.njev,
    }


def values_of(solution: Solution) -> dict[str, object] | None:
    """The variables as nested lists, with NaN and inf as None; None if there are too many."""
    if solution.x.size > _MOST_IN_JSON:
        return None
    return {name: _boxed(array).tolist() for name, array in solution.variables.items()}


def _boxed(array: NDArray[np.float64]) -> NDArray[np.object_]:
    boxed = array.astype(object)
    boxed[~np.isfinite(array)] = None
    return boxed


def nonfinite_of(solution: Solution) -> dict[str, str]:
    """The numbers of the document that JSON cannot represent, as text."""
    result = {"fun": solution.fun, "gradient_norm": solution.gradient_norm}
    if solution.x.size <= _MOST_IN_JSON:
        for name, array in solution.variables.items():
            for index, value in np.ndenumerate(array):
                result[f"{name}{list(index) or ''}"] = float(value)
    return {key: str(value) for key, value in result.items() if not math.isfinite(value)}


def _verdict(solution: Solution) -> str:
    """The status as shown in the printed table."""
    if not solution.success:
        return "not solved"
    return "solved" if solution.nit or not solution.x.size else "the start is stationary"


def _listed(parameters: dict[str, float | str]) -> str:
    return ", ".join(
        f"{key} {value:.6g}" if isinstance(value, float) else f"{key} {value}"
        for key, value in parameters.items()
        if key != "steps"
    )


def _shown(array: NDArray[np.float64], labels: Sequence[Sequence[str]]) -> str:
    """The shape of an array and its values (of many the first few), with its labels if any."""
    shape = str(list(array.shape)) if array.ndim else "scalar"
    if labels and 0 < array.size <= _MOST_LABELLED:
        own = [
            ", ".join(axis[k] if axis else str(k) for axis, k in zip(labels, index, strict=True))
            for index in np.ndindex(array.shape)
        ]
        pairs = zip(own, array.ravel(), strict=True)
        return f"{shape} = " + "; ".join(f"{one}: {value:.6g}" for one, value in pairs)
    values = ", ".join(f"{value:.6g}" for value in array.ravel()[:_MOST_SHOWN])
    if not array.size:
        return shape
    return f"{shape} = {values}" + (", …" if array.size > _MOST_SHOWN else "")
