"""Proved bounds on the Lipschitz constants of the gradient and the Hessian over balls.

`pipeline` is the flow: split into parts, apply the rules, add, close, take the least.

    part, enclosure       what flows: a summand of f, or f, at a centre; bounds on its derivatives
    split                 an objective as a sum of parts
    rules/                the ways to bound a part, one principle a file
    refinements/          second looks at what rules return
    closure               Taylor's theorem: from an enclosure to both constants
    centre                derivatives at the centre, by graphs of `calculus`
    lipschitz, result     the constants and their reasons, as users see them
    arithmetic/           rounding of sums, of products, of matrices and of intervals
    norms/                norms of matrices, of cubic and of quartic forms
    ranges/               ranges of nodes and of derivatives over the ball
    structure/            what an objective is made of
    certificates/         proofs about a point: critical, unique, convex near it
    effort, stopping      how much work they may take, and interruption
    sampled, attained     lower estimates, for comparison

`docs/bounds.md` has the theorems and their proofs, one for each rule.
"""

from slomodel.bounds.certificates.point_certificate import PointCertificate
from slomodel.bounds.effort import EFFORTS, effort_of
from slomodel.bounds.formula import bound_formula
from slomodel.bounds.lipschitz import bounds, quick_bound
from slomodel.bounds.part import ObjectivePart
from slomodel.bounds.ranges.evaluation_errors import gradient_error, value_error
from slomodel.bounds.result import Bounds
from slomodel.bounds.sampled import sample
from slomodel.bounds.stopping import current_work, stopped_by

__all__ = [
    "EFFORTS",
    "Bounds",
    "ObjectivePart",
    "PointCertificate",
    "bound_formula",
    "bounds",
    "current_work",
    "effort_of",
    "gradient_error",
    "quick_bound",
    "sample",
    "stopped_by",
    "value_error",
]
