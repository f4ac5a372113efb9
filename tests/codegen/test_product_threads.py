"""Target `c`: products of matrices have the same bits whatever the number of threads."""

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

import slomodel
from slomodel.codegen.native import binding, parallel
from slomodel.codegen.native.parallel import gemm_parts, gemv_parts
from slomodel.codegen.native.products import SHARED

MODELS = {
    "a network": (
        """dim N, d, h = 48
        data X[N, d], y[N]
        var W[d, h], b[h], w[h]
        minimize sumsq(tanh(X @ W + b[None, :]) @ w - y)""",
        {"X": (120, 40), "y": (120,)},
    ),
    "columns": (
        "dim m, k, n = 200 data A[m, k] var X[k, n] minimize sum(exp(A @ X))",
        {"A": (30, 40)},
    ),
    "sums": (
        "dim m, k, n = 24 data A[m, k] var X[k, n] minimize sumsq(A @ X - 1)",
        {"A": (20, 700)},
    ),
    "a regression": (
        """dim N, p
        data A[N, p], y[N]
        var x[p]
        minimize sum(softplus(-y .* (A @ x)))""",
        {"A": (600, 30), "y": (600,)},
    ),
    "three factors": (
        """dim n
        data A[n, n]
        var X[n, n], Y[n, n]
        minimize sumsq(X @ A @ Y' - A) + sumsq(X' @ Y)""",
        {"A": (60, 60)},
    ),
    "a Gaussian process": (
        """dim n
        data z[n], y[n]
        var s, l
        let S[i in n, j in n] = exp(s - exp(l) * (z[i] - z[j])^2) + where(i == j, 1, 0)
        minimize logdet(S) + dot(y, solve(S, y))""",
        {"z": (90,), "y": (90,)},
    ),
}


def cut(text: str) -> bool:
    return f"{SHARED}gemm(&" in text or f"{SHARED}gemv(&" in text


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", MODELS)
def test_any_number_of_threads_finds_the_same_bits(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit, value in (("_MULTIPLICATIONS", 20_000), ("_LEAST", 16), ("_ELEMENTS", 4_000)):
        monkeypatch.setattr(parallel, limit, value)
    rng = np.random.default_rng(0)
    text, shapes = MODELS[name]
    data = {key: rng.normal(size=shape) for key, shape in shapes.items()}
    ours = slomodel.compile(text, data=data, backend="c")
    assert cut(ours.source()) or "logdet" in text
    x, v = (0.3 * rng.normal(size=ours.n) for _ in range(2))
    found = []
    for threads in (1, 2, 5):
        monkeypatch.setattr(binding.numexpr, "get_num_threads", lambda n=threads: n)
        with threadpool_limits(threads, user_api="blas"):
            found += [(*ours.value_and_gradient(x), ours.hvp(x, v)) for _ in range(2)]
    for value, gradient, product in found[1:]:
        assert value == found[0][0]
        np.testing.assert_array_equal(gradient, found[0][1])
        np.testing.assert_array_equal(product, found[0][2])
    numpy = slomodel.compile(text, data=data, backend="numpy")
    value, gradient = numpy.value_and_gradient(x)
    assert found[0][0] == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(found[0][1], gradient, atol=1e-12 * np.abs(gradient).max())


@pytest.mark.parametrize(
    ("sizes", "axis"),
    [((64, 256, 5000), 2), ((256, 5000, 64), 1), ((5000, 256, 64), 0), ((600, 600, 600), 1)],
)
def test_long_products_are_cut_along_a_long_axis(sizes: tuple[int, int, int], axis: int) -> None:
    found = gemm_parts(*sizes)
    assert found is not None
    assert found[0] == axis
    assert 256 <= found[1] < sizes[axis]


def test_short_products_are_not_cut() -> None:
    assert gemm_parts(100, 100, 100) is None
    assert gemm_parts(3, 3, 200_000) is None
    assert gemv_parts(300, 300) is None
    assert gemv_parts(200, 20_000) == (2, 1264)


def test_threads_of_blas_are_restored() -> None:
    text, shapes = MODELS["a regression"]
    data = {key: np.ones(shape) for key, shape in shapes.items()}
    model = slomodel.compile(text, data=data, backend="c")
    controller = ThreadpoolController().select(user_api="blas")
    before = [one.num_threads for one in controller.lib_controllers]
    model.value_and_gradient(np.zeros(30))
    assert [one.num_threads for one in controller.lib_controllers] == before
