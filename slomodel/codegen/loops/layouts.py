"""Layouts of intermediate arrays: a long axis lies last in memory, so that loops can run along it.

Loops along axes of a few elements leave most of a vector register empty, and start and end too
often. An array (n, 3) that only loops and products read is stored as (3, n).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from slomodel.codegen.loops.access import Numbers, c_order
from slomodel.codegen.lower import Blocks
from slomodel.codegen.program import Form, Program
from slomodel.ir.dims import Dim
from slomodel.ir.expr import (
    Affine,
    Axes,
    Einsum,
    Expr,
    Gather,
    Index,
    Input,
    Lookup,
    Map,
    Recur,
    Reshape,
    Scatter,
    is_listed,
    remake,
)
from slomodel.ir.walk import postorder, rewrite, users

Strides = tuple[int, ...]

_SHORT = 48
"""Elements along the last axis below which another one is placed last: about six registers."""
_LONG = 48
_RATIO = 4
_THIN = 4
"""Up to this size of a side, loops multiply arrays of more than two axes as quickly as BLAS."""
ROW = 8
_LOOKED_UP = 5
_IN_ROWS = 16
"""Elements of a row of a state from which loops along rows are as fast as along steps."""
_READS = (Form.ELEMENTWISE, Form.SUM, Form.EXTREME, Form.PRODUCT)
_WRITES = (*_READS, Form.TAKE)
_VIEWS = (Form.AXES, Form.SLICE)


def layouts(
    program: Program,
    numbers: Numbers,
    is_matrix_product: Callable[[Expr], bool],
    is_looked_up: Callable[[Expr], bool],
) -> dict[Expr, Strides]:
    """The strides of the arrays that are not stored in C order.

    `is_matrix_product` says which nodes are products, which read and write matrices only, and
    `is_looked_up` which are gathers and scatters in loops.
    """

    def is_product(node: Expr) -> bool:
        return is_matrix_product(node) and not is_thin(node, numbers)

    order = postorder(*program.roots)
    using = users(order)
    held = set(program.roots)
    with_states = _read_with_states(order, numbers)
    result: dict[Expr, Strides] = {}
    # Users come later in a postorder, so they are settled first.
    plain: dict[Expr, bool] = {}
    for node in reversed(order):
        form = program.forms[node]
        form = Form.ELEMENTWISE if is_copy(node) else form
        readable = all(
            _reads(user, node, program, plain, is_product)
            or (is_looked_up(user) and user.operands[0] is node and form not in _VIEWS)
            for user in using[node]
        )
        written = form in _WRITES or (form is Form.PUT and is_looked_up(node))
        plain[node] = readable and node not in held and (form in _VIEWS or written)
        if not plain[node] or form in _VIEWS or (is_product(node) and node.rank != 2):
            continue
        if (is_listed(node) and not is_looked_up(node)) or node in with_states:
            continue
        # Whole rows are looked up more quickly than elements.
        if _is_near_lookup(node, using[node]):
            strides = _rows_last(node, using[node], numbers)
        else:
            strides = _long_last(_sizes(node, numbers))
        if strides is not None:
            result[node] = strides
    return result


def _read_with_states(order: Sequence[Expr], numbers: Numbers) -> set[Expr]:
    """The arrays that are computed from states of recurrences, or with them, element by element.

    States lie in C order, one step after another; other arrays that the same loops read or write
    in another order would be read with large strides.
    """
    found: set[Expr] = set()

    def shared(node: Expr) -> list[Expr]:
        """The operands that a node reads at its own indices."""
        if isinstance(node, Map):
            return [one for one in node.operands if one.rank == node.rank]
        return list(node.operands[:1]) if isinstance(node, Gather) else []

    for node in order:
        if isinstance(node, Recur):
            is_long = node.rank > 1 and _sizes(node, numbers)[-1] >= _IN_ROWS
            found.update([node] if is_long else [])
        elif node.rank > 1 and any(one in found for one in shared(node)):
            found.add(node)
    for node in reversed(order):
        if node in found:
            found.update(one for one in shared(node) if one.rank > 1)
    return found


def _is_near_lookup(node: Expr, using: list[Expr]) -> bool:
    """Whether a node is looked up by index data, or is computed with or for such nodes."""
    return any(map(is_listed, (node, *node.operands, *using)))


def _rows_last(node: Expr, using: list[Expr], numbers: Numbers) -> Strides | None:
    """The strides of a table with the axes last that no index array depends on; None: C order.

    A table A[l, m, x[n, m]] is looked up row by row: for each n and m, the elements of all l.
    """
    sizes = _sizes(node, numbers)
    lookups = {user: user.index for user in using if is_listed(user) and isinstance(user, Gather)}
    longest = max((prod(_sizes(user, numbers)) for user in lookups), default=0)
    result = {_outer(index) for index in lookups.values()}
    if isinstance(node, Scatter) and is_listed(node):
        result.add(_outer(node.index))
        longest = max(longest, prod(_sizes(node.operands[0], numbers)))
    if len(result) != 1 or not 0 < _RATIO * prod(sizes) < longest:
        return None
    (outer,) = result
    rows = [axis for axis in range(node.rank) if axis not in outer]
    if node.rank - 1 not in outer or prod(sizes[axis] for axis in rows) < _LOOKED_UP:
        return None
    axes = [*sorted(outer), *rows]
    stored = c_order([sizes[axis] for axis in axes])
    return tuple(stored[axes.index(axis)] for axis in range(node.rank))


def _outer(index: Sequence[Index]) -> frozenset[int]:
    """The axes of a table that are looked up, or run along an axis of an index array."""
    own = {axis for one in index if isinstance(one, Lookup) for axis in one.axes}
    return frozenset(
        q
        for q, one in enumerate(index)
        if not isinstance(one, Affine)
        or any(c and axis in own for axis, c in enumerate(one.coefficients))
    )


def reads_rows(node: Expr) -> bool:
    """Whether a gather by index data reads whole rows of an array."""
    if not isinstance(node, Gather) or node.rank < 2:
        return False
    *others, last = node.index
    along = Affine(Dim(), (*(0,) * (node.rank - 1), 1))
    rows = all(isinstance(one, Lookup) and node.rank - 1 not in one.axes for one in others)
    return last == along and rows


def is_row(size: int) -> bool:
    """Whether loops compute with looked up rows of a length; rows of three are `short_axes`.

    Two or four elements are a vector.
    """
    return size in (2, 4) or size >= _LOOKED_UP


def is_copy(node: Expr) -> bool:
    """Whether a node is a copy of an array in another layout."""
    return isinstance(node, Reshape) and node.shape == node.operands[0].shape


def is_thin(node: Expr, numbers: Numbers) -> bool:
    """Whether a node is a product of arrays of more than two axes with a side of a few elements."""
    if not isinstance(node, Einsum) or len(node.operands) != 2:
        return False
    if max(node.rank, *(operand.rank for operand in node.operands)) < 3:
        return False
    parts = Blocks.of_node(node)
    sizes = [dim.value(numbers) for dim in node.dims]
    sides = (parts.left, parts.right, parts.summed)
    return min(prod(sizes[label] for label in side) for side in sides) <= _THIN


def is_summed_in_loop(node: Einsum, *, in_order: bool) -> bool:
    """Whether a product of matrices and vectors is a sum in a loop.

    In order, it is one for each index of a batch; on a device it may be a single one.
    """
    if len(node.operands) != 2:
        return False
    narrow, wide = sorted(map(set, node.inputs), key=len)
    return narrow < wide and not (in_order and narrow.isdisjoint(node.output))


def with_copies(roots: tuple[Expr, ...], numbers: Numbers) -> tuple[Expr, ...]:
    """The roots, where loops read a copy of an input whose layout is slow for them.

    Its last axis is short, or is looked up. The copies of data are made once. Others pay if a
    longer loop reads them. Sums at places of index data are copied into results.
    """
    order = postorder(*roots)
    using = users(order)
    held = set(roots)
    with_states = _read_with_states(order, numbers)
    copies: dict[Expr, tuple[Expr, set[Expr]]] = {}
    for node in order:
        if not isinstance(node, Input) or node.dtype != "real" or node.rank < 2:
            continue
        shape = _sizes(node, numbers)
        loops = [user for user in using[node] if _is_loop(user, numbers)]
        if _long_last(shape) is None:
            lookups = [user for user in using[node] if is_listed(user)]
            loops = lookups if _rows_last(node, lookups, numbers) is not None else []
        loops = [user for user in loops if user not in held and user not in with_states]
        longest = max((prod(_sizes(user, numbers)) for user in loops), default=0)
        if loops and (node.role == "data" or longest > prod(shape)):
            copies[node] = (Reshape(node, node.shape), set(loops))
    added = {one for one in roots if _is_slow_result(one, numbers)}
    if not copies and not added:
        return roots
    done: dict[Expr, Expr] = {}
    for node in order:
        operands = tuple(
            copies[operand][0]
            if operand in copies and node in copies[operand][1]
            else done[operand]
            for operand in node.operands
        )
        done[node] = remake(node, operands) if operands else node
    return tuple(Reshape(done[root], root.shape) if root in added else done[root] for root in roots)


def with_transposed_sums(roots: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Lowered roots in which sums in loops read arrays and not permutations of them.

    Lowering permutes the operands of a product into batch, own and summed labels, as BLAS takes
    them. A product of two arrays with the same axes is a sum in a loop, which can be the one that
    computes the arrays, if it reads them in their own order.
    """
    return rewrite(roots, lambda node: _unpermuted_sum(node) if isinstance(node, Einsum) else node)


