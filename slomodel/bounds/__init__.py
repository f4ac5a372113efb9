"""Proved bounds on the Lipschitz constants of the gradient and the Hessian over balls.

`pipeline` is the flow: split into parts, apply the rules, add, close, take the least. Its values
are `setting` (an objective at a centre) and `enclosure` (bounds on derivatives); its steps are
`split`, `rules/table`, `close`; `lipschitz` makes the result that users see. Below it stand

    arithmetic/     what rounding may do: `rounding` (scalars, sums), `bounded` (matrix products)
    norms/          `spectral`, `cubic`, `quartic`: the largest value of a form on the unit sphere
    structure/      what an objective is made of
    ranges/         values and derivatives of nodes over a ball
    refinements/    second looks at an enclosure
    rules/          one principle a file: `separable_sums` (logistic regression and its like),
                    `layered_networks`, `log_sum_exp`, `majorant_series` (polynomials), …
    centre          derivatives at the centre
    effort          how much work they may take

`docs/bounds.md` has the theorems and their proofs, one for each rule.
"""

from slomodel.bounds.certificates.point_certificate import PointCertificate
from slomodel.bounds.effort import EFFORTS, effort_of
from slomodel.bounds.formula import bound_formula
from slomodel.bounds.lipschitz import bounds, quick_bound
from slomodel.bounds.ranges.evaluation_errors import gradient_error, value_error
from slomodel.bounds.result import Bounds
from slomodel.bounds.sampled import sample
from slomodel.bounds.setting import Setting
from slomodel.bounds.stopping import current_work, stopped_by

__all__ = [
    "EFFORTS",
    "Bounds",
    "PointCertificate",
    "Setting",
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
