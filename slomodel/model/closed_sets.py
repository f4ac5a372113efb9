"""Closed sets of variables: from their declarations to the set of the solver's iterates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from slomodel.errors import Diagnostic, DomainError
from slomodel.front.data.bind import Binding
from slomodel.front.data.points import Vector, vector_layout
from slomodel.ir.dims import concrete
from slomodel.ir.expr import Expr, Input
from slomodel.ir.walk import inputs
from slomodel.problem import DeclaredSet, Problem, SetKind, Variable
from slomodel.reference import evaluate
from slomodel.solve.sets.ball import EuclideanBall
from slomodel.solve.sets.balls import RowBalls
from slomodel.solve.sets.box import Box
from slomodel.solve.sets.convex_set import Set
from slomodel.solve.sets.positive_semidefinite import PositiveSemidefinite
from slomodel.solve.sets.product import ProductSet, SetPart
from slomodel.solve.sets.reordered import ReorderedSet
from slomodel.solve.sets.simplex import Simplex
from slomodel.solve.sets.sphere import Sphere

# Tolerance on the distance of a given value from its set, relative to its norm.
ROUNDED = 1e-8

Shape = tuple[int, ...]
Number = Callable[[Expr | None, float], Vector]
"""(graph of data or None, value for None) -> its values (n,)."""


def is_closed(variable: Variable) -> bool:
    """Whether the variable is declared in a closed set."""
    return variable.set is not None and not variable.set.is_open


def closed_set(problem: Problem, binding: Binding) -> Set | None:
    """The product of the sets of all variables; None if none of them has a closed one."""
    if not any(map(is_closed, problem.variables)):
        return None
    known = {d.node: binding.arrays[d.name] for d in problem.data if d.name in binding.arrays}
    parts: list[SetPart] = []
    at = 0
    for variable in problem.variables:
        shape = concrete(variable.shape, binding.sizes)
        n = int(np.prod(shape))
        if n:
            where = _set_of(variable, shape, known, binding)
            _append(parts, SetPart(at, at + n, where))
        at += n
    if not parts:
        return Box(np.empty(0), np.empty(0))
    return parts[0].set if len(parts) == 1 else ProductSet(tuple(parts))


def _append(parts: list[SetPart], part: SetPart) -> None:
    """Append a part, as one box with the last if both are boxes."""
    last = parts[-1] if parts else None
    if last is not None and isinstance(last.set, Box) and isinstance(part.set, Box):
        low = np.concatenate([last.set.low, part.set.low])
        high = np.concatenate([last.set.high, part.set.high])
        parts[-1] = SetPart(last.start, part.stop, Box(low, high))
    else:
        parts.append(part)


def _set_of(
    variable: Variable,
    shape: Shape,
    known: Mapping[Input, NDArray[np.generic]],
    binding: Binding,
) -> Set:
    """The set of one variable, over its elements in C order."""

    def number(graph: Expr | None, otherwise: float) -> Vector:
        value: NDArray[np.generic] = np.asarray(otherwise)
        if graph is not None:
            if any(node not in known for node in inputs(graph)):
                binding.require_data()
            (value,) = evaluate([graph], known, binding.sizes)
        return np.broadcast_to(np.asarray(value, dtype=np.float64), shape).ravel()

    if variable.set is None or variable.set.is_open:
        return Box(number(None, -np.inf), number(None, np.inf))
    return _BUILD[variable.set.kind](variable.set, shape, number)


def _box(declared: DeclaredSet, shape: Shape, number: Number) -> Set:
    """The box of a declaration. Raises DomainError for an empty one."""
    low, high = number(declared.low, -np.inf), number(declared.high, np.inf)
    empty = np.flatnonzero(~((low <= high) & (low < np.inf) & (high > -np.inf)))
    if empty.size:
        ends = f"between {low[empty[0]]:g} and {high[empty[0]]:g}"
        message = f"there is no number in the set `{declared.text}`: element {empty[0]} is {ends}"
        remedy = "give ends in order; -inf and inf stand for none"
        raise DomainError(Diagnostic("E308", message, declared.span, help=remedy))
    return Box(low, high)


def _simplex(declared: DeclaredSet, shape: Shape, number: Number) -> Set:
    return Simplex(shape, declared.axis)


def _ball(declared: DeclaredSet, shape: Shape, number: Number) -> Set:
    radius, centre = float(number(declared.radius, 1.0)[0]), number(declared.center, 0.0)
    if declared.entire or len(shape) < 2:
        return EuclideanBall(centre, radius)
    centre, length = _lines(centre, shape, declared.axis), shape[declared.axis]
    return ReorderedSet.along(declared.axis, shape, RowBalls(length, radius, centre))


def _sphere(declared: DeclaredSet, shape: Shape, number: Number) -> Set:
    radius, centre = float(number(declared.radius, 1.0)[0]), number(declared.center, 0.0)
    if declared.entire or len(shape) < 2:
        return Sphere(len(centre), radius, centre)
    centre, length = _lines(centre, shape, declared.axis), shape[declared.axis]
    return ReorderedSet.along(declared.axis, shape, Sphere(length, radius, centre))


def _lines(x: Vector, shape: Shape, axis: int) -> Vector:
    """The lines along an axis of an array of `shape` in C order, one after another, as (n,)."""
    return np.moveaxis(x.reshape(shape), axis, -1).ravel()


def _psd(declared: DeclaredSet, shape: Shape, number: Number) -> Set:
    return PositiveSemidefinite(shape[0])


_BUILD: Mapping[SetKind, Callable[[DeclaredSet, Shape, Number], Set]] = {
    "box": _box,
    "simplex": _simplex,
    "ball": _ball,
    "sphere": _sphere,
    "psd": _psd,
}


def check_value(problem: Problem, binding: Binding, name: str, value: Vector) -> None:
    """Raise DomainError for a value of a variable outside its closed set."""
    one = next(variable for variable in problem.variables if variable.name == name)
    where = closed_set(replace(problem, variables=(one,)), binding)
    flat = value.ravel()
    slack = ROUNDED * max(1.0, float(np.linalg.norm(flat)))
    if where is None or one.set is None or where.contains(flat, slack):
        return
    message = f"the value is outside the set `{name} {one.set.text}`"
    raise DomainError(Diagnostic("E321", message, one.span, help="give a point inside"))


def moved_inside(problem: Problem, binding: Binding, x: Vector) -> Vector:
    """A random start x (n,) with its variables moved into their closed sets.

    A variable without `init` becomes a random point of its set, computed from a standard normal
    one; one that is drawn from a distribution is projected. Others are unchanged.
    """
    where = closed_set(problem, binding)
    if where is None:
        return x
    nearest = np.empty_like(x)
    where.project(x, nearest)
    layout = vector_layout(problem, binding.sizes)
    drawn, projected = layout.unpack(x), layout.unpack(nearest)
    points = layout.unpack(random_point(where, x))
    for variable in problem.variables:
        if is_closed(variable) and variable.init.kind == "inside":
            drawn[variable.name] = points[variable.name]
        elif is_closed(variable) and variable.init.kind in ("normal", "uniform"):
            drawn[variable.name] = projected[variable.name]
    return layout.pack(drawn)


def random_point(where: Set, z: Vector) -> Vector:
    """A point (n,) of a set, in its interior if it has one, from a standard normal z (n,)."""
    match where:
        case ProductSet():
            return np.concatenate([random_point(part.set, z[part.of]) for part in where.parts])
        case ReorderedSet():
            return where.back(random_point(where.of, z[where.order]))
        case Box():
            return _in_box(where, z)
        case Simplex():
            return _in_simplex(where, z)
        case EuclideanBall():
            # Uniform in direction, and at a distance of less than the radius.
            return where.centre + z * (where.radius / np.sqrt(1.0 + z @ z))
        case RowBalls():
            rows = z.reshape(-1, where.K)
            shrunk = where.radius / np.sqrt(1.0 + (rows * rows).sum(axis=1))
            return where.centre + np.repeat(shrunk, where.K) * z
        case PositiveSemidefinite():
            root = z.reshape(where.k, where.k)
            z = (root @ root.T / where.k).ravel()
    point = np.empty_like(z)
    where.project(z, point)
    return point


def _in_box(where: Box, z: Vector) -> Vector:
    """The logistic map of z between two bounds, at distance |z| from a single one, else z."""
    low, high = np.isfinite(where.low), np.isfinite(where.high)
    with np.errstate(invalid="ignore"):
        between = where.low + (where.high - where.low) / (1.0 + np.exp(-1.7 * z))
    between = np.clip(between, where.low, where.high)
    beside = [between, where.low + np.abs(z), where.high - np.abs(z)]
    return np.select([low & high, low, high], beside, z)


def _in_simplex(where: Simplex, z: Vector) -> Vector:
    weights: Vector = np.exp(z.reshape(where.shape))
    weights /= weights.sum(axis=where.axis, keepdims=True)
    return weights.ravel()