def _unpermuted_sum(node: Einsum) -> Expr:
    if len(node.operands) != 2 or set(node.inputs[0]) != set(node.inputs[1]):
        return node
    plain = [_unpermuted(one, own) for one, own in zip(node.operands, node.inputs, strict=True)]
    (a, own), (b, other) = plain
    if own != other or (a, b) == node.operands:
        return node
    # Numbered by first appearance, so that equal sums are one node.
    number = {label: k for k, label in enumerate(own)}
    labels = tuple(range(len(own)))
    output = tuple(number[label] for label in node.output)
    return Einsum((a, b), (labels, labels), output, tuple(node.dims[label] for label in own))


def _unpermuted(operand: Expr, labels: Axes) -> tuple[Expr, Axes]:
    """The array that an operand permutes, if it does, and the labels of its axes."""
    if not isinstance(operand, Einsum) or len(operand.operands) != 1:
        return operand, labels
    (own,) = operand.inputs
    if sorted(own) != sorted(operand.output) or len(set(own)) < len(own):
        return operand, labels
    named = dict(zip(operand.output, labels, strict=True))
    return operand.operands[0], tuple(named[label] for label in own)


def _is_slow_result(root: Expr, numbers: Numbers) -> bool:
    """Whether a result sums at places of index data, one element apart from the next."""
    if not isinstance(root, Scatter) or not is_listed(root):
        return False
    return _rows_last(root, [], numbers) is not None


