"""Jets of nodes of a gradient graph: bounds above all derivatives, and tight ones."""

import numpy as np
import pytest
from bounds.fuzz import part_of
from bounds.rules.test_norm_rules import by_definition
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import graphs

import slomodel.functions as fn
from slomodel.bounds import ObjectivePart
from slomodel.bounds.ranges.liveness import has_neutral
from slomodel.bounds.rules.jets.norm_graph import prepare
from slomodel.bounds.rules.jets.propagate import propagate
from slomodel.calculus import jvp
from slomodel.ir import build
from slomodel.ir.dims import literal
from slomodel.ir.expr import Input, remake
from slomodel.ir.walk import postorder
from slomodel.reference import evaluate

STEP = 1e-30
RADII = (0.0, 1e-3, 0.1, 1.0)


def directions(prepared, rng):
    """A unit vector of one block, by variable."""
    names = sorted(prepared.blocks)
    chosen = prepared.blocks[names[rng.integers(len(names))]]
    variables = prepared.part.variables
    parts = {
        v: rng.standard_normal(np.shape(prepared.values[v])) * (prepared.blocks[v.name] == chosen)
        for v in variables
    }
    length = np.sqrt(sum(np.sum(p**2) for p in parts.values()))
    return chosen, {v: p / length for v, p in parts.items()}


def point_in_ball(prepared, radius, rng):
    parts = {v: rng.standard_normal(np.shape(prepared.values[v])) for v in prepared.part.variables}
    length = np.sqrt(sum(np.sum(p**2) for p in parts.values()))
    share = radius * rng.choice([1.0, rng.random()]) * (1 - 1e-12)
    return {v: prepared.values[v] + share * p / length for v, p in parts.items()}


def with_neutral(prepared, nodes):
    """The nodes as they are bounded, dead elements being 0, and values for them."""
    values, done = dict(prepared.values), {}
    for k, node in enumerate(postorder(*nodes)):
        made = remake(node, tuple(done[o] for o in node.operands)) if node.operands else node
        live = prepared.live.get(node)
        if live is not None and has_neutral(node):
            mask = Input(f"live {k}", "data", node.shape, "bool")
            values[mask] = live
            made = fn.where(mask, made, 0.0)
        elif live is not None and isinstance(node, Input):
            values[node] = np.where(live | np.isfinite(values[node]), values[node], 0.0)
        done[node] = made
    return [done[node] for node in nodes], values


def derivatives(prepared, nodes, at, v, w):
    """Of each node the value, D[v] and D²[v, w]: a graph of D[v] and a complex step along w."""
    nodes, known = with_neutral(prepared, nodes)
    variables = prepared.part.variables
    inputs = {x: build.direction(f"d.{x.name}", x.shape) for x in variables}
    tangents = jvp(nodes, inputs)
    values = {**known, **{inputs[x]: v[x] for x in variables}}
    stepped = {x: at[x] + 1j * STEP * w[x] for x in variables}
    sizes = prepared.part.sizes
    first = evaluate(tangents, {**values, **at}, sizes)
    second = [np.imag(one) / STEP for one in evaluate(tangents, {**values, **stepped}, sizes)]
    # A step through a root of a negative number, in a branch not taken, has no derivative.
    second = [np.where(np.abs(one) < 1 / np.sqrt(STEP), one, np.nan) for one in second]
    return evaluate(nodes, {**values, **at}, sizes), first, second


def check(setting, radius, rng, samples=2):
    """Every node's value and first two derivatives against its jets in all its norms."""
    prepared = prepare(setting)
    centre = propagate(prepared, 0.0)
    ball = propagate(prepared, radius, centre) if radius else centre
    nodes = [n for n in prepared.order if n in prepared.norms and n in prepared.scope.varying]
    nodes = [n for n in nodes if n.dtype == "real"]
    for _ in range(samples):
        at = point_in_ball(prepared, radius, rng)
        (b, v), (c, w) = directions(prepared, rng), directions(prepared, rng)
        found = derivatives(prepared, nodes, at, v, w)
        for node, *arrays in zip(nodes, *found, strict=True):
            for norm in prepared.norms[node]:
                jet = ball.look(node, norm)
                bounds = (jet[0], jet[1][b], jet[2][b, c])
                for k, (array, bound) in enumerate(zip(arrays, bounds, strict=True)):
                    if array.size and np.isfinite(array).all():
                        value = by_definition(np.asarray(array), norm)
                        slack = 1e-9 * (1.0 + value)
                        assert value <= bound + slack, (node, norm, k, value, bound)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(graphs(smooth=True, max_steps=5), st.sampled_from(RADII), st.integers(0, 1000))
def test_no_derivative_of_a_node_is_above_its_jets(example, radius, seed):
    setting = part_of(example)
    check(setting, radius, np.random.default_rng(seed))


def vector(name, size):
    return build.variable(name, (literal(size),))


