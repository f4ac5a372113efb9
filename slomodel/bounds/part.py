"""What a rule bounds: a part of an objective, or all of it, with its data at a centre."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from math import prod
from typing import Concatenate, ParamSpec, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from slomodel.bounds.arithmetic.interval import Interval
from slomodel.bounds.effort import DEFAULT, Effort
from slomodel.calculus import NOTHING, Known, gradient
from slomodel.errors import Span
from slomodel.ir.exact import without_rounding
from slomodel.ir.expr import Expr, Input
from slomodel.ir.walk import dependents, postorder

Array = NDArray[np.float64]
Value = TypeVar("Value")
Numbers = TypeVar("Numbers", Array, NDArray[np.intp])
Others = ParamSpec("Others")


@dataclass(frozen=True)
class ObjectivePart:
    """A summand of an objective, or all of it, at a centre; everything except x is numeric.

    `values` holds an array for every variable (the centre) and every data input. `limits` holds
    the intervals in which variables stay, beside the ball; the centre lies in them. `written` is
    the part before it was brought into Gram form. `effort` budgets the work of every rule.
    `forms` has, by the objective, a form of it that chooses between formulas, which has bounds in
    tails where the plain one has none. `product` computes H(x)v from x and v (n,) for estimates,
    where a kernel does so faster than the graph; summands have none. Work done once per centre is
    cached by `once_per_part`; any other part, including one by `replace`, starts with an empty
    cache.
    """

    objective: Expr
    variables: tuple[Input, ...]
    values: Mapping[Input, Array]
    sizes: Mapping[str, int]
    known: Known = NOTHING
    spans: Mapping[Expr, Span] = field(default_factory=dict)
    written: ObjectivePart | None = None
    limits: Mapping[Input, Interval] = field(default_factory=dict)
    effort: Effort = DEFAULT
    forms: Mapping[Expr, Expr] = field(default_factory=dict)
    product: Callable[[Array, Array], Array] | None = field(default=None, compare=False)
    cache: dict[object, object] = field(default_factory=dict, init=False, repr=False, compare=False)

    @cached_property
    def order(self) -> tuple[Expr, ...]:
        """The nodes under the objective, operands before their users."""
        return tuple(postorder(self.objective))

    @cached_property
    def varying(self) -> frozenset[Expr]:
        """The nodes that depend on the variables."""
        return frozenset(dependents(self.order, set(self.variables).__contains__))

    @cached_property
    def x(self) -> Array:
        """The centre as one vector (n,)."""
        parts = [np.ravel(self.values[variable]) for variable in self.variables]
        return np.concatenate([np.zeros(0), *parts])

    def by_variable(self, array: Numbers) -> dict[Input, Numbers]:
        """The parts (.., *shape) of an array (.., n), one for each variable."""
        result: dict[Input, Numbers] = {}
        start = 0
        for variable in self.variables:
            shape: tuple[int, ...] = np.shape(self.values[variable])
            stop = start + prod(shape)
            result[variable] = array[..., start:stop].reshape((*array.shape[:-1], *shape))
            start = stop
        return result

    @cached_property
    def gradient(self) -> tuple[Expr, ...]:
        """The gradient by variable, as graphs whose constants are not rounded."""
        with without_rounding():
            return gradient(self.objective, self.variables, self.known)

    def rewritten(
        self, done: Mapping[Expr, Expr], known: Known, written: ObjectivePart | None = None
    ) -> ObjectivePart:
        """The part with another graph of the same objective; `done` maps old nodes to new.

        The part itself where the objective is the same node.
        """
        if done[self.objective] is self.objective:
            return self
        spans = {done[node]: span for node, span in self.spans.items() if node in done}
        return replace(
            self,
            objective=done[self.objective],
            known=known,
            spans={**spans, **self.spans},
            written=written,
        )

    @cached_property
    def tables(self) -> Mapping[Expr, Array]:
        """The data, as tables for index lookups."""
        return {node: array for node, array in self.values.items() if node.role == "data"}

    def cached(self, compute: Callable[[ObjectivePart], Value]) -> Value | None:
        """The value of a function `once_per_part`, if it has been computed."""
        return cast("Value | None", self.cache.get((compute, (), ())))

    @property
    def with_choices(self) -> ObjectivePart | None:
        """The part with the form that chooses between formulas; None without one."""
        form = self.forms.get(self.objective)
        return None if form is None else replace(self, objective=form, forms={})

    @cached_property
    def n(self) -> int:
        """The number of unknowns."""
        return sum(int(np.size(self.values[variable])) for variable in self.variables)


def once_per_part(
    compute: Callable[Concatenate[ObjectivePart, Others], Value],
) -> Callable[Concatenate[ObjectivePart, Others], Value]:
    """The function with its value cached per part and per hashable further arguments.

    A cached value must depend on nothing else, so that results do not depend on the order of calls.
    """

    @wraps(compute)
    def cached(part: ObjectivePart, /, *args: Others.args, **named: Others.kwargs) -> Value:
        key = (cached, args, tuple(named.items()))
        if key not in part.cache:
            part.cache[key] = compute(part, *args, **named)
        return cast("Value", part.cache[key])

    return cast("Callable[Concatenate[ObjectivePart, Others], Value]", cached)
