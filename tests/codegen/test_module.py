"""The text of generated modules: stable, independent of sizes, and self-contained."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slomodel import functions as fn
from slomodel.codegen.kernels import TARGETS, Compiled, Derivatives
from slomodel.codegen.python.names import number
from slomodel.codegen.python.numexpr_target import _literal
from slomodel.ir import build
from slomodel.ir.dims import Dim, named
from slomodel.ir.expr import Affine

M, N = named("m"), named("n")
A, Y = build.data("A", (M, N)), build.data("λ_data", (M,))
X, C = build.variable("np", (N,)), build.variable("out", ())
RESIDUAL = fn.sub(fn.add(build.matmul(A, X), C), Y)
OBJECTIVE = build.sum_over(fn.softplus(fn.mul(RESIDUAL, fn.erf(RESIDUAL))), (0,))


def source(target: str, m: int = 4, n: int = 3) -> str:
    derivatives = Derivatives(OBJECTIVE, [X, C])
    return Compiled("demo", derivatives, [A, Y], {"m": m, "n": n}, TARGETS[target]).source()


@pytest.mark.parametrize(
    ("target", "m", "n"), [("numpy", 400_000, 7), ("numexpr", 5, 7), ("numexpr", 4, 300)]
)
def test_the_text_depends_on_sizes_in_its_header_only(target: str, m: int, n: int) -> None:
    small, large = source(target).splitlines(), source(target, m, n).splitlines()
    assert len(small) == len(large)
    different = [one for one, other in zip(small, large, strict=True) if one != other]
    assert set(different) <= {"n0 = 4  # m", "n1 = 3  # n"}


@pytest.mark.parametrize("target", ["numexpr", "numpy"])
def test_a_polynomial_of_many_and_of_a_million_variables_has_one_text(target: str) -> None:
    n = named("n")
    x = build.variable("x", (n,))
    head = build.gather(x, [Affine(Dim(), (1,))], (n - 1,))
    tail = build.gather(x, [Affine(Dim((), 1), (1,))], (n - 1,))
    curve, rest = fn.sub(tail, fn.square(head)), fn.sub(1.0, head)
    objective = fn.add(fn.mul(100.0, build.inner(curve, curve)), build.inner(rest, rest))
    texts = []
    for size in (10_000, 1_000_000):
        compiled = Compiled("r", Derivatives(objective, [x]), [], {"n": size}, TARGETS[target])
        texts.append([line for line in compiled.source().splitlines() if "# n" not in line])
    assert texts[0] == texts[1]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("target", ["numexpr", "numpy", "cupy"])
def test_two_processes_print_the_same_bytes(target: str, tmp_path: Path) -> None:
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import test_module; sys.stdout.reconfigure(encoding='utf-8')\n"
        "sys.stdout.write(test_module.source(sys.argv[2]))\n"
    )
    command = [sys.executable, "-c", script, str(Path(__file__).parent), target]
    seen = {subprocess.run(command, capture_output=True, check=True).stdout for _ in range(2)}
    assert seen == {source(target).encode()}


@pytest.mark.parametrize("target", ["numexpr", "numpy"])
def test_it_holds_only_names_that_we_made(target: str) -> None:
    tree = ast.parse(source(target))
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    names |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    ours = r"[bcdgikowxvns]\d*|np|float|bool|data|arrays|shapes|name|shape|point|direction|out"
    ours += r"|value|gradient|hvp|value_and_gradient|NumExpr|real|seen|now|special|ValueError"
    ours += r"|_arrays|_vector|vector|given|defaults|make_\w+|__name__|self_check|_drawn|rng|f"
    ours += r"|step|h|difference|function|near|far|slope|curvature|errors|error|worst|allowed"
    ours += r"|print|abs|max|dict|sys|len|unknown|list|TypeError"
    assert {name for name in names if not re.fullmatch(ours, name)} == set()
    imported = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    } | {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported <= {"numpy", "numexpr", "scipy", "sys"}


@pytest.mark.parametrize("target", ["numexpr", "numpy"])
def test_it_runs_without_slomodel(target: str, tmp_path: Path) -> None:
    (tmp_path / "kernels.py").write_text(source(target), encoding="utf-8")
    script = """
import sys; sys.path.insert(0, sys.argv[1])
import numpy as np, kernels
rng = np.random.default_rng(0)
data = {"A": rng.normal(size=(4, 3)), "λ_data": [1, 2, 3, 4]}
x, v = rng.normal(size=4), rng.normal(size=4)
f, g = kernels.value_and_gradient(x, data)
assert f == kernels.value(x, data) and (g == kernels.gradient(x, data)).all()
h = 1e-6
up, down = kernels.gradient(x + h * v, data), kernels.gradient(x - h * v, data)
assert np.allclose((up - down) / (2 * h), kernels.hvp(x, v, data), atol=1e-7)
slope = (kernels.value(x + h * v, data) - kernels.value(x - h * v, data)) / (2 * h)
assert np.isclose(slope, g @ v, atol=1e-7)
try:
    kernels.value(x, {**data, "A": np.ones((3, 3))})
except ValueError as error:
    assert "A has shape (3, 3), expected (4, 3)" in str(error)
else:
    raise AssertionError("a wrong shape was taken")
assert "slomodel" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True)


@given(st.floats())
def test_literals_read_back_as_the_very_same_double(value: float) -> None:
    text = number(value)
    assert np.float64(eval(text, {"np": np})).tobytes() == np.float64(value).tobytes() or (
        np.isnan(value) and text == "np.nan"
    )
    again = eval(_literal(value))
    assert (again == value and np.signbit(again) == np.signbit(value)) or np.isnan(value)


def test_infinite_and_nan_constants_in_a_kernel() -> None:
    x = build.variable("x", (N,))
    limits = [float("inf"), float("-inf"), float("nan"), -0.0]
    total = fn.minimum(x, build.const(limits[0]))
    total = fn.maximum(fn.add(total, build.const(1.0)), build.const(limits[1]))
    shown = fn.add(fn.mul(total, build.const(2.0)), build.const(limits[2]))
    derivatives = Derivatives(build.sum_over(total, (0,)), [x])
    compiled = Compiled("limits", derivatives, [], {"n": 3}, TARGETS["numexpr"])
    assert compiled.maker("value")({})(np.array([1.0, 2.0, 3.0])) == 9.0
    derivatives = Derivatives(build.sum_over(shown, (0,)), [x])
    compiled = Compiled("limits", derivatives, [], {"n": 3}, TARGETS["numexpr"])
    assert np.isnan(compiled.maker("value")({})(np.array([1.0, 2.0, 3.0])))
