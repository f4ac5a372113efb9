"""Recurrences of states with T + 1 steps and flows with T, against a loop."""

import re

import numpy as np
import pytest

import slomodel

TEXT = """dim T
data y[T]
var b init 0.3, g init 0.2, S0 init 2, I0 init 0.5
let S[t in range(T + 1)] = S[t-1] - flow[t-1]  first S0
and I[t in range(T + 1)] = I[t-1] + flow[t-1] - g * I[t-1]  first I0
and flow[t in T] = b * S[t] * I[t] + 0.1 * y[t]
minimize sumsq(flow - y) + S[T]^2 + sum(I[t]^3 for t in range(T + 1))
"""


@pytest.mark.parametrize("T", [1, 6])
def test_states_may_have_a_step_more_than_flows(T: int) -> None:
    y = np.sin(np.arange(1.0, T + 1))

    def formula(x: np.ndarray) -> complex:
        b, g, susceptible, infected = x
        total = 0.0
        for t in range(T):
            flow = b * susceptible * infected + 0.1 * y[t]
            total = total + (flow - y[t]) ** 2 + infected**3
            susceptible, infected = susceptible - flow, infected + flow - g * infected
        return total + susceptible**2 + infected**3

    model = slomodel.compile(TEXT, data={"y": y}, backend="numpy")
    x = model.x0()
    slope = [formula(x + 1e-30j * unit).imag * 1e30 for unit in np.eye(4)]
    assert model.value(x) == pytest.approx(formula(x), rel=1e-14)
    np.testing.assert_allclose(model.gradient(x), slope, rtol=1e-12)
    assert model.definitions == {"S": (T + 1,), "I": (T + 1,), "flow": (T,)}


def test_a_further_step_reads_only_what_others_have() -> None:
    with pytest.raises(slomodel.SlomodelError, match=re.escape("`S` reads step T of `flow`")):
        slomodel.compile(TEXT.replace("S[t-1] - flow[t-1]", "S[t-1] - flow[t]"))
    with pytest.raises(slomodel.SlomodelError, match="run over the same steps"):
        slomodel.compile(TEXT.replace("flow[t in T]", "flow[t in range(2 * T)]"))
    with pytest.raises(slomodel.SlomodelError, match="1 first values, and the other steps are T"):
        slomodel.compile(TEXT, data={"y": np.zeros(0)})


def test_a_slice_between_data_shows_the_sum_over_a_range() -> None:
    text = "dim N, G data y[N], a[G] in N, b[G] in N var m "
    text += "minimize sum(mean(y[a[g]:b[g]]) - m for g in G)"
    with pytest.raises(slomodel.SlomodelError, match=re.escape("for k in range(a[g], b[g]))`")):
        slomodel.compile(text)


def test_rates_may_read_other_elements_of_the_same_step() -> None:
    """All definitions run along t, although reads of `d` are shifted along s in their branches."""
    text = """dim T = 5, S = 4
    var k
    let y[t in T, s in S] = where(t == 0, 1, y[t-1, s] + k * d[t-1, s])
    and d[t in T, s in S] = where(s == 3, -y[t, 0] * y[t, 1], -y[t, 2])
    minimize sum(y) + 2 * sumsq(d)"""

    def formula(k: complex) -> complex:
        y, total = np.ones(4, dtype=complex), 0.0
        for _ in range(5):
            d = np.array([-y[2], -y[2], -y[2], -y[0] * y[1]])
            total, y = total + y.sum() + 2.0 * (d @ d), y + k * d
        return total

    model = slomodel.compile(text, backend="numpy")
    assert model.value([0.3]) == pytest.approx(formula(0.3).real, rel=1e-14)
    assert model.gradient([0.3])[0] == pytest.approx(formula(0.3 + 1e-30j).imag * 1e30, rel=1e-12)
