"""Hooks of mkdocs: pages of the language, the gallery, outputs of blocks, and the navigation."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import unquote

sys.path.insert(0, str(Path(__file__).parent))
import colours
import gallery
import outputs

GRAMMAR = Path(__file__).parent.parent / "grammar"
_HEADING = re.compile(r"^(#{2,3}) (.+)$", re.MULTILINE)
_LANGUAGE = "Language"
_TARGET = re.compile(r"(?:href|src)=\"?([^\"\s>]+)")
_ANCHOR = re.compile(r"\bid=\"?([^\"\s>]+)")
_TABLES = ("functions", "codes")
_REMOTE_WORKER = "https://unpkg.com/iframe-worker/shim"
_GALLERY_AT = 3
"""Place in the navigation: after the how-to pages."""


def pages() -> dict[str, tuple[str, str]]:
    """Title and text of each page by its path in the site, in order; the first is the index."""
    text = (GRAMMAR / "reference.md").read_text(encoding="utf-8")
    text = text.replace("[slo.lark](slo.lark)", "`slo.lark`")
    for name in _TABLES:
        text = text.replace(f"({name}.md)", f"(table_of_{name}.md)")
    text = text.replace("(../docs/", "(../")
    found: dict[str, tuple[str, str]] = {}
    parts = _HEADING.split(text)
    found["language/index.md"] = ("Overview", parts[0])
    for title, body in zip(parts[2::3], parts[3::3], strict=True):
        if not body.strip():
            continue
        name = re.sub(r"\W+", "_", title.lower()).strip("_")
        found[f"language/{name}.md"] = (title, f"# {title}\n{body}")
    index = found["language/index.md"][1]
    listed = [
        f"- [{title}]({path.removeprefix('language/')})" for path, (title, _) in found.items()
    ]
    found["language/index.md"] = ("Overview", index + "\n" + "\n".join(listed[1:]) + "\n")
    for name in _TABLES:
        text = (GRAMMAR / f"{name}.md").read_text(encoding="utf-8")
        own = text.replace("(reference.md)", "(index.md)").replace("(../docs/", "(../")
        found[f"language/table_of_{name}.md"] = (f"Table of {name}", own)
    return found


def unlisted(nav: str) -> list[str]:
    """The pages at the top of docs that the text of mkdocs.yml does not name: those of theory."""
    folder = Path(__file__).parent
    return sorted(path.name for path in folder.glob("*.md") if f" {path.name}\n" not in nav)


def on_config(config: Any) -> Any:
    """Put the pages into the navigation, and let Pygments colour models."""
    colours.register()
    if os.environ.get("SLOMODEL_GALLERY"):
        listed: list[object] = [{"Overview": "gallery/index.md"}]
        listed += [{title: f"gallery/{name}.md"} for name, title in gallery.TITLES.items()]
        config["nav"].insert(_GALLERY_AT, {"Gallery": listed})
    own = unlisted(Path(config["config_file_path"]).read_text(encoding="utf-8"))
    for entry in config["nav"]:
        if isinstance(entry, dict) and "Mathematics" in entry:
            entry["Mathematics"] += own
        for section in entry.get("Reference", ()) if isinstance(entry, dict) else ():
            if _LANGUAGE in section:
                section[_LANGUAGE] = [{title: path} for path, (title, _) in pages().items()]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages."""
    from mkdocs.structure.files import File

    for path, (_, text) in pages().items():
        files.append(File.generated(config, path, content=text))
    if os.environ.get("SLOMODEL_GALLERY"):
        files.append(File.generated(config, "gallery/index.md", content=gallery.index()))
        for name in gallery.TITLES:
            entry = gallery.entry(name)
            files.append(File.generated(config, f"gallery/{name}.md", content=entry.page))
            files.append(File.generated(config, f"gallery/{name}.png", content=entry.picture))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Put what the blocks print under them, and titles over models that are refused."""
    markdown = titled(markdown)
    written = not page.file.src_uri.startswith(("gallery/", "language/"))
    if not (os.environ.get("SLOMODEL_GALLERY") and written):
        return markdown
    with tempfile.TemporaryDirectory() as folder:
        return outputs.with_outputs(markdown, Path(folder))


def titled(markdown: str) -> str:
    """The page with the second word of a fence as a title, and blocks apart from one another."""
    markdown = markdown.replace("\n```\n```", "\n```\n\n```")
    return re.sub(r"^```(\w+) (\w+)$", r'\n```\1 title="\2"', markdown, flags=re.MULTILINE)


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Take the script for pages opened from a folder from the site, not from the network."""
    up = "../" * page.url.count("/")
    return output.replace(_REMOTE_WORKER, f"{up}offline_worker.js")


def on_post_build(config: Any) -> None:
    """Fail if a link or picture of the built pages leads nowhere."""
    site = Path(config["site_dir"])
    texts = {page: page.read_text(encoding="utf-8") for page in site.rglob("*.html")}
    anchors = {page.resolve(): set(_ANCHOR.findall(text)) for page, text in texts.items()}
    broken = []
    for page, text in texts.items():
        for link in _TARGET.findall(text) if page.name != "404.html" else ():
            path, _, anchor = unquote(link).partition("#")
            to = (page.parent / path).resolve() if path else page.resolve()
            if "://" in link or link.startswith(("data:", "mailto:")) or path in ("", "."):
                continue
            known = anchors.get(to)
            if not to.exists() or (anchor and known is not None and anchor not in known):
                broken.append(f"{page.relative_to(site)}: {link}")
    if broken:
        raise SystemExit("broken links:\n" + "\n".join(broken))
