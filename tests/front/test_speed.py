"""Work on a model's text: a few hundred thousand calls for 10 kB, and in proportion for more."""

import pytest

from slomodel.errors import ModelSyntaxError, SourceText
from slomodel.front.elaboration.elaborate import elaborate
from slomodel.front.text.parse import parse
from tests.work_counts import counting

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


def work(text: str) -> int:
    """Calls made to parse and elaborate a text, by code that has its tables already."""
    first, source = SourceText(of_size(5_000)), SourceText(text)
    elaborate(parse(first), first)
    with counting() as calls:
        elaborate(parse(source), source)
    return calls.count


def test_work_is_little_and_in_proportion_to_the_text() -> None:
    """Ten kilobytes take a fifth of a second on a machine of 2024."""
    ten = work(of_size(10_000))
    assert ten < 450_000
    assert work(of_size(20_000)) < 2.2 * ten


@pytest.mark.slow
def test_a_megabyte() -> None:
    assert work(of_size(1_000_000)) < 110 * work(of_size(10_000))


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
    assert work(f"dim n var x[n], c minimize {terms}") < 5_000_000
    longer = SourceText(f"dim n var x[n], c minimize {terms} {sign} {terms}")
    with pytest.raises(ModelSyntaxError, match="E127"):
        parse(longer)