def _is_loop(node: Expr, numbers: Numbers) -> bool:
    """Whether a node is computed in a loop over the elements of its operands."""
    if isinstance(node, Einsum):
        same = len({frozenset(own) for own in node.inputs}) == 1
        in_loop = same or is_summed_in_loop(node, in_order=True) or is_thin(node, numbers)
        narrow = len(node.operands) == 2 and any(
            operand.rank == 2 and operand.shape[-1].size(numbers) <= ROW
            for operand in node.operands
        )
        return bool(node.operands) and (in_loop or narrow)
    return isinstance(node, Map) or _is_windows(node)


def _is_windows(node: Expr) -> bool:
    """Whether a node reads windows of an array: BLAS cannot multiply them whatever their layout."""
    wider = isinstance(node, Gather) and node.rank > node.operands[0].rank
    return wider and not is_listed(node)


def _sizes(node: Expr, numbers: Numbers) -> tuple[int, ...]:
    return tuple(max(0, dim.value(numbers)) for dim in node.shape)


def _reads(
    user: Expr,
    node: Expr,
    program: Program,
    plain: dict[Expr, bool],
    is_product: Callable[[Expr], bool],
) -> bool:
    """Whether a user reads an array with any strides."""
    form = program.forms[user]
    if isinstance(user, Scatter) and user.operands[0] is node:
        return True
    if _is_windows(user) or is_copy(user):
        return True
    if form in _VIEWS:
        return plain[user]
    return form in _READS and (node.rank == 2 or not is_product(user))


def _long_last(shape: tuple[int, ...]) -> Strides | None:
    """The strides with the longest axis last; None if the last one of a shape is long enough."""
    if len(shape) < 2 or 0 in shape:
        return None
    longest = max(range(len(shape)), key=lambda axis: (shape[axis], axis))
    if shape[-1] >= _SHORT or shape[longest] < max(_LONG, _RATIO * shape[-1]):
        return None
    axes = [axis for axis in range(len(shape)) if axis != longest] + [longest]
    stored = c_order([shape[axis] for axis in axes])
    return tuple(stored[axes.index(axis)] for axis in range(len(shape)))
