"""Target `c`: long loops that threads share."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import slomodel
from slomodel.codegen.native import binding, parallel
from slomodel.codegen.native.compiler import FLAGS

HEAD = "dim n = 40000\nvar x[n]\nminimize "
MODELS = {
    "a sum": HEAD + "sum(sin(x[i]) * exp(x[i]) for i in n)",
    "two sums and the largest": HEAD + "sum(tanh(x)) * sumsq(x) + logsumexp(x)",
    "neighbours": HEAD + "sum((x[i+1] - x[i]^2)^2 + (1 - x[i])^2 for i in range(n - 1))",
    "far neighbours": HEAD + "sum((x[i+300] - x[i]^2)^2 * x[i+17] for i in range(n - 300))",
    "both ways": HEAD + "sum(x[i]^2 * x[n-1-i]^4 for i in n)",
    "rows": "dim m = 70, k = 900\nvar x[m, k]\nlet r[i in m] = sum(exp(x[i, j]) for j in k)\n"
    "minimize sum(r[i]^2 for i in m)",
    "columns": "dim m = 900, k = 70\nvar x[m, k]\nlet r[j in k] = sum(exp(x[i, j]) for i in m)\n"
    "minimize sum(r[j]^2 for j in k)",
    "looked up": "dim n = 9000, m = 40\ndata g[n] in m, h[n] in m\nvar u[m], v[m]\n"
    "minimize sum(exp(u[g[i]] * v[h[i]]) for i in n)",
    "plane": "dim m = 300, k = 40\nvar x[m, k]\nminimize sum(sqrt(1 + (x[i+1, j] - x[i, j])^2"
    " + (x[i, j+1] - x[i, j])^2) for i in range(m - 1), j in range(k - 1))",
    "short rows": "dim m = 3000, k = 5\nvar x[m, k]\nlet r = logsumexp(x, axis=1)\n"
    "minimize sum(r[i]^2 * exp(x[i, j]) for i in m, j in k)",
}


def cut(text: str) -> bool:
    return "slo_share(job, " in text


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", MODELS)
def test_any_number_of_threads_finds_the_same_bits(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel, "LONG", 0)
    monkeypatch.setattr(parallel, "_PART", 1024)
    rng = np.random.default_rng(0)
    looked_up = {name: rng.integers(0, 40, 9000) for name in "gh"} if name == "looked up" else {}
    ours = slomodel.compile(MODELS[name], data=looked_up, backend="c")
    assert cut(ours.source())
    x = 0.5 * rng.normal(size=ours.n)
    found = []
    for threads in (1, 2, 7):
        monkeypatch.setattr(binding.numexpr, "get_num_threads", lambda n=threads: n)
        found += [ours.value_and_gradient(x) for _ in range(3)]
    products = []
    for threads in (1, 2) if name in ("a sum", "looked up") else ():
        monkeypatch.setattr(binding.numexpr, "get_num_threads", lambda n=threads: n)
        products.append(ours.hvp(x, x + 1))
    assert all(np.array_equal(one, products[0]) for one in products)
    other = slomodel.compile(MODELS[name], data=looked_up, backend="numpy")
    value, gradient = other.value_and_gradient(x)
    for again, array in found:
        assert again == found[0][0]
        np.testing.assert_array_equal(array, found[0][1])
    assert found[0][0] == pytest.approx(value, rel=1e-13)
    np.testing.assert_allclose(found[0][1], gradient, atol=1e-13 * np.abs(gradient).max())


def test_short_loops_are_not_cut() -> None:
    assert not cut(slomodel.compile(MODELS["a sum"], backend="c").source())
    assert cut(slomodel.compile(MODELS["a sum"], dims={"n": 1_000_000}, backend="c").source())


def test_threads_of_a_solve_are_those_of_its_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    real = binding.numexpr.get_num_threads

    def noted() -> int:
        seen.append(real())
        return seen[-1]

    monkeypatch.setattr(parallel, "LONG", 0)
    monkeypatch.setattr(binding.numexpr, "get_num_threads", noted)
    slomodel.compile(MODELS["neighbours"], backend="c").solve("gd", max_iter=3, threads=1)
    assert set(seen) == {1}


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_the_source_stands_alone(tmp_path: Path) -> None:
    text = slomodel.compile(MODELS["neighbours"], dims={"n": 2_000_000}, backend="c").source()
    assert cut(text)
    strict = ["-Wall", "-Wextra", "-Werror", "-DVECTOR_MATH=0", "-xc", "-", "-lm"]
    call = ["gcc", *(flag for flag in FLAGS if flag != "-w"), *strict, "-o", str(tmp_path / "k.so")]
    done = subprocess.run(call, input=text, capture_output=True, text=True, check=False)
    assert not done.stderr
    assert not done.returncode


def test_parts_of_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "LONG", 0)
    monkeypatch.setattr(parallel, "_PART", 100)
    text = """dim n
    var a[n], b[n]
    minimize sum(exp(-(a[i] - b[j])^2) for i in n, j in range(i))"""
    ours = slomodel.compile(text, dims={"n": 80}, backend="c")
    assert cut(ours.source())
    x = np.random.default_rng(4).normal(size=160)
    a, b = x[:80], x[80:]
    wanted = np.tril(np.exp(-((a[:, None] - b) ** 2)), -1).sum()
    for threads in (1, 2):
        monkeypatch.setattr(binding.numexpr, "get_num_threads", lambda n=threads: n)
        assert ours.value(x) == pytest.approx(wanted, rel=1e-13)
