"""Scales of nodes with exponentials: log of the magnitude that one exceeds by its weights alone.

The scale of exp(u) is u, of a product the sum, of a sum the largest, of x^p with a number p > 0 p
times that of x, of anything else 0. Functions
with a logarithm of full accuracy, as normcdf, count as exponentials of it. Terms that are 0 have
the scale -inf: a weight of 0 and a branch that is not taken do not count.
"""

from __future__ import annotations

from collections.abc import Sequence

from slomodel.functions import add, cosh, div, exp, maximum, mul, neg, pow, sqrt, square, sub, where
from slomodel.ir import build
from slomodel.ir.dims import Shape
from slomodel.ir.expr import Const, Einsum, Expr, Map, is_map
from slomodel.rewrite.elementwise.matching import Part, is_scale, is_shifted, whole
from slomodel.rewrite.exponentials.growth import exponent_of, growth, where_present

_MOST_NODES = 300


class Scales:
    """The scales of the nodes of one graph, cached.

    With `counts_zeros` a term counts where factors of it that depend on variables are 0.
    """

    def __init__(self, counts_zeros: bool = False) -> None:
        self._counts_zeros = counts_zeros
        self._scales: dict[Expr, Expr | None] = {}
        self._nonpositive: set[Expr] = set()
        # Contractions of those with other factors: no exponential of them grows.
        self._bounded: set[Expr] = set()

    def does_not_grow(self, node: Expr) -> bool:
        """Whether a node with a scale is made of functions that are at most 1, times weights."""
        return node in self._nonpositive or node in self._bounded

    def is_short(self, root: Expr) -> bool:
        """Whether few enough nodes lie below for the recursion of these rules."""
        seen, stack = {root}, [root]
        while stack and len(seen) <= _MOST_NODES:
            node = stack.pop()
            if node in self._scales:
                continue
            if isinstance(node, Einsum) or is_map(node, add, sub, mul, div, neg, square, sqrt, pow):
                stack += [operand for operand in node.operands if operand not in seen]
                seen.update(node.operands)
        return len(seen) <= _MOST_NODES

    def of(self, node: Expr) -> Expr | None:
        """The scale of a node, of its shape; None if it has no exponentials."""
        if node not in self._scales:
            self._scales[node] = self._computed(node)
        return self._scales[node]

    def largest(self, operand: Expr, labels: Sequence[int], node: Einsum) -> Expr | None:
        """The maximum of an operand's scale along the axes that are summed, where its weights are
        not 0; None if it has no scale, or axes repeat.
        """
        scale = self.of(operand)
        if scale is None or len(set(labels)) != len(labels):
            return None
        summed = tuple(k for k, label in enumerate(labels) if label not in node.output)
        present = self._where_present(scale, self.weights(node, labels, operand.shape))
        # That of exp(s) x with a scalar s is a scalar where x is positive.
        present = present if present.rank else build.broadcast(present, (), operand.shape)
        return build.extreme(present, "max", summed)

    def weights(self, node: Einsum, labels: Sequence[int], shape: Shape) -> list[Expr]:
        """The operands of a contraction without exponentials and with no axes but those of
        `labels`, of this shape along them.

        For others, as the matrix of W @ exp(x), each of their rows would have a scale of its own,
        and as many exponentials as the matrix has elements.
        """
        return [
            Part(one, tuple(labels.index(label) for label in own)).along(shape)
            for one, own in zip(node.operands, node.inputs, strict=True)
            if len(set(own)) == len(own) and set(own) <= set(labels) and self.of(one) is None
        ]

    def _where_present(self, scale: Expr | float, factors: Sequence[Expr]) -> Expr:
        return where_present(scale, factors, self._counts_zeros)

    def _computed(self, node: Expr) -> Expr | None:
        if isinstance(node, Einsum):
            return self._of_contraction(node)
        if not isinstance(node, Map):
            return None
        function = node.function
        exponent = exponent_of(whole(node))
        if exponent is not None:
            if function is not exp:
                self._nonpositive.add(node)
            is_done = is_shifted(exponent) or is_scale(exponent) or isinstance(exponent, Const)
            return None if is_done else exponent
        grown = growth(node)
        if grown is not None:
            return grown
        if function is where:
            return self._of_choice(node)
        power = power_of(node)
        if power is not None:
            own = self.of(node.operands[0])
            if node.operands[0] in self._nonpositive:
                self._nonpositive.add(node)
            return None if own is None else mul(power, own)
        return self._of_operation(node) if function in (add, sub, mul, div, neg) else None

    def _of_operation(self, node: Map) -> Expr | None:
        """The scale of a sum, product, quotient or negative."""
        function, shape = node.function, node.shape
        parts = whole(node).parts()
        result = [
            None if own is None else Part(own, part.axes).along(shape)
            for part in parts
            for own in (self.of(part.node),)
        ]
        if all(one is None for one in result):
            return None
        bounded = [operand in self._nonpositive for operand in node.operands]
        if function is neg:
            self._nonpositive |= {node} if bounded[0] else set()
            self._bounded |= {node} if node.operands[0] in self._bounded else set()
            return result[0]
        if function in (add, sub) and any(one is None for one in result):
            # Beside what has no exponentials, those that do not grow leave no range.
            (own,) = (k for k, one in enumerate(result) if one is not None)
            if node.operands[own] in self._bounded:
                return None
        if function in (add, sub, mul) and all(
            low or one is None for low, one in zip(bounded, result, strict=True)
        ):
            # The scale of what has no exponentials is 0, the largest in a sum with these.
            if function is not mul and any(one is None for one in result):
                return None
            self._nonpositive.add(node)
        left, right = (
            self._where_present(0.0, () if is_divisor else (part.along(shape),))
            if one is None
            else one
            for one, part, is_divisor in zip(result, parts, (False, function is div), strict=True)
        )
        combine = maximum if function in (add, sub) else add if function is mul else sub
        return combine(left, right)

    def _of_choice(self, node: Map) -> Expr | None:
        """The scale of the branch that is taken; what has no exponentials has the scale 0."""
        condition, *branches = whole(node).parts()
        result = [self.of(part.node) for part in branches]
        # Branches that are at most 1, as those of sigmoid, leave no range.
        if all(
            one is None or part.node in self._nonpositive
            for one, part in zip(result, branches, strict=True)
        ):
            return None
        wide = [
            self._where_present(0.0, (part.along(node.shape),))
            if own is None
            else Part(own, part.axes).along(node.shape)
            for own, part in zip(result, branches, strict=True)
        ]
        return where(condition.along(node.shape), *wide)

    def _of_contraction(self, node: Einsum) -> Expr | None:
        """The sum of the largest scales of the operands, along the axes that are summed."""
        if len(set(node.output)) != len(node.output):
            return None
        result: Expr | None = None
        if all(self.of(one) is None or one in self._nonpositive for one in node.operands):
            self._bounded.add(node)
        for own, labels in zip(node.operands, node.inputs, strict=True):
            reduced = self.largest(own, labels, node)
            if reduced is None:
                if self.of(own) is not None:
                    return None
                continue
            shape = node.shape
            wide = Part(reduced, places(labels, node)).along(shape)
            result = wide if result is None else add(result, wide)
        return result


def power_of(node: Map) -> float | None:
    """p > 0 of a power of cosh, or of a root of a sum; None for others.

    In squares of residuals, as in a Student's t, exponentials are scales and means: they leave no
    range, and scaled forms would cost several times the logarithm.
    """
    base, exponent = node.operands[0], node.operands[-1]
    if node.function in (sqrt, square):
        p = 0.5 if node.function is sqrt else 2.0
    elif node.function is pow and isinstance(exponent, Const) and exponent.value > 0.0:
        p = float(exponent.value)
    else:
        return None
    is_sum = is_map(base, add, sub) or isinstance(base, Einsum)
    return p if is_map(base, cosh) or (is_sum and not p.is_integer()) else None


def places(labels: Sequence[int], node: Einsum) -> tuple[int, ...]:
    """The axes of the result along which an operand runs, in the order of its own axes."""
    return tuple(node.output.index(label) for label in labels if label in node.output)
