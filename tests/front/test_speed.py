"""Time to process a model's text: moments for 10 kB, under half a minute for 1 MB."""

from time import process_time

import pytest

from slomodel.errors import ModelSyntaxError, SourceText
from slomodel.front.elaboration.elaborate import elaborate
from slomodel.front.text.parse import parse

_ROUND = """let r{k} = A @ (x .* w) - {k}.5 * y + z / (1 + exp(-z))  # residual {k}
fn f{k}(t, s) = where(abs(t) <= s, t^2 / 2, s * (abs(t) - s / 2))
let q{k} = sum(f{k}(r{k}, {k} + 1)) + 0.1 * sum((x[i+1] - x[i])^2 for i in range(n - 1) if i > 2)
"""


def of_size(most: int) -> str:
    """A model of about `most` characters, with definitions of several kinds."""
    parts = ["dim m, n\ndata A[m, n], y[m], w[n]\nvar x[n], z[m] init 0.1\n"]
    count, length = 0, 0
    while length < most:
        parts.append(_ROUND.format(k=count))
        count, length = count + 1, length + len(parts[-1])
    return "".join([*parts, "minimize ", " + ".join(f"q{k}" for k in range(count))])


def seconds(text: str) -> float:
    """Processor time of parsing and elaborating."""
    source = SourceText(text)
    began = process_time()
    elaborate(parse(source), source)
    return process_time() - began


def test_ten_kilobytes() -> None:
    assert min(seconds(of_size(10_000)) for _ in range(4)) < 0.3


@pytest.mark.slow
def test_a_megabyte() -> None:
    assert seconds(of_size(1_000_000)) < 30


# About as many of each as a statement may have.
LONGEST = {
    "x[{k}]": 9_990,
    "c": 24_950,
    "(x[{k}] - {k}.5)^2": 4_540,
    "100 * (x[{k} + 1] - x[{k}]^2)^2": 2_490,
    "where(x[{k}] > 0, x[{k}]^3, 0)": 2_625,
    "exp(x[{k}] * c)": 4_990,
}


@pytest.mark.slow
@pytest.mark.parametrize("sign", "+*")
@pytest.mark.parametrize("term", LONGEST)
def test_the_longest_statements(term: str, sign: str) -> None:
    terms = f" {sign} ".join(term.format(k=k) for k in range(LONGEST[term]))
    assert seconds(f"dim n var x[n], c minimize {terms}") < 2
    longer = SourceText(f"dim n var x[n], c minimize {terms} {sign} {terms}")
    with pytest.raises(ModelSyntaxError, match="E127"):
        parse(longer)
