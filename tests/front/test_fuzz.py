"""Any text gives a model, or messages with code and position; never another exception.

Formatting of a text that parses is idempotent, and preserves the meaning.
"""

import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slomodel.errors import SlomodelError, SourceText
from slomodel.front.elaboration.elaborate import elaborate
from slomodel.front.text.format import formatted
from slomodel.front.text.parse import parse, read_source
from slomodel.front.text.syntax import ModelTree
from slomodel.problem import Problem
from tests.front.test_format import comments, words
from tests.reference_page import PAGE
from tests.slo_mutations import TEXTS, mutated
from tests.slo_texts import models

CODES = frozenset(re.findall(r"\| ([EW]\d{3}) ", PAGE))
QUICK = settings(suppress_health_check=list(HealthCheck))


def refusal(error: SlomodelError, source: SourceText) -> None:
    """Check an error: a known code and a position in the text, both shown in the message."""
    assert error.diagnostics
    for told in error.diagnostics:
        assert told.code in CODES
        assert told.message
        assert told.span is not None
        assert 0 <= told.span.start <= told.span.end <= len(source.text)
        line, column = source.locate(told.span.start)
        assert f"{told.severity}[{told.code}]: " in str(error)
        assert f"\n  --> <model>:{line}:{column}\n" in str(error)


def answered(program: ModelTree, source: SourceText) -> Problem | None:
    """The problem that a model states; None if it has errors."""
    try:
        return elaborate(program, source)
    except SlomodelError as error:
        refusal(error, source)
        return None


def check(text: str) -> Problem | None:
    """The problem that a text states, if any; its formatted text must state the same."""
    source = SourceText(text)
    try:
        program = parse(source)
    except SlomodelError as error:
        refusal(error, source)
        return None
    problem = answered(program, source)
    new = SourceText(formatted(source))
    assert formatted(new) == new.text
    assert comments(new.text) == comments(text)
    assert words(new.text) == words(text)
    again = answered(parse(new), new)
    assert (again is None) == (problem is None)
    if problem is not None and again is not None:
        assert again.objective is problem.objective
        assert [c.condition for c in again.checks] == [c.condition for c in problem.checks]
        assert [d.node for d in again.data] == [d.node for d in problem.data]
        assert [v.node for v in again.variables] == [v.node for v in problem.variables]
    return problem


@settings(QUICK, max_examples=300)
@given(mutated())
def test_texts_near_models(text: str) -> None:
    check(text)


@pytest.mark.slow
@settings(QUICK, max_examples=6000)
@given(mutated())
def test_many_texts_near_models(text: str) -> None:
    check(text)


@settings(QUICK, max_examples=60)
@given(models(), st.integers(0, 400), st.integers(0, 40), st.text(max_size=3))
def test_random_models_with_a_piece_replaced(text: str, at: int, many: int, new: str) -> None:
    check(text[:at] + new + text[at + many :])


@settings(QUICK, max_examples=300)
@given(st.text(st.characters(exclude_categories=()), max_size=60))
def test_any_text(text: str) -> None:
    check(text)


@settings(QUICK, max_examples=100)
@given(
    st.binary(max_size=60),
    st.sampled_from([text.encode() for text in TEXTS]),
    st.integers(0, 400),
)
def test_any_bytes_in_a_file(new: bytes, around: bytes, at: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.slo"
        path.write_bytes(around[:at] + new + around[at + len(new) :])
        try:
            text = read_source(path).text
        except SlomodelError as error:
            refused = error
        else:
            check(text)
            return
    assert [told.code for told in refused.diagnostics] == ["E002"]
    assert "line " in str(refused) or "UTF-16" in str(refused)


@pytest.mark.slow
@settings(QUICK, max_examples=100_000)
@given(mutated() | st.text(max_size=200))
def test_a_hundred_thousand_texts(text: str) -> None:
    check(text)
