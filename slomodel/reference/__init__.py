"""What every node means, in plain NumPy, and where a value that is not finite comes from."""

from slomodel.reference.tracing import NonFinite, first_nonfinite, read
from slomodel.reference.values import Array, evaluate, evaluate_all, meaning, positions

__all__ = [
    "Array",
    "NonFinite",
    "evaluate",
    "evaluate_all",
    "first_nonfinite",
    "meaning",
    "positions",
    "read",
]
