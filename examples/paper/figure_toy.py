"""Section 1: the Lipschitz constant of the two-weight softplus toy over balls of radius 1/4.

True (the largest |eigenvalue| of the Hessian on a fine grid of each ball, slightly from below),
proved (`model.bounds`) and sampled as in the paper (`--rounds` random pairs of points).

    python examples/paper/figure_toy.py --rounds 100
"""

from __future__ import annotations

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from protocol import MODELS, Array
from report import arguments
from rich.progress import track

import slomodel

RADIUS, REACH = 0.25, 4.0


def true_constant(model: slomodel.Model, center: Array) -> float:
    """The largest |eigenvalue| over rings of points of the ball."""
    turns = np.linspace(0.0, 2.0 * np.pi, 24, endpoint=False)
    rings = RADIUS * np.array([0.0, 0.5, 1.0])
    offsets = [r * np.array([np.cos(t), np.sin(t)]) for r in rings for t in turns]
    hessians = np.array([model.hessian(center + offset) for offset in offsets])
    return float(np.abs(np.linalg.eigvalsh(hessians)).max())


def figure(maps: dict[str, Array]) -> Figure:
    """Three maps on one logarithmic colour scale, and the two ratios to the truth."""
    drawn = Figure(figsize=(15.0, 3.4), dpi=110.0, layout="constrained")
    FigureCanvasAgg(drawn)
    panels = drawn.subplots(1, 5)
    scale = LogNorm(maps["true"].min(), maps["proved"].max())
    ratios = {"proved / true": "proved", "sampled / true": "sampled"}
    edge = REACH * (1.0 + 1.0 / (len(maps["true"]) - 1))
    shape = {"origin": "lower", "extent": (-edge, edge, -edge, edge), "aspect": "auto"}
    for axes, (name, values) in zip(panels[:3], maps.items(), strict=True):
        image = axes.imshow(values.T, **shape, norm=scale, cmap="viridis")
        axes.set(title=f"L1, {name}", xlabel="$w_1$", ylabel="$w_2$")
    drawn.colorbar(image, ax=panels[:3], label="L1 over the ball")
    for axes, (name, key) in zip(panels[3:], ratios.items(), strict=True):
        ratio = maps[key] / maps["true"]
        image = axes.imshow(ratio.T, **shape, cmap="magma")
        axes.set(title=name, xlabel="$w_1$", ylabel="$w_2$")
        drawn.colorbar(image, ax=axes)
    return drawn


def main() -> None:
    """Fill the maps, print the ratios of proved and sampled to true, draw."""
    parser = arguments("figure_toy", methods=())
    parser.add_argument("--steps", type=int, default=11, help="balls along each axis (11)")
    given = parser.parse_args()
    model = slomodel.compile(MODELS / "softplus_toy.slo")
    places = np.linspace(-REACH, REACH, given.steps)
    maps = {name: np.empty((given.steps, given.steps)) for name in ("true", "proved", "sampled")}
    for i, w1 in enumerate(track(places, "columns", transient=True)):
        for j, w2 in enumerate(places):
            c = np.array([w1, w2])
            maps["true"][i, j] = true_constant(model, c)
            maps["proved"][i, j] = model.bounds(c, RADIUS).L1
            maps["sampled"][i, j] = model.sample_bounds(c, RADIUS, given.rounds, method="pairs").L1
    for name in ("proved", "sampled"):
        low, mid, high = np.quantile(maps[name] / maps["true"], [0.0, 0.5, 1.0])
        print(f"{name} / true: least {low:.3f}, median {mid:.3f}, largest {high:.3f}")
    given.out.mkdir(parents=True, exist_ok=True)
    figure(maps).savefig(given.out / "figure_toy.png")


if __name__ == "__main__":
    main()
