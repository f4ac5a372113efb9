"""From an objective to the graph that bounds its derivatives along a ray."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from slomodel.calculus.rays.contractions import scatter_error, triangle_midrad
from slomodel.calculus.rays.functions import (
    PartialFunction,
    Value,
    applied,
    as_midrad,
    as_range,
    derivative_at,
    derivative_range,
    largest_derivative,
    same_derivative,
    value_range,
)
from slomodel.calculus.rays.jets import (
    ORDERS,
    Jet,
    centred,
    completed,
    composed,
    constant_jet,
    contraction_jet,
    degree,
    known,
    mapped,
    product_jet,
    quotient_jet,
    sum_jet,
    viewed,
    whole,
)
from slomodel.calculus.rays.numbers import MidRad, Range, Truth, choose, combined, enlarged
from slomodel.calculus.rays.numbers import known as decided
from slomodel.calculus.rays.recurrences import scan_as_loop, states_along
from slomodel.errors import MissingRule
from slomodel.functions import (
    abs,
    add,
    differentiated,
    div,
    exp,
    gt,
    lnot,
    log,
    lor,
    lt,
    maximum,
    minimum,
    mul,
    neg,
    pow,
    same,
    square,
    still,
    sub,
    where,
)
from slomodel.ir import build
from slomodel.ir.expr import (
    Const,
    Einsum,
    Expr,
    Extreme,
    Gather,
    Input,
    Iota,
    Listing,
    Map,
    Recur,
    Reshape,
    Scan,
    Scatter,
    Triangle,
)
from slomodel.ir.function import ScalarFunction
from slomodel.ir.walk import substitute

_MOST_FACTORS = 6
_ZERO = Const(0.0)


@dataclass(frozen=True, slots=True)
class RayGraph:
    """Scalars of φ(t) = f(x + t v): enclosures at t = 0, and ranges over [0, end].

    `at` are φ, φ', φ'' with radii; `over` are the ends of φ'' and φ'''.
    """

    at: tuple[MidRad, MidRad, MidRad]
    over: tuple[Range, Range]

    @property
    def numbers(self) -> tuple[Expr, ...]:
        """Midpoints and radii of φ, φ', φ'', then the ends of φ'' and φ'''."""
        at = [one for n in self.at for one in (n.mid, _ZERO if n.rad is None else n.rad)]
        return (*at, *(end for one in self.over for end in (one.lo, one.hi)))


def ray_graph(objective: Expr, directions: Mapping[Input, Input], end: Expr) -> RayGraph:
    """The bounds along x + t v, where `directions` maps each variable to its part of v.

    Raises MissingRule, with the reason, where no proof exists for any x.
    """
    jet = _JetPass(end, directions).root(objective)
    value, slope, curvature = (one or MidRad(_ZERO) for one in jet.at)
    second, third = (one or MidRad(_ZERO) for one in jet.over[2:])
    return RayGraph((value, slope, curvature), (second.range, third.range))


@dataclass(slots=True)
class _JetPass:
    """One pass over a graph, operands first."""

    end: Expr
    directions: Mapping[Input, Input]
    jets: dict[Expr, Jet] = field(default_factory=dict)
    truths: dict[Expr, Truth] = field(default_factory=dict)

    def root(self, graph: Expr) -> Jet:
        """The jet of the root of a graph."""
        order = differentiated(graph)
        for node in order:
            if node in self.jets:
                continue
            if node.dtype == "bool":
                self.truths[node] = self.truth(node)
            else:
                self.jets[node] = whole(self.jet(node), node.shape)
        return self.jets[graph]

    def truth(self, node: Expr) -> Truth:
        """Truth values over the ray."""
        if isinstance(node, (Const, Input)):
            return decided(node)
        if isinstance(node, Map):
            found = applied(node.function, self._operands(node))
            assert isinstance(found, Truth)
            return found
        if isinstance(node, (Einsum, Gather, Reshape)):
            return _view_of_truth(self.truths[node.operands[0]], partial(placed, node))
        raise _no_proof(node)

    def _operands(self, node: Map) -> list[Value]:
        """The values of the operands over the ray, each along the axes of the node."""
        values: list[Value] = []
        for k, operand in enumerate(node.operands):
            if operand.dtype == "bool":
                own = self.truths[operand]
                values.append(_view_of_truth(own, partial(_laid, node, k)))
            else:
                jet = self._laid_jet(node, k)
                values.append(jet.values if jet.moves else known(jet.at[0]))
        return values

    def _laid_jet(self, node: Map, k: int) -> Jet:
        return viewed(self.jets[node.operands[k]], partial(_laid, node, k))

    def jet(self, node: Expr) -> Jet:
        """The jet of a node that is not a truth value."""
        if isinstance(node, Input) and node in self.directions:
            v = self.directions[node]
            return completed([MidRad(node), MidRad(v), None], lambda k: None, 1, self.end)
        if isinstance(node, (Input, Const, Iota, Listing)):
            return constant_jet(MidRad(node))
        if isinstance(node, Einsum):
            if not node.operands:
                return constant_jet(MidRad(node))
            if len(node.operands) > _MOST_FACTORS:
                raise MissingRule(f"it has a sum of products of {len(node.operands)} factors")
            return contraction_jet(node, [self.jets[o] for o in node.operands], self.end)
        if isinstance(node, (Gather, Reshape)):
            return viewed(self.jets[node.operands[0]], partial(placed, node))
        if isinstance(node, Scatter):
            added = partial(_scattered, node)
            return mapped(self.jets[node.operands[0]], added, added)
        if isinstance(node, Map):
            return self._map(node)
        if isinstance(node, Extreme) and not self.jets[node.operands[0]].moves:
            inner = known(self.jets[node.operands[0]].at[0])
            rad = None if inner.rad is None else build.extreme(inner.rad, "max", node.axes)
            return constant_jet(MidRad(build.extreme(inner.mid, node.which, node.axes), rad))
        if isinstance(node, Recur):
            return self._recurrence(node)
        if isinstance(node, Scan):
            return self.root(scan_as_loop(node))
        if isinstance(node, Triangle):
            return constant_jet(triangle_midrad(node, known(self.jets[node.operands[0]].at[0])))
        raise _no_proof(node)

    def _recurrence(self, node: Recur) -> Jet:
        """The jet of a state of a loop; those of its other states are computed with it."""
        if any(o in self.truths and not self.truths[o].is_known for o in node.operands):
            raise MissingRule("it has a recurrence whose conditions may change along the ray")
        operands = [self.jets.get(operand) for operand in node.operands]
        found = states_along(
            node, operands, self.end, lambda value, jets, end: _JetPass(end, {}, jets).root(value)
        )
        self.jets.update(zip(node.states, found, strict=True))
        return self.jets[node]

    def _map(self, node: Map) -> Jet:
        function = node.function
        if function is still:
            # The objective does not depend on this node's value, which may be taken as constant.
            return constant_jet(MidRad(self._at_start(node.operands[0])))
        jets = [
            constant_jet(MidRad(_ZERO)) if o.dtype == "bool" else self._laid_jet(node, k)
            for k, o in enumerate(node.operands)
        ]
        if function is same:
            return jets[0]
        if function is where:
            condition = self._operands(node)[0]
            assert isinstance(condition, Truth)
            return choice_jet(condition, jets[1], jets[2])
        if not any(jet.moves for jet in jets):
            return constant_jet(as_midrad(applied(function, self._operands(node))))
        return self.applied(function, jets)

    def _at_start(self, node: Expr) -> Expr:
        """A node at t = 0, from the midpoints of the placeholders of a body where there are any."""
        middles: dict[Expr, Expr] = {
            one: known(whole(jet, one.shape).at[0]).mid
            for one, jet in self.jets.items()
            if isinstance(one, Input)
        }
        (found,) = substitute((node,), middles)
        return found

    def applied(self, function: ScalarFunction, jets: Sequence[Jet]) -> Jet:
        """The jet of a function of jets, at least one of which depends on t."""
        if function is neg:
            ends = None if jets[0].ends is None else -jets[0].ends
            return replace(mapped(jets[0], lambda n: -n, lambda n: -n), ends=ends)
        if function in (add, sub):
            return sum_jet(jets[0], jets[1], 1 if function is add else -1)
        if function is mul:
            return product_jet(jets[0], jets[1], self.end)
        if function is square:
            return product_jet(jets[0], jets[0], self.end)
        moving = [k for k, jet in enumerate(jets) if jet.moves]
        if function is div and 1 in moving:
            return quotient_jet(jets[0], jets[1], self.end)
        if len(moving) == 1:
            return self._composition(function, jets, moving[0])
        inputs = tuple(build.variable(f"x{k}", ()) for k in range(function.arity))
        if function in (maximum, minimum):
            better = gt if function is maximum else lt
            form = where(better(*inputs), *inputs)
        elif function is pow:
            form = exp(mul(inputs[1], log(inputs[0])))
        elif function.unary_form is not None:
            form = function.unary_form(*inputs)
        else:
            raise MissingRule(f"it has {function} of several numbers that change along the ray")
        return _JetPass(self.end, {}, dict(zip(inputs, jets, strict=True))).root(form)

    def _composition(self, function: ScalarFunction, jets: Sequence[Jet], k: int) -> Jet:
        """The jet of a function of which operand k alone depends on t."""
        u = jets[k]
        start = known(u.at[0])
        others = [known(jet.at[0]) for jet in jets]
        constants = tuple(
            one.mid if j != k and isinstance(one.mid, Const) and one.rad is None else None
            for j, one in enumerate(others)
        )
        one = PartialFunction(function, k, constants)
        points = [MidRad(start.mid) if j == k else one for j, one in enumerate(others)]
        values = [derivative_at(one, j, points) for j in range(ORDERS - 1)]
        ranges = self._derivatives(one, jets, values, k)
        for j, following in enumerate(ranges[1:]):
            if start.rad is not None and following is not None:
                values[j] = widened(values[j], start.rad, following)
        at = [values[0], composed(values, u.at, 1), composed(values, u.at, 2)]
        order = max((j for j, own in enumerate(ranges) if own is not None), default=0)
        return completed(
            at,
            lambda j: composed(ranges, u.over, j),
            order * degree(u) if order < ORDERS - 1 else ORDERS - 1,
            self.end,
            rough=bool(function.kinks) or u.rough,
            both=(2,) if start.mid.rank else (1, 2),
            ends=self._ends(function, jets),
        )

    def _ends(self, function: ScalarFunction, jets: Sequence[Jet]) -> Range | None:
        """The values over the ray by the function's monotonicity or, where that is not needed to
        bound derivatives, the ends of its image.
        """
        if _has_mean_values(function):
            assert function.monotonicity is not None
            low, high = function.monotonicity.image
            return Range(Const(low), Const(high)) if math.isfinite(low) else None
        return as_range(value_range(function, *(jet.values for jet in jets)))

    def _derivatives(
        self, one: PartialFunction, jets: Sequence[Jet], at: Sequence[MidRad | None], k: int
    ) -> list[MidRad | None]:
        """The derivatives of orders 1 to 3 of a function over the ray; entry 0 is unused.

        Each is expanded at the midpoint of the operand's range, by the mean value theorem, if the
        fourth is known to be bounded everywhere. Of other functions the third is taken from the
        ends of the range and, without kinks, the lower ones from centred forms: φ''(u) has the
        derivative φ'''(u)u'. `at` are the derivatives at the midpoint of operand k at t = 0.
        """
        if not _has_mean_values(one.function):
            start, slope = known(jets[k].at[0]), known(jets[k].over[1])
            operands = [jet.values for jet in jets]
            if start.rad is not None:
                # That at 0 is expanded at its midpoint.
                operands[k] = operands[k].hull(Range(start.mid, start.mid))
            found: list[MidRad | None] = [MidRad(_ZERO), *([None] * (ORDERS - 1))]
            for j in range(ORDERS - 1, 0, -1):
                above = found[j + 1] if j + 1 < ORDERS else None
                value = at[j] if j + 1 < ORDERS else None
                if above is not None and same_derivative(one, j):
                    found[j] = above
                elif one.function.kinks or above is None or value is None:
                    own = derivative_range(one, j, operands)
                    found[j] = None if own is None else own.midrad
                else:
                    value = value if start.rad is None else widened(value, start.rad, above)
                    found[j] = centred(value, combined([(1.0, [above, slope])]), self.end)
            return found
        wide = known(jets[0].over[0])
        values: list[MidRad | None] = []
        following = MidRad(Const(largest_derivative(one.function, ORDERS) or 0.0))
        for j in range(ORDERS - 1, 0, -1):
            value = derivative_at(one, j, [MidRad(wide.mid)])
            following = widened(value, _ZERO if wide.rad is None else wide.rad, following)
            values.append(following)
        return [MidRad(_ZERO), *reversed(values)]


def _has_mean_values(function: ScalarFunction) -> bool:
    """Whether the fourth derivative of a function of one number is known to be bounded."""
    return largest_derivative(function, ORDERS) is not None


def widened(value: MidRad | None, reach: Expr, following: MidRad) -> MidRad:
    """The values of a function within `reach` of a point, from its value and its derivative."""
    middle = value or MidRad(_ZERO)
    kept = [] if middle.rad is None else [middle.rad]
    return MidRad(middle.mid, enlarged([*kept, mul(following.size, reach)]))


def choice_jet(condition: Truth, a: Jet, b: Jet) -> Jet:
    """The jet of the branch taken along the whole ray; values alone where the branch may change."""
    sure = None if condition.is_known else lor(condition.certain, lnot(condition.possible))
    at = [_either(condition, sure, p, q) for p, q in zip(a.at, b.at, strict=True)]
    ends = choose(condition, a.values, b.values)
    over = [_either(condition, sure, p, q) for p, q in zip(a.over, b.over, strict=True)]
    rough = a.rough or b.rough or sure is not None
    return Jet(at, [ends.midrad, *over[1:]], ends, rough)


def _either(
    condition: Truth, sure: Expr | None, p: MidRad | None, q: MidRad | None
) -> MidRad | None:
    """One of two numbers; unbounded where it is not `sure` which."""
    if p is None and q is None and sure is None:
        return None
    p, q = p or MidRad(_ZERO), q or MidRad(_ZERO)
    rad: Expr | None = None
    if p.rad is not None or q.rad is not None:
        rad = where(condition.certain, p.rad or _ZERO, q.rad or _ZERO)
    if sure is not None:
        rad = where(sure, rad or _ZERO, math.inf)
    return MidRad(where(condition.certain, p.mid, q.mid), rad)


def placed(node: Expr, operand: Expr) -> Expr:
    """A view of another array that moves its elements as `node` moves those of its operand."""
    if isinstance(node, Einsum):
        return build.einsum([operand], node.inputs, node.output, node.dims)
    if isinstance(node, Reshape):
        return build.reshape(operand, node.shape)
    if isinstance(node, Gather):
        return build.gather(operand, node.index, node.shape)
    assert isinstance(node, Scatter)
    return build.scatter(operand, node.index, node.shape)


def _scattered(node: Scatter, own: MidRad) -> MidRad:
    errors = [scatter_error(node.operands[0], placed(node, abs(own.mid)))]
    if own.rad is not None:
        added = placed(node, own.rad)
        errors += [added, scatter_error(node.operands[0], added)]
    return MidRad(placed(node, own.mid), enlarged(errors))


def _view_of_truth(own: Truth, view: Callable[[Expr], Expr]) -> Truth:
    certain = view(own.certain)
    return decided(certain) if own.is_known else Truth(certain, view(own.possible))


def _laid(node: Map, k: int, operand: Expr) -> Expr:
    """Operand k, or another array of its shape, along the axes of the node."""
    return (
        build.broadcast(operand, node.axes[k], node.shape)
        if node.rank and operand.rank
        else operand
    )


def _no_proof(node: Expr) -> MissingRule:
    return MissingRule(f"it has a node without a rule, {type(node).__name__}, that changes")
