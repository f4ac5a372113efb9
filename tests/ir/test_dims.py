"""Arithmetic of dims: exact, symbolic, and checked once sizes are known."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slomodel.errors import ShapeError
from slomodel.ir.dims import Dim, concrete, literal, named, show_shape

NAMES = ("a", "b", "n")
numbers = st.integers(-20, 20)


@st.composite
def dims(draw: st.DrawFn) -> Dim:
    total = literal(draw(numbers))
    for name in draw(st.lists(st.sampled_from(NAMES), max_size=4)):
        total = total + named(name) * draw(numbers)
    return total


sizes = st.fixed_dictionaries({name: st.integers(0, 50) for name in NAMES})


def value(dim: Dim, known: dict[str, int]) -> int:
    return dim.const + sum(c * known[name] for name, c in dim.terms)


@given(dims(), dims(), numbers, sizes)
def test_operations_are_those_of_the_numbers(
    a: Dim, b: Dim, factor: int, known: dict[str, int]
) -> None:
    assert value(a + b, known) == value(a, known) + value(b, known)
    assert value(a - b, known) == value(a, known) - value(b, known)
    assert value(a * factor, known) == value(a, known) * factor
    assert value(a + factor, known) == value(a - -factor, known) == value(a, known) + factor


@given(dims(), dims(), dims())
def test_equal_forms_are_equal_dims(a: Dim, b: Dim, c: Dim) -> None:
    assert (a + b) + c == c + (b + a)
    assert a - a == literal(0)
    assert (a + b) - b == a
    assert hash(a + b) == hash(b + a)


@given(dims(), sizes)
def test_size_is_the_number_or_an_error(dim: Dim, known: dict[str, int]) -> None:
    expected = value(dim, known)
    if expected >= 0:
        assert dim.size(known) == expected
    else:
        with pytest.raises(ShapeError, match="negative size"):
            dim.size(known)


def test_a_size_not_known_is_named() -> None:
    with pytest.raises(ShapeError, match="the size of dim `n` is not known yet"):
        (named("m") - named("n")).size({"m": 3})


def test_a_number_and_a_name_never_match() -> None:
    assert literal(10) != named("h")
    assert literal(3).is_literal
    assert not named("n").is_literal
    assert (named("n") - named("n") + 3).is_literal


@pytest.mark.parametrize(
    ("dim", "text"),
    [
        (literal(0), "0"),
        (literal(-2), "-2"),
        (named("n"), "n"),
        (named("n") - 1, "n - 1"),
        (named("n") * -1 + 4, "-n + 4"),
        (named("n") * 2 + named("a"), "a + 2*n"),
        (named("a") - named("n") * 3 - 7, "a - 3*n - 7"),
    ],
)
def test_text(dim: Dim, text: str) -> None:
    assert str(dim) == text


def test_shapes() -> None:
    shape = (named("m"), named("n") + 1)
    assert show_shape(shape) == "[m, n + 1]"
    assert show_shape(()) == "scalar"
    assert concrete(shape, {"m": 2, "n": 0}) == (2, 1)
