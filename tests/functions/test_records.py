"""Records of functions are complete and consistent: other tables are generated from them."""

import math
import pickle
import re

import numpy as np
import pytest
import sympy as sp
from click.testing import CliRunner

import slomodel
from slomodel.bounds.ranges.values import OPERATIONS
from slomodel.calculus.signs import parity_of
from slomodel.cli import main
from slomodel.front.catalogue import entries_of
from slomodel.functions import FUNCTIONS, TABLE, add, sin
from slomodel.functions.translate import known, to_graph
from slomodel.ir.build import variable
from slomodel.ir.expr import Const
from slomodel.ir.function import (
    RangeRule,
    ScalarFunction,
    defined,
    every_family,
    every_function,
)
from tests.functions.exact_values import columns, evaluate_at, exact, operand_types, points

EVERY = pytest.mark.parametrize("function", every_function(), ids=str)
OF_REAL_NUMBERS = [one for one in every_function() if set(one.operand_types) <= {"real"}]
CALLED = re.compile(r"\b([a-z_]\w*)\(")
DEFINED = re.compile(r"^static inline real (\w+)\(", re.MULTILINE)


@pytest.mark.parametrize("function", OF_REAL_NUMBERS, ids=str)
@pytest.mark.parametrize("numbers", [(0.5, -0.5, 0.25), (2.0, 3.0, 1.0)])
def test_numbers_are_computed_by_the_definition(
    function: ScalarFunction, numbers: tuple[float, ...]
) -> None:
    own = numbers[: function.arity]
    with np.errstate(all="ignore"):
        expected = float(np.asarray(function.numpy(*map(np.asarray, own))))
    found = function(*own)
    if isinstance(found, Const):
        np.testing.assert_allclose(found.value, expected, rtol=1e-12, atol=1e-300)


@EVERY
def test_it_says_what_it_is(function: ScalarFunction) -> None:
    assert function.meaning
    assert "\n" not in function.meaning
    assert function.domain == () or len(function.domain) == function.arity
    assert len(operand_types(function)) == function.arity
    assert function.partials is None or len(function.partials) == function.arity


@pytest.mark.parametrize("name", FUNCTIONS)
def test_its_signature_names_all_operands(name: str) -> None:
    function = FUNCTIONS[name]
    found = re.fullmatch(r"(\w+)\((\w+(?:=[\d.]+)?(?:, \w+(?:=[\d.]+)?)*)\)", function.signature)
    assert found is not None
    assert found[1] == name
    assert len(found[2].split(", ")) == function.arity


def test_no_name_means_two_functions() -> None:
    foreign = [name for function in every_function() for name in function.foreign_names]
    assert len(foreign) == len(set(foreign))
    assert set(foreign).isdisjoint(FUNCTIONS)
    forms = [kind for function in every_function() for kind in function.sympy]
    assert len(forms) == len(set(forms))
    assert set(forms) <= set(known())


@EVERY
def test_its_c_text_declares_what_it_calls(function: ScalarFunction) -> None:
    """Every function that the spelling or a helper calls is of the library or a helper."""
    text = f"{function.spelling.get('c', '')}\n{function.c.source}"
    helpers = DEFINED.findall(function.c.source)
    assert set(CALLED.findall(text)) - {"return"} == {*helpers, *function.c.library}
    assert set(function.c.library.values()) <= {0, 1, 2}


@pytest.mark.parametrize("function", [f for f in TABLE.values() if f.kinks], ids=str)
def test_a_kink_is_a_condition_on_its_operands(function: ScalarFunction) -> None:
    """Each holds somewhere and fails somewhere among points with ties."""
    for kink in function.kinks:
        if kink.at is None:
            continue
        held = {evaluate_at(kink.at, function, point) for point in points(function)}
        assert held == {True, False}


