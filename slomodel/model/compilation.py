"""`compile`: from the source of a model to the compiled model."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from slomodel.front.explanation import warn
from slomodel.front.lints.data_values import infinite_terms, missing_labels
from slomodel.front.lints.kinks import kinks_of_data
from slomodel.front.source import recipe_of
from slomodel.model.model import Model
from slomodel.model.waiting import waiting
from slomodel.rewrite import chosen


def compile(
    source: object,
    variables: object = None,
    *,
    data: object = None,
    dims: Mapping[str, int] | None = None,
    backend: str = "auto",
    dtype: str = "float64",
    strict: bool = False,
    rewrites: bool | Collection[str] = True,
    bounds: object = None,
    subject_to: object = None,
    labels: Mapping[str, Sequence[str]] | None = None,
) -> Model:
    """Compile a model: a SymPy expression, the text of a model, or the path of a .slo file.

    - `variables`: order of the variables of a SymPy expression, by symbol or name.
    - `data`: arrays, numbers or `pathlib.Path`s by name; or a DataFrame (of pandas or polars) or
      the `pathlib.Path` of a csv, npz or json file, of which the columns or arrays that the model
      declares are read. Missing data can be given later with `bind`; `None` declares a symbol of a
      SymPy expression as data without values.
    - `dims`: sizes that do not follow from the data.
    - `backend`: `c` (needs a C compiler), `numexpr`, `numpy`, `cupy` (needs CuPy and an NVIDIA
      GPU), or `auto`: the value of the environment variable SLOMODEL_BACKEND, else `c` where a
      compiler exists and numexpr elsewhere.
    - `dtype`: precision of the kernels, `float64` or `float32`; points and the solver's own
      arithmetic are float64 in both cases.
    - `strict`: a kink is an error instead of a NonsmoothWarning.
    - `rewrites`: the passes that save work: all, none, or those named; `explain()` lists them.
    - `bounds`: closed intervals of variables of a SymPy expression, `{x: (0, 1), y: (0, None)}`.
      Other symbols that are assumed positive or negative are in open half-lines, nonnegative and
      nonpositive ones in closed half-lines.
    - `subject_to`: constraints of a SymPy expression, relations in a list or by label in a dict.
      Those that bound a single symbol without assumptions are taken as its interval.
    - `labels`: for data declared with `labels`, lists of texts by dim, in place of those that the
      data hold.

    Every failure is a SlomodelError.
    """
    own = (source, variables, data, dims, backend, dtype, chosen(rewrites), bounds, subject_to)
    recipe = recipe_of(*own)
    recipe = replace(recipe, labels=labels or {})
    with waiting("compiling"):
        problem = recipe.problem()
    warn(problem.warnings, strict)
    with waiting("compiling"):
        model = Model.of(recipe, problem)
    warn(kinks_of_data(problem, model._binding), strict)
    warn(missing_labels(problem, model._binding, recipe.labels), strict)
    warn(infinite_terms(problem, model._binding), strict)
    return model
