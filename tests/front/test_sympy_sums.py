"""Sums by index in SymPy: array nodes, shapes, limits, data; against plain loops in NumPy."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import sympy as sp
from sympy.tensor.indexed import Idx

from slomodel import ShapeError, compile
from slomodel.errors import NonsmoothWarning
from slomodel.front.sympy_expressions.elaborate import problem_from_sympy
from slomodel.ir.build import einsum, variable
from slomodel.ir.dims import Dim, literal, named
from slomodel.ir.expr import Einsum
from slomodel.ir.walk import postorder

i, j, n, m = sp.symbols("i j n m", integer=True)
x, y, A = (sp.IndexedBase(name) for name in ("x", "y", "A"))
RNG = np.random.default_rng(5)
MATRIX = RNG.standard_normal((3, 4))
VECTOR = RNG.standard_normal(3)


def total(term: sp.Expr, *limits: tuple[object, ...]) -> sp.Sum:
    return sp.Sum(term, *limits)


def shape_of(expr: sp.Expr, name: str, **options: object) -> tuple[Dim, ...]:
    problem = problem_from_sympy(expr, **options)
    inputs = [*problem.variables, *problem.data]
    return next(one.shape for one in inputs if one.name == name)


def test_a_sum_of_squares_is_one_contraction() -> None:
    problem = problem_from_sympy(total(x[i] ** 2, (i, 0, n - 1)))
    node = variable("x", (named("n"),))
    assert problem.objective is einsum([node, node], [(0,), (0,)], (), (named("n"),))


def test_a_matrix_times_a_vector_is_one_contraction() -> None:
    row = total(A[i, j] * x[j], (j, 0, m - 1))
    problem = problem_from_sympy(total(sp.exp(row), (i, 0, n - 1)), data_names=["A"])
    contractions = [node for node in postorder(problem.objective) if isinstance(node, Einsum)]
    assert [sorted(o.rank for o in node.operands) for node in contractions] == [[1, 2], [1]]


def test_least_squares() -> None:
    residual = total(A[i, j] * x[j], (j, 0, m - 1)) - y[i]
    model = compile(total(residual**2, (i, 0, n - 1)), data={A: MATRIX, y: VECTOR})
    at = np.array([0.5, -1.0, 2.0, 0.25])
    r = MATRIX @ at - VECTOR
    value, gradient = model.value_and_gradient(at)
    assert value == pytest.approx(r @ r, rel=1e-14)
    np.testing.assert_allclose(gradient, 2 * MATRIX.T @ r, rtol=1e-13)
    loaded = pickle.loads(pickle.dumps(model.bind(y=2 * VECTOR)))
    r = MATRIX @ at - 2 * VECTOR
    assert loaded.value(at) == pytest.approx(r @ r, rel=1e-14)


def test_other_sizes_bind() -> None:
    residual = total(A[i, j] * x[j], (j, 0, m - 1)) - y[i]
    model = compile(total(residual**2, (i, 0, n - 1)), data={"A": MATRIX, "y": VECTOR})
    assert model.bind(A=np.eye(2), y=np.zeros(2)).value([3.0, 4.0]) == 25.0


def test_the_source_does_not_depend_on_n() -> None:
    expr = total(100 * (x[i + 1] - x[i] ** 2) ** 2 + (1 - x[i]) ** 2, (i, 0, n - 2))
    # Short arrays have kernels of their own.
    sources = [compile(expr, dims={"n": size}).source() for size in (10**4, 10**6)]
    assert len(sources[0].splitlines()) == len(sources[1].splitlines())


@pytest.mark.parametrize(
    ("expr", "shape"),
    [
        (total(x[i], (i, 0, n - 1)), (named("n"),)),
        (total(x[i + 1] - x[i], (i, 0, n - 2)), (named("n"),)),
        (total(x[i], (i, 0, n)), (named("n") + 1,)),
        (total(x[i - 1], (i, 1, 15)), (literal(15),)),
        (total(x[2 * i + 1], (i, 0, n - 1)), (named("n") * 2,)),
        (total(x[n - 1 - i], (i, 0, n - 1)), (named("n"),)),
        (total(x[i, 3 * j], (i, 0, n - 1), (j, 0, 2)), (named("n"), literal(7))),
        (x[0] + x[7], (literal(8),)),
        (x[3] + total(x[i], (i, 0, n - 1)), (named("n"),)),
        (total(x[i], (i, 0, -1)) + x[1], (literal(2),)),
        (total(sp.IndexedBase("x", shape=(n + 2,))[i], (i, 0, n - 1)), (named("n") + 2,)),
    ],
    ids=str,
)
def test_shapes_from_indices(expr: sp.Expr, shape: tuple[Dim, ...]) -> None:
    assert shape_of(expr, "x") == shape


def test_the_longer_of_two_known_sizes() -> None:
    expr = total(x[i], (i, 0, n - 1)) + total(x[j], (j, 0, m - 1))
    assert shape_of(expr, "x", dims={"n": 3, "m": 5}) == (named("m"),)
    assert shape_of(expr, "x", dims={"n": 7, "m": 5}) == (named("n"),)


def test_a_sum_over_a_part_of_the_data() -> None:
    expr = total(x[i] * y[i], (i, 0, n - 1))
    model = compile(expr, data={"y": [1.0, 2.0, 3.0, 4.0]}, dims={"n": 2})
    assert model.value([1.0, 1.0]) == 3.0


def test_the_upper_limit_is_included() -> None:
    model = compile(total(x[i], (i, 0, n)), dims={"n": 4})
    assert model.variables == {"x": (5,)}
    with pytest.raises(ShapeError, match=r"(?s)takes 0 to n, .* Sum includes its upper limit"):
        compile(total(sp.IndexedBase("x", shape=(n,))[i], (i, 0, n)), dims={"n": 4})


@pytest.mark.parametrize(
    ("limit", "options"),
    [
        (n, {"dims": {"n": 3}}),
        (3, {}),
    ],
)
def test_past_the_data(limit: object, options: dict[str, object]) -> None:
    with pytest.raises(ShapeError, match="takes 0 to 3, and its axis has positions 0 to 2"):
        compile(total(x[i] * y[i], (i, 0, limit)), data={"y": VECTOR}, **options)


def test_a_small_index_is_tested_at_bind() -> None:
    expr = total((x[i] - y[i]) ** 2, (i, 0, n - 1)) + x[3]
    assert compile(expr, data={"y": np.zeros(4)}).value([1.0, 0.0, 0.0, 5.0]) == 31.0
    with pytest.raises(ShapeError, match=r"`x\[3\]` takes 3 in an axis of size 2"):
        compile(expr, data={"y": np.zeros(2)})


@pytest.mark.filterwarnings("ignore:.*never read:slomodel.ModelWarning")
def test_indices_and_sizes_are_numbers_too() -> None:
    model = compile(total(n * i * x[i] ** 2, (i, 2, n + 1)), dims={"n": 3})
    at = np.array([9.0, 9.0, 1.0, 2.0, 3.0])
    assert model.value(at) == 3 * (2 * 1 + 3 * 4 + 4 * 9)


def test_a_condition_on_indices() -> None:
    pair = sp.Piecewise((x[i] * x[j], j < i), (0, True))
    model = compile(total(pair, (j, 0, n - 1), (i, 0, n - 1)), dims={"n": 3})
    assert model.value([2.0, 3.0, 5.0]) == 2 * 3 + 2 * 5 + 3 * 5


def test_an_index_may_be_used_again_inside() -> None:
    inner = total(x[i], (i, 0, 2))
    model = compile(total(x[i] * inner, (i, 0, 2)) + total(sp.Integer(1), (i, 0, 2), (i, 0, 2)))
    assert model.value([1.0, 2.0, 3.0]) == 36.0 + 9.0


def test_idx_is_an_index() -> None:
    k = Idx("k", n)
    model = compile(total(x[k] ** 2, k), dims={"n": 3})
    assert model.value([1.0, 2.0, 3.0]) == 14.0


def test_the_root_of_a_sum_of_squares_is_the_norm() -> None:
    norm = sp.sqrt(total(x[i] ** 2, (i, 0, 2)))
    with pytest.warns(NonsmoothWarning):
        model = compile(norm)
    value, gradient = model.value_and_gradient(np.zeros(3))
    assert value == 0.0
    np.testing.assert_array_equal(gradient, np.zeros(3))
    with pytest.warns(NonsmoothWarning):
        scaled = compile(y[0] / norm + 1 / norm)
    assert scaled.value({"x": [2.0, 0.0, 0.0], "y": [3.0]}) == 2.0


def test_a_product_with_factors_zero() -> None:
    model = compile(sp.Product(x[i], (i, 0, 2)))
    np.testing.assert_array_equal(model.gradient([0.0, 2.0, 3.0]), [6.0, 0.0, 0.0])
    np.testing.assert_array_equal(model.gradient([0.0, 0.0, 3.0]), [0.0, 0.0, 0.0])


def test_named_vectors_pack() -> None:
    model = compile(total(x[i] * y[i], (i, 0, 2)), [y, x])
    packed = model.pack({"x": [1.0, 2.0, 3.0], "y": [4.0, 5.0, 6.0]})
    np.testing.assert_array_equal(packed, [4.0, 5.0, 6.0, 1.0, 2.0, 3.0])
    assert model.value({"x": [1.0, 2.0, 3.0], "y": [4.0, 5.0, 6.0]}) == 32.0


k = sp.Symbol("k", integer=True)
POINT = np.array([1.0, 2.0, 4.0, 7.0, 11.0])
ROWS = range(5)
DEPENDENT = [
    (
        total(total((x[i] - x[j]) ** 2, (j, i + 1, n - 1)), (i, 0, n - 1)),
        sum((POINT[a] - POINT[b]) ** 2 for a in ROWS for b in range(a + 1, 5)),
    ),
    (
        total(x[i] * sp.exp(-x[j] / 9), (j, i + 1, n - 1), (i, 0, n - 1)),
        sum(POINT[a] * np.exp(-POINT[b] / 9) for a in ROWS for b in range(a + 1, 5)),
    ),
    (
        total(total(x[j], (j, 0, i)) ** 2, (i, 0, n - 1)),
        sum(POINT[: a + 1].sum() ** 2 for a in ROWS),
    ),
    (
        total(x[i] * x[j] * x[k], (k, 0, j - 1), (j, 0, i), (i, 0, n - 1)),
        sum(POINT[a] * POINT[b] * POINT[:b].sum() for a in ROWS for b in range(a + 1)),
    ),
    (
        total(x[i] * total(x[j] * total(x[k], (k, j, i)), (j, 0, i)), (i, 0, n - 1)),
        sum(POINT[a] * POINT[b] * POINT[b : a + 1].sum() for a in ROWS for b in range(a + 1)),
    ),
    (
        total(sp.Product(x[j], (j, 0, i)), (i, 0, n - 1)),
        sum(np.prod(POINT[: a + 1]) for a in ROWS),
    ),
    (
        sp.Product(1 + x[i] * x[j] / 9, (j, 0, i), (i, 0, n - 1)),
        np.prod([1 + POINT[a] * POINT[b] / 9 for a in ROWS for b in range(a + 1)]),
    ),
    (
        total(i * total(y[j] * x[i], (j, 0, i)), (i, 0, n - 1)),
        sum(a * VECTOR[0] * (a + 1) * POINT[a] for a in ROWS),
    ),
]


@pytest.mark.parametrize(("objective", "value"), DEPENDENT, ids=[str(one) for one, _ in DEPENDENT])
def test_limits_that_depend_on_other_indices(objective: sp.Expr, value: float) -> None:
    data = {"y": np.full(5, VECTOR[0])} if objective.has(y) else {}
    model = compile(objective, [x], data=data, dims={"n": 5}, backend="numpy")
    assert model.value(POINT) == pytest.approx(value, rel=1e-12)
    along = np.linspace(1, 2, 5)
    ends = model.value(POINT + 1e-6 * along), model.value(POINT - 1e-6 * along)
    assert model.gradient(POINT) @ along == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-6)
