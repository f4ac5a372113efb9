"""`slomodel report`: the page is self-contained and agrees with the model and the run."""

from __future__ import annotations

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import slomodel
from slomodel.cli import main
from slomodel.cli.bounds import document

MODEL = "model banana\ndim n = 2\nvar x[n] init -1\n# a < b & c\nminimize sum(x^4 - 2*x^2)\n"
VOID = {"meta", "img"}


class Reader(HTMLParser):
    """The text and the addresses of a page; fails where a tag is not closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []
        self.sources: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.sources += [str(value) for key, value in attrs if key in {"src", "href"}]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def read(page: Path) -> Reader:
    reader = Reader()
    reader.feed(page.read_text(encoding="utf-8"))
    assert reader.open == []
    return reader


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "banana.slo").write_text(MODEL, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["report", "banana.slo", "-o", "page.html", *arguments])


def test_the_page_has_the_model_the_run_and_its_bounds(folder: Path) -> None:
    result = run("--verify", "--radius", "0.5", "2", "--method", "norm-armijo")
    assert result.exit_code == 0, result.output
    reader = read(folder / "page.html")
    text = "".join(reader.text)
    assert "# a < b & c" in text
    solution = slomodel.compile(MODEL).solve(method="norm-armijo", verify=True)
    assert solution.certificate is not None
    for told in (f"{solution.fun:.12g}", solution.message, solution.certificate.summary):
        assert told in text
    for radius in (0.5, 2.0):
        assert slomodel.compile(MODEL).bounds(solution.x, radius).explain() in text
    assert [one.partition(";")[0] for one in reader.sources] == 2 * ["data:image/png"]
    assert not re.search(r"<script|https?:", (folder / "page.html").read_text(encoding="utf-8"))


def test_json_is_the_run_with_bounds_round_its_end(folder: Path) -> None:
    told = json.loads(run("--json", "--radius", "1").stdout)
    model = slomodel.compile(MODEL)
    solution = model.solve()
    assert (told["status"], told["fun"], told["out"]) == ("converged", solution.fun, "page.html")
    assert told["bounds"] == [document(model.bounds(solution.x, 1.0))]


def test_no_bound_is_reported_with_the_reason(folder: Path) -> None:
    kinked = MODEL.replace("x^4 - 2*x^2", "abs(x)")
    (folder / "banana.slo").write_text(kinked, encoding="utf-8")
    run("--max-iter", "3", "--radius", "0.1")
    text = "".join(read(folder / "page.html").text)
    assert "inf" in text
    assert "has a kink in the ball" in text


def test_without_matplotlib_a_line_stands_for_the_curves(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert run().exit_code == 0
    reader = read(folder / "page.html")
    assert reader.sources == []
    assert "No curves" in "".join(reader.text)
    assert "slomodel[plot]" in "".join(reader.text)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--radius", "-1"), 1, "radius"),
        (("-o", "no/such/page.html"), 1, "no/such"),
        (("--method", "nrom-armijo"), 1, "norm-armijo"),
        (("--max-iter", "1", "--radius", "0.1"), 0, ""),
        (("--method", "ngd", "--d", "1e-9", "--max-time", "0.02", "--radius", "0.1"), 0, ""),
    ],
)
def test_bad_options_are_reported_and_budgets_are_not_failures(
    folder: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    result = run(*arguments)
    assert result.exit_code == code, result.output
    assert said in result.stderr
    assert (folder / "page.html").exists() == (code == 0)


def test_data_constants_and_the_command_are_on_the_page(folder: Path) -> None:
    (folder / "y.csv").write_text("y\n1\n2\n7\n")
    text = 'dim n\ndata y[n] from "y.csv"\nvar a\nminimize sum((y - a)^4)\n'
    (folder / "banana.slo").write_text(text)
    assert run("--radius", "0.1", "1", "--seed", "3").exit_code == 0
    page = (folder / "page.html").read_text(encoding="utf-8")
    text = " ".join(read(folder / "page.html").text)
    assert "slomodel report banana.slo" in text
    assert "--seed 3" in text
    assert page.count("<polyline") == 2
    assert page.count("<rect") == 16
    # It follows the colours of the system, fits a phone, and does not break words.
    assert "prefers-color-scheme: dark" in page
    assert 'fill="currentColor"' in page
    assert "width=device-width" in page
    assert "anywhere" not in page


def test_standard_errors_are_on_the_page_if_wanted(folder: Path) -> None:
    (folder / "y.csv").write_text("y,g\n1,a\n2,b\n7,a\n3,b\n")
    text = (
        'dim n, S\ndata y[n], g[n] in S labels from "y.csv"\nvar u[S]\nminimize sumsq(y - u[g])\n'
    )
    (folder / "banana.slo").write_text(text)
    told = json.loads(run("--radius", "0.1", "--standard-errors", "auto", "--json").stdout)
    assert len(told["standard_errors"]["variables"]["u"]) == 2
    shown = " ".join(read(folder / "page.html").text)
    assert "u[a]" in shown
    assert "Assumed: least squares of 4 residuals" in shown
    assert "--standard-errors auto" in shown
    assert run("--radius", "0.1").exit_code == 0
    assert "Standard errors" not in " ".join(read(folder / "page.html").text)


def test_the_formula_is_typeset_and_methods_are_compared(folder: Path) -> None:
    found = run("--compare", "adgd", "--compare", "norm-armijo:newton", "--max-iter", "50")
    assert found.exit_code == 0, found.output
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert page.count("<math") == 1
    text = " ".join(read(folder / "page.html").text)
    solution = slomodel.compile(MODEL).solve("adgd", max_iter=50)
    assert f"{solution.fun:.9g}" in text
    assert "norm-armijo newton" in text
    command = "--compare adgd --compare norm-armijo:newton --radius 0.01 --radius 0.1 --radius 1"
    assert command in text
    assert run("--compare", "adgdd").exit_code == 1
