"""The command line: output, files and exit codes."""

import json
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest
from click.testing import CliRunner, Result

from slomodel import Model, Solution, Status, __version__, load_solution
from slomodel.cli import main
from slomodel.cli.result import exit_code
from slomodel.solve.files import unwritable

ROSENBROCK = """model rosen
dim n
data b = 100
var x[n] init -1.2
minimize sum(b * (x[i+1] - x[i]^2)^2 + (1 - x[i])^2 for i in range(n - 1))
"""
FIT = """model fit
dim m, n
data A[m, n], y[m]
var x[n] init 0
minimize sumsq(A @ x - y)
"""
LOGARITHM = "var x init -1 minimize log(x)"
KINK = "var x[3] init 2 minimize sum(abs(x)) + sumsq(x)"
WRONG = "model wrong\nvar x[3]\nminimize sumsq(x + yy)\n"

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """`run("solve", "fit.slo", …)` in a folder that holds the models above and data of `fit`."""
    monkeypatch.chdir(tmp_path)
    for name, text in {"rosen": ROSENBROCK, "fit": FIT, "wrong": WRONG}.items():
        Path(f"{name}.slo").write_text(text)
    Path("log.slo").write_text(LOGARITHM)
    Path("kink.slo").write_text(KINK)
    rng = np.random.default_rng(1)
    np.save("A.npy", rng.normal(size=(6, 2)))
    np.savez("both.npz", y=rng.normal(size=6), other=np.ones(3))
    before = sorted(path.name for path in tmp_path.iterdir())

    def invoke(
        *arguments: str, text: str | bytes | None = None, leaves: tuple[str, ...] = ()
    ) -> Result:
        result = CliRunner().invoke(main, arguments, input=text)
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert sorted(path.name for path in tmp_path.iterdir()) == sorted((*before, *leaves))
        return result

    return invoke


FIT_DATA = ("--data", "A=A.npy", "--data", "y=both.npz")


def document(result: Result) -> dict[str, object]:
    """The one JSON document on standard output; NaN and Infinity are not JSON."""

    def refuse(constant: str) -> NoReturn:
        raise AssertionError(f"{constant} in JSON")

    loaded = json.loads(result.stdout, parse_constant=refuse)
    assert isinstance(loaded, dict)
    return loaded


def test_help_shows_commands_and_examples(run: Run) -> None:
    text = run("--help").stdout
    assert "slomodel solve rosenbrock.slo --set n=10\n" in text
    assert all(f"\n  {command} " in text for command in ("check", "solve", "codegen"))
    codes = run("solve", "-h").stdout
    assert "130  Ctrl-C" in codes


def test_version(run: Run) -> None:
    assert run("--version").stdout == f"slomodel {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("slove", "fit.slo"), 2, "did you mean `solve`?"),
        (("fit.slo", "--seed", "1"), 2, "slomodel solve fit.slo --seed 1"),
        (
            ("zzz",),
            2,
            "there are bounds, certify, check, codegen, completion, fmt, functions, lsp, methods, "
            "new, random-data, report, schema, solve",
        ),
        (("solve",), 2, "Missing argument 'FILE'"),
        (("check", "fit.slo", "--set", "n"), 2, "`n` is not name=value"),
        (("check", "fit.slo", "--set", "n=1", "--set", "n=2"), 2, "`n` is given twice"),
        (("solve", "rosen.slo", "--gtol", "small"), 2, "'small' is not a valid float"),
    ],
)
def test_mistakes_in_the_command(run: Run, arguments: list[str], code: int, said: str) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (code, "")
    assert said in result.stderr


def test_check_reports_what_is_known_and_what_is_missing(run: Run) -> None:
    result = run("check", "fit.slo", "--data", "A=A.npy")
    assert result.exit_code == 0
    assert "model fit: minimize" in result.stdout
    assert "m = 6, n = 2" in result.stdout
    assert result.stdout.splitlines()[-1] == "missing    y (give with --data NAME=PATH)"


def test_check_as_json(run: Run) -> None:
    told = document(run("check", "fit.slo", "--json"))
    assert told["dims"] == {"m": None, "n": None}
    assert (told["variables"], told["n"], told["missing"]) == ({"x": ["n"]}, None, ["A", "y"])
    told = document(run("check", "fit.slo", "--json", *FIT_DATA))
    assert told["dims"] == {"m": 6, "n": 2}
    assert told["data"] == {"A": [6, 2], "y": [6]}
    assert (told["variables"], told["n"], told["missing"]) == ({"x": [2]}, 2, [])


