"""Standard errors, covariances and intervals of the quantities of a model at a solution."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Literal, final

import numpy as np

from slomodel.errors import Diagnostic, DomainError
from slomodel.html import paragraph, table
from slomodel.solve.information import Information, Mask
from slomodel.solve.norms import Vector
from slomodel.solve.options import choice, number

if TYPE_CHECKING:
    from pandas import DataFrame

IntervalMethod = Literal["delta", "profile"]
_MOST_ROWS = 12
_WIDTH = 88


@dataclass(frozen=True, slots=True)
class StatisticalScale:
    """How the objective f is read: the covariance is `factor`·H⁻¹, H the matrix of second order.

    `freedom` are the degrees of freedom of Student's t distribution in intervals; None stands for
    the normal distribution. `assumption` says all this in a sentence.
    """

    factor: float
    freedom: float | None
    assumption: str

    def quantile(self, level: float) -> float:
        """Half the width of a two-sided interval of this level, in standard errors."""
        from scipy.special import ndtri, stdtrit

        upper = 0.5 * (1.0 + level)
        return float(ndtri(upper) if self.freedom is None else stdtrit(self.freedom, upper))


@dataclass(frozen=True, slots=True, eq=False)
class IntervalScale:
    """A scale on which an interval is symmetric: `back`, which is monotone, leads to the quantity.

    `value` and `jacobian` (k, m) are those on this scale.
    """

    value: Vector
    jacobian: Vector
    back: Callable[[Vector], Vector]


@dataclass(frozen=True, slots=True, eq=False)
class Linearised:
    """A quantity at a point: its value, Jacobian (k, m) by the solver's variables, and elements.

    `labels` names its elements in C order. Intervals are symmetric on `scale`, by default the
    quantity's own, and are cut at `ends`.
    """

    value: Vector
    jacobian: Vector
    labels: tuple[str, ...]
    scale: IntervalScale | None = None
    ends: tuple[Vector, Vector] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """A quantity with its standard error, and the ends of an interval, all of one shape.

    They are those of the quantity itself: a new observation varies about it in addition.
    """

    value: Vector
    standard_error: Vector
    low: Vector
    high: Vector


@dataclass(frozen=True, slots=True)
class EstimateRow:
    """One row of the table: an element with its estimate, standard error and interval."""

    name: str
    estimate: float
    standard_error: float
    low: float
    high: float


Linearise = Callable[[str, Mapping[str, object] | None], Linearised]
"""(name, new data or None) -> the quantity at the solution."""
Profile = Callable[[str, float], Vector]
"""(name of a variable, quantile) -> profile intervals (k, 2) of its elements."""


@final
class Uncertainty:
    """Uncertainty of a fit to first order: by the covariance at the solution and the delta method.

    `assumption` says how the objective is read, and `notes` what to bear in mind: variables at
    bounds, undetermined directions, a point that is not stationary. Quantities that the data do not
    determine have an infinite standard error, elements at bounds NaN.
    """

    def __init__(
        self,
        information: Information,
        scale: StatisticalScale,
        shapes: Mapping[str, tuple[int, ...]],
        linearise: Linearise,
        profile: Profile,
        undetermined: tuple[str, ...] = (),
        notes: tuple[str, ...] = (),
    ) -> None:
        """`shapes` are those of the variables by name, in order."""
        self.assumption = scale.assumption
        self.undetermined = undetermined
        self.notes = notes
        self._information = information
        self._scale = scale
        self._shapes = dict(shapes)
        self._linearise = linearise
        self._profile = profile
        self._root = np.sqrt(scale.factor) * information.inverse_root()

    @property
    def covariance(self) -> Vector:
        """The covariance matrix (n, n) of x; infinite for undetermined elements, NaN at bounds."""
        result = [self._linearise(name, None) for name in self._shapes]
        jacobian = np.concatenate([one.jacobian for one in result])
        rows = jacobian @ self._root
        covariance: Vector = rows @ rows.T
        errors = self._errors(jacobian)
        for mark, marked in ((np.inf, np.isinf(errors)), (np.nan, np.isnan(errors))):
            covariance[marked] = covariance[:, marked] = mark
        return covariance

    @property
    def standard_errors(self) -> dict[str, Vector]:
        """The standard errors of all variables by name."""
        return {name: self.standard_error(name) for name in self._shapes}

    def standard_error(self, name: str) -> Vector:
        """The standard errors of a variable or definition, elementwise."""
        return self.predict(name).standard_error

    def interval(self, name: str, level: float = 0.95, method: IntervalMethod = "delta") -> Vector:
        """Intervals (…, 2) of a variable, definition or element, with its shape in front.

        `delta` is the estimate plus and minus a multiple of the standard error; of a variable in an
        open set, and of a monotone function of another quantity such as exp(eta) or log(2) / k for
        k > 0, it is the image of such an interval, and stays in the range. `profile`, for
        variables, are the values at which the objective, minimised over all others, has grown by
        the corresponding amount; an end may be infinite.
        """
        choice("method", method, ("delta", "profile"))
        if method == "delta":
            result = self.predict(name, level=level)
            return np.stack([result.low, result.high], axis=-1)
        quantile = self._scale.quantile(number("level", level, 0.0, 1.0))
        whole, element = self._located(name, None)
        shape = self._linearise(whole, None).value.shape
        intervals = self._profile(whole, quantile).reshape(*shape, 2)
        return intervals if element is None else intervals.reshape(-1, 2)[element]

    def predict(
        self, name: str, data: Mapping[str, object] | None = None, level: float = 0.95
    ) -> Prediction:
        """A variable, definition or element with its standard error and interval.

        They are those on `data` if given. An element is named as in the table: `u[north]`.
        """
        quantile = self._scale.quantile(number("level", level, 0.0, 1.0))
        whole, element = self._located(name, data)
        result = self._linearise(whole, data)
        value, error = result.value, self._errors(result.jacobian).reshape(result.value.shape)
        parts = (value, error, *self._cut(result, quantile))
        if element is not None:
            parts = tuple(one.reshape(-1)[element] for one in parts)
        return Prediction(*parts)

    def _cut(self, quantity: Linearised, quantile: float) -> tuple[Vector, Vector]:
        """The ends of the intervals of a quantity, inside its set."""
        low, high = self._ends(quantity, quantile)
        if quantity.ends is not None:
            low, high = np.maximum(low, quantity.ends[0]), np.minimum(high, quantity.ends[1])
        return low, high

    def _ends(self, quantity: Linearised, quantile: float) -> tuple[Vector, Vector]:
        """The images of the ends of intervals that are symmetric on the scale of a quantity."""
        scale = quantity.scale
        if scale is None:
            scale = IntervalScale(quantity.value, quantity.jacobian, np.asarray)
        width = quantile * self._errors(scale.jacobian).reshape(scale.value.shape)
        # Of an undetermined quantity both ends are infinite; of one at a bound they are NaN.
        with np.errstate(all="ignore"):
            ends = scale.back(scale.value - width), scale.back(scale.value + width)
        return np.minimum(*ends), np.maximum(*ends)

    def _located(self, name: str, data: Mapping[str, object] | None) -> tuple[str, int | None]:
        """The quantity that a name such as `u[north]` is an element of, and the place in it."""
        whole, bracket, _ = name.partition("[")
        if not (bracket and whole.isidentifier() and name.endswith("]")):
            return name, None
        labels = self._linearise(whole, data).labels
        if name not in labels and name.count("[") > 1:
            return name, None
        if name not in labels:
            message = f"`{whole}` has no element `{name}`"
            some = ", ".join(f"`{label}`" for label in labels[:_MOST_ROWS])
            raise DomainError(Diagnostic("E309", message, help=f"there is {some}"))
        return whole, labels.index(name)

    def _errors(self, jacobian: Vector) -> Vector:
        """The standard errors (k,) of a quantity with this Jacobian (k, m)."""
        information = self._information
        errors: Vector = np.linalg.norm(jacobian @ self._root, axis=1)
        if information.flat.any():
            errors[~information.determines(jacobian)] = np.inf
        if information.held.any():
            errors[_reads_only(jacobian, information.held)] = np.nan
        return errors

    def rows(self, *names: str, level: float = 0.95) -> list[EstimateRow]:
        """The table, one row per element: of the named quantities, by default of all variables."""
        rows: list[EstimateRow] = []
        for name in names or self._shapes:
            result = self.predict(name, level=level)
            whole, element = self._located(name, None)
            every = self._linearise(whole, None).labels
            labels = every if element is None else every[element : element + 1]
            columns = (result.value, result.standard_error, result.low, result.high)
            numbers = np.stack([column.ravel() for column in columns], axis=1).tolist()
            rows += [EstimateRow(label, *row) for label, row in zip(labels, numbers, strict=True)]
        return rows

    def to_frame(self, *names: str, level: float = 0.95) -> DataFrame:
        """The table as a pandas DataFrame, with the names of the elements as index."""
        try:
            from pandas import DataFrame
        except ImportError:
            message = "a DataFrame needs pandas, which is not installed"
            remedy = "pip install pandas, or use .rows()"
            raise DomainError(Diagnostic("E701", message, help=remedy)) from None
        rows = self.rows(*names, level=level)
        columns = {
            "estimate": [row.estimate for row in rows],
            "standard_error": [row.standard_error for row in rows],
            "low": [row.low for row in rows],
            "high": [row.high for row in rows],
        }
        return DataFrame(columns, index=[row.name for row in rows])

    def table(self, *names: str, level: float = 0.95) -> str:
        """The table as text, long quantities shortened, with the assumption and the notes."""
        rows = self.rows(*names, level=level)
        more = len(rows) - _MOST_ROWS
        shown = rows if more <= 1 else rows[:_MOST_ROWS]
        head = ("", "estimate", "std. error", f"{100 * level:g} % interval")
        cells = [
            (one.name, f"{one.estimate:.6g}", f"{one.standard_error:.4g}", _ends(one))
            for one in shown
        ]
        lines = _aligned([head, *cells])
        if len(shown) < len(rows):
            lines.append(f"… {more} more rows")
        every = (self.assumption, *self.notes, *self._note_of_cuts(names, level))
        said = [fill(one, _WIDTH) for one in every]
        return "\n".join([*lines, "", *said])

    def __repr__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        """The table with its assumption and notes, for notebooks."""
        rows = self.rows()
        cells = [
            (row.name, f"{row.estimate:.6g}", f"{row.standard_error:.4g}", _ends(row))
            for row in rows[:_MOST_ROWS]
        ]
        shown = table(("", "estimate", "std. error", "95 % interval"), cells)
        more = [f"… {len(rows) - _MOST_ROWS} more rows"] if len(rows) > _MOST_ROWS else []
        notes = (self.assumption, *self.notes, *self._note_of_cuts((), 0.95))
        return shown + "".join(map(paragraph, (*more, *notes)))

    def _note_of_cuts(self, names: Sequence[str], level: float) -> list[str]:
        """A sentence on the quantities whose intervals are cut at the ends of closed sets."""
        quantile = self._scale.quantile(level)
        cut = []
        for name in dict.fromkeys(self._located(one, None)[0] for one in names or self._shapes):
            quantity = self._linearise(name, None)
            if quantity.ends is not None:
                low, high = self._ends(quantity, quantile)
                if (low < quantity.ends[0]).any() or (high > quantity.ends[1]).any():
                    cut.append(f"`{name}`")
        return [f"Intervals of {', '.join(cut)} are cut at the ends of the set."] if cut else []


def _ends(row: EstimateRow) -> str:
    return f"{row.low:.6g} … {row.high:.6g}"


def _aligned(cells: Sequence[Sequence[str]]) -> list[str]:
    """Rows of text in columns, the first aligned to the left."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for name, *others in cells:
        right = (cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))
        lines.append("  ".join([name.ljust(widths[0]), *right]).rstrip())
    return lines


def _reads_only(jacobian: Vector, held: Mask) -> Mask:
    """The rows of a Jacobian that depend on the held elements alone."""
    free: Mask = np.any(jacobian[:, ~held] != 0.0, axis=1)
    alone: Mask = ~free & np.any(jacobian[:, held] != 0.0, axis=1)
    return alone
