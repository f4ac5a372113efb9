"""`slomodel check` on good models, `slomodel functions`, and the modules that are loaded."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import slomodel
from slomodel.cli import main
from slomodel.cli.group import COMMANDS
from slomodel.front.catalogue import catalogue
from slomodel.front.elaboration.functions.array_functions import ARRAY_FUNCTIONS
from slomodel.front.elaboration.functions.library import library
from slomodel.front.source import problem_of
from slomodel.front.text.parse import read_source
from slomodel.functions import FUNCTIONS
from slomodel.ir.dims import show_shape

MODELS = sorted((Path(__file__).parents[1] / "models").glob("*.slo"))
JOINED = {"tukey_regression": "C2", "hard_instance": "C1"}
SMOOTH = "smooth (derivatives of every order on its domain)"


def run(*arguments: str, text: str | None = None) -> Result:
    result = CliRunner().invoke(main, arguments, input=text)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_check_reports_dims_shapes_unknowns_and_smoothness(path: Path, tmp_path: Path) -> None:
    data = tmp_path / "data.npz"
    names = json.loads(run("random-data", str(path), "-o", str(data), "--json").stdout)["data"]
    options = [f"--data={name}={data}" for name in names]
    if path.stem == "rosenbrock":
        options = ["--set=n=4"]
    result = run("check", str(path), *options)
    told = json.loads(run("check", str(path), *options, "--json").stdout)
    assert (result.exit_code, result.stderr, told["warnings"]) == (0, "", [])
    problem = problem_of(read_source(path))
    lines = result.stdout.splitlines()
    sizes = ", ".join(f"{dim.name} = {told['dims'][dim.name]}" for dim in problem.dims)
    assert (f"dims       {sizes}" in lines) == bool(problem.dims)
    for variable in problem.variables:
        shape = show_shape(variable.shape)
        assert any(line.startswith(f"variable   {variable.name} {shape}") for line in lines)
    assert set(told["data"]) == {declared.name for declared in problem.data}
    assert f"unknowns   {told['n']}" in lines
    assert told["n"] > 0
    assert told["smoothness"] == JOINED.get(path.stem, SMOOTH)
    assert f"smoothness {told['smoothness']}" in lines


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_check_needs_no_data(path: Path) -> None:
    result = run("check", str(path))
    assert (result.exit_code, result.stderr) == (0, "")
    heads = {line.split(" ")[0] for line in result.stdout.splitlines()}
    assert heads >= {"variable", "unknowns", "smoothness"}
    assert ("dims" in heads) == bool(problem_of(read_source(path)).dims)


def test_unknowns_are_counted_as_far_as_sizes_are_known() -> None:
    declared = "dim p, q, r = 5 var U[p, r], V[q-1, r], v[p, 2], w[r], c"
    text = f"{declared} minimize sumsq(U) + sumsq(V) + sumsq(v) + dot(w, w)*c"
    for options, count in (
        ((), "7*p + 5*(q - 1) + 6"),
        (("--set=p=2",), "5*(q - 1) + 20"),
        (("--set=p=2", "--set=q=3"), "30"),
    ):
        assert f"unknowns   {count}" in run("check", "-", *options, text=text).stdout.splitlines()


@pytest.mark.parametrize(
    ("objective", "expected"),
    [
        ("sumsq(x)", SMOOTH),
        ("sum(abs(x))", "nonsmooth (it has kinks)"),
        ("sum(sign(x))", "discontinuous (it jumps)"),
        ("sum(huber(x))", "C1"),
        ("sum(huber(x, w))", "C1"),
        ("sum(huber(x, w - 1))", "nonsmooth (it has kinks)"),
        ("sum(huber(x, w^2))", "C1"),
        ("sum(where(w > 0, x^2, x))", SMOOTH),
        ("sum(where(x > 0, x^2, x))", "nonsmooth (it has kinks)"),
        ("sum(where(x > 0, x^3, 0))", "C2"),
        ("sum(masked(x, w))", SMOOTH),
    ],
)
def test_smoothness_classes(objective: str, expected: str) -> None:
    text = f"data w[3] mask = 1 var x[3] minimize {objective}"
    assert json.loads(run("check", "-", "--json", text=text).stdout)["smoothness"] == expected


def test_warnings_as_json_have_codes_and_places() -> None:
    text = "data y\ndim n\nvar x[n] init 0\nminimize norm1(x) + x[0]*x[1]"
    told = json.loads(run("check", "-", "--json", text=text).stdout)
    found = [(w["code"], w["severity"], w["line"], w["column"]) for w in told["warnings"]]
    assert sorted(found) == [
        *(("W201", "warning", 4, 10), ("W202", "warning", 1, 6), ("W203", "warning", 3, 5))
    ]
    assert [w["message"] for w in told["warnings"] if w["code"] == "W202"] == [
        "data `y` does not occur in the objective"
    ]
    assert all(w["help"] and w["file"] for w in told["warnings"])


def test_every_function_is_listed_with_its_signature() -> None:
    entries = catalogue()
    signatures = [entry.signature for entry in entries]
    assert len(set(signatures)) == len(FUNCTIONS) + len(ARRAY_FUNCTIONS) + len(library())
    listed = run("functions").stdout
    for entry in entries:
        assert re.search(rf"^  {re.escape(entry.signature)}  +\S", listed, re.MULTILINE)
    told = json.loads(run("functions", "--json").stdout)["functions"]
    assert [one["signature"] for one in told] == signatures


def test_one_function_is_reported_in_full() -> None:
    assert run("functions", "log1p").stdout == (
        "log1p(x)\n  log(1 + x), accurate near 0\n"
        "  elementwise; domain: x > -1; smoothness: derivatives of every order\n"
    )
    assert run("functions", "max").stdout.count("max(") == 3
    result = run("functions", "softpls")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "did you mean `softplus`?" in result.stderr


@pytest.mark.filterwarnings("ignore::slomodel.ModelWarning")
@pytest.mark.parametrize("name", ["log1p", "expm1", "sigmoid", "softplus", "logcosh", "square"])
def test_a_meaning_that_is_a_formula_is_true(name: str) -> None:
    (entry,) = (one for one in catalogue() if one.name == name)
    formula = entry.meaning.partition(",")[0]
    both = [slomodel.compile(f"var x minimize {text}") for text in (entry.signature, formula)]
    for x in (-0.5, 0.3, 2.0):
        assert both[0].value([x]) == pytest.approx(both[1].value([x]), rel=1e-12)


def test_help_loads_no_numerical_library_and_names_every_command() -> None:
    code = (
        "import sys\nfrom slomodel.cli import main\nmain(['--help'], standalone_mode=False)\n"
        "print(sorted({'numpy', 'scipy', 'sympy', 'lark'} & set(sys.modules)))"
    )
    done = subprocess.run((sys.executable, "-c", code), capture_output=True, text=True, check=True)
    assert done.stdout.endswith("\n[]\n")
    for name, (_, _, summary) in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(summary)}$", done.stdout, re.MULTILINE)
        assert run(name, "--help").exit_code == 0
