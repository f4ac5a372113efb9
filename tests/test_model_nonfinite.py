"""A NaN or infinity is traced to the sub-expression, element and operands of its origin."""

import numpy as np
import pytest
import sympy as sp

import slomodel

BACKENDS = ("numpy", "numexpr")
DECLARED = "dim n = 3\ndata y[n] = 1, A[n, n] = 1\nvar x[n]\n"

TRACED = [
    ("sum(log(x))", [1, -1, -2], "log of x[1] = -1.0 is nan at element [1], in `log(x)` (line 4)."),
    (
        "sum(y[i] / x[i] for i in n)",
        [1, 2, 0],
        "the quotient of y[2] = 1.0 and x[2] = 0.0 is inf at element [2], "
        "in `y[i] / x[i]` (line 4).",
    ),
    (
        "sum(2 * exp(x - 1))",
        [1, 1001, 3],
        "exp of 1000.0 is inf at element [1], in `exp(x - 1)` (line 4), where x[1] = 1001.0.",
    ),
    (
        "sumsq(x)",
        [1, 1e200, 3],
        "a sum of products of numbers up to x[1] = 1e+200 is inf, in `sumsq(x)` (line 4).",
    ),
    (
        "sumsq(A @ x)",
        [0, 1e308, 1e308],
        "a sum of products of numbers up to A[0, 0] = 1.0, x[1] = 1e+308 is inf at element [0], "
        "in `A @ x` (line 4).",
    ),
    (
        "sum((x - y)^0.3)",
        [2, 2, 0.5],
        "the power x^p of -0.5 and 0.3 is nan at element [2], in `(x - y)^0.3` (line 4), "
        "where x[2] = 0.5, y[2] = 1.0.",
    ),
    (
        "sum(sqrt(x))",
        [1, 0, 2],
        "the quotient of 0.5 and 0.0 is inf at element [1], "
        "in the derivative of `sqrt(x)` (line 4), where x[1] = 0.0.",
    ),
    (
        "sum(where(x > 0, x, log(x)))",
        [1, -1, 2],
        "log of x[1] = -1.0 is nan at element [1], in `log(x)` (line 4).",
    ),
    (
        "sum(cholesky(diag(x)))",
        [1, -1, 2],
        "cholesky of a matrix that is not positive definite (pivot 1 is -1.0) is nan at element "
        "[0, 0], in `cholesky(diag(x))` (line 4).",
    ),
    (
        "logdet(diag(x) * 2)",
        [1, -1, 2],
        "logdet of a matrix that is not positive definite (pivot 1 is -2.0) is nan, in "
        "`logdet(diag(x) * 2)` (line 4).",
    ),
    (
        "sum(solve(A + diag(x), y))",
        [0, 0, 2],
        "solve of a matrix that is not regular (pivot 1 is 0) is nan at element [0, 0], in "
        "`solve(A + diag(x), y)` (line 4).",
    ),
    ("max(log(x))", [1, -1, 2], "log of x[1] = -1.0 is nan at element [1], in `log(x)` (line 4)."),
    ("sumsq(x)", [1, np.inf, 3], "variable `x[1]` is inf."),
]


@pytest.mark.filterwarnings("ignore::slomodel.NonsmoothWarning")
@pytest.mark.filterwarnings("ignore::slomodel.errors.ModelWarning")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("text", "point", "sentence"), TRACED)
def test_where_it_comes_from(text: str, point: list[float], sentence: str, backend: str) -> None:
    model = slomodel.compile(f"{DECLARED}minimize {text}", backend=backend)
    value, gradient = model.value_and_gradient(point)
    assert not np.isfinite([value, *gradient]).all()
    assert model.trace_nonfinite(point) == sentence
    found = model.solve(x0=point)
    assert found.status is slomodel.Status.nonfinite_start
    assert sentence in found.message
    assert model.trace_nonfinite([1.5, 2.0, 3.0]) is None


@pytest.mark.filterwarnings("ignore::slomodel.errors.ModelWarning")
def test_through_definitions_and_functions() -> None:
    text = DECLARED + "fn f(a, b) = log(a * b)\nlet L[i in n] = f(x[i], y[i])\nminimize -sum(L)"
    expected = "log of -1.0 is nan at element [1], in `log(a * b)` (line 4), where x[1] = -1.0"
    assert expected in str(slomodel.compile(text).trace_nonfinite([1.0, -1.0, 2.0]))


