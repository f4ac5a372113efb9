"""Pages of the gallery: models from practice with their data and the result of a run."""

from __future__ import annotations

from html import escape
from pathlib import Path

import slomodel
from slomodel.cli.report import data_sections
from slomodel.html import table

MODELS = Path(__file__).parent.parent / "models" / "practice"
NAMES = (
    *("eight_schools", "election_multilevel", "wells_logit", "bird_counts_sites", "travel_mode"),
    *("cox_recidivism", "gp_regression", "topography_kriging", "motorcycle_splines", "garch11"),
    *("nile_kalman", "mining_hawkes", "cholera_sir_rk4", "mixture_five", "item_response_pairs"),
    *(
        "digit_tv_deblur",
        "bundle_small",
        "pendulum_swing_up",
        "superconductor_vortices",
        "lennard_jones_13",
    ),
)
"""Models of statistics, time series, mixtures, images, geometry, control and physics."""
_MOST_ROWS = 30


def title_of(name: str) -> str:
    """The sentence at the top of a model, without its full stop."""
    lines = (MODELS / f"{name}.slo").read_text(encoding="utf-8").splitlines()
    comment: list[str] = []
    for line in lines:
        if not line.startswith("#"):
            break
        comment.append(line.removeprefix("#").strip())
    return " ".join(comment).partition(". ")[0].rstrip(".")


def page(name: str, max_time: float = 10.0) -> str:
    """The page of one model, in Markdown with tables and pictures in HTML."""
    path = MODELS / f"{name}.slo"
    model = slomodel.compile(path)
    solution = model.solve(max_time=max_time)
    parts = [f"# {title_of(name)}", f"```slo\n{path.read_text(encoding='utf-8').strip()}\n```"]
    parts += [f"## {section.title}\n\n{section.body}" for section in data_sections(model)]
    parts += ["## Result", solution._repr_html_()]
    computed = _definitions(solution, model)
    if computed:
        parts += ["Definitions at the solution:", table(("name", "shape", "from", "to"), computed)]
    command = f"slomodel solve models/practice/{name}.slo --max-time {max_time:g}"
    parts.append(f"<p><code>{escape(command)}</code></p>")
    return "\n\n".join(parts) + "\n"


def _definitions(solution: slomodel.Solution, model: slomodel.Model) -> list[tuple[str, ...]]:
    """Name, shape and range of each definition at a solution."""
    rows: list[tuple[str, ...]] = []
    for name, shape in list(model.definitions.items())[:_MOST_ROWS]:
        value = solution[name]
        if value.size:
            shown = " × ".join(map(str, shape)) or "number"
            rows.append((name, shown, f"{value.min():.4g}", f"{value.max():.4g}"))
    return rows
