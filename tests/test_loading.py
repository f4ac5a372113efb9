"""Lazy loading: public names on first use, and no library for a version number."""

import subprocess
import sys

import pytest

import slomodel

HEAVY = "{'numpy', 'scipy', 'sympy', 'numexpr', 'rich', 'lark', 'click'}"


def run(code: str) -> str:
    done = subprocess.run(
        (sys.executable, "-c", code), capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout


def test_the_version_is_reported_without_any_library() -> None:
    code = f"""
import sys
sys.argv = ["slomodel", "--version"]
from slomodel.__main__ import main
main()
print(sorted({HEAVY} & set(sys.modules)))
"""
    assert run(code) == f"slomodel {slomodel.__version__}\n[]\n"


def test_a_check_loads_neither_bounds_nor_processes() -> None:
    code = """
import sys
from slomodel.cli.group import load
load("check")
print([name for name in sys.modules if name in ("slomodel.bounds", "multiprocessing", "scipy")])
"""
    assert run(code) == "[]\n"


def test_every_public_name_is_there() -> None:
    names = run("from slomodel import *; import slomodel; print(*sorted(set(slomodel.__all__)))")
    assert names.split() == sorted(slomodel.__all__)
    assert set(slomodel.__all__) <= set(dir(slomodel))
    for name in slomodel.__all__:
        assert getattr(slomodel, name) is getattr(slomodel, name)


def test_modules_need_no_import_of_their_own() -> None:
    assert run("import slomodel; print(slomodel.plots.convergence.__name__)") == "convergence\n"
    assert run("import slomodel; print(slomodel.errors.Span.__name__)") == "Span\n"


def test_other_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="module 'slomodel' has no attribute 'compil'"):
        slomodel.compil  # type: ignore[attr-defined]  # noqa: B018
    assert not hasattr(slomodel, "parse")


def test_the_module_runs() -> None:
    done = subprocess.run(
        (sys.executable, "-m", "slomodel", "-h"),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "python -m slomodel [OPTIONS] COMMAND" in done.stdout
