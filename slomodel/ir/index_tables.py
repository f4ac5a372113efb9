"""Whole numbers: the tables that indices read, and those that float32 would round.

Indices in the steps of recurrences are included.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from slomodel.errors import Diagnostic, TargetLimit
from slomodel.ir.expr import Expr, Input, Iota, Recur, remake, tables_of
from slomodel.ir.loop import Loop, SliceAt, Source, StateAt, Whole
from slomodel.ir.walk import postorder

SINGLE_MOST = 2**24
"""float32 holds every whole number up to here, and not the next."""


def tables_read(node: Expr) -> tuple[Expr, ...]:
    """The arrays whose elements are indices of a gather or scatter, or of one in a recurrence."""
    if isinstance(node, Recur):
        return tuple(node.operands[source.operand] for _, source in _read_in(node.loop))
    return tables_of(node)


def with_tables(roots: tuple[Expr, ...], other: Mapping[Expr, Expr]) -> dict[Expr, Expr]:
    """Every node under the roots with the tables that indices read replaced by equal ones."""
    done: dict[Expr, Expr] = {}
    for node in postorder(*roots):
        if isinstance(node, Recur):
            done[node] = _recurrence(node, tuple(done[operand] for operand in node.operands), other)
            continue
        count = len(tables_of(node))
        own = node.operands[: len(node.operands) - count]
        tables = node.operands[len(own) :]
        operands = (
            *(done[one] for one in own),
            *(other.get(table, done[table]) for table in tables),
        )
        done[node] = remake(node, operands) if operands else node
    return done


def _read_in(loop: Loop) -> list[tuple[Expr, Whole | SliceAt]]:
    """The placeholders that indices in the steps read, and what each stands for.

    Those that indices in a loop inside a step read are among them.
    """
    values = [update.value for update in loop.updates]
    tables = {table for node in postorder(*values) for table in tables_read(node)}
    return [
        (one, source)
        for one, source in loop.sources
        if one in tables and not isinstance(source, StateAt)
    ]


def _recurrence(node: Recur, operands: tuple[Expr, ...], other: Mapping[Expr, Expr]) -> Recur:
    """A recurrence over these operands whose indices read other tables.

    A placeholder that is used elsewhere too remains, beside the new one that indices read.
    """
    loop = node.loop
    names: dict[Expr, Expr] = {}
    sources: list[tuple[Expr, Source]] = list(loop.sources)
    arrays = list(operands)
    for one, source in _read_in(loop):
        table = other.get(node.operands[source.operand])
        if table is not None:
            assert isinstance(one, Input)
            names[one] = Input(f"{one.name} as an index", "step", one.shape, table.dtype)
            sources.append((names[one], replace(source, operand=len(arrays))))
            arrays.append(table)
    if not names:
        return Recur(operands, loop, node.state)
    values = tuple(update.value for update in loop.updates)
    new = with_tables(values, names)
    updates = tuple(replace(update, value=new[update.value]) for update in loop.updates)
    used = set(postorder(*(update.value for update in updates)))
    kept = [(one, source) for one, source in sources if one in used]
    read = [source.operand for _, source in kept if not isinstance(source, StateAt)]
    wanted = dict.fromkeys(arrays[k] for k in (*(k for k in loop.initial if k is not None), *read))
    place = {array: k for k, array in enumerate(wanted)}

    def moved(source: Source) -> Source:
        if isinstance(source, StateAt):
            return source
        return replace(source, operand=place[arrays[source.operand]])

    initial = tuple(None if k is None else place[arrays[k]] for k in loop.initial)
    own = tuple((one, moved(source)) for one, source in kept)
    return Recur(
        tuple(wanted), replace(loop, initial=initial, sources=own, updates=updates), node.state
    )


def require_single(
    objective: Expr, wholes: Mapping[Input, NDArray[np.generic]], sizes: Mapping[str, int]
) -> None:
    """Raise TargetLimit if the objective computes in float32 with whole numbers beyond it.

    Positions at which arrays are read are integers in any precision, and do not count. `wholes` are
    the values of data that hold whole numbers.
    """
    seen: set[Expr] = set()
    stack = [objective]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if isinstance(node, Iota):
            _check(f"the index over {node.shape[0]}", node.shape[0].size(sizes) - 1)
        elif isinstance(node, Input) and node in wholes:
            _check(f"`{node.name}`", int(np.abs(wholes[node]).max(initial=0.0)))
        tables = tables_read(node)
        stack += [operand for operand in node.operands if operand not in tables]


def _check(what: str, largest: int) -> None:
    if largest > SINGLE_MOST:
        message = (
            f"{what} reaches {largest:,} in a condition or a term, and float32 holds whole numbers "
            f"only up to {SINGLE_MOST:,}"
        )
        raise TargetLimit(Diagnostic("E801", message, help="compile it with dtype='float64'"))
