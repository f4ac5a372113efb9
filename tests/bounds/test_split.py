"""Sums of parts of unlike kinds: the parts, and bounds no larger than their sum."""

import numpy as np
import pytest
from bounds.fuzz import part_of
from bounds.settings import setting
from hypothesis import given, settings
from hypothesis import strategies as st
from marks import every
from strategies import Example, graphs

import slomodel
from slomodel.bounds import ObjectivePart, bounds
from slomodel.bounds.enclosure import DerivativeBounds, Enclosure, add_by_variables, both_ends
from slomodel.bounds.split import split
from slomodel.ir import build
from slomodel.reference import evaluate

RNG = np.random.default_rng(5)
X, Y = RNG.standard_normal((3, 12)), RNG.standard_normal((1, 12))
DATA = {"X": X, "y": Y[0], "M": RNG.standard_normal((4, 3))}
SHAPES = {"X": "X[p, N]", "y": "y[N]", "M": "M[4, p]"}
# The variables and the terms; each has another best rule.
SUMS = {
    "two networks": (
        "A[2, p], a[2], B[3, p], b[3]",
        ("sumsq(a' @ tanh(A @ X) - y) / N", "sumsq(b' @ softplus(B @ X) - y) / N"),
    ),
    "two heads of one layer": (
        "A[2, p], a[2], b[2]",
        ("sumsq(a' @ tanh(A @ X) - y) / N", "sumsq(b' @ tanh(A @ X) + y) / N"),
    ),
    "a network beside a chain": (
        "A[2, p], a[2], B[2, p], C[p, 2]",
        ("sumsq(a' @ tanh(A @ X) - y) / N", "sumsq(C @ B @ X - X) / N"),
    ),
    "elements beside log-sum-exps": (
        "W[3, p], x[p]",
        ("sum(logsumexp((W @ X)[:, j]) for j in N) / N", "mean(softplus(y .* (x' @ X)))"),
    ),
    "elements of the variables of log-sum-exps": (
        "W[3, p]",
        ("sum(logsumexp((W @ X)[:, j]) for j in N) / N", "sum(sqrt(1 + W.^2))"),
    ),
    "logistic regression beside a factorization": (
        "U[4, 2], V[2, p], x[p]",
        ("sumsq(U @ V - M)", "mean(softplus(y .* (x' @ X)))"),
    ),
    "a network, log-sum-exps and elements": (
        "A[2, p], a[2], W[3, p]",
        (
            "sumsq(a' @ tanh(A @ X) - y) / N",
            "sum(logsumexp((W @ X)[:, j]) for j in N) / N",
            "sum(exp(W / 2))",
        ),
    ),
}
RADII = (0.0, 0.05, 1.0)

# A term alone leaves variables of the others unused.
pytestmark = pytest.mark.filterwarnings("ignore::slomodel.ModelWarning")


def compiled(name: str, terms: tuple[str, ...]) -> slomodel.Model:
    used = {key: value for key, value in DATA.items() if key in " ".join(terms)}
    head = f"data {', '.join(SHAPES[key] for key in used)}" if used else ""
    text = f"dim N, p {head} var {SUMS[name][0]} minimize {' + '.join(terms)}"
    return slomodel.compile(text, data=used, dims={"p": 3, "N": 12})


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", every(2, SUMS))
def test_no_more_than_the_parts_together_and_true(name: str) -> None:
    """Of each term alone, over its own ball; and no estimate of the sum is above the bound."""
    terms = SUMS[name][1]
    whole = compiled(name, terms)
    centre = 0.4 * np.random.default_rng(len(name)).standard_normal(whole.n)
    parts = [compiled(name, (term,)) for term in terms]
    found = whole.bounds(centre, RADII[0])
    alone = [part.bounds(centre, RADII[0]) for part in parts]
    for radius in RADII:
        one, others = found.at(radius), [part.at(radius) for part in alone]
        assert sum(other.L1 for other in others) * (1.0 + 1e-9) >= one.L1
        assert sum(other.L2 for other in others) * (1.0 + 1e-9) >= one.L2
        seen = whole.sample_bounds(centre, radius, samples=20)
        assert seen.L1 * (1.0 - 1e-9) <= one.L1
        assert seen.L2 * (1.0 - 1e-5) <= one.L2


