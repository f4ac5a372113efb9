"""The result of a computation of bounds: two constants, the rules behind them, and reasons."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Context, Decimal
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from slomodel.bounds.norms.eigenvalues import SpectralInterval
from slomodel.bounds.spectrum import Blocks
from slomodel.errors import Diagnostic, DomainError
from slomodel.html import folded, paragraph, table

Source = Literal["analytic", "sampled"]
Rigor = Literal["certified", "estimated"]
LEAST_RADIUS, MOST_RADIUS = 1e-9, 1e9
"""The search interval of `doubling_radius`."""
_MOST_SHOWN = 6
"""Largest number of variables of which `explain` lists the blocks and pairs."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One rule's bound on one constant, with the lines that explain it, or why it is inf."""

    rule: str
    value: float
    reason: str = ""
    trace: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Constant:
    """One Lipschitz constant: the best claim first, then the others in increasing order.

    `useless` says why a finite constant is too large to be useful, and which node makes it so;
    empty otherwise.
    """

    claims: tuple[Claim, ...]
    useless: str = ""

    @property
    def best(self) -> Claim:
        return self.claims[0]

    @property
    def runner_up(self) -> str:
        """The rule of the second best claim and its value; empty if there is none."""
        if len(self.claims) < 2 or math.isinf(self.claims[1].value):
            return ""
        return f"{self.claims[1].rule}: {shown(self.claims[1].value)}"

    @property
    def reason(self) -> str:
        """Why the constant is inf (the first reason of a claim) or useless; otherwise empty."""
        if math.isfinite(self.best.value):
            return self.useless
        return next((claim.reason for claim in self.claims if claim.reason), "")


class Curvature(Protocol):
    """Proved bounds on the Hessian over a ball beyond its norm, computed on demand."""

    def spectrum(self) -> SpectralInterval:
        """The interval of its eigenvalues."""
        ...

    def why_large(self) -> str:
        """Which sub-expression makes L1 far larger than sampled curvature; empty if it is not."""
        ...

    def blocks(self) -> Blocks:
        """Upper bounds on the norms of its blocks, by pairs of variables."""
        ...

    def majorant(self) -> NDArray[np.float64]:
        """A diagonal majorant (n,)."""
        ...


