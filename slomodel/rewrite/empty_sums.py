"""Log-sum-exps all of whose terms are 0, as of states of a chain that no step can reach.

log(A) is -inf where A = Σ w exp(x) has no term that is not 0: where all exponents are -inf, or the
weights 0. Its derivative by the chain rule is 0/0, and a state of probability 0 at one step turns
the whole gradient into NaN, though exp(log(A)) is 0 around the point. So log(A) becomes a choice:
-inf where A = 0, with derivative 0, and the logarithm elsewhere. The law: the same values; the same
derivatives where A > 0, and 0 where A = 0.

This is done where log(A) is part of an exponent and data may be the cause: zeros among weights or
in logarithms, as the facts of a bind report. Where A is 0 because a
variable is, the derivative by it is not 0 (x in log(x) + y as x in x exp(y)), and stays NaN.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from slomodel.calculus.signs import is_positive
from slomodel.functions import (
    add,
    atan,
    clip,
    div,
    eq,
    erf,
    erfc,
    exp,
    expm1,
    log,
    log1p,
    logaddexp,
    maximum,
    minimum,
    mul,
    neg,
    normcdf,
    sigmoid,
    softplus,
    sub,
    tanh,
    where,
)
from slomodel.functions.compound import limited
from slomodel.functions.running import logaddexp_or_empty
from slomodel.ir import build
from slomodel.ir.expr import (
    Const,
    Einsum,
    Expr,
    Extreme,
    Gather,
    Map,
    Recur,
    Reshape,
    Scan,
    Scatter,
    is_map,
)
from slomodel.ir.loop import StateAt
from slomodel.ir.recur import with_values
from slomodel.ir.walk import dependents, postorder
from slomodel.rewrite.elementwise.matching import Reaches
from slomodel.rewrite.facts import Facts
from slomodel.rewrite.replacement import remade
from slomodel.rewrite.work import is_varying_input

_CARRYING = (add, sub, mul, neg, where, maximum, minimum, logaddexp, limited, clip)
"""Functions through which -inf reaches an exponent."""
_LOGARITHMS = (log, log1p, logaddexp)
_FLAT_AT_MINUS_INFINITY = (exp, expm1, sigmoid, softplus, normcdf, logaddexp, tanh, erf, erfc, atan)
"""Functions that do not depend on operands near -inf."""
_LINEAR = (Einsum, Gather, Reshape, Scan, Scatter)
_EXPONENTIALS = (exp, sigmoid, normcdf, erfc)
"""Functions that are 0 by underflow only, together with their derivatives."""


def with_empty_sums(objective: Expr, facts: Facts) -> tuple[Expr, tuple[str, ...]]:
    """The objective with choices where data may leave a log-sum-exp without terms."""
    result = _Sums(facts).rewritten(objective)
    return result, ()


class _Sums:
    """One graph, and the bodies of its loops.

    - `absent`: nodes that may be -inf for these data; `doubtful`: nodes that may be by variables.
    - `data`: nodes of data alone; `without_zeros`: whether these have no element 0.
    - `sums`: nodes that consist of exponentials with weights of data; `empty`: whether nodes in
      them may be 0 for these data.

    Each node is visited once, after its operands.
    """

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._absent: set[Expr] = set()
        self._doubtful: set[Expr] = set()
        self._data: set[Expr] = set()
        self._without_zeros: dict[Expr, bool] = {}
        self._sums: set[Expr] = set()
        self._empty: dict[Expr, bool] = {}
        self._has_end = Reaches(lambda one: is_map(one, log, log1p) or one is Const(-math.inf))
        self._is_doubted = Reaches(
            lambda one: is_map(one, *_EXPONENTIALS, expm1) and one.operands[0] in self._doubtful
        )

    def rewritten(self, root: Expr, is_step: bool = False) -> Expr:
        """The graph with choices; itself where no data are the cause.

        The value of a step may be an exponent in a later one.
        """
        order = postorder(root)
        if not any(is_map(node, *_LOGARITHMS) or isinstance(node, Recur) for node in order):
            return root
        varying = dependents(order, lambda one: is_varying_input(one) and one not in self._data)
        self._data |= {node for node in order if node not in varying}
        exponents = _parts_of_exponents(order, is_step)
        done: dict[Expr, Expr] = {}
        for node in order:
            operands = tuple(done[operand] for operand in node.operands)
            result = node if operands == node.operands else remade(node, operands)
            if self._is_sum(node):
                self._sums.add(node)
            if node in varying:
                self._examine(node)
                if isinstance(node, Recur):
                    result = self._of_loop(node, result)
                elif node in exponents:
                    result = self._guarded(node, result)
            done[node] = result
        return done[root]

    def _examine(self, node: Expr) -> None:
        """Whether a node that is not of data alone may be -inf, and why."""
        if is_map(node, log, log1p):
            (inside,) = node.operands
            if inside in self._sums:
                if self._may_be_empty(inside):
                    self._absent.add(node)
            elif not is_positive(inside):
                self._doubtful.add(node)
        elif is_map(node, *_CARRYING) or isinstance(node, Einsum | Gather | Reshape | Extreme):
            below = _carried(node)
            if self._is_decided(node):
                below = below[:1]
            if any(self._is_absent(one) for one in below):
                self._absent.add(node)
            if not self._doubtful.isdisjoint(below):
                self._doubtful.add(node)

    def _is_absent(self, node: Expr) -> bool:
        """Whether a node may be -inf for these data."""
        if node in self._data and node not in self._absent:
            # Data are finite themselves: -inf is a logarithm, or stands for terms left out.
            return self._has_end(node) and not self._facts.finite(node)
        return node in self._absent

    def _has_zeros(self, weight: Expr) -> bool:
        if isinstance(weight, Const):
            return weight.value == 0.0
        if weight not in self._without_zeros:
            self._without_zeros[weight] = self._facts.nonzero(weight)
        return not self._without_zeros[weight]

    def _is_sum(self, node: Expr) -> bool:
        """Whether a node consists of exponentials with weights of data, as its operands may."""
        if is_map(node, *_EXPONENTIALS, expm1) or node in self._data or isinstance(node, Const):
            return True
        if is_map(node, div, where):
            return self._sums.issuperset(
                node.operands[:1] if is_map(node, div) else node.operands[1:]
            )
        is_linear = is_map(node, add, mul, neg) or isinstance(node, _LINEAR)
        return is_linear and self._sums.issuperset(node.operands)

    def _may_be_empty(self, node: Expr) -> bool:
        """Whether data may make such a sum 0: exponents of -inf, or weights of 0."""
        stack = [node]
        while stack:
            one = stack[-1]
            below = _carried(one) if is_map(one, add, where) else one.operands
            if is_map(one, *_EXPONENTIALS, expm1) or isinstance(one, Const) or one in self._data:
                below = ()
            waiting = [operand for operand in below if operand not in self._empty]
            if waiting:
                stack += waiting
                continue
            if one not in self._empty:
                self._empty[one] = self._has_no_terms(one, [self._empty[o] for o in below])
            stack.pop()
        return self._empty[node] and not self._is_doubted(node)

    def _has_no_terms(self, node: Expr, below: Sequence[bool]) -> bool:
        if is_map(node, *_EXPONENTIALS, expm1):
            return self._is_absent(node.operands[0])
        if isinstance(node, Const) or node in self._data:
            return self._has_zeros(node)
        if is_map(node, where) and node.operands[0] in self._data:
            return below[0] if self._is_decided(node) else any(below)
        if isinstance(node, Scatter):
            return True
        return all(below) if is_map(node, add, where) else any(below)

    def _is_decided(self, node: Expr) -> bool:
        """Whether data choose the first branch for every element."""
        if not is_map(node, where) or node.operands[0] not in self._data:
            return False
        return self._facts.nonzero(node.operands[0])

    def _guarded(self, node: Expr, result: Expr) -> Expr:
        """A logarithm of a sum that may be empty as a choice."""
        if is_map(result, logaddexp) and isinstance(result, Map) and isinstance(node, Map):
            is_known = self._doubtful.isdisjoint(node.operands)
            if is_known and all(map(self._is_absent, node.operands)):
                return logaddexp_or_empty(*build.aligned(result))
            return result
        if node not in self._absent or not is_map(result, log, log1p):
            return result
        assert isinstance(result, Map)
        (inside,) = build.aligned(result)
        end = 0.0 if result.function is log else -1.0
        is_empty = eq(inside, end)
        return where(is_empty, -math.inf, result.function(where(is_empty, end + 1.0, inside)))

    def _of_loop(self, node: Recur, result: Expr) -> Expr:
        """A state of a loop, with choices in its steps."""
        assert isinstance(result, Recur)
        absent, inner = self._steps(node)
        if absent:
            self._absent.update(node.states)
        values = [inner.rewritten(update.value, is_step=True) for update in node.loop.updates]
        if all(new is u.value for new, u in zip(values, node.loop.updates, strict=True)):
            return result
        return with_values(result, values, lambda _: False)[node.state]

    def _steps(self, node: Recur) -> tuple[bool, _Sums]:
        """Whether a state may be -inf, and what is known of the steps' placeholders."""
        loop = node.loop
        initial = [node.operands[one] for one in loop.initial if one is not None]
        absent = any(map(self._is_absent, initial))
        while True:
            inner = _Sums(self._facts)
            for one, source in loop.sources:
                if isinstance(source, StateAt):
                    if absent:
                        inner._absent.add(one)
                    continue
                array = node.operands[source.operand]
                if array in self._data:
                    inner._data.add(one)
                    inner._without_zeros[one] = not self._has_zeros(array)
                if self._is_absent(array):
                    inner._absent.add(one)
            values = [update.value for update in loop.updates]
            for value in values:
                inner.rewritten(value, is_step=True)
            found = any(map(inner._is_absent, values))
            if absent or not found:
                return absent, inner
            absent = True


def _carried(node: Expr) -> tuple[Expr, ...]:
    """The operands that may pass -inf on to a node."""
    if is_map(node, where):
        return node.operands[1:]
    return node.operands[:1] if is_map(node, limited, clip) else node.operands


def _parts_of_exponents(order: Sequence[Expr], is_step: bool) -> set[Expr]:
    """The nodes of a graph, operands first, whose being -inf may leave the last one finite."""
    result = {order[-1]} if is_step else set()
    for node in reversed(order):
        if is_map(node, *_FLAT_AT_MINUS_INFINITY) or isinstance(node, Recur):
            result.update(node.operands)
        elif node in result and (
            is_map(node, *_CARRYING) or isinstance(node, Einsum | Gather | Reshape | Extreme)
        ):
            result.update(_carried(node))
    return result
