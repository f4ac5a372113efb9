"""Sets of variables as declared: the record in the problem, the layout, LaTeX, refusals."""

from __future__ import annotations

import pytest

import slomodel
from slomodel.errors import SlomodelError, SourceText
from slomodel.front.source import problem_of
from slomodel.front.text.format import formatted
from slomodel.front.text.latex import latex_of
from slomodel.front.text.parse import parse
from slomodel.ir.expr import Const
from slomodel.problem import DeclaredSet

HEAD = "dim n, m, K  data lo[n], hi[n, m], r, a  "


def declared(clause: str, shape: str = "[n, m]") -> DeclaredSet | None:
    (variable,) = problem_of(SourceText(f"{HEAD}var x{shape} {clause} minimize sumsq(x)")).variables
    return variable.set


@pytest.mark.parametrize(
    ("clause", "kind", "low", "high"),
    [
        ("> 0", "open_box", 0.0, None),
        ("< -1/2", "open_box", None, -0.5),
        ("in (0, 1)", "open_box", 0.0, 1.0),
        ("in (0, inf)", "open_box", 0.0, None),
        ("in (-inf, inf)", "open_box", None, None),
        (">= 2", "box", 2.0, None),
        ("<= 2", "box", None, 2.0),
        ("in [2, 2]", "box", 2.0, 2.0),
        ("in [-inf, 2]", "box", None, 2.0),
    ],
)
@pytest.mark.parametrize("shape", ["", "[4]", "[n, m]"])
def test_intervals(
    clause: str, kind: str, low: float | None, high: float | None, shape: str
) -> None:
    found = declared(clause, shape)
    assert found is not None
    assert (found.kind, found.text) == (kind, clause)
    for end, wanted in ((found.low, low), (found.high, high)):
        assert (end.value if isinstance(end, Const) else end) == wanted
    assert found.is_open == (kind == "open_box")


def test_ends_broadcast_to_the_shape() -> None:
    found = declared("in (lo[:, None], hi)")
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    assert found.low.shape == found.high.shape


@pytest.mark.parametrize(
    ("clause", "shape", "kind", "axis"),
    [
        ("in open_simplex", "[K]", "open_simplex", 0),
        ("in open_simplex", "[n, K]", "open_simplex", 1),
        ("in simplex(axis=0)", "[n, K]", "simplex", 0),
        ("in simplex(1)", "[n, K]", "simplex", 1),
        ("in ordered", "[K]", "ordered", 0),
        ("in cholesky_factor", "[K, K]", "cholesky_factor", 0),
        ("in correlation", "[3, 3]", "correlation", 0),
        ("in psd", "[K, K]", "psd", 0),
        ("in ball(r, center=lo)", "[n]", "ball", 0),
        ("in sphere", "[n]", "sphere", 0),
    ],
)
def test_named_sets(clause: str, shape: str, kind: str, axis: int) -> None:
    found = declared(clause, shape)
    assert found is not None
    assert (found.kind, found.axis, found.text) == (kind, axis, clause)


@pytest.mark.parametrize(
    ("declaration", "code", "message"),
    [
        ("var x[n] in [1, 0]", "E224", "is empty"),
        ("var x[n] in (1, 1)", "E224", "is empty"),
        ("var x[n] > inf", "E224", "`inf` is not an end"),
        ("var x[n] > 1/0", "E224", "is inf"),
        ("var x[m] > lo", "E224", r"the set is of \[n\], the variable \[m\]"),
        ("var x > lo", "E224", r"the variable scalar"),
        ("var s init 1, x[n] in [s, 1]", "E224", "`s` is a variable"),
        ("var x in simplex", "E224", "a set of vectors"),
        ("var x[n, m] in correlation", "E224", "square matrices"),
        ("var x[n] in ball(-1)", "E224", "not positive"),
        ("var x[n] in ball", "E208", "`ball` takes 1 to 3"),
        ("var x[n] in simplex(axis=1)", "E208", "there is no axis 1"),
        ("var x[n, n] in psd(3)", "E208", "takes no arguments"),
        ("var x[n] in simplexx", "E224", "did you mean `simplex`"),
        ("var x > x", "E201", "before it is declared"),
    ],
)
def test_refusals(declaration: str, code: str, message: str) -> None:
    with pytest.raises(SlomodelError, match=rf"(?s){code}.*{message}"):
        slomodel.compile(f"{HEAD}{declaration} minimize sumsq(x)")


def test_ends_that_are_data_are_compared_when_they_are_given() -> None:
    text = "data a, b var x in (a, b) minimize x^2"
    assert slomodel.compile(text, data={"a": 0, "b": 1}).n == 1
    with pytest.raises(SlomodelError, match=r"the set `.a, b.` is empty"):
        slomodel.compile(text, data={"a": 1, "b": 1})


def test_data_of_a_set_are_used() -> None:
    slomodel.compile("data a var x >= a minimize x^2", data={"a": 0})


def test_layout() -> None:
    text = "var x[3]>0,y in[0,1] ,z in( 0 ,1) init 0,p[3] in ball( 1 ,center=0)  minimize x[0]"
    laid_out = "var  x[3] > 0, y in [0, 1], z in (0, 1) init 0, p[3] in ball(1, center=0)\n"
    assert formatted(SourceText(text)) == laid_out + "minimize x[0]\n"


def test_latex() -> None:
    text = "dim n var x[n] > 0, y in [0, 1], z <= 2, p[3] in simplex, q in (-inf, 1) minimize y"
    assert (
        latex_of(parse(SourceText(text)))
        .splitlines()[1]
        .startswith(
            r"\min_{x \in (0, \infty)^{n},\; y \in [0, 1],\; z \in (-\infty, 2],\; "
            r"p \in \mathbb{R}^{3} \cap \mathrm{simplex},\; q \in (-\infty, 1)}"
        )
    )
