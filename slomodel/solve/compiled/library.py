"""The C text of the compiled loops, with the thresholds of the methods, and its library."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

from slomodel.codegen.native import compiler
from slomodel.errors import TargetLimit
from slomodel.solve.compiled.loop import COPY, LAST_POINT, STRUCT
from slomodel.solve.directions import levenberg_marquardt as least_squares
from slomodel.solve.directions import newton, quasi_newton, variable_projection
from slomodel.solve.line_search import arc, interpolating
from slomodel.solve.methods import auto, ball
from slomodel.solve.quadratics import limited_memory, minimize
from slomodel.solve.stagnation import pole, resolution, stagnation, unbounded

_PARTS = (
    *("vectors.c", "search.c", "hessian.c", "quasi_newton.c", "least_squares.c"),
    *("compact.c", "boxes.c", "beyond.c"),
)

LEVEL = "-O1"
"""A fifth of the time to compile; long sums are written with vectors."""

# Sweeps of rotations, of which a few bring columns to orthogonality: they converge quadratically.
MOST_SWEEPS = 30

_THRESHOLDS: dict[str, float] = {
    "ROUNDING": resolution.ROUNDING,
    "SHORTEST": interpolating.SHORTEN[0],
    "LONGEST": interpolating.SHORTEN[1],
    "STEEP": interpolating.STEEP,
    "LENGTHEN_LEAST": interpolating.LENGTHEN[0],
    "LENGTHEN_MOST": interpolating.LENGTHEN[1],
    "EXTENSIONS": interpolating.EXTENSIONS,
    "MOST_TRIALS": interpolating.MOST_TRIALS,
    "INVISIBLE": interpolating.INVISIBLE,
    "LOGARITHMIC_MOVE": auto.LOGARITHMIC_MOVE,
    "CURVED": auto.CURVED,
    "VANISHING": auto.VANISHING,
    "VANISHED": auto.VANISHED,
    "ABSOLUTE": auto.ABSOLUTE,
    "MOVED": auto.MOVED,
    "GROWTH": ball.GROWTH,
    "SHORT": stagnation.SHORT,
    "STEEP_FALL": stagnation.STEEP,
    "LOWERED": stagnation.LOWERED,
    "LAST_POINT": LAST_POINT,
    "COPY": COPY,
    "FLOOR_STEPS": stagnation.FLOOR_STEPS,
    "REACHED": quasi_newton.REACHED,
    "SOON": quasi_newton.SOON,
    "FIRST_PROBE": unbounded.FIRST_PROBE,
    "ENOUGH_DOUBLINGS": pole.ENOUGH_DOUBLINGS,
    "MOST_SWEEPS": MOST_SWEEPS,
    "POOR": least_squares.POOR,
    "GOOD": least_squares.GOOD,
    "SHORTEN": least_squares.SHORTEN,
    "LENGTHEN": least_squares.LENGTHEN,
    "CLOSE": least_squares.CLOSE,
    "FORGET": least_squares.FORGET,
    "FAR": least_squares.FAR,
    "SLOW": least_squares.SLOW,
    "PATIENCE": least_squares.PATIENCE,
    "SMALL": least_squares.SMALL,
    "TINY": least_squares.TINY,
    "CORRECTIONS": least_squares.CORRECTIONS,
    "BENDS": auto.BENDS,
    "SMALLEST": newton.SMALLEST,
    "KEPT_SLOPE": variable_projection.KEPT_SLOPE,
    "LARGE_DROP": variable_projection.LARGE_DROP,
    "SAME": variable_projection.SAME,
    "DISTINCT": variable_projection.DISTINCT,
    "LEAST_FRACTION": arc.LEAST_FRACTION,
    "LENGTHENINGS": arc.LENGTHENINGS,
    "LENGTHEN_ARC": arc.LENGTHEN,
    "SUFFICIENT": minimize.SUFFICIENT,
    "RESOLVED": limited_memory.RESOLVED,
}


@cache
def text() -> str:
    """The C text of all loops."""
    first, *rest = ((Path(__file__).parent / name).read_text(encoding="utf-8") for name in _PARTS)
    constants = [f"#define {name} {value!r}\n" for name, value in _THRESHOLDS.items()]
    constants.append(f"#define FACTORS {', '.join(map(repr, minimize.FACTORS))}\n")
    return "".join((first, *constants, STRUCT, *rest))


@cache
def begin() -> None:
    """Start to compile the loops, where that has not been done before."""
    compiler.begin(text(), single=False, level=LEVEL)


@cache
def library() -> ctypes.CDLL | None:
    """The compiled loops; None where there is no compiler that works."""
    try:
        return compiler.library(text(), single=False, level=LEVEL)
    except TargetLimit:
        return None
