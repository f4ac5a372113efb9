"""The result of a run: SciPy's fields, the history, and its file format."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from slomodel.errors import Diagnostic, DomainError
from slomodel.html import Curve, chart, facts
from slomodel.solve.files import archive, no_such_file, written
from slomodel.solve.norms import Vector
from slomodel.solve.run.explanation import explanation
from slomodel.solve.run.history import EpochRecord, History
from slomodel.solve.run.multistart_summary import summary_of
from slomodel.solve.run.summary import abbreviated, summary
from slomodel.solve.status import Status
from slomodel.solve.uncertainty import Uncertainty
from slomodel.solve.verify.certificate import Certificate, certificate_of

if TYPE_CHECKING:
    from slomodel.bounds.certificates.point_certificate import PointCertificate

FORMAT = "slomodel solution 1"
_COUNTS = ("nit", "nfev", "njev", "nhev", "rounding_steps", "violations")
_ELSEWHERE = {
    **dict.fromkeys(("f", "value", "objective", "objective_value", "loss"), "fun"),
    **dict.fromkeys(("gradient", "grad", "g"), "jac"),
    **dict.fromkeys(("iterations", "niter", "n_iter"), "nit"),
    **dict.fromkeys(("converged", "is_success"), "success"),
    **dict.fromkeys(("params", "vars", "values"), "variables"),
    **dict.fromkeys(("duals", "lagrange_multipliers", "dual"), "multipliers"),
    **dict.fromkeys(("hess", "hess_inv", "covariance", "std"), "uncertainty()"),
    **dict.fromkeys(("runtime", "elapsed", "wall_time"), "time"),
}
"""Names that other libraries give to what a solution has under another."""
_SCALARS = ("fun", "gradient_norm", "violation", *_COUNTS, "seed")


class FittedModel(Protocol):
    """The members of its model that a solution needs."""

    def evaluate(self, name: str, x: Solution) -> Vector: ...

    def predict(
        self, solution: Solution, name: str | None, data: object
    ) -> Vector | dict[str, Vector]: ...

    def uncertainty_of(
        self,
        solution: Solution,
        scale: Literal["auto", "likelihood", "least-squares"],
        curvature: Literal["auto", "hessian", "gauss-newton"],
        factor: float,
        residuals: int | None,
    ) -> Uncertainty: ...

    def certify(
        self, x: Solution, *, effort: str, modulo: Literal["", "invariances"]
    ) -> PointCertificate: ...


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Solution:
    """The best accepted point x (n,) of a run with its own f, gradient `jac` (n,) and ‖g‖.

    The fields of SciPy's OptimizeResult have the same names and can also be read as `result["x"]`.
    `fun` and `jac` are those of the objective as written, also for a maximum. `nfev` counts the
    points at which a value was needed, `njev` those at which a gradient was. `rounding_steps`
    counts the steps at the resolution of f; `violations` those that showed a Lipschitz constant to
    be too small (see EpochRecord). `calls` has one entry per step of agp: the flag, the inner
    iterations t, α, κ, the doublings of L1 and L2, the point chosen and the reason. With several
    `starts`, `runs` holds all completed runs, beginning with the best, which is this one; with
    `hops` the different minima. For a
    model with open sets `unconstrained` is the point u (m,) of `model.unconstrained` that belongs
    to x, and `jac`, `gradient_norm` and the epochs are those in u; otherwise it is None.

    In closed sets ‖g‖ is the norm of the projected gradient. `multipliers` has, for each variable
    in a closed set, the part of the gradient that the set balances: at a solution they equal the
    gradient, and they are 0 where no bound is active. `active` marks the elements at active bounds.
    Both have an entry for each constraint by name too: there ∇f is the sum of these multipliers
    times the gradients of left minus right side, so that they are the rates at which the optimum
    changes with the right sides. `violation` is the largest violation of a constraint, and ‖g‖ that
    of the Lagrangian.

    `solution["eta"]` is also a variable or a definition (`let`) by name. Definitions, `predict` and
    `uncertainty` need the model: that of the run, or the one given to `load_solution`.
    """

    x: Vector
    fun: float
    jac: Vector
    gradient_norm: float
    nit: int
    nfev: int
    njev: int
    nhev: int
    status: Status
    message: str
    variables: dict[str, NDArray[np.float64]]
    history: History
    epochs: tuple[EpochRecord, ...]
    method: str
    parameters: dict[str, float | str]
    seed: int = 0
    rounding_steps: int = 0
    violations: int = 0
    certificate: Certificate | None = None
    calls: tuple[dict[str, float | str], ...] = ()
    runs: tuple[Solution, ...] = ()
    starts: int = 1
    unconstrained: Vector | None = None
    multipliers: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    active: dict[str, NDArray[np.bool_]] = field(default_factory=dict)
    violation: float = 0.0
    model: FittedModel | None = None

    @property
    def summary(self) -> str:
        """How all runs ended, and the objectives they reached, as text."""
        return summary_of(self.runs or (self,), self.starts)

    @property
    def measure(self) -> str:
        """The vector whose norm is `gradient_norm`, in words."""
        if self.active.keys() - self.variables.keys():
            return "gradient of the Lagrangian"
        return "projected gradient" if self.active else "gradient"

    @property
    def success(self) -> bool:
        return self.status.success

    @property
    def time(self) -> float:
        """Seconds from the start of the run to its last iterate."""
        return float(self.history.time[-1]) if len(self.history.time) else 0.0

    if not TYPE_CHECKING:  # a type checker would accept every name

        def __getattr__(self, name: str) -> object:
            """Refuse a name of another library or of a variable, and say how to read it."""
            message = f"'Solution' object has no attribute {name!r}"
            if name in _ELSEWHERE:
                message += f"; it is `solution.{_ELSEWHERE[name]}`"
            elif name not in self.__slots__ and name in (*self.variables, *self.multipliers):
                owner = "" if name in self.variables else ".multipliers"
                message += f'; it is `solution{owner}["{name}"]`'
            raise AttributeError(message)

    def __repr__(self) -> str:
        """A few lines, with abbreviated arrays and without the history."""
        return summary(dict(self))

    def _repr_html_(self) -> str:
        """The summary as a table, with the gradient norm against time, for notebooks."""
        rows = {
            "status": f"{self.status}: {self.message}",
            "objective": f"{self.fun:.12g}",
            "gradient norm": f"{self.gradient_norm:.4g}",
            "iterations": f"{self.nit:,}",
            "method": self.method,
            **{name: abbreviated(array) for name, array in list(self.variables.items())[:20]},
        }
        time, norms = self.history.time.tolist(), self.history.gradient_norm.tolist()
        picture = chart([Curve("‖∇f‖", time, norms)], "time (s)", "gradient norm")
        return facts(rows) + picture

    def keys(self) -> Iterator[str]:
        """Names of the fields, so that `dict(solution)` works."""
        yield from (field.name for field in fields(self) if field.name != "model")
        yield "success"

    def __getitem__(self, name: str) -> Any:
        if name in self.keys():
            return getattr(self, name)
        if name in self.variables:
            return self.variables[name]
        if self.model is None:
            remedy = "for definitions, give the model: load_solution(path, model=model)"
            raise KeyError(f"{name}: no field or variable; {remedy}")
        try:
            return self.model.evaluate(name, self)
        except DomainError as error:
            raise KeyError(str(error)) from None

    def predict(
        self, name: str | None = None, *, data: object = None
    ) -> Vector | dict[str, Vector]:
        """A definition at this solution on new data: the same formula with rows bound anew.

        `data` holds arrays by name, or is a DataFrame. What is not given stays as it was fitted,
        unless it lies along a dim whose size changes: then it is missing. Without `name` the result
        has all definitions that the data determine.
        """
        return self._fitted.predict(self, name, data)

    def uncertainty(
        self,
        scale: Literal["auto", "likelihood", "least-squares"] = "auto",
        *,
        curvature: Literal["auto", "hessian", "gauss-newton"] = "auto",
        factor: float = 1.0,
        residuals: int | None = None,
    ) -> Uncertainty:
        """Standard errors, covariance and intervals of variables and definitions.

        `scale` says how the objective f is read:
        - `likelihood`: `factor`·f is a negative log-likelihood (or a log-likelihood to maximise) up
          to a constant; the covariance is the inverse of its Hessian.
        - `least-squares`: f is a sum of squares of residuals with equal, unknown variance, which is
          estimated from `residuals` of them, by default all that read data.
        - `auto`: least squares if f is a sum of more squares than unknowns, without a constant
          beside it; a likelihood otherwise. The result's `assumption` says which.

        `curvature` is the `hessian` or, for sums of squares, the `gauss-newton` matrix JᵀJ that
        regression programs use, the default for least squares. Raises DomainError if the Hessian
        has negative eigenvalues; directions without curvature are listed in `undetermined`.
        """
        return self._fitted.uncertainty_of(self, scale, curvature, factor, residuals)

    def explain(self) -> str:
        """The direction and why it was chosen, the steps, what limited the run, what to try."""
        return explanation(self)

    def certify(
        self, *, effort: str = "default", modulo: Literal["", "invariances"] = ""
    ) -> PointCertificate:
        """Proved statements about x, as `model.certify`; `certificate` is that of the run."""
        return self._fitted.certify(self, effort=effort, modulo=modulo)

    @property
    def _fitted(self) -> FittedModel:
        if self.model is None:
            message = "this solution does not know its model"
            remedy = "load it with slomodel.load_solution(path, model=model)"
            raise DomainError(Diagnostic("E604", message, help=remedy))
        return self.model

    def with_model(self, model: FittedModel) -> Solution:
        """The solution, and its runs, of this model."""
        runs = tuple(replace(run, model=model) for run in self.runs)
        return replace(self, model=model, runs=runs)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the solution to an npz file, atomically; `load_solution` reads it back.

        Raises DomainError if the file cannot be written.
        """
        arrays = _arrays(self)
        for k, run in enumerate(self.runs):
            arrays |= {f"run_{k}/{name}": array for name, array in _arrays(run).items()}
        with written(path) as partial, partial.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)


