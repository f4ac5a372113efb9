"""slomodel: write an objective; get fast kernels, and a solver that needs no global constant."""

from slomodel.errors import (
    DomainError,
    MissingRule,
    ModelSyntaxError,
    ModelWarning,
    NonsmoothWarning,
    ShapeError,
    SlomodelError,
    TargetLimit,
)
from slomodel.model import Model, compile
from slomodel.solve import Solution, Status, load_solution, scipy_method

__version__ = "0.1.0"

__all__ = [
    "DomainError",
    "MissingRule",
    "Model",
    "ModelSyntaxError",
    "ModelWarning",
    "NonsmoothWarning",
    "ShapeError",
    "SlomodelError",
    "Solution",
    "Status",
    "TargetLimit",
    "__version__",
    "compile",
    "load_solution",
    "scipy_method",
]
