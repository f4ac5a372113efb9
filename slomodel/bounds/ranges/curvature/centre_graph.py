"""The nodes under an objective with values and gradients at the centre of a region."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from slomodel.bounds.arithmetic.interval import Interval, point
from slomodel.bounds.arithmetic.rounding import Array, Truths
from slomodel.bounds.ball import Displacements
from slomodel.bounds.part import ObjectivePart
from slomodel.bounds.ranges.curvature.incidence import incidence
from slomodel.bounds.ranges.curvature.log_sum_exp import (
    ApartFromMean,
    SummedClasses,
    shares,
)
from slomodel.bounds.ranges.curvature.slopes import slopes_of
from slomodel.bounds.ranges.enclose import boxed, enclose, live_in
from slomodel.bounds.ranges.liveness import Live
from slomodel.bounds.structure.curved_terms import MeanOfLogSum, varying_nodes, with_means
from slomodel.bounds.structure.lengths import Lengths, lengths_in
from slomodel.functions.compound import stop_gradient
from slomodel.ir.expr import Expr, Input, Map
from slomodel.ir.walk import postorder


@dataclass(frozen=True, slots=True, eq=False)
class CentreGraph:
    """The nodes under an objective in order and those that depend on x, with values at the centre.

    `lengths` and `reaches` are upper bounds on ‖∇u(c)‖ and on ∇u(c)·y over a region for each
    element of the latter; `slopes` holds ∇u(c) (n, *shape) of the `wanted` nodes, `incidence` which
    unknowns operands of contractions read, `still_values` the values of nodes marked constant.
    `log_sums` are the nodes log Σ exp u, with what is known of u `apart` from its mean at the
    centre; `means` has means in their places, and `inner` nodes are read by them alone.
    Nodes of `at_most_0` are so by their form; matrices of `near_identity` are about I; `vectors`
    are the lengths of arrays and what is divided by them.
    """

    order: tuple[Expr, ...]
    varying: frozenset[Expr]
    values: Mapping[Expr, Interval]
    lengths: Mapping[Expr, Array]
    reaches: Mapping[Expr, Array]
    slopes: Mapping[Expr, Interval]
    live: Live
    incidence: Mapping[Expr, Truths]
    still_values: Mapping[Expr, Interval]
    log_sums: Mapping[Expr, MeanOfLogSum] = field(default_factory=dict)
    means: Mapping[Expr, Expr] = field(default_factory=dict)
    inner: frozenset[Expr] = frozenset()
    apart: Mapping[Expr, ApartFromMean] = field(default_factory=dict)
    at_most_0: frozenset[Expr] = frozenset()
    near_identity: frozenset[Expr] = frozenset()
    vectors: Lengths = field(default_factory=Lengths)


def centre_graph(
    part: ObjectivePart,
    wanted: Collection[Expr],
    log_sums: Collection[MeanOfLogSum] = (),
    at_most_0: Collection[Expr] = (),
    near_identity: Collection[Expr] = (),
) -> CentreGraph:
    """The values and slopes at the centre."""
    order = part.order
    values = enclose(order, boxed(part.values), part.sizes, live=live_in(part))
    # What is under a constant node may differ from it by rounding: enclosed again from it.
    still_values: dict[Expr, Interval] = {}
    for node in order:
        if isinstance(node, Map) and node.function is stop_gradient:
            own = values[node]
            still_values[node] = point(own.mid) if np.isfinite(own.magnitude).all() else own
    varying = varying_nodes(order, part.variables)
    reads = incidence(part, order, varying)
    base = CentreGraph(
        *(order, frozenset(varying), values, {}, {}, {}, live_in(part), reads, still_values),
        log_sums={one.term.node: one for one in log_sums},
        means=with_means(part.objective, {one.term: one.mean for one in log_sums}),
        inner=_only_inside(order, log_sums),
        at_most_0=frozenset(at_most_0),
        near_identity=frozenset(near_identity),
        vectors=lengths_in(order, varying),
    )
    if still_values:
        base = replace(base, values=_values_at(part, base, part.values))
    return _with_slopes(part, base, wanted, Displacements.ball(part.n, 1.0))


def centre_of_cell(
    part: ObjectivePart,
    base: CentreGraph,
    values: Mapping[Input, Array],
    wanted: Collection[Expr],
    region: Displacements,
) -> CentreGraph:
    """The values and slopes at another point; nodes marked constant have those of the centre."""
    own = replace(base, values=_values_at(part, base, values))
    return _with_slopes(part, own, wanted, region)


def _values_at(
    part: ObjectivePart, base: CentreGraph, values: Mapping[Input, Array]
) -> dict[Expr, Interval]:
    under = postorder(*base.still_values)
    known = {node: a for node, a in base.values.items() if node in under} | dict(base.still_values)
    known = {node: a for node, a in known.items() if node not in base.varying}
    return enclose(base.order, boxed(values), part.sizes, known=known, live=base.live)


def _with_slopes(
    part: ObjectivePart, base: CentreGraph, wanted: Collection[Expr], region: Displacements
) -> CentreGraph:
    samples = {
        node: SummedClasses.of(one.term.u, one.term.summed, part.sizes)
        for node, one in base.log_sums.items()
    }
    p = {}
    for node, own in samples.items():
        rows = base.values[base.log_sums[node].term.u].each(own.rows)
        p[node] = shares(rows.each(np.transpose)).each(np.transpose).each(own.array)
    given = given_weights(base, p, p)
    nodes = [node for node in base.order if node in base.varying and node.dtype == "real"]
    nodes = [node for node in nodes if node not in base.inner]
    parts = {node: one.apart(base.means[one.term.u]) for node, one in base.log_sums.items()}
    made = [base.means[node] for node in nodes]
    known = {base.means[node]: a for node, a in base.values.items()}
    kept = [base.means[node] for node in wanted]
    result = slopes_of(part, [*made, *parts.values()], kept, known, region, given)
    lengths, reaches, slopes = result
    apart = {
        node: ApartFromMean(p[node], lengths[read], reaches.get(read))
        for node, read in parts.items()
    }
    pairs = list(zip(nodes, made, strict=True))
    return replace(
        base,
        lengths={node: lengths[one] for node, one in pairs},
        reaches={node: reaches[one] for node, one in pairs if one in reaches},
        slopes={node: slopes[base.means[node]] for node in wanted},
        apart=apart,
    )


def given_weights(
    base: CentreGraph, over: Mapping[Expr, Interval], at_centre: Mapping[Expr, Interval]
) -> dict[Input, Interval]:
    """The weights of all means over a region and at the centre, by their inputs."""
    given = {one.weights: over[node] for node, one in base.log_sums.items()}
    return given | {one.at_centre: at_centre[node] for node, one in base.log_sums.items()}


def _only_inside(order: Collection[Expr], log_sums: Collection[MeanOfLogSum]) -> frozenset[Expr]:
    """The nodes inside of log Σ exp u that no other node reads."""
    inside = {node for one in log_sums for node in one.inner}
    ends = {one.term.node for one in log_sums}
    for node in reversed([*order]):
        if node not in inside and node not in ends:
            inside.difference_update(node.operands)
    # What a node that is read elsewhere consists of is read there too.
    for one in log_sums:
        for node in one.inner:
            if node not in inside:
                inside.difference_update(node.operands)
    return frozenset(inside)
