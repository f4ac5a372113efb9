"""Problems over other variables: some held at values, or given as functions of new ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from slomodel.functions import add
from slomodel.ir import build
from slomodel.ir.dims import literal
from slomodel.ir.expr import Affine, Expr, Input
from slomodel.problem import DataDeclaration, DeclaredSet, Problem, Variable
from slomodel.rewrite import carried, choices_added, composed, rewritten


def replaced(problem: Problem, values: Mapping[Expr, Expr]) -> Problem:
    """The problem that reads `values` in place of its inputs, in stable forms.

    The declarations are unchanged, and warnings about the model as written are dropped.
    """
    limits = [constraint.value for constraint in problem.constraints]
    written = problem.plain.get(problem.objective, problem.objective)
    roots = (problem.objective, written, *limits, *problem.spans, *problem.definitions.values())
    became = composed(roots, values)
    spans = {became[node]: span for node, span in reversed([*problem.spans.items()])}
    stable = rewritten(became[problem.objective])
    gathered = (became[node] for node in problem.gathered if node in became)
    objective = stable[became[problem.objective]]
    has_choices = problem.plain or choices_added(became[problem.objective], stable)
    plain = rewritten(became[written], choices=False) if has_choices else {}
    return replace(
        problem,
        plain={objective: plain[became[written]]} if plain else {},
        objective=objective,
        spans={**carried(spans, plain), **carried(spans, stable)},
        constraints=tuple(
            replace(one, value=rewritten(became[one.value])[became[one.value]])
            for one in problem.constraints
        ),
        gathered=frozenset(stable.get(node, node) for node in gathered),
        definitions={name: became[node] for name, node in problem.definitions.items()},
        warnings=(),
    )


def over(declared: DeclaredSet, values: Mapping[Expr, Expr]) -> DeclaredSet:
    """The set with `values` in place of the inputs that its numbers read."""
    low, high, radius, center = (
        None if one is None else composed((one,), values)[one]
        for one in (declared.low, declared.high, declared.radius, declared.center)
    )
    return replace(declared, low=low, high=high, radius=radius, center=center)


def held(problem: Problem, names: Collection[str]) -> Problem:
    """The problem in which the variables of these names are data."""
    if not names:
        return problem
    data = {v.name: build.data(v.name, v.shape) for v in problem.variables if v.name in names}
    kept = tuple(v for v in problem.variables if v.name not in data)
    fixed = tuple(
        DataDeclaration(data[v.name], span=v.span) for v in problem.variables if v.name in data
    )
    values: dict[Expr, Expr] = {v.node: data[v.name] for v in problem.variables if v.name in data}
    vector = problem.vector
    if vector is not None:
        vector = vector_of(kept)
        values[problem.vector or vector] = _around(problem, vector, data)
    variables = tuple(v if v.set is None else replace(v, set=over(v.set, values)) for v in kept)
    result = replaced(problem, values)
    return replace(result, variables=variables, data=(*problem.data, *fixed), vector=vector)


def vector_of(variables: Sequence[Variable]) -> Input:
    """The vector whose elements are these variables, all of them numbers."""
    name = f"{variables[0].name} … {variables[-1].name}"
    return build.variable(name, (literal(len(variables)),))


def part_of(vector: Expr, start: int, count: int) -> Expr:
    """The elements of a vector from `start` on, as a vector (count,)."""
    return build.gather(vector, [Affine(literal(start), (1,))], (literal(count),))


def joined(size: int, parts: Sequence[tuple[int, Expr]]) -> Expr:
    """The vector (size,) of parts, vectors or numbers, each with its first position."""
    total: Expr | None = None
    for start, part in parts:
        index = [Affine(literal(start), (1,) * part.rank)]
        placed = build.scatter(part, index, (literal(size),))
        total = placed if total is None else build.apply(add, total, placed)
    assert total is not None
    return total


def _around(problem: Problem, vector: Input, data: Mapping[str, Input]) -> Expr:
    """The vector of all variables, from that of the others and from numbers that are data."""
    parts: list[tuple[int, Expr]] = []
    start = taken = 0
    for is_held, run in groupby(problem.variables, key=lambda v: v.name in data):
        names = [one.name for one in run]
        if is_held:
            parts += [(start + k, data[name]) for k, name in enumerate(names)]
        else:
            parts.append((start, part_of(vector, taken, len(names))))
            taken += len(names)
        start += len(names)
    return joined(len(problem.variables), parts)
