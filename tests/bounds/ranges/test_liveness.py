"""Elements read only by a branch not taken are ignored: pairs i >= j of a sum over i < j."""

from itertools import combinations

import numpy as np
import pytest
from bounds.fuzz import cases
from bounds.rules.test_jets import check
from bounds.settings import setting
from marks import every, only

import slomodel
from slomodel import functions as fn
from slomodel.bounds import ObjectivePart
from slomodel.bounds.lipschitz import bounds
from slomodel.bounds.ranges.enclose import boxed, enclose, live_in, live_under
from slomodel.ir import build
from slomodel.ir.dims import literal
from slomodel.ir.expr import Affine, Input
from slomodel.reference import evaluate

pytestmark = pytest.mark.filterwarnings("ignore::slomodel.errors.NonsmoothWarning")

PAIRS = {
    "squares": "let r2[i in n, j in n] = sum((X[i,k] - X[j,k])^2 for k in d)\n"
    "minimize sum(4 * (1/r2[i,j]^6 - 1/r2[i,j]^3) for i in n, j in n if i < j)",
    "lengths": "minimize sum(4 * (norm2(X[i,:]-X[j,:])^(-12) - norm2(X[i,:]-X[j,:])^(-6))"
    " for i in n, j in n if i < j)",
    "where": "let r[i in n, j in n] = sqrt(sum((X[i,k] - X[j,k])^2 for k in d))\n"
    "minimize sum(where(i < j, 4 * (r[i,j]^(-12) - r[i,j]^(-6)), 0) for i in n, j in n)",
    "all but i = j": "let r[i in n, j in n] = norm2(X[i,:] - X[j,:])\n"
    "minimize sum(4 * (r[i,j]^(-12) - r[i,j]^(-6)) for i in n, j in n if i != j) / 2",
    "of data": "data M[n, n] mask\nlet r[i in n, j in n] = norm2(X[i,:] - X[j,:])\n"
    "minimize sum(masked(4 * (r .^ (-12) - r .^ (-6)), M))",
}
COULOMB = "minimize sum(1 / norm2(X[i,:] - X[j,:]) for i in n, j in n if i < j)"
STRESS = (
    "data D[n, n], M[n, n] mask\nlet r[i in n, j in n] = norm2(X[i,:] - X[j,:])\n"
    "minimize sumsq(masked(r - D, M))"
)
POINTS = np.array([[0.0, 0.0, 0.0], [1.2, 0.0, 0.1], [0.1, 1.3, 0.0], [0.0, 0.2, 1.4]])
RADII = only(0.1, [1e-3, 1e-2, 0.1])


def pair_hessian(X, first, second):
    """H (3n, 3n) of Σ_(i<j) φ(s_ij), s the squared distance, from φ' and φ'' of s."""
    n, d = X.shape
    H = np.zeros((n, d, n, d))
    for i in range(n):
        for j in range(i):
            u = X[i] - X[j]
            K = 2.0 * first(u @ u, i, j) * np.eye(d) + 4.0 * second(u @ u, i, j) * np.outer(u, u)
            H[i, :, i] += K
            H[j, :, j] += K
            H[i, :, j] -= K
            H[j, :, i] -= K
    return H.reshape(n * d, n * d)


def lennard_jones(X):
    return pair_hessian(
        X,
        lambda s, i, j: 4.0 * (-6.0 * s**-7 + 3.0 * s**-4),
        lambda s, i, j: 4.0 * (42.0 * s**-8 - 12.0 * s**-5),
    )


def coulomb(X):
    return pair_hessian(X, lambda s, i, j: -0.5 * s**-1.5, lambda s, i, j: 0.75 * s**-2.5)


def stress(X):
    return pair_hessian(
        X,
        lambda s, i, j: 1.0 - DISTANCES[i, j] * s**-0.5,
        lambda s, i, j: 0.5 * DISTANCES[i, j] * s**-1.5,
    )


def upper(n, missing=np.nan):
    """Distances above the diagonal, missing ones elsewhere, and the mask."""
    M = np.triu(np.ones((n, n)), 1)
    full = 1.0 + np.arange(n * n).reshape(n, n) / n**2
    return np.where(M > 0.0, full, missing), M


DISTANCES = np.triu(upper(4)[0], 1).T


def model(text, n=4, d=3, **data):
    return slomodel.compile(f"dim n, d\nvar X[n, d]\n{text}", data=data, dims={"n": n, "d": d})


def in_ball(centre, radius, rng):
    step = rng.standard_normal(centre.shape)
    return centre + step * (radius * (1.0 - 1e-12) / np.linalg.norm(step))


