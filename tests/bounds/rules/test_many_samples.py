"""Networks with many samples: groups of them, and clusters of elements."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from bounds.fuzz import cases
from bounds.rules.test_layered_networks import NETS, asked, values_of
from bounds.settings import setting
from bounds.test_sound import alone

from slomodel.bounds.arithmetic.interval import Interval, point
from slomodel.bounds.norms.loewner import Rows
from slomodel.bounds.norms.power_sums import Moments, largest_eigenvalues, power_sums, roughly
from slomodel.bounds.rules.layered_networks import layered_networks
from slomodel.bounds.rules.networks import jets as network_jets
from slomodel.bounds.rules.networks import values as network_values
from slomodel.bounds.rules.networks.jets import NetworkJets
from slomodel.bounds.rules.networks.samples import groups_of
from slomodel.bounds.rules.networks.values import over_cell

pytestmark = pytest.mark.filterwarnings("ignore::slomodel.ModelWarning")
CLOSE = 1e-9


@pytest.fixture
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is done for many samples is done for three."""
    for name, value in (("_MANY_SAMPLES", 2), ("_FEW_LAYERS", 1)):
        monkeypatch.setattr(network_values, name, value)
    for name, value in (("_FINE_HALVINGS", 1), ("_HALVINGS", 0)):
        monkeypatch.setattr(network_jets, name, value)


def test_sums_of_powers_in_groups_of_one_weight_are_those_of_all_rows() -> None:
    """Two rounds of the circle with weights 1 and 2: 3/2 m, and 9/8 m for cos⁴."""
    m = 7
    angles = np.pi * np.arange(m) / m
    rows = np.tile(np.stack([np.cos(angles), np.sin(angles)], 1), (2, 1))
    order = np.random.default_rng(0).permutation(2 * m)
    order = order[np.argsort(order >= m, kind="stable")]
    moments = Moments(Rows.of(point(rows)), (order, np.array([0, m])))
    for q, exact in ((2, 1.5 * m), (3, 3 * m * math.sqrt(3.0) / 4.0), (4, 9 * m / 8)):
        (found,) = power_sums(moments, np.array([[1.0, 2.0]]), q)
        assert exact * (1.0 - 1e-13) <= found <= exact * (1.0 + CLOSE)
        (about,) = power_sums(moments, np.array([[1.0, 2.0]]), q, roughly)
        assert about == pytest.approx(exact, rel=0.2)


@pytest.mark.parametrize("samples", [1, 3000])
def test_equal_samples_in_groups_are_as_exact_as_one(
    samples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """f = Σ (w2 sin(w1 x))²/2 at w1 = 0: ‖H‖ = N (w2 x)², D³f = 6 N w2 x² v1² v2."""
    one = setting(
        f"data X[1,{samples}] var W[1,1], V[1,1] minimize sumsq(V @ sin(W @ X)) / 2",
        [0.0, 3.0],
        X=np.full((1, samples), 2.0),
    )
    monkeypatch.setattr(network_values, "_FEW_LAYERS", 1)
    values = values_of(one)
    assert values.is_large == (samples > 1)
    for rho in (0.0, 1e-12):
        second, third = NetworkJets(values, over_cell(values, np.full(2, rho))).orders(3)
        assert 36.0 * samples <= second <= 36.0 * samples * (1.0 + 1e-7)
        exact = 72.0 * 2.0 / (3.0 * math.sqrt(3.0)) * samples
        assert exact <= third <= exact * (1.0 + 1e-7)


def test_ranges_of_many_elements_hold_each_and_are_near_those_of_a_few() -> None:
    """tanh, whose turns are known, and a loss with two values of its data by clusters."""
    rng = np.random.default_rng(2)
    N, few = 10_000, 200
    one = setting(
        f"data X[2,{N}], y[{N}] var W[2,2], v[2] minimize sumsq(y - tanh(v' @ tanh(W @ X)))",
        list(rng.standard_normal(6)),
        X=rng.standard_normal((2, N)),
        y=np.sign(rng.standard_normal(N)),
    )
    values = values_of(one)

    def first(a: Interval) -> Interval:
        return a.each(lambda array: array[:, :few])

    functions = (*values.functions, *values.loss.singles)
    for function, level in zip(functions, values.levels, strict=True):
        u = level.u.widened(0.1 + 0.1 * rng.random(level.u.shape))
        ranges, _ = function.over(u)
        for share in (0.0, 0.3, 1.0):
            at, _ = function.over(point(u.lo + share * (u.hi - u.lo)))
            for found, each in zip(ranges, at, strict=True):
                assert np.all(each.mignitude <= found.magnitude)
        data = {one: first(a) for one, a in function.data.items()}
        part = replace(function, data=data, weight=first(function.weight))
        for found, each in zip(ranges, part.over(first(u))[0], strict=True):
            assert np.sum(first(found).magnitude) < 1.05 * np.sum(each.magnitude)


@pytest.mark.parametrize("n", [1, 2, 9])
def test_the_largest_eigenvalues_of_sums_of_squares(n: int) -> None:
    """Of c c' for vectors c, with squares of their lengths, of any size; NaN gives inf."""
    c = np.random.default_rng(n).standard_normal((5, n)) * 10.0 ** np.arange(-40, 60, 20)[:, None]
    exact = np.sum(c * c, axis=1)
    found = largest_eigenvalues(c[:, :, None] * c[:, None, :])
    assert np.all((exact * (1.0 - 1e-14) <= found) & (found <= exact * (1.0 + CLOSE)))
    assert largest_eigenvalues(np.full((1, n, n), np.nan))[0] == np.inf
    assert largest_eigenvalues(np.zeros((1, n, n)))[0] == 0.0


def test_joined_groups_have_the_sums_of_their_samples() -> None:
    rows = Rows.of(point(np.random.default_rng(3).standard_normal((12, 3))))
    order = np.random.default_rng(4).permutation(12)
    finer = Moments(rows, (order, np.array([0, 2, 5, 9])))
    joined, straight = (Moments(rows, (order, np.array([0, 5])), one) for one in (finer, None))
    c = np.array([[1.0, 2.0], [3.0, 0.5]])
    for q in (2, 3, 4):
        both = [power_sums(one, c, q) for one in (joined, straight)]
        assert both[0] == pytest.approx(both[1], rel=1e-12)


def test_groups_hold_each_sample_once() -> None:
    values = values_of(asked("two hidden"))
    order, starts = groups_of(over_cell(values, np.full(3, 0.1)), 1)
    assert sorted(order) == [0, 1, 2, 3]
    assert list(starts) == [0, 2]


@pytest.mark.sampled(2)
@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize("name", NETS)
def test_nothing_attained_is_above_a_claim_of_groups(name: str) -> None:
    one = asked(name)
    for case in cases(one, np.random.default_rng(1), (0.01, 1.0), alone(layered_networks)):
        for which in ("L1", "L2"):
            assert not case.violates(which), (case.radius, case.bound, case.witnesses)
            assert case.ratio(which) > 0.1 or case.radius == 1.0
