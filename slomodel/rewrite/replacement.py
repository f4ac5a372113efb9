"""Graphs rebuilt over replaced nodes, with the notes on their nodes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

from slomodel.functions import where
from slomodel.ir import build
from slomodel.ir.expr import Const, Einsum, Expr, Map, is_map, remake
from slomodel.ir.walk import postorder

_Note = TypeVar("_Note")


def remade(node: Expr, operands: tuple[Expr, ...]) -> Expr:
    """The node with other operands, in canonical form."""
    if isinstance(node, Map):
        return build.apply_along(node.function, operands, node.axes, node.shape)
    if isinstance(node, Einsum):
        return build.einsum(operands, node.inputs, node.output, node.dims)
    return remake(node, operands)


def composed(roots: Sequence[Expr], values: Mapping[Expr, Expr]) -> dict[Expr, Expr]:
    """Maps each node under the roots to the node over `values` in place of its operands.

    The keys of `values` are replaced by others of the same shape, and what is above them is
    constructed again in canonical form.
    """
    done: dict[Expr, Expr] = {}
    for node in postorder(*roots):
        operands = tuple(done[operand] for operand in node.operands)
        same = operands == node.operands
        done[node] = values.get(node) or (node if same else remade(node, operands))
    return done


def with_false(root: Expr, never: Collection[Expr]) -> Expr:
    """The graph in which these conditions are false."""
    done: dict[Expr, Expr] = {}
    for node in postorder(root):
        operands = tuple(done[operand] for operand in node.operands)
        if node in never:
            done[node] = Const(False)
        elif operands == node.operands:
            done[node] = node
        elif isinstance(node, Map):
            axes = [own if one.rank else () for one, own in zip(operands, node.axes, strict=True)]
            result = build.apply_along(node.function, operands, axes, node.shape)
            is_scalar = node.dtype != "bool" and not result.rank
            done[node] = build.broadcast(result, (), node.shape) if is_scalar else result
        else:
            # What reads an array of truth values, as a loop may, keeps it.
            pairs = zip(node.operands, operands, strict=True)
            kept = tuple(new if new.rank == own.rank else own for own, new in pairs)
            done[node] = remade(node, kept)
    return done[root]


def carried(notes: Mapping[Expr, _Note], became: Mapping[Expr, Expr]) -> dict[Expr, _Note]:
    """Notes on nodes, carried over to their replacements and to the new nodes below these."""
    result = dict(notes)
    known = set(became.values())
    for node, new in became.items():
        if new is node or node not in notes:
            continue
        stack = [new]
        while stack:
            one = stack.pop()
            made_here = one is new or (one not in known and not isinstance(one, Const))
            if made_here and one not in result:
                result[one] = notes[node]
                stack.extend(one.operands)
    return result


def choices_added(root: Expr, became: Mapping[Expr, Expr]) -> frozenset[Expr]:
    """The choices between formulas that a rewriting has added to the graph under the root."""
    written = {new for node, new in became.items() if is_map(node, where)}
    result = {node for node in postorder(became[root]) if is_map(node, where)}
    return frozenset(result - written)
