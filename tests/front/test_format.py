"""The standard layout: the same tokens, comments and graph, whatever the layout was before."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slomodel.errors import ModelSyntaxError, SourceText
from slomodel.front.elaboration.elaborate import elaborate
from slomodel.front.text.format import formatted
from slomodel.front.text.parse import parse, tokens
from slomodel.ir.show import show
from tests.reference_page import slo_blocks
from tests.slo_texts import models

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "models").glob("*.slo"))
README = re.findall(r"^```slo\n(.*?)^```$", (ROOT / "README.md").read_text("utf-8"), re.S | re.M)
TEXTS = [*(path.read_text(encoding="utf-8") for path in FILES), *README, *slo_blocks()]

WHOLE = """#one
model  x ; dim n,m # sizes

# own


data A[m,n]  mask,   # one
   # inside
  B [n] from "f" # end
 var x[ n+1 ], y init normal( 0,-1 ); ; # trail
let z=  sum (x[i] * x [ i + 1 ] ^-2 for i in range(n-1) if not i<2 or i>=3) - -3 + dot(B,
  x[ : ,None][:-1,0]) + w[None,:]
fn f(a,b)=a.^b+huber(a,delta =2)  # c
minimize foo:f(x[0],1)*x' @ x[-1:] # last
# really"""


def layout(text: str) -> str:
    return formatted(SourceText(text))


def words(text: str) -> list[str]:
    return [str(token) for token in tokens(SourceText(text)) if token != ";"]


def comments(text: str) -> list[str]:
    return [found.rstrip() for found in re.findall(r'"[^"\n]*"|(#[^\r\n]*)', text) if found]


def graph(text: str) -> str:
    source = SourceText(text)
    return show(elaborate(parse(source), source).objective)


@pytest.mark.parametrize("text", TEXTS)
def test_models_keep_their_graph_and_comments(text: str) -> None:
    new = layout(text)
    assert layout(new) == new
    assert (words(new), comments(new)) == (words(text), comments(text))
    assert graph(new) == graph(text)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_models_of_the_project_are_in_standard_layout(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert layout(text) == text


@settings(max_examples=10)
@given(models())
def test_random_models(text: str) -> None:
    new = layout(text)
    assert layout(new) == new
    assert words(new) == words(text)
    assert graph(new) == graph(text)
    assert all(line == line.rstrip() for line in new.split("\n"))


SPACE = st.sampled_from(["", " ", "  ", "\t", "\n", "\r\n", "\n\n", " # c\n", "\n # d\n\n", "#\n"])


@settings(max_examples=30)
@given(st.sampled_from(TEXTS), st.data())
def test_any_layout_of_the_same_tokens(text: str, data: st.DataObject) -> None:
    """Random white space and comments between all tokens, at least a blank between words."""
    found = words(text)
    pieces = []
    for left, right in zip(["", *found], [*found, ""], strict=True):
        gap = data.draw(SPACE)
        joined = bool(re.search(r"[\w.]$", left) and re.match(r"[\w.]", right))
        pieces += [gap or " " * joined, right]
    new = layout("".join(pieces))
    assert layout(new) == new
    assert words(new) == found
    assert comments(new) == comments("".join(pieces))


def test_whole(golden: Callable[[str, str], None]) -> None:
    golden("layout.txt", layout(WHOLE))


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_ends_of_lines(end: str) -> None:
    assert layout(WHOLE.replace("\n", end)) == layout(WHOLE)
    assert layout("\ufeff" + WHOLE) == layout(WHOLE)


def test_a_call_is_not_left_on_the_next_line() -> None:
    new = layout("var x\nminimize exp\n(x)")
    assert new == "var  x\nminimize exp(x)\n"
    assert not parse(SourceText(new)).warnings


def test_what_is_not_a_model_is_refused() -> None:
    with pytest.raises(ModelSyntaxError, match="E108"):
        layout("var x minimize 2x")
