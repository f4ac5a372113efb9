"""Target `cupy` on the CPU: the models of models/, and steps of the solver from the same points."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from codegen.cuda import standin
from codegen.test_standalone import MODELS, with_data

import slomodel

COLUMNS = 300
"""So many data points of the files are enough for sums that several blocks share."""
ROOT = Path(__file__).parents[3]


@cache
def models(name: str) -> tuple[slomodel.Model, slomodel.Model]:
    """A model with data for NumPy and for CuPy; that one needs the stand-in."""
    path = ROOT / "models" / f"{name}.slo"
    dims, data = with_data(path)
    data = {
        key: array[..., :COLUMNS] if array.shape[-1:] == (6000,) else array
        for key, array in data.items()
    }
    made = [
        slomodel.compile(path, data=data, dims=dims, backend=backend)
        for backend in ("numpy", "cupy")
    ]
    return made[0], made[1]


def sizes_of_terms(model: slomodel.Model, x: np.ndarray) -> float:
    """A bound from below for the sum of the sizes of the terms: value and gradient themselves."""
    value, gradient = model.value_and_gradient(x)
    return abs(value) + float(np.max(np.abs(gradient)))


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", [path.stem for path in MODELS])
def test_values_and_steps_are_those_of_the_cpu(
    name: str, cupy_on_cpu: type[standin.RawModule]
) -> None:
    numpy, cupy = models(name)
    rng = np.random.default_rng(3)
    x, v = 0.5 * rng.normal(size=numpy.n), rng.normal(size=numpy.n)
    allowed = 1e-12 * sizes_of_terms(numpy, x)
    value, gradient = cupy.value_and_gradient(x)
    expected, slope = numpy.value_and_gradient(x)
    assert abs(value - expected) <= allowed
    assert cupy.value(x) == pytest.approx(value, abs=allowed)
    np.testing.assert_allclose(gradient, slope, rtol=0, atol=allowed)
    again = cupy.value_and_gradient(x)
    assert again[0] == value
    assert again[1].tobytes() == gradient.tobytes()
    product, curvature = cupy.hvp(x, v), numpy.hvp(x, v)
    np.testing.assert_allclose(product, curvature, atol=1e-12 * np.max(np.abs(curvature)))
    cupy_on_cpu.orders = (3,)
    for _ in range(5):
        one, other = (
            m.solve("norm-armijo", x0=x, direction="gradient", max_iter=1, gtol=1e-300)
            for m in (numpy, cupy)
        )
        scale = np.max(np.abs(one.x)) + np.max(np.abs(one.x - x))
        np.testing.assert_allclose(other.x, one.x, rtol=0, atol=1e-12 * scale)
        assert other.fun == pytest.approx(one.fun, abs=1e-12 * sizes_of_terms(numpy, x))
        x = one.x


@pytest.mark.usefixtures("cupy_on_cpu")
def test_a_standalone_module_runs_and_checks_itself(tmp_path: Path) -> None:
    numpy, cupy = models("softplus_net")
    text = cupy.source()
    assert text == cupy.source("cupy") == numpy.source("cupy")
    assert f'CUDA = r"""{numpy.source("cuda").rstrip()}' in text
    (tmp_path / "kernels.py").write_text(text, encoding="utf-8")
    script = (
        "import sys, runpy\n"
        f"sys.path.insert(0, {str(Path(standin.__file__).parent)!r})\n"
        "import standin; sys.modules['cupy'] = standin.module()\n"
        "runpy.run_path(sys.argv[1], run_name='__main__')\n"
        "assert not {'slomodel', 'scipy'} & sys.modules.keys()\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "kernels.py")]
    # The program reads its data from its first argument, which here is none.
    command[2] = script.replace("runpy.run_path(sys.argv[1]", "runpy.run_path(sys.argv.pop()")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("ok\n")
