"""Layered networks: recognition, exact derivatives at the centre, tight cases, sound bounds."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from bounds.fuzz import cases
from bounds.objective_graph import ObjectiveGraph
from bounds.settings import claimed, setting
from bounds.test_sound import alone

import slomodel
from slomodel.bounds import ObjectivePart
from slomodel.bounds.arithmetic.interval import point
from slomodel.bounds.norms.loewner import Rows
from slomodel.bounds.norms.power_sums import Moments, power_sums
from slomodel.bounds.rules import layered_networks as strategy
from slomodel.bounds.rules.layered_networks import _cells, layered_networks
from slomodel.bounds.rules.networks.centre_derivatives import (
    network_hessian_norm,
    network_third_norm,
)
from slomodel.bounds.rules.networks.jets import NetworkJets
from slomodel.bounds.rules.networks.sample_polynomials import partitions
from slomodel.bounds.rules.networks.samples import by_sample
from slomodel.bounds.rules.networks.values import Values, network_values, over_cell
from slomodel.bounds.structure.networks import network

pytestmark = pytest.mark.filterwarnings("ignore::slomodel.ModelWarning")
CLOSE = 1e-9
NETS = {
    "autoencoder": "data X[3,4] var W[2,3], V[3,2] minimize sumsq(tanh(V @ tanh(W @ X)) - X) / 4",
    "one output": "data X[3,4] var W[2,3], b[2], v[2], c "
    "minimize mean(softplus(-(v' @ softplus(W @ X + b[:, None]) + c))) + 0.1 * sumsq(W)",
    "two hidden": "data X[3,4] var A[2,3], B[2,2], b[2], v[2] "
    "minimize sumsq(v' @ tanh(B @ tanh(A @ X) + b[:, None]) - 1)",
    "classes": "data X[3,4] var W[2,3], V[3,2], c[3] let O = V @ tanh(W @ X) + c[:, None] "
    "minimize mean(logsumexp(O, axis=0)) - sum(X .* O) / 4",
    "two classes": "data X[3,4] var W[2,3], v[2], c let o = v' @ tanh(W @ X) + c "
    "minimize mean(softplus(o) - X[0, :] .* o)",
}
SIZES = {"autoencoder": 12, "one output": 11, "two hidden": 14, "classes": 15, "two classes": 9}


def asked(name: str, scale: float = 0.7) -> ObjectivePart:
    rng = np.random.default_rng(3)
    start = list(scale * rng.standard_normal(SIZES[name]))
    return setting(NETS[name], start, X=rng.standard_normal((3, 4)))


def values_of(one: ObjectivePart) -> Values:
    net = network(one.objective, one.variables)
    assert net is not None
    return network_values(one, net)


def test_layers_with_their_biases_from_the_first_to_the_last() -> None:
    one = asked("one output")
    net = network(one.objective, one.variables)
    assert net is not None
    assert [layer.weight.name for layer in net.layers] == ["W", "v"]
    assert [layer.bias.name if layer.bias else None for layer in net.layers] == ["b", "c"]
    assert len(net.rest) == 1


@pytest.mark.parametrize(
    "text",
    [
        "data X[3,4] var W[2,3] minimize sumsq(tanh(W @ X))",
        "data X[3,3] var W[3,3] minimize sumsq(W @ tanh(W @ X))",
        "data X[4,4] var W[3,4], V[3,4] minimize sumsq(V @ tanh(W @ X)')",
    ],
)
def test_one_layer_a_shared_weight_and_a_sum_over_samples_are_not_networks(text: str) -> None:
    rows, columns = (int(size) for size in text[7:10].split(","))
    one = setting(
        text, [0.1] * (24 if "V" in text else 9 if "3,3" in text else 6), X=np.ones((rows, columns))
    )
    assert network(one.objective, one.variables) is None


@pytest.mark.parametrize(
    "loss",
    [
        "sum(logsumexp(O[:, i]) - X[:, i]' @ O[:, i] for i in 4)",
        "-sum(X .* log(softmax(O, axis=0)))",
        "sum(logsumexp(O, axis=0)) - sum(X .* O)",
        "sum(logsumexp(O', axis=1)) - trace(X' @ O)",
    ],
)
def test_the_loss_of_classes_is_recognised_however_it_is_written(loss: str) -> None:
    """Columns of X that sum to 1 make the four the same."""
    text = f"data X[3,4] var W[2,3], V[3,2] let O = V @ tanh(W @ X) minimize {loss}"
    x = np.random.default_rng(4).standard_normal(12)
    one = setting(text, list(x), X=np.arange(12.0).reshape(3, 4) / [12.0, 15.0, 18.0, 21.0])
    found = claimed(layered_networks, one, 0.1)
    assert found is not None
    norm = np.linalg.norm([ObjectiveGraph(one).hvp(x, e) for e in np.eye(12)], 2)
    assert norm < found.L1 < 2.0 * norm
    assert 20.0 * norm > found.L2


@pytest.mark.parametrize("summed", ["logsumexp(O)", "sum(logsumexp(O, axis=1))"])
def test_log_sums_over_samples_are_not_networks(summed: str) -> None:
    text = f"data X[3,4] var W[2,3], V[3,2] let O = V @ tanh(W @ X) minimize {summed}"
    one = setting(text, [0.1] * 12, X=np.ones((3, 4)))
    assert network(one.objective, one.variables) is None


@pytest.mark.parametrize("name", ["autoencoder", "two hidden", "classes"])
def test_the_derivatives_at_the_centre(name: str) -> None:
    one = asked(name)
    graph, values = ObjectiveGraph(one), values_of(one)
    H = np.array([graph.hvp(graph.centre, e) for e in np.eye(one.n)])
    norm = float(np.linalg.norm(H, 2))
    assert norm * (1.0 - 1e-12) <= network_hessian_norm(values) <= norm * (1.0 + 1e-6)
    largest = 0.0
    for v in np.random.default_rng(0).standard_normal((8, one.n)):
        for _ in range(60):
            turned = graph.third(graph.centre, v / np.linalg.norm(v))
            v, largest = turned, max(largest, float(np.linalg.norm(turned)))
    assert largest <= network_third_norm(values) <= 1.3 * largest


def test_the_partitions_of_four_slots() -> None:
    assert partitions(4) == {(1, 1, 1, 1): 1, (1, 1, 2): 6, (1, 3): 4, (2, 2): 3, (4,): 1}


def test_one_path_is_exact() -> None:
    """f = (w2 sin(w1 x))²/2 at w1 = 0: o' = w2 x v1, o'' = 2 x v1 v2, so ‖H‖ = (w2 x)² and D³f =
    3 o' o'' = 6 w2 x² v1² v2, whose largest value is at v1² = 2/3.
    """
    one = setting(
        "data X[1,1] var W[1,1], V[1,1] minimize sumsq(V @ sin(W @ X)) / 2",
        [0.0, 3.0],
        X=np.array([[2.0]]),
    )
    values = values_of(one)
    second, third, _ = NetworkJets(values, over_cell(values, np.zeros(2))).orders(4)
    assert 36.0 <= second <= 36.0 * (1.0 + CLOSE)
    exact = 72.0 * 2.0 / (3.0 * math.sqrt(3.0))
    assert exact <= third <= exact * (1.0 + CLOSE)


def test_a_fourth_derivative_is_exact() -> None:
    """f = o²/2, o = w2 sinh(w1 x), at w1 = 0: D²o = 2 x v1 v2 and D³o = w2 x³ v1³, so that D⁴f is
    3 (D²o)² + 4 Do D³o = 12 x² v1² v2² + 4 w2² x⁴ v1⁴: for w2 = 1 largest at v2 = 0.
    """
    text = "data X[1,1] var W[1,1], V[1,1] minimize sumsq(V @ sinh(W @ X)) / 2"
    for w2, exact in ((1.0, 324.0), (0.0, 27.0)):
        values = values_of(setting(text, [0.0, w2], X=np.array([[3.0]])))
        *_, fourth = NetworkJets(values, over_cell(values, np.zeros(2))).orders(4)
        assert 0.99 * fourth < exact <= fourth


def test_what_moves_over_a_cell() -> None:
    """z = sin(w1 x) for |w1| <= ρ: by sample |x| ρ and at most sin(|x| ρ)."""
    one = setting(
        "data X[1,2] var W[1,1], V[1,1] minimize sumsq(V @ sin(W @ X)) / 2",
        [0.0, 3.0],
        X=np.array([[2.0, 0.5]]),
    )
    cell = over_cell(values_of(one), np.array([0.5, 0.0]))
    exact = np.sin([1.0, 0.25])
    for found in (cell.moved[1], cell.lengths[1]):
        assert np.all(exact <= found)
        assert np.all(found <= exact * (1.0 + CLOSE))


@pytest.mark.parametrize(("rho", "x"), [(1e-200, 1e-150), (1e-320, 1e-10), (5e-324, 5e-324)])
def test_products_of_small_radii_and_small_features_are_not_0(rho: float, x: float) -> None:
    """u = w x moves by ρ x and z = sinh(u) by no less, however small both are; o = v z by ρ z."""
    one = setting(
        "data X[1,1] var W[1,1], V[1,1] minimize sumsq(V @ sinh(W @ X)) / 2",
        [1e-170, 1e-170],
        X=np.array([[x]]),
    )
    values = values_of(one)
    cell = over_cell(values, np.full(2, rho))
    assert Fraction(float(cell.moved[1][0])) >= Fraction(rho) * Fraction(x)
    weight = by_sample(values, cell).weights[0, 0, 0]
    assert Fraction(float(weight)) >= Fraction(1e-170) + Fraction(rho)


@pytest.mark.parametrize("m", [5, 9])
def test_sums_of_powers_of_rows_round_the_circle(m: int) -> None:
    """Σ cos²(t - t_k) = m/2, Σ cos⁴ = 3m/8; one row of length l gives l^q."""
    angles = np.pi * np.arange(m) / m
    rows = Rows.of(point(np.stack([np.cos(angles), np.sin(angles)], 1)))
    for q, exact in ((2, m / 2), (3, m * math.sqrt(3.0) / 4.0), (4, 3 * m / 8)):
        (found,) = power_sums(Moments(rows), np.ones((1, m)), q)
        assert exact * (1.0 - 1e-13) <= found <= exact * (1.0 + CLOSE)
        (found,) = power_sums(Moments(Rows.of(point(np.array([[3.0, 4.0]])))), np.array([[2.0]]), q)
        assert 2.0 * 5.0**q <= found <= 2.0 * 5.0**q * (1.0 + CLOSE)


@pytest.mark.parametrize("count", [2, 3, 4])
def test_the_cells_cover_every_division_of_the_radius(count: int) -> None:
    corners = np.array(_cells(count, 2.0))
    for share in np.abs(np.random.default_rng(0).standard_normal((500, count))):
        rho = 2.0 * share / np.linalg.norm(share)
        assert np.any(np.all(rho <= corners, axis=1))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", NETS)
def test_nothing_attained_is_above_a_claim(name: str) -> None:
    one = asked(name)
    for case in cases(one, np.random.default_rng(1), (0.0, 0.01, 1.0), alone(layered_networks)):
        for which in ("L1", "L2"):
            assert not case.violates(which), (case.radius, case.bound, case.witnesses)
            assert case.ratio(which) > 0.3 or case.radius == 1.0


def test_a_deep_network_of_many_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few cells and orders, as in large ones: H(c) as it is, and nothing attained above a claim."""
    monkeypatch.setattr(strategy, "_MANY_ELEMENTS", 1)
    one = asked("two hidden")
    for case in cases(
        one, np.random.default_rng(1), (0.0, 1e-5, 0.1, 1.0), alone(layered_networks)
    ):
        for which in ("L1", "L2"):
            assert not case.violates(which), (case.radius, case.bound, case.witnesses)
        assert case.radius > 1e-5 or case.ratio("L1") > 0.99


