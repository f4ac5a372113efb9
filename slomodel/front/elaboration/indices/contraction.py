"""Sums of products: the linear operations of the language, each as one `Einsum`."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from slomodel.front.elaboration.indices.affine_index import is_at_least_zero
from slomodel.front.elaboration.values import Label, Value, union, with_unit_axes
from slomodel.functions import add, div, ge, mul, neg, square, sub, where
from slomodel.ir import build
from slomodel.ir.dims import Dim, Shape
from slomodel.ir.expr import Axes, Const, Einsum, Expr, Map

_MOST_FACTORS = 16
_FEWEST_FACTORS = 2
_MOST_TERMS = 8
_MOST_NODES = 100


def contract(
    operands: Sequence[tuple[Value, Sequence[Hashable]]], output: Sequence[Hashable]
) -> Value:
    """The sum of products over the keys absent from `output`, where keys name the operands' axes.

    Index labels are not summed. Axes with the same key must have the same dim.
    """
    values = [with_unit_axes(value) for value, _ in operands]
    labels = union(values)
    number: dict[Hashable, int] = {}
    dims: list[Dim] = []
    inputs: list[Axes] = []
    for value, (_, keys) in zip(values, operands, strict=True):
        for key, dim in zip((*value.labels, *keys), value.expr.shape, strict=True):
            if key not in number:
                number[key] = len(dims)
                dims.append(dim)
        inputs.append(tuple(number[key] for key in (*value.labels, *keys)))
    kept = tuple(number[key] for key in (*labels, *output))
    expr = build.einsum([v.expr for v in values], inputs, kept, dims)
    return Value(expr, labels, tuple(dims[number[key]] for key in output))


def total(value: Value, labels: Sequence[Label] = (), axes: Sequence[int] | None = None) -> Value:
    """The sum over some labels and some axes (all if `axes` is None).

    Summing over a label on which the value does not depend multiplies it by the label's size.
    """
    value = with_unit_axes(value)
    dropped = range(value.rank) if axes is None else axes
    count = len(value.labels)
    kept = [k for k, label in enumerate(value.labels) if label not in labels]
    kept += [count + k for k in range(value.rank) if k not in dropped]
    repeated = tuple(label.dim for label in labels if label not in value.labels)
    return Value(
        _summed(value.expr, tuple(kept), repeated),
        tuple(label for label in value.labels if label not in labels),
        tuple(axis for k, axis in enumerate(value.axes) if k not in dropped),
    )


def _summed(expr: Expr, kept: Axes, repeated: Shape) -> Expr:
    """The sum over the axes not in `kept`: one contraction, or one for each of a few terms.

    `sum(b * r^2 + e^2)` becomes `b * dot(r, r) + dot(e, e)`, without an array of terms. If some
    term is not a product, the sum remains one, since that array would be needed anyway.
    """
    if len(kept) == expr.rank and not repeated:
        return expr
    terms = _terms(expr)
    products = [_contractible(_factors(term)) for _, term in terms]
    if len(terms) == 1 or any(len(product.arrays) < _FEWEST_FACTORS for product in products):
        return _contracted(_contractible(_factors(expr)), expr, kept, repeated)
    result: Expr | None = None
    for (positive, term), product in zip(terms, products, strict=True):
        part = _contracted(product, term, kept, repeated)
        if result is None:
            result = part if positive else neg(part)
        else:
            result = add(result, part) if positive else sub(result, part)
    assert result is not None
    return result


def _terms(expr: Expr) -> list[tuple[bool, Expr]]:
    """`expr` as a sum of signed terms of its shape, in order; a long sum is one term."""
    terms: list[tuple[bool, Expr]] = []
    stack: list[tuple[bool, Expr]] = [(True, expr)]
    whole = tuple(range(expr.rank))
    while stack:
        positive, node = stack.pop()
        plain = isinstance(node, Map) and node.axes == (whole, whole)
        if plain and isinstance(node, Map) and node.function in (add, sub):
            left, right = node.operands
            stack += [(positive == (node.function is add), right), (positive, left)]
        else:
            terms.append((positive, node))
        if len(terms) + len(stack) > _MOST_TERMS:
            return [(True, expr)]
    return terms


def _contractible(product: _ScaledProduct) -> _ScaledProduct:
    """The product, with a square as its only factor replaced by two equal factors."""
    if len(product.arrays) == 1:
        only = product.arrays[0]
        if isinstance(only, Map) and only.function is square:
            product.arrays, product.axes = [only.operands[0]] * 2, product.axes * 2
    return product


def _contracted(product: _ScaledProduct, expr: Expr, kept: Axes, repeated: Shape) -> Expr:
    # An empty sum is 0 whatever its factors, so a factor that may be NaN must remain inside.
    inside = [scalar for scalar in product.scalars if not _is_polynomial(scalar)]
    inside += [div(1.0, divisor) for divisor in product.divisors if not _is_polynomial(divisor)]
    arrays, axes = [*inside, *product.arrays], [*((),) * len(inside), *product.axes]
    result = build.einsum(arrays, axes, kept, expr.shape + repeated)
    for scalar in reversed(product.scalars):
        result = mul(scalar, result) if _is_polynomial(scalar) else result
    for divisor in product.divisors:
        if _is_polynomial(divisor):
            summed = [dim for k, dim in enumerate(expr.shape) if k not in kept]
            result = div(result, _unless_empty(divisor, (*summed, *repeated)))
    return neg(result) if product.negative else result


def _unless_empty(divisor: Expr, summed: Sequence[Dim]) -> Expr:
    """The divisor of a sum, or 1 if the sum may be empty because an axis has length 0."""
    known = [dim for dim in summed if is_at_least_zero(dim - 1) is not True]
    if isinstance(divisor, Const) or not known:
        return divisor
    count = build.einsum([], [], (), tuple(known))
    return where(ge(count, 1.0), divisor, 1.0)


def _is_polynomial(scalar: Expr) -> bool:
    """Whether a node is a short polynomial of inputs and numbers, and so finite where those are."""
    seen = {scalar}
    stack = [scalar]
    while stack:
        node = stack.pop()
        if isinstance(node, Map) and node.function not in (add, sub, mul, neg, square):
            return False
        new = [operand for operand in node.operands if operand not in seen]
        seen.update(new)
        stack.extend(new)
        if len(seen) > _MOST_NODES:
            return False
    return True


@dataclass(slots=True)
class _ScaledProduct:
    """Arrays with their axes in the product, and scalar factors that can be taken out of a sum."""

    arrays: list[Expr] = field(default_factory=list)
    axes: list[Axes] = field(default_factory=list)
    scalars: list[Expr] = field(default_factory=list)
    divisors: list[Expr] = field(default_factory=list)
    negative: bool = False


def _factors(expr: Expr) -> _ScaledProduct:
    """`expr` decomposed into a product of arrays and scalars."""
    product = _ScaledProduct()
    stack: list[tuple[Expr, Axes]] = [(expr, tuple(range(expr.rank)))]
    while stack:
        node, axes = stack.pop()
        if not node.rank:
            product.scalars.append(node)
        elif isinstance(node, Einsum) and build.is_broadcast(node):
            kept = tuple(axes[node.output.index(label)] for label in node.inputs[0])
            stack.append((node.operands[0], kept))
        elif isinstance(node, Map) and node.function is neg:
            product.negative = not product.negative
            stack.append((node.operands[0], axes))
        elif isinstance(node, Map) and node.function is div and not node.operands[1].rank:
            product.divisors.append(node.operands[1])
            stack.append((node.operands[0], axes))
        elif isinstance(node, Map) and node.function is mul:
            parts = zip(node.operands, node.axes, strict=True)
            stack += reversed([(o, tuple(axes[k] for k in own)) for o, own in parts])
        else:
            product.arrays.append(node)
            product.axes.append(axes)
        if len(product.arrays) + len(stack) > _MOST_FACTORS:
            return _ScaledProduct([expr], [tuple(range(expr.rank))])
    return product
