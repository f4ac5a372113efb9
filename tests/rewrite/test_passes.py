"""The passes as a whole: reports of their changes, and how to omit them."""

from typing import get_args

import numpy as np
import pytest

import slomodel
from slomodel.codegen.loops.planning import ARRANGEMENTS
from slomodel.rewrite import PASSES
from slomodel.rewrite.passes import When

# From the right: the wide matrix first, which is the dearest order.
CHAIN = """dim d, N, h = 3
data X[d, N], y[N]
var W[h, d], v[h]
minimize sum(sin(v' @ (W @ X)) .* y)
"""


def drawn(d: int, N: int) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(0)
    return {"X": draw.standard_normal((d, N)), "y": draw.standard_normal(N)}


def test_passes_have_names_of_their_own() -> None:
    assert len({one.name for one in PASSES}) == len(PASSES)


def test_every_pass_states_its_law_and_its_place() -> None:
    assert all(one.law and one.reason for one in PASSES)
    when = [one.when for one in PASSES]
    assert when == sorted(when, key=get_args(When).index)
    assert all(one.law and one.reason for one in ARRANGEMENTS)


def test_what_was_rewritten_is_reported() -> None:
    told = slomodel.compile(CHAIN, data=drawn(4, 50)).explain()
    assert "rewritten  contraction order: " in told
    assert "product of v, W, X" in told
    assert "rewritten" not in slomodel.compile(CHAIN, data=drawn(4, 50), rewrites=False).explain()
    assert "rewritten" not in slomodel.compile(CHAIN).explain()


def test_names_of_passes() -> None:
    with pytest.raises(
        slomodel.DomainError, match=r"no pass is called 'fusion'\n help: .* some of"
    ):
        slomodel.compile(CHAIN, rewrites=["fusion"])
    with pytest.raises(slomodel.DomainError, match="takes True, False or names of passes, not an"):
        slomodel.compile(CHAIN, rewrites="contraction order")
    only = slomodel.compile(CHAIN, data=drawn(4, 50), rewrites=["contraction order"])
    assert "rewritten" in only.explain()
