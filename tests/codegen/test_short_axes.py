"""Short axes written out: the same values, and loops over long axes alone."""

from __future__ import annotations

import numpy as np
import pytest
from agreeing import asked
from random_graphs import KINDS, throw
from codegen.test_lower import assert_simple

import slomodel
from slomodel.codegen.loops import planning, short_axes
from slomodel.codegen.lower import lower
from slomodel.ir.expr import Expr, Input, Map
from slomodel.ir.walk import postorder
from slomodel.reference import evaluate_all


def _written_out(roots: tuple[Expr, ...], sizes: dict[str, int]) -> tuple[Expr, ...]:
    lowered = lower(roots, sizes, planning.spells)
    return short_axes.with_short_axes(lowered, sizes)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_values_whatever_is_written_out(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(short_axes, "_LEAST", 1)
    rng = np.random.default_rng(len(kind))
    changed = 0
    for _ in range(12):
        question = asked(throw(rng, kind, 6, 4), rng)
        every = tuple(root for roots in question.roots.values() for root in roots)
        lowered = lower(every, question.sizes, planning.spells)
        written = short_axes.with_short_axes(lowered, question.sizes)
        changed += written != lowered
        with np.errstate(all="ignore"):
            known = evaluate_all(lowered, question.values, question.sizes)
            found = evaluate_all(written, question.values, question.sizes)
        finite = [a[np.isfinite(a)].astype(float) for a in map(np.asarray, known.values())]
        scale = max(float(np.abs(one).max(initial=0.0)) for one in finite)
        for node in postorder(*written):
            assert_simple(node, "c")
        for old, new in zip(lowered, written, strict=True):
            same = {"rtol": 1e-10, "atol": 1e-14 * min(scale, 1e300)}
            np.testing.assert_allclose(found[new], known[old], **same)
    assert changed
