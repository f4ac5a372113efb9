"""The methods by name, with the options and the constructor of each."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from slomodel.errors import Diagnostic, DomainError
from slomodel.solve.constants.choice import lipschitz_source
from slomodel.solve.constants.proved import ProofSource
from slomodel.solve.constants.source import LipschitzSource
from slomodel.solve.directions.table import DIRECTIONS, Rule
from slomodel.solve.facts import NO_FACTS, ObjectiveFacts
from slomodel.solve.hints import method_hint
from slomodel.solve.line_search.certified import SIGMA
from slomodel.solve.line_search.exact import LARGEST_DEGREE
from slomodel.solve.line_search.initial_step import INITIAL_STEPS
from slomodel.solve.methods.adgd import adgd
from slomodel.solve.methods.agp import agp, agp_source
from slomodel.solve.methods.auto import DESCENT, REACH, chosen, chosen_in_set, is_quadratic
from slomodel.solve.methods.ball import is_auto
from slomodel.solve.methods.bpg import bpg, bpg_source
from slomodel.solve.methods.certified_steps import certified
from slomodel.solve.methods.context import MethodContext
from slomodel.solve.methods.gd import gd, gd_source
from slomodel.solve.methods.ngd import ngd
from slomodel.solve.methods.norm_armijo import NormArmijo
from slomodel.solve.methods.pgd import pgd
from slomodel.solve.methods.projected_search import ProjectedSearch
from slomodel.solve.methods.std_armijo import std_armijo
from slomodel.solve.methods.tgd import tgd
from slomodel.solve.norms import LARGEST, Vector, norm
from slomodel.solve.options import choice, listed, number
from slomodel.solve.quadratics.table import MODELS
from slomodel.solve.run_options import check_names
from slomodel.solve.sets.convex_set import Set
from slomodel.solve.subroutine import Subroutine

Options = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Method:
    """A method's options, its constructor, and the source of its constants.

    `what` describes the method in a few words, `needs` what it requires. `no_sets` is why its
    iterates cannot be confined to a set; empty if they can.
    """

    options: tuple[str, ...]
    build: Callable[[Options, MethodContext], Subroutine]
    what: str
    needs: str = "nothing"
    source: Callable[[Options, ProofSource | None, ObjectiveFacts], LipschitzSource] | None = None
    no_sets: str = ""


def norm_armijo(given: Options, context: MethodContext) -> NormArmijo | ProjectedSearch:
    """The paper's method: along −g unless another direction is requested."""
    if context.within is not None:
        return search_in_set(given, context, context.within, "gradient")
    return search_along_lines(given, context, "gradient")


def auto(given: Options, context: MethodContext) -> NormArmijo | ProjectedSearch:
    """The paper's method along a direction that suits the objective (auto.py)."""
    if context.within is not None:
        return auto_in_set(given, context, context.within)
    direction, reason = chosen(context.facts, len(context.x0))
    own: dict[str, Any] = {"logarithmic": context.facts.logarithmic}
    own["chosen_for"] = "" if "direction" in given else reason
    predicts = DIRECTIONS[direction_of(given, context, direction)].predicts
    if predicts and not {"line_search", "theta"} & set(given):
        own |= interpolating(given, context)
    return search_along_lines(given, context, direction, REACH, **own)


def auto_in_set(given: Options, context: MethodContext, within: Set) -> ProjectedSearch:
    """`auto` for variables in a closed set."""
    facts = context.facts
    direction, reason = chosen_in_set(facts, len(context.x0), within)
    method = search_in_set(given, context, within, direction, REACH)
    if "delta_bar" not in given:
        tests = context.own_test and facts.curvature and method.direction in MODELS
        method = replace(method, grows=True, gtol=context.gtol if tests else None)
    return method if "direction" in given else replace(method, chosen_for=reason)


def interpolating(given: Options, context: MethodContext) -> dict[str, Any]:
    """The line search of `auto` for directions with a model of f, in no units of f or x.

    δ̄ grows, and starts from ‖x0‖ alone unless that is 0.
    """
    own: dict[str, Any] = {"interpolates": True, "grows": "delta_bar" not in given}
    if "delta_bar" not in given:
        own["delta_bar"] = min(REACH * (norm(context.x0) or 1.0), LARGEST)
    if "sigma" not in given:
        own["sigma"] = DESCENT
    return own | {"gtol": context.gtol if context.own_test else None}


def farthest_move(context: MethodContext, reach: float) -> float:
    """δ̄ = reach·max(1, ‖x0‖), fixed for the run as the theorem requires; finite always."""
    return min(reach * max(1.0, norm(context.x0)), LARGEST)


