"""The folder of bad models: each gives the codes and positions that its first line states.

`# E204 6:22` is a code with line and column. Errors in data or sizes are in the model's own files,
defaults and checks, so that `slomodel check` detects them.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

import slomodel
from slomodel.cli import main
from slomodel.errors import SlomodelError

FOLDER = Path(__file__).parents[1] / "bad_models"
GOLDEN = Path(__file__).parents[1] / "golden" / "messages"
MODELS = sorted(path.name for path in FOLDER.glob("*.slo"))

Places = list[tuple[str, int, int]]


def stated(name: str) -> Places:
    """The codes and positions stated in the first line of a model."""
    first = (FOLDER / name).read_text(encoding="utf-8").partition("\n")[0]
    places = re.findall(r"([EW]\d{3}) (\d+):(\d+)", first)
    return [(code, int(line), int(column)) for code, line, column in places]


def first_of_each_code() -> Iterator[tuple[str, str]]:
    seen: set[str] = set()
    for name in MODELS:
        places = stated(name)
        if len(places) == 1 and places[0][0] not in seen:
            seen.add(places[0][0])
            yield places[0][0], name


EXAMPLES = dict(first_of_each_code())


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FOLDER)


def refused(name: str) -> SlomodelError:
    with pytest.raises(SlomodelError) as caught:
        slomodel.compile(Path(name))
    return caught.value


def test_the_folder_is_large_and_numbered() -> None:
    assert [name[:3] for name in MODELS] == [f"{k:03d}" for k in range(1, len(MODELS) + 1)]
    assert len(MODELS) >= 120
    texts = [(FOLDER / name).read_text(encoding="utf-8").partition("\n")[2] for name in MODELS]
    assert len(set(texts)) >= len(texts) - 1  # one is empty, and one almost


@pytest.mark.parametrize("name", MODELS)
def test_each_is_refused_once_in_its_place_with_a_remedy(name: str) -> None:
    places = stated(name)
    found = refused(name).diagnostics
    assert [(d.code, d.span.line, d.span.column) for d in found if d.span] == places
    assert len(found) == len(places)
    for diagnostic in found:
        assert diagnostic.help or diagnostic.code == "E101"
        assert diagnostic.severity == "error"
        span = diagnostic.span
        assert span is not None
        assert 0 <= span.start <= span.end <= len(span.source.text)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", MODELS)
def test_check_ends_with_1_and_the_place(name: str) -> None:
    result = CliRunner().invoke(main, ["check", name])
    assert (result.exit_code, result.stdout) == (1, "")
    assert isinstance(result.exception, SystemExit)
    places = stated(name)
    assert places
    for code, line, column in places:
        assert f"error[{code}]: " in result.stderr
        assert f"\n  --> {name}:{line}:{column}\n" in result.stderr


@pytest.mark.parametrize("code", EXAMPLES)
def test_golden(golden: Callable[[str, str], None], code: str) -> None:
    golden(f"messages/{code}.txt", f"{refused(EXAMPLES[code])}\n")