def assert_bounds(found, hessian, centre, radius):
    """Both are finite, and no Hessian nor quotient of two in the ball is larger."""
    rng = np.random.default_rng(0)
    points = [centre, *(in_ball(centre, radius, rng) for _ in range(40))]
    H = [hessian(x) for x in points]
    assert np.isfinite([found.L1, found.L2]).all()
    assert max(np.linalg.norm(one, 2) for one in H) <= found.L1 * (1.0 + 1e-12)
    for (x, A), (y, B) in combinations(zip(points, H, strict=True), 2):
        if (length := np.linalg.norm(x - y)) > 0.0:
            # Of two Hessians the difference is known to some roundings of the larger one.
            off = 1e-13 * (np.abs(A).max() + np.abs(B).max())
            assert np.linalg.norm(A - B, 2) - off <= found.L2 * length * (1.0 + 1e-12)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("radius", RADII)
@pytest.mark.parametrize("spelling", PAIRS)
def test_pairs_of_one_element_take_no_part_in_lennard_jones(spelling, radius):
    data = {"M": upper(4)[1]} if spelling == "of data" else {}
    found = model(PAIRS[spelling], **data).bounds(POINTS.ravel(), radius, effort="quick")
    assert_bounds(found, lennard_jones, POINTS, radius)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(2))
def test_lennard_jones_at_random_points(seed):
    """Of 4 points at least 0.8 apart, a ball in which each keeps at least half of that."""
    rng = np.random.default_rng(seed)
    grid = np.stack(np.meshgrid(*[np.arange(2.0)] * 3), -1).reshape(-1, 3)[:4]
    X = 1.3 * grid + 0.2 * rng.standard_normal((4, 3))
    found = model(PAIRS["lengths"]).bounds(X.ravel(), 0.05, effort="quick")
    assert_bounds(found, lennard_jones, X, 0.05)


@pytest.mark.parametrize("radius", RADII)
def test_coulomb(radius):
    assert_bounds(model(COULOMB).bounds(POINTS.ravel(), radius), coulomb, POINTS, radius)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("missing", [np.nan, np.inf, 1.0])
@pytest.mark.parametrize("radius", RADII)
def test_distances_that_are_missing_take_no_part(radius, missing):
    D, M = upper(4, missing)
    found = model(STRESS, D=D, M=M).bounds(POINTS.ravel(), radius)
    assert_bounds(found, stress, POINTS, radius)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("text", every(3, [*PAIRS.values(), COULOMB, STRESS]))
def test_a_pair_that_may_meet_has_no_bound(text):
    """Points 0 and 1 are moved to a distance of 0.2; in a ball of 0.15 they can meet."""
    X = POINTS.copy()
    X[1] = X[0] + [0.2, 0.0, 0.0]
    D, M = upper(4)
    data = {name: array for name, array in (("D", D), ("M", M)) if f"{name}[n, n]" in text}
    found = model(text, **data).bounds(X.ravel(), 0.15)
    assert found.L1 == found.L2 == np.inf
    assert found.reason


@pytest.mark.parametrize("n", [5, 9])
def test_logs_of_differences_of_later_numbers(n):
    text = "dim n\nvar x[n]\nminimize -sum(log(x[i] - x[j]) for i in n, j in n if i > j)"
    found = slomodel.compile(text, dims={"n": n}).bounds(np.arange(n, dtype=float), 0.1)

    def hessian(x):
        W = (x[:, None] - x[None, :] + np.eye(n)) ** -2.0 - np.eye(n)
        return np.diag(W.sum(1)) - W

    assert_bounds(found, hessian, np.arange(n, dtype=float), 0.1)


def test_a_factor_of_zero_is_not_a_mask():
    """0 times infinity is no number: such pairs count."""
    text = PAIRS["of data"].replace("masked(4 * (r .^ (-12) - r .^ (-6)), M)", "M .* r .^ (-6)")
    found = model(text, M=upper(4)[1]).bounds(POINTS.ravel(), 1e-3)
    assert not np.isfinite(found.L1)


def test_what_no_gather_takes_is_dead():
    text = (
        "dim n\nvar x[n]\nlet D[i in n, j in n] = 1 / (x[i] - x[j])\n"
        "minimize D[1, 0] + sum(D[2:, 0])"
    )
    found = slomodel.compile(text, dims={"n": 4}).bounds([0.0, 1.0, 2.0, 3.0], 0.1)
    assert np.isfinite([found.L1, found.L2]).all()
    assert found.L1 >= 2.0


X4, M44 = build.variable("x", (literal(4),)), Input("m", "data", (literal(4), literal(4)), "bool")
PLACES = np.array([0.3, -0.8, 1.7, 2.9])
MASK = np.tril(np.ones((4, 4)), -1)


def differences():
    whole = (literal(4), literal(4))
    rows, columns = (build.broadcast(X4, (axis,), whole) for axis in (0, 1))
    return fn.sub(rows, columns)


def masked_setting(element, mask=MASK):
    chosen = fn.where(M44, element(differences()), 0.0)
    objective = build.sum_over(chosen, (0, 1))
    return ObjectivePart(objective, (X4,), {X4: PLACES, M44: mask}, {})


