"""Groups of matrices that act along axes of variables, and nodes that they carry along.

An action of a group on some axes of the variables multiplies these axes by a matrix g of the group,
or by its inverse transpose. A node is carried if its own axes are multiplied likewise; an objective
that is carried has no axes, and is invariant: f(gx) = f(x) for every x and g. Each rule below is
exact for every array, so that nothing is proved of functions that the rules do not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import singledispatch
from typing import Literal

import slomodel.functions as table
from slomodel.calculus.signs import parity_of
from slomodel.functions.compound import same, stop_gradient
from slomodel.ir.dims import Dim
from slomodel.ir.expr import (
    Affine,
    Const,
    Einsum,
    Expr,
    Extreme,
    Gather,
    Input,
    Map,
    reads_axis,
)
from slomodel.ir.walk import postorder

Group = Literal["linear", "rotation", "scaling", "permutation", "sign"]
"""All regular matrices, orthogonal ones, positive diagonal ones, permutations, diagonal signs."""
Letter = Literal["", "g", "inverse"]
"""An axis is left alone, multiplied by g, or by its inverse transpose."""
Letters = tuple[Letter, ...]
_DIAGONAL = ("scaling", "sign")


class NotCarried(Exception):
    """A node that the rules do not carry."""


def is_invariant(objective: Expr, group: Group, acted: Mapping[Input, Letters]) -> bool:
    """Whether the rules prove that the objective is invariant under an action on variables."""
    result: dict[Expr, Letters] = {}
    try:
        for node in postorder(objective):
            own = [result[operand] for operand in node.operands]
            if isinstance(node, Input):
                result[node] = acted.get(node, _none(node))
            elif not any(map(any, own)):
                result[node] = _none(node)
            else:
                result[node] = carried(node, own, group)
    except NotCarried:
        return False
    return True


def _none(node: Expr) -> Letters:
    none: Letter = ""
    return (none,) * node.rank


@singledispatch
def carried(node: Expr, own: list[Letters], group: Group) -> Letters:
    """The letters of a node from those of its operands, some of which have one."""
    raise NotCarried


@carried.register
def _(node: Map, own: list[Letters], group: Group) -> Letters:
    return tuple(_of_axis(node, own, group, axis) for axis in range(node.rank))


def _of_axis(node: Map, own: list[Letters], group: Group, axis: int) -> Letter:
    """The letter of one output axis."""
    letters: list[Letter | None] = []
    for letters_of, axes in zip(own, node.axes, strict=True):
        letters.append(letters_of[axes.index(axis)] if axis in axes else None)
    present = [letter for letter in letters if letter]
    if not present:
        return ""
    function = node.function
    if group == "permutation":
        if all(letter != "" for letter in letters):
            return "g"
        raise NotCarried
    if function in (table.add, table.sub, table.neg, same, stop_gradient):
        if len(present) == len(letters) and len(set(present)) == 1:
            return present[0]
        raise NotCarried
    if function in (table.mul, table.div):
        return _of_quotient(letters, function is table.div, group)
    is_chosen = function is table.where and set(letters[1:]) == {present[0]}
    if is_chosen and (letters[0] is None or (group in _DIAGONAL and letters[0] == "")):
        return present[0]
    if group == "sign" and parity_of(function):
        return "g" if parity_of(function) == -1 else ""
    if group == "scaling" and (function is table.abs or _is_positive_part(node)):
        return present[0]
    raise NotCarried


def _of_quotient(letters: list[Letter | None], divides: bool, group: Group) -> Letter:
    """A product or quotient: the matrices of diagonal groups multiply, others have no partner."""
    first, second = letters
    if group in _DIAGONAL:
        powers = _power(first) - _power(second) if divides else _power(first) + _power(second)
        return _letter(powers, group)
    if first and second is None:
        return first
    if second and first is None and not divides:
        return second
    raise NotCarried


def _power(letter: Letter | None) -> int:
    return {"g": 1, "inverse": -1}.get(letter or "", 0)


def _letter(power: int, group: Group) -> Letter:
    if group == "sign":
        return "g" if power % 2 else ""
    if power not in (-1, 0, 1):
        raise NotCarried
    return "" if power == 0 else "g" if power == 1 else "inverse"


def _is_positive_part(node: Map) -> bool:
    """Whether a node is max(x, 0) or min(x, 0)."""
    zeros = [isinstance(operand, Const) and operand.value == 0 for operand in node.operands]
    return node.function in (table.maximum, table.minimum) and any(zeros)


@carried.register
def _(node: Einsum, own: list[Letters], group: Group) -> Letters:
    result: dict[int, Letter] = {}
    for label in range(len(node.dims)):
        letters = [
            letter
            for labels, letters_of in zip(node.inputs, own, strict=True)
            for at, letter in zip(labels, letters_of, strict=True)
            if at == label
        ]
        result[label] = _of_label(letters, label in node.output, group)
    if len(set(node.output)) < node.rank:
        raise NotCarried
    return tuple(result[label] for label in node.output)


def _of_label(letters: list[Letter], is_output: bool, group: Group) -> Letter:
    """The letter of a label from those of all axes that have it."""
    present = [letter for letter in letters if letter]
    if not present:
        return ""
    if group == "permutation":
        if len(present) == len(letters):
            return "g" if is_output else ""
        raise NotCarried
    if group in _DIAGONAL:
        power = _letter(sum(map(_power, present)), group)
        if is_output or not power:
            return power
        raise NotCarried
    if is_output and len(letters) == 1:
        return present[0]
    pairs = {"linear": ["g", "inverse"], "rotation": ["g", "g"]}[group]
    if not is_output and sorted(letters) == pairs:
        return ""
    raise NotCarried


@carried.register
def _(node: Gather, own: list[Letters], group: Group) -> Letters:
    source = node.operands[0]
    result: list[Letter] = [""] * node.rank
    for axis, letter in enumerate(own[0]):
        if not letter:
            continue
        index = node.index[axis]
        if not isinstance(index, Affine) or index.offset != Dim():
            raise NotCarried
        read = [k for k, c in enumerate(index.coefficients) if c]
        if [index.coefficients[k] for k in read] != [1]:
            raise NotCarried
        (k,) = read
        others = [one for at, one in enumerate(node.index) if at != axis]
        if node.shape[k] != source.shape[axis] or any(reads_axis(one, k) for one in others):
            raise NotCarried
        result[k] = letter
    return tuple(result)


@carried.register
def _(node: Extreme, own: list[Letters], group: Group) -> Letters:
    if group != "permutation":
        raise NotCarried
    return tuple(letter for axis, letter in enumerate(own[0]) if axis not in node.axes)
