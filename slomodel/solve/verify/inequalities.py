"""The inequalities of the paper's theorems, in the form in which a certificate checks them."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from slomodel.solve.constants.proved import ProofSource
from slomodel.solve.norms import EPS, Vector, norm, power
from slomodel.solve.stagnation.resolution import ROUNDING
from slomodel.solve.subroutine import EXEMPT, CheckedStep, EpochRegion, TheoremInequality

# Relative slack in comparisons such as D ≥ 6ε^¼.
SLACK = 1e-12
# The distance of two points of norm up to r has an error of a few eps·r.
OF_DISTANCE = 8.0
Constant = Callable[[EpochRegion, float], float]
"""(region, √ε) -> C1 or C2."""
COVERED = ("p", "b1", "b2")
# For |τ| below NEAR_TANGENT, (1 + τ)^q is a series of SERIES_TERMS terms, whose remainder is below
# rounding for q up to about 10.
NEAR_TANGENT = 1e-2
SERIES_TERMS = 12


def exempt(step: CheckedStep) -> bool:
    """Whether the step was at the resolution of f, or by a rule not covered by the theorem."""
    chosen = step.taken.facts.get("chosen", COVERED[0])
    taken = step.taken
    return taken.by_rounding or taken.in_units or chosen not in COVERED


def descends(
    name: str,
    least: Callable[[CheckedStep], float | None],
    inexact: Callable[[CheckedStep], float] | None = None,
) -> TheoremInequality:
    """f_{k−1} − f_k ≥ least(step); if `least` is None the inequality does not refer to the step.

    `least` has a relative error of a few unit roundoffs; `inexact` is the effect on f of the
    rounding of the step itself.
    """

    def excess(step: CheckedStep) -> tuple[float, float] | None:
        wanted = least(step)
        if wanted is None:
            return None
        if exempt(step):
            return EXEMPT
        error = ROUNDING * EPS * abs(wanted)
        return wanted - step.decrease, error + (inexact(step) if inexact else 0.0)

    return TheoremInequality(name, excess)


def root_of(step: CheckedStep) -> float:
    """Lower bound √ε on the norm of the gradient mapping while the run continues.

    In a set the run continues while ‖x − P(x − ∇f)‖ ≥ √ε, P the projection. The theorems need the
    mapping L1(x − P(x − ∇f/L1)), which is at least min(1, L1) times as long.
    """
    L1 = step.region.L1
    in_a_set = L1 is not None and step.region.set.within is not None
    return step.root * min(1.0, L1) if L1 is not None and in_a_set else step.root


def by_spacing(step: CheckedStep) -> float:
    """Loss of descent by the rounding of a gradient step: ‖∇f‖ times the rounding error of x⁺.

    For an error ρ in x⁺, or in the projection, the proofs of descent lose at most about ‖∇f‖‖ρ‖.
    """
    r = max(norm(step.old.x), norm(step.taken.point.x))
    return OF_DISTANCE * EPS * r * norm(step.old.g)


def of_epochs(
    C1: Constant, C2: Constant, share: float, inside: bool, names: tuple[str, str]
) -> tuple[TheoremInequality, ...]:
    """Condition 2.1 and its consequences: travel, descent and number of epochs.

    An epoch that ends in its margin descends by √ε·D/share. `inside`: C2 requires ‖∇f‖ > √ε at the
    new point. `names` are texts for C1 and C2.
    Paper: cond-1, cond-2, eq:truncated, lemma:meta-epoch, theorem:meta-complexity.
    """

    def first(step: CheckedStep) -> float:
        return C1(step.region, root_of(step)) * step.taken.length**2

    def second(step: CheckedStep) -> float | None:
        new = step.taken.point
        if step.ends or (inside and new.gnorm <= step.root):
            return None
        return C2(step.region, root_of(step))

    def whole(step: CheckedStep) -> tuple[float, float] | None:
        if not step.ends:
            return None
        wanted = root_of(step) * step.region.D / share
        fall = step.epoch_f - step.taken.point.f
        error = ROUNDING * EPS * wanted + by_spacing(step)
        return (wanted - fall, error) if step.clean and not exempt(step) else EXEMPT

    return (
        descends(f"a step lowers f by {names[0]}*|step|^2", first, by_spacing),
        descends(f"a step inside its ball lowers f by {names[1]}", second, by_spacing),
        TheoremInequality("an epoch stays within D of its start", travel),
        TheoremInequality(f"an epoch lowers f by sqrt(eps)*D/{share:g}", whole, since="epoch"),
        TheoremInequality(
            f"epochs so far <= 1 + {share:g}*(f(x0) - f)/(sqrt(eps)*D)", Epochs(share), since="run"
        ),
    )


class Epochs:
    """T − 1 ≤ share·(f(x0) − f)/(√ε·D), with the sum of D over the epochs if D varies."""

    def __init__(self, share: float) -> None:
        self._share = share
        self._sum = 0.0
        self._count = 0

    def __call__(self, step: CheckedStep) -> tuple[float, float] | None:
        if not step.ends:
            return None
        if not step.all_clean or exempt(step):
            return EXEMPT
        self._sum += root_of(step) * step.region.D / self._share
        fall = step.start_f - step.taken.point.f
        # The rounding error of a sum grows with its number of terms, one per epoch.
        self._count += 1
        return self._sum - fall, (ROUNDING + self._count) * EPS * self._sum + by_spacing(step)


def travel(step: CheckedStep) -> tuple[float, float]:
    """‖x_k − x_0‖ ≤ D in every epoch. Paper: eq:truncated."""
    x, D = step.taken.point.x, step.region.D
    distance = norm(np.subtract(x, step.region.centre))
    return distance - D, OF_DISTANCE * EPS * (D + norm(x))


def admissible(least: Callable[[CheckedStep], float]) -> TheoremInequality:
    """D is at least the value that the theorem requires."""

    def excess(step: CheckedStep) -> tuple[float, float]:
        wanted = least(step)
        return wanted * (1.0 - SLACK) - step.region.D, 0.0

    return TheoremInequality("D is as large as the theorem requires", excess)


def of_gradient_steps(with_margin: bool) -> tuple[TheoremInequality, ...]:
    """pgd and tgd. Paper: lemma:condition-GP, lemma:condition-TG, theorem:meta-complexity-GP."""

    def radius(step: CheckedStep) -> float:
        return step.root / 2.0 + (2.0 * step.region.d if with_margin else 0.0)

    def c1(region: EpochRegion, root: float) -> float:
        return first_constant(region) / 2.0

    def c2(region: EpochRegion, root: float) -> float:
        L1 = first_constant(region)
        return root * root / (2.0 * L1) if L1 > 0.0 else 0.0

    names = "L1/2", "eps/(2*L1)"
    return (*of_epochs(c1, c2, 4.0, inside=False, names=names), admissible(radius))


def of_accelerated_steps() -> tuple[TheoremInequality, ...]:
    """The inequalities of agp with its enlarged L2.

    Paper: eq:C1C2:AGP, theorem:meta-complexity-AGP.
    """

    def radius(step: CheckedStep) -> float:
        return 3.0 * step.region.d

    def c1(region: EpochRegion, root: float) -> float:
        assert region.L2 is not None
        return math.sqrt(region.L2 * root) / 24.0

    def c2(region: EpochRegion, root: float) -> float:
        assert region.L2 is not None
        return root * math.sqrt(root) / (10.0 * math.sqrt(region.L2))

    names = "sqrt(L2)*eps^(1/4)/24", "eps^(3/4)/(10*sqrt(L2))"
    return (*of_epochs(c1, c2, 32.0, inside=True, names=names), admissible(radius))


def of_certified_steps(in_set: bool = False) -> tuple[TheoremInequality, ...]:
    """D="auto": δ‖∇f‖ − L1δ²/2 for a step of length δ, and L1δ²/2 in a set."""
    stays = TheoremInequality("a step stays in the ball of its L1", travel)
    if in_set:
        return (of_half_constant("L1"), stays)

    def least(step: CheckedStep) -> float:
        delta, L1 = step.taken.length, first_constant(step.region)
        return delta * step.old.gnorm - 0.5 * L1 * delta * delta

    return (
        descends("a step lowers f by |step|*|gradient| - L1/2*|step|^2", least, by_spacing),
        stays,
    )


def of_a_fixed_step() -> tuple[TheoremInequality, ...]:
    """gd: (L/2)‖x_k − x_{k−1}‖²."""
    return (of_half_constant("L"),)


def of_half_constant(name: str) -> TheoremInequality:
    """(L/2)‖x_k − x_{k−1}‖², L the constant called `name`."""
    return descends(
        f"a step lowers f by {name}/2*|step|^2",
        lambda step: 0.5 * first_constant(step.region) * step.taken.length**2,
        by_spacing,
    )


def of_bregman_steps(p: float) -> tuple[TheoremInequality, ...]:
    """bpg: L·D_h(x_{k−1}, x_k)."""

    def least(step: CheckedStep) -> float:
        return first_constant(step.region) * bregman(p, step.old.x, step.taken.point.x)

    def inexact(step: CheckedStep) -> float:
        """The effect on f of e = ∇f(x) + L(∇h(x⁺) − ∇h(x)) ≠ 0: a loss of up to ‖e‖‖x⁺ − x‖.

        The errors are those of rounding x⁺ and of the terms of ∇f/L − ∇h(x).
        """
        L, r = first_constant(step.region), max(norm(step.old.x), norm(step.taken.point.x))
        of_h = L * (1.0 + (p - 1.0) * power(r, p - 2.0)) * r
        return OF_DISTANCE * EPS * (step.old.gnorm + of_h) * step.taken.length

    return (descends("a step lowers f by L*D_h(x, x+)", least, inexact),)


def bregman(p: float, x: Vector, y: Vector) -> float:
    """D_h(x, y) for h = ‖x‖^p/p + ‖x‖²/2, x and y (n,), p ≥ 2, within a few unit roundoffs.

    With r = ‖y‖, τ = (‖x‖² − r²)/r² and q = p/2, the distance for ‖x‖^p/p is r^p·(((1 + τ)^q − 1 −
    qτ)/p + ‖x − y‖²/2r²), both terms ≥ 0.
    """
    R, r = norm(x), norm(y)
    away = norm(x - y)
    plain = 0.5 * away * away
    if 2.0 * r < R:
        # No cancellation: the tangent at y is well below ‖x‖^p/p.
        power_part = power(R, p) / p - power(r, p) / p
        slope = power(r, p - 2.0) * float(y.dot(x - y)) if r > 0.0 else 0.0
        return power_part - slope + plain
    if r == 0.0:
        return plain
    s = (x - y) / r
    tau = float(s.dot(x / r + y / r))
    return power(r, p) * (_beyond_tangent(p / 2.0, tau) / p + 0.5 * (away / r) ** 2) + plain


def _beyond_tangent(q: float, tau: float) -> float:
    """(1 + τ)^q − 1 − qτ ≥ 0 for q ≥ 1 and τ ≥ −1, by its series near τ = 0."""
    if abs(tau) < NEAR_TANGENT:
        term = total = 0.5 * q * (q - 1.0) * tau * tau
        for k in range(2, SERIES_TERMS):
            term *= (q - k) * tau / (k + 1)
            total += term
        return max(total, 0.0)
    if tau <= -1.0:
        return q - 1.0
    return max(math.expm1(q * math.log1p(tau)) - q * tau, 0.0)


def of_line_search(sigma: float, alpha: float) -> tuple[TheoremInequality, ...]:
    """The first inequality of norm-armijo, and the distance from x0. Paper: cor:lsearch-1."""

    def radius(step: CheckedStep) -> tuple[float, float]:
        if not step.all_clean:
            return EXEMPT
        new = step.taken.point
        fall = max(step.start_f - new.f, 0.0)
        wanted = sigma * alpha * step.root
        gone = norm(np.subtract(new.x, step.x0))
        # The rounding errors of x at the steps add up along the way.
        error = ROUNDING * EPS * wanted * (norm(new.x) + gone)
        return wanted * gone - fall, error

    return (
        descends(
            "a step lowers f by sigma*alpha*sqrt(eps)*|step|",
            lambda step: sigma * alpha * step.root * step.taken.length,
        ),
        TheoremInequality("|x - x0| <= (f(x0) - f)/(sigma*alpha*sqrt(eps))", radius, since="run"),
    )


class CurvatureDescent:
    """The second inequality of norm-armijo: θσ(1 − σ)α²ε/(2·L1).

    L1 is raised to at least (1 − σ)α√ε/δ̄, which the paper obtains from L1 ≥ 1. Paper:
    cor:lsearch-1.
    """

    def __init__(
        self, constant: Callable[[CheckedStep], float], sigma: float, theta: float, alpha: float
    ) -> None:
        self._constant = constant
        self._sigma, self._theta, self._alpha = sigma, theta, alpha

    def __call__(self, step: CheckedStep) -> tuple[float, float] | None:
        root, D, alpha, sigma = step.root, step.region.D, self._alpha, self._sigma
        L1 = max(self._constant(step), (1.0 - sigma) * alpha * root / D)
        if not 0.0 < L1 < math.inf:
            return None
        share = self._theta * sigma * (1.0 - sigma) * alpha * alpha / 2.0
        wanted = share * root * root / L1
        return EXEMPT if exempt(step) else (wanted - step.decrease, ROUNDING * EPS * wanted)


class ProvedCurvature:
    """L1 over B(x_{k−1}, δ̄); with `over_last_two` the larger of that and L1 over B(x_{k−2}, δ̄)."""

    def __init__(self, prove: ProofSource, over_last_two: bool) -> None:
        self._prove = prove
        self._over_last_two = over_last_two
        self._before = 0.0

    def __call__(self, step: CheckedStep) -> float:
        L1 = self._prove(step.old.x, step.region.D).L1
        before, self._before = self._before, L1
        return max(L1, before) if self._over_last_two else L1


def by_curvature(
    constant: Callable[[CheckedStep], float] | None, sigma: float, theta: float, alpha: float
) -> TheoremInequality:
    """The second inequality, with `constant` for L1 over the step's ball; None: not applicable."""
    name = "a step lowers f by theta*sigma*(1-sigma)*alpha^2*eps/(2*L1)"
    if constant is None:
        return TheoremInequality(name, says_nothing, applies=False)
    return TheoremInequality(name, CurvatureDescent(constant, sigma, theta, alpha))


