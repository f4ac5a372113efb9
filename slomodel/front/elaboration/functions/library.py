"""The library of log densities: functions in the language itself, which any model may call."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from slomodel.front.text.parse import parse, read_source
from slomodel.front.text.syntax import Fn

_HEAD = re.compile(r"^# ([^\n]*)\nfn (\w+)\(", re.MULTILINE)
PATH = Path(__file__).parents[2] / "densities.slo"
COUNTS = {
    "poisson_lpmf": ("n",),
    "poisson_log_lpmf": ("n",),
    "binomial_lpmf": ("n", "N"),
    "binomial_logit_lpmf": ("n", "N"),
    "neg_binomial_2_lpmf": ("n",),
    "neg_binomial_2_log_lpmf": ("n",),
    "multinomial_lpmf": ("y",),
    "dirichlet_multinomial_lpmf": ("y",),
    "poisson_log_glm_lpmf": ("n",),
    "beta_binomial_lpmf": ("n", "N"),
    "neg_binomial_lpmf": ("n",),
}
"""The parameters that are counts: data given for them must be whole numbers from 0 on."""
_FROM_ZERO = ("exponential_{}", "weibull_{}", "gamma_lpdf", "chi_square_lpdf")
_POSITIVE = (
    "lognormal_{}",
    "inv_gamma_lpdf",
    "inv_chi_square_lpdf",
    "scaled_inv_chi_square_lpdf",
    "pareto_lpdf",
    "rayleigh_lpdf",
    "frechet_lpdf",
    "loglogistic_lpdf",
)
_SUPPORTS = {
    "numbers from 0 on": _FROM_ZERO,
    "numbers above 0": _POSITIVE,
    "numbers from 0 to 1": ("beta_lpdf", "beta_proportion_lpdf"),
    "0 or 1": ("bernoulli_lpmf", "bernoulli_logit_lpmf", "bernoulli_logit_glm_lpmf"),
}
SUPPORTS = {
    name.format(ending): support
    for support, names in _SUPPORTS.items()
    for name in names
    for ending in (("lpdf", "lcdf", "lccdf") if "{}" in name else ("",))
}
"""The support of a density on a part of the real line: data given as `y` must lie in it."""
ORDERED = {
    "binomial_lpmf": ("n", "N"),
    "binomial_logit_lpmf": ("n", "N"),
    "beta_binomial_lpmf": ("n", "N"),
    "pareto_lpdf": ("y_min", "y"),
}
"""Two parameters of which the first is at most the second wherever the density is not 0."""


@dataclass(frozen=True, slots=True)
class LibraryFunction:
    """A function of the library: its declaration, and one line for `slomodel functions`."""

    fn: Fn
    meaning: str


@cache
def library() -> Mapping[str, LibraryFunction]:
    """The functions of the library by name; it is read on first use."""
    source = read_source(PATH)
    meanings = {name: meaning for meaning, name in _HEAD.findall(source.text)}
    return {fn.name.text: LibraryFunction(fn, meanings[fn.name.text]) for fn in parse(source).fns}


def density_meant(name: str) -> str:
    """`did you mean …?` for the name of a distribution, or an empty string."""
    endings = ("_lpdf", "_lpmf")
    known = (f"{name}{ending}" for ending in endings if f"{name}{ending}" in library())
    return next((f"did you mean `{one}`?" for one in known), "")
