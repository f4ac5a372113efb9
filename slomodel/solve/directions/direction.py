"""The interface between line searches and directions, and the steepest descent direction."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from slomodel.solve.compiled.loop import HessianArrays, LoopState
from slomodel.solve.norms import LARGEST, Vector, norm, ratio, slope_along
from slomodel.solve.subroutine import Iterate

# Number of steps without a gain after which a run ends.
IDLE_STEPS = 200


@dataclass(slots=True)
class SecantPair:
    """The last step s and the change y of the gradient, both (n,), with their products.

    It is not frozen, which would double the time to construct it.

    `y` is valid until the next step. `own`: the step is along the last proposal of the direction
    that receives the pair. Curvature can be learned from any step, a step length only from such
    steps.
    """

    s: Vector
    y: Vector
    sy: float
    snorm: float
    ynorm: float
    own: bool = True


def curvature_scale(pair: SecantPair, eps: float) -> float:
    """γ = ⟨s,y⟩/‖y‖², or 0 unless ⟨s,y⟩ is positive beyond rounding.

    `eps` is the unit roundoff of gradients. A symmetric positive definite Hessian of condition κ
    has ⟨s,y⟩ ≥ 2‖s‖‖y‖√κ/(κ+1); below the threshold κ exceeds 1/eps, and the sign of ⟨s,y⟩ is
    rounding error.
    """
    sy, ynorm = pair.sy, pair.ynorm
    if not sy > math.sqrt(eps) * pair.snorm * ynorm > 0.0 or not 1.0 / sy < math.inf:
        return 0.0
    return ratio(sy, ynorm, ynorm)


class Predicting(Protocol):
    """A direction to the minimum of a model of f, by an estimate of the Hessian."""

    @property
    def curvatures(self) -> Vector | None:
        """The diagonal (n,) of the last Hessian that was computed; None without one."""
        ...

    @property
    def hessian(self) -> Vector | None:
        """The Hessian (n, n) at the last point, if the last direction was by all of it."""
        ...

    @property
    def bends(self) -> bool:
        """Whether a rejected trial of the last proposal can be answered by `bend`."""
        ...

    def confirm(self, at: Iterate, out: Vector) -> float:
        """Write the direction by the Hessian at a point into `out` (n,); return its norm."""
        ...

    def bend(self, at: Iterate, out: Vector) -> float:
        """Write a shorter step, in another direction, into `out` (n,); return its norm."""
        ...

    def recover(self) -> None:
        """Continue a stalled run with another direction, if there is one."""
        ...


InverseInC = Callable[[Iterate, float], tuple[Vector, Vector | None] | None]
"""The Hessian at a point and its inverse, for steps up to a length."""


class EstimateInC(Protocol):
    """An estimate of the Hessian that may use compiled linear algebra."""

    def connect(self, inverse: InverseInC, arrays: HessianArrays | None) -> None:
        """Let compiled code compute Hessians, and steps of its loop in these arrays."""
        ...


class DirectionInC(Protocol):
    """A direction along which a compiled loop can take plain steps."""

    @property
    def compiled(self) -> str:
        """The compiled loop that takes the next steps."""
        ...

    @property
    def memory(self) -> int:
        """The largest number of pairs."""
        ...

    @property
    def estimate(self) -> EstimateInC: ...

    def store(self, loop: LoopState, at: Iterate) -> bool:
        """Let a compiled loop work on the state in place; False where it cannot."""
        ...

    def load(self, loop: LoopState, at: Iterate) -> None:
        """Read the state after steps of a compiled loop that end at a point."""
        ...


class Direction(Protocol):
    """A rule for the direction v (n,) at a point; the caller tests each proposal."""

    @property
    def wants_pairs(self) -> bool: ...

    @property
    def predicting(self) -> Predicting | None:
        """The rule itself if it predicts; None for others."""
        ...

    @property
    def in_c(self) -> DirectionInC | None:
        """The rule itself if a compiled loop can take its steps; None for others."""
        ...

    @property
    def kind(self) -> str:
        """The kind of the last proposal in words; empty for a rule with one kind."""
        ...

    @property
    def units(self) -> Vector | None:
        """The scaling of the variables (n,) in the last proposal; None for a rule without one."""
        ...

    def propose(self, at: Iterate, out: Vector) -> float:
        """Write v (n,) into `out`; return its norm."""
        ...

    def learn(self, pair: SecantPair) -> None:
        """Update the direction with the pair of an accepted step."""
        ...

    def fallback(self, at: Iterate, out: Vector) -> float:
        """Write a positive multiple of −∇f (n,) into `out`; return its norm."""
        ...


Propose = Callable[[Iterate, Vector], float]
"""(point, out): writes a direction (n,) into `out` and returns its norm."""


class Gradient:
    """v = −∇f."""

    wants_pairs = False
    predicting = None
    in_c = None
    kind = ""
    units = None

    def propose(self, at: Iterate, out: Vector) -> float:
        np.negative(at.g, out=out)
        return at.gnorm

    def learn(self, pair: SecantPair) -> None:
        pass

    fallback = propose


def gradient_related(
    direction: Direction, alpha: float, at: Iterate, v: Vector, propose: Propose | None = None
) -> tuple[float, float, bool]:
    """Write a direction with ⟨g,v⟩ ≤ −α‖g‖‖v‖ into v (n,), from `propose` if it is given.

    A proposal that is not gradient-related is replaced by the rule's multiple of −g. For a rule
    that scales the variables, the norms may also be those of the scaled variables: where units
    differ by 1e20, the best direction may have a cosine of 1e-20 with −g. Returns ‖v‖, ⟨g,v⟩/‖v‖
    and whether v is the rule's own direction and not along −g.
    """
    g, gnorm = at.g, at.gnorm
    vnorm = (propose or direction.propose)(at, v)
    if 0.0 < vnorm <= LARGEST:
        slope = slope_along(g, gnorm, v, vnorm)
        if slope <= -alpha * gnorm:
            return vnorm, slope, True
        units = direction.units
        if units is not None:
            least = alpha * norm(g * units) * norm(v / units)
            if slope * vnorm <= -least < 0.0:
                return vnorm, slope, True
    return direction.fallback(at, v), -gnorm, False


def of_search_length(at: Iterate, delta_bar: float, out: Vector) -> float:
    """Write −∇f scaled to the search length into `out` (n,), as `along_minus`."""
    return along_minus(at, min(delta_bar / at.gnorm, LARGEST), out)


def along_minus(at: Iterate, factor: float, out: Vector) -> float:
    """Write −factor·∇f (n,) into `out`, or −∇f if that over- or underflows; return its norm."""
    np.multiply(at.g, -factor, out=out)
    vnorm = norm(out)
    if 0.0 < vnorm <= LARGEST:
        return vnorm
    np.negative(at.g, out=out)
    return at.gnorm
