"""Sampled constants of Section 6 against the true ones, and proved ones.

L1 over balls of radius 1 (the D of pgd and tgd) about the start and about the point that
norm-armijo reaches after some steps. The true constant lies between the result of an ascent, which
is attained in the ball, and the proved bound. `--rounds` starts; the paper's estimate is from 100
random pairs.

    python examples/paper/table_constants.py --rounds 3
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import table_autoencoder
import table_deep_linear
import table_tensor
from protocol import Array, Case
from report import arguments
from rich.progress import track

import slomodel

RADIUS, PAIRS = 1.0, 100
STEPS = (0, 30, 1000)
HEADER = "case", "after", "sampled L1", "ascent", "proved", "sampled / ascent", "proved / ascent"


def centers(case: Case, model: slomodel.Model, round_: int) -> Iterator[tuple[int, Array]]:
    """The start, and the point of norm-armijo after some steps."""
    x0 = case.x0(model.n, round_)
    for steps in STEPS:
        yield steps, model.solve("norm-armijo", x0, max_iter=steps, gtol=1e-15).x


def constants(model: slomodel.Model, center: Array) -> tuple[float, float, float]:
    """L1 sampled as in the paper, by ascent, and proved."""
    sampled = model.sample_bounds(center, RADIUS, PAIRS, method="pairs").L1
    return sampled, model.sample_bounds(center, RADIUS).L1, model.bounds(center, RADIUS).L1


def row(name: str, steps: int, found: Array) -> str:
    """Markdown: medians over the rounds; found (rounds, 3)."""
    sampled, ascent, proved = np.median(found, axis=0)
    ratios = np.median(found / found[:, 1:2], axis=0)
    numbers = (sampled, ascent, proved, ratios[0], ratios[2])
    return f"| {name} | {steps} steps | " + " | ".join(f"{value:.2g}" for value in numbers) + " |"


def main() -> None:
    """Print and write the table."""
    tables = (table_tensor, table_autoencoder, table_deep_linear)
    names = [f"{table.__name__}: {case.name}" for table in tables for case in table.cases()]
    every = dict(zip(names, (case for table in tables for case in table.cases()), strict=True))
    given = arguments("table_constants", names, ()).parse_args()
    rows = ["| " + " | ".join(HEADER) + " |", "|---|---" + "|---:" * 5 + "|"]
    for name in track(given.cases, "cases", transient=True):
        case = every[name]
        model = case.compile()
        found: dict[int, list[tuple[float, float, float]]] = {steps: [] for steps in STEPS}
        for round_ in range(given.rounds):
            for steps, center in centers(case, model, round_):
                found[steps].append(constants(model, center))
        rows += [row(name, steps, np.array(values)) for steps, values in found.items()]
    text = "\n".join(rows)
    print(text)
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "table_constants.md").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
