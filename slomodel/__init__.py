"""slomodel: write an objective; get kernels, proved local Lipschitz constants and solvers."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from slomodel.bounds import Bounds
    from slomodel.errors import (
        BackendWarning,
        DomainError,
        MissingRule,
        ModelSyntaxError,
        ModelWarning,
        NonsmoothWarning,
        ShapeError,
        SlomodelError,
        TargetLimit,
    )
    from slomodel.front.source import example
    from slomodel.front.sympy_expressions.recurrences import scan
    from slomodel.model import Model, compile
    from slomodel.model.blocks import minibatches, over_blocks
    from slomodel.model.sweep import sweep
    from slomodel.solve import Solution, Status, load_solution
    from slomodel.solve.scipy_method import scipy_method

__version__ = "0.2.0"

__all__ = [
    "BackendWarning",
    "Bounds",
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
    "example",
    "load_solution",
    "minibatches",
    "over_blocks",
    "scan",
    "scipy_method",
    "sweep",
]

_HOMES = {
    "slomodel.bounds": ("Bounds",),
    "slomodel.front.source": ("example",),
    "slomodel.front.sympy_expressions.recurrences": ("scan",),
    "slomodel.model": ("Model", "compile"),
    "slomodel.model.blocks": ("minibatches", "over_blocks"),
    "slomodel.model.sweep": ("sweep",),
    "slomodel.solve": ("Solution", "Status", "load_solution", "scipy_method"),
}
_MODULES = ("errors", "plots", "solve")

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Load public names on first use, so that the command line starts at once."""
        if name in _MODULES:
            return import_module(f"slomodel.{name}")
        if name not in __all__:
            raise AttributeError(f"module 'slomodel' has no attribute {name!r}")
        homes = (home for home, names in _HOMES.items() if name in names)
        value = getattr(import_module(next(homes, "slomodel.errors")), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__, *_MODULES})