def _arrays(solution: Solution) -> dict[str, NDArray[np.generic]]:
    """One run as arrays by name; all other fields are in a JSON text."""
    text: Mapping[str, object] = {
        "format": FORMAT,
        "status": solution.status.value,
        "message": solution.message,
        "method": solution.method,
        "parameters": solution.parameters,
        "variables": list(solution.variables),
        "epoch_sources": [record.source for record in solution.epochs],
        "calls": solution.calls,
        "certificate": solution.certificate and solution.certificate.as_json(),
        "runs": len(solution.runs),
        "starts": solution.starts,
        "in_sets": list(solution.multipliers),
    }
    arrays: dict[str, NDArray[np.generic]] = {"text": np.array(json.dumps(text))}
    arrays |= {name: np.array(getattr(solution, name)) for name in ("x", "jac", *_SCALARS)}
    arrays |= {f"variable_{k}": array for k, array in enumerate(solution.variables.values())}
    arrays |= {f"multiplier_{k}": array for k, array in enumerate(solution.multipliers.values())}
    arrays |= {f"active_{k}": array for k, array in enumerate(solution.active.values())}
    arrays |= {f"history_{f.name}": getattr(solution.history, f.name) for f in fields(History)}
    if solution.unconstrained is not None:
        arrays["unconstrained"] = solution.unconstrained
    arrays["epochs"] = np.array([_numbers(record) for record in solution.epochs], dtype=np.float64)
    return arrays