@pytest.mark.parametrize("function", [f for f in TABLE.values() if f.result == "real"], ids=str)
def test_a_zero_at_zero_is_exact(function: ScalarFunction) -> None:
    """RangeRule take a computed 0 at operands 0 for the exact value."""
    if "bool" in operand_types(function):
        return
    origin = (0.0,) * function.arity
    with np.errstate(all="ignore"):
        value = float(function.numpy(*columns(function, [origin]))[0])
    assert value != 0.0 or exact(function, origin) in (0.0, None)


@EVERY
def test_what_it_says_of_ranges_fits(function: ScalarFunction) -> None:
    assert (function.ranges is RangeRule.OPERATION) == (function in OPERATIONS)
    stated = function.monotonicity
    if stated is not None:
        several = function.arity > 1
        assert len(stated.by_operand) == (function.arity if several else 0)
        assert all(list(points) == sorted(points) for points in stated.critical_points)
        assert stated.image[0] < stated.image[1]


def _thrown(function: ScalarFunction) -> list[np.ndarray]:
    """Random numbers (50,) for each operand, inside its domain and outside."""
    rng = np.random.default_rng(0)
    types = operand_types(function)
    numbers = [rng.standard_normal(50) * 3.0 for _ in types]
    return [x > 0.0 if kind == "bool" else x for x, kind in zip(numbers, types, strict=True)]


@EVERY
def test_it_is_exact_if_its_values_are_operands_or_whole_numbers(function: ScalarFunction) -> None:
    own = _thrown(function)
    with np.errstate(all="ignore"):
        values = np.asarray(function.numpy(*own), dtype=np.float64)
    chosen = np.any([np.abs(values) == np.abs(x) for x in own], axis=0)
    assert function.exact == bool(np.all(chosen | (values == np.round(values))))


NO_FORM = {"log_bessel_i0_3", "sinc_2", "erfinv", "erfinv_density"}
"""Functions that are odd or even, of which their forms in SymPy do not show it."""


@pytest.mark.parametrize("function", [f for f in OF_REAL_NUMBERS if f.arity == 1], ids=str)
def test_its_definition_shows_its_parity(function: ScalarFunction) -> None:
    (x,) = _thrown(function)
    with np.errstate(all="ignore"):
        here, mirrored = function.numpy(x), function.numpy(-x)
    close = {s: np.allclose(mirrored, s * here, rtol=1e-12, equal_nan=True) for s in (1, -1)}
    expected = next((s for s in (1, -1) if close[s]), 0)
    assert parity_of(function) == (0 if function.name in NO_FORM else expected)


def test_members_of_a_family_are_made_when_they_are_wanted() -> None:
    for family in every_family():
        ninth = defined(f"{family.name}9")
        assert pickle.loads(pickle.dumps(ninth)) is ninth is family.member(9)
        x = sp.Symbol("x", positive=True)
        operand = variable("x", ())
        assert to_graph(family.sympy(9, x), {x: operand}) is ninth(operand)


def test_a_function_without_bounds_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A record may state no ranges: values and derivatives work, and a bound gives the reason."""
    record = ScalarFunction(
        "unbounded_sine",
        1,
        definition=sp.sin,
        numpy=np.sin,
        partials=(lambda x: record(add(x, math.pi / 2)),),
        stable=sin,
        ranges=RangeRule.UNKNOWN,
        meaning="sine without bounds",
        signature="unbounded_sine(x)",
    )
    monkeypatch.setitem(FUNCTIONS, "unbounded_sine", record)
    model = slomodel.compile("var x\nminimize unbounded_sine(x)^2")
    assert model.value([0.5]) == pytest.approx(math.sin(0.5) ** 2)
    found = model.bounds([0.5], 0.1)
    assert math.inf == found.L1
    assert "line 2 is by `unbounded_sine`, whose bounds are unknown" in found.gradient.reason
    told = CliRunner().invoke(main, ["functions", "unbounded_sine"]).stdout
    assert told.endswith("; bounds: unknown\n")
    (entry,) = entries_of("unbounded_sine")
    assert entry.facts()["bounds"] is False