@dataclass(frozen=True, slots=True, repr=False)
class Bounds:
    """L1 of the gradient and L2 of the Hessian over the closed ball of `radius` around `center`.

    From source `analytic` both are upper bounds, in floating point too, inf where none is known;
    from source `sampled` both are lower estimates, less their measured rounding errors.
    `gradient` and `hessian` hold the claims behind L1 and L2. `at(radius)` computes bounds for
    another radius at the same centre, which is cheap. `curvature` computes what is proved about
    the Hessian beyond its norm, on demand; sampled constants come without it.
    """

    L1: float
    L2: float
    source: Source
    rigor: Rigor
    radius: float
    n: int
    gradient: Constant
    hessian: Constant
    at_radius: Callable[[float], Bounds] = field(compare=False)
    curvature: Curvature | None = field(default=None, compare=False)

    @property
    def rule(self) -> str:
        """The rule that gave L1; that of L2 is `hessian.best.rule`."""
        return self.gradient.best.rule

    @property
    def runner_up(self) -> str:
        """The second best rule for L1 and its value."""
        return self.gradient.runner_up

    @property
    def reason(self) -> str:
        """Why L1 or, if L1 is fine, L2 is inf or useless; empty where neither is."""
        return self.gradient.reason or self.hessian.reason

    @property
    def lower(self) -> float:
        """Lower bound on the eigenvalues of the Hessian over the ball; -inf without a proof."""
        return -math.inf if self.curvature is None else self.curvature.spectrum().low

    @property
    def upper(self) -> float:
        """Upper bound on the eigenvalues of the Hessian over the ball; inf without a proof."""
        return math.inf if self.curvature is None else self.curvature.spectrum().high

    @property
    def convex(self) -> bool:
        """Whether the objective is proved to be convex on the ball."""
        return self.lower >= 0.0

    @property
    def blocks(self) -> Mapping[tuple[str, str], float]:
        """Upper bounds on the norms ‖H_vw‖ of the Hessian's blocks, by two variables' names.

        With all other variables held, `blocks[v, v]` is a Lipschitz constant of the gradient by v.
        """
        return {} if self.curvature is None else self.curvature.blocks()

    @property
    def majorant(self) -> NDArray[np.float64]:
        """D (n,) with ∇²f ≼ diag(D) over the ball; +inf without a proof."""
        return np.full(self.n, np.inf) if self.curvature is None else self.curvature.majorant()

    def at(self, radius: float) -> Bounds:
        """The bounds over another ball with this centre."""
        return self.at_radius(checked_radius(radius))

    def doubling_radius(self) -> float:
        """A radius up to which L1 is at most twice that of radius 0, within 1 % of the largest.

        inf where a rule holds over the whole space, 0 where even `LEAST_RADIUS` is too large. The
        search ends at `MOST_RADIUS`, and evaluates about 12 radii.
        """
        twice = 2.0 * self.at(0.0).L1
        if self.at(math.inf).L1 <= twice < math.inf:
            return math.inf
        low, high = 0.0, 1.0
        while self.at(high).L1 <= twice < math.inf:
            low, high = high, 4.0 * high
            if high > MOST_RADIUS:
                return low
        while low == 0.0:
            if high < LEAST_RADIUS:
                return 0.0
            if self.at(high / 4.0).L1 <= twice < math.inf:
                low = high / 4.0
            else:
                high /= 4.0
        while high > 1.01 * low:
            middle = math.sqrt(low * high)
            if twice >= self.at(middle).L1:
                low = middle
            else:
                high = middle
        return low

    def _repr_html_(self) -> str:
        """The constants with their rules, and the explanation folded, for notebooks."""
        head = ("", "bound" if self.source == "analytic" else "estimate", "rule", "")
        rows = [
            (name, shown(one.best.value), one.best.rule, one.reason)
            for name, one in (("L1", self.gradient), ("L2", self.hessian))
        ]
        where = (
            f"Ball of radius {self.radius:g} in {self.n:,} unknowns: {self.source}, {self.rigor}."
        )
        return paragraph(where) + table(head, rows) + folded("every rule", self.explain())

    def explain(self) -> str:
        """For each constant, every rule with its value and the terms of its sum, best first."""
        lines = [
            f"ball of radius {self.radius:g} in {self.n} unknowns: {self.source}, {self.rigor}"
        ]
        sign = "≤" if self.source == "analytic" else "about"
        for name, constant in (("L1", self.gradient), ("L2", self.hessian)):
            lines.append(f"{name} {sign} {shown(constant.best.value)}")
            why = constant.useless
            if name == "L1" and not why and self.curvature is not None:
                why = self.curvature.why_large()
            lines += [f"   {why}"] if why else []
            lines += _branches(constant.claims)
        return "\n".join([*lines, *self._curvature_in_words()])

    @property
    def spectrum_in_words(self) -> str:
        """The interval of the Hessian's eigenvalues, and whether the objective is convex."""
        ends = f"[{shown_below(self.lower)}, {shown(self.upper)}]"
        convex = ": convex on the ball" if self.convex else ""
        return f"eigenvalues of the Hessian in {ends}{convex}"

    def _curvature_in_words(self) -> list[str]:
        """Lines on the eigenvalues, the blocks and the diagonal majorant."""
        if self.curvature is None or not math.isfinite(self.L1) or self.n == 0:
            return []
        lines = [self.spectrum_in_words]
        names = list(dict.fromkeys(v for v, _ in self.blocks))
        if 1 < len(names) <= _MOST_SHOWN:
            own = [f"{v} {shown(self.blocks[v, v])}" for v in names]
            pairs = [
                f"{v}, {w} {shown(self.blocks[v, w])}"
                for k, v in enumerate(names)
                for w in names[k + 1 :]
            ]
            lines += [f"blocks ≤ {'; '.join(own)}", f"pairs ≤ {'; '.join(pairs)}"]
        D = self.majorant
        if D.size > 1 and D.min() < D.max() and np.isfinite(D).all():
            ends = f"{shown(float(D.min()))} to {shown(float(D.max()))}"
            mean = shown(float(D.mean()))
            lines.append(f"diagonal majorant of the Hessian: {ends}, mean {mean}")
        return lines

    def __repr__(self) -> str:
        why = f", reason={self.reason!r}" if self.reason else f", rule={self.rule!r}"
        return (
            f"Bounds(L1={shown(self.L1)}, L2={shown(self.L2)}, source={self.source!r}, "
            f"rigor={self.rigor!r}, radius={self.radius:g}{why})"
        )


def _branches(claims: tuple[Claim, ...]) -> list[str]:
    lines = []
    for k, claim in enumerate(claims):
        last = k == len(claims) - 1
        lines.append(f"{'└' if last else '├'}─ {shown(claim.value)}  {claim.rule}")
        under = " " if last else "│"
        below = (*claim.trace, claim.reason) if math.isinf(claim.value) else claim.trace
        lines += [f"{under}    {line}" for line in below if line]
    return lines


def shown(value: float) -> str:
    """A bound with six digits, rounded up, so that the text is a bound too."""
    text = f"{value:.6g}"
    if float(text) >= value:
        return text
    rounded = Decimal(value).normalize(Context(prec=6, rounding=ROUND_CEILING))
    return f"{float(rounded):.6g}"


def shown_below(value: float) -> str:
    """A lower bound with six digits, rounded down."""
    text = shown(-value)
    return text[1:] if text.startswith("-") else f"-{text}"


def checked_radius(radius: object) -> float:
    """A radius ≥ 0, inf allowed. Raises DomainError."""
    if isinstance(radius, numbers.Real) and not isinstance(radius, bool | np.bool_):
        value = float(radius)
        if value >= 0.0:
            return value
    message = f"radius: expected a number ≥ 0, found {radius!r:.60}"
    raise DomainError(Diagnostic("E602", message, help="give radius as a number, 0 for a point"))
