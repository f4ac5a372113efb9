"""Starts that are written as arrays."""

import numpy as np
import pytest

import slomodel
from slomodel.errors import SlomodelError


def test_vectors_matrices_and_sets() -> None:
    text = """dim n
var q[4] in sphere init [1, 0, 0, 0], R[2, n] init [[1, -2], [1/2, 3]], s[2] > 0 init [1, 4]
minimize sumsq(q) + sumsq(R) + sumsq(s)"""
    model = slomodel.compile(text, dims={"n": 2})
    start = model.unpack(model.x0())
    np.testing.assert_array_equal(start["q"], [1.0, 0.0, 0.0, 0.0])
    np.testing.assert_array_equal(start["R"], [[1.0, -2.0], [0.5, 3.0]])
    np.testing.assert_allclose(start["s"], [1.0, 4.0], rtol=1e-15)
    with pytest.raises(SlomodelError, match=r"E218.*variable \[2, 3\]\n.*<model>:"):
        slomodel.compile(text, dims={"n": 3}).x0()


def test_starts_that_are_written_with_their_sizes() -> None:
    text = "dim n = 2 var R[n, n] init eye(n), s[3, n] init ones(3, n), q[n + 1] init zeros(n + 1)"
    start = slomodel.compile(f"{text} minimize sum(R) + sum(s) + sum(q)").x0()
    np.testing.assert_array_equal(start, [1.0, 0.0, 0.0, 1.0, *[1.0] * 6, *[0.0] * 3])


@pytest.mark.parametrize("start", ["eye(2)", "ones(4)", "zeros()", "zeros(n, n)", "eye"])
def test_starts_of_other_sizes(start: str) -> None:
    with pytest.raises(SlomodelError, match=r"E208|E218"):
        slomodel.compile(f"dim n = 3  var x[n] init {start}  minimize sumsq(x)")


@pytest.mark.parametrize(
    "start", ["[1, 2]", "[[1, 2, 3]]", "[1, [2], 3]", "[1, x0, 2]", "[1, 2, 1/0]"]
)
def test_what_is_not_a_start(start: str) -> None:
    with pytest.raises(SlomodelError, match=r"E216|E218"):
        slomodel.compile(f"data x0  var x[3] init {start}  minimize sumsq(x) + x0")
