"""That roundings are accounted for in `bounds/arithmetic` alone, where they can be audited."""

from __future__ import annotations

import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import slomodel

BOUNDS = Path(slomodel.__file__).parent / "bounds"
# Small numbers as factors or terms, and what is known of doubles.
SUSPECTS = re.compile(
    r"\d+(\.\d*)?e-(1\d|[2-9]\d|\d{3})"
    r"|finfo|nextafter|spacing|eps|EPS|SMALLEST|UNIT|gamma",
    re.ASCII,
)
# By file numbers on which no proof depends, and counts of roundings with their reason beside them.
ALLOWED: dict[str, dict[str, str]] = {
    "certificates/critical_point.py": {"UNIT": "radii of boxes that are tried"},
    "certificates/neighbourhood.py": {
        "1e-12": "radii that are searched",
        "nextafter": "a radius strictly below a bound",
    },
    "certificates/slices.py": {
        "1e-14": "of elements of generators, sums of a few elements of x: 90 roundings",
        "finfo": "which directions are tried",
    },
    "pipeline.py": {"1e-12": "bounds of two ways so close are taken as equal"},
    "norms/curvature_sums.py": {
        "1e-100": "any positive factor proves a bound",
        "1e-300": "any positive vector proves a bound",
    },
    "norms/power_sums.py": {
        "1e-10": "where a factorisation is tried",
        "1e-13": "where a factorisation is tried",
    },
    "norms/spectral_norm.py": {
        "1e-12": "any positive vector proves a bound by Collatz and Wielandt",
        "1e-13": "where the estimate by Lanczos' method ends",
        "1e-14": "where a factorisation is tried",
    },
    "norms/quartic_norm.py": {"gamma": "of the steps, each by their magnitudes"},
    "ranges/affine_norms.py": {"1e-14": "shifts that are tried"},
    "ranges/curvature/curved_sums.py": {
        "1e-290": "above what products that underflow lose from a mean",
        "gamma": "of means of the rows of a sample",
    },
    "ranges/curvature/log_sum_exp.py": {"gamma": "of partial sums of weights >= 0, rounded down"},
    "ranges/values.py": {"gamma": "of the quotient by a period"},
    "ranges/elements/subdivision.py": {"finfo": "how fine a division is worth while"},
    "ranges/power_series/loops.py": {
        "UNIT": "remainders small enough to be left as they are",
        "1e-60": "scales that are tried: any positive one proves a bound",
    },
    "ranges/power_series/matrices.py": {
        "UNIT": "of products of coefficients with their degrees, and of rows nearly orthogonal",
    },
    "refinements/factor_pairs.py": {"gamma": "of a form of few variables"},
    "refinements/ridge_majorants.py": {"gamma": "a coefficient of that name"},
    "rules/series/chain_norms.py": {"1e-30": "norms below it are left to other rules"},
    "rules/power_series.py": {"1e-100": "widths of regions, which are enlarged to it"},
    "sampled.py": {
        "eps": "estimates, which are no bounds",
        "EPS": "estimates, which are no bounds",
        "finfo": "estimates, which are no bounds",
    },
    "useless.py": {"1e-300": "when a bound is reported as useless"},
}


def _suspects(path: Path) -> Iterator[str]:
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type in (tokenize.NUMBER, tokenize.NAME) and SUSPECTS.fullmatch(token.string):
                yield token.string


def test_no_rounding_is_accounted_for_outside_of_the_arithmetic() -> None:
    found = {
        str(path.relative_to(BOUNDS)): own
        for path in sorted(BOUNDS.rglob("*.py"))
        if path.parent.name != "arithmetic" and (own := set(_suspects(path)))
    }
    assert found == {file: set(own) for file, own in ALLOWED.items()}
