"""A SymPy expression with its variables and data, in a form that can be pickled at any depth."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import sympy as sp
from sympy.core.symbol import Str

from slomodel.errors import Diagnostic, TargetLimit
from slomodel.front.sympy_expressions.constraints import Relations
from slomodel.front.sympy_expressions.elaborate import problem_from_sympy
from slomodel.front.sympy_expressions.free_names import name_of
from slomodel.front.sympy_expressions.names import NAMED, listed
from slomodel.front.sympy_expressions.variable_sets import Bounds
from slomodel.problem import Problem

_Value = TypeVar("_Value")
_Record = tuple[object, tuple[int, ...]]


def is_expression(source: object, variables: object) -> bool:
    """Whether an object is a SymPy expression; a number is one if `variables` are given."""
    if isinstance(source, (sp.Basic, sp.MatrixBase)):
        return True
    is_number = isinstance(source, (int, float)) and not isinstance(source, bool)
    return variables is not None and is_number


def by_name(given: Mapping[str, _Value]) -> dict[str, _Value]:
    """Values by name; keys may be symbols, IndexedBases or MatrixSymbols of these names."""
    return {name_of(key) if isinstance(key, NAMED) else key: v for key, v in given.items()}


@dataclass(frozen=True, slots=True)
class SymPySource:
    """An objective, its variables in order (None for natural order), and the names of data.

    `bounds` are closed intervals of variables: name, lower and upper end. `subject_to` are the
    constraints.
    """

    expr: sp.Basic
    variables: tuple[sp.Basic | str, ...] | None
    data_names: frozenset[str]
    bounds: tuple[tuple[str, float, float], ...] = ()
    subject_to: Relations = ()

    @staticmethod
    def of(
        expr: object,
        variables: object,
        data: Mapping[str, object],
        bounds: Bounds,
        subject_to: Relations = (),
    ) -> SymPySource:
        """The source for the arguments of `compile`."""
        if isinstance(expr, sp.MatrixBase):
            expr = expr.as_immutable()
        elif isinstance(expr, (int, float)):
            expr = sp.Float(expr) if isinstance(expr, float) else sp.Integer(expr)
        order = None if variables is None else listed(variables)
        intervals = tuple((name, *ends) for name, ends in bounds.items())
        return SymPySource(expr, order, frozenset(data), intervals, subject_to)

    def problem(self, data: Mapping[str, object], dims: Mapping[str, int]) -> Problem:
        """The problem; shapes that the expression does not state come from the arrays in `data`."""
        shapes = {name: result for name, v in data.items() if (result := _shape(v)) is not None}
        bounds = {name: (low, high) for name, low, high in self.bounds}
        own = (self.expr, self.variables, self.data_names, dims, shapes, bounds, self.subject_to)
        return problem_from_sympy(*own)

    def latex(self) -> str:
        """The model as SymPy prints it. Raises TargetLimit if it is nested too deeply."""
        try:
            text = rf"\min \; {sp.latex(self.expr)}"
            limits = r",\; ".join(sp.latex(one) for _, one in self.subject_to)
            return text + (rf" \quad \text{{subject to}} \quad {limits}" if limits else "")
        except RecursionError:
            message = "the expression is nested too deeply for SymPy's printer"
            remedy = "print parts of it"
            raise TargetLimit(Diagnostic("E801", message, help=remedy)) from None

    def __reduce__(self) -> tuple[Callable[..., SymPySource], tuple[object, ...]]:
        variables = None if self.variables is None else sp.Tuple(*map(_basic, self.variables))
        order = variables and _flat(variables)
        limits = tuple((name, _flat(one)) for name, one in self.subject_to)
        return _restored, (_flat(self.expr), order, self.data_names, self.bounds, limits)


def _basic(variable: sp.Basic | str) -> sp.Basic:
    return Str(variable) if isinstance(variable, str) else variable


def _shape(value: object) -> tuple[int, ...] | None:
    if isinstance(value, Path):
        return None
    from scipy.sparse import sparray, spmatrix

    if isinstance(value, (sparray, spmatrix)):
        return tuple(value.shape)
    try:
        return np.asarray(value).shape
    except Exception:  # The error about its type is raised when the data are bound.
        return None


def _flat(root: sp.Basic) -> list[_Record]:
    """The nodes in postorder: either an atom, or a class with the positions of its arguments."""
    place: dict[sp.Basic, int] = {}
    records: list[_Record] = []
    stack = [root]
    while stack:
        node = stack[-1]
        missing = [part for part in node.args if part not in place]
        if missing:
            stack.extend(missing)
            continue
        stack.pop()
        if node not in place:
            place[node] = len(records)
            own = node.func if node.args else node
            records.append((own, tuple(place[part] for part in node.args)))
    return records


def _rebuilt(records: Sequence[_Record]) -> sp.Basic:
    nodes: list[sp.Basic] = []
    for own, parts in records:
        nodes.append(own(*(nodes[k] for k in parts)) if parts else own)  # type: ignore[operator]
    return nodes[-1]


def _restored(
    expr: Sequence[_Record],
    variables: Sequence[_Record] | None,
    data_names: frozenset[str],
    bounds: tuple[tuple[str, float, float], ...] = (),
    subject_to: tuple[tuple[str, Sequence[_Record]], ...] = (),
) -> SymPySource:
    order = None
    if variables is not None:
        entries = _rebuilt(variables).args
        order = tuple(entry.name if isinstance(entry, Str) else entry for entry in entries)
    limits = tuple((name, _rebuilt(one)) for name, one in subject_to)
    return SymPySource(_rebuilt(expr), order, data_names, bounds, limits)
