"""One whole message for each code without a bad model: files, SymPy, options."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import sympy as sp
from click.testing import CliRunner

import slomodel
from slomodel.calculus import gradient
from slomodel.cli import main
from slomodel.errors import SlomodelError
from slomodel.front.text.parse import LONGEST_TEXT, MOST_SIGNS
from slomodel.ir.build import variable
from slomodel.ir.dims import Dim
from slomodel.solve.constants.proved import unproved
from slomodel.solve.options import start_vector
from tests.test_language_reference import source_codes

GOLDEN = Path(__file__).parent / "golden" / "messages"

x, y = sp.symbols("x y")
i, n = sp.symbols("i n", integer=True)
X = sp.IndexedBase("x")
A, Q = sp.MatrixSymbol("A", n, 3), sp.MatrixSymbol("Q", 2, 2)


def model() -> slomodel.Model:
    return slomodel.compile("var x[2] init 1\nminimize sumsq(x)")


def refused(action: Callable[[], object]) -> str:
    with pytest.raises(SlomodelError) as caught:
        action()
    return str(caught.value)


def compiled(text: str, **options: object) -> Callable[[], str]:
    return lambda: refused(lambda: slomodel.compile(text, **options))  # type: ignore[arg-type]


def of_file(raw: bytes | str, name: str = "m.slo") -> Callable[[], str]:
    """Compile a file of a model that holds these bytes."""

    def action() -> str:
        Path(name).write_bytes(raw.encode() if isinstance(raw, str) else raw)
        return refused(lambda: slomodel.compile(Path(name)))

    return action


def with_file(name: str, text: str, reference: str) -> Callable[[], str]:
    def action() -> str:
        Path(name).write_text(text, encoding="utf-8")
        return of_file(f'data y[3] from "{reference}"\nvar x\nminimize x * sum(y)')()

    return action


def of_sympy(expr: sp.Basic, **options: object) -> Callable[[], str]:
    return lambda: refused(lambda: slomodel.compile(expr, **options))  # type: ignore[arg-type]


def solving(**options: object) -> Callable[[], str]:
    return lambda: refused(lambda: model().solve(**options))  # type: ignore[arg-type]


def command(*arguments: str, text: str = "data lam dim n var x[n] minimize lam * sumsq(x)") -> str:
    result = CliRunner().invoke(main, [*arguments], input=text)
    assert result.exit_code == 1
    return result.stderr.rstrip("\n")


def without_matplotlib() -> str:
    with pytest.MonkeyPatch.context() as patch:
        for name in [one for one in sys.modules if one.partition(".")[0] == "matplotlib"]:
            patch.setitem(sys.modules, name, None)
        patch.setitem(sys.modules, "matplotlib", None)
        return refused(lambda: slomodel.plots.check_format("run.png"))


def without_cupy() -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "cupy", None)
        return compiled("var x minimize x^2", backend="cupy")()


def damaged_state() -> str:
    Path("run.npz").write_bytes(b"no archive")
    return refused(lambda: slomodel.load_solution("run.npz"))


def picture() -> str:
    text = refused(lambda: slomodel.plots.check_format("run.doc"))
    # Which other endings there are depends on the libraries installed.
    beginning, _, endings = text.partition(" .")
    assert ".png" in endings
    return beginning


def uncertain_saddle() -> None:
    saddle = slomodel.compile("var x, y minimize x^2 - y^2 + y^4")
    saddle.solve(x0=[0.0, 0.0], method="norm-armijo").uncertainty()


def oversized() -> str:
    Path("A.mtx").write_text("%%MatrixMarket matrix coordinate real general\n9999999 9999999 0\n")
    return of_file('dim n\ndata A[n, n] from "A.mtx"\nvar x\nminimize x * sum(A)')()


EXAMPLES: dict[str, Callable[[], str]] = {
    "E000": lambda: refused(lambda: gradient(variable("x", (Dim(const=2),)), [])),
    "E001": lambda: refused(lambda: slomodel.compile(Path("none.slo"))),
    "E002": of_file(b"var x\nminimize \xff x"),
    "E003": of_file("#" * (LONGEST_TEXT + 1)),
    "E127": compiled("var x minimize x" + "+x" * (MOST_SIGNS + 1)),
    "E302": compiled('data y[3] from "y.npy" var x minimize x * sum(y)'),
    "E309": compiled("data lam var x minimize lam * x^2", data={"lan": 1.0}),
    "E310": compiled("dim n var x[n] minimize sumsq(x)", dims={"n": 2.5}),
    "E316": with_file("y.csv", "a,b,y\n1,2,3\n4,5,six\n7,8,9\n", "y.csv:y"),
    "E317": oversized,
    "E318": lambda: command(
        *("random-data", "-", "-o", "d.npz"), text="data a check a > 1 and a < 1 var x minimize a*x"
    ),
    "E319": lambda: command(
        *("random-data", "-", "-o", "d.npz", "--set", "n=1000000000"),
        text="dim n data A[n] var x minimize x * sum(A)",
    ),
    "E320": compiled("dim n = 1000000000000 var x[n] minimize sumsq(x)"),
    "E401": of_sympy(sp.Eq(x, y)),
    "E402": of_sympy(x + sp.Symbol("x", real=True)),
    "E403": of_sympy(x + sp.I * y),
    "E404": of_sympy(x + sp.Function("f")(y)),
    "E405": of_sympy(x + y, variables=[x]),
    "E406": of_sympy(X[i] ** 2),
    "E407": of_sympy(sp.Sum(X[i - 1], (i, 0, 3))),
    "E408": of_sympy(sp.Sum(X[i], (i, 0, sp.oo))),
    "E409": of_sympy(X[0] + X[1, 2]),
    "E410": of_sympy(sp.Trace(A)),
    "E411": of_sympy(sp.Piecewise((x, x > 0))),
    "E412": of_sympy(sp.Max(x, y) + sp.oo),
    "E601": damaged_state,
    "E602": solving(gtol=-1.0),
    "E604": solving(method="pgd", D="auto", d=0.1, lipschitz=2.0),
    "E605": lambda: refused(lambda: start_vector(np.zeros(3), 2)),
    "E606": lambda: str(unproved(0.5, "`exp` has no largest curvature there")),
    "E607": lambda: refused(uncertain_saddle),
    "E701": without_matplotlib,
    "E702": picture,
    "E703": lambda: command("check", "-", "--set", "m=3"),
    "E704": lambda: command("solve", "-", "--set", "n=3", "--set", "lam=1", "--x0", "none.npz"),
    "E705": lambda: refused(lambda: model().solve().save(os.path.join("none", "run.npz"))),
    "E706": lambda: command("solve", "-", "--set", "n=3"),
    "E801": without_cupy,
    "E707": lambda: command(
        *("solve", "-"), text="var x minimize sum(x * i for i in range(1000000000000))"
    ),
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("code", EXAMPLES)
def test_golden(golden: Callable[[str, str], None], code: str) -> None:
    text = EXAMPLES[code]()
    assert f"[{code}]: " in text or code == "E000"
    golden(f"messages/{code}.txt", f"{text}\n")


def test_every_code_of_the_project_has_a_golden_message() -> None:
    assert {path.stem for path in GOLDEN.glob("*.txt")} == set(source_codes())


def test_every_message_says_what_to_do() -> None:
    for path in GOLDEN.glob("*.txt"):
        text = path.read_text(encoding="utf-8")
        assert " help: " in text or path.stem in ("E000", "E101"), path.stem
