"""The statements that are proved about a point x, in numbers and in words."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from slomodel.bounds.result import shown, shown_below
from slomodel.html import paragraph

Vector = NDArray[np.float64]
Number = TypeVar("Number", np.float64, np.bool_)
Kind = Literal["minimum", "maximum", "saddle", "unknown"]
_WORDS: Mapping[Kind, str] = {
    "minimum": "It is a strict local minimum",
    "maximum": "It is a strict local maximum",
    "saddle": "It is a saddle point",
    "unknown": "Whether it is a minimum is not proved",
}
_MOST_LISTED = 12
"""Largest number of error bars listed one by one."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PointCertificate:
    """Proofs about a point x (n,) of a model, valid in floating point too.

    `exists`: there is a critical point x* with |x* - x| <= `error` (n,) elementwise, the only one
    with |x* - x| <= `box`, and the only one within the distance `unique_within`; otherwise `reason`
    says why there is no proof, and these are infinite or 0. `kind` is that of x*, from the interval
    `eigenvalues` that holds all eigenvalues of the Hessian at x*. `convex_within` is a radius of a
    ball round x on which the objective is convex (concave, if the model maximises), and `gap`
    bounds how much better than x a point within `gap_within` may be. `direction` (n,) has proved
    negative curvature, at most `curvature`, at x itself: None if there is none.

    `held` marks the elements that the proof holds at their values in x: those at active bounds, and
    with `modulo` those that choose one point of each orbit of the `invariances`. `undetermined`
    says which directions neither the data nor an invariance determine. `changed` names the
    variables whose values are those in `model.unconstrained`, and not the user's.
    """

    x: Vector
    shapes: Mapping[str, tuple[int, ...]]
    gradient_norm: float
    exists: bool
    reason: str
    error: Vector
    box: Vector
    unique_within: float
    kind: Kind
    eigenvalues: tuple[float, float]
    convex_within: float
    gap: float
    gap_within: float
    direction: Vector | None = None
    curvature: float = 0.0
    maximises: bool = False
    held: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=bool))
    remarks: tuple[str, ...] = ()
    invariances: tuple[str, ...] = ()
    undetermined: tuple[str, ...] = ()
    changed: frozenset[str] = frozenset()

    @property
    def distance(self) -> float:
        """Upper bound on ‖x* - x‖; inf without a proof."""
        largest = float(np.max(self.error, initial=0.0))
        if not math.isfinite(largest):
            return math.inf
        return float(np.linalg.norm(self.error / (largest or 1.0))) * largest * (1.0 + 1e-9)

    @property
    def errors(self) -> dict[str, Vector]:
        """The error bars by variable, in its shape."""
        return self._by_variable(self.error)

    @property
    def digits(self) -> dict[str, Vector]:
        """The number of decimal digits of x that are proved, by variable; 0 for none."""
        with np.errstate(divide="ignore", invalid="ignore"):
            result = -np.log10(self.error / np.abs(self.x))
        return self._by_variable(np.floor(np.clip(np.nan_to_num(result, nan=0.0), 0.0, 17.0)))

    def _by_variable(self, vector: NDArray[Number]) -> dict[str, NDArray[Number]]:
        result: dict[str, NDArray[Number]] = {}
        start = 0
        for name, shape in self.shapes.items():
            stop = start + math.prod(shape)
            result[name] = vector[start:stop].reshape(shape)
            start = stop
        return result

    @property
    def summary(self) -> str:
        """The statements, one a line."""
        statements = [*self._point(), *self._curvature(), *self.remarks, *self._errors()]
        return "\n".join([*statements, *self._others()])

    def __repr__(self) -> str:
        return self.summary

    def _repr_html_(self) -> str:
        """The statements as paragraphs, for notebooks."""
        return "".join(map(paragraph, self.summary.splitlines()))

    def _point(self) -> list[str]:
        norm = f"The gradient at x has norm at most {shown(self.gradient_norm)}."
        if not self.exists:
            return [norm, f"No critical point near x is proved: {self.reason}."]
        within = f"A critical point x* exists within {shown(self.distance)} of x"
        if math.isinf(self.unique_within):
            within += ", the only one there is"
        elif self.unique_within > 0.0:
            within += f", the only one within {shown_below(self.unique_within)}"
        if self.held.any():
            count = int(self.held.sum())
            within += f", with {count} element{'s' if count > 1 else ''} held"
        return [norm, f"{within}."]

    def _curvature(self) -> list[str]:
        lines = []
        low, high = self.eigenvalues
        held = self.held.any()
        if self.exists:
            interval = f"eigenvalues of the Hessian in [{shown_below(low)}, {shown(high)}]"
            lines.append(f"{_WORDS[self.kind]}: {interval}.")
        start = "With them held, it is" if held else "The objective is"
        objective = "With them held, the objective is" if held else "The objective is"
        shape = "concave" if self.maximises else "convex"
        if self.convex_within > 0.0:
            radius = shown_below(self.convex_within)
            where = "everywhere" if math.isinf(self.convex_within) else f"within {radius} of x"
            lines.append(f"{objective} {shape} {where}.")
        if math.isfinite(self.gap):
            better = "above" if self.maximises else "below"
            where = "" if math.isinf(self.gap_within) else f" within {shown_below(self.gap_within)}"
            lines.append(
                f"{start} nowhere{where} more than {shown(self.gap)} {better} its value at x."
            )
        if self.direction is not None:
            size = shown_below if self.maximises else shown
            sign = "Positive" if self.maximises else "Negative"
            bound = f"{'≥' if self.maximises else '≤'} {size(self.curvature)}"
            lines.append(f"{sign} curvature at x is proved: vᵀHv {bound} for a unit vector v.")
        return lines

    def _errors(self) -> list[str]:
        if not self.exists:
            return []
        lines = []
        for name, error in self.errors.items():
            own = self._by_variable(self.x)[name]
            label = f"{name} (unconstrained)" if name in self.changed else name
            if 0 < error.size <= _MOST_LISTED:
                held = self._by_variable(self.held)[name]
                each = zip(own.ravel(), error.ravel(), held.ravel(), strict=True)
                listed = ", ".join(
                    f"{value:.17g} (held)" if at else f"{value:.12g} ± {_bar(e)}"
                    for value, e, at in each
                )
                lines.append(f"{label} = {listed}")
            elif error.size:
                lines.append(f"{label} is off by at most {_bar(float(error.max()))} elementwise")
        return lines

    def _others(self) -> list[str]:
        lines = [f"Up to the invariance: {invariance}." for invariance in self.invariances]
        return lines + [f"Not determined: {one}." for one in self.undetermined]

    def as_json(self) -> dict[str, object]:
        """The certificate as JSON values; numbers that are not finite are null."""
        return {
            "exists": self.exists,
            "reason": self.reason,
            "gradient_norm": _finite(self.gradient_norm),
            "distance": _finite(self.distance),
            "unique_within": _or_infinite(self.unique_within),
            "kind": self.kind,
            "eigenvalues": [_finite(eigenvalue) for eigenvalue in self.eigenvalues],
            "convex_within": _or_infinite(self.convex_within),
            "gap": _finite(self.gap),
            "gap_within": _or_infinite(self.gap_within),
            "curvature": self.curvature if self.direction is not None else None,
            "held": int(self.held.sum()),
            "errors": self._errors_as_json(),
            "remarks": list(self.remarks),
            "invariances": list(self.invariances),
            "undetermined": list(self.undetermined),
            "summary": self.summary,
        }

    def _errors_as_json(self) -> dict[str, object] | None:
        if not self.exists or self.x.size > 100:
            return None
        return {name: error.tolist() for name, error in self.errors.items()}


def in_unconstrained(certificate: PointCertificate, changed: Collection[str]) -> PointCertificate:
    """The certificate of a point of `model.unconstrained`, with a remark that says so.

    `changed` names the variables that are others there.
    """
    remark = "All numbers are those of `model.unconstrained`, where no variable has an open set."
    remarks = (remark, *certificate.remarks)
    return replace(certificate, remarks=remarks, changed=frozenset(changed))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _or_infinite(value: float) -> float | str:
    return value if math.isfinite(value) else "inf"


def _bar(error: float) -> str:
    """The text of an error bound with two significant digits, rounded up."""
    text = f"{error:.1e}"
    return text if float(text) >= error else f"{error * 1.06:.1e}"
