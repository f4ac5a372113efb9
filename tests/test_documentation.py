"""The pages of docs: every block runs, every link leads somewhere, every page is in the site."""

from __future__ import annotations

import importlib.util
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner

import slomodel
from slomodel.cli import main

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
NAMES = [str(page.relative_to(DOCS)) for page in PAGES]
GENERATED = "language/"
NOT_RUN = {"text", ""}
_BLOCK = re.compile(r"^```(\w*)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: its language, the file that it shows if any, and its text."""

    language: str
    title: str
    text: str


def blocks(page: Path) -> Iterator[Block]:
    for language, title, text in _BLOCK.findall(page.read_text(encoding="utf-8")):
        yield Block(language, title, text)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to run a page in, with kernels that need no C compiler."""
    monkeypatch.setenv("SLOMODEL_BACKEND", "numpy")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.filterwarnings("ignore::slomodel.ModelWarning")
@pytest.mark.parametrize("name", [name for name in NAMES if any(blocks(DOCS / name))])
def test_every_block_runs(name: str, folder: Path) -> None:
    space: dict[str, object] = {}
    for block in blocks(DOCS / name):
        if block.title:
            (folder / block.title).write_text(block.text, encoding="utf-8")
        if block.language == "slo":
            slomodel.compile(folder / block.title if block.title else block.text)
        elif block.language == "python":
            exec(compile(block.text, name, "exec"), space)
        elif block.language == "console":
            for line in block.text.splitlines():
                assert line.startswith("$ slomodel "), line
                done = CliRunner().invoke(main, shlex.split(line)[2:])
                assert done.exit_code == 0, done.output
        else:
            assert block.title or block.language in NOT_RUN, block.language


def site_pages() -> ModuleType:
    return loaded("language_pages")


def loaded(name: str) -> ModuleType:
    """The module of this name beside the pages."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_to_pages(name: str) -> None:
    text = _BLOCK.sub("", (DOCS / name).read_text(encoding="utf-8"))
    for link in _LINK.findall(text):
        path = link.partition("#")[0]
        if path and "://" not in path:
            assert ((DOCS / name).parent / path).resolve().is_file(), link


def test_every_page_is_in_the_navigation_and_the_reverse() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    named = re.findall(r"^ *- [^\n]*: (\S+\.md)$", text, re.MULTILINE)
    named += site_pages().unlisted(text)
    assert sorted(one for one in named if not one.startswith(GENERATED)) == NAMES
    assert len(set(named)) == len(named)


def test_the_pages_of_the_language_hold_the_whole_reference() -> None:
    pages = site_pages().pages()
    assert len(pages) > 15
    index, *_ = pages.values()
    text = (ROOT / "grammar" / "reference.md").read_text(encoding="utf-8")
    every = "".join(body for _, body in pages.values())
    for line in text.splitlines():
        if not line.startswith("#") and ".md" not in line and "slo.lark" not in line:
            assert line in every
    for path in re.findall(r"\]\((\w+\.md)\)", index[1]):
        assert f"language/{path}" in pages
    for _, body in pages.values():
        for link in _LINK.findall(_BLOCK.sub("", body)):
            path = link.partition("#")[0]
            known = f"language/{path}" in pages or (DOCS / "language" / path).resolve().is_file()
            assert known or "://" in link or not path, link


def test_a_page_of_the_gallery(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLOMODEL_BACKEND", "numpy")
    gallery = loaded("gallery")
    text = gallery.page("eight_schools", 5.0)
    assert text.startswith("# Eight schools: a hierarchical normal model")
    assert "<polyline" in text
    assert "<rect" in text
    assert "theta" in text
    for name in gallery.NAMES:
        assert gallery.title_of(name)
    assert len(set(gallery.NAMES)) == 20
