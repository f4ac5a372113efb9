"""The extension for VS Code: its archive, and a session with the server where Node is present."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest

import slomodel

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "editors" / "vscode"
TEXT = "dim n\nvar  xs[n]   init 1\nminimize sum(xs^4) + yy\n"


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("vsix") / "slomodel.vsix"
    command = [sys.executable, str(FOLDER / "pack.py"), "-o", str(path)]
    subprocess.run(command, check=True, capture_output=True)
    return path


def test_the_archive_has_what_the_manifests_name(archive: Path) -> None:
    with zipfile.ZipFile(archive) as files:
        names = set(files.namelist())
        texts = {name: files.read(name).decode() for name in names}
    package = json.loads(texts["extension/package.json"])
    assert package["version"] == slomodel.__version__
    paths = [package["main"], *(one["path"] for one in package["contributes"]["grammars"])]
    paths += [one["configuration"] for one in package["contributes"]["languages"]]
    assert {f"extension/{path.removeprefix('./')}" for path in paths} <= names
    manifest = ElementTree.fromstring(texts["extension.vsixmanifest"])
    assets = [one.attrib["Path"] for one in manifest.iter() if one.tag.endswith("Asset")]
    assert set(assets) <= names
    (identity,) = (one for one in manifest.iter() if one.tag.endswith("Identity"))
    assert identity.attrib["Version"] == package["version"]
    endings = re.findall(r'Extension="\.(\w+)"', texts["[Content_Types].xml"])
    assert {name.rpartition(".")[2] for name in names} <= {*endings, "xml"}
    grammar = (ROOT / "grammar" / "slo.tmLanguage.json").read_text(encoding="utf-8")
    assert texts["extension/slo.tmLanguage.json"] == grammar


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
def test_a_session(tmp_path: Path) -> None:
    server = tmp_path / "slomodel"
    server.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m slomodel "$@"\n')
    server.chmod(0o755)
    command = ["node", str(ROOT / "tests" / "vscode_stub.js"), str(FOLDER), str(server)]
    done = subprocess.run(
        command, input=TEXT, text=True, capture_output=True, timeout=120, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    ((diagnostic,),) = found["shown"]
    assert "unknown name `yy`" in diagnostic["values"][1]
    assert (diagnostic["code"], diagnostic["values"][2]) == ("E201", 0)
    assert diagnostic["values"][0]["values"] == [2, 21, 2, 23]
    assert "xs" in {one["values"][0] for one in found["completion"]}
    assert "xs" in found["hover"]["values"][0]["values"][0]
    assert found["definition"]["values"][1]["values"] == [1, 5, 1, 7]
    (edits,) = found["rename"]["values"]
    assert [one["values"][0]["values"][0] for one in edits] == [1, 2]
    assert found["symbols"]
    assert found["format"][0]["values"][1].startswith("dim")


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
def test_a_missing_command_is_reported(tmp_path: Path) -> None:
    command = ["node", str(ROOT / "tests" / "vscode_stub.js"), str(FOLDER), "no_such_slomodel"]
    done = subprocess.run(
        command, input=TEXT, text=True, capture_output=True, timeout=20, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr
    (said,) = json.loads(done.stdout)["shown"]
    assert "`no_such_slomodel lsp` does not run" in said


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
def test_what_a_server_says_at_its_end_is_shown(tmp_path: Path) -> None:
    """As where the package pygls is missing."""
    server = tmp_path / "server"
    server.write_text("#!/bin/sh\necho 'it needs pygls' >&2\nexit 1\n")
    server.chmod(0o755)
    command = ["node", str(ROOT / "tests" / "vscode_stub.js"), str(FOLDER), str(server)]
    done = subprocess.run(
        command, input=TEXT, text=True, capture_output=True, timeout=20, cwd=ROOT, check=False
    )
    (said,) = json.loads(done.stdout)["shown"]
    assert "has ended: it needs pygls" in said
