"""Plots of a run and of bounds, drawn with matplotlib, which is imported on demand."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slomodel.errors import Diagnostic, DomainError, TargetLimit
from slomodel.solve import Solution
from slomodel.solve.files import written

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from slomodel.bounds import Bounds

Vector = NDArray[np.float64]

_RADII = (1e-3, 1e-2, 1e-1, 0.3, 1.0)
_MOST_POINTS = 4_000
_WORTH_A_LOG_AXIS = 10.0
_SHORT_SECONDS = 0.5
# Matplotlib's transforms overflow beyond these values.
_TINIEST, _HUGEST = 1e-300, 1e300
_LINE, _END, _DOT = "#1f5fa8", "#d1495b", "#6e7781"


_NORMS = {
    "gradient": "gradient norm ‖∇f‖",
    "projected gradient": "projected gradient ‖x − P(x − ∇f)‖",
    "gradient of the Lagrangian": "gradient norm of the Lagrangian",
}


class BoundedModel(Protocol):
    """The members of a model that a picture of bounds needs."""

    @property
    def name(self) -> str: ...

    def bounds(self, center: Vector, radius: float) -> Bounds: ...

    def sample_bounds(self, center: Vector, radius: float, samples: int) -> Bounds: ...


def convergence(
    solution: Solution | Sequence[Solution],
    path: str | os.PathLike[str] | None = None,
    *,
    name: str = "",
) -> Figure:
    """Gradient norm and objective against time, side by side; saved if `path` is given.

    Several solutions share the axes, with the methods in a legend. `name` is the model's, for the
    title. The file is written atomically, in the format of its
    extension. Raises TargetLimit without matplotlib, DomainError for an unknown extension.
    """
    if path is not None:
        check_format(path)
    figure = _new_figure()
    left, right = figure.subplots(1, 2)
    if not isinstance(solution, Solution):
        _compare(left, right, _checked(list(solution)))
        figure.suptitle(name)
    else:
        history = solution.history
        _draw(left, history.time, history.gradient_norm, _NORMS[solution.measure])
        _draw(right, history.time, history.fun, "objective f")
        steps = "step" if solution.nit == 1 else "steps"
        outcome = f"{solution.method}: {solution.status} after {solution.nit:,} {steps}"
        figure.suptitle(f"{name} · {outcome}" if name else outcome)
    if path is not None:
        _save(figure, Path(path))
    return figure


def fit(
    observed: ArrayLike,
    fitted: ArrayLike,
    path: str | os.PathLike[str] | None = None,
    *,
    against: ArrayLike | None = None,
    name: str = "",
) -> Figure:
    """Observations with fitted values, and residuals, of arrays (N,); saved if `path` is given.

    Without `against`, an array (N,) of the horizontal axis, the left panel shows observations
    against fitted values, with the line on which they agree. The right panel shows the residuals
    with their median and quartiles. Elements that are not finite are left out.
    """
    if path is not None:
        check_format(path)
    y, value = np.asarray(observed, float).ravel(), np.asarray(fitted, float).ravel()
    x = value if against is None else np.asarray(against, float).ravel()
    if not y.size == value.size == x.size:
        message = f"a fit needs arrays of equal length, not {y.size}, {value.size} and {x.size}"
        raise DomainError(Diagnostic("E605", message, help="give one fitted value per observation"))
    finite = np.isfinite(y) & np.isfinite(value) & np.isfinite(x)
    order = np.flatnonzero(finite)[np.argsort(x[finite], kind="stable")]
    x, y, value = x[order], y[order], value[order]
    figure = _new_figure()
    left, right = figure.subplots(1, 2)
    left.plot(x, y, ".", color=_DOT, markersize=4.0, label="observed")
    left.plot(x, value, color=_LINE, linewidth=1.4, label="fitted")
    left.set_xlabel("fitted value" if against is None else "")
    left.set_ylabel("observed")
    left.legend(loc="best", fontsize="small")
    residual = y - value
    right.plot(value, residual, ".", color=_LINE, markersize=4.0)
    for quarter in (25.0, 50.0, 75.0) if residual.size else ():
        right.axhline(float(np.percentile(residual, quarter)), color=_END, linewidth=0.8)
    right.set_xlabel("fitted value")
    right.set_ylabel("residual (lines: quartiles)")
    for axes in (left, right):
        axes.grid(visible=True, which="major", alpha=0.3)
    figure.suptitle(name)
    if path is not None:
        _save(figure, Path(path))
    return figure


def _checked(solutions: Sequence[object]) -> list[Solution]:
    wrong = [solution for solution in solutions if not isinstance(solution, Solution)]
    if wrong or not solutions:
        result = type(wrong[0]).__name__ if wrong else "none"
        message = f"convergence takes a Solution or several, and found {result}"
        raise DomainError(Diagnostic("E602", message, help="give what solve returned"))
    return [one for one in solutions if isinstance(one, Solution)]


def _compare(left: Axes, right: Axes, solutions: Sequence[Solution]) -> None:
    """Curves of several runs, on axes with a legend."""
    longest = max(float(solution.history.time[-1:].sum()) for solution in solutions)
    unit, factor = ("s", 1.0) if longest >= _SHORT_SECONDS else ("ms", 1e3)
    for axes, column in ((left, "gradient_norm"), (right, "fun")):
        every: list[Vector] = []
        for one in solutions:
            values: Vector = getattr(one.history, column)
            drawable = np.isfinite(values) & (np.abs(values) < _HUGEST)
            time, values = factor * one.history.time[drawable], values[drawable]
            shown = _thinned(values)
            direction = one.parameters.get("direction", "")
            label = f"{one.method} {direction}".strip()
            axes.plot(time[shown], values[shown], linewidth=1.4, label=label)
            every.append(values)
        numbers = np.concatenate(every)
        least, most = float(numbers.min(initial=np.inf)), float(numbers.max(initial=-np.inf))
        if least > _TINIEST and most >= _WORTH_A_LOG_AXIS * least:
            axes.set_yscale("log")
        axes.set_xlabel(f"time ({unit})")
        axes.grid(visible=True, which="major", alpha=0.3)
    left.set_ylabel("gradient norm ‖∇f‖")
    right.set_ylabel("objective f")
    left.legend(loc="best", fontsize="small")


def bounds(
    model: BoundedModel,
    x: Vector,
    path: str | os.PathLike[str] | None = None,
    *,
    radii: Sequence[float] = _RADII,
) -> Figure:
    """Proved L1 and both ends of the Hessian's spectrum against the radius of the ball round x.

    Under them is the estimate of L1 from samples, which no bound lies below, and a line at the
    radius up to which L1 at most doubles. Saved if `path` is given, as by `convergence`.
    """
    if path is not None:
        check_format(path)
    first = model.bounds(x, radii[0])
    result = [first, *(first.at(radius) for radius in radii[1:])]
    seen = [model.sample_bounds(x, radius, 20).L1 for radius in radii]
    figure = of_bounds(result, seen, name=model.name, doubling=first.doubling_radius())
    if path is not None:
        _save(figure, Path(path))
    return figure


def of_bounds(
    every: Sequence[Bounds],
    sampled: Sequence[float],
    *,
    name: str = "",
    doubling: float | None = None,
) -> Figure:
    """The picture of `bounds`, of bounds over balls of increasing radius that are known already.

    `sampled` are the estimates of L1 for the same radii, `doubling` the radius up to which L1 at
    most doubles, if known; `name` is the model's.
    """
    figure = _new_figure()
    left, right = figure.subplots(1, 2)
    radii = [one.radius for one in every]
    _curves_of(left, radii, {"L1, proved": [one.L1 for one in every], "L1, sampled": sampled})
    values = [one for one in (*sampled, *(one.L1 for one in every)) if 0.0 < one < _HUGEST]
    if values and max(values) >= _WORTH_A_LOG_AXIS * min(values):
        left.set_yscale("log")
    elif values:
        left.set_ylim(0.0, 1.1 * max(values))
    ends = {"upper": [one.upper for one in every], "lower": [one.lower for one in every]}
    _curves_of(right, radii, ends)
    right.axhline(0.0, color=_DOT, linewidth=0.8)
    if doubling is not None and radii[0] <= doubling <= radii[-1]:
        left.axvline(doubling, color=_END, linewidth=0.8, linestyle="--")
        left.set_title(f"L1 doubles within {doubling:.3g}", fontsize="medium", color=_END)
    convex = [one.radius for one in every if one.convex]
    right.set_title(
        f"convex within {max(convex):.3g}" if convex else "eigenvalues of the Hessian",
        fontsize="medium",
    )
    figure.suptitle(f"{name}: bounds over balls" if name else "bounds over balls")
    return figure


def _curves_of(axes: Axes, radii: Sequence[float], curves: Mapping[str, Sequence[float]]) -> None:
    """Curves over the radii on a logarithmic axis; numbers that are not drawable are left out."""
    at = np.asarray(radii)
    for label, numbers in curves.items():
        values = np.asarray(numbers)
        kept = np.isfinite(values) & (np.abs(values) < _HUGEST)
        style = "--" if label.endswith("sampled") else "-"
        axes.plot(at[kept], values[kept], style, marker=".", linewidth=1.4, label=label)
    axes.set_xscale("log")
    axes.set_xlabel("radius")
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.legend(fontsize="small")


def check_format(path: str | os.PathLike[str]) -> None:
    """Raise DomainError if `convergence` cannot write the format of `path`."""
    formats = sorted(_new_figure().canvas.get_supported_filetypes())
    ending = Path(path).suffix.lower().removeprefix(".")
    if ending not in formats:
        message = f"a picture cannot be written as `{os.fspath(path)}`"
        known = ", ".join(f".{one}" for one in formats)
        raise DomainError(Diagnostic("E702", message, help=f"use one of the endings {known}"))


def _new_figure() -> Figure:
    """A figure with an Agg canvas, not registered with pyplot or any window."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        message = "a picture needs matplotlib, which is not installed"
        remedy = 'pip install "slomodel[plot]"'
        raise TargetLimit(Diagnostic("E701", message, help=remedy)) from None
    figure = Figure(figsize=(10.0, 4.2), dpi=120.0, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _draw(axes: Axes, time: Vector, values: Vector, label: str) -> None:
    """One curve (k,) with its last point marked; the axis is logarithmic where that shows more."""
    drawable = np.isfinite(values) & (np.abs(values) < _HUGEST)
    unit, factor = ("s", 1.0) if time[-1:].sum() >= _SHORT_SECONDS else ("ms", 1e3)
    axes.set_xlabel(f"time ({unit})")
    axes.set_ylabel(label)
    axes.locator_params(axis="x", nbins=6)
    axes.grid(visible=True, which="major", alpha=0.3)
    time, values = factor * time[drawable], values[drawable]
    if not values.size:
        axes.text(0.5, 0.5, "no finite value", ha="center", va="center", transform=axes.transAxes)
        return
    least, most = float(values.min()), float(values.max())
    if least > _TINIEST and most >= _WORTH_A_LOG_AXIS * least:
        axes.set_yscale("log")
    elif values[-1] == 0.0 and least == 0.0 < most:
        # A final value of exactly zero cannot be shown on a logarithmic axis.
        axes.set_yscale("log", nonpositive="mask")
    shown = _thinned(values)
    axes.plot(time[shown], values[shown], color=_LINE, linewidth=1.4)
    axes.plot(time[-1:], values[-1:], "o", color=_END, markersize=5.0, clip_on=False)
    axes.set_title(f"{values[-1]:.4g} at the end", fontsize="medium", color=_END)


def _thinned(values: Vector) -> NDArray[np.int64]:
    """Indices of at most 4,000 points that draw the same curve: each bin's lowest and highest."""
    if len(values) <= _MOST_POINTS:
        return np.arange(len(values))
    bins = np.array_split(np.arange(len(values)), _MOST_POINTS // 2 - 1)
    kept = {0, len(values) - 1}
    for one in bins:
        kept |= {int(one[values[one].argmin()]), int(one[values[one].argmax()])}
    return np.array(sorted(kept))


def _save(figure: Figure, target: Path) -> None:
    with written(target) as partial:
        figure.savefig(partial, format=target.suffix.lower().removeprefix("."))
