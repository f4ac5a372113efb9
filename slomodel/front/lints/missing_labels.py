"""A warning about labels that are written where tables have no value, such as `NA`."""

from __future__ import annotations

from collections.abc import Collection

from slomodel.errors import Diagnostic
from slomodel.front.data.bind import Binding
from slomodel.front.data.loaders.csv_file import MISSING_CELLS
from slomodel.problem import Problem

_WRITTEN = MISSING_CELLS - {"none"}
"""Without `none`, which is a name of groups too, as of those without a treatment."""


def missing_labels(problem: Problem, binding: Binding, given: Collection[str]) -> list[Diagnostic]:
    """A warning for each dim that has such a label, unless its labels were `given`."""
    result = []
    for dim, labels in binding.labels.items():
        wrong = next((one for one in labels if one.strip().lower() in _WRITTEN), None)
        own = [d for d in problem.data if d.has_labels and str(d.domain) == dim]
        if wrong is None or dim in given or not own:
            continue
        names = ", ".join(f"`{one.name}`" for one in own)
        message = f"`{wrong}` in data {names} is read as a label of `{dim}`, one like the others"
        remedy = (
            "if it stands for a missing value, leave such rows out: `drop missing` after the name "
            f"of a file; if it is a name, labels={{{dim!r}: […]}} says so"
        )
        result.append(Diagnostic("W206", message, own[0].span, help=remedy, severity="warning"))
    return result
