"""The certificate of a run: nothing violated with valid constants, something with invalid ones."""

import re
from pathlib import Path

import numpy as np
import pytest
from paper.recorded import PROBLEMS, Recorded, recorded, run
from solve.objectives import parabola, rosenbrock

import slomodel
from slomodel.solve import Functions, load_solution, solve

MODELS = Path(__file__).parent.parent.parent / "models"

METHODS = pytest.mark.parametrize("method", ["pgd", "tgd", "agp", "gd"])


@pytest.mark.parametrize("method", ["pgd", "tgd", "agp"])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_nothing_is_violated_with_valid_constants(problem: str, method: str) -> None:
    one: Recorded = recorded(problem, method, 1e-3, 100 if method == "agp" else 400)
    certificate = one.found.certificate
    assert certificate is not None
    assert certificate.holds, certificate.summary
    assert certificate.sources == ("function",)
    assert certificate.lines[0].checked == one.found.nit
    assert not certificate.estimated


@pytest.mark.parametrize("problem", ["expsum", "quartic", "wells"])
def test_rounding_at_the_end_is_not_a_violation(problem: str) -> None:
    for method in ("pgd", "tgd", "agp"):
        one = recorded(problem, method, 1e-9, 3000)
        assert one.found.certificate.holds, one.found.certificate.summary


@pytest.mark.parametrize("method", ["pgd", "tgd"])
def test_constants_that_are_too_small_by_5_are_found(method: str) -> None:
    """On a quadratic function the bound is tight."""
    f = Functions(lambda x: 50.0 * x[0] ** 2 + 0.5 * x[1] ** 2, lambda x: x * [100.0, 1.0], 2)
    options = {"method": method, "D": 2.0, "max_iter": 40, "verify": True}
    right = solve(f, [1.0, 3.0], lipschitz=100.0, **options).certificate
    wrong = solve(f, [1.0, 3.0], lipschitz=20.0, **options).certificate
    assert right is not None
    assert wrong is not None
    assert right.holds
    assert not wrong.holds
    assert wrong.lines[0].state == "violated"
    verdict, *lines, legend = wrong.summary.splitlines()
    assert re.fullmatch(r"\d of the \d inequalities .* violated[.] Constants: .* given[.]", verdict)
    assert re.match(r"a step lowers f by L1/2.* violated \d+ of 40, missed by", lines[0])
    assert legend.startswith("Margins are")
    assert right.summary.startswith("Every inequality of the theorems that was checked")
    nothing = parabola(0.0)
    at_minimum = solve(nothing, [0.0, 0.0], verify=True).certificate
    assert at_minimum is not None
    assert at_minimum.summary.startswith("No inequality of")


def test_bpg_and_gd() -> None:
    held = run("quartic", "bpg", 1e-4, 200, L=12.0, p=4)
    assert held.found.certificate.lines[0].checked == held.found.nit
    assert held.found.certificate.holds
    assert not run("quartic", "bpg", 1e-4, 60, L=0.4, p=4).found.certificate.holds
    assert run("quartic", "gd", 1e-4, 200, L=40.0).found.certificate.holds
    assert not run("rosenbrock", "gd", 1e-4, 60, L=200.0).found.certificate.holds


def test_sampled_constants_are_called_estimates() -> None:
    found = solve(rosenbrock(), [-1.2, 1.0], method="tgd", verify=True, max_iter=200)
    assert found.certificate is not None
    assert found.certificate.estimated
    verdict = found.certificate.summary.splitlines()[0]
    assert verdict.endswith("Constants: samples, which may be too small where the run went.")


@pytest.mark.parametrize("options", [{}, {"D": "auto"}])
def test_proved_constants_of_a_model(options: dict[str, object]) -> None:
    model = slomodel.compile("var x, y\nminimize (x - 3*y)^2 + y^2 - x")
    found = model.solve("tgd", [5.0, -2.0], verify=True, max_iter=50, **options)
    assert found.certificate is not None
    assert found.certificate.holds
    assert found.certificate.sources == ("analytic",)
    assert found.certificate.lines[0].checked == found.nit
    assert model.solve("tgd", [5.0, -2.0], max_iter=5).certificate is None


def test_saved_and_read(tmp_path: Path) -> None:
    one = run("quartic", "agp", 1e-3, 10, D=0.5, lipschitz=lambda centre, radius: (40.0, 40.0))
    one.found.save(tmp_path / "run.npz")
    read = load_solution(tmp_path / "run.npz")
    assert read.certificate == one.found.certificate
    assert read.calls == one.found.calls


def test_a_resumed_run_has_the_same_certificate(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    options = {"method": "tgd", "lipschitz": 2.0, "D": 0.5}
    whole = solve(parabola(30.0), [0.0, 0.0], verify=True, max_iter=60, **options)
    solve(parabola(30.0), [0.0, 0.0], verify=True, max_iter=25, checkpoint=path, **options)
    rest = solve(parabola(30.0), None, method="tgd", max_iter=60, resume=path)
    assert np.array_equal(rest.x, whole.x)
    assert rest.certificate == whole.certificate


# What every file of models/ leaves open, small.
SMALL: dict[str, dict[str, tuple[int, ...]]] = {
    "deep_linear": {"X": (3, 4), "y": (4,)},
    "linear_autoencoder": {"X": (3, 4)},
    "matrix_completion": {"M": (4, 3), "Omega": (4, 3)},
    "phase_retrieval": {"A": (5, 3), "y": (5,)},
    "robust_logistic": {"A": (4, 3), "y": (4,)},
    "rosenbrock": {},
    "softplus_net": {"X": (3, 4), "y": (4,)},
    "tukey_regression": {"A": (4, 3), "y": (4,)},
}


def small(name: str) -> slomodel.Model:
    """The model with normal numbers as data; signs and a mask where it wants them."""
    rng = np.random.default_rng(len(name))
    data = {key: rng.normal(size=shape) for key, shape in SMALL[name].items()}
    if name == "robust_logistic":
        data["y"] = np.sign(data["y"])
    if name == "matrix_completion":
        data["Omega"] = (data["Omega"] > -1.0).astype(float)
    dims = {"n": 4} if name == "rosenbrock" else {}
    return slomodel.compile(MODELS / f"{name}.slo", data=data, dims=dims)


QUICK = ("rosenbrock",)
EVERY = [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in SMALL]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("method", ["pgd", "tgd", "agp", "norm-armijo"])
@pytest.mark.parametrize("name", EVERY)
def test_nothing_is_violated_with_proved_constants_of_a_model(name: str, method: str) -> None:
    model = small(name)
    options = {} if method == "norm-armijo" else {"lipschitz": "analytic", "D": 0.1}
    x0 = model.x0(seed=1) + 0.1
    found = model.solve(method, x0, gtol=1e-4, max_iter=3, verify=True, **options)
    assert found.certificate is not None
    assert found.certificate.holds, found.certificate.summary
    assert found.violations == 0
    assert any(line.checked for line in found.certificate.lines)
