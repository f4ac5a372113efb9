"""The gradient by one reverse sweep, as a graph of the same kinds.

Each kind has one rule: the contribution of a node's adjoint to the adjoint of each operand.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch

from slomodel.calculus.guards import Guard, guard_of_operand, intersection, restrict, union
from slomodel.calculus.matrices import adjoint_of_operand
from slomodel.calculus.recurrence import adjoints_of_operands
from slomodel.calculus.symmetry import twin
from slomodel.errors import ShapeError
from slomodel.functions import add, div, eq, ge, lnot, mul, where
from slomodel.functions.translate import partial
from slomodel.ir import build
from slomodel.ir.expr import (
    Const,
    Einsum,
    Expr,
    Extreme,
    Gather,
    Input,
    Map,
    MatrixOperation,
    Recur,
    Reshape,
    Scan,
    Scatter,
)
from slomodel.ir.loop import Loop
from slomodel.ir.walk import dependents, postorder


@dataclass(frozen=True, slots=True)
class Known:
    """Inputs known to be finite everywhere, even where no branch reads them, and symmetric nodes.

    A symmetric node equals all its transposes.
    """

    finite: frozenset[Input] = frozenset()
    symmetric: frozenset[Expr] = frozenset()


NOTHING = Known()


@dataclass(frozen=True, slots=True)
class Adjoint:
    """The derivative of the objective with respect to a node, or the part of it from one use.

    It counts only where `guard` holds; elsewhere it is zero or, if `dirty`, arbitrary.
    """

    value: Expr
    guard: Guard = None
    dirty: bool = False

    @property
    def clean(self) -> Expr:
        """The value with zeros outside the guard."""
        return restrict(self.guard, self.value) if self.dirty else self.value


def gradient(objective: Expr, wrt: Sequence[Expr], known: Known = NOTHING) -> tuple[Expr, ...]:
    """Derivatives of a scalar with respect to each node of `wrt`, each of that node's shape.

    `known` facts about the inputs save work. Raises ShapeError if the objective is not a scalar.
    """
    if objective.shape != ():
        raise ShapeError("the gradient is of a scalar")
    order = postorder(objective)
    active = dependents(order, set(wrt).__contains__)
    uses: dict[Expr, list[Adjoint]] = {objective: [Adjoint(build.const(1.0))]}
    adjoints: dict[Expr, Adjoint] = {}
    variables = {node for node in order if isinstance(node, Input) and node.role == "variable"}
    known = Known(frozenset(variables | known.finite), known.symmetric)
    loops = _first_states(order)
    for node in reversed(order):
        if node not in active:
            continue
        if node in uses:
            adjoints[node] = _accumulated(uses.pop(node))
        if isinstance(node, Recur):
            if loops[node.operands, node.loop] is node:
                for k, value in _through_loop(node, adjoints, active).items():
                    uses.setdefault(node.operands[k], []).append(Adjoint(value))
            continue
        if node not in adjoints:
            continue
        adjoint = adjoints[node]
        for k, operand in enumerate(node.operands):
            use = contribution(node, k, adjoint, known) if operand in active else None
            if use is not None:
                uses.setdefault(operand, []).append(use)
    return tuple(
        adjoints[node].clean if node in adjoints else build.zeros(node.shape) for node in wrt
    )


def _first_states(order: Sequence[Expr]) -> dict[tuple[tuple[Expr, ...], Loop], Recur]:
    """The first state of each loop in `order`: in reverse, all uses of the states precede it."""
    result: dict[tuple[tuple[Expr, ...], Loop], Recur] = {}
    for node in order:
        if isinstance(node, Recur):
            result.setdefault((node.operands, node.loop), node)
    return result


def _through_loop(
    node: Recur, adjoints: Mapping[Expr, Adjoint], active: Collection[Expr]
) -> dict[int, Expr]:
    """The adjoints of the operands of a loop from those of all its states."""
    known = {state.state: adjoints[state].clean for state in node.states if state in adjoints}
    return adjoints_of_operands(node, known, active, gradient) if known else {}


def _accumulated(uses: Sequence[Adjoint]) -> Adjoint:
    """The sum of the parts from all uses; parts under one guard may stay dirty outside it."""
    guard = union([use.guard for use in uses])
    if all(use.guard is guard for use in uses):
        dirty = any(use.dirty for use in uses)
        return Adjoint(total([use.value for use in uses]), guard, dirty)
    return Adjoint(total([use.clean for use in uses]), guard)


def total(terms: Sequence[Expr]) -> Expr:
    """The sum of terms of one shape; k equal terms become k times the term."""
    counts: dict[Expr, int] = {}
    for term in terms:
        counts[term] = counts.get(term, 0) + 1
    result: Expr | None = None
    for term, count in counts.items():
        scaled = term if count == 1 else build.apply(mul, build.const(float(count)), term)
        result = scaled if result is None else build.apply(add, result, scaled)
    assert result is not None
    return result


@singledispatch
def contribution(node: Expr, k: int, adjoint: Adjoint, known: Known) -> Adjoint | None:
    """The contribution of a node's adjoint to the adjoint of operand k; None for zero.

    `known` counts the variables as finite.
    """
    raise TypeError(f"no derivative rule for {type(node).__name__}")


def _below(node: Expr, k: int, guard: Guard) -> Guard:
    return None if guard is None else guard_of_operand(node, k, guard)


@contribution.register
def _(node: Map, k: int, adjoint: Adjoint, known: Known) -> Adjoint | None:
    if node.function is where:
        return _branch(node, k, adjoint)
    derivative = partial(node.function, k, build.aligned(node))
    if derivative is None:
        return None
    # The adjoint is zero where a branch is not taken, and the product may be 0 * inf there.
    dirty = adjoint.dirty or (adjoint.guard is not None and not isinstance(derivative, Const))
    if len(node.axes[k]) == node.rank or dirty:
        value = build.apply(mul, adjoint.value, derivative)
        return _reduced(node, k, Adjoint(value, adjoint.guard, dirty))
    everything = tuple(range(node.rank))
    factors = [adjoint.value, derivative]
    labels = [everything if factor.rank else () for factor in factors]
    summed = build.einsum(factors, labels, node.axes[k], node.shape)
    return Adjoint(summed, _below(node, k, adjoint.guard))


def _branch(node: Map, k: int, adjoint: Adjoint) -> Adjoint | None:
    if k == 0:
        return None
    condition = build.broadcast(node.operands[0], node.axes[0], node.shape)
    taken = condition if k == 1 else build.apply(lnot, condition)
    return _reduced(node, k, Adjoint(adjoint.value, intersection(adjoint.guard, taken), dirty=True))


def _reduced(node: Map, k: int, part: Adjoint) -> Adjoint:
    """Sum a part of the shape of `node` along the axes that operand k lacks."""
    own = node.axes[k]
    if len(own) == node.rank:
        return part
    summed = build.einsum([part.clean], [tuple(range(node.rank))], own, node.shape)
    return Adjoint(summed, _below(node, k, part.guard))


@contribution.register
def _(node: Einsum, k: int, adjoint: Adjoint, known: Known) -> Adjoint | None:
    guard = adjoint.guard
    k = twin(node, k, adjoint.clean, known.symmetric)
    # A scalar adjoint stays outside as a factor, where it can be combined with other factors.
    whole = adjoint.value.rank > 0
    operands, inputs = ([adjoint.clean], [node.output]) if whole else ([], [])
    for j, (operand, labels) in enumerate(zip(node.operands, node.inputs, strict=True)):
        if j == k:
            continue
        if guard is None or operand in known.finite:
            operands.append(operand)
        else:
            operands.append(restrict(guard_of_operand(node, j, guard), operand))
        inputs.append(labels)
    value = build.einsum(operands, inputs, node.inputs[k], node.dims)
    if not whole:
        value = build.apply(mul, adjoint.clean, value)
    below = _below(node, k, guard)
    if isinstance(node.operands[k], Map) and not node.inputs[k]:
        # An empty sum does not use its scalar factors, whose derivatives may be NaN.
        for dim in node.dims:
            below = intersection(below, build.apply(ge, build.size_of(dim), build.const(1.0)))
    return Adjoint(value, below)


@contribution.register
def _(node: Gather, k: int, adjoint: Adjoint, known: Known) -> Adjoint | None:
    value = build.scatter(adjoint.clean, node.index, node.operands[0].shape)
    return Adjoint(value, _below(node, k, adjoint.guard))


@contribution.register
def _(node: Scatter, k: int, adjoint: Adjoint, known: Known) -> Adjoint | None:
    value = build.gather(adjoint.value, node.index, node.operands[0].shape)
    return Adjoint(value, _below(node, k, adjoint.guard), adjoint.dirty)


@contribution.register
def _(node: Reshape, k: int, adjoint: Adjoint, known: Known) -> Adjoint | None:
    value = build.reshape(adjoint.value, node.operands[0].shape)
    return Adjoint(value, _below(node, k, adjoint.guard), adjoint.dirty)


def ties(node: Extreme) -> tuple[Expr, Expr]:
    """The indicator of the elements that attain the extreme, and their number.

    Tied elements get equal parts of the adjoint.
    """
    tied = build.apply(eq, node.operands[0], build.spread(node, node))
    ones = build.apply(where, tied, build.const(1.0), build.const(0.0))
    return tied, build.sum_over(ones, node.axes)


@contribution.register
def _(node: Extreme, k: int, adjoint: Adjoint, known: Known) -> Adjoint | None:
    tied, count = ties(node)
    part = build.spread(build.apply(div, adjoint.clean, count), node)
    value = build.apply(where, tied, part, build.const(0.0))
    return Adjoint(value, _below(node, k, adjoint.guard))


@contribution.register
def _(node: Scan, k: int, adjoint: Adjoint, known: Known) -> Adjoint | None:
    """The recurrence run backwards; a NaN of unused elements must not propagate to used ones."""
    guard = _below(node, k, adjoint.guard)
    factor = node.operands[0]
    if factor not in known.finite:
        factor = restrict(guard, factor)
    summed = build.backward_scan(factor, adjoint.clean, node.axis)
    if k == 1:
        return Adjoint(summed, guard)
    before = build.shifted(node, node.axis, 1)
    return Adjoint(build.apply(mul, summed, before), guard, dirty=guard is not None)


@contribution.register
def _(node: MatrixOperation, k: int, adjoint: Adjoint, known: Known) -> Adjoint | None:
    """The factorisation of an unused operand may be NaN, and so may its derivatives."""
    guard = _below(node, k, adjoint.guard)
    value = adjoint_of_operand(node, k, adjoint.clean)
    return Adjoint(value, guard, dirty=guard is not None)
