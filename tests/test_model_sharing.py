"""Models that are bound again, pickled, used by many threads, or exported as a module."""

import pickle
import subprocess
import sys
import threading
import types
from pathlib import Path

import numpy as np
import pytest

import slomodel
from slomodel.codegen import kernels
from slomodel.codegen.python import target as python_target
from slomodel.front import source

MODELS = Path(__file__).parent.parent / "models"
TARGETS = ("numpy", "numexpr")
LOGISTIC = """dim m, n
data A[m, n], y[m], lam = 0.5
var x[n], c
minimize mean(softplus(-y * (A @ x + c))) + lam * sumsq(x)
"""
SIMPLE = "dim n data a[n], s = 2 var x[n] init 0 minimize s * sumsq(x - a)"


def drawn(m: int, n: int, seed: int = 0) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(seed)
    return {"A": draw.standard_normal((m, n)), "y": np.sign(draw.standard_normal(m))}


def refuse(*args: object) -> None:
    raise AssertionError("work that was done already is done again")


def logistic(x: np.ndarray, A: np.ndarray, y: np.ndarray, lam: float = 0.5) -> float:
    losses = np.logaddexp(0.0, -y * (A @ x[:-1] + x[-1]))
    return float(losses.mean() + lam * x[:-1] @ x[:-1])


