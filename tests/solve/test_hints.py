"""Messages translate names of other solvers' options and methods."""

import pytest
from solve.objectives import parabola

from slomodel.errors import DomainError
from slomodel.solve import solve


def help_of(**options: object) -> str:
    with pytest.raises(DomainError) as caught:
        solve(parabola(), [0.0, 0.0], **options)
    return str(caught.value).rpartition("help: ")[2]


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("maxiter", "max_iter"),
        ("max_iters", "max_iter"),
        ("tol", "gtol"),
        ("gtoll", "gtol"),
        ("verbose", "progress"),
        ("disp", "progress"),
        ("maxfun", "max_nfev"),
        ("random_state", "seed"),
        ("n_jobs", "threads"),
        ("Delta-Bar", "delta_bar"),
        ("Direction", "direction"),
    ],
)
def test_options(name: str, ours: str) -> None:
    assert help_of(method="auto", **{name: 1}) == f"did you mean {ours!r}?"


def test_needless_options() -> None:
    assert "leave jac out" in help_of(jac=True)
    assert "leave bounds out" in help_of(bounds=[(0, 1)])
    assert help_of(zzzz=1) == "leave zzzz out"


def test_common_options_are_listed() -> None:
    with pytest.raises(DomainError, match="every run takes method, x0, gtol, scaled, max_iter"):
        solve(parabola(), [0.0, 0.0], zzzz=1)


@pytest.mark.parametrize("name", ["lbfgs", "LBFGS", "L-BFGS-B", "l_bfgs", "bfgs"])
def test_lbfgs_is_a_direction(name: str) -> None:
    assert "method norm-armijo (or auto) with direction lbfgs" in help_of(method=name)


@pytest.mark.parametrize(
    ("option", "value", "meant"),
    [
        ("method", "NORM-ARMIJO", "norm-armijo"),
        ("method", "Norm_Armijo", "norm-armijo"),
        ("method", "AUTO", "auto"),
        ("direction", "LBFGS", "lbfgs"),
        ("initial_step", "BB", "bb"),
    ],
)
def test_case_does_not_matter(option: str, value: str, meant: str) -> None:
    assert help_of(**{option: value}) == f"did you mean {meant!r}?"


def test_directions_are_not_methods() -> None:
    assert "norm-armijo (or auto) with direction newton-cg" in help_of(method="Newton_CG")


@pytest.mark.parametrize("value", [1, "yes", 0.5, object])
def test_progress_of_another_type(value: object) -> None:
    assert "True, False or an object with update(state) and close()" in help_of(progress=value)


@pytest.mark.parametrize("value", [3, "print", [print]])
def test_callback_of_another_type(value: object) -> None:
    assert "a function" in help_of(callback=value)


def test_scaled_of_another_type() -> None:
    assert "True or False" in help_of(scaled="no")
