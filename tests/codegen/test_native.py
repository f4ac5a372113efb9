"""Target `c`: special values, vectors of any kind, failures of its compiler and cache."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import sympy as sp
from codegen.cuda import everything
from hypothesis import given
from strategies import Example, graphs

import slomodel
from slomodel import functions as fn
from slomodel import user_cache
from slomodel.codegen.kernels import TARGETS, Compiled, Derivatives, Kernels
from slomodel.codegen.native import compiler
from slomodel.errors import TargetLimit
from slomodel.ir import build
from slomodel.ir.dims import named
from slomodel.ir.expr import Expr

SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 800.0, -800.0, 1e300, -1e300, 5e-324, 1e-310]
UNARY = [f for f in fn.TABLE.values() if f.arity == 1 and f.result == "real" and f.spelling]
TEXT = "dim n\nvar x[n]\nminimize sum(exp(x[i]) * x[i] for i in range(n))"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache directory of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    user_cache.directory.cache_clear()
    yield tmp_path / "slomodel" / "kernels"
    user_cache.directory.cache_clear()


def kernels_of(objective: Expr, variables: list, dtype: str = "float64", **sizes: int) -> Kernels:
    derivatives = Derivatives(objective, variables)
    compiled = Compiled("own", derivatives, [], sizes, TARGETS["c"], dtype)
    return Kernels(compiled, {})


def model(**options: object) -> slomodel.Model:
    return slomodel.compile(TEXT, dims={"n": 3}, backend="c", **options)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("function", UNARY, ids=[f.name for f in UNARY])
def test_every_function_is_near_numpys(function: fn.ScalarFunction) -> None:
    # The gradient of sum(p * f(y)) by p is f(y) itself, element by element.
    rng = np.random.default_rng(0)
    points = np.concatenate([SPECIAL, rng.normal(size=500), 10.0 ** rng.uniform(-300, 300, 200)])
    n = named("n")
    p, y = build.variable("p", (n,)), build.variable("y", (n,))
    bools = function.operand_types == ("bool",)
    operand = fn.gt(y, 0.0) if bools else y
    objective = build.sum_over(fn.mul(p, function(operand)), (0,))
    kernels = kernels_of(objective, [p, y], n=points.size)
    out = np.zeros(2 * points.size)
    kernels.function("value_and_gradient")(np.concatenate([np.ones_like(points), points]), out)
    with np.errstate(all="ignore"):
        expected = np.asarray(function.numpy(points > 0 if bools else points), float)
    found = out[: points.size]
    with np.errstate(all="ignore"):
        terms = function.error_scale
        size = np.maximum(np.abs(expected), 1e-300 if terms is None else terms(points))
        ulps = np.abs(found - expected) / np.spacing(size)
    allowed = max(6, function.worst_ulps("c") + function.worst_ulps("numpy"))
    same = (found == expected) | (np.isnan(found) & np.isnan(expected)) | (ulps <= allowed)
    assert same.all(), (points[~same], found[~same], expected[~same])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 511, 512, 513, 1024, 5000])
def test_lengths_round_those_of_blocks(n: int) -> None:
    dim = named("n")
    x = build.variable("x", (dim,))
    objective = fn.add(
        build.sum_over(fn.mul(x, fn.sin(x)), (0,)), build.extreme(fn.square(x), "max", (0,))
    )
    kernels = kernels_of(objective, [x], n=n)
    point = np.random.default_rng(n).normal(size=n)
    out = np.full(n, np.nan)
    value = kernels.function("value_and_gradient")(point, out)
    largest = np.max(point**2, initial=-np.inf)
    assert value == pytest.approx(float(np.sum(point * np.sin(point))) + largest, rel=1e-13)
    expected = np.sin(point) + point * np.cos(point)
    if n:
        expected[np.argmax(point**2)] += 2 * point[np.argmax(point**2)]
    np.testing.assert_allclose(out, expected, rtol=1e-13)


@pytest.mark.parametrize("n", [0, 1, 33])
def test_every_kind_of_loop(n: int) -> None:
    # Of nothing too: then the gradient of a recurrence has parts of one element less.
    assert (
        everything.differs(everything.evaluated(n, "c"), everything.evaluated(n, "numpy")) < 1e-12
    )


@pytest.mark.parametrize("n", [10, 10_000])
def test_vectors_that_overlap_or_are_strided(n: int) -> None:
    dim = named("n")
    x = build.variable("x", (dim,))
    kernels = kernels_of(build.sum_over(fn.mul(fn.square(x), x), (0,)), [x], n=n)
    run = kernels.function("value_and_gradient")
    point = np.random.default_rng(0).normal(size=n)
    both = point.copy()
    run(both, both)
    np.testing.assert_allclose(both, 3 * point**2, rtol=1e-14)
    wide, out = np.zeros(2 * n), np.zeros(2 * n)
    wide[::2] = point
    run(wide[::2], out[1::2])
    np.testing.assert_allclose(out[1::2], 3 * point**2, rtol=1e-14)
    assert not out[::2].any()
    reversed_twice = point[::-1].copy()[::-1]
    run(reversed_twice, out[:n])
    np.testing.assert_allclose(out[:n], 3 * point**2, rtol=1e-14)


def test_a_function_outlives_what_made_it() -> None:
    import gc

    dim = named("n")
    x = build.variable("x", (dim,))
    run = kernels_of(build.sum_over(fn.exp(x), (0,)), [x], n=4).function("value")
    gc.collect()
    junk = [np.full(64, 1e300) for _ in range(100)]
    assert run(np.zeros(4)) == 4.0
    assert len(junk) == 100


def test_single_precision() -> None:
    dim = named("n")
    x = build.variable("x", (dim,))
    objective = build.sum_over(fn.mul(fn.exp(x), fn.tanh(x)), (0,))
    kernels = kernels_of(objective, [x], "float32", n=700)
    point = np.random.default_rng(0).normal(size=700)
    out = np.zeros(700)
    value = kernels.function("value_and_gradient")(point, out)
    terms = np.exp(point) * np.tanh(point)
    assert value == pytest.approx(float(terms.sum()), abs=1e-6 * float(np.abs(terms).sum()))
    slope = np.exp(point) * (np.tanh(point) + 1 / np.cosh(point) ** 2)
    np.testing.assert_allclose(out, slope, rtol=2e-6, atol=1e-6)


def test_it_is_compiled_once(cache: Path) -> None:
    first = model().value(np.ones(3))
    (made,) = cache.iterdir()
    stamp = made.stat().st_mtime_ns
    assert model().value(np.ones(3)) == first == pytest.approx(3 * np.e)
    assert [one.stat().st_mtime_ns for one in cache.iterdir()] == [stamp]
    assert cache.stat().st_mode & 0o777 == 0o700


def test_a_library_that_was_cut_off_is_made_again(cache: Path) -> None:
    model().value(np.ones(3))
    (made,) = cache.iterdir()
    # Another file of this name: the library that is loaded must keep its own.
    whole = made.read_bytes()
    made.unlink()
    made.write_bytes(whole[:100])
    code = (
        "import numpy, slomodel; print(slomodel.compile("
        f"{TEXT!r}, dims={{'n': 3}}, backend='c').value(numpy.ones(3)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(done.stdout) == pytest.approx(3 * np.e)


@pytest.mark.parametrize(
    "fault", ["open to others", "a link", "a file", "not writable", "of another user"]
)
def test_a_cache_that_is_not_ones_own_is_not_used(
    fault: str, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir(mode=0o700)
    cache.parent.mkdir(parents=True)
    if fault == "a link":
        cache.symlink_to(other)
    elif fault == "a file":
        cache.write_text("")
    else:
        cache.mkdir()
        cache.chmod({"open to others": 0o777, "not writable": 0o500}.get(fault, 0o700))
    if fault == "of another user":
        if os.getuid():
            pytest.skip("only root can give a directory away")
        os.chown(cache, 12345, 12345)
    if fault == "not writable":
        real = os.access
        monkeypatch.setattr(os, "access", lambda p, mode: Path(p) != cache and real(p, mode))
    assert model().value(np.ones(3)) == pytest.approx(3 * np.e)
    assert not list(other.iterdir())
    assert fault == "a file" or not list(cache.iterdir())


def test_two_processes_at_once(cache: Path) -> None:
    code = (
        "import numpy, slomodel; print(slomodel.compile("
        f"{TEXT!r}, dims={{'n': 5}}, backend='c').value(numpy.ones(5)))"
    )
    runs = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for run in runs:
        assert float(run.communicate(timeout=120)[0]) == pytest.approx(5 * np.e)
    assert len(list(cache.iterdir())) == 1


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    compiler.compilers.cache_clear()
    yield
    compiler.compilers.cache_clear()


@pytest.mark.usefixtures("no_compiler")
def test_without_a_compiler_there_is_a_sentence() -> None:
    with pytest.raises(TargetLimit, match=r"no C compiler (.|\n)*backend='numexpr'"):
        model().value(np.ones(3))


@pytest.mark.parametrize("script", ["exit 1", "kill -9 $$", "cat > /dev/null; exit 0"])
def test_a_compiler_that_fails_is_not_a_compiler(
    script: str, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "broken"
    broken.write_text(f"#!/bin/sh\n{script}\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CC", str(broken))
    compiler.compilers.cache_clear()
    try:
        assert model().value(np.ones(3)) == pytest.approx(3 * np.e)
        assert compiler.compilers()[0] == str(broken)
    finally:
        compiler.compilers.cache_clear()
    assert len(list(cache.iterdir())) == 1


def test_the_source_is_one_file_of_names_that_we_made() -> None:
    hostile = sp.Symbol('*/ while(1); "')
    text = slomodel.compile(sp.exp(hostile) * hostile, backend="c").source("c")
    assert text.count("double slo_total_inline(") == 1
    for name in ("value", "value_and_gradient", "hvp"):
        assert f"double {name}(void **c)" in text
    comment, code = text.split("*/", 1)
    assert "while(1)" in comment
    assert "while" not in code


@pytest.mark.parametrize("n", [3, 512, 514, 1500])
def test_gradients_that_are_filled_as_the_loop_goes(n: int) -> None:
    # Shifted by 0, 1 and 2, and with an end that no term reaches.
    text = (
        "dim n\nvar x[n]\n"
        "minimize sum((x[i+1] - x[i]^2)^2 + x[i] * x[i+2]^3 for i in range(n - 3 + 1 - 1))"
    )
    if n == 3:
        text = text.replace("n - 3 + 1 - 1", "n - 2")
    x = np.random.default_rng(n).normal(size=n)
    found = np.full(n, 1e300)
    kernel = slomodel.compile(text, dims={"n": n}, backend="c")._function("value_and_gradient")
    kernel(x, found)
    # Whatever lay in the arrays before: the second call meets what the first one left.
    found[:] = np.nan
    kernel(x, found)
    np.testing.assert_allclose(
        found, slomodel.compile(text, dims={"n": n}, backend="numpy").gradient(x), atol=1e-12
    )


@given(example=graphs())
def test_elements_are_read_before_they_are_chosen_from(example: Example) -> None:
    # gcc 12.2 -O3 with AVX makes wrong code of `p[i] ? q[i] : 0.0` in some short loops; beyond the
    # functions that all share, the only conditions left are on the length or start of a block.
    derivatives = Derivatives(example.objective, example.variables)
    compiled = Compiled("own", derivatives, example.data, example.sizes, TARGETS["c"])
    text = compiled.source()
    body = text[text.index("void prepare_value") :]
    for line in body.splitlines():
        assert "?" not in line or re.match(r" *const long (m|l\d+) = ", line)
        assert "&&" not in line
        assert "||" not in line


def test_a_product_with_a_number_for_an_array() -> None:
    n, m = named("n"), named("m")
    x, c = build.variable("x", (m, n)), build.variable("c", ())
    wide = build.broadcast(c, (), (n,))
    product = build.einsum([x, wide], [(0, 1), (1,)], (0,), (m, n))
    kernels = kernels_of(build.sum_over(fn.square(product), (0,)), [x, c], n=3, m=2)
    point = np.arange(1.0, 8.0)
    out = np.zeros(7)
    value = kernels.function("value_and_gradient")(point, out)
    sums = point[:6].reshape(2, 3).sum(axis=1)
    assert value == pytest.approx(49.0 * float(sums @ sums))
    np.testing.assert_allclose(out[:6], np.repeat(2 * 49.0 * sums, 3))
    assert out[6] == pytest.approx(2 * 7.0 * float(sums @ sums))


@pytest.mark.parametrize("variables", ["x[n]", "k[K]", "x[n], k[K]"])
def test_windows_overlap_and_are_not_matrices(variables: str) -> None:
    # Long enough for BLAS, whose leading dimensions are at least the length of a row.
    sizes, rng = {"n": 730, "m": 700, "K": 31}, np.random.default_rng(4)
    arrays = {"x": rng.normal(size=730), "k": rng.normal(size=31), "y": rng.normal(size=700)}
    data = {name: array for name, array in arrays.items() if f"{name}[" not in variables}
    declared = ", ".join(f"{name}[{'nmK'['xyk'.index(name)]}]" for name in data)
    text = f"dim n, m, K data {declared} var {variables}\n"
    text += "minimize sum((y[t] - sum(k[j] * x[t+j] for j in K))^2 for t in m)"
    model = slomodel.compile(text, data=data, dims=sizes, backend="c")
    value, gradient = model.value_and_gradient(
        np.concatenate([arrays[name] for name in "xk" if f"{name}[" in variables])
    )
    windows = np.lib.stride_tricks.sliding_window_view(arrays["x"], 31)
    r = arrays["y"] - windows @ arrays["k"]
    assert value == pytest.approx(float(r @ r), rel=1e-13)
    own = {"x": -2 * np.convolve(r, arrays["k"]), "k": -2 * windows.T @ r}
    wanted = np.concatenate([own[name] for name in "xk" if f"{name}[" in variables])
    np.testing.assert_allclose(gradient, wanted, rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("size", [3, 4, 8])
def test_truth_values_in_short_loops(size: int) -> None:
    # gcc 12.2 -O3 with AVX-512 makes wrong code of two comparisons of 4 numbers that are stored.
    text = "dim N, K data h[N] var a[K-1], b let V[n in N, k in K] = "
    text += "where(k < K - 1, a[k], 0) * h[n] + where(k == 0, b * h[n], 0) minimize sum(exp(V))"
    h = np.array([1.0, 2.0, 3.0, 0.5, -1.0])
    model = slomodel.compile(text, data={"h": h}, dims={"K": size}, backend="c")
    point = np.linspace(0.1, 0.7, size)
    rows = np.append(point[:-1], 0.0) * h[:, None]
    rows[:, 0] += point[-1] * h
    assert model.value(point) == pytest.approx(np.exp(rows).sum(), rel=1e-13)


@pytest.mark.parametrize("size", [4, 6, 12])
def test_conditions_on_indices_are_those_of_the_reference(size: int) -> None:
    # gcc 12.2 with AVX-512 folds comparisons of arrays of constants to wrong truth values, in
    # remainders of 4 lanes.
    text = f"var u[{size}]\nlet up[i in {size}] = where(i < {size} - 1, u[i+1], 0)\n"
    text += f"let down[i in {size}] = where(i > 0, u[i-1], 0)\n"
    text += "minimize sum((up - 2*u + down + exp(u))^2)"
    rng = np.random.default_rng(size)
    x, v = rng.normal(size=(2, size))
    own, other = (slomodel.compile(text, backend=b) for b in ("c", "numpy"))
    np.testing.assert_allclose(own.gradient(x), other.gradient(x), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(own.hvp(x, v), other.hvp(x, v), rtol=1e-12, atol=1e-12)


def test_a_function_of_data_in_an_array_that_loops_compute_again() -> None:
    text = """dim m, p
    data d[m]
    var a, x[p]
    minimize sum(sin(sum(d[j] * sum(d) * a * x[i] * d[j] for j in m)) for i in p)"""
    d, x = np.array([0.5, -1.0, 2.0, 0.25, 1.0]), np.array([0.3, 1.0, -0.7, 0.2, 0.9])
    model = slomodel.compile(text, data={"d": d}, dims={"p": 4}, backend="c")
    wanted = np.sin(d.sum() * (d @ d) * x[0] * x[1:]).sum()
    assert model.value(x) == pytest.approx(wanted, rel=1e-13)
