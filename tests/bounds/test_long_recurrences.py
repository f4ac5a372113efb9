"""Recurrences that are written out: the work of a bound grows in proportion to their length."""

from __future__ import annotations

import sys
from time import process_time

import numpy as np
import pytest

import slomodel
from slomodel.bounds import current_work, stopped_by
from slomodel.cli import bounds as command

CENTRE = np.array([0.2, 0.1, 0.7])


def garch(steps: int) -> slomodel.Model:
    """The likelihood of variances h_t = w + a e_(t-1)² + b h_(t-1), one definition a step."""
    lines = [f"data e[{steps}]", "var w, a, b", "let h0 = w"]
    for t in range(1, steps + 1):
        lines.append(f"let h{t} = w + a * e[{t - 1}]^2 + b * h{t - 1}")
    terms = (f"log(h{t}) + e[{t - 1}]^2 / h{t}" for t in range(1, steps + 1))
    text = "\n".join([*lines, "minimize " + " + ".join(terms)])
    return slomodel.compile(text, data={"e": np.random.default_rng(0).standard_normal(steps)})


class Watch:
    """A check that counts its calls and measures the longest time between two of them."""

    def __init__(self) -> None:
        self.calls, self.longest, self.works = 0, 0.0, set[str]()
        self._last = process_time()

    def __call__(self) -> None:
        now = process_time()
        self.longest = max(self.longest, now - self._last)
        self._last, self.calls = now, self.calls + 1
        self.works.add(current_work())


@pytest.mark.slow
def test_forty_steps_take_no_more_than_their_share() -> None:
    watched = {}
    for steps in (10, 40):
        watched[steps] = Watch()
        with stopped_by(watched[steps]):
            found = garch(steps).bounds(CENTRE, 0.1)
        assert found.L1 < 1e6
    assert watched[40].calls <= 5 * watched[10].calls
    # So long Ctrl-C may take, or a line about the work that the proof does.
    assert watched[40].longest < 3.0
    assert {"interval entries", "gradient jets", "linear predictors"} <= watched[40].works


def test_the_work_is_shown_on_a_terminal(monkeypatch, capsys) -> None:
    monkeypatch.setattr(command, "_SILENT", 0.0)
    monkeypatch.setattr(command, "_EVERY", 0.0)
    model = slomodel.compile("var x[3] minimize exp(x[0] * x[1]) + x[2]^4")
    with command.shown_work():
        model.bounds(CENTRE, 0.1)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with command.shown_work():
        model.bounds(CENTRE, 0.05)
    told = capsys.readouterr().err
    assert "s: interval entries (Ctrl-C stops)" in told
    assert told.endswith("\r\x1b[K")
    with pytest.raises(KeyboardInterrupt), command.shown_work():
        raise KeyboardInterrupt
