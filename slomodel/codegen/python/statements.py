"""The NumPy and BLAS statements of every step that is not elementwise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import assert_never

from slomodel.codegen.lower import Blocks
from slomodel.codegen.program import Form, Step, form_of, is_slice
from slomodel.codegen.python.matrices import matrix_lines
from slomodel.codegen.python.names import GeneratedNames
from slomodel.codegen.python.recurrences import recurrence_lines
from slomodel.codegen.python.views import flat_positions, slice_view
from slomodel.ir.dims import Dim, Shape
from slomodel.ir.expr import (
    Axes,
    Einsum,
    Expr,
    Extreme,
    Gather,
    Index,
    Listing,
    Scan,
    Scatter,
    affine,
    tables_of,
)
from slomodel.ir.function import ScalarFunction

Rule = Callable[[Step, GeneratedNames], list[str]]

TRIANGLE = "_triangle"
"""The function of a generated module that computes the triangular factor of a matrix."""

TRIANGLE_SOURCE = '''
def _triangle(matrix):
    """R of a QR factorisation: in more digits than double where they exist and it is quick."""
    rows, columns = matrix.shape
    wider = np.finfo(np.longdouble).eps < np.finfo(float).eps
    if not wider or rows * columns**2 > 10_000_000:
        return np.linalg.qr(matrix.astype(float, copy=False), mode="r")
    R = matrix.astype(np.longdouble)
    for k in range(min(rows, columns)):
        # Householder's reflection, which takes the column below its diagonal to 0.
        v = R[k:, k].copy()
        length = np.sqrt(v @ v)
        if length > 0.0:
            v[0] += length if v[0] > 0.0 else -length
            R[k:, k:] -= np.outer(v, v @ R[k:, k:] * (2.0 / (v @ v)))
    return np.triu(R[:columns]).astype(float)
'''


def sum_lines(step: Step, scope: GeneratedNames) -> list[str]:
    """`np.add.reduce`, which adds pairwise along contiguous memory."""
    node, operand = step.node, step.node.operands[0]
    assert isinstance(node, Einsum)
    source = scope.ref(operand)
    if not node.rank:
        if operand.rank > 1 and scope.is_flat(operand):
            source = scope.alias(f"{source}.reshape(-1)")
        axis = "" if operand.rank == 1 or scope.is_flat(operand) else ", axis=None"
        return [f"{scope.ref(node)} = np.add.reduce({source}{axis})"]
    axes = tuple(k for k, label in enumerate(node.inputs[0]) if label not in node.output)
    return [f"np.add.reduce({source}, axis={axes}, out={scope.ref(node)})"]


def product_lines(step: Step, scope: GeneratedNames) -> list[str]:
    """One BLAS call: dot for vectors and matrices, matmul for batches of them."""
    node = step.node
    assert isinstance(node, Einsum)
    blocks = Blocks.of_node(node)
    if blocks.batch:
        return _batched(node, blocks, scope)
    left = _matrix(node, 0, blocks, scope)
    right = _matrix(node, 1, blocks, scope)
    if not node.rank:
        return [f"{scope.ref(node)} = np.dot({left}, {right})"]
    target = _blocked(scope.ref(node), node, [blocks.left, blocks.right], scope)
    return [f"np.dot({left}, {right}, out={target})"]


def _matrix(node: Einsum, k: int, blocks: Blocks, scope: GeneratedNames) -> str:
    """Operand k as a matrix: rows and summed for the left one, summed and columns for the right."""
    own = node.inputs[k]
    free = (blocks.left, blocks.right)[k]
    last = blocks.summed_last(own)
    order = [blocks.batch, free, blocks.summed] if last else [blocks.batch, blocks.summed, free]
    text = _blocked(scope.ref(node.operands[k]), node, order, scope, keep_batch=True)
    turned = bool(free) and last != (k == 0)
    return scope.alias(f"{text}.T") if turned else text


def _blocked(
    text: str, node: Einsum, blocks: list[Axes], scope: GeneratedNames, *, keep_batch: bool = False
) -> str:
    """An array with each block of its labels merged to one axis; empty blocks vanish."""
    present = [block for block in blocks if block]
    if keep_batch and blocks[0]:
        present = [(label,) for label in blocks[0]] + [block for block in blocks[1:] if block]
    if all(len(block) == 1 for block in present):
        return text
    sizes = [_size(block, node, scope) for block in present]
    return scope.alias(f"{text}.reshape({', '.join(sizes)})")


def _size(block: Axes, node: Einsum, scope: GeneratedNames) -> str:
    return scope.sizes.product([node.dims[label] for label in block])


def _batched(node: Einsum, blocks: Blocks, scope: GeneratedNames) -> list[str]:
    refs = [scope.ref(operand) for operand in node.operands]
    target = scope.ref(node)
    if not blocks.left and not blocks.right:
        letters = "abcdefghijklmnopqrstuvwxyz"
        spec = ",".join("".join(letters[label] for label in own) for own in node.inputs)
        spec += "->" + "".join(letters[label] for label in node.output)
        return [f"np.einsum({spec!r}, {refs[0]}, {refs[1]}, out={target})"]
    lead = [_size((label,), node, scope) for label in blocks.batch]
    summed = _size(blocks.summed, node, scope)
    rows, columns = _size(blocks.left, node, scope), _size(blocks.right, node, scope)
    sides = []
    for k, (ref, free) in enumerate(zip(refs, (rows, columns), strict=True)):
        last = blocks.summed_last(node.inputs[k])
        shape = [*lead, free, summed] if last else [*lead, summed, free]
        text = scope.alias(f"{ref}.reshape({', '.join(shape)})")
        turned = last != (k == 0)
        sides.append(scope.alias(f"{text}.swapaxes(-1, -2)") if turned else text)
    out = scope.alias(f"{target}.reshape({', '.join([*lead, rows, columns])})")
    return [f"np.matmul({sides[0]}, {sides[1]}, out={out})"]


def view_lines(step: Step, scope: GeneratedNames) -> list[str]:
    """A copy of a view, or a single element."""
    node, target = step.node, scope.ref(step.node)
    if not node.operands[0].rank:
        return [f"np.copyto({target}, {scope.ref(node.operands[0])})"]
    if not node.rank:
        element = scope.view_text(node)
        return [f"{target} = {element}" + ("[()]" if step.form is Form.RESHAPE else "")]
    return [f"np.copyto({target}, {scope.view(node)})"]


def take_lines(step: Step, scope: GeneratedNames) -> list[str]:
    """A gather at positions that are computed once."""
    node, operand = step.node, step.node.operands[0]
    assert isinstance(node, Gather)
    source = _flattened(operand, scope)
    where = _places(node, node.shape, operand.shape, scope)
    if not node.rank:
        return [f"{scope.ref(node)} = {source}.take({where}, mode='clip')"]
    return [f"{source}.take({where}, out={scope.ref(node)}, mode='clip')"]


def _places(node: Gather | Scatter, iterated: Shape, indexed: Shape, scope: GeneratedNames) -> str:
    """The flat positions of an index, computed once unless a table is computed during calls."""
    text = flat_positions(node.index, iterated, indexed, scope.sizes.text, scope.ref)
    known = all(map(scope.is_known_before, tables_of(node)))
    return scope.alias(text, "i") if known else f"({text})"


def _flattened(node: Expr, scope: GeneratedNames) -> str:
    ref = scope.ref(node)
    return ref if node.rank == 1 else scope.alias(f"{ref}.reshape(-1)")


def put_lines(step: Step, scope: GeneratedNames) -> list[str]:
    """Zeros with the operand added at its positions."""
    node, operand = step.node, step.node.operands[0]
    assert isinstance(node, Scatter)
    source = scope.ref(operand)
    if is_slice(node.index):
        lines, part = slice_lines(node, scope)
        return [*lines, f"np.copyto({part}, {source})"]
    where = _places(node, operand.shape, node.shape, scope)
    total = scope.sizes.product(node.shape)
    flat = _flattened(node, scope)
    sums = f"np.bincount(np.ravel({where}), weights=np.ravel({source}), minlength={total})"
    return [f"np.copyto({flat}, {sums})"]


def slice_lines(node: Expr, scope: GeneratedNames) -> tuple[list[str], str]:
    """The lines that zero the target outside the slice of a scatter, and that slice."""
    assert isinstance(node, Scatter)
    target, operand = scope.ref(node), node.operands[0]
    part = _part(node.index, operand, target, scope)
    (one,) = affine(node.index) if node.rank == 1 and operand.rank == 1 else (None,)
    if one is None or one.coefficients != (1,):
        return [f"{target}.fill(0.0)"], part
    low, high = scope.sizes.text(one.offset), scope.sizes.text(one.offset + operand.shape[0])
    before = [] if low == "0" else [f"{target}[:{low}].fill(0.0)"]
    return [*before, f"{target}[{high}:].fill(0.0)"], part


def _part(index: tuple[Index, ...], operand: Expr, target: str, scope: GeneratedNames) -> str:
    """The slice of the target that an array, or a scalar, is written to."""
    text = slice_view(index, operand.shape, target, scope.sizes.text)
    # Integers alone would read an element; with an ellipsis they give a view of it.
    return scope.alias(text if operand.rank else f"{text[:-1]}, ...]")


def accumulate_lines(step: Step, scope: GeneratedNames) -> list[str]:
    """The initial value, in place or copied, with an array added to a slice of it."""
    assert step.added is not None
    start, term = step.reads
    target = scope.ref(step.node)
    part = _part(step.added.index, term, target, scope)
    lines = [] if step.in_place else [f"np.copyto({target}, {scope.ref(start)})"]
    return [*lines, f"np.add({part}, {scope.ref(term)}, out={part})"]


def count_lines(step: Step, scope: GeneratedNames) -> list[str]:
    """The numbers 0, 1, … as real numbers."""
    dim: Dim = step.node.shape[0]
    return [f"np.copyto({scope.ref(step.node)}, np.arange({scope.sizes.text(dim)}))"]


def ones_lines(step: Step, scope: GeneratedNames) -> list[str]:
    """The product of the sizes of summed labels: in every element, or as a scalar."""
    node = step.node
    assert isinstance(node, Einsum)
    summed = [dim for label, dim in enumerate(node.dims) if label not in node.output]
    total = scope.sizes.product(summed)
    if node.rank:
        return [f"{scope.ref(node)}.fill({total})"]
    return [f"{scope.ref(node)} = real({total})"]


def extreme_lines(step: Step, scope: GeneratedNames) -> list[str]:
    """`np.maximum.reduce` or `np.minimum.reduce`, which propagate NaN."""
    node = step.node
    assert isinstance(node, Extreme)
    start = "-np.inf" if node.which == "max" else "np.inf"
    call = f"np.{node.which}imum.reduce({scope.ref(node.operands[0])}, initial={start}"
    if not node.rank:
        return [f"{scope.ref(node)} = {call}, axis=None)"]
    return [f"{call}, axis={node.axes}, out={scope.ref(node)})"]


def scan_lines(step: Step, scope: GeneratedNames) -> list[str]:
    """A loop along the axis: over numbers, or over slices where there are further axes."""
    node = step.node
    assert isinstance(node, Scan)
    if form_of(node.operands[0]) is Form.ONES:
        source, target = scope.ref(node.operands[1]), scope.ref(node)
        return [f"np.cumsum({source}, axis={node.axis}, out={target})"]
    texts = [scope.ref(one) for one in (*node.operands, node)]
    if node.rank == 1:
        factor, term, target = texts
        return [
            "carried, running = 0.0, []",
            f"for factor, term in zip([0.0, *{factor}[1:].tolist()], {term}.tolist()):",
            "    carried = factor * carried + term",
            "    running.append(carried)",
            f"np.copyto({target}, running)",
        ]
    if node.axis:
        texts = [scope.alias(f"np.moveaxis({text}, {node.axis}, 0)") for text in texts]
    factor, term, target = texts
    return [
        f"np.copyto({target}[:1], {term}[:1])",
        f"for i in range(1, {scope.sizes.text(node.shape[node.axis])}):",
        f"    np.multiply({factor}[i], {target}[i - 1], out={target}[i])",
        f"    np.add({target}[i], {term}[i], out={target}[i])",
    ]


def triangle_lines(step: Step, scope: GeneratedNames) -> list[str]:
    """Householder QR, whose error is relative to the norm of each column."""
    target, source = scope.ref(step.node), scope.ref(step.node.operands[0])
    return [
        f"{target}.fill(0.0)",
        f"np.copyto({target}[:len({source})], {TRIANGLE}({source}), casting='same_kind')",
    ]


def listing_lines(step: Step, scope: GeneratedNames) -> list[str]:
    """The positions of an index set; their number depends on the data."""
    node = step.node
    assert isinstance(node, Listing)
    own = scope.ref(node.operands[0])
    match node.what:
        case "parent" | "offset":
            counts = f"{own}.astype(int)"
            text = f"np.repeat(np.arange(len({own})), {counts})"
            if node.what == "offset":
                start = f"np.cumsum({counts}) - {counts}"
                text = f"np.arange({counts}.sum()) - np.repeat({start}, {counts})"
        case "select":
            text = f"np.nonzero({own})[{node.axis}]"
        case "order":
            text = f"np.argsort({own}, kind='stable')"
        case "below" | "upto":
            side = "left" if node.what == "below" else "right"
            values = f"np.sort({own}[~np.isnan({own})])"
            text = f"np.searchsorted({values}, {scope.ref(node.operands[1])}, {side!r})"
        case _:
            assert_never(node.what)
    return [f"np.copyto({scope.ref(node)}, {LISTED}({text}, {scope.ref(node)}))"]


LISTED = "_listed"
LISTED_SOURCE = '''
def _listed(found, wanted):
    """The tuples of an index set, of which there must be as many as this module is for."""
    if found.shape != wanted.shape:
        raise ValueError(
            f"an index set has {len(found)} tuples with these data, and this module is for "
            f"{len(wanted)}: generate it for such data"
        )
    return found
'''

LINES: dict[Form, Rule] = {
    Form.SUM: sum_lines,
    Form.PRODUCT: product_lines,
    Form.AXES: view_lines,
    Form.SLICE: view_lines,
    Form.RESHAPE: view_lines,
    Form.TAKE: take_lines,
    Form.PUT: put_lines,
    Form.ACCUMULATE: accumulate_lines,
    Form.COUNT: count_lines,
    Form.ONES: ones_lines,
    Form.EXTREME: extreme_lines,
    Form.SCAN: scan_lines,
    Form.TRIANGLE: triangle_lines,
    Form.MATRIX: matrix_lines,
    Form.LISTING: listing_lines,
}


@dataclass(frozen=True, slots=True)
class Printer:
    """A target whose source is Python.

    - `imports`: the import lines of its modules.
    - `spells`: the functions that it has; others are replaced by their stable forms.
    - `prints`: the functions that can be fused with others into one kernel; None for no fusion.
    - `elementwise`: the lines of one elementwise step.
    """

    name: str
    imports: tuple[str, ...]
    spells: Callable[[ScalarFunction], bool]
    prints: Callable[[ScalarFunction], bool] | None
    elementwise: Callable[[Step, GeneratedNames], list[str]]


def rule(step: Step, target: Printer) -> Callable[[Step, GeneratedNames], list[str]]:
    """The function that prints the statements of a step for a target."""
    if step.form is Form.PUT and step.fused:
        return lambda own, scope: _put_lines(own, scope, target)
    if step.form is Form.RECUR:
        return lambda own, scope: recurrence_lines(own, scope, lambda one: rule(one, target))
    return target.elementwise if step.form is Form.ELEMENTWISE else LINES[step.form]


def _put_lines(step: Step, scope: GeneratedNames, target: Printer) -> list[str]:
    """The lines that compute an array directly in the slice that it is written to."""
    operand = step.fused[-1]
    lines, part = slice_lines(step.node, scope)
    scope.put(operand, part)
    return [*lines, *target.elementwise(replace(step, node=operand), scope)]


def indented(lines: list[str], depth: int) -> list[str]:
    """Lines indented to a depth of nested blocks."""
    return [f"{'    ' * depth}{line}" for line in lines]
