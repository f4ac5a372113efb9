"""Target `cupy` on a real device; `pytest -m gpu`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from codegen.cuda.everything import LENGTHS, differs, evaluated
from codegen.test_standalone import MODELS, with_data

import slomodel
from slomodel.codegen.cuda.target import require_device
from slomodel.errors import TargetLimit

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def device() -> None:
    """Skips where there is none, and says what is missing."""
    try:
        require_device()
    except TargetLimit as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("n", LENGTHS)
def test_every_kind_of_kernel(n: int) -> None:
    assert differs(evaluated(n, "cupy"), evaluated(n, "numpy")) < 1e-10


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_models_have_the_values_of_the_cpu_and_the_same_bits_again(path: Path) -> None:
    dims, data = with_data(path)
    model, cpu = (
        slomodel.compile(path, dims=dims, data=data, backend=backend)
        for backend in ("cupy", "numpy")
    )
    rng = np.random.default_rng(3)
    x, v = 0.5 * rng.normal(size=model.n), rng.normal(size=model.n)
    value, gradient = model.value_and_gradient(x)
    product = model.hvp(x, v)
    expected, slope = cpu.value_and_gradient(x)
    curvature = cpu.hvp(x, v)
    assert value == pytest.approx(expected, rel=1e-11)
    np.testing.assert_allclose(gradient, slope, atol=1e-11 * np.max(np.abs(slope)))
    np.testing.assert_allclose(product, curvature, atol=1e-11 * np.max(np.abs(curvature)))
    again = model.value_and_gradient(x)
    assert (again[0], again[1].tobytes()) == (value, gradient.tobytes())
    assert model.hvp(x, v).tobytes() == product.tobytes()


def test_points_on_the_device() -> None:
    import cupy

    text = "dim n\nvar x[n]\nminimize sum(log(1 + x[i]^2) for i in range(n))"
    for n in (10, 100_000):
        model = slomodel.compile(text, dims={"n": n}, backend="cupy")
        x = np.random.default_rng(0).normal(size=n)
        value, gradient = model.value_and_gradient(cupy.asarray(x))
        assert isinstance(gradient, cupy.ndarray)
        assert value == pytest.approx(float(np.log1p(x**2).sum()), rel=1e-12)
        np.testing.assert_allclose(gradient.get(), 2 * x / (1 + x**2), rtol=1e-12)


def test_a_standalone_module_checks_itself(tmp_path: Path) -> None:
    text = slomodel.compile(MODELS[0].with_name("softplus_net.slo")).source("cupy")
    (tmp_path / "kernels.py").write_text(text, encoding="utf-8")
    command = [sys.executable, str(tmp_path / "kernels.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.endswith("ok\n"), done.stderr