def direction_of(given: Options, context: MethodContext, default: str) -> str:
    """The direction that the options name, or the default; it suits the objective."""
    direction = choice("direction", given.get("direction", default), DIRECTIONS)
    check_suits(direction, DIRECTIONS[direction], context)
    return direction


def search_along_lines(
    given: Options, context: MethodContext, direction: str, reach: float = 1.0, **own: Any
) -> NormArmijo:
    """NormArmijo with its defaults, or those in `own`; `direction` is the default direction."""
    direction = direction_of(given, context, direction)
    rule = DIRECTIONS[direction]
    search = choice("line_search", given.get("line_search", "armijo"), LINE_SEARCHES)
    proves = search == "certified"
    most = SIGMA if proves else 1.0
    farthest = farthest_move(context, reach)
    values = {
        "delta_bar": number("delta_bar", given.get("delta_bar", farthest), 0.0),
        "theta": number("theta", given.get("theta", 0.5), 0.0, 1.0),
        "sigma": number("sigma", given.get("sigma", 0.3), 0.0, most, closed=proves),
        "alpha": number("alpha", given.get("alpha", rule.alpha), 0.0, 1.0),
        "direction": direction,
        "initial_step": choice(
            "initial_step", given.get("initial_step", rule.initial_step), INITIAL_STEPS
        ),
        "degree": degree_for_exact(context.facts) if search == "exact" else None,
        "prove": context.proofs,
        "certified": proves,
    }
    return NormArmijo(**{**values, **own})


def search_in_set(
    given: Options, context: MethodContext, within: Set, direction: str, reach: float = 1.0
) -> ProjectedSearch:
    """ProjectedSearch with its defaults; DomainError for a direction without a model."""
    direction, farthest = direction_of(given, context, direction), farthest_move(context, reach)
    known = ("gradient", *MODELS)
    if direction not in known:
        message = (
            f"direction={direction!r} cannot be confined to a set; those that can: {listed(known)}"
        )
        raise DomainError(Diagnostic("E604", message, help="use direction='lbfgs'"))
    if "newton" in direction.replace("gauss-newton", "") and not context.facts.curvature:
        message = f"direction={direction!r} would leave the set to difference gradients"
        remedy = "give Hessian products, or use direction='lbfgs'"
        raise DomainError(Diagnostic("E604", message, help=remedy))
    rule = DIRECTIONS[direction]
    return ProjectedSearch(
        within=within,
        delta_bar=number("delta_bar", given.get("delta_bar", farthest), 0.0),
        theta=number("theta", given.get("theta", 0.5), 0.0, 1.0),
        sigma=number("sigma", given.get("sigma", 1e-4 if direction in MODELS else 0.3), 0.0, 1.0),
        alpha=number("alpha", given.get("alpha", rule.alpha), 0.0, 1.0),
        direction=direction,
        initial_step=choice("initial_step", given.get("initial_step", "bb"), INITIAL_STEPS),
        is_quadratic=is_quadratic(context.facts),
        first_step=min(max(1.0, norm(context.x0)) / math.sqrt(max(1, len(context.x0))), farthest),
    )


def check_suits(direction: str, rule: Rule, context: MethodContext) -> None:
    """Raise DomainError if the objective lacks what the direction needs, or n is too large."""
    n = len(context.x0)
    if rule.squares and not context.facts.squares:
        message = f"direction={direction!r} needs a sum of squares that the compiler sees"
        remedy = "write the objective as sumsq(…) or sum((…)^2 …), or use direction='newton'"
    elif rule.most is not None and n > rule.most:
        message = f"direction={direction!r} is for at most {rule.most} unknowns, and these are {n}"
        remedy = "use direction='newton-cg' or 'lbfgs'"
    else:
        return
    raise DomainError(Diagnostic("E604", message, help=remedy))


def degree_for_exact(facts: ObjectiveFacts) -> int:
    """The degree of the polynomial; DomainError if f is not one, or the degree is too high."""
    if facts.degree is not None and facts.degree <= LARGEST_DEGREE:
        return facts.degree
    known = "is not seen to be one" if facts.degree is None else f"has degree {facts.degree}"
    message = (
        f"line_search='exact' is for polynomials of degree up to {LARGEST_DEGREE}, "
        f"and the objective {known}"
    )
    raise DomainError(Diagnostic("E604", message, help="use line_search='armijo'"))


_LINE_SEARCH = (
    "delta_bar",
    "theta",
    "sigma",
    "alpha",
    "direction",
    "initial_step",
    "line_search",
)

LINE_SEARCHES = ("armijo", "exact", "certified")

_BALL = ("D", "d", "lipschitz", "samples", "safety")


