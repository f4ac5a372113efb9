"""The exercises of the contributor's guide: a rule, sound and tight; a target that agrees."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from agreeing import assert_agreement, expected, in_c, of_model
from bounds.fuzz import cases
from bounds.settings import claimed, setting
from sizes import ROOT

import slomodel
from slomodel.bounds import ObjectivePart, bounds, pipeline
from slomodel.bounds.enclosure import Enclosure
from slomodel.bounds.rules.table import RULES, BoundRule

Bound = Callable[[ObjectivePart, float], Enclosure | None]
GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
A = np.random.default_rng(4).standard_normal((5, 3))
SUMS = {
    "rows": ("data A[5, 3] var x[3] minimize sum(cos(A @ x + 1))", {"A": A}),
    "weights": ("data A[5, 3] var x[3] minimize 3 * x[0] - sum(cos(A @ x)) / 7", {"A": A}),
    "two sums": ("data A[5, 3] var x[3] minimize sum(cos(A @ x)) + 2 * sum(cos(x))", {"A": A}),
}


def _text(exercise: str) -> str:
    (text,) = re.findall(rf"## Exercise: {exercise}.*?```python\n(.*?)```", GUIDE, re.DOTALL)
    return str(text)


def _names(exercise: str) -> dict[str, Any]:
    """The names that the text of an exercise defines."""
    names: dict[str, Any] = {}
    exec(compile(_text(exercise), f"{exercise}.py", "exec"), names)
    return names


@pytest.fixture(scope="module")
def cosines() -> Bound:
    rule = _names("a rule")["cosines"]
    assert callable(rule)
    return rule


@pytest.mark.parametrize("exercise", ["a rule", "a C-like target"])
def test_it_is_short(exercise: str) -> None:
    lines = _text(exercise).splitlines()
    assert len(lines) < 80
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize("name", SUMS)
def test_no_claim_is_passed(cosines: Bound, name: str) -> None:
    text, data = SUMS[name]
    rng = np.random.default_rng(len(name))
    one = setting(text, list(rng.standard_normal(3)), **data)

    def alone(setting: ObjectivePart, radius: float) -> tuple[float, float]:
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


@pytest.mark.filterwarnings("ignore::slomodel.NonsmoothWarning")
def test_a_target_of_plain_loops_agrees_with_the_reference() -> None:
    # A product of matrices, an extreme, elements at listed places, a recurrence.
    text = """
        dim n, m, k
        data A[n, m], at[n] in k
        var W[m, 9], s[k]
        let y[t in k] = tanh(y[t - 1]) + s[t] first s[0]
        minimize sum(sin(A @ W)) + max(y) * sum(s[at] * A[:, 0]) + sum(y^2)
    """
    rng = np.random.default_rng(9)
    data = {"A": rng.normal(size=(6, 4)), "at": rng.integers(0, 5, 6)}
    model = slomodel.compile(text, data=data, dims={"k": 5}, backend="numpy")
    question = of_model(model, rng)
    portable = _names("a C-like target")["PORTABLE"]
    assert portable.name == "portable"
    assert_agreement(list(in_c([question], portable.printer)), [expected(question, rng)])
