"""Objectives that are sums over elements, each a scalar function of a few affine numbers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import slomodel.functions as table
from slomodel.bounds.effort import MOST_NODES
from slomodel.calculus import gradient
from slomodel.functions.compound import stop_gradient
from slomodel.ir import build
from slomodel.ir.dims import Shape
from slomodel.ir.expr import (
    Axes,
    Const,
    Einsum,
    Expr,
    Gather,
    Input,
    Map,
    Reshape,
    Scatter,
)
from slomodel.ir.walk import dependents, inputs, postorder, substitute

MOST_ARGUMENTS = 3
"""Largest number of arguments of a function: ranges of its derivatives divide a box of them."""
_MOST_FUSED = 256
"""Largest number of nodes of a fused function, which costs a millisecond each over its pieces; some
elementwise objectives, such as recurrences by their steps, are far longer.
"""


@dataclass(frozen=True, slots=True)
class Laid:
    """A node placed along some axes of the elements, constant along the others."""

    node: Expr
    axes: Axes


@dataclass(frozen=True, slots=True)
class Elements:
    """The part Σ_i weight_i φ(u_1i, .., u_ki; data_i) of an objective, over i in `shape`.

    `value` is φ as a graph of scalars: its variables are `arguments`, which represent `affine`
    nodes, and its data inputs represent constant nodes. `origins` maps nodes of φ to nodes of the
    objective; `whole` is a node of the objective with one element for each φ_i.
    """

    weight: Expr
    value: Expr
    arguments: tuple[Input, ...]
    affine: tuple[Laid, ...]
    data: Mapping[Input, Laid]
    origins: Mapping[Expr, Expr]
    whole: Expr

    @property
    def shape(self) -> Shape:
        return self.whole.shape


def elements(objective: Expr, variables: Collection[Input]) -> tuple[Elements, ...] | None:
    """The parts that add up to the objective, up to an affine one; None where it is not such a sum.

    Recognised from the operations: linear nodes at the top, below these elementwise scalar
    functions (or sums of products of such), and below these affine nodes.
    """
    order = postorder(objective)
    varying = dependents(order, set(variables).__contains__)
    return parts_over(objective, varying, affine_nodes(order, varying))


def parts_over(
    objective: Expr,
    varying: Collection[Expr],
    affine: Collection[Expr],
    layers: Collection[Expr] = (),
) -> tuple[Elements, ...] | None:
    """`elements` where nodes of `layers` may take the place of affine ones."""
    if len(varying) > MOST_NODES or objective not in varying:
        return None
    outermost = _outermost(objective, varying, affine, layers)
    if outermost is None:
        return None
    stand_ins = {
        node: build.data(f"part {k}", factors[0].shape)
        for k, (node, factors) in enumerate(outermost.items())
    }
    over = {
        node: one if outermost[node] == (node,) else _over(node, one, varying)
        for node, one in stand_ins.items()
    }
    (linear,) = substitute((objective,), over)
    weights = gradient(linear, list(stand_ins.values())) if stand_ins else ()
    if not set(stand_ins.values()).isdisjoint(inputs(*weights)):
        return None
    result = []
    for factors, weight in zip(outermost.values(), weights, strict=True):
        one = element_function(factors, weight, varying, affine, layers)
        if one is None:
            return None
        result.append(one)
    return tuple(result)


def affine_nodes(order: Sequence[Expr], varying: Collection[Expr]) -> set[Expr]:
    """The nodes that depend on x and are affine in the variables."""
    result: set[Expr] = set()
    for node in order:
        if node not in varying:
            continue
        own = [operand for operand in node.operands if operand in varying]
        if all(operand in result for operand in own) and is_linear(node, varying):
            result.add(node)
    return result


def is_linear(node: Expr, varying: Collection[Expr]) -> bool:
    """Whether a node is linear, up to a constant, in all operands that depend on x jointly."""
    own = [operand for operand in node.operands if operand in varying]
    if isinstance(node, Einsum):
        return len(own) == 1
    if isinstance(node, Map):
        if node.function in (table.add, table.sub, table.neg):
            return True
        if node.function is table.mul:
            return len(own) == 1
        if node.function is table.div:
            return node.operands[1] not in varying
        return node.function is table.where and node.operands[0] not in varying
    return isinstance(node, Input | Gather | Scatter | Reshape)


def _outermost(
    objective: Expr,
    varying: Collection[Expr],
    affine: Collection[Expr],
    layers: Collection[Expr],
) -> dict[Expr, tuple[Expr, ...]] | None:
    """The outermost nodes that are nonlinear or layers, each with its elementwise factors.

    A node is the sum over elements of the product of its factors; a map is its own single factor.
    None where a node is of another kind.
    """
    result: dict[Expr, tuple[Expr, ...]] = {}
    seen, stack = {objective}, [objective]
    while stack:
        node = stack.pop()
        if node not in varying or node in affine:
            continue
        if node in layers:
            result[node] = (node,)
        elif is_linear(node, varying):
            fresh = [operand for operand in node.operands if operand not in seen]
            seen.update(fresh)
            stack += fresh
        elif isinstance(node, Map):
            result[node] = (node,)
        elif (factors := factors_of(node, varying)) is not None:
            result[node] = factors
        else:
            return None
    return result


def factors_of(node: Expr, varying: Collection[Expr]) -> tuple[Expr, ...] | None:
    """u, v, .. if the node is Σ u v .. over their elements, possibly times data."""
    if not isinstance(node, Einsum):
        return None
    own = [
        (o, labels) for o, labels in zip(node.operands, node.inputs, strict=True) if o in varying
    ]
    return tuple(o for o, _ in own) if len({labels for _, labels in own}) == 1 else None


def _over(node: Expr, stand_in: Input, varying: Collection[Expr]) -> Expr:
    """The sum of products with the elementwise product of its factors replaced by an input."""
    assert isinstance(node, Einsum)
    kept = [k for k, operand in enumerate(node.operands) if operand not in varying]
    first = next(k for k, operand in enumerate(node.operands) if operand in varying)
    operands = [stand_in, *(node.operands[k] for k in kept)]
    labels = [node.inputs[first], *(node.inputs[k] for k in kept)]
    return build.einsum(operands, labels, node.output, node.dims)


def element_function(
    factors: tuple[Expr, ...],
    weight: Expr,
    varying: Collection[Expr],
    affine: Collection[Expr],
    layers: Collection[Expr] = (),
) -> Elements | None:
    """The scalar function of the factors' elements, down to affine nodes or layers."""

    def is_argument(node: Expr) -> bool:
        return node in layers or (node in affine and not is_of_one(node, varying))

    roots = [Laid(factor, tuple(range(factor.rank))) for factor in factors]
    result = fused(roots, varying, is_argument)
    if result is None:
        return None
    return Elements(
        *(weight, result.value, result.arguments, result.places),
        *(result.data, result.origins, factors[0]),
    )


