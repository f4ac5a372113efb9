"""Inference of the shape of an IndexedBase that has none, from its indices and its data."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import sympy as sp

from slomodel.errors import ShapeError, SlomodelError
from slomodel.front.elaboration.indices.affine_index import AffineIndex
from slomodel.front.sympy_expressions.errors import error
from slomodel.front.sympy_expressions.scope import Translation
from slomodel.ir.dims import Dim, Shape, literal

Form = AffineIndex | None
"""An affine index; None for one that depends on data."""

Use = tuple[sp.Basic, tuple[Form, ...]]


def inferred(
    name: str, uses: Sequence[Use], given: tuple[int, ...] | None, translation: Translation
) -> Shape:
    """Axes as long as the largest index requires, or as long as those of the given data.

    Where sizes decide which of two indices is larger, one is taken and the other tested at bind.
    """
    rank = len(uses[0][1])
    for node, forms in uses:
        if len(forms) != rank:
            message = f"`{name}` has {rank} indices elsewhere, and {len(forms)} here"
            raise error("E409", message, node, "give it one index for each axis", ShapeError)
    axes = [_extent(name, uses, axis, translation) for axis in range(rank)]
    if given is None or len(given) != rank:
        return tuple(axes)
    return tuple(_fitted(dim, size, translation) for dim, size in zip(axes, given, strict=True))


def _extent(name: str, uses: Sequence[Use], axis: int, translation: Translation) -> Dim:
    own = [forms[axis] for _, forms in uses]
    ends = [
        form.most + 1
        for form in own
        if form is not None and all(label.dim != Dim() for label in form.labels)
    ]
    if None in own and not ends:
        raise _undetermined(name, uses[0][0], len(uses[0][1]))

    def longer(a: Dim, b: Dim) -> Dim:
        if _grows(a - b):
            return a
        if _grows(b - a):
            return b
        first, second = translation.size(a), translation.size(b)
        if first is None or second is None:
            raise _undecided(name, uses[0][0], a, b)
        return a if first >= second else b

    return reduce(longer, ends, literal(0))


def _grows(difference: Dim) -> bool:
    """Whether a difference is at least 0 for all sufficiently large sizes."""
    if difference.is_literal:
        return difference.const >= 0
    return all(coefficient > 0 for _, coefficient in difference.terms)


def _undetermined(name: str, node: sp.Basic, rank: int) -> SlomodelError:
    message = f"the size of `{name}` is not known: data alone say which elements are read"
    sizes = "J," if rank == 1 else ", ".join(f"n{k}" for k in range(rank))
    remedy = f"state its shape: `IndexedBase({name!r}, shape=({sizes}))` with integer symbols"
    return error("E409", message, node, remedy, ShapeError)


def _undecided(name: str, node: sp.Basic, a: Dim, b: Dim) -> SlomodelError:
    message = f"an axis of `{name}` is indexed up to {a - 1} and up to {b - 1}"
    remedy = f"state its shape: `IndexedBase({name!r}, shape=({a},))`"
    return error("E409", message, node, remedy, ShapeError)


def _fitted(dim: Dim, size: int, translation: Translation) -> Dim:
    """The dim, if the size of the data may define or equals it; otherwise that size as a number."""
    known = translation.size(dim)
    return dim if known in (None, size) else literal(size)
