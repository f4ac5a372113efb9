"""One picture per model of the gallery: the data with what the solution says of them."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

import slomodel

Array = NDArray[np.float64]
Data = dict[str, Array]
At = Callable[[str], Any]
LINE, DOT, END = "#1f5fa8", "#6e7781", "#d1495b"
_DAYS = 7
_BINS = 10
_GRID = 60


def picture(name: str, solution: slomodel.Solution, data: Data) -> bytes:
    """The picture of a model as PNG, drawn from its data and from definitions at a solution."""
    figure = Figure(figsize=(7.0, 3.4), dpi=110.0, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    PICTURES[name](axes, data, solution.__getitem__)
    file = BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()


def _eight_schools(axes: Axes, data: Data, at: At) -> None:
    school = np.arange(1, data["y"].size + 1)
    axes.errorbar(school, data["y"], data["sigma"], fmt="o", color=DOT, label="estimate")
    axes.plot(school, at("theta"), "D", color=LINE, label="effect at the solution")
    axes.set(xlabel="school", ylabel="effect")
    axes.legend()


def _election(axes: Axes, data: Data, at: At) -> None:
    _shares(axes, data["y"], 1 / (1 + np.exp(-at("eta"))), "vote")


def _wells(axes: Axes, data: Data, at: At) -> None:
    _shares(axes, data["y"], 1 / (1 + np.exp(-at("eta"))), "switch")


def _responses(axes: Axes, data: Data, at: At) -> None:
    _shares(axes, data["y"], 1 / (1 + np.exp(-at("eta"))), "right answer")


def _shares(axes: Axes, y: Array, fitted: Array, what: str) -> None:
    """Observed shares against fitted probabilities, over ten groups of equal size."""
    groups = np.array_split(np.argsort(fitted), _BINS)
    axes.plot([0, 1], [0, 1], color=DOT, linewidth=0.8)
    axes.plot([fitted[g].mean() for g in groups], [y[g].mean() for g in groups], "o", color=LINE)
    axes.set(xlabel=f"fitted probability of: {what}", ylabel="observed share")


def _birds(axes: Axes, data: Data, at: At) -> None:
    years = np.unique(data["year"])
    for values, style, label in (
        (data["count"], "o", "observed"),
        (np.exp(at("rate")), "-", "fit"),
    ):
        axes.plot(
            years, [values[data["year"] == year].mean() for year in years], style, label=label
        )
    axes.set(xlabel="year", ylabel="mean count per site")
    axes.legend()


def _travel(axes: Axes, data: Data, at: At) -> None:
    V = at("V")
    share = np.exp(V - V.max(axis=1, keepdims=True))
    share /= share.sum(axis=1, keepdims=True)
    chosen = np.bincount(data["choice"].astype(int), minlength=V.shape[1]) / len(V)
    for shift, values, label in ((-0.2, chosen, "observed"), (0.2, share.mean(axis=0), "fitted")):
        axes.bar(np.arange(V.shape[1]) + shift, values, 0.38, label=label)
    axes.set(ylabel="share", xticks=range(4), xticklabels=["air", "train", "bus", "car"])
    axes.margins(y=0.25)
    axes.legend(ncols=2)


def _cox(axes: Axes, data: Data, at: At) -> None:
    risk = np.exp(at("eta"))
    at_risk = np.cumsum(risk[::-1])[::-1][data["first"].astype(int)]
    hazard = np.cumsum(data["event"] / at_risk)[: np.flatnonzero(data["event"])[-1] + 1]
    for quarter, label in ((10, "low risk"), (50, "median risk"), (90, "high risk")):
        axes.step(
            np.arange(hazard.size), np.exp(-hazard * np.percentile(risk, quarter)), label=label
        )
    axes.set(xlabel="persons, by time", ylabel="share not arrested")
    axes.legend()


def _process(axes: Axes, data: Data, at: At) -> None:
    x, grid = data["x"], np.linspace(data["x"].min(), data["x"].max(), 200)
    across = at("alpha") ** 2 * np.exp(-((grid[:, None] - x) ** 2) / (2 * at("rho") ** 2))
    axes.plot(x, data["y"], "o", color=DOT, label="observed")
    axes.plot(grid, across @ np.linalg.solve(at("K"), data["y"]), color=LINE, label="mean")
    axes.set(xlabel="x", ylabel="y")
    axes.legend()


def _kriging(axes: Axes, data: Data, at: At) -> None:
    x, y, b = data["x"], data["y"], at("b")
    across = [np.linspace(one.min(), one.max(), _GRID) for one in (x, y)]
    X, Y = np.meshgrid(*across)
    t = np.sqrt(3) * np.hypot(X[..., None] - x, Y[..., None] - y) / at("r")
    near = at("s2") * (1 + t) * np.exp(-t)
    height = b[0] + b[1] * X + b[2] * Y + 100 * near @ np.linalg.solve(at("K"), at("e"))
    shown = axes.contourf(X, Y, height, 12, cmap="terrain")
    axes.plot(x, y, ".", color="black", markersize=3)
    axes.figure.colorbar(shown, ax=axes, label="height")
    axes.set(xlabel="x", ylabel="y", aspect="equal")


def _smoothing(axes: Axes, data: Data, at: At) -> None:
    _series(axes, data["y"], data["y"] - at("e"), "one step ahead", "logarithm of passengers")


def _volatility(axes: Axes, data: Data, at: At) -> None:
    half = 2 * np.sqrt(at("h"))
    axes.plot(data["y"], ".", color=DOT, label="observed")
    axes.fill_between(np.arange(half.size), at("mu") - half, at("mu") + half, alpha=0.3, color=LINE)
    axes.set(xlabel="day", ylabel="return, with ± 2 standard deviations")


def _nile(axes: Axes, data: Data, at: At) -> None:
    half = 1.96 * np.sqrt(at("S"))
    axes.fill_between(
        np.arange(half.size)[1:], (at("a") - half)[1:], (at("a") + half)[1:], alpha=0.2
    )
    _series(axes, data["y"], at("a"), "predicted level", "flow of the Nile")


def _series(axes: Axes, y: Array, fitted: Array, label: str, what: str) -> None:
    axes.plot(y, ".", color=DOT, label="observed")
    axes.plot(fitted, color=LINE, label=label)
    axes.set(xlabel="time", ylabel=what)
    axes.legend()


def _intensity(axes: Axes, data: Data, at: At) -> None:
    t = data["t"]
    grid = np.linspace(0.0, float(data["T"]), 1500)
    since = grid[:, None] - t
    rate = at("mu") + at("a") * at("b") * np.where(since > 0, np.exp(-at("b") * since), 0).sum(
        axis=1
    )
    axes.plot(grid, rate, color=LINE, linewidth=1)
    axes.plot(t, np.zeros_like(t), "|", color=END, label="accidents")
    axes.set(xlabel="time", ylabel="rate of accidents")
    axes.legend()


def _cholera(axes: Axes, data: Data, at: At) -> None:
    weeks = np.arange(1, data["cases"].size + 1)
    axes.plot(weeks, data["cases"], "o", color=DOT, label="cases, observed")
    axes.plot(weeks, at("D"), color=LINE, label="cases, fitted")
    axes.set(xlabel=f"period of {_DAYS} days", ylabel="new cases")
    other = axes.twinx()
    other.plot(weeks, data["B"], "x", color=END)
    other.plot(weeks, at("W"), "--", color=END)
    other.set_ylabel("bacteria in the water", color=END)
    axes.legend()


def _mixture(axes: Axes, data: Data, at: At) -> None:
    y = data["y"]
    grid = np.linspace(y.min(), y.max(), 400)[:, None]
    mu, s = at("mu"), at("s")
    parts = at("theta") / (s * np.sqrt(2 * np.pi)) * np.exp(-(((grid - mu) / s) ** 2) / 2)
    axes.hist(y, 60, density=True, color="#d0d7de")
    axes.plot(grid, parts, linewidth=0.8, color=DOT)
    axes.plot(grid, parts.sum(axis=1), color=LINE)
    axes.set(xlabel="y", ylabel="density")


def _deblur(axes: Axes, data: Data, at: At) -> None:
    observed = np.where(data["known"] == 1, data["observed"], np.nan)
    gap = np.full((28, 4), np.nan)
    axes.imshow(np.hstack([np.pad(observed, 1, constant_values=np.nan), gap, at("X")]), cmap="gray")
    axes.set(xticks=[], yticks=[], title="observed, with unknown pixels, and deblurred")


def _bundle(axes: Axes, data: Data, at: At) -> None:
    fitted = at("r")[:, None] * at("uv")
    axes.plot(*data["xy"].T, "o", mfc="none", color=DOT, label="in the pictures")
    axes.plot(*fitted.T, "x", color=LINE, label="projected")
    axes.set(xlabel="pixels", ylabel="pixels")
    axes.legend()


def _pendulum(axes: Axes, data: Data, at: At) -> None:
    time = 0.05 * np.arange(at("q").size)
    axes.plot(time, at("q"), color=LINE, label="angle (0 is upright)")
    axes.step(time[:-1], at("a"), color=END, where="post", linewidth=0.8, label="torque")
    axes.set(xlabel="time (s)")
    axes.legend()


def _embedding(axes: Axes, data: Data, at: At) -> None:
    Y, p = at("Y"), data["p"]
    for i, j in zip(*np.nonzero(np.triu(p > np.quantile(p, 0.95), 1)), strict=True):
        axes.plot(Y[[i, j], 0], Y[[i, j], 1], color="#d0d7de", linewidth=0.8, zorder=0)
    axes.plot(*Y.T, "o", color=LINE)
    axes.set(xticks=[], yticks=[], title="flowers, with lines between the most similar ones")


def _cluster(axes: Axes, data: Data, at: At) -> None:
    P = at("P") - at("P").mean(axis=0)
    distance = np.sqrt(at("r2"))
    for i, j in zip(*np.nonzero(np.triu(distance < 1.25, 1)), strict=True):
        axes.plot(P[[i, j], 0], P[[i, j], 1], color="#d0d7de", zorder=0)
    axes.scatter(P[:, 0], P[:, 1], 260, P[:, 2], cmap="Blues", edgecolors="black")
    axes.set(
        xticks=[], yticks=[], aspect="equal", title="positions, coloured by the third coordinate"
    )


PICTURES: dict[str, Callable[[Axes, Data, At], None]] = {
    "eight_schools": _eight_schools,
    "election_multilevel": _election,
    "wells_logit": _wells,
    "bird_counts_sites": _birds,
    "travel_mode": _travel,
    "cox_recidivism": _cox,
    "gp_regression": _process,
    "topography_kriging": _kriging,
    "airline_holt_winters": _smoothing,
    "garch11": _volatility,
    "nile_kalman": _nile,
    "mining_hawkes": _intensity,
    "cholera_sir_rk4": _cholera,
    "mixture_five": _mixture,
    "item_response_pairs": _responses,
    "digit_tv_deblur": _deblur,
    "bundle_small": _bundle,
    "pendulum_swing_up": _pendulum,
    "iris_embedding": _embedding,
    "lennard_jones_13": _cluster,
}
