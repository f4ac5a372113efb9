"""The supported interpreters with the oldest and newest libraries: the table of `make matrix`.

    python tests/matrix.py [--write] [PYTHON …]

Each interpreter gets two virtual environments under out/matrix: one with the oldest versions of the
libraries below that pyproject.toml accepts, one with the newest that pip finds. Where a library's
oldest version has no wheel for the interpreter, the first later version that has one is taken. In
each environment the wheel is installed, a model is solved from an empty folder, and the tests below
run with the checkout's sources. Interpreters are given as paths; by default python3.11 to
python3.14 are looked up on PATH and below ~/.pyenv.
`--write` puts the table in docs/supported.md; rows of interpreters that were not tried stay.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "out" / "matrix"
PAGE = ROOT / "docs" / "supported.md"
MINORS = (11, 12, 13, 14)
LIBRARIES = ("numpy", "scipy", "sympy", "numexpr")
TESTS = (
    *("tests/test_readme.py", "tests/test_model_calls.py", "tests/test_uncertainty.py"),
    *("tests/front/test_sympy.py", "tests/codegen/test_kernels.py"),
    *("tests/front/test_data_files.py", "tests/test_cli_check.py"),
)
TOOLS = ("pytest>=9", "pytest-xdist>=3.6", "hypothesis>=6.130", "mpmath>=1.3", "interegular>=0.3.3")
DEMO = (
    "import slomodel; m = slomodel.compile(slomodel.example('rosenbrock'), dims={'n': 10}); "
    "s = m.solve(); assert s.fun < 1e-8 and s.status == 'converged', s; print(m.backend)"
)
HEADER = (
    "# Supported versions",
    "",
    "Python 3.11 or newer, with the libraries below or newer ones. `make matrix` writes this",
    "page: in each environment the wheel is installed, a model is solved from an empty folder,",
    "and tests of models, data, SymPy, generated code, standard errors and commands run.",
    "",
    "| Python | NumPy | SciPy | SymPy | numexpr | wheel | tests |",
    "|---|---|---|---|---|---|---|",
)
_REQUIREMENT = re.compile(r"([\w.-]+)(?:\[[\w,]+\])?>=([\w.]+)")


@dataclass(frozen=True)
class Outcome:
    """One environment: its interpreter, its libraries, and how wheel and tests fared."""

    python: str
    libraries: dict[str, str]
    demo: str
    tests: str

    @property
    def passed(self) -> bool:
        return self.demo.startswith("solved") and "failed" not in self.tests


def interpreters() -> dict[int, Path]:
    """The interpreter of each supported minor version that is present."""
    found: dict[int, Path] = {}
    for minor in MINORS:
        on_path = shutil.which(f"python3.{minor}")
        candidates = [Path(on_path)] if on_path else []
        candidates += sorted(Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python"))
        for one in candidates:
            asked = [str(one), "-c", "import sys; print(sys.version_info.minor)"]
            done = subprocess.run(asked, capture_output=True, text=True, check=False)
            if done.returncode == 0 and done.stdout.strip() == str(minor):
                found[minor] = one
                break
    return found


def oldest(python: Path) -> list[str]:
    """Pin each library of the table to its oldest accepted version with a wheel for ``python``."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    parsed = [_REQUIREMENT.fullmatch(requirement) for requirement in project["dependencies"]]
    accepted = [(match[1], match[2]) for match in parsed if match and match[1] in LIBRARIES]
    return [f"{name}=={_oldest_wheel(python, name, least)}" for name, least in accepted]


def _oldest_wheel(python: Path, name: str, least: str) -> str:
    """The first version of a library from ``least`` on that pip finds as a wheel."""
    minor = _printed(python, "import sys; print('%d.%d' % sys.version_info[:2])")
    query = [sys.executable, "-m", "pip", "index", "versions", name, "--python-version", minor]
    done = subprocess.run(
        [*query, "--only-binary=:all:"], capture_output=True, text=True, check=True
    )
    listed = re.search(r"Available versions: (.*)", done.stdout)
    versions = listed[1].split(", ") if listed else []
    return min((each for each in versions if _key(each) >= _key(least)), key=_key, default=least)


def _key(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


def outcome(python: Path, pins: Sequence[str], folder: Path, wheel: Path) -> Outcome:
    """Set up an environment with these pins, install the wheel, run the demo and the tests."""
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([str(python), "-m", "venv", "--without-pip", str(folder)], check=True)
    own = folder / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(own), "install", "--quiet"]
    wanted = [f"{wheel}[plot]", *TOOLS, *pins]
    done = subprocess.run([*install, *wanted], capture_output=True, text=True, check=False)
    version = _printed(own, "import platform; print(platform.python_version())")
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        return Outcome(version, {}, f"not installed: {lines[-1] if lines else ''}", "failed")
    names = f"import importlib.metadata as m; print(*map(m.version, {LIBRARIES}))"
    libraries = dict(zip(LIBRARIES, _printed(own, names).split(), strict=True))
    solved = subprocess.run(
        [str(own), "-P", "-c", DEMO], cwd=folder, capture_output=True, text=True, check=False
    )
    demo = f"solved ({solved.stdout.strip()})" if not solved.returncode else "failed"
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1")
    ran = subprocess.run(
        [str(own), "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS],
        cwd=ROOT,
        env={**os.environ, **threads, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    (folder / "tests.txt").write_text(ran.stdout + solved.stderr, encoding="utf-8")
    last = (ran.stdout.strip().splitlines() or ["failed"])[-1]
    return Outcome(version, libraries, demo, re.sub(r" in .*|=|, \d+ deselected", "", last).strip())


def _printed(python: Path, code: str) -> str:
    return subprocess.run(
        [str(python), "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


def table(outcomes: Sequence[Outcome], page: str) -> str:
    """The page with one row per environment; the rows of ``page`` for other Pythons are kept."""
    tried = {_minor(outcome.python) for outcome in outcomes}
    rows = [row for row in re.findall(r"^\| 3\..*$", page, re.M) if _minor(row[2:]) not in tried]
    for outcome in outcomes:
        cells = [outcome.python, *(outcome.libraries.get(name, "") for name in LIBRARIES)]
        rows.append(f"| {' | '.join([*cells, outcome.demo, outcome.tests])} |")
    rows.sort(key=lambda row: _minor(row[2:]))
    absent = [f"3.{minor}" for minor in MINORS if minor not in {_minor(row[2:]) for row in rows}]
    if absent:
        rows += [
            "",
            f"Not tried, since the interpreter was not present: Python {', '.join(absent)}.",
        ]
    return "\n".join([*HEADER, *rows]) + "\n"


def _minor(version: str) -> int:
    return int(version.split(".")[1])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("pythons", nargs="*", type=Path)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    pythons = given.pythons or list(interpreters().values())
    FOLDER.mkdir(parents=True, exist_ok=True)
    for old in FOLDER.glob("*.whl"):
        old.unlink()
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(FOLDER)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = FOLDER.glob("*.whl")
    outcomes = []
    for k, python in enumerate(pythons):
        for name, pins in (("oldest", oldest(python)), ("newest", [])):
            outcomes.append(outcome(python, pins, FOLDER / f"{k}_{name}", wheel))
            print(outcomes[-1], flush=True)
    text = table(outcomes, PAGE.read_text(encoding="utf-8"))
    print(text)
    if given.write:
        PAGE.write_text(text, encoding="utf-8")
    return 0 if all(one.passed for one in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
