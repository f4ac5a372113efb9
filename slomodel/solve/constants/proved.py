"""Proved constants: `lipschitz="analytic"`, and `"auto"` where a proof exists."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Protocol, runtime_checkable

from slomodel.errors import Diagnostic, DomainError
from slomodel.solve.constants.source import Sampled
from slomodel.solve.facts import conforms
from slomodel.solve.norms import Vector
from slomodel.solve.objective import Evaluator
from slomodel.solve.subroutine import Constants, ConstantsOver, Iterate

# The worth of a proof about a model, in gradient steps. These take 30 µs to 3 ms, and the bounds
# over the few balls that are tried before one is chosen a second to half a minute, more where steps
# take longer.
PROOF_STEPS = 10_000.0


@dataclass(frozen=True, slots=True)
class Proof:
    """Upper bounds on L1 and L2 over a ball; inf, with the `reason`, where none is known."""

    L1: float
    L2: float
    reason: str = ""


Prove = Callable[[Vector, float], Proof]
"""(centre (n,), radius) -> Proof."""


class EvaluationErrors(Protocol):
    """Bounds on the rounding errors of evaluation; inf where none is known."""

    def value_error(self, x: Vector, f: float) -> float:
        """Bound on the error of f as the objective at x (n,)."""
        ...

    def gradient_error(self, x: Vector, g: Vector) -> float:
        """Bound on the norm of the error of g (n,) as the gradient at x (n,)."""
        ...


@runtime_checkable
class ProofSource(Protocol):
    """A source of proved constants, such as a compiled model."""

    @property
    def errors(self) -> EvaluationErrors | None:
        """Bounds on the errors of evaluation; None where the source has none."""
        ...

    @property
    def worth(self) -> float:
        """The number of gradient steps that take about as long as a proof."""
        ...

    def __call__(self, centre: Vector, radius: float) -> Proof:
        """Upper bounds on L1 and L2 over the ball about `centre` (n,)."""
        ...

    def quick(self, centre: Vector, radius: float) -> Proof:
        """An upper bound on L1 alone, computed quickly where a cheap rule applies."""
        ...

    def one_of_many(self, centre: Vector, radius: float) -> Proof:
        """Upper bounds at the effort of methods that take a proof every few steps."""
        ...

    def curvature_above(self, x: Vector, v: Vector) -> float:
        """An upper bound on vᵀHv / vᵀv at x along v, both (n,); inf where none is known."""
        ...

    def stop_by(self, check: Callable[[], None]) -> None:
        """Call `check` regularly during proofs; an exception that it raises ends the proof."""
        ...


@dataclass(frozen=True, slots=True)
class ProofFunction:
    """A plain function of centre (n,) and radius, used as a source of proofs."""

    function: Prove

    errors = None
    worth = 1.0

    def __call__(self, centre: Vector, radius: float) -> Proof:
        return self.function(centre, radius)

    def quick(self, centre: Vector, radius: float) -> Proof:
        return self.function(centre, radius)

    def one_of_many(self, centre: Vector, radius: float) -> Proof:
        return self.function(centre, radius)

    def curvature_above(self, x: Vector, v: Vector) -> float:
        return math.inf

    def stop_by(self, check: Callable[[], None]) -> None:
        """Do nothing: a plain function is not interrupted."""


def proof_source(prove: Prove | ProofSource) -> ProofSource:
    """Wrap a plain function as a source of proofs; return any other source unchanged."""
    return prove if conforms(prove, ProofSource) else ProofFunction(prove)


@dataclass(frozen=True, slots=True)
class SignedErrors:
    """Bounds on the errors of the objective as the solver sees it, `sign` times the one as written.

    They are 0 where no bound is known: a violation is then never attributed to rounding.
    """

    errors: EvaluationErrors
    sign: float

    def value_error(self, x: Vector, f: float) -> float:
        result = self.errors.value_error(x, self.sign * f)
        return result if math.isfinite(result) else 0.0

    def gradient_error(self, x: Vector, g: Vector) -> float:
        result = self.errors.gradient_error(x, self.sign * g)
        return result if math.isfinite(result) else 0.0


class Clocked:
    """A source of proofs that counts calls and records their total and longest time in seconds."""

    def __init__(self, source: ProofSource) -> None:
        self.number = 0
        self.seconds = self.longest = 0.0
        self._source = source

    @property
    def errors(self) -> EvaluationErrors | None:
        return self._source.errors

    @property
    def worth(self) -> float:
        return self._source.worth

    def __call__(self, centre: Vector, radius: float) -> Proof:
        return self._timed(self._source, centre, radius)

    def quick(self, centre: Vector, radius: float) -> Proof:
        return self._timed(self._source.quick, centre, radius)

    def one_of_many(self, centre: Vector, radius: float) -> Proof:
        return self._timed(self._source.one_of_many, centre, radius)

    def curvature_above(self, x: Vector, v: Vector) -> float:
        return self._source.curvature_above(x, v)

    def stop_by(self, check: Callable[[], None]) -> None:
        self._source.stop_by(check)

    def _timed(self, prove: Prove, centre: Vector, radius: float) -> Proof:
        began = perf_counter()
        try:
            return prove(centre, radius)
        finally:
            took = perf_counter() - began
            self.number += 1
            self.seconds += took
            self.longest = max(self.longest, took)


@dataclass(frozen=True, slots=True)
class Analytic:
    """Proved constants; for a ball without a proof L1 = inf, with the reason in `unproved`."""

    prove: ProofSource
    one_of_many: bool = False

    name = "analytic"
    estimated = False
    gives_second = True

    @property
    def for_every_step(self) -> Analytic:
        return replace(self, one_of_many=True)

    @property
    def worth(self) -> float:
        return self.prove.worth

    @property
    def parameters(self) -> dict[str, float | str]:
        return {"lipschitz": self.name}

    def start(self, evaluate: Evaluator, seed: int) -> ConstantsOver:
        prove = self.prove.one_of_many if self.one_of_many else self.prove

        def over(centre: Iterate, radius: float) -> Constants:
            evaluate.check_time()
            proof = prove(centre.x, radius)
            L2 = proof.L2 if math.isfinite(proof.L2) else None
            missing = "" if math.isfinite(proof.L1) else proof.reason or "no bound is known"
            return Constants(proof.L1, L2, self.name, self.estimated, missing)

        return over


@dataclass(frozen=True, slots=True)
class AnalyticElseSampled:
    """Proved constants, with sampled ones for each ball that has no proof."""

    analytic: Analytic
    sampled: Sampled

    name = "auto"
    estimated = True
    gives_second = True

    @property
    def for_every_step(self) -> Analytic:
        return self.analytic.for_every_step

    @property
    def worth(self) -> float:
        return self.analytic.worth

    @property
    def parameters(self) -> dict[str, float | str]:
        return self.sampled.parameters | {"lipschitz": self.name}

    def start(self, evaluate: Evaluator, seed: int) -> ConstantsOver:
        analytic = self.analytic.start(evaluate, seed)
        return FirstProved(analytic, self.sampled.start(evaluate, seed), self.sampled.second)


@dataclass(frozen=True, slots=True)
class FirstProved:
    """Proved constants where a proof exists, else sampled ones; `second`: L2 is needed."""

    proved: ConstantsOver
    sampled: ConstantsOver
    second: bool = False

    def __call__(self, centre: Iterate, radius: float) -> Constants:
        proved = self.proved(centre, radius)
        missing = proved.unproved or (self.second and proved.L2 is None)
        return self.sampled(centre, radius) if missing else proved


def unproved(radius: float, reason: str) -> DomainError:
    """The error of a run that requires a proof where none exists."""
    message = f"L1 has no proved bound over the ball of radius {radius:.3g}: {reason}"
    remedy = "give a smaller D, or lipschitz='auto' or 'sampled'"
    return DomainError(Diagnostic("E606", message, help=remedy))
