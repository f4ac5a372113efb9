"""Constructors make graphs canonical and preserve values: they absorb views, nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_loops import Reals, einsum_by_loops

from slomodel import functions as fn
from slomodel.ir import build
from slomodel.ir.dims import Dim, Shape, concrete, literal, named
from slomodel.ir.expr import Axes, Einsum, Expr, Input, Map
from slomodel.ir.walk import postorder
from slomodel.reference import evaluate

SIZES = {"n": 2, "m": 3, "k": 1}
DIMS = [*map(named, SIZES), literal(2)]
n, m = named("n"), named("m")
EXACT = 64 * np.finfo(float).eps
"""Relative to sums of at most a few thousand products of numbers up to 1."""


@dataclass
class Drawn:
    """Labels with their dims, and the inputs made so far with their arrays."""

    draw: st.DrawFn
    dims: list[Dim] = field(default_factory=list)
    values: dict[Input, Reals] = field(default_factory=dict)

    def size(self, dim: Dim) -> int:
        return dim.size(SIZES)

    def input(self, shape: Shape) -> tuple[Expr, Reals]:
        node = build.variable(f"x{len(self.values)}", shape)
        rng = np.random.default_rng(len(self.values))
        self.values[node] = rng.uniform(-1, 1, concrete(shape, SIZES))
        return node, self.values[node]

    def labels(self, shape: Shape, dims: list[Dim]) -> Axes:
        """A label for each axis, one already there where the dims agree and chance wills it."""
        result = []
        for dim in shape:
            options = [k for k, known in enumerate(dims) if known == dim]
            if not options or self.draw(st.booleans()):
                options = [len(dims)]
                dims.append(dim)
            result.append(self.draw(st.sampled_from(options)))
        return tuple(result)

    def view(self) -> tuple[Expr, Reals]:
        """An input permuted, broadcast, its diagonals taken or put in place; and its array."""
        node, array = self.input(tuple(self.draw(st.lists(st.sampled_from(DIMS), max_size=2))))
        for _ in range(self.draw(st.integers(0, 2))):
            dims: list[Dim] = []
            own = self.labels(node.shape, dims)
            if len(dims) < 3 and self.draw(st.booleans()):
                dims.append(self.draw(st.sampled_from(DIMS)))
            output = tuple(self.draw(st.permutations(range(len(dims)))))
            if len(output) in (1, 2) and self.draw(st.booleans()):
                output = (*output, output[0])
            node = build.einsum([node], [own], output, dims)
            array = einsum_by_loops([array], [own], output, [self.size(dim) for dim in dims])
        return node, array


@st.composite
def contractions(draw: st.DrawFn) -> tuple[Expr, Reals, dict[Input, Reals]]:
    """An einsum over views, its array by loops over the views' arrays, the inputs' values."""
    drawn = Drawn(draw)
    views = [drawn.view() for _ in range(draw(st.integers(0, 3)))]
    dims: list[Dim] = []
    inputs = [drawn.labels(node.shape, dims) for node, _ in views]
    if len(dims) < 6 and (draw(st.booleans()) or not dims):
        dims.append(draw(st.sampled_from(DIMS)))
    output = tuple(draw(st.lists(st.sampled_from(range(len(dims))), max_size=3)))
    node = build.einsum([node for node, _ in views], inputs, output, dims)
    sizes = [drawn.size(dim) for dim in dims]
    return node, einsum_by_loops([a for _, a in views], inputs, output, sizes), drawn.values


@given(contractions())
def test_einsum_of_views_keeps_its_meaning_and_absorbs_them(
    drawn: tuple[Expr, Reals, dict[Input, Reals]],
) -> None:
    node, expected, values = drawn
    (found,) = evaluate([node], values, SIZES)
    assert found.shape == expected.shape == concrete(node.shape, SIZES)
    np.testing.assert_allclose(found, expected, rtol=EXACT, atol=EXACT * 3**6)
    for operand in node.operands:
        placed = isinstance(operand, Einsum) and len(set(operand.output)) < operand.rank
        assert placed or isinstance(operand, Input), "only what puts a diagonal in place stays"
    if isinstance(node, Einsum):
        first_seen = list(dict.fromkeys(k for own in (*node.inputs, node.output) for k in own))
        assert first_seen == list(range(len(first_seen))), "labels are numbered as they appear"


@given(st.permutations(range(4)), st.permutations(range(4)))
def test_transposes_compose(first: list[int], second: list[int]) -> None:
    x = build.variable("x", (n, m, n, literal(2)))
    once = build.transpose(x, tuple(first))
    both = build.transpose(once, tuple(second))
    assert both is build.transpose(x, tuple(first[k] for k in second))
    assert build.transpose(once, tuple(np.argsort(first).tolist())) is x


def test_transpose_twice_is_the_matrix() -> None:
    A = build.variable("A", (n, n))
    assert build.transpose(build.transpose(A, (1, 0)), (1, 0)) is A
    assert build.transpose(A, (1, 0)) is not A


def test_broadcast_along_swapped_axes_is_a_transpose() -> None:
    A = build.variable("A", (n, n))
    assert build.broadcast(A, (1, 0), (n, n)) is build.transpose(A, (1, 0))
    assert build.broadcast(A, (0, 1), (n, n)) is A


@given(st.data())
def test_map_absorbs_broadcasts(data: st.DataObject) -> None:
    shape = (n, m, literal(2))
    operands, axes, arrays, values = [], [], [], {}
    for k in range(2):
        kept = data.draw(st.lists(st.sampled_from(range(3)), unique=True))
        x = build.variable(f"x{k}", tuple(shape[axis] for axis in kept))
        values[x] = np.random.default_rng(k).uniform(1, 2, concrete(x.shape, SIZES))
        wide = data.draw(st.sampled_from([tuple(sorted(kept)), (0, 1, 2)]))
        place = tuple(wide.index(axis) for axis in kept)
        operands.append(build.broadcast(x, place, tuple(shape[axis] for axis in wide)))
        axes.append(wide)
        ordered = np.transpose(values[x], np.argsort(kept).astype(int))
        arrays.append(np.expand_dims(ordered, [a for a in range(3) if a not in kept]))
    node = build.apply_along(fn.sub, operands, axes, shape)
    expected = np.broadcast_to(arrays[0] - arrays[1], concrete(shape, SIZES))
    assert np.array_equal(evaluate([node], values, SIZES)[0], expected)
    (inner,) = [one for one in postorder(node) if isinstance(one, Map)]
    for operand in inner.operands:
        transposed = isinstance(operand, Einsum) and operand.rank == operand.operands[0].rank
        assert transposed or isinstance(operand, Input), "a broadcast is left"
    covered = {axis for own in inner.axes for axis in own}
    assert covered == set(range(inner.rank)), "the map itself has no axis that nobody needs"


def test_map_absorbs_ones_and_broadcasts_of_contractions() -> None:
    x, A = build.variable("x", (n,)), build.variable("A", (n, m))
    assert fn.mul(build.ones((n,)), x) is x
    assert fn.add(build.ones((n,)), x) is fn.add(1.0, x)
    rows = build.einsum([A], [(0, 1)], (0, 2), (n, m, m))
    direct = build.apply_along(fn.mul, [A, build.sum_over(A, (1,))], [(0, 1), (0,)], (n, m))
    assert fn.mul(A, rows) is direct
    unit = build.identity(n)
    node = fn.mul(unit, build.outer(x, x))
    assert isinstance(node, Map)
    assert node.operands[0] is unit


def test_where_with_a_known_condition_keeps_the_place_of_its_branch() -> None:
    x = build.variable("x", (n,))
    value = np.array([1.0, 2.0])
    for condition, expected in ((True, value[:, None]), (False, value[None, :])):
        operands = [build.const(condition), x, x]
        node = build.apply_along(fn.where, operands, [(), (0,), (1,)], (n, n))
        assert np.array_equal(evaluate([node], {x: value})[0], np.broadcast_to(expected, (2, 2)))


@pytest.mark.parametrize(
    ("built", "same"),
    [
        (lambda x: fn.add(x, 0.0), lambda x: x),
        (lambda x: fn.mul(1.0, x), lambda x: x),
        (lambda x: fn.mul(x, -1.0), fn.neg),
        (lambda x: fn.neg(fn.neg(x)), lambda x: x),
        (lambda x: fn.div(x, 4.0), lambda x: fn.mul(x, 0.25)),
        (lambda x: fn.maximum(x, 0.0), fn.relu),
        (lambda x: fn.where(True, x, fn.log(x)), lambda x: x),
        (lambda x: fn.add(fn.exp(build.const(0.0)), x), lambda x: fn.add(1.0, x)),
        (lambda x: build.matmul(build.identity(n), x), lambda x: None),
        (lambda x: fn.mul(0.0, x), lambda x: None),
        (lambda x: fn.div(x, x), lambda x: None),
        (lambda x: fn.sub(x, x), lambda x: None),
        (lambda x: fn.sqrt(fn.square(x)), lambda x: None),
    ],
)
def test_only_exact_identities_are_applied(built: object, same: object) -> None:
    """None: the node stays, because the identity fails for a NaN, or is another pass's."""
    x = build.variable("x", (n,))
    node, expected = built(x), same(x)  # type: ignore[operator]
    assert node is expected if expected is not None else node.operands


def test_sizes_and_constant_arrays() -> None:
    assert build.size_of(literal(7)) is build.const(7.0)
    assert build.ones(()) is build.const(1.0)
    roots = [build.size_of(m - 1), build.ones((n, m)), build.zeros((m,)), build.identity(m)]
    found = evaluate(roots, {}, SIZES)
    for array, expected in zip(found, [2.0, np.ones((2, 3)), np.zeros(3), np.eye(3)], strict=True):
        assert np.array_equal(array, expected)
