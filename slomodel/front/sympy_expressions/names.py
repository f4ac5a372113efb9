"""Classification of the names in a SymPy expression as variables, data or sizes, with shapes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import sympy as sp

from slomodel.errors import DomainError, ShapeError, SlomodelError
from slomodel.front.elaboration.values import number_of, value_of
from slomodel.front.sympy_expressions.errors import error
from slomodel.front.sympy_expressions.free_names import FreeNames, name_of
from slomodel.front.sympy_expressions.scope import IndexScope, Translation, size
from slomodel.front.sympy_expressions.shapes import inferred
from slomodel.front.sympy_expressions.variable_sets import Bounds, variable_of
from slomodel.ir import build
from slomodel.ir.dims import Shape, literal, named
from slomodel.ir.expr import Affine, Expr, Input
from slomodel.ir.walk import substitute
from slomodel.problem import DataDeclaration, DimDeclaration, Variable
from slomodel.rewrite.rolling import LEAST_TERMS

NAMED = (sp.Symbol, sp.IndexedBase, sp.MatrixSymbol)


@dataclass(frozen=True, slots=True)
class DeclaredNames:
    """The declarations of a model."""

    variables: tuple[Variable, ...]
    data: tuple[DataDeclaration, ...]
    dims: tuple[DimDeclaration, ...]


def listed(variables: object) -> tuple[sp.Basic | str, ...]:
    """The variables given by the caller: one, or several in order, by object or name."""
    one_by_one = isinstance(variables, (list, tuple, sp.Tuple, sp.MatrixBase))
    entries = tuple(variables) if one_by_one else (variables,)  # type: ignore[arg-type]
    for entry in entries:
        if not isinstance(entry, (str, *NAMED)):
            message = f"`{entry}` in variables= is not a symbol, IndexedBase, MatrixSymbol or name"
            remedy = "give the whole array: `[x]`, not `[x[0], x[1]]`"
            raise error("E405", message, None, remedy)
    names = [entry if isinstance(entry, str) else name_of(entry) for entry in entries]
    for name, times in Counter(names).items():
        if times > 1:
            raise error("E405", f"`{name}` occurs twice in variables=")
    return entries


def declare(
    free: FreeNames,
    order: Sequence[sp.Basic | str] | None,
    data_names: Collection[str],
    shapes: Mapping[str, tuple[int, ...]],
    translation: Translation,
    bounds: Bounds,
) -> DeclaredNames:
    """Classify the names and set their values in `translation`.

    Variables are in natural order, or in the order given; `bounds` are of variables by name.
    """
    names = sorted(free.objects, key=_natural)
    dims = [name for name in names if name in free.sizes or name in translation.sizes]
    data = [name for name in names if name in data_names]
    known = {*dims, *data}
    rest = [name for name in names if name not in known]
    for name in dims:
        _check_size(name, free, data)
        translation.values[name] = number_of(named(name))
    chosen = rest if order is None else _chosen(free, order, rest, dims, data)
    if not chosen:
        raise error("E405", "the model has no variable", None, _NO_VARIABLE)
    for name in bounds:
        if name not in chosen:
            message = f"`{name}` in bounds= is not a variable of the model"
            raise error("E405", message, None, f"variables are {', '.join(chosen)}"[:200])
    nodes = []
    for name in chosen:
        _check_variable(name, free)
        nodes.append(build.variable(name, _shape(name, free, None, translation)))
    arrays = [build.data(name, _shape(name, free, shapes.get(name), translation)) for name in data]
    translation.values.update({node.name: value_of(node) for node in (*nodes, *arrays)})
    return DeclaredNames(
        tuple(variable_of(node, free.objects.get(node.name), bounds) for node in nodes),
        tuple(DataDeclaration(node) for node in arrays),
        tuple(DimDeclaration(name) for name in dims),
    )


_NO_VARIABLE = "name them: `compile(expr, [x])` accepts a constant too"


def _natural(name: str) -> tuple[tuple[int, str], ...]:
    """Sort key with x2 before x10: runs of digits count as numbers."""
    parts = re.split(r"([0-9]+)", name)
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in parts)


def _chosen(
    free: FreeNames,
    order: Sequence[sp.Basic | str],
    rest: Sequence[str],
    dims: Sequence[str],
    data: Sequence[str],
) -> list[str]:
    chosen = [entry if isinstance(entry, str) else name_of(entry) for entry in order]
    for name in chosen:
        if name in dims or name in data:
            what = "data" if name in data else "a size"
            raise error("E405", f"`{name}` is in variables=, and it is {what}")
    taken = set(chosen)
    for name in rest:
        if name not in taken:
            message = f"`{name}` is neither in variables= nor given in data= or dims="
            raise error("E405", message, free.objects[name], f"add `{name}` to one of them")
    return chosen


def _check_size(name: str, free: FreeNames, data: Sequence[str]) -> None:
    used = free.objects[name]
    if name in data:
        message = f"`{name}` is a size, in a limit or shape, and is given in data="
        raise error("E405", message, free.sizes.get(name), f"give it in dims={{{name!r}: …}}")
    if not isinstance(used, sp.Symbol):
        message = f"`{name}` is given in dims=, and a size is a number"
        raise error("E405", message, used, "give arrays in data=")


def _check_variable(name: str, free: FreeNames) -> None:
    node = free.objects.get(name)
    if name in free.indices:
        message = f"no Sum binds the index `{name}`, and it is not in dims="
        remedy = f"write `Sum(term, ({name}, 0, n - 1))`, or give dims={{{name!r}: …}}"
        raise error("E406", message, free.indices[name], remedy)
    if isinstance(node, sp.Symbol) and node.is_integer is True:
        message = f"the variable `{name}` is declared as an integer, and variables are real"
        remedy = "declare it without `integer=True`, or give it in data= or dims="
        raise error("E403", message, node, remedy, DomainError)


def _shape(
    name: str, free: FreeNames, given: tuple[int, ...] | None, translation: Translation
) -> Shape:
    """The shape stated by the object, or else inferred from the given data and the indices."""
    node = free.objects.get(name)
    if node is None or isinstance(node, sp.Symbol):
        return ()
    if node.shape is not None:
        return tuple(size(part, IndexScope(translation)) for part in node.shape)
    if name not in free.uses:
        raise _shapeless(name, node)
    return inferred(name, free.uses[name], given, translation)


def _shapeless(name: str, node: sp.Basic) -> SlomodelError:
    message = f"the shape of `{name}` is unknown: it is never indexed"
    remedy = f"write `IndexedBase({name!r}, shape=(n,))`"
    return error("E409", message, node, remedy, ShapeError)


def packed(declared: DeclaredNames, translation: Translation) -> Input | None:
    """The vector that replaces all variables by its elements; None if they are not replaced."""
    count = len(declared.variables)
    if count < LEAST_TERMS or any(one.shape for one in declared.variables):
        return None
    names = [variable.name for variable in declared.variables]
    vector = build.variable(f"{names[0]} … {names[-1]}", (literal(count),))
    for k, name in enumerate(names):
        translation.values[name] = value_of(_element(vector, k))
    return vector


def unpacked(graph: Expr, vector: Input, declared: DeclaredNames) -> Expr:
    """The graph in terms of the variables themselves."""
    nodes = [variable.node for variable in declared.variables]
    (result,) = substitute((graph,), {_element(vector, k): node for k, node in enumerate(nodes)})
    return result


def _element(vector: Input, k: int) -> Expr:
    return build.gather(vector, [Affine(literal(k), ())], ())
