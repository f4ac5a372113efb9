"""Formulas in MathML: well-formed, complete, and structured like the formula."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

import slomodel
from slomodel.front.text.mathml import mathml

ROOT = Path(__file__).parent.parent


def parsed(latex: str) -> ElementTree.Element:
    return ElementTree.fromstring(mathml(latex))


def text(latex: str) -> str:
    return "".join(parsed(latex).itertext())


@pytest.mark.parametrize(
    ("latex", "shown"),
    [
        (r"\frac{a}{2} + x^2", "a2+x2"),
        (r"\alpha_{1} \, \beta - 10^{-3}", "α1β−10−3"),
        (r"\left\lVert X - W\right\rVert^2", "‖X−W‖2"),
        (r"\operatorname{log1p}\left(x\right) < \infty", "log1p(x)<∞"),
        (r"\begin{cases} 1 & x > 0 \\ 0 & \text{otherwise} \end{cases}", "{1x>00otherwise"),
        (r"x \in \mathbb{R}^{m \times n}", "x∈ℝm×n"),
        (r"\mathrm{a\_b} \& \left|x\right|", "a_b&|x|"),
    ],
)
def test_text(latex: str, shown: str) -> None:
    assert text(latex) == shown


def test_structure() -> None:
    fraction = parsed(r"\frac{a + b}{c}").find(".//mfrac")
    assert fraction is not None
    assert ["".join(part.itertext()) for part in fraction] == ["a+b", "c"]
    both = parsed(r"x_{i}^2").find(".//msubsup")
    assert both is not None
    assert ["".join(part.itertext()) for part in both] == ["x", "i", "2"]
    total = parsed(r"\sum_{i = 0}^{n - 1} x_{i}").find(".//munderover")
    assert total is not None
    assert ["".join(part.itertext()) for part in total] == ["∑", "i=0", "n−1"]
    rows = parsed(r"\begin{pmatrix} a & b \\ c & d \end{pmatrix}").findall(".//mtr")
    assert [["".join(cell.itertext()) for cell in row] for row in rows] == [["a", "b"], ["c", "d"]]
    root = parsed(r"\sqrt{\frac{1}{2}}^{x^{y}}").find(".//msup")
    assert root is not None
    assert root[0].tag == "msqrt"
    assert root[1].find(".//msup") is not None


@pytest.mark.filterwarnings("ignore::slomodel.ModelWarning")
@pytest.mark.parametrize("name", ["neural_net", "hard_instance", "practice/bone_age_grades"])
def test_models_have_no_command_left(name: str) -> None:
    latex = slomodel.compile(ROOT / "models" / f"{name}.slo", backend="numpy").latex()
    shown = text(latex)
    assert not set(shown) & set("\\&_^")
    assert len(parsed(latex).findall(".//mtable[@class='aligned']/mtr")) == latex.count("\n") - 1


def test_deep_nesting() -> None:
    depth = 400
    assert text("{" * depth + "x" + "}" * depth) == "x"
