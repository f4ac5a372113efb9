"""`slomodel bounds`: radii, centres, tables and JSON."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import slomodel
from slomodel.cli import main
from slomodel.cli.bounds import spread

PLANE = "model plane\ndata a = 3\nvar x[2] init 1\nminimize a * x[0] - x[1]\n"
LOGARITHM = "model logarithm\nvar x init 1\nminimize log(x)\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("plane.slo").write_text(PLANE, encoding="utf-8")
    Path("logarithm.slo").write_text(LOGARITHM, encoding="utf-8")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["bounds", *arguments])


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("--radius 0.1 1 --json", "--radius 0.1 --radius 1 --json"),
        ("--radius 0.1 1 f.slo", "--radius 0.1 --radius 1 f.slo"),
        ("f.slo --radius 1 --seed 3", "f.slo --radius 1 --seed 3"),
        ("--radius 1 --radius 2 3", "--radius 1 --radius 2 --radius 3"),
        ("--radius=1 2", "--radius=1 2"),
    ],
)
def test_a_radius_takes_the_numbers_after_it(given: str, read: str) -> None:
    assert spread(given.split(), "--radius") == read.split()


def test_a_line_for_each_radius() -> None:
    result = run("plane.slo", "--radius", "0.1", "1", "inf")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["radius", "L1", "L2", "source", "rule"]
    assert [line.split()[:4] for line in lines[1:4]] == [
        [radius, "0", "0", "analytic"] for radius in ("0.1", "1", "inf")
    ]


def test_without_a_radius_there_are_three() -> None:
    result = run("plane.slo")
    assert result.exit_code == 0, result.output
    assert [line.split()[0] for line in result.stdout.splitlines()[1:4]] == ["0.01", "0.1", "1"]


def test_json_has_the_numbers_of_the_library() -> None:
    np.savez("at.npz", x=np.array([2.0, 3.0]))
    result = run("plane.slo", "--at", "at.npz", "--radius", "0.5", "inf", "--json")
    document = json.loads(result.stdout)
    assert document["model"] == "plane"
    first, second = document["bounds"]
    found = slomodel.compile(PLANE).bounds([2.0, 3.0], 0.5)
    assert (first["radius"], first["L1"], first["L2"]) == (0.5, found.L1, found.L2)
    assert (first["source"], first["rigor"]) == ("analytic", "certified")
    assert (first["rule"], first["explanation"]) == (found.rule, found.explain())
    assert second["radius"] is None


def test_where_there_is_no_bound_the_reason_is_reported() -> None:
    result = run("logarithm.slo", "--radius", "1", "--json")
    (only,) = json.loads(result.stdout)["bounds"]
    assert (result.exit_code, only["L1"], only["L2"]) == (0, None, None)
    assert only["reason"]
    assert only["reason"] in run("logarithm.slo", "--radius", "1").stdout
    assert only["reason"] in run("logarithm.slo", "--radius", "1", "--explain").stdout


def test_estimates_are_called_sampled() -> None:
    result = run("logarithm.slo", "--radius", "0.5", "--sampled", "--json")
    (only,) = json.loads(result.stdout)["bounds"]
    assert (only["source"], only["rigor"]) == ("sampled", "estimated")
    # f'' = 1/x² is largest at the end of the ball, 0.5.
    assert only["L1"] == pytest.approx(4.0, rel=1e-6)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("plane.slo", "--radius", "-1"), 1, "radius: expected a number ≥ 0, found -1.0"),
        (("plane.slo", "--radius", "1", "--at", "none.npz"), 1, "cannot read the start"),
        (("plane.slo", "--radius", "wide"), 2, "'wide' is not a valid float"),
    ],
)
def test_mistakes(arguments: tuple[str, ...], code: int, said: str) -> None:
    result = run(*arguments)
    assert result.exit_code == code
    assert said in result.stderr


def test_the_effort_of_a_proof() -> None:
    for effort in ("quick", "default", "thorough"):
        result = run("logarithm.slo", "--radius", "0.5", "--effort", effort)
        assert result.exit_code == 0, result.output
        assert "analytic" in result.stdout
    refused = run("logarithm.slo", "--radius", "0.5", "--effort", "fast")
    assert refused.exit_code == 2
    assert "'fast' is not one of 'quick', 'default', 'thorough'" in refused.output


def test_rays_of_a_quartic() -> None:
    """x^4 along x = 1 + t, and along the negative gradient: the derivatives are known."""
    Path("quartic.slo").write_text("var x init 1\nminimize x^4\n", encoding="utf-8")
    np.savez("v.npz", x=np.array(1.0))
    result = run("quartic.slo", "--along", "v.npz", "--radius", "0.5", "1", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["bounds"] == []
    assert [one["T"] for one in found["rays"]] == [0.5, 1.0]
    for one, (upper, third) in zip(found["rays"], ((27.0, 36.0), (48.0, 48.0)), strict=True):
        assert [one["value"], one["slope"], one["curvature"]] == pytest.approx([1.0, 4.0, 12.0])
        assert one["lower"] == pytest.approx(12.0)
        assert one["upper"] >= upper
        assert one["third_upper"] == pytest.approx(third)
        # (1 + t)^4 = 1 + 4t + 6t² + 4t³ + t⁴.
        T = one["T"]
        assert one["remainder_upper"] == pytest.approx(2.0 * (6.0 + 4.0 * T + T * T))
        assert one["third_remainder_upper"] == pytest.approx(6.0 * (4.0 + T))
    lines = run("quartic.slo", "--along", "gradient", "--radius", "0.5").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["f", "f'", "f''", "T", "0.5"]
    assert float(lines[1].split()[1]) == -4.0


def test_a_ray_without_a_direction_or_a_proof() -> None:
    result = run("logarithm.slo", "--along", "gradient", "--radius", "2")
    assert result.exit_code == 0, result.output
    assert "inf" in result.stdout
    assert "edge of its domain" in result.stdout
    Path("top.slo").write_text("var x init 0\nminimize x^4\n", encoding="utf-8")
    result = run("top.slo", "--along", "gradient")
    assert result.exit_code == 1
    assert "no direction" in result.stderr
    assert run("plane.slo", "--along", "gradient", "--sampled").exit_code == 2
