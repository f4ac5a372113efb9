"""The short examples run as their first lines state, and print right results."""

from __future__ import annotations

import re
import runpy
from collections.abc import Callable
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
Printed = Callable[[str], str]


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Printed:
    """What an example prints."""

    def run(name: str) -> str:
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
        return capsys.readouterr().out

    return run


def after(label: str, text: str) -> list[float]:
    """The numbers that follow a label in its line."""
    line = text[text.index(label) + len(label) :].partition("\n")[0]
    return [float(one) for one in re.findall(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?", line)]


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_each_says_how_it_is_run_and_has_a_test(path: Path) -> None:
    assert f"\npython examples/{path.name}\n" in path.read_text(encoding="utf-8")
    assert f'printed("{path.stem}")' in Path(__file__).read_text(encoding="utf-8")


def test_the_robust_fit_is_not_drawn_by_outliers(printed: Printed) -> None:
    out = printed("fit_a_curve")
    assert after("robust", out) == pytest.approx([3.0, 1.5, 0.5], abs=0.03)
    assert after("plain", out)[2] > 0.6


def test_the_matrix_is_found_where_it_was_not_seen(printed: Printed) -> None:
    out = printed("factor_a_matrix")
    assert after("not seen:", out)[0] < 1e-4


def test_the_proved_constant_is_above_the_sampled_one(printed: Printed) -> None:
    out = printed("bounds_over_balls")
    for radius in ("0.01", "0.1", "1"):
        proved, sampled = after(f"{radius:>6}", out)
        assert proved > sampled > 0.0
    assert "L1(r) =" in out


def test_the_module_taken_away_computes(printed: Printed) -> None:
    out = printed("take_the_source")
    assert after("\nvalue", out)[0] > 0.0
    assert "import slomodel" not in out


@pytest.mark.slow
def test_every_promise_holds(printed: Printed) -> None:
    out = printed("prove_the_run")
    assert out.count("converged") == 3
    assert out.count("held") >= 8
    assert "violated" not in out


def test_the_saddle_is_left(printed: Printed) -> None:
    out = printed("leave_a_saddle")
    assert after("at the saddle  f =", out)[0] == 14.0
    assert after("second_order   f =", out)[0] == pytest.approx(1.0)
    assert after("by default     f =", out)[0] == pytest.approx(1.0)


def test_both_ways_to_scipy_end_at_the_minimum(printed: Printed) -> None:
    out = printed("with_scipy")
    assert after("kernels of slomodel:", out)[0] < 1e-8
    assert after("functions of SciPy:", out)[0] < 1e-8


def test_variables_end_in_their_sets_near_those_that_made_the_data(printed: Printed) -> None:
    out = printed("declared_sets")
    assert after("spread", out)[0] > 0
    assert after("mixture: shares", out)[:3] == pytest.approx([0.5, 0.2, 0.3], abs=0.04)
    assert after("sum", out) == [1.0]
    assert after("mixture: means", out)[:3] == pytest.approx([-4.0, 0.0, 3.0], abs=0.1)
    assert after("logit: slopes", out) == pytest.approx([1.0, -0.5], abs=0.1)
    assert after("logit: cuts", out) == pytest.approx([-1.0, 0.5, 2.0], abs=0.15)


def test_sets_hold_where_multipliers_are_positive(
    printed: Printed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    out = printed("stay_in_a_set")
    assert after("at least", out)[0] > 0.0
    assets = [int(after(f"gamma {gamma:5.0f}:", out)[0]) for gamma in (1.0, 10.0, 100.0)]
    assert assets == sorted(assets)
    assert after("gamma     1:", out)[1:] == [1.0, *[0.0] * 7]


def test_the_membrane_rests_on_the_hill(
    printed: Printed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    out = printed("obstacle")
    # By SciPy's L-BFGS-B with tolerances near rounding.
    assert after("energy", out)[0] == pytest.approx(0.44627765, abs=2e-8)
    assert after("touches the hill at", out)[0] == 532


def test_minibatches_come_near_and_solve_finishes(printed: Printed) -> None:
    out = printed("minibatches")
    assert "converged" in out
    assert "not installed" in out or after("objective", out)[0] < 0.5


def test_data_in_blocks_are_fitted_as_in_memory(printed: Printed) -> None:
    out = printed("data_in_blocks")
    assert after("difference:", out)[0] < 1e-10
    assert out.count(": converged") == 3
    best = after("compressed: converged, objective", out)[0]
    assert after("streamed: converged, objective", out)[0] == pytest.approx(best, rel=1e-6)
    assert after("gradient there:", out)[0] < 1e-5


def test_constraints_hold_and_multipliers_predict(
    printed: Printed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    out = printed("constraints")
    change, predicted = after("longer by 0.001:", out)[0], after("by the multiplier:", out)[0]
    assert change == pytest.approx(predicted, rel=0.1)
    # The published area is 0.726868.
    assert after("area", out)[0] == pytest.approx(0.726868, abs=1e-6)


def test_nonnegative_unknowns_are_sparse(
    printed: Printed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    out = printed("nonnegative")
    assert after("residual", out)[0] < 3.0
    assert after("error", out)[0] < after("that of the counts", out)[0]
