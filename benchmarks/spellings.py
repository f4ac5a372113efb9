"""Spellings near their edges: the answers of the text as it stands, and those of slomodel.

    python -m benchmarks.spellings [--write]

The spellings are those of `tests/rewrite/test_edges.py`, each at its point, and those of
`test_continued.py`, `test_limited_exponents.py`, `test_addition_theorems.py`,
`test_cancelling_sums.py` and `test_joint_zeros.py`, each at the point where the text as it stands
is worst, and those of `test_logs_of_factors.py`. As it stands means that every operation of the
text is computed in double precision, without stable forms; its derivative is that of the same
graph. The exact value and the norm of the exact gradient come from 500 digits.
`--write` puts the table in results/spellings.md.
"""

from __future__ import annotations

import argparse
import math
import sys
import warnings
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from unittest import mock

import numpy as np

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).parent.parent))

import slomodel
from benchmarks.evaluate import in_columns
from slomodel.errors import ModelWarning
from slomodel.ir.expr import Expr
from slomodel.ir.walk import postorder
from tests.rewrite.random_algebra import tree, value
from tests.rewrite.test_addition_theorems import CASES as NEIGHBOURS
from tests.rewrite.test_cancelling_sums import CANCELLING
from tests.rewrite.test_continued import CASES as CONTINUED
from tests.rewrite.test_edges import ROWS, TAILS, Formula, exact, model_of
from tests.rewrite.test_joint_zeros import CASES as JOINT_ZEROS
from tests.rewrite.test_limited_exponents import CASES as LIMITED
from tests.rewrite.test_logs_of_factors import FORMULAS

RESULT = Path(__file__).parent / "results" / "spellings.md"
UNDERFLOW = 1e-290
"""Absolute error that counts as right."""
LEAST = 1e-55
"""The exact slope of a formula of numbers below takes more digits."""
MOST = 1e12
"""Neighbours of larger numbers are the same double."""
SHOWN = 1e-13
"""Relative error up to which an answer counts as right."""


def unchanged(root: Expr) -> tuple[Mapping[Expr, Expr], bool]:
    """Every node in place of itself."""
    return {node: node for node in postorder(root)}, False


def as_written() -> AbstractContextManager[object]:
    """Graphs are not rewritten into stable forms meanwhile."""
    names = ("continued", "with_limited_exponents", "with_scaled_roots")
    replaced = {name: lambda graph: graph for name in names}
    forms = {"with_shared_scales": unchanged, **replaced}
    return mock.patch.multiple("slomodel.rewrite.passes", **forms)


def answer(model: slomodel.Model, point: tuple[float, ...]) -> tuple[float, float]:
    """The value and the norm of the gradient."""
    with np.errstate(all="ignore"):
        return model.value(point), math.hypot(*model.gradient(point))


Spelling = tuple[str, str, str, tuple[float, ...], Formula]


def spellings() -> list[Spelling]:
    """Variables, data, text, point and formula of each spelling."""
    found: list[Spelling] = [*ROWS, *TAILS]
    limited = [(text, formula, points) for text, (formula, points) in LIMITED.items()]
    neighbours = [
        (text, formula, [(x,) for x in points if abs(x) < MOST])
        for text, formula, points in NEIGHBOURS
    ]
    for text, formula, points in (*CONTINUED, *limited, *neighbours, *CANCELLING, *JOINT_ZEROS):
        variables = "x" if len(points[0]) == 1 else "x, y"
        with as_written():
            model = model_of(variables, "", text, "numpy")
            point = max(
                (one for one in points if min(map(abs, one)) > LEAST),
                key=lambda one: _lost(model, one, formula),
            )
        found.append((variables, "", text, point, formula))
    for text, point in FORMULAS:
        found.append(("x, y"[: 3 * len(point) - 2], "", text, point, _formula(text)))
    return found


def _formula(text: str) -> Formula:
    return lambda *at: value(tree(text), dict(zip("xy", at, strict=False)))


def _lost(model: slomodel.Model, point: tuple[float, ...], formula: Formula) -> float:
    """The error of the value and slope, relative or absolute; infinite where one is not finite."""
    value, slopes = exact(formula, point)
    want = value, math.hypot(*slopes)
    errors = [
        abs(got - own) / (abs(own) or 1.0)
        for got, own in zip(answer(model, point), want, strict=True)
    ]
    return max(error if np.isfinite(error) else np.inf for error in errors)


def shown(got: float, want: float) -> str:
    """A number, or `right`."""
    if got == want or abs(got - want) <= SHOWN * abs(want) + UNDERFLOW:
        return "right"
    return f"{got:.6g}"


def main(arguments: list[str] | None = None) -> int:
    """Print the table, or write it."""
    parser = argparse.ArgumentParser(description="Compare spellings with what they mean.")
    parser.add_argument("--write", action="store_true", help=f"write results/{RESULT.name}")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore", ModelWarning)
    lines = [
        (
            "spelling",
            "at",
            "exact value",
            "exact slope",
            "as it stands",
            "slope",
            "slomodel",
            "slope",
        )
    ]
    for variables, data, text, point, formula in spellings():
        value, slopes = exact(formula, point)
        length = math.hypot(*slopes)
        with as_written():
            plain = answer(model_of(variables, data, text, "numpy"), point)
        own = answer(model_of(variables, data, text, "numpy"), point)
        cells = [f"{value:.10g}", f"{length:.6g}"]
        cells += [
            shown(*pair) for one in (plain, own) for pair in zip(one, (value, length), strict=True)
        ]
        at = ", ".join(f"{x:g}" for x in point)
        lines.append((f"`{text}`".replace("|", "\\|"), at, *cells))
    table = in_columns(lines, True)
    count = len(lines) - 1
    told = "Printed by `python -m benchmarks.spellings --write`; the module explains it."
    if options.write:
        RESULT.write_text(
            f"# {count} spellings near their edges\n\n{told}\n\n{table}\n", encoding="utf-8"
        )
    else:
        print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
