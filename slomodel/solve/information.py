"""The information matrix at a point, and the directions that it leaves undetermined."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from slomodel.errors import Diagnostic, DomainError
from slomodel.solve.norms import Vector

Mask = NDArray[np.bool_]

_EPS = float(np.finfo(np.float64).eps)
_ROUNDING = 1000.0
"""Units of n·eps up to which an eigenvalue of a scaled Hessian may be rounding error."""
_ESTIMABLE = 1e-6
"""Relative change along undetermined directions up to which a quantity counts as determined."""
_MOST_TERMS = 5


@final
@dataclass(frozen=True, slots=True, eq=False)
class Information:
    """A positive semidefinite matrix (m, m), decomposed after scaling its diagonal to one.

    In coordinates z = `scales`·u the matrix is `vectors` diag(`values`) `vectors`ᵀ, and `flat`
    marks its undetermined directions. `held` marks the elements of u at bounds: they are held
    there, and have no part in the matrix.
    """

    scales: Vector
    vectors: Vector
    values: Vector
    flat: Mask
    held: Mask

    @property
    def rank(self) -> int:
        """The number of directions that are determined."""
        return int((~self.flat).sum())

    def inverse_root(self) -> Vector:
        """R (m, rank) with R Rᵀ the inverse on the determined directions, 0 at bounds."""
        keep = ~self.flat
        root = np.zeros((self.held.size, self.rank))
        scaled = self.vectors[:, keep] / np.sqrt(self.values[keep])
        root[~self.held] = scaled / self.scales[:, None]
        return root

    def undetermined(self) -> Vector:
        """Directions (m, k) in u that span the undetermined ones, with largest element 1.

        They are in reduced echelon form, so that each names few elements where that is possible.
        """
        directions = np.zeros((self.held.size, self.held.size - int(self.held.sum()) - self.rank))
        directions[~self.held] = self.vectors[:, self.flat] / self.scales[:, None]
        return _echelon(directions.T).T

    def determines(self, jacobian: Vector) -> Mask:
        """Whether each row (k, m) of a Jacobian has no part along undetermined directions."""
        free = jacobian[:, ~self.held] / self.scales
        along = np.linalg.norm(free @ self.vectors[:, self.flat], axis=1)
        return np.asarray(along <= _ESTIMABLE * np.linalg.norm(free, axis=1), dtype=np.bool_)

    def newton_decrement(self, gradient: Vector) -> float:
        """√(gᵀ H⁻¹ g) of a gradient (m,), on the determined directions."""
        return float(np.linalg.norm(self.inverse_root().T @ gradient))


def from_hessian(
    hessian: Vector, gradient: Vector, point: Vector, held: Mask, factor: float
) -> Information:
    """The information of a Hessian H (m, m) at a point (m,) of small gradient.

    Eigenvalues that rounding, or the gradient that is left, can account for count as 0. `factor`
    is that of the covariance, `factor`·H⁻¹. Raises DomainError if there is a direction of negative
    curvature, or if H overflows.
    """
    free = ~held
    matrix = hessian[np.ix_(free, free)]
    scales = _scales(np.sqrt(np.abs(np.diag(matrix))), np.sqrt(np.abs(matrix).max(initial=0.0)))
    values, vectors = np.linalg.eigh(_finite(matrix / np.outer(scales, scales)))
    size = max(float(np.linalg.norm(scales * point[free])), float(np.sqrt(factor)))
    left = float(np.linalg.norm(gradient[free] / scales)) / size if size else 0.0
    tolerance = _ROUNDING * free.sum() * _EPS + 10.0 * left
    if values.size and values[0] < -tolerance:
        raise _saddle(values[0])
    flat = values <= tolerance
    return Information(scales, vectors, values, flat, held)


def from_factor(factor: Vector, held: Mask) -> Information:
    """The information AᵀA of a factor A (N, m), without forming the product."""
    free = ~held
    columns = factor[:, free]
    lengths = np.linalg.norm(columns, axis=0)
    scales = _scales(lengths, lengths.max(initial=0.0))
    _, singular, rows = np.linalg.svd(_finite(columns / scales), full_matrices=True)
    values = np.zeros(scales.size)
    values[: singular.size] = singular**2
    largest = float(singular.max(initial=0.0))
    flat = np.sqrt(values) <= 10.0 * max(columns.shape) * _EPS * largest
    return Information(scales, rows.T, values, flat, held)


def described(
    directions: Vector, element: Callable[[int], str], format_number: str = ".3g"
) -> tuple[str, ...]:
    """Each direction (m, k) as a sum of elements, `u[0] - 0.5 v[1]`, the largest first."""
    return tuple(_described(column, element, format_number) for column in directions.T)


def _described(column: Vector, element: Callable[[int], str], format_number: str) -> str:
    order = np.argsort(-np.abs(column), kind="stable")
    large = [k for k in order if abs(column[k]) > 1e-3]
    # In the order of the variables where all are shown.
    shown = sorted(large) if len(large) <= _MOST_TERMS else large[:_MOST_TERMS]
    text = ""
    for k in shown:
        weight = format(abs(float(column[k])), format_number)
        sign = "-" if column[k] < 0.0 else "+"
        term = element(int(k)) if weight == "1" else f"{weight} {element(int(k))}"
        text += f" {sign} {term}" if text else term if sign == "+" else f"-{term}"
    return text + (f" + … ({len(large)} elements)" if len(large) > len(shown) else "")


def _scales(own: Vector, largest: float) -> Vector:
    """The scales of coordinates; those of directions without curvature are 1."""
    return np.where(own > _EPS * largest, own, 1.0)


def _echelon(rows: Vector) -> Vector:
    """The reduced echelon form of k independent rows, pivoting on the largest element."""
    rows = rows.copy()
    for k in range(len(rows)):
        rest = np.abs(rows[k:])
        row, column = np.unravel_index(int(rest.argmax()), rest.shape)
        rows[[k, k + int(row)]] = rows[[k + int(row), k]]
        rows[k] /= rows[k, column]
        others = np.arange(len(rows)) != k
        rows[others] -= np.outer(rows[others, column], rows[k])
    largest = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    rows = np.where(np.abs(rows) < 1e-9 * largest, 0.0, rows)
    return rows / np.where(largest > 0.0, largest, 1.0)


def _finite(matrix: Vector) -> Vector:
    """A matrix of second derivatives (m, m) or its factor. Raises DomainError if it overflows."""
    if np.isfinite(matrix).all():
        return matrix
    message = "second derivatives overflow at this point, and standard errors are not defined"
    remedy = "the message of the run says why it ended here; see also `model.trace_nonfinite(x)`"
    raise DomainError(Diagnostic("E607", message, help=remedy))


def _saddle(value: float) -> DomainError:
    message = (
        "the objective curves downwards at this point (a scaled eigenvalue of its Hessian is "
        f"{value:.3g}): it is not a minimum, and standard errors are not defined"
    )
    remedy = "solve with second_order=True, or from several starts"
    return DomainError(Diagnostic("E607", message, help=remedy))
