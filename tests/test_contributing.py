"""The exercise of the contributor's guide: its rule is short, applies, and is sound and tight."""

import re
from collections.abc import Callable

import numpy as np
import pytest
from bounds.fuzz import cases
from bounds.settings import claimed, setting
from sizes import ROOT

from slomodel.bounds import Setting, bounds, pipeline
from slomodel.bounds.enclosure import Enclosure
from slomodel.bounds.rules.table import RULES, BoundRule

Bound = Callable[[Setting, float], Enclosure | None]
GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
A = np.random.default_rng(4).standard_normal((5, 3))
SUMS = {
    "rows": ("data A[5, 3] var x[3] minimize sum(cos(A @ x + 1))", {"A": A}),
    "weights": ("data A[5, 3] var x[3] minimize 3 * x[0] - sum(cos(A @ x)) / 7", {"A": A}),
    "two sums": ("data A[5, 3] var x[3] minimize sum(cos(A @ x)) + 2 * sum(cos(x))", {"A": A}),
}


@pytest.fixture(scope="module")
def text() -> str:
    (found,) = re.findall(r"## Exercise: a rule.*?```python\n(.*?)```", GUIDE, re.DOTALL)
    return str(found)


@pytest.fixture(scope="module")
def cosines(text: str) -> Bound:
    names: dict[str, object] = {}
    exec(compile(text, "cosines.py", "exec"), names)
    rule = names["cosines"]
    assert callable(rule)
    return rule


def test_it_is_short(text: str) -> None:
    assert len(text.splitlines()) < 80
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize("name", SUMS)
def test_no_claim_is_passed(cosines: Bound, name: str) -> None:
    text, data = SUMS[name]
    rng = np.random.default_rng(len(name))
    one = setting(text, list(rng.standard_normal(3)), **data)

    def alone(setting: Setting, radius: float) -> tuple[float, float]:
        found = claimed(cosines, setting, radius)
        assert found is not None
        return found.L1, found.L2

    for case in cases(one, rng, (0.0, 1e-3, 1.0), alone):
        for which in ("L1", "L2"):
            assert not case.violates(which)


def test_it_is_exact_somewhere_and_silent_elsewhere(cosines: Bound) -> None:
    text = "data A[1, 1] var x[1] minimize 2 * sum(cos(A @ x))"
    found = claimed(cosines, setting(text, [0.1], A=np.array([[3.0]])), 1.0)
    assert found is not None
    assert 18.0 <= found.L1 <= 18.0 * (1.0 + 1e-9)
    assert 54.0 <= found.L2 <= 54.0 * (1.0 + 1e-9)
    assert claimed(cosines, setting("var x minimize cos(x^2)", [0.1]), 1.0) is None
    assert claimed(cosines, setting("var x minimize sin(x)", [0.1]), 1.0) is None
    assert (
        claimed(cosines, setting("var x[2] minimize sum(cos(exp(x) + x))", [0.1, 0.2]), 1.0) is None
    )


def test_it_takes_part_as_a_row_of_the_table(
    cosines: Bound, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = setting("var x[2] minimize sum(cos(x))", [0.3, 0.4])
    without = bounds(one, 5.0)
    monkeypatch.setattr(pipeline, "RULES", (*RULES, BoundRule(cosines, reads_written=True)))
    found = bounds(setting("var x[2] minimize sum(cos(x))", [0.3, 0.4]), 5.0)
    assert any(claim.rule.startswith("cosines") for claim in found.gradient.claims)
    assert found.L1 <= without.L1
    assert found.L2 <= without.L2
