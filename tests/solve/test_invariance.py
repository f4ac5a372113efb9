"""`auto` in other units of f and x: the same iterates to the bit, and as good an end."""

import numpy as np
import pytest

import slomodel
from benchmarks.solvers_profile import Case, Counted
from slomodel.solve import solve

T = np.linspace(0.1, 2.0, 8)
T99 = np.arange(1.0, 100.0) / 100.0
INVARIANT = {
    "kinks": (
        "dim m data t[m], y[m] var a init 5, b init 2.5, c init 0.15 "
        "minimize sum((exp(-abs(y[i] - b)^c/a) - t[i])^2 for i in m)",
        {"t": T99, "y": 25.0 + (-50.0 * np.log(T99)) ** (2.0 / 3.0)},
    ),
    "squares": (
        "dim m data t[m], y[m] var a init 0.5, b init 0.5 "
        "minimize sum((a * exp(-b*t[i]) - y[i])^2 for i in m)",
        {"t": T, "y": np.exp(-T) + 0.1 * np.sin(9 * T)},
    ),
    "smooth": ("var x[6] init 0.7 minimize sum(exp(x[i]) - (i + 1)*x[i] for i in range(6))", {}),
    "sparse": (
        "var x[40] init 0.5 "
        "minimize sum((x[i] - 1)^2 + 9*(x[i+1] - x[i]^2)^2 for i in range(39)) + cos(x[0])",
        {},
    ),
}


@pytest.mark.filterwarnings("ignore::slomodel.errors.NonsmoothWarning")
@pytest.mark.parametrize(("of_f", "of_x"), [(2.0**40, 1.0), (0.25**9, 1.0), (1.0, 2.0**20)])
@pytest.mark.parametrize("name", INVARIANT)
def test_units_change_no_bit_of_an_iterate(name: str, of_f: float, of_x: float) -> None:
    """f·2^k at x/2^j from a start that is not 0: the same points, and the same end but for 0."""
    text, data = INVARIANT[name]
    model = slomodel.compile(text, data=data, backend="numpy")
    runs = []
    for units in ((1.0, 1.0), (of_f, of_x)):
        counted = Counted(Case(name, model, model.x0(), (0.0,), *units), 1e9)
        with np.errstate(all="ignore"):
            runs.append(solve(counted, units[1] * model.x0(), method="auto"))
    plain, other = runs
    assert plain.success
    assert other.status == plain.status
    k = min(plain.nit, other.nit) + 1
    # A least value of 0 has no unit.
    assert plain.nit == other.nit or plain.fun < 1e-15
    assert np.array_equal(other.history.fun[:k], of_f * plain.history.fun[:k])
    assert np.array_equal(other.history.step[:k], of_x * plain.history.step[:k])
