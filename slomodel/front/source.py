"""Sources of models: a path that ends in `.slo`, the text of a model, a SymPy expression."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from slomodel.errors import Diagnostic, DomainError, ModelSyntaxError, SourceText
from slomodel.front.data.arrays import arrays_in_file
from slomodel.front.data.bind import Binding
from slomodel.front.data.loaders import StoredArray
from slomodel.front.data.sparse import given_again
from slomodel.front.data.user_arrays import columns_of
from slomodel.front.elaboration.elaborate import elaborate
from slomodel.front.lints.saddle_start import with_saddle_warning
from slomodel.front.lints.unread_elements import with_unread_warnings
from slomodel.front.sympy_expressions.constraints import checked_relations
from slomodel.front.sympy_expressions.source import SymPySource, by_name, is_expression
from slomodel.front.sympy_expressions.variable_sets import checked_bounds
from slomodel.front.text.latex import latex_of
from slomodel.front.text.mathml import mathml
from slomodel.front.text.parse import parse, read_source
from slomodel.front.text.syntax import STATEMENTS
from slomodel.ir.node import without_gc
from slomodel.problem import DataDeclaration, Place, Problem

_MOST_SHOWN = 10_000
_BARE = re.compile(r"[\w-]{1,255}")


@dataclass(frozen=True, slots=True)
class Recipe:
    """All that determines a model; a pickle stores this, and loading compiles the model again.

    Variables in `fixed` are held at values, which are among the `data`. With `unconstrained` the
    model is the one in unconstrained variables.
    """

    source: SourceText | SymPySource
    folder: Path | None
    data: Mapping[str, object]
    dims: Mapping[str, int]
    backend: str
    dtype: str = "float64"
    rewrites: tuple[str, ...] = ()
    unconstrained: bool = False
    fixed: tuple[str, ...] = ()
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def problem(self, dense: frozenset[Place] = frozenset()) -> Problem:
        """The problem that the source states, parsed again.

        `dense` are the places of conditions that hold for many of the index tuples.
        """
        if isinstance(self.source, SymPySource):
            return with_unread_warnings(self.source.problem(self.data, self.dims))
        return problem_of(self.source, dense)

    def latex(self) -> str:
        """The model as LaTeX: a text in index notation, an expression as SymPy prints it."""
        if isinstance(self.source, SymPySource):
            return self.source.latex()
        return latex_of(parse(self.source))

    def notebook(self) -> str | None:
        """LaTeX for display in a notebook; None if it is too long to be readable."""
        text = self.latex()
        return f"$\\displaystyle {text}$" if len(text) <= _MOST_SHOWN else None

    def formula(self) -> str | None:
        """MathML for display in a notebook; None for an expression or a text that is too long."""
        text = "" if isinstance(self.source, SymPySource) else self.latex()
        return mathml(text) if 0 < len(text) <= _MOST_SHOWN else None

    def self_contained(self, problem: Problem, binding: Binding) -> Recipe:
        """The recipe with copies of all data, so that files and arrays are not read again."""
        data = {
            declared.name: _as_given(declared, binding)
            for declared in problem.data
            if declared.name in binding.arrays
            and (declared.file is not None or declared.name in self.data)
        }
        return replace(self, data=data, labels=binding.labels)


def _as_given(declared: DataDeclaration, binding: Binding) -> NDArray[np.generic] | StoredArray:
    """The array of data as a user gives it: positions from 1 where declared so, or labels."""
    if declared.entries is not None:
        return given_again(declared, binding.arrays, binding.sizes)
    array = binding.arrays[declared.name]
    if declared.has_labels:
        texts: NDArray[np.generic] = np.array(binding.labels[str(declared.domain)])
        return np.asarray(texts[array.astype(int)])
    return array + declared.first if declared.first else array


def recipe_of(
    source: object,
    variables: object,
    data: object,
    dims: Mapping[str, int] | None,
    backend: str,
    dtype: str,
    rewrites: tuple[str, ...] = (),
    bounds: object = None,
    subject_to: object = None,
) -> Recipe:
    """The recipe for the arguments of `compile`. Raises SlomodelError for a wrong type."""
    if data is not None and not isinstance(data, Mapping):
        declared = _data_names(source, variables)
        data = (
            arrays_in_file(data, declared) if isinstance(data, Path) else columns_of(data, declared)
        )
    options: list[tuple[str, str, object]] = [("data", "arrays", data), ("dims", "sizes", dims)]
    for option, what, given in options:
        if given is not None and not isinstance(given, Mapping):
            kind = type(given).__name__
            message = f"{option}= takes a dict of {what} by name, not an object of {kind}"
            raise DomainError(Diagnostic("E602", message, help=f"write {option}={{'name': value}}"))
    arrays, sizes = by_name(data or {}), by_name(dims or {})
    if is_expression(source, variables):
        intervals = {} if bounds is None else checked_bounds(bounds)
        limits = () if subject_to is None else checked_relations(subject_to)
        expression = SymPySource.of(source, variables, arrays, intervals, limits)
        # None declares a symbol as data that get their values later.
        known = {name: value for name, value in arrays.items() if value is not None}
        return Recipe(expression, None, known, sizes, backend, dtype, rewrites)
    text, folder = source_of(source)
    if variables is not None:
        message = "variables= is for SymPy expressions; a text declares its own"
        raise DomainError(Diagnostic("E604", message, help="leave out variables="))
    if subject_to is not None:
        message = "subject_to= is for SymPy expressions; a text states its own constraints"
        raise DomainError(Diagnostic("E604", message, help="write `subject to x + y <= 1`"))
    if bounds is not None:
        message = "bounds= is for SymPy expressions; a text declares sets of its own"
        raise DomainError(Diagnostic("E604", message, help="write `var x in [0, 1]`"))
    return Recipe(text, folder, arrays, sizes, backend, dtype, rewrites)


def _data_names(source: object, variables: object) -> Collection[str]:
    """The names that a model gives to data, or to all symbols of a SymPy expression."""
    if is_expression(source, variables):
        return {str(symbol) for symbol in getattr(source, "free_symbols", ())}
    return [one.name.text for one in parse(source_of(source)[0]).data]


def example(name: str) -> Path:
    """The path of a model that comes with slomodel, such as `rosenbrock` or `eight_schools`.

    Raises DomainError, with all names, for another one.
    """
    package = Path(__file__).parents[1]
    folder = package / "models"
    folder = folder if folder.is_dir() else package.parent / "models"
    paths = {path.stem: path for path in sorted(folder.rglob("*.slo"))}
    if name not in paths:
        message = f"no example has the name `{name}`"
        remedy = f"there is {', '.join(paths)}"
        raise DomainError(Diagnostic("E309", message, help=remedy))
    return paths[name]


@without_gc()
def problem_of(text: SourceText, dense: frozenset[Place] = frozenset()) -> Problem:
    """The problem that a model text states, with all warnings.

    `dense` are the places of conditions that hold for many of the index tuples.
    """
    return with_saddle_warning(with_unread_warnings(elaborate(parse(text), text, dense)))


def source_of(source: object) -> tuple[SourceText, Path | None]:
    """The text of a model and the folder that its paths are relative to (None for plain text)."""
    if isinstance(source, Path) or (isinstance(source, str) and _names_a_model(source)):
        path = Path(source)
        return read_source(path), path.parent
    if isinstance(source, str):
        if _is_path(source):
            raise _no_model(source.strip())
        return SourceText(source), None
    kind = type(source).__name__
    message = (
        "compile takes model text, the path of a .slo file or a SymPy expression, "
        f"not an object of {kind}"
    )
    remedy = "for example slomodel.compile('var x[3] minimize sumsq(x - 1)')"
    raise DomainError(Diagnostic("E602", message, help=remedy))


def _names_a_model(text: str) -> bool:
    return text.strip().endswith(".slo") and "\n" not in text.strip()


def _is_path(text: str) -> bool:
    """Whether a text is meant as a path: one word with a slash or a dot, or a bare name."""
    words = text.split()
    if len(words) != 1 or words[0] in STATEMENTS:
        return False
    return "/" in text or "." in text or _BARE.fullmatch(words[0]) is not None


def _no_model(name: str) -> ModelSyntaxError:
    message = f"`{name}` is neither a model nor the name of a .slo file"
    remedy = "a path must end in .slo"
    if os.path.isfile(f"{name}.slo"):
        remedy = f"did you mean `{name}.slo`?"
    elif not os.path.exists(name):
        remedy = f"there is no file `{name}`, and {remedy}"
    return ModelSyntaxError(Diagnostic("E001", message, help=remedy))
