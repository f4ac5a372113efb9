"""The normal form of graphs through which norms are propagated: few kinds of products, two factors.

Values are those of the graph; only the order of operations changes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from math import prod

import numpy as np

import slomodel.functions as table
from slomodel.bounds.arithmetic.rounding import Array
from slomodel.functions.compound import stop_gradient
from slomodel.ir import build
from slomodel.ir.dims import Dim, concrete
from slomodel.ir.expr import Affine, Axes, Const, Einsum, Expr, Input, Map, Scan
from slomodel.ir.walk import postorder, rewrite, substitute
from slomodel.reference import evaluate_all

_LARGEST_EXPANDED_POWER = 32
"""Largest exponent that is written as products, of which there are log₂ many at least."""


def normal_form(
    roots: Sequence[Expr],
    variables: Collection[Expr],
    values: Mapping[Input, Array],
    sizes: Mapping[str, int],
) -> tuple[tuple[Expr, ...], dict[Input, Array]]:
    """The roots in normal form, and all values including those of new data.

    Contractions are in pairs, quotients are products, and few functions have several operands that
    depend on x. The objective does not depend on the value of `stop_gradient`, which therefore
    becomes data: its value at the given point.
    """
    known = dict(values)
    frozen = [n for n in postorder(*roots) if isinstance(n, Map) and n.function is stop_gradient]
    stand_ins: dict[Expr, Expr] = {}
    if frozen:
        arrays = evaluate_all(frozen, known, sizes)
        for k, node in enumerate(frozen):
            data = Input(f"constant {k}", "data", node.shape)
            known[data] = np.asarray(arrays[node], dtype=np.float64)
            stand_ins[node] = data
    own = set(variables)

    def rule(node: Expr) -> Expr:
        return _rewritten(node, own, sizes)

    result = substitute(tuple(roots), stand_ins)
    while True:  # a rewritten node may contain further nodes to rewrite
        again = rewrite(result, rule)
        if again == result:
            return result, known
        result = again


def _rewritten(node: Expr, variables: Collection[Expr], sizes: Mapping[str, int]) -> Expr:
    if isinstance(node, Einsum) and len(node.operands) > 2:
        return _paired(node, sizes)
    if isinstance(node, Scan):
        return _doubled(node, node.shape[node.axis].size(sizes))
    if not isinstance(node, Map):
        return node
    if node.function is table.pow:
        return _power(node, variables)
    if node.function is table.div and not isinstance(node.operands[0], Const):
        return _aligned(node, lambda a, b: table.mul(a, table.div(1.0, b)))
    form = node.function.unary_form
    if form is not None and sum(_moves(o, variables) for o in node.operands) > 1:
        return _aligned(node, form)
    return node


def _moves(node: Expr, variables: Collection[Expr]) -> bool:
    return any(n in variables for n in postorder(node))


def _aligned(node: Map, form: Callable[..., Expr]) -> Expr:
    """The normal form of the operands, broadcast along the node's axes."""
    result = form(*build.aligned(node))
    if result.shape == node.shape:
        return result
    return build.broadcast(result, (), node.shape)


def _power(node: Map, variables: Collection[Expr]) -> Expr:
    """A small integer power by squares and products; a variable exponent by exp and log."""
    exponent = node.operands[1]
    if isinstance(exponent, Const):
        p = exponent.value
        if p.is_integer() and 2 <= p <= _LARGEST_EXPANDED_POWER:
            return _aligned(node, lambda x, _: _whole_power(x, int(p)))
        return node
    if _moves(exponent, variables):
        return _aligned(node, _exp_log)
    return node


def _exp_log(x: Expr, p: Expr) -> Expr:
    return table.exp(table.mul(p, table.log(x)))


def _whole_power(x: Expr, k: int) -> Expr:
    if k == 1:
        return x
    half = table.square(_whole_power(x, k // 2))
    return table.mul(half, x) if k % 2 else half


def _doubled(node: Scan, length: int) -> Expr:
    """y[i] = a[i] y[i-1] + b[i] by steps d = 1, 2, 4, …: (a, b) becomes (a a', a b' + b), where a'
    and b' are those d places before, 0 where there are none: then y[i] = a[i] y[i-2d] + b[i].
    """
    factor, term = node.operands
    step = 1
    while step < length:
        term = table.add(table.mul(factor, _moved(term, node.axis, step)), term)
        factor = table.mul(factor, _moved(factor, node.axis, step))
        step *= 2
    return term


def _moved(operand: Expr, axis: int, by: int) -> Expr:
    """The elements shifted `by` places up an axis, zeros before them."""
    shape = (*operand.shape[:axis], operand.shape[axis] - by, *operand.shape[axis + 1 :])
    rank = operand.rank

    def places(offset: int) -> list[Affine]:
        return [
            Affine(Dim((), offset if k == axis else 0), tuple(int(j == k) for j in range(rank)))
            for k in range(rank)
        ]

    return build.scatter(build.gather(operand, places(0), shape), places(by), operand.shape)


def _paired(node: Einsum, sizes: Mapping[str, int]) -> Expr:
    """A product of many factors as nested products of two, the cheapest pair first."""
    dims = concrete(node.dims, sizes)
    factors: list[tuple[Expr, Axes]] = list(zip(node.operands, node.inputs, strict=True))
    while len(factors) > 2:
        pairs = [(i, j) for j in range(len(factors)) for i in range(j)]
        i, j = min(pairs, key=lambda pair: _cost(factors, pair, node.output, dims))
        kept = _kept(factors, (i, j), node.output)
        product = _einsum([factors[i], factors[j]], kept, (), node.dims)
        factors = [f for k, f in enumerate(factors) if k not in (i, j)] + [(product, kept)]
    present = {label for own in node.inputs for label in own}
    absent = tuple(k for k in range(len(dims)) if k not in present and k not in node.output)
    return _einsum(factors, node.output, absent, node.dims)


def _einsum(
    factors: Sequence[tuple[Expr, Axes]], output: Axes, absent: Axes, dims: Sequence[Dim]
) -> Expr:
    """The sum of products over the labels of the factors and over `absent` only."""
    used = [*(label for _, own in factors for label in own), *output, *absent]
    number = {label: k for k, label in enumerate(dict.fromkeys(used))}
    inputs = [tuple(number[label] for label in own) for _, own in factors]
    sizes = [dims[label] for label in number]
    return build.einsum([f for f, _ in factors], inputs, tuple(number[k] for k in output), sizes)


def _kept(factors: Sequence[tuple[Expr, Axes]], pair: tuple[int, int], output: Axes) -> Axes:
    """The labels of a pair that the result or another factor needs."""
    others = {label for k, (_, own) in enumerate(factors) if k not in pair for label in own}
    own = dict.fromkeys(label for k in pair for label in factors[k][1])
    return tuple(label for label in own if label in others or label in output)


def _cost(
    factors: Sequence[tuple[Expr, Axes]],
    pair: tuple[int, int],
    output: Axes,
    dims: Sequence[int],
) -> tuple[int, int]:
    kept = _kept(factors, pair, output)
    labels = {label for k in pair for label in factors[k][1]}
    return prod(dims[k] for k in kept), prod(dims[k] for k in labels)
