"""Loops of a program in loop form: one rule for each way to compute a node."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, prod

import numpy as np

from slomodel.codegen.loops.access import (
    Access,
    along,
    c_order,
)
from slomodel.codegen.loops.fusion import Fusion, elements
from slomodel.codegen.loops.nest import (
    AlongAxis,
    Apply,
    Axis,
    Block,
    Collection,
    Computed,
    Contraction,
    Copy,
    Count,
    Element,
    Fill,
    IndexArray,
    IndexRead,
    IndexTable,
    MatrixCall,
    Nest,
    Operand,
    Output,
    PlacedSlice,
    Position,
    Recurrence,
    Reduce,
    Reduction,
    Scalar,
    Statement,
    Store,
    located,
)
from slomodel.codegen.loops.regions import Read, Region, loop_labels
from slomodel.codegen.loops.steps import time_loop
from slomodel.codegen.lower import Blocks
from slomodel.codegen.program import Form
from slomodel.codegen.python.views import listed
from slomodel.ir.expr import (
    Affine,
    Einsum,
    Expr,
    Extreme,
    Gather,
    Index,
    Lookup,
    Map,
    MatrixOperation,
    Multiset,
    Recur,
    Scan,
    Scatter,
    affine,
)


def blocks(region: Region, fusion: Fusion) -> list[Block]:
    """The loop form of a region."""
    if not region.alone:
        return [nest(region, fusion)]
    node = region.nodes[0]
    if isinstance(node, Recur):
        return [time_loop(node, fusion, blocks)]
    shape = fusion.accesses.shape(node)
    if node in fusion.copied:
        return [Copy(node, shape, located(fusion.accesses.viewed(node)))]
    if fusion.collects(node):
        return [_collection(node, fusion)] if prod(shape) else []
    if fusion.is_matrix_product(node):
        return [_contraction(node, fusion)]
    if isinstance(node, MatrixOperation):
        return [_matrix_call(node, fusion)]
    if isinstance(node, (Gather, Scatter)):
        return _moved(node, fusion)
    if isinstance(node, Scan):
        sides = (located(fusion.accesses.of(operand)) for operand in node.operands)
        return [Recurrence(shape, node.axis, _own(node, shape), *sides)]
    if fusion.forms[node] is Form.ONES:
        assert isinstance(node, Einsum)
        sizes = [dim.size(fusion.accesses.numbers) for dim in node.dims]
        summed = (size for label, size in enumerate(sizes) if label not in node.output)
        return [Fill(node, prod(shape), float(prod(summed)))]
    assert fusion.forms[node] is Form.COUNT
    store = Store(_own(node, shape), Count(0))
    return [Nest((Axis.of(*shape),), (store,))]


def copied_output(root: Expr, k: int, fusion: Fusion) -> Copy:
    """The copy of a root that was not computed in the caller's array."""
    access = fusion.accesses.of(root)
    return Copy(Output(k), fusion.accesses.shape(root), located(access))


def nest(region: Region, fusion: Fusion) -> Nest:
    """The loops of a region: the values at each index and their reductions."""
    rank = len(region.shape)
    statements: list[Statement] = []
    computed: dict[Expr, int] = {}
    for node in region.nodes:
        operands: tuple[Operand, ...]
        if isinstance(node, Gather) and fusion.is_looked_up(node):
            operands = (_looked_up(node, region.shape, fusion),)
        elif isinstance(node, Scatter) and fusion.is_looked_up(node):
            operands = (_operand(next(fusion.reads(node)), rank, computed, fusion),)
        else:
            reads = fusion.reads(node)
            operands = tuple(_operand(read, rank, computed, fusion) for read in reads)
        if node in fusion.assembled:
            statements.append(Store(_target(node, rank, fusion), *operands))
            continue
        if not fusion.is_value(node):
            statements.append(Reduce(_reduction(node), operands, _target(node, rank, fusion)))
            continue
        function = node.function if isinstance(node, Map) else None
        statements.append(Apply(function, operands))
        value = Computed(len(statements) - 1)
        if not rank:
            statements.append(Store(Scalar(node), value))
            continue
        computed[node] = value.statement
        if node in fusion.stored:
            own = _own(node, region.shape)
            if node.shape and fusion.accesses.shape(node) == region.shape:
                own = Element(node, Position(0, fusion.accesses.of(node).strides))
            statements.append(Store(own, value))
    axes = tuple(map(Axis.of, region.shape))
    return Nest(axes, tuple(statements), _fills(region, fusion))


