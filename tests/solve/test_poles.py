"""Objectives that tend to minus infinity towards a point, and bounded ones that resemble them."""

import numpy as np
import pytest

import slomodel
from slomodel import Status

pytestmark = pytest.mark.filterwarnings("ignore::slomodel.errors.ModelWarning")

LINE = "dim n\ndata t[n], y[n]\nvar a, b"
T = np.linspace(0.0, 1.0, 11)
EXACT = {"t": T, "y": 1.0 + 2.0 * T}
NOISY = {"t": T, "y": 1.0 + 2.0 * T + 0.1 * np.sin(40.0 * T)}
SQUARES = "(y[i] - a - b*t[i])^2"
NORMAL = f"{LINE}, s init 1\nminimize sum(log(s^2)/2 + {SQUARES}/(2*s^2) for i in n)"
UNBOUNDED = {
    "deviation of an exact fit": (NORMAL, EXACT),
    "its logarithm": (
        f"{LINE}, s\nminimize sum(s + {SQUARES}/(2*exp(2*s)) for i in n)",
        EXACT,
    ),
    "deviation in a set": (
        f"{LINE}\nvar s > 0 init 1\nminimize sum(log(s) + {SQUARES}/(2*s^2) for i in n)",
        EXACT,
    ),
    "variance of equal data": (
        "data y[5]\nvar m, s init 1\nmaximize -5*log(s) - sum((y[i] - m)^2 for i in 5)/(2*s^2)",
        {"y": np.full(5, 2.0)},
    ),
    "concentrated": (f"{LINE}\nminimize n/2*log(sum({SQUARES} for i in n))", EXACT),
    "distance": (
        "data c[2]\nvar x[2] init 1\nminimize log(sumsq(x - c)) + x[0]/9",
        {"c": [3.0, 4]},
    ),
    "logarithm": ("var x init 1, z init 1\nminimize log(x) + z^2", {}),
    "some deviations": (
        f"{LINE}, s0 init 1, s1\n"
        f"minimize sum(log((s0 + s1*t[i])^2) + {SQUARES}/(s0 + s1*t[i])^2 for i in n)",
        NOISY,
    ),
}
BOUNDED = {
    "noise": (NORMAL, NOISY, [0.0, 0.0, 1.0]),
    "prior": (f"{NORMAL} + 1e-6/s^2", EXACT, [0.0, 0.0, 1.0]),
    "tiny prior": (f"{NORMAL} + 1e-16/s^2", EXACT, [0.0, 0.0, 1.0]),
    "regularised": ("var x\nminimize log(x^2 + 1e-16)", {}, [1.0]),
    "regularised more finely": ("var x\nminimize log((x - 1)^2 + 1e-24)", {}, [3.0]),
    "small power": ("var x\nminimize (x^2)^0.3", {}, [1.0]),
    "root of a norm": ("var x[3]\nminimize (sumsq(x - 1))^0.25", {}, [1.0, 2.0, 5.0]),
    "plateau": ("var x\nminimize -exp(-x^2/2)", {}, [20.0]),
    "lower plateau": ("var x[2]\nminimize -exp(-sumsq(x)/2)", {}, [6.0, 4.0]),
    "from far away": ("var x\nminimize log(1 + x^2)", {}, [1e8]),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", UNBOUNDED)
def test_a_pole_is_not_a_solution(name: str) -> None:
    text, data = UNBOUNDED[name]
    model = slomodel.compile(text, data=data, backend="numpy")
    found = model.solve()
    assert found.status is Status.unbounded, found.message
    way = "rose" if "maximize" in text else "fell"
    assert f"{way} by about" in found.message
    assert "each time the gradient norm doubled" in found.message
    assert "a variance or a distance that vanishes" in found.message
    assert "kink" not in found.message


@pytest.mark.sampled(3)
@pytest.mark.parametrize("method", ["auto", "norm-armijo", "std-armijo", "adgd"])
@pytest.mark.parametrize("name", BOUNDED)
def test_bounded_objectives_are_not_called_unbounded(name: str, method: str) -> None:
    text, data, x0 = BOUNDED[name]
    model = slomodel.compile(text, data=data, backend="numpy")
    found = model.solve(method, x0, max_iter=300)
    assert found.status is not Status.unbounded, found.message


def test_a_run_that_resumes_at_a_pole_is_not_solved() -> None:
    text, data = UNBOUNDED["concentrated"]
    model = slomodel.compile(text, data=data, backend="numpy")
    x = model.solve().x
    assert not model.solve(x0=x).success
    assert not model.solve("norm-armijo", x, direction="lbfgs").success


def test_the_edge_of_the_domain_is_not_a_kink() -> None:
    found = slomodel.compile("var x init 1\nminimize x + sqrt(x - 0.3)", backend="numpy").solve()
    assert found.status is Status.line_search_stalled
    assert "as in `var s > 0`" in found.message
    assert "kink" not in found.message
