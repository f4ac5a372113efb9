"""The epigraph form of a problem with kinks: values of kinks become variables, their pieces bounds.

Where f does not decrease with |u|, minimising f is the same as minimising it with a variable t in
the place of |u|, subject to u ≤ t and −u ≤ t: for a given x the least t is the best. The same holds
for the largest of several, and with opposite signs for the smallest where f does not increase with
it. The new problem is smooth, and least absolute deviations become a linear program. Boyd &
Vandenberghe, *Convex Optimization* (2004), Sections 4.1.3 and 6.1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial, reduce

import numpy as np
from numpy.typing import NDArray

from slomodel.calculus.kinked_products import remaining_kinks
from slomodel.calculus.monotone import EITHER, FALLING, RISING, directions
from slomodel.front.data.bind import Binding
from slomodel.front.data.points import Vector
from slomodel.functions import (
    abs,
    add,
    differentiated,
    hypot,
    maximum,
    minimum,
    neg,
    relu,
    root,
    square,
    sub,
)
from slomodel.ir import build
from slomodel.ir.dims import concrete
from slomodel.ir.expr import Const, Expr, Extreme, Input, Map, is_map
from slomodel.ir.walk import dependents, first_met, postorder
from slomodel.model.replaced_variables import part_of, replaced, vector_of
from slomodel.problem import Constraint, DeclaredSet, Problem, Variable
from slomodel.reference import evaluate
from slomodel.rewrite import composed

Values = Mapping[Input, NDArray[np.generic]]


@dataclass(frozen=True, slots=True)
class EpigraphForm:
    """A problem whose last variables stand for the values of `kinks`, nodes of another one."""

    problem: Problem
    kinks: tuple[Expr, ...]

    def values(self, at: Values, binding: Binding) -> Vector:
        """The values (k,) of the kinks where the inputs of the other problem have values `at`."""
        values = evaluate(self.kinks, at, binding.sizes)
        return np.concatenate([np.zeros(0), *map(np.ravel, values)])


def epigraph_form(problem: Problem, binding: Binding, most: int) -> EpigraphForm | None:
    """The epigraph form of a bound problem, with a limited number of new variables.

    None if there is no kink, or one at a place where the form is not equivalent. Kinks of other
    functions remain.
    """
    limits = [one.value for one in problem.constraints]
    order = differentiated(problem.objective, *limits)
    varying = dependents(order, set[Expr](problem.inputs).__contains__)
    if not any(node in varying and (_is_convex(node) or _is_concave(node)) for node in order):
        return None
    kinked: set[Expr] = set()
    for limit in (problem.objective, *limits):
        seen = remaining_kinks(limit, differentiated(limit), varying).nodes
        kinked |= {node for node in seen & varying if _is_convex(node) or _is_concave(node)}
    pieces = _pieces((problem.objective, *limits), kinked)
    kinks = tuple(node for node in order if node in pieces)
    sizes = [math.prod(concrete(node.shape, binding.sizes)) for node in kinks]
    wanted = {node: RISING if _is_convex(node) else FALLING for node in kinked}
    if not 0 < sum(sizes) <= most or not _has_directions(problem, binding, order, wanted):
        return None
    if problem.vector is None:
        return _with_arrays(problem, kinks, pieces)
    return _with_numbers(problem, problem.vector, kinks, pieces)


def with_smoothed_norms(
    problem: Problem, binding: Binding
) -> tuple[Problem, tuple[Expr, ...]] | None:
    """The problem with √(‖u‖² + e²) in place of norms ‖u‖, e its last variable, and the norms.

    That is no less than ‖u‖, so that constraints with which norms rise hold, and exceeds it by at
    most e. None if there is no norm, or one that f or a constraint may fall with.
    """
    limits = [one.value for one in problem.constraints]
    order = differentiated(problem.objective, *limits)
    varying = dependents(order, set[Expr](problem.inputs).__contains__)
    kinked: set[Expr] = set()
    for node in (problem.objective, *limits):
        kinked |= remaining_kinks(node, differentiated(node), varying).nodes & varying
    every = {node for node in kinked if is_map(node, root, hypot)}
    outer = first_met((problem.objective, *limits), every)
    norms = tuple(node for node in order if node in outer)
    squares = [_sum_of_squares(node) for node in norms]
    nested = not every.isdisjoint(postorder(*squares))
    wanted = dict.fromkeys(norms, RISING)
    if not norms or nested or not _has_directions(problem, binding, order, wanted):
        return None
    length = Variable(build.variable("smoothing of norms", ()))
    variables = (*problem.variables, length)
    values: dict[Expr, Expr] = {}
    e: Expr = length.node
    vector = problem.vector
    if problem.vector is not None:
        vector = vector_of(variables)
        n = len(problem.variables)
        values[problem.vector] = part_of(vector, 0, n)
        e = build.reshape(part_of(vector, n, 1), ())
    became = composed(squares, values)
    for node, own in zip(norms, squares, strict=True):
        more = build.apply(add, became[own], build.apply(square, e))
        values[node] = build.apply(root, more)
    return replace(replaced(problem, values), variables=variables, vector=vector), norms


def _sum_of_squares(norm: Expr) -> Expr:
    """‖u‖² for a norm ‖u‖; several numbers are one norm of another, hypot(hypot(a, b), c)."""
    terms, stack = [], [norm]
    while stack:
        one = stack.pop()
        if isinstance(one, Map) and one.function is hypot:
            stack += build.aligned(one)
        elif is_map(one, root):
            terms.append(one.operands[0])
        else:
            terms.append(build.apply(square, one))
    return reduce(partial(build.apply, add), terms)


def _has_directions(
    problem: Problem, binding: Binding, order: Sequence[Expr], wanted: Mapping[Expr, int]
) -> bool:
    """Whether the objective and the constraints change with nodes in the wanted directions."""
    roots = {problem.objective: FALLING if problem.sense == "maximize" else RISING}
    for one in problem.constraints:
        roots[one.value] = roots.get(one.value, 0) | (EITHER if one.is_equation else RISING)
    varying = dependents(order, set[Expr](problem.inputs).__contains__)
    seen = directions(roots, order, varying, _signs(problem, binding))
    return all(seen.get(one) == way for one, way in wanted.items())


def _is_convex(node: Expr) -> bool:
    """Whether a node is the largest of pieces."""
    is_largest = isinstance(node, Extreme) and node.which == "max"
    return is_largest or is_map(node, abs, maximum, relu)


def _is_concave(node: Expr) -> bool:
    """Whether a node is the smallest of pieces."""
    return (isinstance(node, Extreme) and node.which == "min") or is_map(node, minimum)


def _signs(problem: Problem, binding: Binding) -> Callable[[Expr], int]:
    """The signs of nodes that depend on data alone."""
    known = {d.node: binding.arrays[d.name] for d in problem.data}

    @cache
    def sign(node: Expr) -> int:
        value = np.asarray(evaluate([node], known, binding.sizes)[0], dtype=np.float64)
        return 1 if (value >= 0.0).all() else -1 if (value <= 0.0).all() else 0

    return sign


def _pieces(roots: Iterable[Expr], kinked: Collection[Expr]) -> dict[Expr, list[Expr]]:
    """The pieces of the first kinks below the roots, and of those below their pieces.

    A maximum that only another maximum reads is none: its pieces are those of the other.
    """
    result: dict[Expr, list[Expr]] = {}
    stack, seen = [*roots], set(roots)
    while stack:
        node = stack.pop()
        below: Sequence[Expr] = node.operands
        if node in kinked:
            below = result[node] = _pieces_of(node)
        fresh = [one for one in below if one not in seen]
        seen.update(fresh)
        stack += fresh
    return result


def _pieces_of(node: Expr) -> list[Expr]:
    """The arrays whose largest or smallest elements a node has."""
    convex, result = _is_convex(node), []
    stack = [node.operands[0] if isinstance(node, Extreme) else node]
    while stack:
        one = stack.pop()
        if convex and is_map(one, abs):
            stack.append(one.operands[0])
            result.append(build.apply(neg, one.operands[0]))
        elif convex and is_map(one, relu):
            stack += one.operands[0], build.const(0.0)
        elif isinstance(one, Map) and one.function is (maximum if convex else minimum):
            stack += build.aligned(one)
        else:
            result.append(one)
    return result


def _with_arrays(
    problem: Problem, kinks: Sequence[Expr], pieces: Mapping[Expr, Sequence[Expr]]
) -> EpigraphForm:
    """The form with an array for each kink."""
    values: dict[Expr, Expr] = {}
    new: list[Variable] = []
    bounds: list[Constraint] = []
    for k, node in enumerate(kinks):
        t = values[node] = build.variable(f"value of kink {k + 1}", node.shape)
        numbers, others = _parted(node, pieces[node])
        new.append(Variable(t, set=_box(node, numbers)))
        bounds += _bounds(k, node, t, others)
    result = replaced(_with_bounds(problem, bounds), values)
    return EpigraphForm(replace(result, variables=(*problem.variables, *new)), tuple(kinks))


def _with_numbers(
    problem: Problem, vector: Input, kinks: Sequence[Expr], pieces: Mapping[Expr, Sequence[Expr]]
) -> EpigraphForm | None:
    """The form of a problem over numbers, whose vector gets the elements of the kinks as well.

    None if their shapes depend on data.
    """
    if not all(dim.is_literal for node in kinks for dim in node.shape):
        return None
    sizes = [math.prod(dim.const for dim in node.shape) for node in kinks]
    new: list[Variable] = []
    for k, (node, size) in enumerate(zip(kinks, sizes, strict=True)):
        box = _box(node, _parted(node, pieces[node])[0])
        names = [f"value {i + 1} of kink {k + 1}" for i in range(size)]
        new += [Variable(build.variable(name, ()), set=box) for name in names]
    variables = (*problem.variables, *new)
    longer = vector_of(variables)
    start = len(problem.variables)
    values: dict[Expr, Expr] = {vector: part_of(longer, 0, start)}
    bounds: list[Constraint] = []
    for k, (node, size) in enumerate(zip(kinks, sizes, strict=True)):
        t = values[node] = build.reshape(part_of(longer, start, size), node.shape)
        bounds += _bounds(k, node, t, _parted(node, pieces[node])[1])
        start += size
    result = replaced(_with_bounds(problem, bounds), values)
    return EpigraphForm(replace(result, variables=variables, vector=longer), tuple(kinks))


def _with_bounds(problem: Problem, bounds: Sequence[Constraint]) -> Problem:
    return replace(problem, constraints=(*problem.constraints, *bounds))


def _parted(node: Expr, pieces: Sequence[Expr]) -> tuple[list[float], list[Expr]]:
    """The pieces of a kink that are numbers, and the others."""
    numbers = [one.value for one in pieces if isinstance(one, Const)]
    return numbers, [one for one in pieces if not isinstance(one, Const)]


def _box(node: Expr, numbers: Sequence[float]) -> DeclaredSet | None:
    """The box of the values of a kink with these numbers among its pieces."""
    if not numbers:
        return None
    if _is_convex(node):
        return DeclaredSet("box", "values of a kink", low=build.const(max(numbers)))
    return DeclaredSet("box", "values of a kink", high=build.const(min(numbers)))


def _bounds(k: int, node: Expr, t: Expr, pieces: Sequence[Expr]) -> list[Constraint]:
    """The constraints that the values t of kink k are on the right sides of its pieces."""
    if isinstance(node, Extreme):
        t = build.spread(t, node)
    result = []
    for j, piece in enumerate(pieces):
        sides = (piece, t) if _is_convex(node) else (t, piece)
        name = f"piece {j + 1} of kink {k + 1}"
        value = build.apply(sub, *sides)
        result.append(Constraint(name, name, value, is_equation=False, orientation=1))
    return result
