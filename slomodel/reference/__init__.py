"""The value of every node in plain NumPy, and the origin of values that are not finite."""

from slomodel.reference.tracing import NonFinite, first_nonfinite, inside_loop, read
from slomodel.reference.values import Array, aligned, evaluate, evaluate_all, meaning, positions

__all__ = [
    "Array",
    "NonFinite",
    "aligned",
    "evaluate",
    "evaluate_all",
    "first_nonfinite",
    "inside_loop",
    "meaning",
    "positions",
    "read",
]
