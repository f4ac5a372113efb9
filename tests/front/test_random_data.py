"""Random data satisfy every declaration and check, for all kinds of declarations."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slomodel.errors import SourceText
from slomodel.front.data.bind import bind
from slomodel.front.data.random_data import random_data
from slomodel.front.elaboration.elaborate import elaborate
from slomodel.front.text.parse import parse
from tests.slo_texts import models

DECLARED = """dim m, n, k = 3
data y[n], A[m, n], S[n, n] symmetric, T[m, m, m] symmetric, M[n] mask, lam, mu = 0.5, z[n + 1]
var x[n]
"""
CHECKS = {
    "y >= 0": lambda d: (d["y"] >= 0).all(),
    "y > 0 and y < 1": lambda d: ((d["y"] > 0) & (d["y"] < 1)).all(),
    "y == 1 or y == -1": lambda d: np.isin(d["y"], (-1, 1)).all(),
    "lam >= 0": lambda d: d["lam"] >= 0,
    "lam > mu": lambda d: d["lam"] > 0.5,
    "lam < -100": lambda d: d["lam"] < -100,
    "A <= 1": lambda d: (d["A"] <= 1).all(),
    "A != 0": lambda d: (d["A"] != 0).all(),
    "abs(z) <= 2": lambda d: (abs(d["z"]) <= 2).all(),
    "S >= -5": lambda d: (d["S"] >= -5).all(),
}


@settings(max_examples=40)
@given(
    st.lists(st.sampled_from(sorted(CHECKS)), unique=True, max_size=4),
    st.integers(0, 10**6),
    st.sampled_from([{}, {"n": 5}, {"m": 2, "n": 1}]),
)
def test_checks_and_attributes_hold(checks: list[str], seed: int, dims: dict[str, int]) -> None:
    if "lam < -100" in checks:
        checks = [check for check in checks if check not in ("lam >= 0", "lam > mu")]
    if "y == 1 or y == -1" in checks:
        checks = [check for check in checks if not check.startswith("y >")]
    text = DECLARED + "".join(f"check {check}\n" for check in checks)
    uses = "sum(y) + sum(A) + sum(S) + sum(T) + sum(M) + lam + mu + sum(z)"
    source = SourceText(f"{text}minimize sumsq(x) * ({uses})")
    problem = elaborate(parse(source), source)
    drawn = random_data(problem, {}, dims, np.random.default_rng(seed))
    assert set(drawn) == {"y", "A", "S", "T", "M", "lam", "z"}
    for check in checks:
        assert CHECKS[check](drawn), check
    m, n = drawn["A"].shape
    assert (dims.get("n", n), dims.get("m", m)) == (n, m)
    assert (drawn["z"].shape, drawn["S"].shape, drawn["T"].shape) == ((n + 1,), (n, n), (m, m, m))
    assert np.isin(drawn["M"], (0, 1)).all()
    np.testing.assert_array_equal(drawn["S"], drawn["S"].T)
    np.testing.assert_array_equal(drawn["T"], drawn["T"].transpose(2, 0, 1))
    assert bind(problem, drawn, {"n": n, "m": m}, None).missing == ()


@pytest.mark.filterwarnings("ignore::slomodel.ModelWarning")
@settings(max_examples=20)
@given(models(), st.integers(0, 100))
def test_random_models_accept_their_random_data(text: str, seed: int) -> None:
    source = SourceText(text)
    problem = elaborate(parse(source), source)
    drawn = random_data(problem, {}, {}, np.random.default_rng(seed))
    sizes = {"m": len(drawn["y"]), "n": drawn["A"].shape[1]}
    assert bind(problem, drawn, sizes, None).missing == ()


def test_a_check_against_infinity_draws_numbers_all_the_same() -> None:
    source = SourceText("dim n data y[n] check y >= 0 and y <= 1/0 var x minimize x * sum(y)")
    problem = elaborate(parse(source), source)
    for seed in range(20):
        drawn = random_data(problem, {}, {}, np.random.default_rng(seed))["y"]
        assert np.isfinite(drawn).all()
        assert (drawn >= 0).all()
