"""Variables and definitions by name: their values and their derivatives at a point."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import final

import numpy as np
from numpy.typing import NDArray

from slomodel.calculus import gradient, jvp
from slomodel.errors import Diagnostic, DomainError, ShapeError
from slomodel.front.data.bind import Binding
from slomodel.front.elaboration.errors import suggestion
from slomodel.ir import build
from slomodel.ir.dims import concrete
from slomodel.ir.expr import Expr, Input
from slomodel.ir.walk import inputs, postorder
from slomodel.model.unconstrained import ChangeOfVariables
from slomodel.problem import Problem
from slomodel.reference import evaluate
from slomodel.rewrite import stable

Vector = NDArray[np.float64]
_MOST_ENTRIES = 10**8
"""Entries of the largest Jacobian, which takes 800 MB."""


@final
class Quantities:
    """The named quantities of a problem as functions of its variables.

    With `change`, the problem is the one in unconstrained variables u: a variable in an open set is
    a function x(u) of them.
    """

    def __init__(
        self, problem: Problem, binding: Binding, change: ChangeOfVariables | None = None
    ) -> None:
        self._problem = problem
        self._binding = binding
        self._graphs: dict[str, Expr] = {d.name: d.node for d in problem.data if d.values is None}
        if change is None:
            self._graphs |= {v.name: v.node for v in problem.variables}
        else:
            self._graphs |= change.graphs
        self._graphs |= problem.definitions

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a quantity. Raises DomainError for an unknown name."""
        return concrete(self.graph(name).shape, self._binding.sizes)

    def graph(self, name: str) -> Expr:
        """The graph of a quantity. Raises DomainError for an unknown name."""
        problem = self._problem
        result = self._graphs.get(name)
        if result is None and name == problem.objective_name:
            result = problem.objective
        if result is None:
            known = [*(v.name for v in problem.variables), *problem.definitions]
            listed = ", ".join(f"`{one}`" for one in known)
            remedy = suggestion(name, self._graphs) or f"there is {listed}"
            array, _, index = name.partition("[")
            if array in self._graphs and index.find("]") == len(index) - 1:
                remedy = self._element(array)
            elif not name.isidentifier():
                remedy = f"name the expression in the model, as in `let q = {name}`, and give `q`"
            message = f"the model has no variable and no definition `{name}`"
            raise DomainError(Diagnostic("E309", message, help=remedy))
        return result

    def _element(self, name: str) -> str:
        """How to read an element of an array."""
        remedy = f'`"{name}"` is the whole array: take an element of it, as in `["{name}"][0]`'
        dims = [str(dim) for dim in self._graphs[name].shape]
        result = next((dim for dim in dims if dim in self._binding.labels), None)
        if result is None:
            return remedy
        return f'{remedy}; the labels of `{result}`, in its order, are `model.labels["{result}"]`'

    def computable(self, name: str) -> bool:
        """Whether the data and sizes that a quantity reads are known."""
        return not self._lacking(self.graph(name))

    def value(self, name: str, parts: Mapping[str, Vector]) -> Vector:
        """The value of a quantity at the variables' arrays by name.

        Raises ShapeError if the quantity reads data without values.
        """
        graph = stable(self.graph(name))
        self._require(name, graph)
        return _real(evaluate([graph], self._values(graph, parts), self._binding.sizes)[0])

    def jacobian(self, name: str, parts: Mapping[str, Vector]) -> Vector:
        """The Jacobian (k, m) of a quantity of k elements by the m unknowns, in C order."""
        return self.derivatives(stable(self.graph(name)), parts, name)

    def derivatives(self, graph: Expr, parts: Mapping[str, Vector], name: str) -> Vector:
        """The Jacobian (k, m) of a graph with k elements by the m unknowns, in C order.

        `name` stands for the graph in errors.
        """
        self._require(name, graph)
        wrt = [variable.node for variable in self._problem.variables]
        columns = sum(parts[one.name].size for one in wrt)
        rows = int(np.prod(concrete(graph.shape, self._binding.sizes), dtype=np.int64))
        if rows * columns > _MOST_ENTRIES:
            message = f"the derivatives of `{name}` are {rows} times {columns} numbers, too many"
            raise DomainError(Diagnostic("E320", message, help="ask for a smaller quantity"))
        if graph in wrt:
            return _unit_rows(parts, graph, columns)
        if not graph.rank:
            slopes = gradient(graph, wrt)
            evaluated = self.evaluated(tuple(slopes), parts)
            return np.concatenate([one.ravel() for one in evaluated])[None, :]
        directions = {node: build.direction(node.name, node.shape) for node in wrt}
        along_each: dict[Expr, Expr] = dict(directions.items())
        (tangent,) = jvp([graph], along_each)
        values = self._values(tangent, parts)
        along = {node: np.zeros(parts[node.name].shape) for node in wrt}
        jacobian = np.empty((rows, columns))
        column = 0
        for node in wrt:
            for k in range(parts[node.name].size):
                along[node].flat[k] = 1.0
                given = {directions[one]: array for one, array in along.items()}
                (found_at,) = evaluate([tangent], values | given, self._binding.sizes)
                jacobian[:, column] = np.broadcast_to(found_at, self.shape_of(graph)).ravel()
                along[node].flat[k] = 0.0
                column += 1
        return jacobian

    def evaluated(
        self,
        graphs: tuple[Expr, ...],
        parts: Mapping[str, Vector],
        given: Mapping[Input, Vector] = MappingProxyType({}),
    ) -> list[Vector]:
        """The values of graphs over the variables, data and `given` inputs, each of its shape."""
        values: dict[Input, Vector] = dict(given)
        for graph in graphs:
            values |= self._values(graph, parts)
        result = evaluate(graphs, values, self._binding.sizes)
        return [
            _real(np.broadcast_to(array, self.shape_of(graph)))
            for graph, array in zip(graphs, result, strict=True)
        ]

    def shape_of(self, graph: Expr) -> tuple[int, ...]:
        """The shape of the values of a graph."""
        return concrete(graph.shape, self._binding.sizes)

    def _values(self, graph: Expr, parts: Mapping[str, Vector]) -> dict[Input, Vector]:
        arrays = self._binding.arrays
        known = {variable.node: parts[variable.name] for variable in self._problem.variables}
        return known | {
            one.node: arrays[one.name] for one in self._problem.data if one.name in arrays
        }

    def _lacking(self, graph: Expr) -> list[str]:
        """Names of the data and dims that a graph needs and that are not known."""
        arrays, sizes = self._binding.arrays, self._binding.sizes
        data = [n.name for n in inputs(graph) if n.role == "data" and n.name not in arrays]
        dims = {name for n in postorder(graph) for dim in n.shape for name, _ in dim.terms}
        return [*data, *sorted(dims - sizes.keys())]

    def _require(self, name: str, graph: Expr) -> None:
        lacking = self._lacking(graph)
        if lacking:
            listed = ", ".join(f"`{one}`" for one in lacking)
            message = f"`{name}` depends on {listed}, which is not known"
            raise ShapeError(Diagnostic("E706", message, help="give data that determine it"))


def _unit_rows(parts: Mapping[str, Vector], node: Expr, columns: int) -> Vector:
    """The Jacobian of a variable by all unknowns: rows of the identity."""
    first = 0
    for name, array in parts.items():
        if isinstance(node, Input) and name == node.name:
            return np.eye(array.size, columns, first)
        first += array.size
    raise AssertionError("a node that is not a variable")


def _real(array: NDArray[np.generic]) -> Vector:
    return np.array(array, dtype=np.float64)
