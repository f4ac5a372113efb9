"""Costly functions of data are computed once per bind: no call reads the data again."""

from __future__ import annotations

import re

import numpy as np
import pytest

import slomodel
from slomodel.codegen.kernels import TARGETS, Compiled, Derivatives
from slomodel.errors import MissingRule
from slomodel.functions import FUNCTIONS, TABLE, mul, square
from slomodel.functions.cost import cost_of, is_quick
from slomodel.ir import build
from slomodel.ir.dims import named
from slomodel.ir.function import Cost, ScalarFunction

COSTLY = [function for function in TABLE.values() if function.costly]
NAMED = [name for name, function in FUNCTIONS.items() if function.costly]
SLOW = [f for f in TABLE.values() if f.result == "real" and not f.operand_types and not is_quick(f)]
EACH = pytest.mark.parametrize("target", ["numpy", "numexpr", "c"])
SIZE = 300


def calls(source: str, target: str) -> list[str]:
    """What every call of each entry runs."""
    if target == "c":
        found = re.findall(r"^double \w+\(void \*\*c\) \{\n(.*?)^\}", source, re.S | re.M)
        return [re.sub(r"const real \*const d\d+ = c.*", "", one) for one in found]
    return re.findall(
        r"^    def (?:value|value_and_gradient|hvp)\(.*?^    return", source, re.S | re.M
    )


def reads_data(call: str) -> bool:
    return re.search(r"\bd\d+\b", call) is not None


def source_of(function: ScalarFunction, target: str) -> str:
    """Of sum((x f(A))^2); further operands are 0.3."""
    shape = (named("n"),)
    x, A = build.variable("x", shape), build.data("A", shape)
    value = function(A, *([0.3] * (function.arity - 1)))
    own = Derivatives(build.sum_over(square(mul(x, value)), (0,)), [x])
    return Compiled("m", own, (A,), {"n": SIZE}, TARGETS[target]).source()


@pytest.mark.sampled(3)
@EACH
@pytest.mark.parametrize("function", sorted({*COSTLY, *SLOW}, key=str), ids=str)
def test_a_function_of_data_is_computed_once(function: ScalarFunction, target: str) -> None:
    found = calls(source_of(function, target), target)
    assert len(found) == 3
    assert not any(map(reads_data, found))


@pytest.mark.sampled(3)
@EACH
@pytest.mark.parametrize("name", NAMED)
def test_a_function_of_the_language_is_computed_once(name: str, target: str) -> None:
    call = f"{name}(A, 0.3)" if FUNCTIONS[name].arity > 1 else f"{name}(A)"
    text = f"dim n data A[n] var x[n] minimize sum((x .* {call})^2 + exp(x .* {call}))"
    model = slomodel.compile(text, data={"A": np.full(SIZE, 0.5)}, backend=target)
    found = calls(model.source(target), target)
    assert len(found) == 3
    assert not any(map(reads_data, found))


def test_what_is_quick_is_computed_where_it_is_read() -> None:
    """In C, whose loops read the data as quickly as what would be made of them."""
    for name in ("neg", "abs", "square"):
        assert any(map(reads_data, calls(source_of(TABLE[name], "c"), "c")))


@pytest.mark.parametrize("function", TABLE.values(), ids=str)
def test_every_function_has_a_cost(function: ScalarFunction) -> None:
    cost = cost_of(function)
    assert 0.0 < cost.numpy < 1000.0
    assert cost.numexpr > 0.0
    if function.spelling:
        assert function.cost is cost
        assert ("numexpr" in function.spelling) == np.isfinite(cost.numexpr)
    if function.costly:
        assert not is_quick(function)


def test_a_function_with_a_spelling_and_no_cost_cannot_be_made() -> None:
    with pytest.raises(ValueError, match="unpriced has spellings and no cost"):
        ScalarFunction(
            "unpriced", 1, lambda x: x, lambda x: x, spelling={"numpy": "np.positive({0})"}
        )
    formless = ScalarFunction("formless", 1, lambda x: x, lambda x: x)
    with pytest.raises(MissingRule, match="formless has neither a cost nor a form"):
        cost_of(formless)


def test_a_form_costs_what_its_operations_do() -> None:
    """logaddexp computes an exponential and a logarithm, and no part of it twice."""
    cost = cost_of(TABLE["logaddexp"])
    assert TABLE["logaddexp"].cost is None
    parts = [cost_of(TABLE[one]) for one in ("maximum", "exp", "log1p", "abs", "sub", "add")]
    parts += [cost_of(TABLE[one]) for one in ("eq", "where", "neg")]
    assert cost == Cost(
        pytest.approx(sum(one.numpy for one in parts)),
        pytest.approx(sum(one.numexpr for one in parts)),
    )