_EPOCH_NUMBERS = tuple(f.name for f in fields(EpochRecord) if f.name != "source")


def _numbers(record: EpochRecord) -> list[float]:
    values = (getattr(record, name) for name in _EPOCH_NUMBERS)
    return [np.nan if value is None else float(value) for value in values]


def _epoch(numbers: Vector, source: str) -> EpochRecord:
    row = dict(zip(_EPOCH_NUMBERS, numbers.tolist(), strict=True))
    return EpochRecord(
        first=int(row["first"]),
        count=int(row["count"]),
        centre_norm=row["centre_norm"],
        D=row["D"],
        L1=None if np.isnan(row["L1"]) else row["L1"],
        L2=None if np.isnan(row["L2"]) else row["L2"],
        source=source,
        iterations=int(row["iterations"]),
        violations=int(row["violations"]),
    )


def load_solution(path: str | os.PathLike[str], model: FittedModel | None = None) -> Solution:
    """Read a file written by `Solution.save`; DomainError for any other file.

    The file does not hold the model: give it for definitions, predictions and standard errors.
    """
    arrays = archive(path, "a saved solution", "Solution.save")
    if not {"text", "history_time"} <= arrays.keys():
        held = ", ".join(sorted(arrays)) or "nothing"
        raise _no_solution(path, f"it holds {held}")
    try:
        solution = _from_arrays(arrays)
    except (KeyError, ValueError, TypeError):
        raise _no_solution(
            path, "its format is that of another version, or it is damaged"
        ) from None
    return solution if model is None else solution.with_model(model)


