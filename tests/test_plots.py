"""Plots of runs: curves, axes and files."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from numpy.typing import NDArray

import slomodel
from slomodel import plots
from slomodel.errors import DomainError, TargetLimit
from slomodel.solve import Functions, History, Solution, solve

Vector = NDArray[np.float64]
QUARTIC = Functions(lambda x: float(np.sum(x**4)), lambda x: 4.0 * x**3, n=3)


def run(**options: object) -> Solution:
    return solve(QUARTIC, np.array([1.0, 2.0, -3.0]), direction="lbfgs", **options)


def with_history(fun: Vector, gradient_norm: Vector | None = None) -> Solution:
    """A solution whose history has these columns, a second a point."""
    rows = len(fun)
    gnorm = np.ones(rows) if gradient_norm is None else gradient_norm
    epoch = np.ones(rows, dtype=np.int64)
    time = np.arange(rows, dtype=np.float64)
    return replace(run(max_iter=3), history=History(time, fun, gnorm, np.ones(rows), epoch))


def curve(figure: Figure, panel: int) -> tuple[Vector, Vector]:
    line = figure.axes[panel].lines[0]
    return np.asarray(line.get_xdata()), np.asarray(line.get_ydata())


def test_panels_show_the_history() -> None:
    solution = run()
    figure = plots.convergence(solution, name="quartic")
    # This run takes milliseconds, so its axis does too.
    assert [axes.get_xlabel() for axes in figure.axes] == ["time (ms)", "time (ms)"]
    for panel, column in ((0, solution.history.gradient_norm), (1, solution.history.fun)):
        time, values = curve(figure, panel)
        np.testing.assert_allclose(time, 1e3 * solution.history.time, rtol=1e-15)
        np.testing.assert_array_equal(values, column)
    title = figure.get_suptitle()
    assert "quartic" in title
    assert str(solution.status) in title


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("fun", "scale"),
    [
        ([1000.0, 10.0, 1e-9], "log"),
        ([10.0, 9.0, 8.0], "linear"),
        ([5.0, 1.0, -3.0], "linear"),
        ([-1.0, -10.0, -1000.0], "linear"),
        ([1000.0, 1.0, 0.0], "log"),
        ([0.0, 1.0, 1000.0], "linear"),
        ([0.0], "linear"),
    ],
)
def test_axis_is_logarithmic_where_the_values_allow(fun: list[float], scale: str) -> None:
    figure = plots.convergence(with_history(np.array(fun)))
    assert figure.axes[1].get_yscale() == scale
    figure.canvas.draw()


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "fun",
    [
        np.array([np.nan]),
        np.array([]),
        np.array([1e308, -1e308, 1.0]),
        np.array([1e-320, 1.0, 1e299]),
        np.array([np.inf, 2.0, 1.0]),
        np.full(3, 5.0),
    ],
    ids=["nan", "nothing", "huge", "subnormal", "infinite", "constant"],
)
def test_any_values_can_be_drawn(fun: Vector, tmp_path: Path) -> None:
    plots.convergence(with_history(fun, np.abs(fun)), tmp_path / "run.png")
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")


def test_long_runs_are_thinned_and_keep_their_extremes() -> None:
    rng = np.random.default_rng(4)
    fun = rng.normal(size=100_000) + 10.0
    fun[[12_345, 54_321]] = 40.0, -40.0
    time, values = curve(plots.convergence(with_history(fun)), 1)
    assert len(time) <= 4_000
    assert (values.min(), values.max()) == (-40.0, 40.0)
    np.testing.assert_array_equal(values, fun[time.astype(int)])
    assert (time[0], time[-1]) == (0.0, 99_999.0)


@pytest.mark.parametrize(
    ("ending", "start"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("SVG", b"<?xml")]
)
def test_format_follows_the_ending(ending: str, start: bytes, tmp_path: Path) -> None:
    path = tmp_path / f"run.{ending}"
    plots.convergence(run(), path)
    assert path.read_bytes().startswith(start)
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("name", ["run.xyz", "run", "run.npz"])
def test_unknown_ending(name: str, tmp_path: Path) -> None:
    with pytest.raises(DomainError, match=r"\.png"):
        plots.convergence(run(), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.png"
    path.write_text("old")

    def fail(self: Figure, target: Path, **_: object) -> None:
        target.write_text("half a picture")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Figure, "savefig", fail)
    with pytest.raises(DomainError, match="no space left on device"):
        plots.convergence(run(), path)
    assert path.read_text() == "old"
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


def test_missing_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(TargetLimit, match=r'pip install "slomodel\[plot\]"'):
        plots.convergence(run())


def test_several_runs_share_the_axes() -> None:
    runs = [run(), run(max_iter=3)]
    figure = plots.convergence(runs, name="quartic")
    for axes, column in zip(figure.axes, ("gradient_norm", "fun"), strict=True):
        assert len(axes.lines) == 2
        for line, one in zip(axes.lines, runs, strict=True):
            np.testing.assert_array_equal(line.get_ydata(), getattr(one.history, column))
    assert figure.axes[0].get_legend() is not None


@pytest.mark.parametrize("wrong", [[], ["run.npz"]])
def test_what_is_not_a_run_is_refused(wrong: list[Solution]) -> None:
    with pytest.raises(DomainError, match="takes a Solution"):
        plots.convergence(wrong)


def test_a_fit_shows_observations_and_residuals(tmp_path: Path) -> None:
    t, y = np.array([2.0, 0.0, 1.0, 3.0]), np.array([2.5, 0.5, np.nan, 2.0])
    figure = plots.fit(y, t, tmp_path / "fit.png", against=t, name="line")
    left, right = figure.axes
    np.testing.assert_array_equal(left.lines[1].get_xdata(), [0.0, 2.0, 3.0])
    np.testing.assert_array_equal(right.lines[0].get_ydata(), [0.5, 0.5, -1.0])
    assert (tmp_path / "fit.png").stat().st_size > 0
    with pytest.raises(DomainError, match="equal length"):
        plots.fit(y, t[:2])


def test_bounds_against_the_radius(tmp_path: Path) -> None:
    model = slomodel.compile("model bowl\nvar x[2]\nminimize sum(cosh(x)) - x[0]", backend="numpy")
    figure = plots.bounds(model, np.zeros(2), tmp_path / "bounds.png", radii=(0.1, 1.0, 4.0))
    assert (tmp_path / "bounds.png").stat().st_size > 1000
    left, right = figure.axes
    proved, sampled = (np.asarray(line.get_ydata()) for line in left.lines[:2])
    assert (sampled <= proved).all()
    assert proved[1] == model.bounds(np.zeros(2), 1.0).L1
    upper, lower = (np.asarray(line.get_ydata()) for line in right.lines[:2])
    assert (lower <= 1.0).all()
    assert (upper >= np.cosh([0.1, 1.0, 4.0])).all()
    assert left.get_title().startswith("L1 doubles within 1.3")
    assert right.get_title() == "convex within 4"
