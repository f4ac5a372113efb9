"""Pages of the language, one per heading of the reference, and the navigation, for mkdocs."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import gallery

GRAMMAR = Path(__file__).parent.parent / "grammar"
_HEADING = re.compile(r"^(#{2,3}) (.+)$", re.MULTILINE)
_LANGUAGE = "Language"
_TABLES = ("functions", "codes")


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
    """Put the pages into the navigation."""
    if os.environ.get("SLOMODEL_GALLERY"):
        listed = [{gallery.title_of(name): f"gallery/{name}.md"} for name in gallery.NAMES]
        config["nav"].append({"Gallery": listed})
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
    for name in gallery.NAMES if os.environ.get("SLOMODEL_GALLERY") else ():
        files.append(File.generated(config, f"gallery/{name}.md", content=gallery.page(name)))
    return files