def _no_solution(path: str | os.PathLike[str], reason: str) -> DomainError:
    return no_such_file(path, "a saved solution", "Solution.save", reason)


def _from_arrays(arrays: Mapping[str, NDArray[np.float64]]) -> Solution:
    text = json.loads(str(arrays["text"]))
    if text["format"] != FORMAT:
        raise ValueError(text["format"])
    epochs = arrays["epochs"].reshape(-1, len(_EPOCH_NUMBERS))
    return Solution(
        x=arrays["x"],
        fun=float(arrays["fun"]),
        jac=arrays["jac"],
        gradient_norm=float(arrays["gradient_norm"]),
        nit=int(arrays["nit"]),
        nfev=int(arrays["nfev"]),
        njev=int(arrays["njev"]),
        nhev=int(arrays["nhev"]),
        status=Status(text["status"]),
        message=str(text["message"]),
        variables={name: arrays[f"variable_{k}"] for k, name in enumerate(text["variables"])},
        history=History(
            time=arrays["history_time"],
            fun=arrays["history_fun"],
            gradient_norm=arrays["history_gradient_norm"],
            step=arrays["history_step"],
            epoch=arrays["history_epoch"].astype(np.int64),
        ),
        epochs=tuple(map(_epoch, epochs, text["epoch_sources"])),
        method=str(text["method"]),
        parameters=dict(text["parameters"]),
        seed=int(arrays["seed"]),
        rounding_steps=int(arrays["rounding_steps"]),
        violations=int(arrays["violations"]),
        certificate=certificate_of(text["certificate"]) if text.get("certificate") else None,
        calls=tuple(text.get("calls", ())),
        runs=tuple(_from_arrays(_of_run(arrays, k)) for k in range(text.get("runs", 0))),
        starts=int(text.get("starts", 1)),
        multipliers={
            name: arrays[f"multiplier_{k}"] for k, name in enumerate(text.get("in_sets", ()))
        },
        active={
            name: arrays[f"active_{k}"] > 0.0 for k, name in enumerate(text.get("in_sets", ()))
        },
        unconstrained=arrays.get("unconstrained"),
        violation=float(arrays.get("violation", 0.0)),
    )


def _of_run(arrays: Mapping[str, NDArray[np.float64]], k: int) -> dict[str, NDArray[np.float64]]:
    """The arrays of run k of several."""
    prefix = f"run_{k}/"
    return {
        name.removeprefix(prefix): one for name, one in arrays.items() if name.startswith(prefix)
    }
