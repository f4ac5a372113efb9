"""Plots of a run, drawn with matplotlib, which is imported on demand."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from slomodel.errors import Diagnostic, DomainError, TargetLimit
from slomodel.solve import Solution
from slomodel.solve.files import written

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Vector = NDArray[np.float64]

_MOST_POINTS = 4_000
_WORTH_A_LOG_AXIS = 10.0
_SHORT_SECONDS = 0.5
# Matplotlib's transforms overflow beyond these values.
_TINIEST, _HUGEST = 1e-300, 1e300
_LINE, _END = "#1f5fa8", "#d1495b"


def convergence(
    solution: Solution, path: str | os.PathLike[str] | None = None, *, name: str = ""
) -> Figure:
    """Gradient norm and objective against time, side by side; saved if `path` is given.

    `name` is the model's, for the title. The file is written atomically, in the format of its
    extension. Raises TargetLimit without matplotlib, DomainError for an unknown extension.
    """
    if path is not None:
        check_format(path)
    figure = _new_figure()
    history = solution.history
    left, right = figure.subplots(1, 2)
    _draw(left, history.time, history.gradient_norm, "gradient norm ‖∇f‖")
    _draw(right, history.time, history.fun, "objective f")
    steps = "step" if solution.nit == 1 else "steps"
    outcome = f"{solution.method}: {solution.status} after {solution.nit:,} {steps}"
    figure.suptitle(f"{name} · {outcome}" if name else outcome)
    if path is not None:
        _save(figure, Path(path))
    return figure


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
