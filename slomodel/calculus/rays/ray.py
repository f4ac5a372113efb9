"""From an objective to the graph that bounds its derivatives along a ray."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from slomodel.calculus.rays.averages import centred_logarithm, exponential_factor
from slomodel.calculus.rays.conditions import is_decided_alike
from slomodel.calculus.rays.contractions import placed, scattered, triangle_midrad
from slomodel.calculus.rays.derivatives import (
    PartialFunction,
    coefficient_at,
    coefficient_range,
    largest_coefficient,
    largest_derivative,
)
from slomodel.calculus.rays.functions import Value, applied, as_midrad, as_range, value_range
from slomodel.calculus.rays.jets import (
    ORDERS,
    OVER,
    Jet,
    composed,
    constant_jet,
    contraction_jet,
    expanded,
    known,
    largest_composed,
    mapped,
    negated,
    product_jet,
    quotient_jet,
    reach,
    sizes,
    spread,
    sum_jet,
    values,
    viewed,
    whole,
)
from slomodel.calculus.rays.matrices import MatrixJets
from slomodel.calculus.rays.numbers import (
    INF,
    MidRad,
    Range,
    Truth,
    choose,
    enlarged,
    least,
    raised,
)
from slomodel.calculus.rays.numbers import known as decided
from slomodel.calculus.rays.perturbed import perturbed
from slomodel.calculus.rays.recurrences import scan_as_loop, states_along
from slomodel.calculus.rays.root import RayGraph, of_root
from slomodel.calculus.signs import is_nonnegative
from slomodel.errors import MissingRule
from slomodel.functions import (
    add,
    differentiated,
    div,
    eq,
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
    stop_gradient,
    sub,
    where,
    xlog1py,
    xlogy,
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
    MatrixOperation,
    Recur,
    Reshape,
    Scan,
    Scatter,
    Triangle,
)
from slomodel.ir.function import Decay, ScalarFunction
from slomodel.ir.walk import substitute

_MOST_FACTORS = 6
_MULTIPLES = (xlogy, xlog1py)
_ZERO = Const(0.0)


def ray_graph(objective: Expr, directions: Mapping[Input, Input], end: Expr) -> RayGraph:
    """The bounds along x + t v, where `directions` maps each variable to its part of v.

    Raises MissingRule, with the reason, where no proof exists for any x.
    """
    return of_root(_JetPass(end, directions).root(objective), end)


def enclosed_value(objective: Expr) -> MidRad:
    """The value with a bound on its rounding error.

    Raises MissingRule, with the reason, where none exists.
    """
    return known(_JetPass(_ZERO, {}).root(objective).at[0])


@dataclass(slots=True)
class _JetPass:
    """One pass over a graph, operands first."""

    end: Expr
    directions: Mapping[Input, Input]
    jets: dict[Expr, Jet] = field(default_factory=dict)
    truths: dict[Expr, Truth] = field(default_factory=dict)
    matrices: MatrixJets | None = None

    def root(self, graph: Expr) -> Jet:
        """The jet of the root of a graph."""
        order = differentiated(graph)
        if self.matrices is None:
            self.matrices = MatrixJets(order, self.end)
        for node in order:
            if node in self.jets:
                continue
            if node.dtype == "bool":
                self.truths[node] = self.truth(node)
            else:
                self.jets[node] = self._with_sign(node, whole(self.jet(node), node.shape))
        return self.jets[graph]

    def _with_sign(self, node: Expr, jet: Jet) -> Jet:
        """The jet, with 0 as the lower end of a sum that is not negative and has no ends."""
        if jet.ends is None and jet.moves and jet.over is None and is_nonnegative(node):
            return replace(jet, ends=Range(_ZERO, INF))
        return jet

    def truth(self, node: Expr) -> Truth:
        """Truth values over the ray; those of data as computed if all kernels agree."""
        if isinstance(node, (Const, Input)):
            return decided(node)
        if isinstance(node, Map):
            is_still = all(self._is_still(operand) for operand in node.operands)
            if is_still and is_decided_alike(node):
                return decided(self._still(node))
            operands = self._operands(node)
            if is_still:
                operands = [one.ends if isinstance(one, MidRad) else one for one in operands]
            result = applied(node.function, operands)
            assert isinstance(result, Truth)
            return result
        if isinstance(node, (Einsum, Gather, Reshape)):
            return _view_of_truth(self.truths[node.operands[0]], partial(placed, node))
        raise _no_proof(node)

    def _is_still(self, node: Expr) -> bool:
        """Whether a node is the same at all points of the ray."""
        if node.dtype == "bool":
            return self.truths[node].is_known
        return not self.jets[node].moves

    def _still(self, node: Map) -> Expr:
        """A function of nodes that are the same at all points, as computed."""
        operands = [
            self.truths[operand].certain
            if operand.dtype == "bool"
            else known(self.jets[operand].at[0]).mid
            for operand in node.operands
        ]
        return node.function(*(_laid(node, k, one) for k, one in enumerate(operands)))

    def _operands(self, node: Map) -> list[Value]:
        """The values of the operands over the ray, each along the axes of the node."""
        result: list[Value] = []
        for k, operand in enumerate(node.operands):
            if operand.dtype == "bool":
                own = self.truths[operand]
                result.append(_view_of_truth(own, partial(_laid, node, k)))
            else:
                jet = self._laid_jet(node, k)
                own_values: Value = values(jet, self.end) if jet.moves else known(jet.at[0])
                domain = node.function.domain
                in_doubt = jet.moves or known(jet.at[0]).rad is not None
                if in_doubt and k < len(domain) and domain[k][0] == 0.0 and is_nonnegative(operand):
                    own_values = as_range(own_values).within(0.0, math.inf)
                result.append(own_values)
        return result

    def _laid_jet(self, node: Map, k: int) -> Jet:
        return viewed(self.jets[node.operands[k]], partial(_laid, node, k))

    def jet(self, node: Expr) -> Jet:
        """The jet of a node that is not a truth value."""
        if isinstance(node, Input) and node in self.directions:
            v = self.directions[node]
            return Jet([MidRad(node), MidRad(v), None, None])
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
            return mapped(self.jets[node.operands[0]], partial(scattered, node))
        if isinstance(node, Map):
            return self._map(node)
        if isinstance(node, Extreme) and not self.jets[node.operands[0]].moves:
            inner = known(self.jets[node.operands[0]].at[0])
            rad = None if inner.rad is None else build.extreme(inner.rad, "max", node.axes)
            return constant_jet(MidRad(build.extreme(inner.mid, node.which, node.axes), rad))
        if isinstance(node, MatrixOperation) and self.matrices is not None:
            return self.matrices.jet(node, self.jets)
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
        result = states_along(
            node, operands, self.end, lambda value, jets, end: _JetPass(end, {}, jets).root(value)
        )
        self.jets.update(zip(node.states, result, strict=True))
        return self.jets[node]

    def _map(self, node: Map) -> Jet:
        function = node.function
        if function is stop_gradient:
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
            return choice_jet(condition, jets[1], jets[2], self.end)
        if not any(jet.moves for jet in jets):
            near = perturbed(function, known(jets[0].at[0]))
            return constant_jet(near or as_midrad(applied(function, self._operands(node))))
        which = exponential_factor(node, self.jets)
        if which is not None:
            total = node.operands[0]
            assert isinstance(total, Einsum)
            factor = total.operands[which]
            assert isinstance(factor, Map)
            exponent = self._laid_jet(factor, 0)
            jet = centred_logarithm(total, which, exponent, self.jets, self.applied, self.end)
            return viewed(jet, partial(_laid, node, 0))
        return self.applied(function, jets)

    def _at_start(self, node: Expr) -> Expr:
        """A node at t = 0, from the midpoints of the placeholders of a body where there are any."""
        middles: dict[Expr, Expr] = {
            one: known(whole(jet, one.shape).at[0]).mid
            for one, jet in self.jets.items()
            if isinstance(one, Input)
        }
        (result,) = substitute((node,), middles)
        return result

    def applied(self, function: ScalarFunction, jets: Sequence[Jet]) -> Jet:
        """The jet of a function of jets, at least one of which depends on t."""
        if function is neg:
            return negated(jets[0])
        if function in (add, sub):
            return sum_jet(jets[0], jets[1] if function is add else negated(jets[1]), self.end)
        if function is mul:
            return product_jet(jets[0], jets[1], self.end)
        if function is square:
            return product_jet(jets[0], jets[0], self.end)
        varying = [k for k, jet in enumerate(jets) if jet.moves]
        if function is div and 1 in varying:
            return quotient_jet(jets[0], jets[1], self.end)
        inputs = tuple(build.variable(f"x{k}", ()) for k in range(function.arity))
        if function in _MULTIPLES and varying == [1]:
            # A multiple of a function of one number, but 0 for the factor 0 wherever that is.
            assert function.unary_form is not None
            multiple = function.unary_form(*inputs)
            has_logarithm = gt(inputs[1], 0.0 if function is xlogy else -1.0)
            form = where(has_logarithm, multiple, where(eq(inputs[0], 0.0), 0.0, multiple))
        elif len(varying) == 1:
            return self._composition(function, jets, varying[0])
        elif function in (maximum, minimum):
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
        """The jet of a function of which operand k alone depends on t.

        Its derivatives are taken at the midpoint of the operand at t = 0, and bounded within the
        operand's reach of that point.
        """
        u = jets[k]
        others = [known(jet.at[0]) for jet in jets]
        start = others[k]
        constants = tuple(
            one.mid if j != k and isinstance(one.mid, Const) and one.rad is None else None
            for j, one in enumerate(others)
        )
        one = PartialFunction(function, k, constants)
        points = [MidRad(start.mid) if j == k else one for j, one in enumerate(others)]
        outer = [coefficient_at(one, j, points) for j in range(ORDERS)]
        operands = [values(jet, self.end) for jet in jets]
        if start.rad is not None:
            operands[k] = operands[k].hull(Range(start.mid, start.mid))
        largest = _largest(one, outer, operands, reach(u, self.end))
        for j, above in enumerate(largest[1:]):
            if start.rad is not None and above is not None:
                distance = start.rad if j == 0 else mul(float(j + 1), start.rad)
                outer[j] = widened(outer[j], distance, above)
        over = None
        if function.kinks or u.over is not None:
            wide = [coefficient_range(one, j, operands) for j in range(OVER)]
            over = composed([None if r is None else r.midrad for r in wide], spread(u, self.end))
        own = sizes(u, self.end)
        third, fourth = (largest_composed(largest, own, j) for j in (ORDERS - 1, ORDERS))
        second = None
        if u.is_affine and fourth is not None:
            curvature = coefficient_range(one, 2, operands)
            second = None if curvature is None else curvature * known(u.at[1]).range.squared
        return Jet(composed(outer, u.at), fourth, third, _ends(function, operands), over, second)


def _ends(function: ScalarFunction, operands: Sequence[Range]) -> Range | None:
    """The values over the ray by the function's monotonicity or, where that is not needed to
    bound derivatives, the ends of its image.
    """
    if largest_derivative(function, ORDERS) is not None:
        assert function.monotonicity is not None
        low, high = function.monotonicity.image
        return Range(Const(low), Const(high)) if math.isfinite(low) else None
    return as_range(value_range(function, *operands))


def _largest(
    one: PartialFunction, at: Sequence[MidRad | None], operands: Sequence[Range], distance: Expr
) -> list[Expr | None]:
    """Bounds on |k-th derivative|/k! of a function over the operands; entry 0 is unused.

    If the fourth derivative is bounded everywhere, those of lower orders follow from the
    coefficients `at` the start.
    """
    largest = largest_derivative(one.function, ORDERS)
    if largest is None:
        return [None, *(largest_coefficient(one, j, operands) for j in range(1, ORDERS + 1))]
    fourth: Expr = Const(largest / math.factorial(ORDERS))
    if one.function.decay is not None:
        fourth = least(decayed(one.function.decay, at, distance), fourth)
    result = expanded(at, fourth, distance)
    for j in range(1, ORDERS):
        everywhere, own = largest_derivative(one.function, j), result[j]
        if everywhere is not None and own is not None:
            result[j] = minimum(own, everywhere / math.factorial(j))
    return result


def decayed(decay: Decay, at: Sequence[MidRad | None], distance: Expr) -> Expr:
    """Bound on |φ^(4)|/4! within a distance d of the start, as |φ^(k)| <= e^(rate d)|φ^(k)(c_0)|.

    k is the order of `decay`. The exponential is at most 1 + x + x² for x <= 1.79.
    """
    start = known(at[decay.order])
    x = mul(decay.rate, distance)
    factor = decay.fourth * math.factorial(decay.order) / math.factorial(ORDERS)
    bound = mul(mul(factor, start.size), add(1.0, mul(x, add(1.0, x))))
    return where(lt(x, 1.75), raised([bound]), math.inf)


def widened(value: MidRad | None, reach: Expr, following: Expr) -> MidRad:
    """The values of a function within `reach` of a point, from its value and its derivative."""
    middle = value or MidRad(_ZERO)
    kept = [] if middle.rad is None else [middle.rad]
    return MidRad(middle.mid, enlarged([*kept, mul(following, reach)]))


def choice_jet(condition: Truth, a: Jet, b: Jet, end: Expr) -> Jet:
    """The jet of the branch taken along the whole ray; values alone where the branch may change."""
    sure = None if condition.is_known else lor(condition.certain, lnot(condition.possible))
    at = [_either(condition, p, q) for p, q in zip(a.at, b.at, strict=True)]
    fourth: Expr | None = None
    if a.fourth is not None or b.fourth is not None or sure is not None:
        fourth = where(condition.certain, a.fourth or _ZERO, b.fourth or _ZERO)
        fourth = fourth if sure is None else where(sure, fourth, math.inf)
    ends = choose(condition, values(a, end), values(b, end))
    over: list[MidRad | None] | None = None
    if sure is not None or a.over is not None or b.over is not None:
        pairs = zip(spread(a, end), spread(b, end), strict=True)
        either = [_either(condition, p, q) for p, q in pairs]
        over = [ends.midrad, *(_unless(sure, one) for one in either[1:])]
        at = [_unless(sure, one) for one in at]
    return Jet(at, fourth, None, ends, over)


def _either(condition: Truth, p: MidRad | None, q: MidRad | None) -> MidRad | None:
    """One of two numbers."""
    if p is None and q is None:
        return None
    p, q = p or MidRad(_ZERO), q or MidRad(_ZERO)
    rad: Expr | None = None
    if p.rad is not None or q.rad is not None:
        rad = where(condition.certain, p.rad or _ZERO, q.rad or _ZERO)
    return MidRad(where(condition.certain, p.mid, q.mid), rad)


def _unless(sure: Expr | None, one: MidRad | None) -> MidRad | None:
    """The number, unbounded where it is not `sure` which branch it is of."""
    if sure is None:
        return one
    one = one or MidRad(_ZERO)
    return MidRad(one.mid, where(sure, one.rad or _ZERO, math.inf))


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
