"""Results depend neither on the order of the rules nor on earlier balls."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from bounds.fuzz import part_of
from bounds.settings import setting
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import Example, graphs

import slomodel
from benchmarks.bounds import OTHERS, models
from benchmarks.cases import cases
from slomodel.bounds import ObjectivePart, bounds, pipeline
from slomodel.bounds.enclosure import DerivativeBounds, Enclosure
from slomodel.bounds.rules.table import BoundRule, always

RADII = (0.0, 0.01, 1.0)
CASES = {
    f"{case.model} {case.size}".strip(): case
    for case in cases(quick=True)
    if case.size != "1000000"
}
SLOW = (
    *("autoencoder", "neural_net", "softplus_net", "linear_autoencoder", "sym_tensor"),
    *("robust_logistic", "deep_linear", "student_t", "tukey_regression", "phase_retrieval"),
    "softplus_toy",
)
NAMES = [
    pytest.param(name, marks=pytest.mark.slow) if name.split()[0] in SLOW else name
    for name in (*CASES, *OTHERS)
]

pytestmark = pytest.mark.filterwarnings("ignore::slomodel.ModelWarning")


def shuffled(rng: np.random.Generator) -> list[BoundRule]:
    order = rng.permutation(len(pipeline.RULES))
    return [pipeline.RULES[k] for k in order]


def compiled(name: str) -> slomodel.Model:
    if name in OTHERS:
        return next(models(name))
    case = CASES[name]
    return slomodel.compile(case.source, data=case.data, dims=case.dims)


def answers(
    make: Callable[[], ObjectivePart], radii: Sequence[float]
) -> dict[float, tuple[float, float]]:
    """Both constants by radius, asked about in this order at one centre."""
    one = make()
    result = {}
    for radius in radii:
        found = bounds(one, radius)
        result[radius] = (found.L1, found.L2)
    return result


def require_one_answer(
    make: Callable[[], ObjectivePart], monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    """Forwards by the rules as they stand, and backwards by the rules shuffled."""
    expected = answers(make, RADII)
    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "RULES", tuple(shuffled(rng)))
        assert answers(make, RADII[::-1]) == expected


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", NAMES)
def test_on_every_model(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = compiled(name)
    center = model.x0()
    rng = np.random.default_rng(sum(name.encode()))
    require_one_answer(lambda: model._part(center), monkeypatch, rng)


@settings(max_examples=3)
@given(data=st.data())
def test_on_random_graphs(data: st.DataObject) -> None:
    example: Example = data.draw(graphs(max_steps=5))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**16)))
    with pytest.MonkeyPatch.context() as monkeypatch:
        require_one_answer(lambda: part_of(example), monkeypatch, rng)


MIXTURE = """data r var mu init -3, s init -3, j init -3, d init -3
maximize log(sum(exp(normal_lpdf(r, mu + k*j, sqrt(exp(2*s) + k*exp(2*d)))) for k in 3))
"""


def test_before_and_after_products_with_the_hessian() -> None:
    """Estimates by the kernel and by the graph see the same, also where exponentials underflow."""
    model = slomodel.compile(MIXTURE, data={"r": 0.01}, backend="numpy")
    x = model.x0()
    before = model.bounds(x, 1e-4)
    model.hvp(x, x)
    after = model.bounds(x, 1e-4)
    assert np.isfinite(before.L1)
    assert pytest.approx(after.L1, rel=1e-9) == before.L1
    assert pytest.approx(after.L2, rel=1e-9) == before.L2


TEXTS = {
    "logistic": (
        "data A[30, 4] var x[4] minimize mean(softplus(A @ x))",
        {"A": np.random.default_rng(0).standard_normal((30, 4))},
    ),
    "fourth powers": (
        "data A[30, 4] var x[4] minimize mean(((A @ x).^2 - 1).^2)",
        {"A": np.random.default_rng(1).standard_normal((30, 4))},
    ),
    "network": (
        "data X[3, 20] var W[4, 3], V[3, 4], v[3] minimize sumsq(v' @ tanh(V @ tanh(W @ X)))",
        {"X": np.random.default_rng(2).standard_normal((3, 20))},
    ),
    "softmax": (
        "data A[6,4] var W[3,4] minimize sum(logsumexp((W @ A')[:, j]) for j in 6) + sumsq(W)",
        {"A": np.random.default_rng(3).standard_normal((6, 4))},
    ),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", TEXTS)
def test_on_sums_networks_and_softmax(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, data = TEXTS[name]
    rng = np.random.default_rng(len(name))
    n = setting_size(text, data)
    centre = list(0.3 * rng.standard_normal(n))
    require_one_answer(lambda: setting(text, centre, **data), monkeypatch, rng)


def setting_size(text: str, data: dict[str, np.ndarray]) -> int:
    return slomodel.compile(text, data=data).n


@pytest.mark.parametrize("large", [False, True])
def test_a_long_rule_is_left_out_whatever_the_order(
    large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where another one is enough; else it is asked."""
    asked = []

    def enough(setting: ObjectivePart, radius: float) -> Enclosure:
        return Enclosure(over=DerivativeBounds((3.0, 3.0), 3.0))

    def long(setting: ObjectivePart, radius: float) -> Enclosure:
        asked.append(radius)
        return Enclosure(over=DerivativeBounds((2.0, 2.0), 2.0))

    rules = BoundRule(enough, suffices=always), BoundRule(long, is_long=lambda setting: large)
    for order in (rules, rules[::-1]):
        monkeypatch.setattr(pipeline, "RULES", order)
        found = bounds(setting("var x minimize exp(x)", [0.0]), 1.0)
        constant = 3.0 if large else 2.0
        assert (constant, constant) == (found.L1, found.L2)
    assert len(asked) == (0 if large else 2)