def of_a_ball(given: Options, prove: ProofSource | None, facts: ObjectiveFacts) -> LipschitzSource:
    """The source of the constants for the option `lipschitz`."""
    return lipschitz_source(given, prove)


def of_both(given: Options, prove: ProofSource | None, facts: ObjectiveFacts) -> LipschitzSource:
    """The source of L1 and L2 for agp."""
    return agp_source(given, prove)


def of_a_step(given: Options, prove: ProofSource | None, facts: ObjectiveFacts) -> LipschitzSource:
    """The source of the constant for a fixed step."""
    return gd_source(given, prove)


METHODS = {
    "auto": Method(
        _LINE_SEARCH,
        auto,
        "norm-armijo along a direction chosen from degree, squares, kinks and n",
    ),
    "norm-armijo": Method(_LINE_SEARCH, norm_armijo, "Armijo search over steps of bounded length"),
    "std-armijo": Method(
        ("delta_bar", "theta", "sigma"),
        std_armijo,
        "Armijo search over multiples of the gradient",
        no_sets="it searches along a line that leaves the set; norm-armijo does not",
    ),
    "pgd": Method(
        _BALL, pgd, "gradient steps projected on balls", "L1 over B(x, D)", source=of_a_ball
    ),
    "tgd": Method(
        _BALL, tgd, "gradient steps cut to length d", "L1 over B(x, D)", source=of_a_ball
    ),
    "agp": Method(
        ("D", "lift", "lipschitz", "samples", "safety"),
        agp,
        "accelerated gradient projection, until proven guilty",
        "L1 and L2 over B(x, 3D)",
        source=of_both,
        no_sets="it extrapolates, and its steps of negative curvature go both ways",
    ),
    "gd": Method(
        ("L", "D", "lipschitz", "samples", "safety"),
        gd,
        "gradient steps 1/L",
        "L, or L1 over B(x0, D)",
        source=of_a_step,
    ),
    "ngd": Method(
        ("d",),
        ngd,
        "steps of length d along the gradient",
        no_sets="a step of given length may be impossible in every direction",
    ),
    "adgd": Method(
        ("lam0",),
        adgd,
        "gradient steps by the change of the gradient",
        no_sets="its step lengths are proved for the whole space only",
    ),
    "bpg": Method(
        ("L", "p"),
        bpg,
        "Bregman steps with the kernel |x|^p/p + |x|^2/2",
        "L: by bounds for a polynomial",
        source=bpg_source,
        no_sets="its subproblem has a closed form in the whole space only",
    ),
}


def method_of(
    name: str,
    options: Options,
    x0: Vector,
    gtol: float,
    proofs: ProofSource | None = None,
    facts: ObjectiveFacts = NO_FACTS,
    within: Set | None = None,
    own_test: bool = False,
) -> tuple[Subroutine, LipschitzSource | None]:
    """The method called `name` for a run from x0 (n,) in a set, and the source of its constants.

    Options that are None count as not given. `own_test`: the method may test its points itself.
    Errors list the available names.
    """
    method = METHODS[method_name(name)]
    check_names(name, options, method.options)
    given = {option: value for option, value in options.items() if value is not None}
    if within is not None:
        check_set(name, method, within, given)
    source = None if method.source is None else method.source(given, proofs, facts)
    context = MethodContext(x0, gtol, source, proofs, facts, within, own_test)
    if source is not None and "d" in method.options and is_auto(given):
        return certified(name, context, "d" in given), source.for_every_step
    return method.build(given, context), source


def method_name(name: object) -> str:
    """The name of a method. Raises DomainError for anything else, such as a start."""
    hint = method_hint(name) if isinstance(name, str) else "a start is given by name: x0=…"
    return choice("method", name, METHODS, hint)


def uses_proofs(name: str, options: Options) -> bool:
    """Whether a run may bound the objective's constants over balls. Raises DomainError."""
    return METHODS[method_name(name)].source is not None or bool(
        options.get("verify") or options.get("second_order")
    )


def check_set(name: str, method: Method, within: Set, given: Options) -> None:
    """Raise DomainError if the method, or an option of it, cannot confine its iterates to a set."""
    reason = method.no_sets
    if not reason and not within.convex and name in ("pgd", "tgd", "gd"):
        reason = "its steps are projections on convex sets, and a sphere is not convex"
    search = given.get("line_search")
    if not reason and search in ("exact", "certified"):
        reason = f"line_search={search!r} follows a line, which may leave the set"
    if reason:
        remedy = "use method='auto', 'norm-armijo' or 'pgd'"
        raise DomainError(
            Diagnostic("E604", f"{name} cannot be confined to a set: {reason}", help=remedy)
        )
