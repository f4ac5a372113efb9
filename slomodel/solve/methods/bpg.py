"""Bregman proximal gradient with the kernel h(x) = ‖x‖^p/p + ‖x‖²/2."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from slomodel.errors import Diagnostic, DomainError
from slomodel.solve.constants.proved import ProofSource, unproved
from slomodel.solve.constants.relative import Adaptable
from slomodel.solve.constants.source import LipschitzSource
from slomodel.solve.facts import ObjectiveFacts
from slomodel.solve.methods.ball import whole_space
from slomodel.solve.methods.context import MethodContext
from slomodel.solve.methods.gd import given_constant
from slomodel.solve.methods.gradient_steps import DescentRun
from slomodel.solve.norms import Vector, norm, power
from slomodel.solve.objective import Evaluator
from slomodel.solve.options import number
from slomodel.solve.subroutine import ConstantsOver, EpochRegion, Iterate, TheoremInequality
from slomodel.solve.verify.inequalities import of_bregman_steps

LEAST_P = 2.0
# The rounding error of an exponent is amplified by the logarithm of the base, at most 710.
ABOVE = 1e-12


@dataclass(frozen=True, slots=True)
class BPG:
    """argmin over y of ⟨∇f(x), y⟩ + L·D_h(y, x), where L·h − f and L·h + f are convex.

    Then f decreases by at least L·D_h(x, x⁺) ≥ (L/2)‖x⁺ − x‖² at every step, without any ball.
    Paper: appdx:BPG, where the sign in v = ∇f − L∇h has to be corrected.
    """

    p: float

    name = "bpg"
    own_test = False
    linearises = False
    second_descent = None

    @property
    def parameters(self) -> dict[str, float | str]:
        return {"p": self.p}

    @property
    def inequalities(self) -> tuple[TheoremInequality, ...]:
        return of_bregman_steps(self.p)

    def region(self, start: Iterate, constants: ConstantsOver | None) -> EpochRegion:
        """The single region of the run, with L as its L1."""
        assert constants is not None
        result = constants(start, 0.0)
        if result.unproved:
            raise unproved(0.0, result.unproved)
        whole = whole_space(start)
        return replace(whole, L1=result.L1, source=result.source, estimated=result.estimated)

    def stepper(self, evaluate: Evaluator, start: Iterate, tolerance: float) -> DescentRun:
        move = partial(mirror_step, self.p)
        return DescentRun(move, evaluate, start, ends_at_boundary=False)


def mirror_step(p: float, current: Iterate, region: EpochRegion, out: Vector) -> bool:
    """Write x⁺ = −s·v/‖v‖ into `out` (n,), v = ∇f/L − ∇h(x), s(1 + s^{p−2}) = ‖v‖.

    Paper: prob:BPG-sub. If v overflows, x⁺ = x.
    """
    assert region.L1 is not None
    x = current.x
    np.multiply(x, -(1.0 + power(norm(x), p - 2.0)), out=out)
    out += current.g / region.L1
    length = norm(out)
    if 0.0 < length < np.inf:
        out /= -length
        out *= norm_of_step(length, p)
    elif length != 0.0:
        np.copyto(out, x)
    return False


def norm_of_step(r: float, p: float) -> float:
    """The root s ≥ 0 of s + s^{p−1} = r to the last bits, r ≥ 0 and finite, p ≥ 2.

    Newton's method from above decreases monotonically to the root, since the left side is convex.
    The start exceeds the root despite rounding of the power, by a factor of about two at most.
    """
    s = min(r, power(r, 1.0 / (p - 1.0)) * (1.0 + ABOVE))
    while s > 0.0:
        q = power(s, p - 2.0)
        nearer = s - (s * (1.0 + q) - r) / (1.0 + (p - 1.0) * q)
        if not nearer < s:
            return s
        s = nearer
    return s


def bpg_source(
    given: Mapping[str, object], prove: ProofSource | None, facts: ObjectiveFacts
) -> LipschitzSource:
    """L as given, else from bounds on the Hessian; DomainError if there are none."""
    result = given_constant(given)
    if result:
        return result
    if facts.degree is None or prove is None:
        reason = "plain functions have no bounds"
        if prove is not None:
            reason = "the objective is not seen to be a polynomial"
        message = f"bpg needs a constant L with L·h − f and L·h + f convex, and {reason}"
        raise DomainError(Diagnostic("E604", message, help="give L and p, or use norm-armijo"))
    return Adaptable(prove.quick, facts.degree, _kernel_power(given, facts.degree))


def _kernel_power(given: Mapping[str, object], degree: int | None) -> float:
    """The power p, by default the degree of the objective."""
    known = None if degree is None else max(LEAST_P, float(degree))
    p = given.get("p", known)
    if p is None:
        message = "bpg needs p, the power of its kernel, where no degree is known"
        raise DomainError(Diagnostic("E604", message, help="give p beside L, such as p=4"))
    return number("p", p, LEAST_P, closed=True)


def bpg(given: Mapping[str, object], context: MethodContext) -> BPG:
    """BPG with its default: p is the degree of the objective, 2 for a linear one."""
    return BPG(_kernel_power(given, context.facts.degree))
