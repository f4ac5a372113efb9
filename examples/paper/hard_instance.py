"""Section 5: evaluations against ε on the hard instance, d = 4, and the radius R_T against Δ/√ε.

Theory: ε^(-d/2) for all but agp, ε^(-3d/8) for agp, up to logarithms. The paper's gd uses L1 of the
level set, above 1e800; here it uses L1 over B(0, Δ/√ε). Starts: the paper's start 0, from which x2
remains 0, and `--rounds` times (0, u) with u uniform in [0, 0.1].

    python examples/paper/hard_instance.py --rounds 2 --seconds 4
"""

from __future__ import annotations

import numpy as np
from instance import HEADER, Reached, fits, measure, methods, row, slope
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from report import COLOURS, arguments
from rich.progress import track


def figure(at_zero: list[Reached], far: list[Reached]) -> Figure:
    """Evaluations against ε from the start 0, and the radius against Δ/√ε."""
    drawn = Figure(figsize=(12.0, 5.2), dpi=110.0, layout="constrained")
    FigureCanvasAgg(drawn)
    left, right = drawn.subplots(1, 2)
    for method in dict.fromkeys(run.method for run in at_zero):
        own = [run for run in at_zero if run.method == method]
        eps, counts = [run.tolerance**2 for run in own], [run.evaluations for run in own]
        # tgd and pgd take the same steps for a long time; dashes make both visible.
        line = "o--" if method == "tgd" else "o-"
        left.loglog(eps, counts, line, color=COLOURS[method], label=method, ms=3)
    eps = np.array([1e-4, 3e-3])
    left.loglog(eps, 1e-3 * eps**-2.0, "k--", label="slope -2", linewidth=0.9)
    left.loglog(eps, 0.1 * eps**-1.5, "k:", label="slope -1.5", linewidth=0.9)
    left.set(xlabel="ε", ylabel="evaluations until ‖∇f‖² < ε")
    ratio = np.array([run.Delta / run.tolerance for run in far])
    right.loglog(ratio, [run.radius for run in far], "o", color="#d62728", label="R_T", ms=3)
    line = np.geomspace(ratio.min(), ratio.max(), 50)
    right.loglog(line, line, "k--", label="Δ/√ε", linewidth=0.9)
    right.loglog(line, line / np.log(line) ** 2, "k:", label="Δ/(√ε ln²(Δ/√ε))", linewidth=0.9)
    right.set(xlabel="Δ/√ε", ylabel="R_T, norm-armijo from 0")
    for axes in (left, right):
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=5)
    return drawn


def main() -> None:
    """Measure, print the fits, draw."""
    every = tuple(methods(1.0, 0.1))
    given = arguments("hard_instance", methods=every).parse_args()
    at_zero, rows = [], []
    draw = np.random.default_rng(0).uniform(0.0, 0.1, given.rounds)
    for method in track(given.methods, "methods", transient=True):
        at_zero += (found := measure(method, np.zeros(2), given.seconds))
        rows.append(fits(method, "0", found))
        other = [run for u in draw for run in measure(method, np.array([0.0, u]), given.seconds)]
        rows.append(fits(method, "(0, u)", other))
    far = [r for D in (1.0, 10.0, 100.0) for r in measure("norm-armijo", np.zeros(2), 1.0, D)]
    ratios, radii = [run.Delta / run.tolerance for run in far], [run.radius for run in far]
    last = f"\nR_T ~ (Δ/√ε)^p with p = {slope(ratios, radii)}"
    text = "\n".join([row(*HEADER), "|---" * len(HEADER) + "|", *rows, last])
    print(text)
    path = given.out / "hard_instance"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".md").write_text(text + "\n", encoding="utf-8")
    figure(at_zero, far).savefig(path.with_suffix(".png"))


if __name__ == "__main__":
    main()