def test_solve_prints_a_table(run: Run) -> None:
    result = run("solve", "rosen.slo", "--set", "n=2", "--gtol", "1e-9")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "converged (solved)" in result.stdout
    assert " ".join(result.stdout.split()).endswith(" x [2] = 1, 1")


def test_solve_as_json_agrees_with_least_squares(run: Run) -> None:
    told = document(run("solve", "fit.slo", *FIT_DATA, "--json", "--out", "run.npz", leaves=RUN))
    matrix, y = np.load("A.npy"), np.load("both.npz")["y"]
    best, residual, *_ = np.linalg.lstsq(matrix, y)
    assert told["fun"] == pytest.approx(residual[0], rel=1e-12)
    np.testing.assert_allclose(load_solution("run.npz").variables["x"], best, rtol=1e-6)
    assert (told["status"], told["success"], told["nonfinite"]) == ("converged", True, {})
    assert (told["n"], told["variables"], told["out"]) == (2, {"x": [2]}, "run.npz")


RUN = ("run.npz",)


def test_set_gives_dims_and_scalar_data(run: Run) -> None:
    # At x = −1.2 everywhere: (n − 1)·(b·(−1.2 − 1.44)² + 2.2²).
    for b in (100.0, 0.5):
        told = run("solve", "rosen.slo", "--set", "n=4", "--set", f"b={b}", "--json",
                   "--max-nfev", "1")  # fmt: skip
        assert document(told)["fun"] == pytest.approx(3 * (b * 2.64**2 + 2.2**2), rel=1e-14)
        assert told.exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("wrong.slo",), "wrong.slo:3:20"),
        (("none.slo",), "cannot read `none.slo`"),
        ((".",), "cannot read `.`"),
        (("rosen.slo",), "--set n=10"),
        (("fit.slo",), "--data A=FILE --data y=FILE"),
        (("rosen.slo", "--set", "n=2.5"), "not `2.5`"),
        (("rosen.slo", "--set", "n=-1"), "not `-1`"),
        (("rosen.slo", "--set", "n=1" + "0" * 400), "dim `n` needs a whole number"),
        (("rosen.slo", "--set", "n=5", "--set", "b=inf"), "not `inf`"),
        (("rosen.slo", "--set", "k=5"), "--set can give `n`, `b`"),
        (("fit.slo", "--set", "A=1"), "--data A=FILE.npy"),
        (("fit.slo", "--data", "A=none.npy"), "none.npy"),
        (("fit.slo", "--data", "Q=A.npy"), "no data `Q`"),
        (("rosen.slo", "--set", "n=5", "--method", "bfgs"), "is a direction here"),
        (("rosen.slo", "--set", "n=5", "--theta", "2"), "theta"),
        (("rosen.slo", "--set", "n=5", "--backend", "abacus"), "abacus"),
        (("rosen.slo", "--set", "n=5", "--x0", "none.npz"), "cannot read the start `none.npz`"),
        (("rosen.slo", "--set", "n=5", "--x0", "rosen.slo"), "rosen.slo"),
        (("rosen.slo", "--set", "n=5", "--x0", "both.npz"), "the variables are x [5]"),
        (("rosen.slo", "--set", "n=5", "--x0", "A.npy"), "(5,)"),
        (("rosen.slo", "--set", "n=5", "--plot", "run.xyz"), ".png"),
        (("rosen.slo", "--set", "n=5", "--plot", "no/run.png"), "there is no folder `no`"),
        (("rosen.slo", "--set", "n=5", "--out", "."), "not a plain file"),
        (("rosen.slo", "--set", "n=5", "--out", "a.png", "--plot", "a.png"), "the same file"),
    ],
)
def test_bad_input(
    run: Run, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    """Message on standard error, exit code 1, nothing written; as JSON the message is data."""
    plain = run("solve", *arguments)
    assert (plain.exit_code, plain.stdout) == (1, "")
    assert said in plain.stderr
    assert plain.stderr.startswith("error")
    assert "Traceback" not in plain.stderr
    told = run("solve", *arguments, "--json")
    assert (told.exit_code, told.stderr) == (1, plain.stderr)
    assert said in str(document(told)["error"])


@pytest.mark.parametrize("option", ["--out", "--plot"])
def test_outputs_are_checked_before_the_run(
    run: Run, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    def never(*_: object, **__: object) -> NoReturn:
        raise AssertionError("solved")

    monkeypatch.setattr(Model, "solve", never)
    assert run("solve", "rosen.slo", "--set", "n=5", option, "no/run.png").exit_code == 1


def test_message_has_its_place_as_data(run: Run) -> None:
    (message,) = document(run("check", "wrong.slo", "--json"))["messages"]  # type: ignore[misc]
    assert (message["file"], message["line"], message["column"]) == ("wrong.slo", 3, 20)


def test_failed_save_still_prints_the_result(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Solution, path: Path) -> NoReturn:
        raise unwritable(path, OSError(28, "No space left on device"))

    monkeypatch.setattr(Solution, "save", full)
    arguments = ("solve", "rosen.slo", "--set", "n=4", "--json", "--out", "run.npz")
    result = run(*arguments, "--plot", "run.png", leaves=("run.png",))
    assert result.exit_code == 1
    assert "cannot write `run.npz`: no space left on device" in result.stderr
    told = document(result)
    assert (told["status"], told["out"], told["plot"]) == ("converged", None, "run.png")


def test_start_from_files(run: Run) -> None:
    solve = ("solve", "rosen.slo", "--set", "n=4", "--json")
    first = document(run(*solve, "--out", "run.npz", leaves=RUN))
    again = document(run(*solve, "--x0", "run.npz", "--max-nfev", "1", leaves=RUN))
    assert (again["fun"], again["nit"]) == (first["fun"], 0)
    files = (*RUN, "named.npz", "flat.npy")
    np.savez("named.npz", x=np.ones(4))
    np.save("flat.npy", np.ones(4))
    for name in ("named.npz", "flat.npy"):
        told = document(run(*solve, "--x0", name, leaves=files))
        assert (told["fun"], told["nit"]) == (0.0, 0)


def test_nonfinite_start_is_valid_json(run: Run) -> None:
    result = run("solve", "log.slo", "--json")
    told = document(result)
    assert result.exit_code == 3
    assert (told["status"], told["success"]) == ("nonfinite_start", False)
    assert told["fun"] is None
    assert told["values"] == {"x": -1.0}
    assert told["nonfinite"] == {"fun": "nan"}


def test_kinks_are_warned_about_once(run: Run) -> None:
    for arguments in (("check", "kink.slo", "--json"), ("solve", "kink.slo", "--json")):
        result = run(*arguments)
        assert result.stderr.count("warning[W20") == 1
        assert "UserWarning" not in result.stderr
        document(result)


def test_model_from_standard_input(run: Run) -> None:
    told = document(run("solve", "-", "--set", "n=3", "--json", text=ROSENBROCK))
    assert told["variables"] == {"x": [3]}


def test_standard_input_must_be_text(run: Run) -> None:
    result = run("check", "-", text=b"\xff\xfe")
    assert result.exit_code == 1
    assert result.stderr.startswith("error[E002]: standard input is not UTF-8 text\n help: ")


@pytest.mark.parametrize("target", ["numpy", "numexpr"])
def test_codegen_writes_a_module(run: Run, target: str) -> None:
    arguments = ("codegen", "fit.slo", *FIT_DATA, "--target", target)
    result = run(*arguments, "-o", "fit.py", leaves=("fit.py",))
    assert (result.exit_code, result.stdout) == (0, "wrote fit.py\n")
    assert "slomodel" not in [line.split()[1] for line in Path("fit.py").read_text().splitlines()
                              if line.startswith(("import ", "from "))]  # fmt: skip
    data = {"A": np.load("A.npy"), "y": np.load("both.npz")["y"]}
    x = np.array([0.5, -2.0])
    value = runpy.run_path("fit.py")["value"](x, data)
    assert value == pytest.approx(float(np.sum((data["A"] @ x - data["y"]) ** 2)), rel=1e-14)
    assert run(*arguments, leaves=("fit.py",)).stdout == Path("fit.py").read_text()


@pytest.mark.parametrize(
    ("status", "asked", "code"),
    [
        (Status.converged, [], 0),
        (Status.precision, [], 0),
        (Status.max_time, ["max_time"], 0),
        (Status.max_iter, ["max_iter"], 0),
        (Status.max_iter, ["max_time"], 3),
        (Status.max_nfev, [], 3),
        (Status.unbounded, ["max_time"], 3),
        (Status.line_search_stalled, [], 3),
        (Status.interrupted, ["max_time"], 130),
    ],
)
def test_exit_codes(status: Status, asked: list[str], code: int) -> None:
    assert exit_code(status, asked) == code
