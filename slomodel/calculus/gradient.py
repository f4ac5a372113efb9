"""The gradient by one reverse sweep, as a graph of the same kinds.

Each kind has one rule: the contribution of a node's adjoint to each of its operands.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch

from slomodel.calculus.guards import Guard, both, either, guard_of_operand, keep
from slomodel.errors import ShapeError
from slomodel.functions import add, lnot, mul, where
from slomodel.functions.partials import partial
from slomodel.ir import build
from slomodel.ir.expr import Const, Einsum, Expr, Gather, Input, Map, Reshape, Scatter
from slomodel.ir.walk import dependents, postorder

Use = tuple[Expr, Guard]


def gradient(objective: Expr, wrt: Sequence[Expr]) -> tuple[Expr, ...]:
    """The derivative of a scalar by each node of `wrt`, each of that node's shape.

    Raises ShapeError when the objective is not a scalar.
    """
    if objective.shape != ():
        raise ShapeError("the gradient is of a scalar")
    order = postorder(objective)
    chosen = set(wrt)
    active = dependents(order, chosen.__contains__)
    uses: dict[Expr, list[Use]] = {objective: [(build.const(1.0), None)]}
    adjoints: dict[Expr, Expr] = {}
    for node in reversed(order):
        if node not in active or node not in uses:
            continue
        own = uses.pop(node)
        adjoint = total([contribution for contribution, _ in own])
        guard = either([guard for _, guard in own])
        adjoints[node] = adjoint
        for k, operand in enumerate(node.operands):
            if operand not in active:
                continue
            use = contribution(node, k, adjoint, guard)
            if use is not None:
                uses.setdefault(operand, []).append(use)
    return tuple(adjoints.get(node, build.zeros(node.shape)) for node in wrt)


def total(terms: Sequence[Expr]) -> Expr:
    """The sum of terms of one shape; a term that comes k times is multiplied by k."""
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
def contribution(node: Expr, k: int, adjoint: Expr, guard: Guard) -> Use | None:
    """What the adjoint of `node` adds to the adjoint of its operand k, and where that is live."""
    raise TypeError(f"no derivative rule for {type(node).__name__}")


def _below(node: Expr, k: int, guard: Guard) -> Guard:
    return None if guard is None else guard_of_operand(node, k, guard)


@contribution.register
def _(node: Map, k: int, adjoint: Expr, guard: Guard) -> Use | None:
    if node.function is where:
        return _branch(node, k, adjoint, guard)
    derivative = partial(node.function, k, build.aligned(node))
    if derivative is None:
        return None
    own, everything = node.axes[k], tuple(range(node.rank))
    if guard is not None and not isinstance(derivative, Const):
        product = keep(guard, build.apply(mul, adjoint, derivative))
        summed = build.einsum([product], [everything], own, node.shape)
        return summed, _below(node, k, guard)
    if len(own) == node.rank:
        return build.apply(mul, adjoint, derivative), _below(node, k, guard)
    labels = [everything if e.rank else () for e in (adjoint, derivative)]
    summed = build.einsum([adjoint, derivative], labels, own, node.shape)
    return summed, _below(node, k, guard)


def _branch(node: Map, k: int, adjoint: Expr, guard: Guard) -> Use | None:
    if k == 0:
        return None
    condition = build.broadcast(node.operands[0], node.axes[0], node.shape)
    taken = condition if k == 1 else build.apply(lnot, condition)
    live = both(guard, taken)
    kept = keep(taken, adjoint)
    own = node.axes[k]
    summed = build.einsum([kept], [tuple(range(node.rank))], own, node.shape)
    return summed, guard_of_operand(node, k, live)


@contribution.register
def _(node: Einsum, k: int, adjoint: Expr, guard: Guard) -> Use | None:
    operands, inputs = [adjoint], [node.output]
    for j, (operand, labels) in enumerate(zip(node.operands, node.inputs, strict=True)):
        if j == k:
            continue
        live = None if _is_variable(operand) else _below(node, j, guard)
        operands.append(keep(live, operand))
        inputs.append(labels)
    use = build.einsum(operands, inputs, node.inputs[k], node.dims)
    return use, _below(node, k, guard)


def _is_variable(node: Expr) -> bool:
    return isinstance(node, Input) and node.role == "variable"


@contribution.register
def _(node: Gather, k: int, adjoint: Expr, guard: Guard) -> Use | None:
    use = build.scatter(adjoint, node.index, node.operands[0].shape)
    return use, _below(node, k, guard)


@contribution.register
def _(node: Scatter, k: int, adjoint: Expr, guard: Guard) -> Use | None:
    use = build.gather(adjoint, node.index, node.operands[0].shape)
    return use, _below(node, k, guard)


@contribution.register
def _(node: Reshape, k: int, adjoint: Expr, guard: Guard) -> Use | None:
    return build.reshape(adjoint, node.operands[0].shape), _below(node, k, guard)
