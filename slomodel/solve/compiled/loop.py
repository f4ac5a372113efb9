"""The state of a run as the compiled loops see it: a C struct."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slomodel.solve.norms import Vector

MOST_ROTATED = 16
"""Largest n for which rotations of all pairs of unknowns take no longer than LAPACK."""

UNCHANGED, LAST_POINT, COPY = range(3)
"""The best point at the resolution of f: as before the steps, the last one, or a copy."""

_NUMBERS = (
    # The point, the record of its run, and what ends a block of steps.
    *("f", "gnorm", "sign", "eps", "clock", "most_seconds", "tolerance", "examined"),
    # The search, and the resolution of f.
    *("alpha", "sigma", "reach", "delta", "measured", "lowest", "steepest", "anchor"),
    *("best_f", "best_gnorm"),
    # Gains, and the stop test.
    *("first_f", "gain_f", "gain_gnorm", "gtol", "test_first", "test_steepest"),
    # The direction.
    *("gamma", "own_gamma", "due", "until", "interval", "work_began", "start_gnorm", "decrease"),
    *("farthest", "work_computed"),
    # Least squares.
    *("limit", "length", "last_f", "predicted", "in_range", "square", "before"),
    # A model over a box, and its turn among others.
    *("first_length", "curvature", "theta", "accuracy", "confirm_below"),
    *("of_step", "operations", "others_operations", "unit"),
    *("turn_began", "turn_ends", "middle_work", "middle_f"),
)
_COUNTS = (
    *(
        "n",
        "nfev",
        "njev",
        "nhev",
        "max_nfev",
        "steps",
        "most_steps",
        "was_left",
        "meets_test",
        "epoch",
    ),
    *(
        "grows",
        "tests",
        "accepts_first",
        "computes_both",
        "idle",
        "idle_steps",
        "in_a_row",
        "next_probe",
    ),
    *("at_floor", "by_rounding", "best_is", "gave_up"),
    *("watches_pole", "pole_levels", "pole_base"),
    *("can_compute", "has_put_off", "computed", "confirmed"),
    *("first", "count", "memory", "pair_rows", "learned"),
    *("ways_count", "bends"),
    *("m", "affine_count", "has_columns", "moves", "was_good", "is_whole", "slow"),
    *("by_hessian", "most_on_faces", "has_middle", "multiplied", "has_factors", "has_face"),
)
_ARRAYS = (
    *("points", "v", "s", "y", "w", "coefficients", "rows", "logarithmic", "curvatures"),
    *("S", "Y", "D", "Rinv", "H", "own_H", "diagonal", "best"),
    *("jacobians", "columns", "columns_x", "matrix", "right", "residual_point", "residual_out"),
    *("root", "lengths", "old_lengths", "units", "first_change", "change", "small"),
    *("singular", "along", "V", "s_all", "b_all", "V_all"),
    *("hessian", "scaled", "eigenvectors", "inverse"),
    *("low", "high", "model", "factor", "end", "r", "d", "Bd", "trial"),
    *("SS", "SY", "YY", "free_SS", "free_SY", "free_YY", "taken", "moves_now", "moved_before"),
    *("inner_matrix", "factors", "c"),
    *("ways", "limits"),
)
_POSITIONS = ("affine", "others", "kept", "free", "changed", "order", "order_of_face")
_TABLES = ("value_table", "gradient_table", "residual_table", "product_table")
_FUNCTIONS = ("value", "gradient", "residual", "product")


class LoopState(ctypes.Structure):
    """Numbers, counts, addresses of arrays (0: none) and kernels; the C struct is `STRUCT`."""

    _fields_ = (
        *((name, ctypes.c_double) for name in _NUMBERS),
        *((name, ctypes.c_long) for name in _COUNTS),
        *((name, ctypes.c_void_p) for name in (*_ARRAYS, *_POSITIONS, *_TABLES, *_FUNCTIONS)),
    )


def address(array: NDArray[Any]) -> int:
    """The address of the elements of an array, which has to live as long as it is used."""
    try:
        # A third of the time of the array's own description, but not for empty or fixed arrays.
        return ctypes.addressof(ctypes.c_char.from_buffer(array.data))
    except (TypeError, ValueError, BufferError):
        return int(array.__array_interface__["data"][0])


def allocate(loop: LoopState, sizes: Mapping[str, int]) -> Vector:
    """An array of zeros with room for the arrays of a loop by name, whose addresses are written."""
    held = np.zeros(sum(sizes.values()))
    at = address(held)
    for name, size in sizes.items():
        setattr(loop, name, at)
        at += size * held.itemsize
    return held


class HessianArrays:
    """A Hessian (n, n) and its inverse, made positive, and the estimate that begins with that.

    `diagonal` (n,) is that of the Hessian with which the estimate began.
    """

    def __init__(self, loop: LoopState) -> None:
        n = int(loop.n)
        names = ("hessian", "inverse", "own_H", "scaled", "eigenvectors")
        held = allocate(loop, {**dict.fromkeys(names, n * n), "diagonal": n})
        self.hessian, self.inverse, self.estimate = held[: 3 * n * n].reshape(3, n, n)
        self.diagonal = held[5 * n * n :]


STRUCT = "\n".join(
    (
        "typedef struct {",
        f"    double {', '.join(_NUMBERS)};",
        f"    long {', '.join(_COUNTS)};",
        f"    double *{', *'.join(_ARRAYS)};",
        f"    long *{', *'.join(_POSITIONS)};",
        f"    void **{', **'.join(_TABLES)};",
        *(f"    double (*{name})(void **);" for name in _FUNCTIONS),
        "} LoopState;",
        "",
    )
)
