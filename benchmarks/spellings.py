"""Spellings near their edges: the answers of the text as it stands, and those of slomodel.

    python -m benchmarks.spellings [--write]

The spellings are those of `tests/rewrite/test_edges.py`, each at its point.
As it stands means that every operation of the text is computed in double precision, without stable
forms; its derivative is that of the same graph. The exact value and the norm of the exact gradient
come from 500 digits. `--write` puts the table in results/spellings.md.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Mapping
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
from tests.rewrite.test_edges import ROWS, TAILS, exact, model_of

RESULT = Path(__file__).parent / "results" / "spellings.md"
SHOWN = 1e-13
"""Relative error up to which an answer counts as right."""


def unchanged(root: Expr) -> Mapping[Expr, Expr]:
    """Every node in place of itself."""
    return {node: node for node in postorder(root)}


def answer(model: slomodel.Model, point: tuple[float, ...]) -> tuple[float, float]:
    """The value and the norm of the gradient."""
    with np.errstate(all="ignore"):
        return model.value(point), float(np.linalg.norm(model.gradient(point)))


def shown(got: float, want: float) -> str:
    """A number, or `right`."""
    if got == want or abs(got - want) <= SHOWN * abs(want):
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
    for variables, data, text, point, formula in (*ROWS, *TAILS):
        value, slopes = exact(formula, point)
        length = float(np.linalg.norm(slopes))
        with mock.patch("slomodel.rewrite.passes.rewritten", unchanged):
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