@pytest.mark.parametrize("name", SUMS)
def test_each_term_is_a_part(name: str) -> None:
    terms = SUMS[name][1]
    model = compiled(name, terms)
    found = split(model._part(np.zeros(model.n)))
    assert len(found) == len(terms)


def test_a_part_reads_its_own_variables_alone() -> None:
    one = setting("var u[4], w[3] minimize exp(prod(u)) + sum(exp(w)) + 3 * u[0]", [0.1] * 7)
    names = [{variable.name for variable in part.variables} for part in split(one)]
    assert sorted(map(sorted, names)) == [["u"], ["w"]]


@pytest.mark.parametrize(
    "text",
    [
        "var x[3] minimize sum(exp(x)) + sum(cos(x)) + sumsq(x)",
        "var x[3] minimize sumsq(x)",
        "var x[3] minimize sum(x)",
        "var x[3] minimize logsumexp(x) + sumsq(x)",
        "data X[3, 4] var W[2, 3], v[2] minimize sumsq(v' @ tanh(W @ X)) + sumsq(W) + sumsq(v)",
    ],
)
def test_what_is_of_one_kind_stays_whole(text: str) -> None:
    data = {"X": np.ones((3, 4))} if "data" in text else {}
    n = slomodel.compile(text, data=data).n
    one = setting(text, [0.1] * n, **data)
    assert len(split(one)) == 1


def test_parts_without_common_variables_do_not_add() -> None:
    """H is block diagonal, so its norm is the larger of both."""
    text = "var u[4], x[4] minimize exp(prod(u)) + sqrt(2 + prod(x))"
    one = setting(text, [0.9, 0.8, 1.1, -0.7, 0.4, 1.2, -0.6, 0.5])
    parts = split(one)
    assert len(parts) == 2
    alone = [bounds(part, 0.1) for part in parts]
    found = bounds(one, 0.1)
    assert max(part.L1 for part in alone) * (1.0 + 1e-9) >= found.L1
    assert max(part.L2 for part in alone) * (1.0 + 1e-9) >= found.L2


def test_sums_by_variables_against_eigenvalues() -> None:
    """Random quadratic forms of overlapping variables: λ_max of the sum is below the bound."""
    names = [build.variable(name, ()) for name in "abcd"]
    rng = np.random.default_rng(3)
    for _ in range(50):
        H, pieces = np.zeros((4, 4)), []
        for _ in range(3):
            own = np.flatnonzero(rng.random(4) < 0.6)
            if not len(own):
                continue
            B = rng.standard_normal((len(own), len(own)))
            H[np.ix_(own, own)] += B + B.T
            values = np.linalg.eigvalsh(B + B.T)
            over = DerivativeBounds((values[-1], -values[0]), 0.0, both_ends(0.0))
            pieces.append((Enclosure(over=over), [names[k] for k in own]))
        upper, lower = add_by_variables(pieces, names).over.second
        found = np.linalg.eigvalsh(H)
        assert found[-1] <= upper + 1e-12
        assert -found[0] <= lower + 1e-12


@settings(max_examples=60)
@given(data=st.data())
def test_parts_add_up_to_the_objective(data: st.DataObject) -> None:
    """On random graphs: what is left is affine, so its value at a midpoint is the mean."""
    example: Example = data.draw(graphs(smooth=True, max_steps=8))
    one = part_of(example)
    parts = split(one)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**16)))
    step = {v: 1e-2 * rng.standard_normal(np.shape(one.values[v])) for v in one.variables}
    points = [{v: one.values[v] + t * step[v] for v in one.variables} for t in (-1.0, 0.0, 1.0)]

    def value(part: ObjectivePart, point: dict[object, np.ndarray]) -> float:
        values = {**one.values, **point}
        return float(evaluate((part.objective,), values, one.sizes)[0])

    whole = np.array([value(one, point) for point in points])
    each = np.array([[value(part, point) for point in points] for part in parts])
    left = whole - each.sum(axis=0)
    size = np.abs(whole).max() + np.abs(each).sum(axis=0).max()
    if np.isfinite(size):
        assert abs(left[0] - 2.0 * left[1] + left[2]) <= 1e-11 * size
