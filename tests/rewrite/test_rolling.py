"""Sums that are written out become sums along an axis, with the same value."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import slomodel
from slomodel import functions as fn
from slomodel.ir import build
from slomodel.ir.dims import literal
from slomodel.ir.expr import Affine, Expr, Map
from slomodel.ir.walk import postorder
from slomodel.reference import evaluate
from slomodel.rewrite.rolling import LEAST_TERMS, Rolled
from tests.work_counts import counting


def rosenbrock(x: np.ndarray) -> tuple[float, np.ndarray]:
    valley, slope = x[1:] - x[:-1] ** 2, 1.0 - x[:-1]
    gradient = np.zeros_like(x)
    gradient[1:] = 200.0 * valley
    gradient[:-1] -= 400.0 * valley * x[:-1] + 2.0 * slope
    return float(100.0 * valley @ valley + slope @ slope), gradient


def symbols(n: int) -> sp.Expr:
    x = sp.symbols(f"x0:{n + 1}")
    return sp.Add(*[100 * (x[i + 1] - x[i] ** 2) ** 2 + (1 - x[i]) ** 2 for i in range(n)])


def indexed(n: int) -> sp.Expr:
    x = sp.IndexedBase("x", shape=(n + 1,))
    return sp.Add(*[100 * (x[i + 1] - x[i] ** 2) ** 2 + (1 - x[i]) ** 2 for i in range(n)])


def text(n: int) -> str:
    terms = [f"100 * (x[{i + 1}] - x[{i}]^2)^2 + (1 - x[{i}])^2" for i in range(n)]
    return f"var x[{n + 1}]\nminimize {' + '.join(terms)}"


WRITTEN = pytest.mark.parametrize("written", [symbols, indexed, text])


@WRITTEN
@pytest.mark.parametrize("backend", ["numexpr", "numpy"])
def test_a_written_sum_is_as_one_along_an_axis(written: object, backend: str) -> None:
    n = 40
    model = slomodel.compile(written(n), backend=backend)
    x = np.random.default_rng(0).uniform(-1.0, 1.0, n + 1)
    value, gradient = rosenbrock(x)
    np.testing.assert_allclose(model.value(x), value, rtol=1e-13)
    np.testing.assert_allclose(model.gradient(x), gradient, rtol=1e-12, atol=1e-11)
    v = np.random.default_rng(1).standard_normal(n + 1)
    step = 1e-20j
    bent = np.array([rosenbrock_along(x, v, k, step) for k in range(n + 1)])
    np.testing.assert_allclose(model.hvp(x, v), bent, rtol=1e-10, atol=1e-9)


def rosenbrock_along(x: np.ndarray, v: np.ndarray, k: int, step: complex) -> float:
    """An entry of the Hessian times v, by a complex step of the gradient."""
    z = x + step * v
    valley, slope = z[1:] - z[:-1] ** 2, 1.0 - z[:-1]
    entry = 0.0j
    if k > 0:
        entry += 200.0 * valley[k - 1]
    if k < len(valley):
        entry -= 400.0 * valley[k] * z[k] + 2.0 * slope[k]
    return float((entry / step).real)


@WRITTEN
def test_the_source_does_not_grow(written: object) -> None:
    models = [slomodel.compile(written(n)) for n in (30, 300)]
    assert "rewritten  sums: 600 terms that were written out become 2" in models[1].explain()
    few, many = (model.source() for model in models)
    assert len(few.splitlines()) == len(many.splitlines())
    assert len(many) < 1.02 * len(few)


def test_many_numbers_keep_their_names() -> None:
    model = slomodel.compile(symbols(30))
    names = [f"x{k}" for k in range(31)]
    assert list(model.variables) == names
    x = model.pack({name: float(k) for k, name in enumerate(names)})
    np.testing.assert_array_equal(x, np.arange(31.0))
    assert float(model.unpack(x)["x7"]) == 7.0
    again = pickle.loads(pickle.dumps(model))
    assert again.value(x) == model.value(x) == model.value(model.unpack(x))
    assert max(model.check_gradient().values()) < 1e-13
    solution = model.solve(x0=0.5 * np.ones(31), max_iter=3)
    assert set(solution.variables) == set(names)


def test_a_nan_is_reported_by_the_name_of_its_variable() -> None:
    x = sp.symbols("x0:31")
    model = slomodel.compile(sp.Add(*[sp.log(one) ** 2 for one in x]))
    told = model.trace_nonfinite(np.where(np.arange(31) == 7, -1.0, 1.0))
    assert told == ("log of x7 = -1.0 is nan at element [7], in a term like `log(x0)` (line 1).")


def test_bounds_hold_for_the_sum() -> None:
    x = sp.symbols("x0:31")
    model = slomodel.compile(sp.Add(*[(x[i + 1] - x[i]) ** 2 for i in range(30)]))
    largest = np.linalg.eigvalsh(model.hessian(np.zeros(31)))[-1]
    assert largest <= model.bounds(np.zeros(31), 0.5).L1 <= 1.01 * largest


def test_constants_are_a_table() -> None:
    rng = np.random.default_rng(2)
    a, b = sp.symbols("a b")
    s, t = rng.standard_normal(50), rng.standard_normal(50)
    terms = [sp.log(1 + (a * float(p) + b - float(q)) ** 2) for p, q in zip(s, t, strict=True)]
    model = slomodel.compile(sp.Add(*terms) + sp.exp(a))
    x = np.array([0.3, -0.7])
    r = x[0] * s + x[1] - t
    slope = 2 * r / (1 + r**2)
    value = np.log1p(r**2).sum() + np.exp(x[0])
    np.testing.assert_allclose(model.value(x), value, rtol=1e-13)
    expected = [slope @ s + np.exp(x[0]), slope.sum()]
    np.testing.assert_allclose(model.gradient(x), expected, rtol=1e-12)
    assert len(model.source()) < 12_000
    assert not model.missing
    standalone: dict[str, object] = {}
    exec(model.source(), standalone)
    assert standalone["value"](x, {}) == model.value(x)
    again = pickle.loads(pickle.dumps(model))
    assert again.value(x) == model.bind().value(x) == model.value(x)


def test_the_source_of_many_constants_does_not_grow() -> None:
    rng = np.random.default_rng(4)

    def written(n: int) -> str:
        terms = [f"exp(a * {float(p)!r} + b)" for p in rng.standard_normal(n)]
        return f"var a, b\nminimize {' + '.join(terms)}"

    few, many = (slomodel.compile(written(n), backend="numpy") for n in (1100, 1900))
    assert len(few.source().splitlines()) == len(many.source().splitlines())
    assert abs(len(few.source()) - len(many.source())) < 20
    standalone: dict[str, object] = {}
    exec(many.source(), standalone)
    x = np.array([0.1, 0.2])
    assert standalone["value"](x, many.constants) == many.value(x)


def test_a_double_sum_gets_two_axes() -> None:
    def grid(n: int) -> str:
        terms = [f"exp(x[{i}, {j}] - x[{i + 1}, {j}]^2)" for i in range(n) for j in range(n)]
        return f"var x[{n + 1}, {n}]\nminimize {' + '.join(terms)}"

    few, many = (slomodel.compile(grid(n)) for n in (17, 20))
    assert len(few.source().splitlines()) == len(many.source().splitlines())
    x = np.random.default_rng(3).standard_normal((21, 20))
    expected = np.exp(x[:-1] - x[1:] ** 2).sum()
    np.testing.assert_allclose(many.value(x.ravel()), expected, rtol=1e-13)


X = build.variable("x", (literal(60),))


def at(k: int) -> Expr:
    return build.gather(X, [Affine(literal(k), ())], ())


def joined(terms: list[Expr]) -> Expr:
    total = terms[0]
    for one in terms[1:]:
        total = fn.add(total, one)
    return total


def sums_left(root: Expr) -> int:
    return sum(isinstance(n, Map) and n.function in (fn.add, fn.sub) for n in postorder(root))


def test_a_term_of_another_form_stays_apart() -> None:
    terms = [fn.square(fn.sin(at(k))) for k in range(30)]
    odd = fn.square(fn.cos(at(7)))
    made = Rolled(joined([*terms[:10], odd, *terms[10:]])).root
    assert isinstance(made, Map)
    assert made.function is fn.add
    assert odd in made.operands
    assert sums_left(made) == 1


def test_a_term_that_is_missing_makes_two_runs() -> None:
    root = joined([fn.sin(at(k)) for k in range(45) if k != 20])
    assert sums_left(Rolled(root).root) == 1


def test_few_terms_and_unlike_terms_stay() -> None:
    few = joined([fn.sin(at(k)) for k in range(LEAST_TERMS - 1)])
    assert Rolled(few).root is few
    unlike = joined([fn.sin(at(k)) if k % 2 else fn.cos(fn.exp(at(k))) for k in range(20)])
    assert sums_left(Rolled(unlike).root) == 19


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32))
def test_random_sums_mean_the_same(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shift, step = int(rng.integers(0, 5)), int(rng.integers(-1, 3))
    mixed = rng.random() < 0.3
    weights = rng.standard_normal(60) if rng.random() < 0.5 else np.arange(60) * 0.25

    def term(k: int) -> Expr:
        one = fn.mul(float(weights[k]), at(k + shift))
        other = fn.sin(fn.sub(at(30 + step * (k - 10)), 2.0))
        kind = rng.integers(3) if mixed else 0
        whole = (fn.square(fn.add(one, other)), fn.mul(one, other), fn.exp(other))[kind]
        sign = -1.0 if rng.random() < 0.1 else 1.0
        return fn.mul(sign * float(rng.integers(1, 3)), whole)

    terms = [term(k) for k in range(24) if rng.random() < 0.95]
    terms.append(build.const(2.5))
    root = fn.exp(fn.mul(0.01, joined([terms[k] for k in rng.permutation(len(terms))])))
    rolled = Rolled(root)
    values = {X: rng.standard_normal(60), **rolled.tables}
    before, after = evaluate([root, rolled.root], values)
    np.testing.assert_allclose(after, before, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("written", "terms"),
    # A text is refused where it is longer.
    [(symbols, 10_000), (indexed, 10_000), (text, 1_500)],
)
def test_many_terms_compile_with_little_work(written: Callable[[int], object], terms: int) -> None:
    made = written(terms)
    with counting() as calls:
        model = slomodel.compile(made)
        model.value_and_gradient(np.zeros(terms + 1))
    assert calls.count < 30_000_000
    assert len(model.source()) < 12_000
