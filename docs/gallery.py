"""Pages of the gallery: models from practice with their data, a picture and the result of a run."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path

import pictures

import slomodel
from slomodel.cli.report import data_sections
from slomodel.html import table

MODELS = Path(__file__).parent.parent / "models" / "practice"
TITLES = {
    "eight_schools": "Eight schools",
    "election_multilevel": "Election",
    "wells_logit": "Wells: logistic regression",
    "bird_counts_sites": "Birds: Poisson, sites",
    "travel_mode": "Travel: conditional logit",
    "cox_recidivism": "Recidivism: Cox",
    "gp_regression": "Gaussian process",
    "topography_kriging": "Landscape: Kriging",
    "airline_holt_winters": "Airline: Holt-Winters",
    "garch11": "GARCH",
    "nile_kalman": "Nile: Kalman filter",
    "mining_hawkes": "Mines: Hawkes process",
    "cholera_sir_rk4": "Cholera: an ODE",
    "mixture_five": "Mixture of five",
    "item_response_pairs": "Item response",
    "digit_tv_deblur": "Deblurring a digit",
    "bundle_small": "Bundle adjustment",
    "pendulum_swing_up": "Pendulum swing-up",
    "iris_embedding": "Embedding of flowers",
    "lennard_jones_13": "Thirteen atoms",
}
"""Short titles, for the navigation."""
STARTS = {"cholera_sir_rk4": {"p": [0.5, 0.1, 10.0, 0.5]}}
"""Starts where the one of the model has no finite objective."""
NOTES = {
    "eight_schools": "The objective is least where `tau` goes to 0 and all effects agree. This "
    "is why one integrates over effects instead of maximising over them.",
    "pendulum_swing_up": "With these weights the least cost ends the swing short of upright.",
    "election_multilevel": "The infimum is approached and not attained: some `sigma` go to an end "
    "of their interval, and runs end without having converged.",
    "mixture_five": "Mixtures have many local minima; `solve(starts=20)` reaches better ones.",
    "item_response_pairs": "A run may end by its time; the objective then hardly changes.",
    "bundle_small": "Cameras and points may be moved and scaled together: the minimum is not "
    "isolated.",
}
_MOST_ROWS = 30


@dataclass(frozen=True, slots=True)
class Entry:
    """A page in Markdown and its picture as PNG."""

    page: str
    picture: bytes


def title_of(name: str) -> str:
    """The sentence at the top of a model, without its full stop."""
    lines = (MODELS / f"{name}.slo").read_text(encoding="utf-8").splitlines()
    comment: list[str] = []
    for line in lines:
        if not line.startswith("#"):
            break
        comment.append(line.removeprefix("#").strip())
    return " ".join(comment).partition(". ")[0].rstrip(".")


def entry(name: str, max_time: float = 10.0) -> Entry:
    """The page of one model and its picture."""
    path = MODELS / f"{name}.slo"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", slomodel.ModelWarning)
        model = slomodel.compile(path)
    given = {"x0": STARTS[name]} if name in STARTS else {}
    solution = model.solve(max_time=max_time, **given)
    words = "".join(f"{option}={value!r}, " for option, value in given.items())
    parts = [
        f"# {TITLES[name]}",
        f"{title_of(name)}.",
        f"![{title_of(name)}]({name}.png)",
        f"```slo\n{path.read_text(encoding='utf-8').strip()}\n```",
        f'```python\nimport slomodel\n\nmodel = slomodel.compile(slomodel.example("{name}"))\n'
        f"solution = model.solve({words}max_time={max_time:g})\n```",
    ]
    parts += [f"## {one.title}\n\n{raw(one.body)}" for one in data_sections(model)]
    parts += ["## Result", NOTES.get(name, ""), raw(solution._repr_html_())]
    computed = _definitions(solution, model)
    if computed:
        head = ("name", "shape", "least", "largest")
        parts += ["Definitions at the solution:", raw(table(head, computed))]
    drawn = pictures.picture(name, solution, dict(model.data))
    return Entry("\n\n".join(part for part in parts if part) + "\n", drawn)


def index() -> str:
    """The page that shows every picture."""
    cells = [
        f'<a href="{name}.html"><img src="{name}.png" alt="" loading="lazy">{title}</a>'
        for name, title in TITLES.items()
    ]
    style = (
        "<style>.pictures{display:grid;gap:1rem;grid-template-columns:"
        "repeat(auto-fill,minmax(12rem,1fr))}.pictures img{width:100%;display:block}</style>"
    )
    intro = (
        "Models from practice, each with its data, a picture and the result of a run. They come "
        'with the package: `slomodel.example("eight_schools")` is the path of one.'
    )
    return f'# Gallery\n\n{intro}\n\n{style}\n<div class="pictures">{"".join(cells)}</div>\n'


def raw(html: str) -> str:
    """HTML as one block, which Markdown leaves as it is."""
    return f"<div>{html}</div>"


def _definitions(solution: slomodel.Solution, model: slomodel.Model) -> list[tuple[str, ...]]:
    """Name, shape and range of each definition at a solution."""
    rows: list[tuple[str, ...]] = []
    for name, shape in list(model.definitions.items())[:_MOST_ROWS]:
        value = solution[name]
        if value.size:
            shown = " × ".join(map(str, shape)) or "number"
            rows.append((name, shown, f"{value.min():.4g}", f"{value.max():.4g}"))
    return rows