@dataclass(frozen=True, slots=True)
class Fused:
    """A product of elementwise functions as one graph of scalars; the fields are as in `Elements`,
    with `places` for the nodes that the arguments represent.
    """

    value: Expr
    arguments: tuple[Input, ...]
    places: tuple[Laid, ...]
    data: Mapping[Input, Laid]
    origins: Mapping[Expr, Expr]


def fused(
    roots: Sequence[Laid], varying: Collection[Expr], is_argument: Callable[[Expr], bool]
) -> Fused | None:
    """The product of the roots' elements as a scalar function of the arguments below them.

    None where a node that depends on x is neither an elementwise function nor an argument, where an
    argument is a condition, or for more than `MOST_ARGUMENTS` of them or `_MOST_FUSED` nodes.
    """
    arguments: dict[Laid, Input] = {}
    data: dict[Laid, Input] = {}
    done: dict[Laid, Expr] = {}
    stack = [(root, False) for root in roots]
    while stack:
        laid, ready = stack.pop()
        node = laid.node
        if laid in done:
            continue
        if len(done) == _MOST_FUSED:
            return None
        if is_argument(node):
            if node.dtype != "real" or len(arguments) == MOST_ARGUMENTS:
                return None
            done[laid] = arguments[laid] = build.variable(f"u{len(arguments)}", ())
        elif isinstance(node, Const):
            done[laid] = node
        elif not isinstance(node, Map) and node not in varying:
            done[laid] = data[laid] = Input(f"d{len(data)}", "data", (), node.dtype)
        elif not isinstance(node, Map) or node.function is stop_gradient:
            return None
        else:
            below = _below(node, laid.axes)
            if ready:
                done[laid] = build.apply(node.function, *(done[one] for one in below))
            else:
                stack += [(laid, True), *((one, False) for one in below)]
    if not arguments:
        return None
    origins = {made: laid.node for laid, made in done.items()}
    given = {one: laid for laid, one in data.items()}
    value = _product([done[root] for root in roots])
    return Fused(value, tuple(arguments.values()), tuple(arguments), given, origins)


def _below(node: Map, axes: Axes) -> list[Laid]:
    """The operands of a map placed along these axes."""
    pairs = zip(node.operands, node.axes, strict=True)
    return [Laid(operand, tuple(axes[axis] for axis in own)) for operand, own in pairs]


def _product(factors: list[Expr]) -> Expr:
    """The product; equal factors become squares, whose ranges are not negative."""
    value, *others = factors
    for other in others:
        value = table.square(value) if other is value else table.mul(value, other)
    return value


def is_of_one(node: Expr, varying: Collection[Expr]) -> bool:
    """Whether a node is a map with one operand depending on x, which is the better argument."""
    return isinstance(node, Map) and sum(operand in varying for operand in node.operands) == 1
