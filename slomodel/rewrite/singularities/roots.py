"""Square roots of sums of squares that may all vanish, which get derivative 0 there."""

from __future__ import annotations

from collections.abc import Collection

from slomodel.functions import add, div, hypot, mul, pow, root, square
from slomodel.functions.translate import balanced
from slomodel.ir.expr import Const, Einsum, Expr, Map, is_map
from slomodel.rewrite.elementwise.matching import Part, reaches_variable, summands, whole

_MOST_SIDES = 8


class Roots:
    """Square roots in one graph; a sum in `shared` is examined once."""

    def __init__(self, shared: Collection[Expr]) -> None:
        self._shared = shared
        self._varies = reaches_variable()
        self._quadratic: dict[Expr, bool] = {}

    def square_root(self, node: Map) -> Expr | None:
        """The stable root of a (scaled) sum of squares that may all vanish; else None."""
        inside = node.operands[0]
        if not self._are_quadratic(inside):
            return None
        bases = [term.inner(square) for term in summands(inside, most=_MOST_SIDES)]
        if len(bases) > 1 and all(base is not None for base in bases):
            return balanced(hypot, [base.along(node.shape) for base in bases if base is not None])
        return root(inside)

    def power(self, node: Map) -> Expr | None:
        """s^p, a sum of squares to a power p > 1/2 that is not whole, as a power of its root.

        Its derivatives are then 0 at 0, where those of s^p would be 0 * inf. Likewise
        hypot(x, y)^p with p >= 2, whose value leaves the range wherever the squares do.
        """
        inside, exponent = node.operands
        if not isinstance(exponent, Const) or exponent.value <= 0.5:
            return None
        if is_map(inside, hypot) and exponent.value >= 2.0:
            return pow(_root_of_sides(inside), exponent)
        is_whole = (2.0 * exponent.value) % 2.0 == 0.0
        if is_whole or inside.shape != node.shape or not self._are_quadratic(inside):
            return None
        return pow(root(inside), Const(2.0 * exponent.value))

    def of_product(self, node: Map) -> Expr | None:
        """(x^2 + y^2) hypot(x, y) as s root(s), which is a power of one sum of squares."""
        for k, operand in enumerate(node.operands):
            if is_map(operand, hypot) and operand.shape == node.shape:
                length = _root_of_sides(operand)
                if node.operands[1 - k] is length.operands[0]:
                    return mul(node.operands[1 - k], length)
        return None

    def _are_quadratic(self, total: Expr) -> bool:
        """Whether all terms are squares that depend on x; shared sums are examined first."""
        stack = [total]
        while stack:
            node = stack[-1]
            if node in self._quadratic:
                stack.pop()
                continue
            terms = summands(node, self._shared)
            sums = {one.node for one in terms if is_map(one.node, add) and one.node is not node}
            waiting = [one for one in sums if one not in self._quadratic]
            if waiting:
                stack += waiting
                continue
            self._quadratic[node] = all(
                self._quadratic[term.node] if term.node in sums else self._is_quadratic(term)
                for term in terms
            )
        return self._quadratic[total]

    def _is_quadratic(self, part: Part) -> bool:
        """Whether a part is a square or a sum of squares, times or divided by constants."""
        if not self._varies(part.node):
            return False
        while True:
            node = part.node
            if is_map(node, square):
                return True
            if isinstance(node, Einsum):
                return self._is_sum_of_squares(node)
            if not is_map(node, mul, div):
                return False
            left, right = part.parts()
            if not self._varies(right.node):
                part = left
            elif is_map(node, mul) and not self._varies(left.node):
                part = right
            else:
                return False

    def _is_sum_of_squares(self, node: Einsum) -> bool:
        """Whether a contraction is a sum of squares, or a quadratic form, times constants.

        Constants may be arrays, as the weights w in sum(w .* x^2) and the matrix in x' W x.
        """
        if len(set(node.output)) != len(node.output):
            return False
        arrays = self._varying_factors(node)
        if len(arrays) == 1:
            return is_map(arrays[0], square)
        return len(arrays) == 2 and arrays[0] is arrays[1]

    def _varying_factors(self, node: Einsum) -> list[Expr]:
        """The operands that depend on x; a nested contraction is replaced by its operands."""
        result: list[Expr] = []
        stack: list[Expr] = [*node.operands]
        while stack and len(result) <= _MOST_SIDES:
            one = stack.pop()
            if isinstance(one, Einsum) and self._varies(one):
                stack += one.operands
            elif self._varies(one):
                result.append(one)
        return result


def _root_of_sides(length: Expr) -> Expr:
    """root(x^2 + y^2) for hypot(x, y)."""
    x, y = (side.along(length.shape) for side in whole(length).parts())
    return root(add(square(x), square(y)))
