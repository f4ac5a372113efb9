"""Proved bounds on the Lipschitz constants of the gradient and the Hessian over balls."""

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
