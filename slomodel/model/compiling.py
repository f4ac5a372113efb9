"""`compile`: from what a user wrote to a Model."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from slomodel.front.report import kinks_of_data, warn
from slomodel.front.source import recipe_of
from slomodel.model.model import Model
from slomodel.rewrite import chosen


def compile(
    source: object,
    variables: object = None,
    *,
    data: Mapping[str, object] | None = None,
    dims: Mapping[str, int] | None = None,
    backend: str = "auto",
    dtype: str = "float64",
    strict: bool = False,
    rewrites: bool | Collection[str] = True,
) -> Model:
    """A model from a SymPy expression, from text or from the path of a .slo file.

    `variables` orders the variables of a SymPy expression, by symbol or name.
    `data` maps names to arrays, numbers or `pathlib.Path`s; what is missing can be given later
    with `bind` (`None` names a symbol that is data, without values). `dims` gives sizes that the
    data does not. `backend` is `c` (which
    needs a C compiler), `numexpr`, `numpy` or `auto`: what the environment variable
    SLOMODEL_BACKEND says, else `c` where it can be had and numexpr elsewhere; or `cupy`, which
    needs CuPy and an NVIDIA GPU. `dtype` is what
    kernels compute in, `float64` or `float32` (points and the solver's own work stay float64).
    `strict` makes a kink an error instead of a NonsmoothWarning. `rewrites` are
    the passes that save work: all, none, or those of these names, which `explain()` tells.
    Every failure is a SlomodelError.
    """
    recipe = recipe_of(source, variables, data, dims, backend, dtype, chosen(rewrites))
    problem = recipe.problem()
    warn(problem.warnings, strict)
    model = Model.of(recipe, problem)
    warn(kinks_of_data(problem, model._binding), strict)
    return model