def test_of_a_sympy_model() -> None:
    i, n = sp.symbols("i n", integer=True)
    x = sp.IndexedBase("x")
    model = slomodel.compile(sp.Sum(sp.log(x[i]) ** 2, (i, 0, n - 1)), dims={"n": 3})
    found = str(model.trace_nonfinite([1.0, -1.0, 2.0]))
    assert found.startswith("log of x[1] = -1.0 is nan at element [1], in `log(x[i])`")


def test_data_is_requested() -> None:
    with pytest.raises(slomodel.SlomodelError, match="no values for data `a`"):
        slomodel.compile("dim n data a[n] var x minimize x * sum(a)").trace_nonfinite([1.0])


DURING = [
    ("var x init 1 minimize\nsqrt(x) + x", "sqrt of x = -", "in `sqrt(x)` (line 2)"),
    ("var x init 1 minimize\nx^0.7 + x", "the power x^p of x = -", "in `x^0.7` (line 2)"),
    (
        "var x init 1\nminimize where(x > 0.5, (x - 0.2)^2, log(-1 - x^2))",
        "log of -1.25 is nan",
        "in `log(-1 - x^2)` (line 2), where x = 0.49999",
    ),
    ("var x[2] init 1 maximize\n-sum(sqrt(x) + x)", "sqrt of x[0] = -", "at element [0], in `sq"),
]


@pytest.mark.sampled(4)
@pytest.mark.filterwarnings("ignore::slomodel.NonsmoothWarning")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("method", ["norm-armijo", "std-armijo"])
@pytest.mark.parametrize(("text", "what", "place"), DURING)
def test_a_search_that_ends_at_the_edge_of_the_domain(
    text: str, what: str, place: str, method: str, backend: str
) -> None:
    """Trials that are not finite are rejected; when that ends the run, the message traces one."""
    found = slomodel.compile(text, backend=backend).solve(method)
    assert found.status is slomodel.Status.line_search_stalled
    assert np.isfinite(found.fun)
    assert " tried; at the last, " in found.message
    assert what in found.message
    assert place in found.message


@pytest.mark.filterwarnings("ignore::slomodel.errors.ModelWarning")
@pytest.mark.parametrize("scale", [0.0, 1e3, 1e200, -1e200])
def test_a_sentence_for_every_number_that_is_not_finite(scale: float) -> None:
    text = "dim n data A[n, n] var x[n], W[n, n] minimize "
    terms = "tanh(sum(W @ x)), sum(exp(x))^-1, prod(x)^2, logsumexp(W @ x), sumsq(x ./ (W @ x))"
    rng = np.random.default_rng(4)
    for term in terms.split(", "):
        model = slomodel.compile(text + term + " + sumsq(A)", data={"A": np.eye(3)})
        for _ in range(10):
            x = scale * rng.normal(size=model.n)
            value, gradient = model.value_and_gradient(x)
            finite = np.isfinite([value, *gradient]).all()
            assert (model.trace_nonfinite(x) is None) == finite


def test_a_run_that_ends_well_reports_none() -> None:
    model = slomodel.compile("var x init 5 minimize x - log(x)")
    found = model.solve(x0=[1e-3])
    assert found.success
    assert "finite" not in found.message


@pytest.mark.filterwarnings("ignore::slomodel.errors.ModelWarning")
@pytest.mark.parametrize("end", ["", " subject to sum(x) <= 2"])
def test_a_start_that_is_drawn_is_drawn_again(end: str) -> None:
    model = slomodel.compile(
        "var x[3] init uniform(-1, 1) minimize sum(x - log(x))" + end, backend="numpy"
    )
    assert np.isnan(model.value(model.x0(0)))
    found = model.solve(seed=0)
    assert found.success
    seed = int(found.message.split("started at x0(")[1].split(")")[0])
    assert np.isfinite(model.value(model.x0(seed)))
    assert not np.isfinite([model.value(model.x0(other)) for other in range(seed)]).any()
    np.testing.assert_array_equal(found.x, model.solve(x0=model.x0(seed)).x)
    assert model.solve(x0=model.x0(0)).status is slomodel.Status.nonfinite_start


@pytest.mark.filterwarnings("ignore::slomodel.errors.ModelWarning")
@pytest.mark.parametrize("init", ["-1", "uniform(-1, 1)"])
def test_where_no_draw_is_finite(init: str) -> None:
    found = slomodel.compile(f"var x init {init} minimize log(-1 - x^2)", backend="numpy").solve()
    assert found.status is slomodel.Status.nonfinite_start
    assert "started at" not in found.message