@pytest.mark.parametrize("backend", TARGETS)
def test_bind_with_the_same_sizes_plans_nothing(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = slomodel.compile(LOGISTIC, data=drawn(6, 3), backend=backend)
    x = model.x0()
    before = model.value(x), model.gradient(x), model.hvp(x, x)
    for name in ("plan", "load"):
        monkeypatch.setattr(python_target, name, refuse)
    for name in ("gradient", "jvp"):
        monkeypatch.setattr(kernels, name, refuse)
    data = drawn(6, 3, seed=1)
    other = model.bind(**data, lam=0.25)
    assert other.value(x) == pytest.approx(logistic(x, **data, lam=0.25), rel=1e-14)
    assert other.gradient(x).shape == (4,)
    assert other.hvp(x, x).shape == (4,)
    assert (model.value(x), *map(list, (model.gradient(x), model.hvp(x, x)))) == (
        before[0],
        *map(list, before[1:]),
    )


@pytest.mark.parametrize("backend", TARGETS)
def test_bind_with_other_sizes_neither_parses_nor_differentiates(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = slomodel.compile(LOGISTIC, data=drawn(6, 3), backend=backend)
    model.hvp(model.x0(), model.x0())
    data = drawn(9, 5)
    fresh = slomodel.compile(LOGISTIC, data=data, backend=backend)
    x = fresh.x0(1)
    expected = fresh.gradient(x)
    for module, name in ((kernels, "gradient"), (kernels, "jvp")):
        monkeypatch.setattr(module, name, refuse)
    for name in ("parse", "elaborate"):
        monkeypatch.setattr(source, name, refuse)
    other = model.bind(**data)
    assert (model.n, other.n) == (4, 6)
    assert other.value(x) == pytest.approx(logistic(x, **data), rel=1e-14)
    assert np.array_equal(other.gradient(x), expected)


def test_the_rest_of_the_data_is_kept() -> None:
    a = np.arange(3.0)
    model = slomodel.compile(SIMPLE, data={"a": a})
    a[:] = 100.0
    assert model.value(np.zeros(3)) == 10.0
    assert model.bind(s=1).value(np.zeros(3)) == 5.0
    assert model.bind(s=1).bind(a=[1, 0, 0]).value(np.zeros(3)) == 1.0
    assert model.value(np.zeros(3)) == 10.0


def test_data_that_does_not_fit_the_rest() -> None:
    model = slomodel.compile(LOGISTIC, data=drawn(6, 3))
    with pytest.raises(slomodel.ShapeError, match=r"dim `m` is 5 in data `y` \[m\], but 6 in"):
        model.bind(y=np.ones(5))
    with pytest.raises(slomodel.ShapeError, match=r"but 4 in dims=\{'n': 4\}"):
        slomodel.compile(LOGISTIC, data=drawn(6, 3), dims={"n": 4})


def test_missing_data() -> None:
    model = slomodel.compile(LOGISTIC)
    assert model.missing == ("A", "y")
    assert "A [m, n], missing" in model.explain()
    with pytest.raises(slomodel.ShapeError, match="size of dim `m`, `n` is not known"):
        model.x0()
    sized = slomodel.compile(LOGISTIC, dims={"m": 6, "n": 3}, data={"y": np.ones(6)})
    assert sized.missing == ("A",)
    assert sized.n == 4
    assert "def value_and_gradient(" in sized.source()
    for call in (sized.value, sized.gradient, lambda x: sized.hvp(x, x), lambda x: sized.solve()):
        with pytest.raises(
            slomodel.ShapeError, match=r"no values for data `A`(.|\n)*with bind\(A="
        ):
            call(sized.x0())
    data = drawn(6, 3)
    full = sized.bind(A=data["A"])
    assert full.missing == ()
    x = full.x0(2)
    assert full.value(x) == pytest.approx(logistic(x, data["A"], np.ones(6)), rel=1e-14)


@pytest.mark.parametrize("backend", TARGETS)
def test_pickle(backend: str) -> None:
    model = slomodel.compile(LOGISTIC, data=drawn(6, 3), backend=backend)
    x = model.x0(1)
    value = model.value(x)
    again = pickle.loads(pickle.dumps(model))
    assert again.value(x) == value
    assert np.array_equal(again.gradient(x), model.gradient(x))
    assert again.source() == model.source()
    missing = pickle.loads(pickle.dumps(slomodel.compile(LOGISTIC, dims={"n": 2})))
    assert missing.missing == ("A", "y")


def test_pickle_in_another_process_and_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The data of a file travels along: the path need not lead anywhere there."""
    monkeypatch.chdir(MODELS.parent)
    model = slomodel.compile("models/softplus_net.slo", dims={"h": 3})
    x = model.x0(1)
    solution = model.solve(x0=x, max_iter=2)
    (tmp_path / "both.pickle").write_bytes(pickle.dumps((model, solution)))
    script = """
import pickle, sys
with open("both.pickle", "rb") as file:
    model, solution = pickle.load(file)
value, gradient = model.value_and_gradient(solution.x)
assert value == solution.fun and (gradient == solution.jac).all()
assert model.solve(x0=model.x0(1), max_iter=2).fun == solution.fun
assert set(solution.variables) == {"W", "b", "v", "c"} and solution.status == "max_iter"
assert model.bind(lam=0).n == model.n
"""
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)


@pytest.mark.parametrize("backend", TARGETS)
def test_eight_threads_on_one_model(backend: str) -> None:
    # 3,000 rows: above the 2,048 elements from which numexpr would use threads of its own.
    model = slomodel.compile(LOGISTIC, data=drawn(3000, 4), backend=backend)
    points = np.random.default_rng(2).standard_normal((8, 5))
    serial = [(*model.value_and_gradient(x), model.hvp(x, x)) for x in points]
    wrong: list[object] = []
    barrier = threading.Barrier(8)

    def work(k: int) -> None:
        barrier.wait()
        for turn in range(40):
            j = (k + turn) % 8
            value, gradient = model.value_and_gradient(points[j])
            product = model.hvp(points[j], points[j])
            expected = serial[j]
            if value != expected[0] or not np.array_equal(gradient, expected[1]):
                wrong.append((k, turn, "gradient"))
            if not np.array_equal(product, expected[2]):
                wrong.append((k, turn, "hvp"))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_threads_share_a_first_call() -> None:
    """Kernels are built on first use, whichever thread comes first."""
    model = slomodel.compile(LOGISTIC, data=drawn(50, 4))
    x = model.x0(1)
    found: list[tuple[float, list[float]]] = []
    barrier = threading.Barrier(8)

    def work() -> None:
        barrier.wait()
        value, gradient = model.value_and_gradient(x)
        found.append((value, gradient.tolist()))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert all(one == found[0] for one in found)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ["tukey_regression", "phase_retrieval"])
def test_the_module_runs_alone(name: str, target: str) -> None:
    draw = np.random.default_rng(4)
    data = {"A": draw.standard_normal((7, 3)), "y": draw.standard_normal(7) ** 2}
    model = slomodel.compile(MODELS / f"{name}.slo", data=data)
    text = model.source(target)
    assert "slomodel" not in {line.split()[1] for line in text.splitlines() if "import" in line}
    module = types.ModuleType("standalone")
    exec(compile(text, "standalone.py", "exec"), module.__dict__)
    x, v = draw.standard_normal((2, 3))
    given = {**data, "c": 4.685} if name == "tukey_regression" else data
    value, gradient = module.value_and_gradient(x, given)
    assert value == module.value(x, given) == pytest.approx(model.value(x), rel=1e-13)
    np.testing.assert_allclose(gradient, model.gradient(x), rtol=1e-12)
    np.testing.assert_allclose(module.gradient(x, given), gradient, rtol=0)
    np.testing.assert_allclose(module.hvp(x, v, given), model.hvp(x, v), rtol=1e-11)


def test_source_is_what_runs_and_the_same_every_time() -> None:
    model = slomodel.compile(LOGISTIC, data=drawn(6, 3))
    text = model.source()
    assert text == model.source("numexpr") == slomodel.compile(LOGISTIC, data=drawn(6, 3)).source()
    assert text != model.source("numpy")
    with pytest.raises(slomodel.DomainError, match="graph, found 'fortran'"):
        model.source("fortran")