def _looked_up(node: Gather, shape: tuple[int, ...], fusion: Fusion) -> Element | Scalar:
    """The element that a gather by index data reads at the index of a loop over its shape."""
    source = located(fusion.accesses.of(node.operands[0]))
    if isinstance(source, Scalar):
        return source
    return Element(source.array, _listed(node.index, source.position, shape, fusion))


def _operand(read: Read, rank: int, computed: dict[Expr, int], fusion: Fusion) -> Operand:
    if read.node in computed and fusion.is_value_here(read, rank):
        return Computed(computed[read.node])
    result = located(fusion.accesses.of(read.node))
    if isinstance(result, Scalar):
        return result
    own = dict(zip(read.axes, result.position.strides, strict=True))
    strides = tuple(own.get(axis, 0) for axis in range(rank))
    return Element(result.array, Position(result.position.offset, strides))


def _reduction(node: Expr) -> Reduction:
    if isinstance(node, Extreme):
        return "max" if node.which == "max" else "min"
    return "sum"


def _target(node: Expr, rank: int, fusion: Fusion) -> Element | Scalar:
    """The target of a sum, an extreme, a scatter or an accumulation, over the axes of its loop."""
    if not node.rank:
        return Scalar(node)
    own, owner = fusion.accesses.of(node).strides, fusion.owners[node]
    if isinstance(node, Scatter) and fusion.is_looked_up(node):
        shape = fusion.accesses.shape(node.operands[0])
        inside = Position(0, own)
        return Element(owner, _listed(node.index, inside, shape, fusion))
    if fusion.forms[node] in (Form.PUT, Form.ACCUMULATE):
        offset, strides = along(fusion.index(node), own, rank, fusion.accesses.numbers)
        return Element(owner, Position(offset, strides))
    if isinstance(node, Einsum):
        by_label = dict(zip(node.output, own, strict=True))
        strides = tuple(by_label.get(label, 0) for label in loop_labels(node))
        return Element(owner, Position(0, strides))
    assert isinstance(node, Extreme)
    kept = iter(own)
    strides = tuple(0 if k in node.axes else next(kept) for k in range(rank))
    return Element(owner, Position(0, strides))


def _own(node: Expr, shape: Sequence[int]) -> Element:
    """The element of a node's own array at the index of a loop over its shape."""
    return Element(node, Position(0, c_order(shape)))


def _fills(region: Region, fusion: Fusion) -> tuple[Fill | Copy, ...]:
    """The initial contents of the arrays that a loop adds to: one number, or another array."""
    result: list[Fill | Copy] = []
    for node in region.nodes:
        if not node.rank or fusion.is_value(node) or not fusion.in_order:
            continue
        if node in fusion.assembled:
            continue
        shape = fusion.accesses.shape(node)
        start = fusion.start_of(node)
        if start is not None:
            source = located(fusion.accesses.of(start))
            result.append(Copy(node, fusion.accesses.shape(start), source))
        elif fusion.in_place(node) is None:
            value = {"sum": 0.0, "max": -inf, "min": inf}[_reduction(node)]
            result.append(Fill(node, elements(shape), value))
    return tuple(result)


def _moved(node: Gather | Scatter, fusion: Fusion) -> list[Block]:
    """A gather or scatter whose index is not affine."""
    source = located(fusion.accesses.of(node.operands[0]))
    if not fusion.in_order:
        if isinstance(node, Gather):
            return [_taken(node, source, fusion)]
        return [_sorted(node, source, fusion)]
    own = _own(node, fusion.accesses.shape(node))
    if isinstance(node, Scatter):
        shape = fusion.accesses.shape(node.operands[0])
        target = Element(node, _listed(node.index, own.position, shape, fusion))
        fill = Fill(node, elements(fusion.accesses.shape(node)), 0.0)
        return [Nest(tuple(map(Axis.of, shape)), (Reduce("sum", (source,), target),), (fill,))]
    shape = fusion.accesses.shape(node)
    if isinstance(source, Element):
        place = _listed(node.index, source.position, shape, fusion)
        source = Element(source.array, place)
    store = Store(own if node.rank else Scalar(node), source)
    return [Nest(tuple(map(Axis.of, shape)), (store,))]