def setting_for(objective, **values):
    found = {}
    for node in build_inputs(objective):
        found[node] = np.asarray(values[node.name], dtype=np.float64)
    variables = tuple(n for n in found if n.role == "variable")
    return ObjectivePart(objective, variables, found, {})


def build_inputs(root):
    from slomodel.ir.walk import inputs

    return [node for node in inputs(root) if isinstance(node, Input)]


def roots_of(setting, radius):
    prepared = prepare(setting)
    centre = propagate(prepared, 0.0)
    ball = propagate(prepared, radius, centre) if radius else centre
    return ball.roots()


X = build.variable("x", ())

TIGHT = {
    # objective of one number x at c, radius, and sup |f''|, |f'''|, |f''''| over the ball
    "square": (fn.square(X), 1.0, 0.5, (2.0, 0.0, 0.0)),
    "cube": (fn.pow(X, 3.0), 1.0, 0.5, (9.0, 6.0, 0.0)),
    "fourth power": (fn.pow(X, 4.0), 1.0, 0.5, (27.0, 36.0, 24.0)),
    "exp": (fn.exp(X), 1.0, 0.5, (np.exp(1.5),) * 3),
    "reciprocal": (fn.div(1.0, X), 1.0, 0.5, (16.0, 96.0, 768.0)),
    "log": (fn.log(X), 1.0, 0.5, (4.0, 16.0, 96.0)),
    "power": (fn.pow(X, 1.5), 1.0, 0.75, (1.5, 3.0, 18.0)),
    "sine": (fn.sin(X), 0.0, 0.5, (np.sin(0.5), 1.0, np.sin(0.5))),
    "tangent of 0": (fn.tanh(X), 0.0, 0.0, (0.0, 2.0, 0.0)),
    "chain": (fn.exp(fn.mul(2.0, X)), 0.0, 0.5, (4 * np.e, 8 * np.e, 16 * np.e)),
}


@pytest.mark.parametrize("name", TIGHT)
def test_functions_of_one_number_are_tight(name):
    """A bound smaller by 1 % would be below the truth; one larger by 1 % is not given."""
    objective, c, radius, exact = TIGHT[name]
    (jet,) = roots_of(setting_for(objective, x=c), radius)
    for bound, truth in zip(jet[1:], exact, strict=True):
        value = float(bound.reshape(()))
        assert truth * (1 - 1e-14) <= value, "below the truth"
        assert 0.99 * value <= truth + 1e-60, "not tight"


def test_composition_of_two_functions_is_tight_where_all_terms_have_one_sign():
    """exp(x²/2 + x) at 0: all derivatives of both are positive there; f'' = 2, f''' = 4, 10."""
    inner = fn.add(fn.mul(0.5, fn.square(X)), X)
    (jet,) = roots_of(setting_for(fn.exp(inner), x=0.0), 0.0)
    for bound, truth in zip(jet[1:], (2.0, 4.0, 10.0), strict=True):
        assert truth <= float(bound.reshape(())) <= 1.01 * truth


def test_blocks_of_a_product_of_matrices():
    """f = ½‖UV‖² for numbers: H = [[v², 2uv], [2uv, u²]] and f'''' along (u, u, v, v) is 2."""
    u, v = build.variable("u", (literal(1), literal(1))), build.variable("v", (literal(1),) * 2)
    setting = setting_for(
        fn.mul(0.5, build.inner(build.matmul(u, v), build.matmul(u, v))), u=[[2.0]], v=[[3.0]]
    )
    first, second = roots_of(setting, 0.0)
    np.testing.assert_allclose(first[1], [9.0, 12.0], rtol=1e-12)
    np.testing.assert_allclose(second[1], [12.0, 4.0], rtol=1e-12)
    np.testing.assert_allclose(first[2], [[0.0, 6.0], [6.0, 4.0]], rtol=1e-12, atol=1e-60)
    np.testing.assert_allclose(second[3][0], [[0.0, 2.0], [2.0, 0.0]], rtol=1e-12, atol=1e-60)


def test_blocks_are_those_of_names_not_of_places():
    """The same objective with its variables in another order has the same blocks by name."""
    a, b = vector("a", 2), vector("b", 3)
    objective = fn.add(build.inner(a, a), fn.square(fn.square(build.inner(b, b))))
    values = {a: np.array([1.0, 2.0]), b: np.array([1.0, 0.0, 2.0])}
    for variables in ((a, b), (b, a)):
        prepared = prepare(ObjectivePart(objective, variables, values, {}))
        jets = dict(zip(variables, propagate(prepared, 0.0).roots(), strict=True))
        assert jets[a][1][prepared.blocks["a"]] == pytest.approx(2.0, rel=1e-10)
        assert jets[a][1][prepared.blocks["b"]] == 0.0
        assert jets[b][1][prepared.blocks["a"]] == 0.0
        assert jets[b][1][prepared.blocks["b"]] > 100.0
