"""The inequalities of the theorems, checked on a run: one line per inequality."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields

from slomodel.html import paragraph, table
from slomodel.solve.constants.proved import EvaluationErrors
from slomodel.solve.norms import EPS, Vector
from slomodel.solve.objective import Evaluator
from slomodel.solve.stagnation.resolution import ROUNDING
from slomodel.solve.subroutine import (
    AcceptedStep,
    CheckedStep,
    EpochRegion,
    Iterate,
    Since,
    TheoremInequality,
)

NO_STEP = -1


@dataclass(slots=True)
class Tally:
    """The checks of one inequality during a run."""

    checked: int = 0
    violated: int = 0
    exempt: int = 0
    worst: float = -math.inf
    worst_k: int = NO_STEP


@dataclass(frozen=True, slots=True)
class Line:
    """The result of the checks of one inequality; `made` if it applies to the run.

    `worst` is the largest excess in units of the evaluation error, at step `worst_k`, which is −1
    if nothing was checked. `exempt` counts the steps at the resolution of f and those that, because
    of rounding, deviate from the method.
    """

    name: str
    made: bool
    checked: int
    violated: int
    exempt: int
    worst: float
    worst_k: int

    @property
    def state(self) -> str:
        """held, violated, not promised, or not checked."""
        if not self.made:
            return "not promised"
        if not self.checked:
            return "not checked"
        return "violated" if self.violated else "held"

    def text(self, width: int) -> str:
        """One line of text, with the name in `width` columns."""
        parts = [f"{self.name.ljust(width)}  {self.state}"]
        if self.checked:
            count = self.violated or self.checked
            parts[0] += f" {count} of {self.checked}"
            by = f"{abs(self.worst):.2g} rounding errors"
            near = f"missed by {by}" if self.violated else f"margin {by}"
            parts.append(f"{near if abs(self.worst) > 1.0 else 'equal'} at step {self.worst_k}")
        if self.exempt:
            parts.append(f"{self.exempt} at the resolution of f omitted")
        return ", ".join(parts)


_SOURCES = {
    "analytic": "proved bounds",
    "sampled": "samples",
    "number": "the number given",
    "function": "the function given",
}
_LEGEND = (
    "Margins are multiples of the rounding error of the compared numbers, at the step nearest to a "
    "violation. eps is the square of the tolerance for the gradient norm."
)


@dataclass(frozen=True, slots=True)
class Certificate:
    """The theorem inequalities of a run and the sources of its constants.

    `estimated`: the constants may be too small.

    With proved constants a violation is a fault of this package; with user-supplied or sampled ones
    it shows that they are too small.
    """

    lines: tuple[Line, ...]
    sources: tuple[str, ...]
    estimated: bool

    @property
    def holds(self) -> bool:
        """Whether no inequality that was checked is violated."""
        return not any(line.violated for line in self.lines)

    @property
    def summary(self) -> str:
        """A verdict, one line per inequality, and the meaning of the numbers."""
        width = max((len(line.name) for line in self.lines), default=0)
        text = [self._verdict(), *(line.text(width) for line in self.lines)]
        if any(line.checked for line in self.lines):
            text.append(_LEGEND)
        return "\n".join(text)

    def __str__(self) -> str:
        return self.summary

    def _repr_html_(self) -> str:
        """The verdict and the inequalities as a table, for notebooks."""
        head = ("inequality", "checked", "violated")
        rows = [(line.name, f"{line.checked:,}", f"{line.violated:,}") for line in self.lines]
        return paragraph(self._verdict()) + table(head, rows)

    def _verdict(self) -> str:
        checked = [line for line in self.lines if line.checked]
        broken = sum(line.violated > 0 for line in checked)
        verdict = "No inequality of the theorems could be checked."
        if checked:
            verdict = "Every inequality of the theorems that was checked holds."
        if broken:
            verdict = f"{broken} of the {len(checked)} inequalities that were checked are violated."
        constants = ", ".join(_SOURCES.get(source, source) for source in self.sources)
        if constants and self.estimated:
            constants += ", which may be too small where the run went"
        return f"{verdict} Constants: {constants}." if constants else verdict

    def as_json(self) -> dict[str, object]:
        """The certificate as JSON values."""
        lines = [{f.name: getattr(line, f.name) for f in fields(Line)} for line in self.lines]
        for line in lines:
            line["worst"] = line["worst"] if math.isfinite(line["worst"]) else None
        return {"lines": lines, "sources": list(self.sources), "estimated": self.estimated}


def certificate_of(saved: Mapping[str, object]) -> Certificate:
    """The certificate from its JSON values; raises ValueError for others."""
    lines, sources = saved["lines"], saved["sources"]
    if not isinstance(lines, list) or not isinstance(sources, list):
        raise ValueError("lines")
    read = tuple(
        Line(**(line | {"worst": -math.inf if line["worst"] is None else line["worst"]}))
        for line in lines
    )
    return Certificate(read, tuple(map(str, sources)), bool(saved["estimated"]))


class Certifier:
    """Checks every step of one run; `errors` bounds the errors of f and its gradient, if known."""

    def __init__(
        self,
        inequalities: Iterable[TheoremInequality],
        errors: EvaluationErrors | None = None,
        evaluate: Evaluator | None = None,
    ) -> None:
        self._evaluate = evaluate
        self._inequalities = tuple(inequalities)
        self._errors = errors
        self._tallies = [Tally() for _ in self._inequalities]
        self._sources: dict[str, str] = {}
        self._estimated = False
        self._x0: Vector | None = None
        self._epoch_x: Vector | None = None
        self._start_f = self._epoch_f = math.nan
        self._new_epoch = True
        self._clean = self._all_clean = True

    def took(
        self,
        old: Iterate,
        taken: AcceptedStep,
        region: EpochRegion,
        root: float,
        ends: bool,
        k: int,
    ) -> None:
        """Check step k."""
        if self._x0 is None:
            self._x0, self._start_f = old.x.copy(), old.f
        if self._new_epoch or self._epoch_x is None:
            self._epoch_x, self._epoch_f, self._clean = old.x.copy(), old.f, True
        clean = not (taken.by_rounding or taken.in_units)
        self._clean = self._clean and clean
        self._all_clean = self._all_clean and clean
        if region.source != "none":
            self._sources[region.source] = region.source
            self._estimated = self._estimated or region.estimated
        eps = self._evaluate.eps if self._evaluate else EPS
        step = CheckedStep(
            *(old, taken, region, root, ends, self._epoch_x, self._epoch_f),
            *(self._x0, self._start_f, self._clean, self._all_clean, eps),
        )
        for inequality, tally in zip(self._inequalities, self._tallies, strict=True):
            result = inequality.excess(step) if inequality.applies else None
            if result is not None:
                excess, error = result
                error += self._rounding(step, inequality.since)
                if excess > error:
                    error += self._evaluation_error(step, inequality.since)
                count(tally, excess, error, k)
        self._new_epoch = ends

    def _rounding(self, step: CheckedStep, since: Since) -> float:
        """The expected rounding error of a difference of two values of f.

        f may be a difference of large terms: if its error is not known, the magnitude of these is
        taken to be that of f at the start of the epoch.
        """
        size = max(abs(step.taken.point.f), abs(step.since(since)[1]))
        if self._errors is None:
            size = max(size, abs(step.epoch_f))
        return ROUNDING * step.eps * size

    def _evaluation_error(self, step: CheckedStep, since: Since) -> float:
        """A bound on the errors of both values of f and on the effect of that of the gradient.

        For a gradient with error e, a step s decreases f by up to ‖e‖‖s‖ less than predicted. This
        bound takes longer than f itself, so that it is computed only for an excess beyond the
        expected rounding error.
        """
        if self._errors is None:
            return 0.0
        x, f = step.since(since)
        new = step.taken.point
        values = self._errors.value_error(x, f) + self._errors.value_error(new.x, new.f)
        old = step.old
        return values + self._errors.gradient_error(old.x, old.g) * step.taken.length

    def certificate(self) -> Certificate:
        """The certificate of the steps so far."""
        lines = tuple(
            Line(p.name, p.applies, t.checked, t.violated, t.exempt, t.worst, t.worst_k)
            for p, t in zip(self._inequalities, self._tallies, strict=True)
        )
        return Certificate(lines, tuple(self._sources), self._estimated)


def count(tally: Tally, excess: float, error: float, k: int) -> None:
    """Record one check; an excess is a violation only beyond the error."""
    if math.isnan(excess):
        tally.exempt += 1
        return
    tally.checked += 1
    tally.violated += excess > error
    share = excess / error if error > 0.0 else math.copysign(math.inf, excess) if excess else 0.0
    if tally.worst_k == NO_STEP or share > tally.worst:
        tally.worst, tally.worst_k = share, k
