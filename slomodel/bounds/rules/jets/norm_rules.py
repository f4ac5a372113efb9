"""For each node kind, the norms of operands from which each norm of the node is bounded."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

import slomodel.functions as table
from slomodel.bounds.rules.jets.indexing_norms import gathered, listed, reshaped, scattered
from slomodel.bounds.rules.jets.mixed_norms import Norm, Sizes, canonical, flattened
from slomodel.bounds.rules.jets.product_norms import Options, product_options
from slomodel.errors import MissingRule
from slomodel.functions.compound import same
from slomodel.ir.dims import concrete
from slomodel.ir.expr import Einsum, Expr, Extreme, Gather, Map, Reshape, Scatter, affine, is_listed
from slomodel.reference import positions


@dataclass(frozen=True, slots=True)
class Linear:
    """w = Σ_k ± L_k(operand k): a norm of w is at most the sum of those given by the options."""

    operands: tuple[Expr, ...]
    options: tuple[Options, ...]


@dataclass(frozen=True, slots=True)
class Product:
    """w = Σ u v: two operands and the pairs of norms in which they may be combined."""

    left: Expr
    right: Expr
    options: Options


@dataclass(frozen=True, slots=True)
class Choice:
    """Each element of w is an element of one of the operands, broadcast along w's axes.

    `whole` holds the norms to use where one operand provides all of w, `parts` those, in an
    entrywise norm that is not smaller, where elements come from both.
    """

    operands: tuple[Expr, ...]
    whole: tuple[Options, ...]
    parts: tuple[Options, ...]


@dataclass(frozen=True, slots=True)
class Elementwise:
    """w = φ(u) elementwise, with a single operand u that depends on x; options along w's axes.

    In the norm itself, in its entrywise form, with rows as maxima, with columns as maxima, and for
    single entries.
    """

    operand: Expr
    own: Options
    flat: Options
    rows: Options
    columns: Options
    entry: Options


Rule = Linear | Product | Choice | Elementwise


@dataclass(frozen=True, slots=True)
class NormContext:
    """The sizes of dims, the nodes that depend on a variable, and the data that indices read."""

    sizes: Mapping[str, int]
    varying: Collection[Expr]
    tables: Mapping[Expr, NDArray[np.float64]]

    def shape(self, node: Expr) -> Sizes:
        return concrete(node.shape, self.sizes)


@singledispatch
def norm_rule(node: Expr, norm: Norm, scope: NormContext) -> Rule:
    """The rule for a norm of a node that depends on a variable and is not one itself.

    Raises MissingRule for a kind without one.
    """
    raise MissingRule(f"no rule for norms of {type(node).__name__}")


@norm_rule.register
def _(node: Einsum, norm: Norm, scope: NormContext) -> Rule:
    size = dict(enumerate(concrete(node.dims, scope.sizes)))
    result = product_options(node.inputs, node.output, norm, size)
    if len(node.operands) == 1:
        return Linear(node.operands, (result,))
    left, right = node.operands
    return Product(left, right, result)


@norm_rule.register
def _(node: Gather, norm: Norm, scope: NormContext) -> Rule:
    operand = node.operands[0]
    if is_listed(node):
        return _by_list(node, scope.shape(node), scope.shape(operand), scope)
    return Linear(
        (operand,), (gathered(affine(node.index), scope.shape(node), scope.shape(operand), norm),)
    )


@norm_rule.register
def _(node: Scatter, norm: Norm, scope: NormContext) -> Rule:
    operand = node.operands[0]
    if is_listed(node):
        return _by_list(node, scope.shape(operand), scope.shape(node), scope)
    return Linear(
        (operand,), (scattered(affine(node.index), scope.shape(operand), scope.shape(node), norm),)
    )


def _by_list(node: Gather | Scatter, iterated: Sizes, indexed: Sizes, scope: NormContext) -> Rule:
    """Via the Frobenius norm: an element occurs at most μ times, so ‖w‖ <= √μ ‖u‖_F."""
    operand = node.operands[0]
    result = listed(positions(node.index, iterated, indexed, scope.sizes, scope.tables), indexed)
    whole = canonical("r" * operand.rank, scope.shape(operand))
    return Linear((operand,), (Options(result, ((whole,),)),))


@norm_rule.register
def _(node: Reshape, norm: Norm, scope: NormContext) -> Rule:
    operand = node.operands[0]
    return Linear((operand,), (reshaped(scope.shape(operand), scope.shape(node), norm),))


@norm_rule.register
def _(node: Extreme, norm: Norm, scope: NormContext) -> Rule:
    """An element of w or of its derivatives is one of u: the entrywise norms of a slice hold."""
    operand = node.operands[0]
    kept = iter(flattened(norm))
    over = "r" if "r" in norm else "m"
    letters = [over if axis in node.axes else next(kept) for axis in range(operand.rank)]
    word = canonical("".join(letters), scope.shape(operand))
    return Linear((operand,), (Options(1.0, ((word,),)),))


@norm_rule.register
def _(node: Map, norm: Norm, scope: NormContext) -> Rule:
    size = dict(enumerate(scope.shape(node)))
    every = tuple(range(node.rank))
    function = node.function

    def laid(k: int, word: Norm) -> Options:
        return product_options([node.axes[k]], every, word, size)

    if function in (table.add, table.sub, table.neg):
        return Linear(node.operands, tuple(laid(k, norm) for k in range(function.arity)))
    if function is same:
        return Linear(node.operands[:1], (laid(0, norm),))
    if function is table.mul:
        left, right = node.operands
        return Product(left, right, product_options(node.axes, every, norm, size))
    if function is table.square:
        (operand,) = node.operands
        return Product(operand, operand, product_options(node.axes * 2, every, norm, size))
    if function in (table.where, table.maximum, table.minimum):
        first = 1 if function is table.where else 0
        chosen = range(first, first + 2)
        return Choice(
            node.operands[first:],
            tuple(laid(k, norm) for k in chosen),
            tuple(laid(k, flattened(norm)) for k in chosen),
        )
    varying = [k for k, operand in enumerate(node.operands) if operand in scope.varying]
    if len(varying) != 1:
        raise MissingRule(f"no rule for `{function}` of {len(varying)} operands that vary")
    k = varying[0]
    words = [norm, flattened(norm), *_halves(norm), "m" * len(norm)]
    shape = scope.shape(node)
    return Elementwise(node.operands[k], *(laid(k, canonical(word, shape)) for word in words))


def _halves(norm: Norm) -> tuple[Norm, Norm]:
    """The norm with its rows as maxima, and the norm with its columns as maxima."""
    return norm.replace("r", "m").replace("c", "r"), norm.replace("c", "m")


def demanded(rule: Rule) -> list[tuple[Expr, Norm]]:
    """The operands and norms that a rule reads."""
    result: list[tuple[Expr, Norm]] = []
    if isinstance(rule, Product):
        for left, right in rule.options.norms:
            result += [(rule.left, left), (rule.right, right)]
    elif isinstance(rule, Linear):
        for operand, options in zip(rule.operands, rule.options, strict=True):
            result += [(operand, word) for (word,) in options.norms]
    elif isinstance(rule, Choice):
        for operand, whole, parts in zip(rule.operands, rule.whole, rule.parts, strict=True):
            result += [(operand, word) for (word,) in (*whole.norms, *parts.norms)]
    else:
        for options in (rule.own, rule.flat, rule.rows, rule.columns, rule.entry):
            result += [(rule.operand, word) for (word,) in options.norms]
    return result
