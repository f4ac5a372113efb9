"""Sums over index sets that conditions decide, compared with the same text run by Python."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import chain

import numpy as np
import pytest

import slomodel

pytestmark = pytest.mark.filterwarnings("ignore::slomodel.errors.ModelWarning")

N, G, M = 11, 4, 6
RNG = np.random.default_rng(5)
DATA = {
    "g": RNG.integers(0, G, N),
    "h": RNG.integers(0, G, N),
    "row": RNG.integers(0, M, N),
    "col": RNG.integers(0, M, N),
    "q": RNG.integers(0, G, M),
    "w": RNG.normal(size=N),
    "A": np.round(RNG.normal(size=(M, M)) * (RNG.uniform(size=(M, M)) < 0.4), 2),
    "time": RNG.integers(0, 5, N).astype(float),
    "age": RNG.integers(0, 5, M) / 2,
}
HEAD = (
    "dim N, G, M data g[N] in G, h[N] in G, row[N] in M, col[N] in M, q[M] in G, w[N], A[M, M], "
    "time[N], age[M] var x[N], a[G], y[M] init 0.1 minimize 0 * (sum(x) + sum(a) + sum(y) + "
    "sum(g) + sum(h) + sum(row) + sum(col) + sum(q) + sum(w) + sum(A) + sum(time) + sum(age)) + "
)
X, Y, K = RNG.normal(size=N), RNG.normal(size=M), RNG.normal(size=G)
DIMS = {"N": N, "G": G, "M": M}


class Size(int):
    """A dim, which is iterated over its indices."""

    def __iter__(self) -> Iterable[int]:
        return iter(range(self))


def by_python(text: str, names: Mapping[str, object]) -> float:
    """The value of a text of nested sums, as Python evaluates its generator expressions."""
    text = text.replace("^", "**")
    iterations = r"(, )(\w+ in (?:range\((?:[^()]|\([^()]*\))*\)|\w+))(?=[, )]| if)"
    text = re.sub(iterations, r" for \2", text)
    text = re.sub(r"A\[(\w), ([^,]*?)\](?= !| >|,| \*| i| f)", r"A[\1][\2]", text)
    functions: dict[str, Callable[..., object]] = {
        "sumsq": lambda terms: sum(term * term for term in terms),
        "exp": np.exp,
        "log": np.log,
        "sin": np.sin,
        "abs": abs,
        "mean": lambda terms: np.mean(list(terms)),
        "prod": lambda terms: np.prod(list(terms)),
        "logsumexp": lambda terms: np.log(sum(np.exp(list(terms)))),
    }
    functions |= {name: largest(name) for name in ("max", "min")}
    return float(eval(text, {**functions, **names}))


def largest(name: str) -> Callable[..., object]:
    own = {"max": max, "min": min}[name]
    return lambda *terms: own(terms if len(terms) > 1 else chain(terms[0]))


def as_model(text: str) -> str:
    """The text with `a if condition else b` written as a choice."""
    while " else " in text:
        text = re.sub(
            r"\(((?:[^()]|\([^()]*\))*) if ([^()]*) else ([^()]*)\)", r"where(\2, \1, \3)", text
        )
    return text


def check(text: str, backend: str, data: Mapping[str, object] = DATA) -> None:
    sizes = {name: Size(size) for name, size in DIMS.items()}
    lists = {name: np.asarray(array).tolist() for name, array in data.items()}
    wanted = by_python(text, {**lists, **sizes, "x": X, "a": K, "y": Y})
    own = slomodel.compile(HEAD + as_model(text), data=data, dims=DIMS, backend=backend)
    point = own.pack({"x": X, "a": K, "y": Y})
    value, slope = own.value_and_gradient(point)
    assert value == pytest.approx(wanted, rel=1e-11, abs=1e-11)
    along, step = np.random.default_rng(1).normal(size=own.n), 1e-5
    ends = point + step * along, point - step * along
    difference = (own.value(ends[0]) - own.value(ends[1])) / (2 * step)
    assert slope @ along == pytest.approx(difference, rel=1e-5, abs=1e-6)
    product = (own.gradient(ends[0]) - own.gradient(ends[1])) / (2 * step)
    np.testing.assert_allclose(own.hvp(point, along), product, rtol=1e-4, atol=1e-5)


KEYS = [
    "sum(sum(x[i] for i in N if g[i] == k + 1)^2 * a[k] for k in G)",
    "sum(sum(x[i] for i in N if g[i] - k == 0)^2 * a[k] for k in G)",
    "sum(sum(x[i] for i in N if k == g[i])^2 * a[k] for k in G)",
    "sum(sum(x[i] for i in N if 0 == k - g[i])^2 * a[k] for k in G)",
    "sum(sum(x[i] for i in N if g[i] + k == 3)^2 * a[k] for k in G)",
    "sum(sum(x[i] for i in N if 2 * g[i] - 1 == k)^2 * a[k] for k in G)",
    "sum(sum(x[l] for l in N if row[l] == i and col[l] == j)^2 * y[i] * y[j] for i in M, j in M)",
    "sum(sum(x[l] for l in N if row[l] == i and col[l] == i)^2 * y[i] for i in M)",
    "sum(sum(x[l] * exp(y[i] - y[j]) for l in N if row[l] == i and col[l] == j)^2 "
    "for i in M, j in M)",
    "sum(x[i]^2 * a[k] for i in N, k in G if g[i] == k)",
    "sum(x[i]^2 * a[k] for i in N, k in G if k == g[i] - 1)",
    "sum(x[i]^2 * y[j] * y[l] for i in N, j in M, l in M if row[i] == j and col[i] == l)",
    "sum(sum(x[i]^2 * a[k] for i in N if g[i] == k and h[i] == k) for k in G)",
    "sum(sum(x[i] * y[j] for i in N, j in M if g[i] == k and q[j] == k)^2 for k in G)",
    "sum(sum(x[i] * a[l] for i in N, l in G if g[i] == l and h[i] == k)^2 for k in G)",
    "sum(sum(y[i] * y[j] for i in M, j in M if i + j == k)^2 for k in N)",
    "sum(sum(x[i] for i in N if i == k)^3 for k in N)",
    "sum(sum(x[i] for i in N if i == g[k])^3 for k in N)",
    "sum(sum(x[i] for i in N if g[i] == k and i > k)^2 for k in range(1, 3))",
]
LISTS = [
    "sum(sin(y[i] - y[j]) * A[i, j] for i in M, j in M if A[i, j] != 0)",
    "sum(sum(y[j] * A[i, j] for j in M if A[i, j] > 0)^2 for i in M)",
    "sum(exp(y[i] * y[j]) for i in M, j in M if A[i, j] != 0 and i < j)",
    "sum(exp(y[i] * y[j]) for i in M, j in M if i < j and A[i, j] != 0 and q[i] != q[j])",
    "sum(exp(y[i] * y[j]) for i in M, j in M if A[i, j] != 0 or A[j, i] != 0)",
    "sum(x[i] * y[j]^2 for i in N, j in M if g[i] == q[j])",
    "sum(sum(y[j] * x[i] for j in M if q[j] == g[i])^2 for i in N)",
    "sum(sum(exp(y[j] * x[i]) for j in M if q[j] == g[i] and w[i] > 0) for i in N)",
    "sum(x[i] * y[j]^2 for i in N, j in M if time[i] == age[j])",
    "sum(x[i] * y[j]^2 for i in N, j in M if 2 * age[j] == time[i] and g[i] == q[j])",
    "sum(sum(x[i] * y[j]^2 * a[k] for i in N, j in M if time[i] == age[j] and g[i] == k)^2 "
    "for k in G)",
    "sum(sum(exp(x[j]) for j in N if time[j] >= time[i]) * x[i]^2 for i in N)",
    "sum(sum(x[j] * (1 + x[j]) for j in N if j != i and j >= i - 5 and j <= i + 1)^2 for i in N)",
    "sum(x[i] * x[j]^2 for i in N, j in N if j >= i - 2 and j < i + 2)",
    "sum(x[i] * x[j]^2 for i in N, j in N if abs(i - j) <= 1)",
    "sum(x[i] * x[j]^2 for i in N, j in N if abs(j - i) < 3 and i != j and w[j] > 0)",
    "sum(x[i] * x[j] * x[k] for i in N, j in N, k in N if i < j and j < k)",
    "sum(x[i] * x[j] * x[k] for i in N, j in N, k in N if i <= j and j < k and k <= i + 3)",
    "sum(mean(x[j] for j in N if j >= i and j <= i + 2)^2 for i in N)",
    "mean(y[i] * y[j] for i in M, j in M if A[i, j] != 0)",
    "sum(sum(y[j] for j in M if j >= row[i] and j <= row[i] + 1)^2 for i in N)",
    "sum(sum(w[j] * y[i - j] for j in N if i >= j and i - j < M)^2 for i in N)",
    "sum(a[g[i] + 1] * x[i] for i in N if g[i] + 1 < G)",
    "sum(sum(y[j] * x[i] for j in M if A[j, q[j]] != 0 and i != j) for i in N)",
]


OTHERS = [
    "sum(max(x[j] for j in range(i + 1)) * x[i] for i in N)",
    "sum(min(x[j] * y[0] for j in range(i, i + 2) if j < N) for i in N)",
    "sum(logsumexp(x[j] * x[i] for j in range(i + 1)) * x[i] for i in N)",
    "sum(prod(x[j] for j in range(max(i - 2, 0), i + 1)) * x[i] for i in N)",
    "sum(prod(x[j] * a[k] for j in N if g[j] == k) * a[k] for k in G)",
    "sum(logsumexp(x[j] for j in N if g[j] == k)^2 for k in G)",
    "sum(logsumexp(x[j] * y[i] for i in M, j in N if g[j] == k)^2 for k in G)",
    "sum(max(x[j] for j in N if g[j] == k and h[j] >= 0)^2 * a[k] for k in G)",
    "sum(prod(x[l] for l in N if row[l] == i and col[l] == j) * y[i] * y[j] for i in M, j in M)",
    "sum(prod(y[j] for j in M if A[i, j] != 0) * y[i] for i in M)",
    "logsumexp(x[i] * x[j] for i in N, j in N if g[i] == h[j])",
    "sum(sumsq(x[j] - y[i] for j in N if row[j] == i) * y[i] for i in M)",
    "sumsq(x[i] * y[j] for i in N, j in M if i <= j)",
    "sumsq(x[i] for i in N)",
]


ORDERED = [
    "sum(log(sum(exp(x[j]) for j in N if time[j] >= time[i])) - x[i] for i in N)",
    "sum(sum(x[j]^2 for j in N if time[j] < time[i])^2 for i in N)",
    "sum(sum(x[j]^2 for j in N if time[i] >= time[j] and w[j] > 0)^2 * y[row[i]] for i in N)",
    "sum(sum(x[j] * j for j in N if time[j] > 2 * age[i])^2 * y[i] for i in M)",
    "sum(logsumexp(x[j] * y[0] for j in N if time[j] >= time[i]) * w[i] for i in N)",
    "sum(logsumexp(x[j] for j in N if time[j] < time[i] + 1)^2 for i in N)",
]
GUARDS = [  # written as in Python, which evaluates one branch alone
    "sum((y[0] if i == 0 else x[i - 1])^2 for i in N)",
    "sum((x[i - 1] * x[i + 1] if i > 0 and i < N - 1 else x[i]) * w[i] for i in N)",
    "sum((a[g[i] + 1] if g[i] + 1 < G else 0)^2 * x[i] for i in N)",
    "sum((y[t - j] * x[j] if t >= j and t - j < M else 0) for t in N, j in N)",
    "sum(sum((x[j - i] if j >= i else 1)^2 for j in N if g[j] == k) for i in N, k in G)",
    "sum(((x[i + 2] if i < N - 2 else y[0]) * x[i - 2] if i >= 2 else 0) for i in N)",
    "sum(max((x[i - j - 1] if j < i else x[0]) for j in range(i + 1)) * w[i] for i in N)",
]
CHOICES = [  # between a term and nothing, which are conditions of the sum
    "sum(sum((x[i] if g[i] == k else 0) for i in N)^2 * a[k] for k in G)",
    "sum(sum(-x[i] * (0 if g[i] != k else 1) / 2 for i in N)^2 * a[k] for k in G)",
    "sum((x[i] - sum((a[k] if g[i] == k else 0) for k in G))^2 for i in N)",
    "sum((exp(y[i] * y[j]) if A[i, j] != 0 else 0) for i in M, j in M if i < j)",
    "sumsq((x[i] * y[j] if g[i] == q[j] else 0) for i in N, j in M)",
    "sum(prod((x[i] if g[i] == k else 1) for i in N) * a[k] for k in G)",
    "sum((0 if i <= j or g[i] != k else x[i]) * (y[j] if j > 1 else 0) for i in N, j in M, k in G)",
    "sum((x[i] if x[i] > 0.2 else 0) * (2 if g[i] == 1 else 0) for i in N)",
    "sum((x[i] / (2 if g[i] == k else 1) if h[i] == k else 0) for i in N, k in G)",
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("text", [*KEYS, *LISTS, *OTHERS, *ORDERED, *GUARDS, *CHOICES])
def test_values_and_derivatives_are_those_of_loops(text: str) -> None:
    check(text, "numpy")


@pytest.mark.sampled(7)
@pytest.mark.parametrize(
    "text", [*KEYS[::7], *LISTS[::7], *OTHERS[::4], *ORDERED[::4], *GUARDS[::4], *CHOICES[::7]]
)
@pytest.mark.parametrize("backend", ["numexpr", "c"])
def test_other_targets(text: str, backend: str) -> None:
    check(text, backend)


def test_a_choice_between_arrays_is_one() -> None:
    text = (
        "dim m, n data A[m, n] var x[n] minimize sum(exp(sum(where(A[i, :] > 0, x, 0) for i in m)))"
    )
    model = slomodel.compile(text, data={"A": [[1.0, -1.0], [2.0, 3.0]]}, backend="numpy")
    assert model.value([0.5, 2.0]) == pytest.approx(np.exp(1.0) + np.exp(2.0))


def test_a_choice_over_a_divisor_of_each_term_shows_divisions_by_zero() -> None:
    head = "dim n data y[n] var x[n] minimize "
    for text in ("where(i > 0, x[i], 0) / y[i]", "2 * where(i > 0, x[i], 0) / y[i]"):
        written = f"{head}sum({text} for i in n)"
        for y, finite in (([1.0, 2.0], True), ([0.0, 2.0], False)):
            model = slomodel.compile(written, data={"y": y}, backend="numpy")
            assert np.isfinite(model.value([1.0, 1.0])) == finite


def test_numbers_as_conditions() -> None:
    same = {
        "A[i, j]": "A[i, j] != 0",
        "(A[i, j]) and i < j": "A[i, j] != 0 and i < j",
        "not A[i, j]": "A[i, j] == 0",
        "i < j or A[i, j] and q[i]": "i < j or (A[i, j] != 0 and q[i] != 0)",
    }
    for text, written in same.items():
        values = []
        for condition in (text, written):
            own = f"sum(y[i] * exp(y[j]) for i in M, j in M if {condition})"
            model = slomodel.compile(HEAD + own, data=DATA, dims=DIMS, backend="numpy")
            values.append(model.value(model.pack({"x": X, "a": K, "y": Y})))
        assert values[0] == values[1]
    with pytest.raises(slomodel.SlomodelError, match="isolated points"):
        slomodel.compile("dim n var x[n] minimize sum(x[i] for i in n if x[i])", dims={"n": 2})


def test_products_and_quotients_in_an_index() -> None:
    text = "dim n, p var v[p] let L[i in n, j in n] = where(j <= i, v[i * (i + 1) / 2 + j], 0) "
    model = slomodel.compile(text + "minimize sum(exp(L))", dims={"n": 3, "p": 6})
    lower = np.zeros((3, 3))
    lower[np.tril_indices(3)] = np.arange(6.0)
    assert model.value(np.arange(6.0)) == pytest.approx(np.exp(lower).sum())
    with pytest.raises(slomodel.ShapeError, match=r"takes 0\.5 .*\n(.*\n)*.*whole number"):
        slomodel.compile("dim n var v[n] minimize sum(v[i / 2] for i in n)", dims={"n": 3})


STEPS = {
    "sumsq(x[::2])": np.sum(X[::2] ** 2),
    "sum(x[1:N:3])": X[1::3].sum(),
    "sum(x[::-1] .* w)": X[::-1] @ DATA["w"],
    "sum((y[1::2] - y[::2]^2)^2)": np.sum((Y[1::2] - Y[::2] ** 2) ** 2),
    "sum(exp(x[:-1:2] .* x[1::2]))": np.exp(X[:-1:2] * X[1::2]).sum(),
    "sum(x[i] * i for i in range(0, N, 2))": X[::2] @ np.arange(0, N, 2),
    "sum(x[i]^2 * i for i in range(1, N, 3))": X[1::3] ** 2 @ np.arange(1, N, 3),
    "sum(x[2*i]^3 for i in G)": np.sum(X[: 2 * G : 2] ** 3),
    "sum(x[i] * x[(i + 1) % N] for i in N)": X @ np.roll(X, -1),
    "sum(x[i] * x[(i - 2) % N]^2 for i in N)": X @ np.roll(X, 2) ** 2,
    "sum(x[i] for i in N if i % 3 == 1)": X[1::3].sum(),
    "sum(sum(x[j] for j in range(i, N, 2))^2 for i in N)": sum(
        X[i::2].sum() ** 2 for i in range(N)
    ),
    "sum(sum(x[j] for j in N if (i + j) % 4 == 0)^2 for i in N)": sum(
        X[-i % 4 :: 4].sum() ** 2 for i in range(N)
    ),
}


@pytest.mark.parametrize("text", STEPS)
def test_steps_and_remainders_are_those_of_numpy(text: str) -> None:
    for backend in ("numpy", "numexpr", "c") if "%" in text else ("numpy",):
        own = slomodel.compile(HEAD + text, data=DATA, dims=DIMS, backend=backend)
        point = own.pack({"x": X, "a": K, "y": Y})
        assert own.value(point) == pytest.approx(STEPS[text], rel=1e-12)
        along, step = RNG.normal(size=own.n), 1e-5
        ends = own.value(point + step * along), own.value(point - step * along)
        assert own.gradient(point) @ along == pytest.approx(
            (ends[0] - ends[1]) / 2 / step, rel=1e-6
        )


def test_sizes_of_steps_are_compared_when_they_are_known() -> None:
    model = slomodel.compile("dim n var x[n] minimize sumsq(x[1::2] - x[::2])")
    with pytest.raises(slomodel.DomainError, match="axes of different sizes") as caught:
        slomodel.compile("dim n var x[n] minimize sumsq(x[1::2] - x[::2])", dims={"n": 5})
    assert caught.value.diagnostics[0].code == "E314"
    assert model.missing == ()


@pytest.mark.parametrize("size", [0, 1, 4])
def test_ordered_sums_of_few_elements_and_outside_all_limits(size: int) -> None:
    text = "dim N, M data t[N], a[M] var x[N], y[M] minimize sum(y[i] * sum(x[j]^2 for j in N "
    text += "if t[j] > a[i]) + sum(exp(x[j]) for j in N if t[j] <= a[i]) for i in M)"
    times, limits = np.array([1.0, 0.0, 1.0, 2.0])[:size], np.array([-1.0, 1.0, 5.0])
    model = slomodel.compile(text, data={"t": times, "a": limits}, backend="numpy")
    first, second = np.arange(1.0, size + 1), np.array([2.0, 3.0, 5.0])
    above = times > limits[:, None]
    wanted = second @ above @ first**2 + np.sum(~above @ np.exp(first))
    assert model.value(np.concatenate([first, second])) == pytest.approx(wanted, rel=1e-13)


def test_ordered_sums_take_work_proportional_to_elements_and_limits() -> None:
    text = "dim N data time[N] var x[N] "
    text += "minimize sum(log(sum(exp(x[j]) for j in N if time[j] >= time[i])) for i in N)"
    size = 50_000
    model = slomodel.compile(text, data={"time": np.arange(size) % 1000}, backend="numpy")
    assert "[N, N]" not in model.source("numpy")
    assert str(size**2) not in model.source("numpy")
    assert np.isfinite(model.value(np.zeros(size)))


@pytest.mark.parametrize(("share", "listed"), [(0.05, True), (0.6, False)])
def test_conditions_that_hold_often_are_masks(share: float, listed: bool) -> None:
    text = "dim m, n, r = 2 data D[m, n], H[m, n] mask var U[m, r], V[n, r] minimize "
    text += "sum((D[i, j] - dot(U[i, :], V[j, :]))^2 for i in m, j in n if H[i, j] == 1)"
    rng = np.random.default_rng(0)
    shown = (rng.uniform(size=(20, 30)) < share).astype(float)
    data = {"D": rng.normal(size=(20, 30)), "H": shown}
    model = slomodel.compile(text, data=data, backend="numpy")
    assert ("np.nonzero" in model.source("numpy")) is listed
    U, V = rng.normal(size=(20, 2)), rng.normal(size=(30, 2))
    wanted = np.sum(shown * (data["D"] - U @ V.T) ** 2)
    point = model.pack({"U": U, "V": V})
    assert model.value(point) == pytest.approx(wanted, rel=1e-12)
    other = model.bind(H=1 - shown)
    rest = np.sum((1 - shown) * (data["D"] - U @ V.T) ** 2)
    assert other.value(point) == pytest.approx(rest, rel=1e-12)
