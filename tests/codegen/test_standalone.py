"""Modules of source in an environment with NumPy and numexpr only."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numexpr
import numpy as np
import pytest

import slomodel
from slomodel.errors import ModelWarning
from slomodel.front.data.random_data import random_data

Models = dict[str, tuple[slomodel.Model, dict[str, np.ndarray]]]
# Modules have no constraints.
MODELS = [
    path
    for path in sorted((Path(__file__).parents[2] / "models").glob("*.slo"))
    if "subject to" not in path.read_text("utf-8")
]
TARGETS = ("numpy", "numexpr")

RUN = """
import importlib.util, pathlib, runpy, sys
folder, site = sys.argv[1:3]
sys.path[:] = [one for one in sys.path if "site-packages" not in one] + [site]
import numpy as np
for path in sorted(pathlib.Path(folder).glob("*.py")):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    given = dict(np.load(path.with_name(path.stem.rpartition("-")[0] + ".npz")))
    x, v = given.pop("point of the test"), given.pop("direction of the test")
    value, gradient = module.value_and_gradient(x, given)
    assert value == module.value(x, given) and (gradient == module.gradient(x, given)).all()
    np.savez(path.with_suffix(".out.npz"), value=value, gradient=gradient,
             hvp=module.hvp(x, v, given))
    sys.argv = [str(path)]
    runpy.run_path(str(path), run_name="__main__")
assert not {"scipy", "slomodel", "sympy"} & sys.modules.keys()
"""


def with_data(path: Path) -> tuple[dict[str, int], dict[str, np.ndarray]]:
    """Sizes of the dims that a file leaves open, and all its data: its own, or drawn at random."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        model = slomodel.compile(path)
    known = model._binding.sizes
    dims = {d.name: 5 + k for k, d in enumerate(model._problem.dims) if d.name not in known}
    own = dict(model._binding.arrays)
    drawn = random_data(model._problem, own, {**known, **dims}, np.random.default_rng(0))
    return dims, own | drawn


@pytest.fixture(scope="module")
def models() -> Models:
    made = {}
    for path in MODELS:
        dims, data = with_data(path)
        made[path.stem] = slomodel.compile(path, dims=dims, data=data), data
    return made


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the packages numpy and numexpr alone."""
    folder = tmp_path_factory.mktemp("site")
    for package in (np, numexpr):
        own = Path(package.__file__).parent
        for one in (own, own.with_name(f"{own.name}.libs")):
            if one.exists():
                os.symlink(one, folder / one.name)
    return folder


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", [path.stem for path in MODELS])
def test_it_imports_numpy_and_numexpr_only(name: str, models: Models) -> None:
    for target in TARGETS:
        text = models[name][0].source(target)
        tree = ast.walk(ast.parse(text))
        found = {n.module for n in ast.walk(ast.parse(text)) if isinstance(n, ast.ImportFrom)}
        found |= {a.name for n in tree if isinstance(n, ast.Import) for a in n.names}
        assert found <= {"numpy", "itertools", "sys", *({"numexpr"} if target == "numexpr" else ())}
        assert models[name][0].source(target) == text


def test_it_gives_the_librarys_values(models: Models, site: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    points = {}
    for name, (model, data) in models.items():
        x, v = 0.5 * rng.normal(size=model.n), rng.normal(size=model.n)
        own = {"point of the test": x, "direction of the test": v}
        np.savez(tmp_path / f"{name}.npz", **data, **own)
        points[name] = x, v
        for target in TARGETS:
            text = model.source(target)
            (tmp_path / f"{name}-{target}.py").write_text(text, encoding="utf-8")
    command = [sys.executable, "-I", "-S", "-c", RUN, str(tmp_path), str(site)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines().count("ok") == len(models) * len(TARGETS)
    for name, (x, v) in points.items():
        model = models[name][0]
        value, gradient = model.value_and_gradient(x)
        expected = {"value": value, "gradient": gradient, "hvp": model.hvp(x, v)}
        for target in TARGETS:
            found = np.load(tmp_path / f"{name}-{target}.out.npz")
            for key, one in expected.items():
                scale = np.max(np.abs(one))
                np.testing.assert_allclose(found[key], one, rtol=0, atol=1e-13 * scale)


@pytest.mark.parametrize("fault", ["a wrong gradient", "data that is not there"])
def test_the_self_check_sees_a_fault(fault: str, tmp_path: Path) -> None:
    text = slomodel.compile(MODELS[0].with_name("rosenbrock.slo"), dims={"n": 6}).source("numpy")
    file, missing = tmp_path / "kernels.py", tmp_path / "missing.npz"
    if fault == "a wrong gradient":
        assert text.count("np.copyto(out, g)") == 2
        text = text.replace("np.copyto(out, g)", "np.copyto(out, 1.001 * g)")
    file.write_text(text, encoding="utf-8")
    given = [str(missing)] if fault == "data that is not there" else []
    command = [sys.executable, file, *given]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert ("differs by" if not given else "missing.npz") in done.stderr
    assert "ok" not in done.stdout