def _listed(
    index: Sequence[Index], inside: Position, shape: Sequence[int], fusion: Fusion
) -> Position:
    """The place in memory of an index of a loop over `shape`, with index arrays where needed."""
    numbers = fusion.accesses.numbers
    varying = list(zip(index, inside.strides, strict=True))
    plain = [(one, stride) for one, stride in varying if isinstance(one, Affine)]
    offset, steps = along([one for one, _ in plain], [s for _, s in plain], len(shape), numbers)
    tables = [np.zeros(size, dtype=np.intp) for size in shape]
    reads: list[IndexRead] = []
    for one, stride in varying:
        if isinstance(one, Multiset):
            tables[one.axis] += stride * listed(one, numbers)
        elif isinstance(one, Lookup):
            table = fusion.accesses.of(one.table)
            own = dict(zip(one.axes, table.strides, strict=True))
            strides = tuple(own.get(axis, 0) for axis in range(len(shape)))
            run, pieces = fusion.runs.get(one.table), fusion.pieces.get(one.table, ())
            place = Position(table.offset, strides)
            reads.append(IndexRead(table.base, place, stride, run, pieces))
    reads += [
        IndexRead(IndexTable(tuple(table.tolist())), Position(0, _unit(k, len(shape))))
        for k, table in enumerate(tables)
        if table.any()
    ]
    return Position(inside.offset + offset, steps, tuple(reads))


def _unit(k: int, rank: int) -> tuple[int, ...]:
    return tuple(int(axis == k) for axis in range(rank))


def _taken(node: Gather, source: Element | Scalar, fusion: Fusion) -> Nest:
    """A gather on a device, over the flat result and a table of flat positions."""
    operand = node.operands[0]
    size = elements(fusion.accesses.shape(node))
    place = IndexRead(IndexArray(size, node.index, node.shape, operand.shape), Position(0, (1,)))
    if isinstance(source, Element):
        source = Element(source.array, Position(source.position.offset, (), (place,)))
    store = Store(Element(node, Position(0, (1,))), source)
    return Nest((Axis.of(size),), (store,))


def _sorted(node: Scatter, source: Element | Scalar, fusion: Fusion) -> Nest:
    """A scatter on a device: each element of the result sums, in order, the elements put there."""
    operand = node.operands[0]
    size, total = (elements(fusion.accesses.shape(one)) for one in (operand, node))
    own = (node.index, operand.shape, node.shape)
    order, starts = IndexArray(size, *own, "order"), IndexArray(total + 1, *own, "starts")
    ends = [Position(0, (), (IndexRead(starts, Position(k, (1,))),)) for k in range(2)]
    if isinstance(source, Element):
        place = IndexRead(order, Position(0, (0, 1)))
        source = Element(source.array, Position(source.position.offset, (), (place,)))
    reduce = Reduce("sum", (source,), Element(node, Position(0, (1, 0))))
    return Nest((Axis.of(total), Axis(ends[1], ends[0])), (reduce,))


def _contraction(node: Expr, fusion: Fusion) -> Contraction:
    assert isinstance(node, Einsum)
    parts = Blocks.of_node(node)
    sizes = tuple(dim.size(fusion.accesses.numbers) for dim in node.dims)
    accesses = [fusion.accesses.of(one) for one in (*node.operands, node)]
    every: list[Element | Scalar] = []
    for access, labels in zip(accesses, (*node.inputs, node.output), strict=True):
        steps = dict(zip(labels, access.strides, strict=True))
        strides = tuple(steps.get(label, 0) for label in range(len(sizes)))
        every.append(located(Access(access.base, access.offset, strides)))
    left, right, result = every
    assert isinstance(result, Element)
    return Contraction(
        sizes, parts.batch, parts.left, parts.right, parts.summed, left, right, result
    )


def _matrix_call(node: MatrixOperation, fusion: Fusion) -> MatrixCall:
    shapes = [fusion.accesses.shape(operand) for operand in node.operands]
    operands = tuple(located(fusion.accesses.of(operand)) for operand in node.operands)
    columns = shapes[-1][-1] if node.function.startswith("solve") else None
    is_number = node.rank < node.operands[0].rank
    result = _own(node, fusion.accesses.shape(node)) if node.rank else Scalar(node)
    batch, rows = shapes[0][:-2], shapes[0][-1]
    return MatrixCall(node.function, batch, rows, columns, operands, result, is_number)


def _collection(node: Expr, fusion: Fusion) -> Collection:
    slices = []
    for term, index in fusion.terms(node):
        operand = located(fusion.accesses.of(term))
        runs = () if index is None else tuple(_run(one, fusion) for one in affine(index))
        slices.append(PlacedSlice(fusion.accesses.shape(term), operand, runs))
    return Collection(node, fusion.accesses.shape(node), tuple(slices))


def _run(one: Affine, fusion: Fusion) -> AlongAxis:
    offset = one.offset.value(fusion.accesses.numbers)
    varying = [(axis, c) for axis, c in enumerate(one.coefficients) if c]
    return AlongAxis(offset, *varying[0]) if varying else AlongAxis(offset)
