"""Orthogonal compression: a sum of squares over wide data depends only on their QR factor R.

Let r[i, j] = Σ_p C_p D_p over samples j, with data D_p and coefficients C_p independent of j. Then
r = M S for the stacked data S of K rows and N columns, where M consists of the C_p. With Sᵀ = Q R,
QᵀQ = 1, Σ_j r[i, j]² = |Sᵀ m_i|² = |Q R m_i|² = |R m_i|² for every row m_i of M: each D_p may be
replaced by its columns of R, of length K instead of N. With weights c_j ≥ 0 the data are √c_j D_p.

Householder QR computes R = Qᵀ(Sᵀ + E), where each column of E is at most a small multiple of eps
times that column of Sᵀ. So r changes by no more than its own rounding error, eps Σ |C_p| |D_p|, and
a value near 0 by the square of that. Computing R from the Gram matrix S Sᵀ would lose half the
digits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from slomodel.functions import mul, sqrt
from slomodel.functions.cost import own_work
from slomodel.ir import build
from slomodel.ir.dims import number_of_elements
from slomodel.ir.expr import Axes, Einsum, Expr, remake
from slomodel.ir.walk import dependents, inputs, postorder, substitute, users
from slomodel.rewrite.compression.samples import At, LinearNode, Refused, Samples, placed, product
from slomodel.rewrite.compression.squares import (
    Factor,
    WeightedSquares,
    sums_of_squares,
    varying_axes,
)
from slomodel.rewrite.compression.triangles import Stack
from slomodel.rewrite.facts import Facts
from slomodel.rewrite.work import is_varying_input

# A factorisation may cost as much as this many gradients: solvers compute hundreds and more.
_MOST_CALLS = 200.0
# Saving fewer operations per gradient than this is negligible beside the overhead of NumPy calls.
_LEAST_SAVED = 2_000.0
# The work of a value with its gradient, in units of that of a value.
_GRADIENT = 3.0
_MOST_NODES = 10_000
# The stacked data may have this many elements, or this many times the elements of the data.
_MOST_ELEMENTS = 10_000_000
_MOST_TIMES = 4


@dataclass(frozen=True, slots=True)
class _Graph:
    """The nodes of an objective: which depend on x, their users and their order.

    `varying` maps a node to the axes along which more than data varies.
    """

    dependent: frozenset[Expr]
    varying: Mapping[Expr, frozenset[int]]
    above: Mapping[Expr, list[Expr]]
    place: Mapping[Expr, int]


def compression(root: Expr, facts: Facts) -> tuple[Expr, tuple[str, ...]]:
    """The graph with wide data replaced by triangular factors, and a note on each replacement."""
    order = postorder(root)
    if not any(isinstance(node, Einsum) for node in order):
        return root, ()
    dependent = frozenset(dependents(order, is_varying_input))
    graph = _Graph(
        dependent,
        varying_axes(order, dependent),
        users(order),
        {node: k for k, node in enumerate(order)},
    )
    notes: list[str] = []
    done: dict[Expr, Expr] = {}
    changed: dict[Expr, Expr] = {}
    for node in order:
        plan = _best(node, graph, facts)
        if plan is None:
            done[node] = remake(node, tuple(done[operand] for operand in node.operands))
            continue
        # It was built from the original nodes, some of which have been replaced since.
        (done[node],) = substitute((plan.built(),), changed)
        changed[node] = done[node]
        notes.append(plan.note)
    return done[root], tuple(notes)


def _best(node: Expr, graph: _Graph, facts: Facts) -> _Plan | None:
    for square in sums_of_squares(node, graph.dependent):
        plan = _planned(square, graph, facts)
        if plan is not None and plan.pays(graph) and plan.is_sound():
            return plan
    return None


def _planned(squares: WeightedSquares, graph: _Graph, facts: Facts) -> _Plan | None:
    """The plan that takes as many labels of a form as possible as samples; None without any."""
    form = squares.form
    varying = {form.labels[axis] for axis in graph.varying[form.node]}
    candidates = set(form.labels) - varying - set(squares.node.output)
    while candidates:
        wrong = _mixed(squares.others, candidates, graph.dependent)
        if not wrong:
            labels = tuple(label for label in form.labels if label in candidates)
            plan = _Plan(squares, labels, graph.dependent, facts)
            wrong = plan.walk()
            if not wrong:
                return plan
        candidates -= wrong
    return None


def _mixed(others: tuple[Factor, ...], samples: set[int], dependent: frozenset[Expr]) -> set[int]:
    """Labels of factors that cannot be weights: a weight is data, along samples alone."""
    wrong: set[int] = set()
    for one in others:
        read = set(one.labels) & samples
        if read and (one.node in dependent or len(read) < len(one.labels)):
            wrong |= read
    return wrong


class _Plan:
    """A sum of squares to be compressed over `labels`: its nodes, and the pieces of its data."""

    def __init__(
        self, squares: WeightedSquares, labels: Axes, dependent: frozenset[Expr], facts: Facts
    ) -> None:
        self._squares = squares
        self._labels = labels
        self._facts = facts
        self._samples = Samples(tuple(squares.dims[label] for label in labels), dependent)
        self._steps: dict[At, LinearNode | None] = {}
        weights = [one for one in squares.others if set(one.labels) & set(labels)]
        self._free = [one for one in squares.others if one not in weights]
        self._weight: Expr | None = None
        for one in weights:
            weight = At(one.node, placed(labels, one.labels)).over(self._samples.shape)
            self._weight = build.apply(mul, self._weight, weight) if self._weight else weight
        scales = (build.apply(sqrt, self._weight),) if self._weight is not None else ()
        self._top = At(squares.form.node, placed(labels, squares.form.labels), scales)
        self._stack = Stack((), self._samples.shape, facts.sizes)

    def walk(self) -> set[int]:
        """Find the pieces below the form; return the labels over which it is not linear in data."""
        waiting = [self._top]
        while waiting:
            at = waiting.pop()
            if at in self._steps:
                continue
            step = self._samples.step(at)
            if isinstance(step, Refused):
                return {self._labels[k] for k in step.labels}
            if len(self._steps) > _MOST_NODES:
                return set(self._labels)
            self._steps[at] = step
            waiting += reversed(step.parts) if step is not None else ()
        pieces = tuple(at for at, step in self._steps.items() if step is None)
        self._stack = Stack(pieces, self._samples.shape, self._facts.sizes)
        return set()

    def pays(self, graph: _Graph) -> bool:
        """Whether R is narrower than the data and its factorisation soon pays for itself."""
        columns, rows = self._stack.columns, self._stack.rows
        if not 0 < rows < columns:
            return False
        read = (number_of_elements(source.shape, self._facts.sizes) for source in self._sources)
        if columns * rows > max(_MOST_ELEMENTS, _MOST_TIMES * sum(read)):
            return False
        wide = {at.node for at in self._steps if not at.is_free} & graph.dependent
        gone = set(self._squares.through)
        for node in sorted(wide, key=graph.place.__getitem__, reverse=True):
            if all(user in gone for user in graph.above[node]):
                gone.add(node)
        saved = sum(own_work(node, self._facts.sizes) for node in gone & wide)
        saved *= _GRADIENT * (1.0 - rows / columns)
        return saved >= _LEAST_SAVED and 2.0 * columns * rows**2 <= _MOST_CALLS * saved

    def is_sound(self) -> bool:
        """Whether the weights are nonnegative and the data finite."""
        if self._weight is not None and not self._facts.nonnegative(self._weight):
            return False
        pieces = zip(self._stack.pieces, self._stack.filled, strict=True)
        return all(self._facts.finite(data if one.scales else one.node) for one, data in pieces)

    def built(self) -> Expr:
        """The sum of squares over the rows of R."""
        made: dict[At, Expr] = dict(self._stack.factors)
        waiting = [self._top]
        while waiting:
            at = waiting[-1]
            step = self._steps[at]
            if at in made or step is None:
                waiting.pop()
                continue
            missing = [part for part in step.parts if part not in made]
            waiting += missing
            if not missing:
                made[at] = step.build([made[part] for part in step.parts])
        form, result = made[self._top], self._squares
        new = len(result.dims)
        labels = (*(label for label in result.form.labels if label not in self._labels), new)
        dims = {**dict(enumerate(result.dims)), new: form.shape[-1]}
        operands = [*(one.node for one in self._free), form, form]
        every = [*(one.labels for one in self._free), labels, labels]
        return product(operands, every, result.node.output, dims)

    @property
    def _sources(self) -> list[Expr]:
        return [*inputs(*(piece.node for piece in self._stack.pieces))]

    @property
    def note(self) -> str:
        names = ", ".join(dict.fromkeys(one.name for one in inputs(*self._stack.filled)))
        return f"{names}: {self._stack.columns} columns become {self._stack.rows}"
