"""Windows of earlier steps in recurrences: their lengths, and what they may not read."""

import numpy as np
import pytest

import slomodel
from slomodel.errors import SlomodelError


@pytest.mark.parametrize("q", [0, 1, 3])
@pytest.mark.parametrize("steps", [0, 1, 2, 5])
def test_windows_of_any_length(q: int, steps: int) -> None:
    text = """dim T, q  data y[T]  var a[q]
    let e[t in T] = y[t] - sum(where(t - j > 0, a[j] * e[t-1-j], 0) for j in q)
    minimize sumsq(e)"""
    y, a, e = np.arange(1.0, steps + 1), np.linspace(0.3, 0.7, q), []
    for t in range(steps):
        e.append(y[t] - sum(a[j] * e[t - 1 - j] for j in range(q) if j < t))
    model = slomodel.compile(text, data={"y": y}, dims={"q": q}, backend="numpy")
    assert model.value(a) == pytest.approx(sum(np.square(e)), rel=1e-14)


@pytest.mark.parametrize(
    "text",
    [
        "sum(a * h[t-1-j] for j in q) first 1",
        "sum(where(t - j > -1, a * h[t-1-j], 0) for j in q)",
        "sum(a * h[t-j] for j in q) first 1, 1, 1",
        "sum(a * h[t-1+j] for j in q) first 1, 1, 1",
        "sum(a * h[t-1-2*j] for j in q) first 1, 1, 1",
        "sum(a * h[t-1-i-j] for i in q, j in q) first 1, 1, 1",
    ],
)
def test_windows_before_the_first_step_or_beyond_the_present(text: str) -> None:
    with pytest.raises(SlomodelError, match=r"E227|E313|E314"):
        slomodel.compile(f"dim q = 3  var a  let h[t in 9] = {text}  minimize sumsq(h)")