@pytest.mark.parametrize("units", [40, 60])
def test_weight_decay_of_many_unknowns_adds_its_constant(units: int) -> None:
    """241 and 361 weights, and 421 and more, for which parts have sparse rows."""
    rng = np.random.default_rng(5)
    text = f"data X[6,8], y[8] var W[{units},6], v[{units}] minimize sumsq(v' @ tanh(W @ X) - y)"
    x, X, y = 0.3 * rng.standard_normal(7 * units), rng.standard_normal((6, 8)), np.zeros(8)
    alone_ = claimed(layered_networks, setting(text, list(x), X=X, y=y), 0.1)
    found = claimed(layered_networks, setting(text + " + 2 * sumsq(W)", list(x), X=X, y=y), 0.1)
    assert alone_ is not None
    assert found is not None
    assert alone_.L1 <= found.L1 <= (alone_.L1 + 4.0) * (1.0 + 1e-5)
    assert alone_.L2 <= found.L2 <= alone_.L2 * (1.0 + CLOSE)


def test_the_loss_moves_however_small_the_radius_is() -> None:
    """‖g'‖ = 2 w v x² from 0 on: of the order of r², which underflows."""
    text = "data X[1,1] var W[1,1], V[1,1] minimize sumsq(V @ (W @ X))"
    one = setting(text, [0.0, 0.0], X=np.array([[1e150]]))
    values = values_of(one)
    for radius in (1e-170, 1e-158, 1e-100):
        jets = NetworkJets(values, over_cell(values, np.full(2, radius)))
        assert jets.slope >= 2.0 * (radius * 1e75) ** 2 > 0.0


def test_a_network_without_samples_is_its_penalties() -> None:
    model = slomodel.compile(
        """dim N, n, h
        data A[N, n]
        var W[n, h], v[h]
        minimize sum((tanh(A @ W) @ v).^2) + sumsq(W) + sumsq(v)^2""",
        data={"A": np.zeros((0, 3))},
        dims={"h": 2},
        backend="numpy",
    )
    # The Hessian of |v|^4 is 4|v|^2 I + 8 v v', at most 12 |v|^2.
    largest = 12 * (np.sqrt(2.0) + 0.5) ** 2
    assert largest <= model.bounds(np.ones(8), 0.5).L1 < 1.01 * largest
