"""The pages of docs: every block runs, every link leads somewhere, every page is in the site."""

from __future__ import annotations

import importlib.util
import re
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import slomodel
from tests.marks import slow_unless

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
NAMES = [str(page.relative_to(DOCS)) for page in PAGES]
GENERATED = "language/"
_BLOCK = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\(([^)\s]+)\)")


WITH_BLOCKS = [name for name in NAMES if "```" in (DOCS / name).read_text(encoding="utf-8")]
# Seconds each. `make docs`, which CI calls too, runs the blocks of every page.
LONG = {"tutorial.md", "paper.md"}


@pytest.mark.parametrize("name", slow_unless(lambda name: name not in LONG, WITH_BLOCKS))
def test_every_block_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLOMODEL_BACKEND", "numpy")
    text = (DOCS / name).read_text(encoding="utf-8")
    shown = loaded("outputs").with_outputs(text, tmp_path)
    assert len(_BLOCK.findall(shown)) >= len(_BLOCK.findall(text)) > 0


def test_blocks_show_what_they_print_and_fail_loudly(tmp_path: Path) -> None:
    with_outputs = loaded("outputs").with_outputs
    page = "```python\nprint(1 + 1)\n```\n\n```python\nx = 3\n```\n"
    assert with_outputs(page, tmp_path).count('```text title="prints"\n2\n```') == 1
    for block in ("python\n1 / 0", "console\n$ slomodel check none.slo", "slo\nvar", "rust\nx"):
        with pytest.raises((ZeroDivisionError, ValueError)):
            with_outputs(f"```{block}\n```\n", tmp_path)


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


def test_the_page_of_the_python_interface_is_whole() -> None:
    named = re.findall(
        r"^::: slomodel\.(\w+)$", (DOCS / "reference/api.md").read_text(), re.MULTILINE
    )
    public = {name for name in slomodel.__all__ if not name.startswith("_")}
    assert sorted(named) == sorted(public | {"plots"})


def test_the_pages_of_the_language_hold_the_whole_reference() -> None:
    pages = site_pages().pages()
    assert len(pages) > 15
    titled = site_pages().titled
    for _, body in pages.values():
        # Anything else after the language is not read as a fence.
        fences = re.findall(r"^```.+$", titled(body), re.MULTILINE)
        assert all(re.fullmatch(r'```\w+( title="\w+")?', one) for one in fences)
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


def test_models_are_coloured(monkeypatch: pytest.MonkeyPatch) -> None:
    lexers = pytest.importorskip("pygments.lexers")
    monkeypatch.syspath_prepend(str(DOCS))
    import_module("colours").register()
    text = "var x[3] > 0  # a\nminimize sum(x) + 1.5\n"
    tokens = {word: str(kind) for kind, word in lexers.get_lexer_by_name("slo").get_tokens(text)}
    assert "".join(word for _, word in lexers.get_lexer_by_name("slo").get_tokens(text)) == text
    assert tokens["var"] == tokens["minimize"] == "Token.Keyword.Declaration"
    assert tokens["sum"] == "Token.Name.Function"
    assert tokens["# a"] == "Token.Comment.Single"
    assert tokens["1.5"] == "Token.Literal.Number"


def test_a_page_of_the_gallery(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLOMODEL_BACKEND", "numpy")
    monkeypatch.syspath_prepend(str(DOCS))
    gallery = loaded("gallery")
    entry = gallery.entry("eight_schools", 5.0)
    assert entry.page.startswith("# Eight schools\n\nEight schools: a hierarchical normal model")
    assert entry.picture.startswith(b"\x89PNG")
    assert "theta" in entry.page
    # Markdown leaves a block in HTML as it is, up to a blank line.
    for block in re.findall(r"^<div>.*?(?=\n\n|\Z)", entry.page, re.DOTALL | re.MULTILINE):
        assert block.rstrip().endswith("</div>")
    for name in gallery.TITLES:
        assert gallery.title_of(name)
        assert f"{name}.png" in gallery.index()
    assert gallery.TITLES.keys() == gallery.pictures.PICTURES.keys()
    assert len(gallery.TITLES) == 20
