"""The problem in unconstrained variables u, and the maps between them and the user's variables x.

No other module uses both layouts. Users see x: starts, points, results. The solver moves u: the
same names in the same order, each with the shape that its set prescribes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from slomodel.errors import Diagnostic, DomainError
from slomodel.front.data.bind import Binding, counted
from slomodel.front.data.points import drawn, vector_layout
from slomodel.ir import build
from slomodel.ir.expr import Expr, Input
from slomodel.ir.walk import inputs
from slomodel.model.closed_sets import moved_inside
from slomodel.model.open_sets.boxes import OpenBox, is_end
from slomodel.model.open_sets.matrices import CholeskyFactor, Correlation
from slomodel.model.open_sets.open_set_map import BoxEnds, OpenSetMap
from slomodel.model.open_sets.vectors import OpenSimplex, Ordered
from slomodel.model.replaced_variables import joined, over, part_of, replaced
from slomodel.problem import Problem, SetKind, TupleCount, Variable
from slomodel.reference import evaluate
from slomodel.solve import Solution
from slomodel.solve.stagnation.diagnosis import AT_EDGE

Vector = NDArray[np.float64]

OPEN_SET_MAPS: Mapping[SetKind, OpenSetMap] = {
    "open_box": OpenBox(),
    "open_simplex": OpenSimplex(),
    "ordered": Ordered(),
    "cholesky_factor": CholeskyFactor(),
    "correlation": Correlation(),
}
"""The change of variables of each kind of open set."""


def change_of(variable: Variable) -> OpenSetMap | None:
    """The change of variables of an open set; None for other variables."""
    return None if variable.set is None else OPEN_SET_MAPS.get(variable.set.kind)


def unbounded_ends(problem: Problem, binding: Binding) -> frozenset[str]:
    """The variables in open boxes with infinite elements in ends that are data."""
    known = {d.node: binding.arrays[d.name] for d in problem.data if d.name in binding.arrays}
    result = set()
    for variable in problem.variables:
        ends = (
            variable.set.numbers
            if variable.set is not None and variable.set.kind == "open_box"
            else ()
        )
        for end in ends:
            read = inputs(end)
            if read and all(node in known for node in read):
                (value,) = evaluate([end], known, binding.sizes)
                if not is_end(_real(value)).all():
                    result.add(variable.name)
    return frozenset(result)


def _with_ends(variable: Variable, unbounded: Collection[str]) -> Variable:
    if variable.set is None or variable.name not in unbounded:
        return variable
    return replace(variable, set=replace(variable.set, unbounded=True))


class ChangeOfVariables:
    """x = x(u): the variables in open sets as functions of variables without sets."""

    def __init__(self, problem: Problem, unbounded: Collection[str] = ()) -> None:
        """Variables in `unbounded` have infinite elements in ends that are data."""
        problem = replace(
            problem,
            variables=tuple(_with_ends(variable, unbounded) for variable in problem.variables),
        )
        self.written = problem
        self._users: dict[Expr, Expr] = {}
        variables: list[Variable] = []
        counts: list[TupleCount] = list(problem.counts)
        for one in problem.variables:
            change = change_of(one)
            if change is None or one.set is None:
                self._users[one.node] = one.node
                variables.append(one)
                continue
            free = change.free_shape(one.name, one.shape, one.set)
            u = build.variable(one.name, free.shape)
            counts += free.counts
            self._users[one.node] = change.user(u, one.shape, over(one.set, self._users))
            variables.append(Variable(u, one.init, one.span))
        values: dict[Expr, Expr] = dict(self._users)
        if problem.vector is not None:
            values = {problem.vector: _vector(problem, problem.vector)}
        result = replaced(problem, values)
        self.problem = replace(result, variables=tuple(variables), counts=tuple(counts))
        self._infinite = [one.name for one in problem.data if unbounded and one.may_be_infinite]

    @property
    def graphs(self) -> dict[str, Expr]:
        """x(u) of each variable by name."""
        return {variable.name: self._users[variable.node] for variable in self.written.variables}

    def binding(self, binding: Binding) -> Binding:
        """The binding of the problem in u, given that of the problem in x.

        Infinite ends are replaced by the largest finite numbers, since bounds refuse infinite data.
        """
        ends = {name: binding.arrays[name] for name in self._infinite if name in binding.arrays}
        finite = {name: np.nan_to_num(array) for name, array in ends.items()}
        return counted(self.problem, replace(binding, arrays={**binding.arrays, **finite}))

    def user(self, u: Mapping[str, Vector], binding: Binding) -> dict[str, Vector]:
        """The arrays x(u) by name; `binding` is that of the problem in u.

        x(u) that overflows is the largest finite number, which is still in the set.
        """
        nodes = {variable.node: u[variable.name] for variable in self.problem.variables}
        names = [one.name for one in self.written.variables]
        roots = [self._users[one.node] for one in self.written.variables]
        result = evaluate(roots, self._values(binding) | nodes, binding.sizes)
        x = {name: _real(one) for name, one in zip(names, result, strict=True)}
        if all(np.isfinite(one).all() for one in u.values()):
            x = {name: np.nan_to_num(one, nan=np.nan) for name, one in x.items()}
        return x

    def free(self, x: Mapping[str, Vector], binding: Binding, what: str = "x") -> dict[str, Vector]:
        """The arrays u by name with x(u) = x. Raises DomainError for a point outside a set."""
        return {
            variable.name: self._free_one(variable, x, binding, what)
            for variable in self.written.variables
        }

    def start(self, seed: int, binding: Binding) -> dict[str, Vector]:
        """A start in x by name: as given by `init`, and a random point of each other open set.

        That is x(u) of a standard normal u.
        """
        shapes = vector_layout(self.written, binding.sizes).shapes
        inside = {
            variable.name
            for variable in self.written.variables
            if variable.init.kind == "inside" and change_of(variable) is not None
        }
        free = vector_layout(self.problem, binding.sizes).shapes
        drawing = {name: free[name] if name in inside else shape for name, shape in shapes.items()}
        values = drawn(self.written, binding, seed, drawing)
        known = self._moved(values, inside, binding)
        for one in self.written.variables:
            change = change_of(one)
            if change is None or one.set is None:
                continue
            if one.init.kind == "number":
                start = one.init.parameters[0]
                known[one.name] = change.at_number(start, shapes[one.name], one.set)
            elif one.name in inside:
                known[one.name] = self._user_one(one, values[one.name], known, binding)
        return known

    def _moved(
        self, values: Mapping[str, Vector], inside: Collection[str], binding: Binding
    ) -> dict[str, Vector]:
        """The drawn values, those of closed sets moved into them; open sets may depend on these."""
        layout = vector_layout(self.written, binding.sizes)
        users = {
            name: np.zeros(shape) if name in inside else values[name]
            for name, shape in layout.shapes.items()
        }
        return layout.unpack(moved_inside(self.written, binding, layout.pack(users)))

    def _user_one(
        self, variable: Variable, u: Vector, known: Mapping[str, Vector], binding: Binding
    ) -> Vector:
        """x of one variable, where those declared before have the values `known`."""
        change, declared = change_of(variable), variable.set
        assert change is not None
        assert declared is not None
        node = build.variable(
            variable.name, change.free_shape(variable.name, variable.shape, declared).shape
        )
        graph = change.user(node, variable.shape, declared)
        values = self._values(binding) | self._known(known) | {node: u}
        (result,) = evaluate([graph], values, binding.sizes)
        return _real(result)

    def _free_one(
        self, variable: Variable, x: Mapping[str, Vector], binding: Binding, what: str
    ) -> Vector:
        change, declared, own = change_of(variable), variable.set, x[variable.name]
        if change is None or declared is None:
            return own
        values = self._values(binding) | self._known(x)
        low, high = (
            None if end is None else _real(evaluate([end], values, binding.sizes)[0])
            for end in (declared.low, declared.high)
        )
        ends = BoxEnds(low, high)
        reason = change.outside(own, declared, ends)
        if reason:
            name = variable.name
            message = f"{what} is outside the set `{name} {declared.text}`: {name}{reason}"
            remedy = "give a point inside"
            if what == "the start":
                remedy = (
                    "give an `init` inside, or none: the start is then a random point of the set"
                )
            raise DomainError(Diagnostic("E321", message, variable.span, help=remedy))
        with np.errstate(all="ignore"):
            return change.free(own, declared, ends)

    def logarithmic(self, u: Mapping[str, Vector]) -> dict[str, Vector]:
        """1 for the elements of u on a logarithmic scale, 0 for others, by name."""
        marks = {name: np.zeros(array.shape) for name, array in u.items()}
        for variable in self.written.variables:
            change = change_of(variable)
            if change is not None and variable.set is not None:
                marks[variable.name] = change.logarithmic(u[variable.name], variable.set).astype(
                    np.float64
                )
        return marks

    def near_edge(self, u: Mapping[str, Vector]) -> list[Variable]:
        """The variables that u puts at the edge of their sets."""
        return [
            variable
            for variable in self.written.variables
            if (change := change_of(variable)) is not None
            and variable.set is not None
            and change.near_edge(u[variable.name], variable.set)
        ]

    def check(self, name: str, value: Vector, binding: Binding) -> None:
        """Raise DomainError for a value outside the set of a variable.

        Sets whose ends depend on other variables are not checked.
        """
        variable = next(one for one in self.written.variables if one.name == name)
        numbers = () if variable.set is None else variable.set.numbers
        if all(node.role == "data" for node in inputs(*numbers)):
            self._free_one(variable, {name: value}, binding, "the value")

    def _known(self, x: Mapping[str, Vector]) -> dict[Input, Vector]:
        return {
            variable.node: x[variable.name]
            for variable in self.written.variables
            if variable.name in x
        }

    def _values(self, binding: Binding) -> dict[Input, Vector]:
        return {
            d.node: binding.arrays[d.name] for d in self.written.data if d.name in binding.arrays
        }


def _vector(problem: Problem, u: Input) -> Expr:
    """x(u) as the vector of all variables, where runs of scalars in equal sets share one map."""
    parts: list[tuple[int, Expr]] = []
    start = 0
    for _, run in groupby(
        problem.variables, key=lambda one: one.set and replace(one.set, span=None)
    ):
        first, *others = run
        count = 1 + len(others)
        part, change = part_of(u, start, count), change_of(first)
        if change is not None and first.set is not None:
            part = change.user(part, part.shape, first.set)
        parts.append((start, part))
        start += count
    return joined(start, parts)


class UserCoordinates:
    """Both layouts of the points of one binding: x (n,) of the user, u (m,) of the solver."""

    def __init__(self, change: ChangeOfVariables, binding: Binding) -> None:
        self._change = change
        self._binding = change.binding(binding)
        self._binding.require_sizes()
        self._users = vector_layout(change.written, self._binding.sizes)
        self._free = vector_layout(change.problem, self._binding.sizes)

    def start(self, seed: int) -> Vector:
        """A start x (n,), drawn from the distributions in the model's `init`s."""
        return self._users.pack(self._change.start(seed, self._binding))

    def to_user(self, u: Vector) -> Vector:
        """The user's vector x (n,) of a vector u (m,)."""
        return self._users.pack(self._change.user(self._free.unpack(u), self._binding))

    def logarithmic(self) -> Vector:
        """1 for the elements of u (m,) on a logarithmic scale, 0 for others."""
        nowhere = self._free.unpack(np.zeros(self._free.n))
        return self._free.pack(self._change.logarithmic(nowhere))

    def remarked(self, solution: Solution) -> Solution:
        """The solution with a remark about the variables at the edge of their sets."""
        u = solution.unconstrained
        remark = "" if u is None else self.remark(u)
        # The remark is about variables that have sets already.
        message = solution.message.removesuffix(AT_EDGE).rstrip()
        return replace(solution, message=f"{message} {remark}") if remark else solution

    def remark(self, u: Vector) -> str:
        """A sentence about the variables at the edge of their sets; empty if there are none."""
        edges = self._change.near_edge(self._free.unpack(u))
        if not edges:
            return ""
        listed = ", ".join(f"`{edge.name}`" for edge in edges)
        where = "is at the edge of its set" if len(edges) == 1 else "are at the edge of their sets"
        scales = any(one.set and one.set.low is not None and one.set.high is None for one in edges)
        joint = ", as for a scale that is estimated together with its effects (integrate over them)"
        return (
            f"{listed} {where}: there may be no best point inside{joint * scales}, or a better one "
            "from another start."
        )

    def to_free(self, x: Vector, what: str = "x0") -> Vector:
        """The u (m,) of a vector x (n,). Raises DomainError, which names `what`, outside a set."""
        return self._free.pack(self._change.free(self._users.unpack(x), self._binding, what))


def _real(array: NDArray[np.generic]) -> Vector:
    return np.asarray(array, dtype=np.float64)
