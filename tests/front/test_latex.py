"""Models as LaTeX: each construct, and matching braces and brackets."""

import re
from pathlib import Path

import pytest
import sympy as sp
from hypothesis import given, settings

import slomodel
from slomodel.errors import SourceText
from slomodel.front.text.latex import latex_of
from slomodel.front.text.parse import parse
from tests.reference_page import slo_blocks
from tests.slo_texts import models

ROOT = Path(__file__).parents[2]
BEFORE = "dim m, n data A[m, n], B[n, n], lam, W1[n, 2] var x[n], y[n], alpha fn f(t) = t "


def latex(text: str) -> str:
    return latex_of(parse(SourceText(text)))


CASES = [
    ("x[i+1]", "x_{i + 1}"),
    ("A[:, 0]", "A_{:, 0}"),
    ("W1[i, 0]^2", "{W_{1}}_{i, 0}^{2}"),
    ("lam * alpha", r"\lambda \, \alpha"),
    ("W1 @ x", r"W_{1} \, x"),
    ("-x^2", "-x^{2}"),
    ("(-x)^2", r"\left(-x\right)^{2}"),
    ("x^2^3", "x^{2^{3}}"),
    ("(x^2)^3", r"\left(x^{2}\right)^{3}"),
    ("x - (y - lam)", r"x - \left(y - \lambda\right)"),
    ("2 * 3", r"2 \cdot 3"),
    ("x ./ 2 .* 3", r"x \oslash 2 \odot 3"),
    ("x[7 % 2]", r"x_{7 \bmod 2}"),
    ("x / 2 / y", r"\frac{\frac{x}{2}}{y}"),
    ("x / (2 * y)", r"\frac{x}{2 \, y}"),
    ("(x / y)^2", r"\left(\frac{x}{y}\right)^{2}"),
    ("x .* y ./ x .^ 2", r"x \odot y \oslash x^{\circ 2}"),
    ("A' @ x", r"A^\top \, x"),
    ("(A + B)'", r"\left(A + B\right)^\top"),
    ("exp(x) + sqrt(y + 1)", r"\exp\left(x\right) + \sqrt{y + 1}"),
    ("norm2(x)^2", r"\left\lVert x\right\rVert_2^{2}"),
    ("sumsq(x)^2", r"\left(\left\lVert x\right\rVert^2\right)^{2}"),
    ("dot(x, y + 1)", r"x^\top \, \left(y + 1\right)"),
    ("huber(x, delta=2)", r"\operatorname{huber}\left(x, \delta = 2\right)"),
    ("f(x)", r"f\left(x\right)"),
    ("trace(B)", r"\operatorname{tr}\left(B\right)"),
    ("logdet(B)", r"\log \det B"),
    ("trace(inv(B + B))", r"\operatorname{tr}\left(\left(B + B\right)^{-1}\right)"),
    ("sum(x[i] for i in n)", r"\sum_{i = 0}^{n - 1} x_{i}"),
    ("sum(x[i] for i in range(2, n - 1))", r"\sum_{i = 2}^{n - 2} x_{i}"),
    ("sum(x[i] for i in range(n + 1))", r"\sum_{i = 0}^{n} x_{i}"),
    ("sum(x[i] for i in 3)", r"\sum_{i = 0}^{2} x_{i}"),
    (
        "sum(x[i] - y[j] for i in n, j in n if i < j)",
        r"\sum_{i = 0}^{n - 1} \sum_{j = 0,\; i < j}^{n - 1} \left(x_{i} - y_{j}\right)",
    ),
    ("mean(x[i] for i in n)", r"\operatorname*{mean}_{i = 0}^{n - 1} x_{i}"),
    (
        "where(x > 0 and not y <= 1, x, 0)",
        r"\begin{cases} x & (x > 0) \wedge (\neg (y \le 1)) \\ 0 & \text{otherwise} \end{cases}",
    ),
    ("1e-3 * x", r"10^{-3} \, x"),
    ("2.5e7", r"2.5 \cdot 10^{7}"),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_expressions(text: str, expected: str) -> None:
    (line,) = re.findall(r"\\quad & (.*) \\\\\n", latex(f"{BEFORE} minimize {text}"))
    assert line == expected


def test_a_whole_model() -> None:
    text = "dim m, n var W[m, n+1], b_out[2], c let H[i in m] = W[i, 0] maximize sum(H) + c"
    assert latex(text) == (
        "\\begin{aligned}\n"
        r"\max_{W \in \mathbb{R}^{m \times (n + 1)},\; b_{\mathrm{out}} \in \mathbb{R}^{2},\; "
        r"c \in \mathbb{R}} \quad & \operatorname{sum}\left(H\right) + c \\"
        "\n"
        r"& H_{i} = W_{i, 0}"
        "\n\\end{aligned}"
    )


def test_names_with_numbers_take_indices() -> None:
    text = "dim n var x1[n], b_in[n] let C2[i in n] = x1[i] * b_in[i] minimize sumsq(C2)"
    line = r"& {C_{2}}_{i} = {x_{1}}_{i} \, {b_{\mathrm{in}}}_{i}"
    assert line in latex(text)
    assert agree(latex(text))
    assert not agree("x_{1}_{i}")
    assert not agree("x^2^{3}")


def agree(text: str) -> bool:
    """Braces close, and so do `left` and `right`; no index or power follows another."""
    depth = 0
    for brace in re.findall(r"(?<!\\)[{}]", text):
        depth += 1 if brace == "{" else -1
        assert depth >= 0
    for script in "_^":
        if re.search(rf"{re.escape(script)}(\w|\\top|@){re.escape(script)}", flat(text)):
            return False
    left, right = (len(re.findall(rf"\\{word}(?![a-z])", text)) for word in ("left", "right"))
    return depth == 0 and left == right


def flat(text: str) -> str:
    """The text with every group of braces as one letter."""
    while (inner := re.sub(r"\{[^{}]*\}", "@", text)) != text:
        text = inner
    return text


FILES = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "models").glob("*.slo"))]


@pytest.mark.parametrize("text", [*FILES, *slo_blocks()])
def test_brackets_agree(text: str) -> None:
    assert agree(latex(text))


@settings(max_examples=30)
@given(models())
def test_brackets_agree_in_random_models(text: str) -> None:
    assert agree(latex(text))


def test_no_depth_recurses() -> None:
    assert latex("var x minimize " + "exp(" * 4000 + "x" + ")" * 4000).count(r"\exp") == 4000


def test_of_a_model() -> None:
    model = slomodel.compile("var x, y minimize (x - 1)^2 + y^2")
    assert model.latex() == latex("var x, y minimize (x - 1)^2 + y^2")
    assert model._repr_latex_() == f"$\\displaystyle {model.latex()}$"
    long = slomodel.compile("var x minimize " + " + ".join(f"(x - {k})^2" for k in range(1000)))
    assert long._repr_latex_() is None


def test_of_a_sympy_model() -> None:
    x, y = sp.symbols("x y", real=True)
    model = slomodel.compile((x - y) ** 2, [x, y])
    assert model.latex() == r"\min \; " + sp.latex((x - y) ** 2)
