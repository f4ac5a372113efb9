"""Constraints: from `subject to g <= h` to graphs that must vanish or must not be positive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from slomodel.front.elaboration.errors import StatementError, error, shape_error
from slomodel.front.elaboration.expressions.expressions import evaluate
from slomodel.front.elaboration.indices.index_sets import bind_iterations
from slomodel.front.elaboration.indices.linear_conditions import conjuncts
from slomodel.front.elaboration.indices.tuples import TupleSet, has_dependent_range, tuple_set
from slomodel.front.elaboration.scope import Elaboration, Scope, described
from slomodel.front.elaboration.shape_mismatch import marks, operand, unequal
from slomodel.front.elaboration.statements.definitions import holds_everywhere
from slomodel.front.elaboration.values import (
    Label,
    Value,
    as_axes,
    combine,
    merged,
    number,
    show,
    with_unit_axes,
)
from slomodel.front.text.syntax import ConstraintStatement, Name, VarDecl
from slomodel.functions import ge, le, sub, where
from slomodel.ir.walk import inputs
from slomodel.problem import Check, Constraint, DeclaredSet, Init, Variable
from slomodel.rewrite import rewritten

_LARGEST = float(np.finfo(np.float64).max)
_CLOSED = {"<": "<=", ">": ">="}
_MIRRORED = {"<=": ">=", ">=": "<=", "==": "=="}


def constraints_of(
    statement: ConstraintStatement, model: Elaboration, others: Sequence[Constraint]
) -> list[Constraint]:
    """The constraint of a statement, or two with one name if it has two ends."""
    _check_signs(statement)
    name = _name(statement.label, model, others)
    labels, scope = _indices(statement, model)
    values = [evaluate(side, scope) for side in statement.sides]
    fixed = [not _varies(value) for value in values]
    if all(fixed):
        message = "a constraint is about variables, and this one depends on data alone"
        raise error("E219", message, statement.span, "write `check` for a condition on data")
    if len(values) == 3:
        _check_order(statement, values, labels, model)
    middle = 1 if len(values) == 3 or fixed[0] else 0
    text = " ".join(statement.span.text.split()).removeprefix("subject to ")
    result = []
    for k, op in enumerate(statement.ops):
        pair = (values[k], values[k + 1])
        if merged(pair) is None:
            sides = (operand(statement.sides[k], pair[0]), operand(statement.sides[k + 1], pair[1]))
            raise unequal(scope, f"`{op}`", statement.op_spans[k], sides)
        body, end = pair if middle == k else pair[::-1]
        op = op if middle == k else _MIRRORED[op]
        above = op == ">="
        value = combine(sub, end, body) if above else combine(sub, body, end)
        if len(values) == 3 and inputs(end.expr) and not _varies(end):
            value = _where_finite(value, end, above)
            model.ends.append(end.expr)
            model.bodies.append(body.expr)
        else:
            model.bodies.append(value.expr)
        node = with_unit_axes(_over_indices(statement, value, labels)).expr
        model.spans.setdefault(node, statement.span)
        stable = rewritten(node)[node]
        own = (name, text, stable, op == "==", -1 if above else 1, statement.span)
        result.append(Constraint(*own))
    return result


def _where_finite(value: Value, end: Value, above: bool) -> Value:
    """A constraint by its value, or −1, which never binds, where its end is infinite."""
    bound = number(-_LARGEST if above else _LARGEST)
    finite = combine(ge if above else le, end, bound)
    return combine(where, finite, value, number(-1.0))


def _varies(value: Value) -> bool:
    return any(node.role == "variable" for node in inputs(value.expr))


def _check_signs(statement: ConstraintStatement) -> None:
    for op, span in zip(statement.ops, statement.op_spans, strict=True):
        if op in _CLOSED:
            message = f"a constraint holds with equality too, and `{op}` does not"
            raise error("E228", message, span, f"write `{_CLOSED[op]}`")
        if op == "!=":
            message = "`!=` does not constrain anything: it fails at isolated points only"
            raise error("E228", message, span, "write `==`, `<=` or `>=`")
    if len(statement.ops) == 2 and (statement.ops[0] != statement.ops[1] or "==" in statement.ops):
        message = "a constraint with two ends is `lo <= g <= hi` or `hi >= g >= lo`"
        raise error("E228", message, statement.op_spans[1], "write two constraints")


def _check_order(
    statement: ConstraintStatement,
    values: Sequence[Value],
    labels: Sequence[Label],
    model: Elaboration,
) -> None:
    """Check at bind that ends that are data are in order, and that none is NaN."""
    low, high = (0, 2) if statement.ops[0] == "<=" else (2, 0)
    pair = (values[low], values[high])
    if merged(pair) is None or not inputs(*(value.expr for value in pair)):
        return
    if any(_varies(value) for value in pair):
        return
    condition = with_unit_axes(_over_indices(statement, combine(le, *pair), labels))
    first, second = (statement.sides[k].span.text for k in (low, high))
    fault = f"the constraint `{statement.span.text}` cannot hold"
    text = f"{first} <= {second}"
    model.checks.append(Check(holds_everywhere(condition).expr, text, statement.span, fault))


def _name(label: Name | None, model: Elaboration, others: Sequence[Constraint]) -> str:
    """The label of a constraint; if there is none, its number among all constraints."""
    names = {one.name for one in others}
    if label is None:
        return f"constraint {len(names) + 1}"
    symbol = model.symbols.get(label.text)
    if symbol is not None:
        message = f"the constraint would have the name of something else: {described(symbol)}"
        raise error("E202", message, label.span, "give the constraint another name")
    if label.text in names:
        message = f"two constraints have the name `{label.text}`"
        raise error("E202", message, label.span, "give one of them another name")
    return label.text


def _indices(statement: ConstraintStatement, model: Elaboration) -> tuple[tuple[Label, ...], Scope]:
    """The labels over which a constraint runs, and the scope of its sides."""
    scope, iterations = Scope(model), statement.iterations
    if statement.condition is None and not has_dependent_range(iterations, scope):
        return bind_iterations(iterations, scope)
    tuples = _tuples(statement, scope)
    if tuples.left or tuples.inside:
        span = statement.span if statement.condition is None else statement.condition.span
        message = f"`{span.text}` selects constraints, so that it must not depend on variables"
        raise error("E228", message, span, "write it as part of the constraint")
    return tuples.labels, tuples.scope


def _tuples(statement: ConstraintStatement, scope: Scope) -> TupleSet:
    steps = tuple_set(statement.iterations, conjuncts(statement.condition), scope, guarded=True)
    try:
        request = next(steps)
        while True:
            try:
                value = evaluate(request.node, request.scope)  # type: ignore[arg-type]
            except StatementError as problem:
                request = steps.throw(problem)
            else:
                request = steps.send(value)
    except StopIteration as stop:
        result: TupleSet = stop.value
        return result


def _over_indices(statement: ConstraintStatement, value: Value, labels: Sequence[Label]) -> Value:
    """The constraints of all indices as one array."""
    if not labels:
        return value
    if value.rank:
        message = f"a constraint by index compares numbers, not {show(value)}"
        sides = [operand(side, value) for side in statement.sides[:1]]
        remedy = "index all axes, or omit the indices: arrays are compared elementwise"
        raise shape_error("E212", message, statement.span, remedy, marks=marks(*sides))
    return as_axes(value, labels, [label.dim for label in labels])


def bound_of(
    statement: ConstraintStatement, variables: Sequence[Variable], model: Elaboration
) -> tuple[int, DeclaredSet] | None:
    """The variable that a statement bounds as a whole, by its place, and the box in which it stays.

    None for any other constraint, and for a variable with a declared set.
    """
    sides = statement.sides
    if statement.iterations or statement.condition is not None:
        return None
    places = {one.name: k for k, one in enumerate(variables)}
    middle = 1 if len(sides) == 3 or not isinstance(sides[0], Name) else 0
    if middle == 0 and isinstance(sides[1], Name) and sides[1].text in places:
        middle = 1
    node = sides[middle]
    if not isinstance(node, Name) or node.text not in places:
        return None
    variable = variables[places[node.text]]
    if variable.set is not None and not variable.set.by_constraint:
        return None
    _check_signs(statement)
    ends = [None if k == middle else evaluate(side, Scope(model)) for k, side in enumerate(sides)]
    values = [Value(variable.node, (), variable.shape), *(one for one in ends if one is not None)]
    if any(_varies(value) for value in values[1:]) or any(
        one.rank and one.axes != variable.shape for one in values[1:]
    ):
        return None
    box = variable.set or DeclaredSet("box", "", by_constraint=True)
    for k, op in enumerate(statement.ops):
        end = ends[k + 1] if k == middle else ends[k]
        op = op if k == middle else _MIRRORED[op]
        assert end is not None
        above, below = op in (">=", "=="), op in ("<=", "==")
        if (above and box.low is not None) or (below and box.high is not None):
            return None
        box = replace(box, low=end.expr if above else box.low)
        box = replace(box, high=end.expr if below else box.high)
    text = " ".join(statement.span.text.split()).removeprefix("subject to ")
    text = f"{box.text}, {text}" if box.text else f"subject to {text}"
    return places[node.text], replace(box, text=text, span=statement.span)


def bounded(variable: Variable, box: DeclaredSet, declared: Mapping[str, VarDecl]) -> Variable:
    """A variable in a box; without a start of its own it starts at a random point of it."""
    has_start = declared[variable.name].init is not None
    return replace(variable, set=box, init=variable.init if has_start else Init("inside", ()))
