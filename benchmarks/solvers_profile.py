"""Performance and data profiles: `auto` beside solvers of SciPy on the same kernels.

Work counts values, gradients and products with the Hessian, a product as two. A problem is solved
at the first value within TAU of the least known one, relative to the larger of that value and
DROP·(f(x0) − f*), whatever the stop rule of the solver; its time is that of the processor until
then. Problems in single precision are judged in double. A claim of success is false if the point
is not solved to LOOSE and another solver, started there, lowers f.
Dolan & Moré, Benchmarking optimization software with performance profiles (2002); Moré & Wild,
Benchmarking derivative-free optimization algorithms (2009).
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares, minimize

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).parent.parent))

import slomodel
from benchmarks.by_hand import Array
from benchmarks.evaluate import in_columns
from benchmarks.problems import published
from benchmarks.solvers_classical import classical
from slomodel.errors import ModelWarning
from slomodel.solve import Solution
from slomodel.solve.coloured_hessian import ColouredHessian
from slomodel.solve.entry import solve
from slomodel.solve.facts import DescribedObjective, ObjectiveFacts, Product
from tests import nist_problems

OURS = "auto"
# Values within this of the least one, relative, are solved; in single precision, and of claims.
TAU = {"float64": 1e-8, "float32": 1e-4}
LOOSE = {"float64": 1e-5, "float32": 1e-2}
# The part of the decrease of f that counts as size where the least value is 0.
DROP = {"float64": 1e-4, "float32": 1e-2}
GTOL = {"float64": 1e-9, "float32": 1e-5}
MOST_WORK = 20_000
# The least time that counts, in seconds.
RESOLVED = 1e-5
PRODUCT = 2
"""Work of one product with the Hessian, in values."""


@dataclass(frozen=True, slots=True)
class Case:
    """A problem in given units: f·of_f at x/of_x; x0 is in the original units.

    `of_x` is a number, or one for each variable.
    """

    name: str
    model: slomodel.Model
    x0: Array
    minima: tuple[float, ...]
    of_f: float = 1.0
    of_x: float | Array = 1.0
    precision: str = "float64"


class OutOfBudget(Exception):
    """Raised by a Counted beyond its work or its seconds."""


class Counted:
    """The objective of a case in its units and precision, with its work.

    `trace` has the work, the seconds and the value at each value that was the least so far.
    """

    def __init__(self, case: Case, seconds: float) -> None:
        model = in_precision(case.model.unconstrained, case.precision)
        self._inner: DescribedObjective = model._objective(None)
        self._of_f, self._of_x = case.of_f, case.of_x
        self.n = len(case.x0)
        self.work = 0
        self.trace: list[tuple[int, float, float]] = []
        self.best = np.array(case.x0)
        self._valued: Array | None = None
        self.began = time.process_time()
        self._seconds = seconds

    @property
    def facts(self) -> ObjectiveFacts:
        facts = self._inner.facts
        marked = facts.logarithmic
        return replace(facts, logarithmic=None if marked is None else marked / self._of_x)

    @property
    def eps(self) -> float:
        return float(self._inner.eps)

    def load(self, product: Product) -> None:
        self._inner.load(product)

    def _count(self, work: int) -> None:
        self.work += work
        if self.work > MOST_WORK or time.process_time() > self.began + self._seconds:
            raise OutOfBudget

    def value(self, x: Array) -> float:
        self._count(1)
        return self._of_f * self._traced(float(self._inner.value(x / self._of_x)), x)

    def _traced(self, f: float, x: Array) -> float:
        self._valued = x.copy()
        if not self.trace or f < self.trace[-1][2]:
            self.trace.append((self.work, time.process_time() - self.began, f))
            self.best = x / self._of_x
        return f

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        """Both; a value that was computed there just before counts no second time."""
        known = self._valued is not None and np.array_equal(x, self._valued)
        self._count(1 if known else 2)
        f, g = self._inner.value_and_gradient(x / self._of_x, out)
        if not known:
            self._traced(float(f), x)
        g *= self._of_f / self._of_x
        return self._of_f * f, g

    def gradient(self, x: Array) -> Array:
        return self.value_and_gradient(x)[1]

    def hvp(self, x: Array, v: Array) -> Array:
        self._count(PRODUCT)
        u, w = x / self._of_x, v / self._of_x
        return self._of_f / self._of_x * self._inner.hvp(u, w)

    def gauss_newton(self, x: Array, v: Array) -> Array:
        self._count(PRODUCT)
        u, w = x / self._of_x, v / self._of_x
        return self._of_f / self._of_x * self._inner.gauss_newton(u, w)

    def coloured_hessian(self, most: int) -> ColouredHessian | None:
        return self._inner.coloured_hessian(most)

    def has_residuals(self) -> bool:
        return bool(self._inner.has_residuals())

    def affine_unknowns(self) -> NDArray[np.bool_]:
        return np.asarray(self._inner.affine_unknowns())

    def jacobian(self, x: Array, columns: Array | None = None) -> tuple[Array, Array]:
        """A column counts as one value; the residuals come with it."""
        self._count(self.n if columns is None else len(columns))
        r, J = self._inner.jacobian(x / self._of_x, columns)
        of_x = np.broadcast_to(self._of_x, (self.n,))
        of_columns = of_x if columns is None else of_x[columns]
        return np.sqrt(self._of_f) * r, np.sqrt(self._of_f) / of_columns * J

    def residuals(self, x: Array) -> Array:
        """The residuals, and the value of the objective in the trace."""
        self.value(x)
        return np.sqrt(self._of_f) * self._inner.residuals(x / self._of_x)

    def jacobian_alone(self, x: Array) -> Array:
        return self.jacobian(x)[1]


@cache
def in_precision(model: slomodel.Model, precision: str) -> slomodel.Model:
    """The model itself in double precision, and otherwise compiled in another one."""
    if precision == "float64":
        return model
    return slomodel.Model.of(replace(model._recipe, dtype=precision))


@dataclass(frozen=True, slots=True)
class Run:
    """One solver on one case: work and seconds until solved (inf: never), whole work, the last f.

    `claim` is the solver's word for how it ended, empty unless that is success. `x` is the end in
    the original units.
    """

    solved: float
    seconds: float
    whole: int
    f: float
    claim: str
    x: list[float]


Solver = Callable[[Counted, Array, float], tuple[Array, str]]
"""(objective, start, gtol) -> the end and the claim."""


def auto(objective: Counted, x0: Array, gtol: float, **options: object) -> tuple[Array, str]:
    found: Solution = solve(objective, x0, method="auto", gtol=gtol, **options)
    return found.x, found.status.value if found.success else ""


def scipys(method: str, **options: object) -> Solver:
    """A method of SciPy; its tolerance is that of the problem, as an absolute one."""

    def run(objective: Counted, x0: Array, gtol: float) -> tuple[Array, str]:
        products = {"hessp": objective.hvp} if method[:5] in ("Newto", "trust") else {}
        f, g = objective.value(x0), objective.gradient(x0)
        objective.work = 0
        scale = min(1.0, max(abs(f), float(np.linalg.norm(g)))) or 1.0
        stop = {"xtol": 1e-10} if method == "Newton-CG" else {"gtol": gtol * scale}
        told = {"maxiter": 100_000, **stop, **options}
        found = minimize(
            *(objective.value, x0), jac=objective.gradient, method=method, options=told, **products
        )
        return found.x, "success" if found.success else ""

    return run


def least_squares_of_scipy(objective: Counted, x0: Array, gtol: float) -> tuple[Array, str]:
    """SciPy's trust-region method for sums of squares; OutOfBudget for other objectives.

    Residuals count as a value, a Jacobian as one for each column.
    """
    if not objective.has_residuals():
        raise OutOfBudget
    found = least_squares(
        objective.residuals,
        x0,
        jac=objective.jacobian_alone,
        x_scale="jac",
        ftol=1e-15,
        xtol=1e-15,
        gtol=gtol,
        max_nfev=10_000,
    )
    return found.x, "success" if found.success else ""


PEERS: Mapping[str, Solver] = {
    "L-BFGS-B": scipys("L-BFGS-B", ftol=0.0, maxfun=10**6),
    "BFGS": scipys("BFGS"),
    "CG": scipys("CG"),
    "Newton-CG": scipys("Newton-CG"),
    "trust-ncg": scipys("trust-ncg"),
    "trust-krylov": scipys("trust-krylov"),
    "least_squares": least_squares_of_scipy,
}


def goal(case: Case, minimum: float, f0: float, tolerance: Mapping[str, float]) -> float:
    """The largest value that counts as `minimum`."""
    size = max(abs(minimum), DROP[case.precision] * (f0 - minimum))
    return minimum + tolerance[case.precision] * size


def reached(case: Case, f: float, f0: float, tolerance: Mapping[str, float]) -> bool:
    """Whether f is one of the known minima, or below the least."""
    if f <= goal(case, case.minima[0], f0, tolerance):
        return True
    return any(abs(f - m) <= goal(case, m, f0, tolerance) - m for m in case.minima[1:])


def run_of(solver: Solver, case: Case, gtol: float, seconds: float) -> Run:
    """Run a solver on a case."""
    objective = Counted(case, seconds)
    claim = ""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            objective.load("hvp")
            objective.began = time.process_time()
            end, claim = solver(objective, case.of_x * case.x0, gtol)
        x = np.asarray(end) / case.of_x
    except (OutOfBudget, ValueError, np.linalg.LinAlgError):
        x = objective.best
    f0, f = case.model.value(case.x0), case.model.value(x)
    solved = seconds = np.inf
    if reached(case, f, f0, TAU):
        nearest = min(case.minima, key=lambda m: abs(m - f))
        limit = max(goal(case, nearest, f0, TAU), f)
        never = (np.inf, np.inf, -np.inf)
        solved, seconds, _ = next((one for one in objective.trace if one[2] <= limit), never)
    return Run(solved, seconds, objective.work, f, claim, x.tolist())


def falsely_claimed(case: Case, run: Run, seconds: float) -> bool:
    """Whether a claim of success is wrong: f is lowered clearly from the end of the run."""
    f0 = case.model.value(case.x0)
    if not run.claim or reached(case, run.f, f0, LOOSE):
        return False
    at = replace(case, x0=np.array(run.x), of_f=1.0, of_x=1.0)
    further = [run_of(PEERS[name], at, 1e-10, seconds).f for name in ("BFGS", "trust-ncg")]
    drop = run.f - min(further)
    return drop > LOOSE[case.precision] * max(abs(run.f), DROP[case.precision] * (f0 - run.f))


PRACTICE = Path(__file__).parent.parent / "models" / "practice"
RECORDS = Path(__file__).parent.parent / "tests" / "data" / "practice"
SLOW = frozenset({"accidents_spatial", "cholera_sir_rk4", "digit_tv_deblur", "rating_scale_items"})


def practice(*, quick: bool) -> Iterator[Case]:
    """The models of practice with a recorded minimum, from the first recorded point."""
    records = json.loads((RECORDS / "records.json").read_text())
    for name, record in sorted(records.items()):
        file = PRACTICE / f"{name}.slo"
        if not record["minimum"]["stable"] or not file.exists() or (quick and name in SLOW):
            continue
        dims = {"I": 45} if name == "rater_error_rates" else None
        model = slomodel.compile(file, dims=dims).unconstrained
        with np.load(RECORDS / f"{name}.npz") as stored:
            x0 = stored["x"][0]
        yield Case(name, model, x0, (record["minimum"]["value"],))


def originals(*, quick: bool) -> Iterator[Case]:
    """The problems in their own units."""
    for problem in published():
        yield Case(problem.name, problem.model, problem.x0, problem.recorded)
    for name in nist_problems.NAMES:
        recorded = nist_problems.recorded(name)
        model = nist_problems.model_of(name)
        for number, start in enumerate(recorded["starts"], 1):
            minima = (float(recorded["recomputed"]["rss"]),)
            yield Case(f"{name} {number}", model, np.array(start["b"]), minima)
    for case in classical():
        yield Case(*case)
    yield from practice(quick=quick)


def copies(chosen: Iterator[Case]) -> Iterator[Case]:
    """Copies in other units of f, of x, and of single variables, at random."""
    for number, case in enumerate(chosen):
        powers = np.random.default_rng(number).uniform(-6.0, 6.0, len(case.x0))
        yield replace(case, name=f"{case.name} x*10^r", of_x=10.0**powers)
        for of_f in (1e-6, 1e6):
            yield replace(case, name=f"{case.name} f*{of_f:g}", of_f=of_f)
        for of_x in (1e-3, 1e3):
            yield replace(case, name=f"{case.name} x*{of_x:g}", of_x=of_x)


def single(chosen: Iterator[Case]) -> Iterator[Case]:
    """The problems in single precision."""
    for case in chosen:
        yield replace(case, precision="float32")


Table = dict[str, dict[str, Run]]
"""Runs by case and solver."""


def measured(
    chosen: Iterator[Case], names: Sequence[str], kept: Path | None, seconds: float
) -> tuple[Table, list[str]]:
    """The runs of `auto` and peers, and the false claims of `auto`.

    The runs of peers that `kept` holds are read from there, the others added to it.
    """
    known: dict[str, dict[str, dict[str, object]]] = {}
    if kept is not None and kept.exists():
        known = json.loads(kept.read_text())
    table: Table = {}
    false: list[str] = []
    for case in chosen:
        row = table[case.name] = {}
        # The first run compiles kernels.
        claimed = run_of(auto, case, 1e-6, seconds)
        row[OURS] = run_of(auto, case, GTOL[case.precision], seconds)
        if falsely_claimed(case, claimed, seconds):
            false.append(f"{case.name}: {claimed.claim} at {claimed.f:.8g}")
        for name in names:
            stored = known.setdefault(case.name, {})
            if name not in stored:
                run = run_of(PEERS[name], case, GTOL[case.precision], seconds)
                stored[name] = asdict(run)
            row[name] = Run(**stored[name])  # type: ignore[arg-type]
        if kept is not None:
            kept.write_text(json.dumps(known))
    return table, false


def ratios(table: Table, solver: str, measure: str = "solved") -> Array:
    """Work, or `seconds`, of a solver over the least of all, on the cases that some solver solves.

    A time that is not resolved counts as RESOLVED.
    """
    found = []
    for row in table.values():
        least = max(min(getattr(run, measure) for run in row.values()), RESOLVED)
        if least < np.inf:
            found.append(max(getattr(row[solver], measure), RESOLVED) / least)
    return np.array(found)


def summary(table: Table) -> str:
    """One line per solver: solved cases, ratios of work, fastest, within two and ten times."""
    names = list(next(iter(table.values())))
    heads = ("solver", "solved", "median ratio", "to best peer", "fastest", "<= 2", "<= 10")
    lines = [(*heads, "time: median ratio", "fastest", "<= 2")]
    for name in names:
        found, times = ratios(table, name), ratios(table, name, "seconds")
        peers = [
            row[name].solved / least
            for row in table.values()
            if (least := min(run.solved for other, run in row.items() if other != name)) < np.inf
        ]
        lines.append(
            (
                *(name, f"{sum(r[name].solved < np.inf for r in table.values())} of {len(table)}"),
                *(f"{np.median(found):.2f}", f"{np.median(peers):.2f}"),
                *(f"{100 * np.mean(found <= bound):.0f} %" for bound in (1.0, 2.0, 10.0)),
                f"{np.median(times):.2f}",
                *(f"{100 * np.mean(times <= bound):.0f} %" for bound in (1.0, 2.0)),
            )
        )
    return in_columns(lines, True)


def details(table: Table) -> str:
    """Work until solved, case by case."""
    names = list(next(iter(table.values())))
    lines = [("case", *names, "end")]
    for case, row in table.items():
        cells = [f"{run.solved:.0f}" if run.solved < np.inf else "-" for run in row.values()]
        ours = row[OURS]
        lines.append((case, *cells, f"{ours.claim or 'no'} {ours.whole} {ours.f:.8g}"))
    return in_columns(lines, True)


def picture(tables: Mapping[str, Table], file: Path) -> None:
    """Draw a row of performance profiles, by work and by time, for each table.

    Needs matplotlib.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    size = (11, 3.6 * len(tables))
    figure, panels = pyplot.subplots(
        len(tables), 2, figsize=size, layout="constrained", squeeze=False
    )
    for (title, table), row in zip(tables.items(), panels, strict=True):
        for panel, measure in zip(row, ("solved", "seconds"), strict=True):
            for name in next(iter(table.values())):
                found = np.sort(ratios(table, name, measure))
                share = np.arange(1, len(found) + 1) / len(found)
                panel.step(found, share, where="post", label=name, lw=2.5 if name == OURS else 1.2)
            what = "f + g + 2 Hv" if measure == "solved" else "time"
            panel.set(xscale="log", xlim=(1, 100), ylim=(0, 1), ylabel="solved")
            panel.set(xlabel=f"{what} / least", title=title)
    panels[0][0].legend()
    figure.savefig(file, dpi=90)


def profile(
    *, quick: bool, kept: Path | None, seconds: float, part: int | None
) -> tuple[dict[str, Table], str]:
    """Run the originals, and for every `part`-th of them copies and single precision, if any.

    Returns the tables and the report.
    """
    chosen = {"originals": originals(quick=quick)}
    if part is not None:
        chosen["in other units"] = copies(islice(originals(quick=quick), 0, None, part))
        chosen["in single precision"] = single(islice(originals(quick=quick), 0, None, part))
    tables: dict[str, Table] = {}
    report: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        for title, some in chosen.items():
            tables[title], false = measured(some, list(PEERS), kept, seconds)
            claims = "; ".join(false) or "none"
            report.append(f"## {title.capitalize()}\n\n{summary(tables[title])}")
            report.append(f"False claims of success by {OURS}: {claims}.")
    return tables, "\n\n".join(report)
