"""Constraints of a model text: their graphs, the sets that bounds become, and messages."""

from __future__ import annotations

import numpy as np
import pytest

from slomodel.errors import SlomodelError, SourceText
from slomodel.front.source import problem_of
from slomodel.front.text.format import formatted
from slomodel.front.text.latex import latex_of
from slomodel.front.text.parse import parse
from slomodel.problem import Problem
from slomodel.reference import evaluate


def problem(text: str) -> Problem:
    return problem_of(SourceText(text))


def values(text: str, x: np.ndarray, **data: object) -> list[np.ndarray]:
    """The values of the constraints of a model with one variable x."""
    found = problem(text)
    arrays = {one.node: np.asarray(data[one.name], dtype=float) for one in found.data}
    sizes = {"n": len(x), "m": 2}
    for one in found.counts:
        (count,) = evaluate([one.count], arrays, sizes)
        sizes[one.dim] = int(count)
    known = {found.variables[0].node: x, **arrays}
    return list(evaluate([one.value for one in found.constraints], known, sizes))


X = np.array([3.0, -1.0, 0.5])


def test_each_comparison_becomes_a_value_that_must_not_be_positive() -> None:
    head = "dim n data b[n] var x[n] minimize sumsq(x) subject to "
    b = np.array([1.0, 2.0, 3.0])
    for text, expected in [
        ("x + x <= b", [2 * X - b]),
        ("x + x >= b", [b - 2 * X]),
        ("sum(x) == 4", [X.sum() - 4]),
        ("4 == sum(x)", [X.sum() - 4]),
        ("4 <= sum(x)", [4 - X.sum()]),
        ("-1 <= x - b <= b", [-1 - (X - b), X - 2 * b]),
        ("b >= x * x >= 1", [X**2 - b, 1 - X**2]),
        ("x[0] <= 1, x[1]^2 >= x[2]", [X[0] - 1, X[2] - X[1] ** 2]),
        ("x[i] * i <= b[i] for i in n", [X * np.arange(3) - b]),
    ]:
        for found, wanted in zip(values(head + text, X, b=b), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-15)


def test_conditions_select_index_tuples() -> None:
    text = (
        "dim n var x[n] minimize sumsq(x) subject to x[i] - x[j] <= 0 for i in n, j in n if i < j"
    )
    (found,) = values(text, X)
    np.testing.assert_array_equal(found, [X[0] - X[1], X[0] - X[2], X[1] - X[2]])
    text = "dim n var x[n] minimize sumsq(x) subject to x[i+1] <= x[i] for i in n if i + 1 < n"
    np.testing.assert_array_equal(values(text, X)[0], X[1:] - X[:-1])
    text = "dim n data g[n] var x[n] minimize sumsq(x) subject to x[i] <= 0 for i in n if g[i] > 0"
    np.testing.assert_array_equal(values(text, X, g=[1, 0, 1])[0], X[[0, 2]])


def test_labels_and_numbers_name_constraints() -> None:
    found = problem("var x minimize x subject to 2*x <= 1, cap: 1 <= x^2 <= 3 subject to x*x == 2")
    assert [one.name for one in found.constraints] == ["constraint 1", "cap", "cap", "constraint 3"]
    assert [one.orientation for one in found.constraints] == [1, -1, 1, 1]


def test_a_bound_on_a_whole_variable_becomes_its_set() -> None:
    found = problem("dim n data b[n] var z >= 0, x[n], y minimize sumsq(x) + y^2 + z "
                    "subject to x <= b, 1 <= y, y <= 2, z <= 3, x[0] >= 0")  # fmt: skip
    z, x, y = found.variables
    ends = [(one.set and one.set.low, one.set and one.set.high) for one in (x, y, z)]
    assert [tuple(end is not None for end in pair) for pair in ends] == [
        (False, True),
        (True, True),
        (True, False),
    ]
    assert y.init.kind == "inside"
    assert [one.text for one in found.constraints] == ["z <= 3", "x[0] >= 0"]


def test_subject_is_a_name() -> None:
    text = (
        "dim N data subject[N] var x minimize x * sum(subject)\nsubject \n to subject[0] * x >= 1"
    )
    assert problem(text).constraints[0].name == "constraint 1"
    assert formatted(SourceText(text)).endswith("\nsubject to subject[0] * x >= 1\n")


def test_layout_and_formula() -> None:
    text = "var x[3] minimize sumsq(x) subject to cap:x[i]^2<=1 for i in range(2) if i>0"
    (_, _, line) = formatted(SourceText(text)).splitlines()
    assert line == "subject to cap: x[i]^2 <= 1 for i in range(2) if i > 0"
    assert formatted(SourceText(formatted(SourceText(text)))) == formatted(SourceText(text))
    assert r"\text{subject to} \quad & x_{i}^{2} \le 1" in latex_of(parse(SourceText(text)))


@pytest.mark.parametrize(
    ("constraint", "code", "words"),
    [
        ("x < 1", "E228", "write `<=`"),
        ("x != 1", "E228", "does not constrain"),
        ("0 <= x >= 1", "E228", "two constraints"),
        ("b <= 1", "E219", "write `check`"),
        ("A @ x <= b", "E205", ""),
        ("x <= c", "E201", ""),
        ("x: y^2 <= 1", "E202", "another name"),
        ("k: y^2 <= 1, k: y^2 >= 0", "E202", "two constraints have the name"),
        ("x <= y for i in n", "E212", "index all axes"),
        ("x[i] <= 1 for i in n if x[i] > 0", "E228", "must not depend on variables"),
        ("x + y", "E101", "a comparison"),
    ],
)
def test_messages(constraint: str, code: str, words: str) -> None:
    text = f"dim n data b[n], A[2, 2] var x[n], y minimize sumsq(x) + y^2 subject to {constraint}"
    with pytest.raises(SlomodelError) as caught:
        problem(text)
    found = caught.value.diagnostics[0]
    assert found.code == code
    assert words in f"{found.message} {found.help}"


def test_ends_with_variables_are_two_constraints() -> None:
    head = "dim n data a[n] var x[n] minimize sumsq(x) subject to "
    x, a = np.array([0.3, -1.0, 2.0, 0.1]), np.array([0.1, 0.2, -0.3, 0.4])
    one = values(head + "band: -x[0] <= x - a <= x[1]^2, x[0] <= 3 <= sum(x)", x, a=a)
    two = values(
        head + "b: -x[0] <= x - a, d: x - a <= x[1]^2, e: x[0] <= 3, f: 3 <= sum(x)", x, a=a
    )
    for first, second in zip(one, two, strict=True):
        np.testing.assert_array_equal(first, second)
