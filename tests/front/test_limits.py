"""Texts beyond the limits of a model: each is refused at once."""

import pytest

from slomodel.errors import ModelSyntaxError, SourceText
from slomodel.front.elaboration.elaborate import elaborate
from slomodel.front.text.parse import DEEPEST, LONGEST_TEXT, MOST_SIGNS, beyond_limits, parse
from tests.work_counts import counting


def read(text: str) -> None:
    parse(SourceText(text))


def objective(text: str) -> None:
    read(f"minimize {text}")


def test_a_heap_of_brackets_and_a_long_text_are_refused_at_once() -> None:
    with pytest.raises(ModelSyntaxError, match=rf"E119(.|\n)*<model>:1:{10 + DEEPEST}\b"):
        objective("(" * (LONGEST_TEXT - 100))
    with pytest.raises(ModelSyntaxError, match="E003"):
        read("#" * (LONGEST_TEXT + 1))


@pytest.mark.parametrize(
    "term", ["x+", "x*", "x,", "x[0]'.T", "x.^", "(x)-", "f(x)", "1.5e-3 ", "'"]
)
def test_a_statement_of_too_many_signs_is_refused_at_once(term: str) -> None:
    text = term * (MOST_SIGNS + 1) + "x"
    refused = pytest.raises(ModelSyntaxError, match=f"E127.*{MOST_SIGNS}")
    with counting() as calls, refused as caught:
        objective(text)
    assert calls.count < 10_000
    (told,) = caught.value.diagnostics
    assert told.span is not None
    assert told.span.text in term


def test_signs_are_counted_for_each_statement() -> None:
    half, many = "+".join(["x"] * (MOST_SIGNS // 4)), MOST_SIGNS + 1
    for text in (
        f"let a = {half} let b = {half} let c = {half}",
        f"let a = ({half}) - 2.5e-3",
        "let a = x # " + "+" * many,
        'f("' + "+" * many + '")',
        "9" * many,
        "x" * many,
        ";" * many,
    ):
        assert beyond_limits(SourceText(text)) is None
    assert beyond_limits(SourceText(f"let a = {half} + ({half}) + f({half})")) is not None
    # A keyword in brackets is a mistake, not a new statement.
    assert beyond_limits(SourceText(f"let a = ({half} let {half} let {half}")) is not None


def test_many_mistakes_are_reported_in_time_that_grows_with_the_text_alone() -> None:
    lines = "".join(f"let a{k} = zz{k}\n" for k in range(4000))
    source = SourceText(f"var x\n{lines}minimize x")
    program = parse(source)
    with counting() as calls, pytest.raises(ModelSyntaxError) as caught:
        elaborate(program, source)
    assert calls.count < 10_000
    assert len(caught.value.diagnostics) == 20
