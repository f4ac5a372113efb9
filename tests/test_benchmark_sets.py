"""The comparison in sets counts what it says, and needs no more evaluations than SciPy."""

from __future__ import annotations

import pytest

from benchmarks.sets import Effort, compared, mean, summary, table


@pytest.mark.parametrize(("name", "peer"), [("hs45", "L-BFGS-B"), ("mixture_weights", "SLSQP")])
def test_a_case_is_compared_with_its_peer(name: str, peer: str) -> None:
    mine, peers = compared(name, 1, "")
    assert mine.right is not None
    assert mine.right <= mine.total
    assert mine.right <= 1.5 * (peers[peer].right or 0)
    shown = table({name: (mine, peers)})
    assert f"| {name} | {mine.shown} | {mine.products} | {peer} |" in shown


def test_means_are_over_cases_that_both_solve() -> None:
    rows = {
        "a": (Effort(20, 10, products=60), {"L-BFGS-B": Effort(10, 5)}),
        "b": (Effort(20, 5), {"L-BFGS-B": Effort(10, 10)}),
        "c": (Effort(20, 5), {"L-BFGS-B": Effort(10, None)}),
    }
    assert "| L-BFGS-B | 1.00 (2) | 2.00 (2) | 4.00 (2) | - |" in summary(rows)
    assert mean([]) == "-"