ELEMENTS = {
    "reciprocal": lambda u: fn.div(1.0, u),
    "length": lambda u: fn.square(fn.sub(fn.abs(u), 0.3)),
    "power": lambda u: fn.pow(fn.square(u), -1.5),
    "product": lambda u: fn.mul(fn.div(1.0, u), fn.sin(u)),
    "log": lambda u: fn.log(fn.square(u)),
    "exp": lambda u: fn.exp(fn.div(1.0, fn.square(u))),
    "choice": lambda u: fn.maximum(fn.div(1.0, fn.square(u)), 0.01),
    "squared sum": lambda u: fn.square(fn.add(fn.div(1.0, u), u)),
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("radius", only(0.3, [0.0, 1e-3, 0.1, 0.3]))
@pytest.mark.parametrize("name", ELEMENTS)
def test_no_bound_is_passed(name, radius):
    setting = masked_setting(ELEMENTS[name])
    found = bounds(setting, radius)
    assert np.isfinite([found.L1, found.L2]).all()
    for case in cases(setting, np.random.default_rng(1), (radius,)):
        for which in ("L1", "L2"):
            assert not case.violates(which), (case.radius, case.bound, case.witnesses)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("radius", [0.0, 0.1])
@pytest.mark.parametrize("name", ELEMENTS)
def test_jets_of_nodes_with_dead_elements(name, radius):
    check(masked_setting(ELEMENTS[name]), radius, np.random.default_rng(2))


def test_where_nothing_is_live_all_is_zero():
    found = bounds(masked_setting(ELEMENTS["reciprocal"], np.zeros((4, 4))), 0.1)
    assert found.L1 == found.L2 == 0.0


def graph(k):
    """A scalar over a matrix of reciprocals through a node of each kind, after a mask or gather."""
    u = fn.div(1.0, differences())
    later = Affine(literal(1), (1,)), Affine(literal(0), (0,))
    below = build.gather(u, later, (literal(3),))
    masked = fn.where(M44, u, 0.0)
    made = (
        masked,
        below,
        build.reshape(masked, (literal(16),)),
        build.reshape(below, (literal(1), literal(3))),
        build.extreme(fn.where(M44, u, -5.0), "max", (1,)),
        build.scatter(below, (Affine(literal(0), (1,)),), (literal(4),)),
        build.scan(fn.where(M44, u, 0.5), fn.where(M44, fn.exp(u), 0.5), 1),
        build.transpose(fn.where(M44, u, 1.0), (1, 0)),
    )[k]
    return build.sum_over(fn.square(made), tuple(range(made.rank)))


@pytest.mark.parametrize("k", range(8))
def test_values_of_dead_elements_do_not_change_the_roots(k):
    """NaN put on each dead element of each node, one node at a time, leaves the root as it is."""
    objective = graph(k)
    values = {X4: PLACES, M44: MASK}
    live = live_under([objective], boxed(values), {})
    assert live
    (plain,) = evaluate([objective], values)
    assert np.isfinite(plain)
    found = enclose([objective], boxed(values), {}, live=live)[objective]
    assert found.lo <= plain <= found.hi
    assert found.hi - found.lo <= 1e-9 * (1.0 + abs(plain))
    for node, own in live.items():
        if node.dtype != "real" or isinstance(node, Input):
            continue
        assert own.any()
        assert not own.all()
        (array,) = evaluate([node], values)
        spoiled = np.where(own, array, np.nan)
        assert poisoned(objective, node, spoiled, values) == plain
        one = np.argwhere(own)[0]
        spoiled[tuple(one)] = np.nan
        assert np.isnan(poisoned(objective, node, spoiled, values))


def poisoned(objective, node, array, values):
    from slomodel.ir.walk import substitute

    stand_in = build.data("spoiled", node.shape)
    (made,) = substitute((objective,), {node: stand_in})
    (found,) = evaluate([made], {**values, stand_in: array})
    return found


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_missing_data_that_the_mask_shows_have_no_bound(value: float) -> None:
    text = "dim n data M[n], K[n] mask var x minimize sumsq(masked(x*x - M, K))"
    M = np.array([1.0, value, 2.0])
    hidden = slomodel.compile(text, data={"M": M, "K": [1, 0, 1]}).bounds([0.5], 0.1)
    shown = slomodel.compile(text, data={"M": M, "K": [1, 1, 0]}).bounds([0.5], 0.1)
    assert np.isfinite(hidden.L1)
    assert np.isinf(shown.L1)
    assert "`M` has NaN or inf" in shown.reason


def test_a_single_element_that_is_not_read() -> None:
    text = "data c var x[2] let u = x + 1 minimize where(c > 0, sqrt(u[0]), x[1] ^ 2) + x[0] ^ 2"
    assert live_in(setting(text, [-3.0, 1.0], c=0.0))