def by_ray_curvature(alpha: float, part: float) -> TheoremInequality:
    """The second inequality for a certified step, with the step's M in place of L1.

    The minimiser of s t + M t²/2, with s <= −α√ε, descends by s²/(2M) >= α²ε/(2M), a step that is
    shorter by a `part` of that; where M <= 0, or the end of the ray limits the step, the first
    inequality states more. Paper: cor:lsearch-1.
    """

    def excess(step: CheckedStep) -> tuple[float, float] | None:
        M, limited = step.taken.facts.get("curvature"), step.taken.facts.get("limited")
        if not isinstance(M, float) or limited or not 0.0 < M < math.inf:
            return None
        wanted = part * alpha * alpha * step.root * step.root / (2.0 * M)
        return EXEMPT if exempt(step) else (wanted - step.decrease, ROUNDING * EPS * wanted)

    shown = "" if f"{part:.3g}" == "1" else f"{part:.3g}*"
    return TheoremInequality(f"a step lowers f by {shown}alpha^2*eps/(2*M)", excess)


def says_nothing(step: CheckedStep) -> None:
    """The excess of an inequality that does not apply."""


def first_constant(region: EpochRegion) -> float:
    """L1 of a region with a constant."""
    assert region.L1 is not None
    return region.L1


NOTHING = TheoremInequality("a step lowers f", says_nothing, applies=False)
