"""Reductions over axes and indices of any size: products, extremes, sums of exponentials."""

import warnings

import numpy as np
import pytest

import slomodel
from slomodel.errors import ModelSyntaxError, NonsmoothWarning, SlomodelError

BACKENDS = pytest.mark.parametrize("backend", ["numpy", "numexpr"])


def compiled(text: str, backend: str = "numpy", **dims: int) -> slomodel.Model:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NonsmoothWarning)
        return slomodel.compile(text, dims=dims, backend=backend)


@BACKENDS
@pytest.mark.parametrize(
    ("x", "gradient", "hvp"),
    [
        ([0.0, 2.0, 3.0], [6.0, 0.0, 0.0], [5.0, 3.0, 2.0]),
        ([0.0, 0.0, 3.0], [0.0, 0.0, 0.0], [3.0, 3.0, 0.0]),
    ],
)
@pytest.mark.parametrize(
    "text",
    [
        "dim n var x[n] minimize prod(x[i] for i in n)",
        "dim n var x[n] minimize prod(x)",
        "var x[3] minimize prod(x)",
        "dim n var x[n] minimize prod(x[i] for i in range(1, n)) * x[0]",
        "dim n var x[n] minimize prod(x[j] for j in n if j >= 1) * x[0]",
    ],
)
def test_product_with_zeros(
    text: str, backend: str, x: list[float], gradient: list[float], hvp: list[float]
) -> None:
    model = compiled(text, backend, **({"n": 3} if "dim n" in text else {}))
    assert model.value(np.array(x)) == 0.0
    assert model.gradient(np.array(x)).tolist() == gradient
    assert model.hvp(np.array(x), np.ones(3)).tolist() == hvp


def test_a_long_product_is_that_of_numpy() -> None:
    """Along both axes, and over an index on which the factors do not depend."""
    array = np.random.default_rng(0).uniform(0.5, 1.5, (40, 3))
    model = compiled("dim m, n var A[m, n] minimize sum(prod(A, axis=0))", m=40, n=3)
    assert model.value(array.ravel()) == pytest.approx(np.prod(array, axis=0).sum(), rel=1e-14)
    model = compiled("dim m, n var A[m, n] minimize sum(prod(A[:, j] for j in n))", m=40, n=3)
    assert model.value(array.ravel()) == pytest.approx(np.prod(array, axis=1).sum(), rel=1e-14)
    model = compiled("dim n var x minimize prod(x for i in n)", n=40)
    assert model.value(np.array([1.1])) == pytest.approx(1.1**40, rel=1e-14)
    assert model.gradient(np.array([1.1]))[0] == pytest.approx(40 * 1.1**39, rel=1e-13)


@BACKENDS
def test_largest_and_smallest(backend: str) -> None:
    array = np.array([[1.0, 5.0, 5.0], [2.0, -7.0, 0.0]])
    dims = {"m": 2, "n": 3}
    for spelled, value, gradient in (
        ("max(A)", 5.0, [[0, 0.5, 0.5], [0, 0, 0]]),
        ("min(A)", -7.0, [[0, 0, 0], [0, 1, 0]]),
        ("sum(max(A, axis=0))", 12.0, [[0, 1, 1], [1, 0, 0]]),
        ("sum(max(A[i, j] for j in n) for i in m)", 7.0, [[0, 0.5, 0.5], [1, 0, 0]]),
        ("max(A[i, j] for i in m, j in n if j < i)", 2.0, [[0, 0, 0], [1, 0, 0]]),
        ("min(A[i, :] for i in m)[1]", -7.0, [[0, 0, 0], [0, 1, 0]]),
    ):
        model = compiled(f"dim m, n var A[m, n] minimize {spelled}", backend, **dims)
        assert model.value(array.ravel()) == value
        assert model.gradient(array.ravel()).tolist() == np.ravel(gradient).tolist()
        assert not model.hvp(array.ravel(), np.ones(6)).any()


@BACKENDS
@pytest.mark.parametrize(
    ("x", "value", "gradient", "hvp"),
    [
        ([1000.0, 1000.0], 1000.6931471805599, [0.5, 0.5], [0.25, -0.25]),
        ([-1000.0, -1000.0], -999.3068528194401, [0.5, 0.5], [0.25, -0.25]),
        ([1000.0, -1000.0], 1000.0, [1.0, 0.0], [0.0, 0.0]),
        ([-np.inf, 3.0], 3.0, [0.0, 1.0], [0.0, 0.0]),
        ([np.inf, 3.0], np.inf, None, None),
        ([-np.inf, -np.inf], -np.inf, None, None),
        ([np.nan, 3.0], np.nan, None, None),
    ],
)
@pytest.mark.parametrize(
    "text",
    [
        "dim n var x[n] minimize logsumexp(x)",
        "dim n var x[n] minimize logsumexp(x, axis=0)",
        "dim n var x[n] minimize logsumexp(x[i] for i in n)",
    ],
)
def test_logsumexp(
    text: str,
    backend: str,
    x: list[float],
    value: float,
    gradient: list[float] | None,
    hvp: list[float] | None,
) -> None:
    model = compiled(text, backend, n=2)
    assert model.value(np.array(x)) == pytest.approx(value, rel=1e-15, nan_ok=True)
    if gradient is not None:
        assert model.gradient(np.array(x)).tolist() == gradient
        assert model.hvp(np.array(x), np.array([1.0, 0.0])).tolist() == hvp


@BACKENDS
def test_softmax_along_an_axis(backend: str) -> None:
    array = np.array([[1000.0, 1000.0, 999.0], [-5.0, 0.0, 5.0]])
    weights = np.arange(6.0)
    for axis in (0, 1, -1):
        text = f"dim m, n data W[m, n] var A[m, n] minimize sum(W .* softmax(A, axis={axis}))"
        model = slomodel.compile(text, data={"W": weights.reshape(2, 3)}, backend=backend)
        shifted = np.exp(array - array.max(axis=axis, keepdims=True))
        soft = shifted / shifted.sum(axis=axis, keepdims=True)
        value = (weights.reshape(2, 3) * soft).sum()
        assert model.value(array.ravel()) == pytest.approx(value, rel=1e-14)
        mean = (weights.reshape(2, 3) * soft).sum(axis=axis, keepdims=True)
        gradient = soft * (weights.reshape(2, 3) - mean)
        assert model.gradient(array.ravel()) == pytest.approx(gradient.ravel(), abs=1e-14)


def test_sums_of_exponentials_have_no_kink() -> None:
    """The largest exponent is only a shift."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = slomodel.compile("var x[3] minimize logsumexp(x) + sumsq(softmax(x))", strict=True)
    assert "derivatives of every order" in model.explain()
    with pytest.raises(ModelSyntaxError, match="`max` has a kink where its extreme elements are"):
        slomodel.compile("var x[3] minimize max(x)", strict=True)


def test_of_nothing_there_is_no_largest() -> None:
    for name in ("max", "min", "logsumexp", "softmax", "log_softmax"):
        text = f"dim n data a[n] var x minimize x + sum(zeros(1)) + sum({name}(a) * ones(n))"
        with pytest.raises(SlomodelError, match="` has no elements: n = 0"):
            slomodel.compile(text, data={"a": np.zeros(0)})
    assert compiled("dim n var x[n], c minimize c * prod(x)", n=0).value(np.array([3.0])) == 3.0
