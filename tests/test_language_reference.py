"""The pages on the language: models compile, errors are errors, every code is listed."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import slomodel
from slomodel.errors import ModelWarning, SlomodelError
from slomodel.front.elaboration.functions.array_functions import ARRAY_FUNCTIONS
from slomodel.functions import FUNCTIONS
from tests.reference_page import LISTED, PAGE, TABLE, function_table, refused_lines, slo_blocks

ROOT = Path(__file__).parent.parent
CODE = re.compile(r"""["']([EW]\d{3})["']""")
ROW = re.compile(r"\| ([EW]\d{3}) \| [^|]+ ")


def source_codes() -> Iterator[str]:
    for path in sorted((ROOT / "slomodel").rglob("*.py")):
        yield from CODE.findall(path.read_text(encoding="utf-8"))


@pytest.mark.filterwarnings("ignore::slomodel.errors.ModelWarning")
@pytest.mark.parametrize("text", slo_blocks())
def test_models_compile(text: str) -> None:
    assert slomodel.compile(text).name in ("example", "model")


@pytest.mark.filterwarnings("ignore::slomodel.errors.ModelWarning")
@pytest.mark.parametrize(("text", "code"), list(refused_lines()))
def test_refused_lines_are_refused_for_the_reason_stated(text: str, code: str) -> None:
    with pytest.raises(SlomodelError) as caught:
        slomodel.compile(text)
    # A line alone may lack an objective or a variable as well.
    found = {d.code for d in caught.value.diagnostics}
    assert found - {"E214", "E215"} == {code} - {"E214", "E215"}
    assert code in found


def test_every_code_is_in_the_catalogue_once() -> None:
    listed = ROW.findall(PAGE)
    assert len(listed) == len(set(listed))
    assert set(listed) == set(source_codes())


def test_the_table_of_functions_is_that_of_the_records(
    request: pytest.FixtureRequest, golden: object
) -> None:
    """`--golden` writes it anew."""
    if request.config.getoption("--golden"):
        page = LISTED.read_text(encoding="utf-8")
        LISTED.write_text(TABLE.sub(lambda _: function_table(), page), encoding="utf-8")
        return
    assert TABLE.findall(PAGE) == [function_table()]


def test_every_function_is_named() -> None:
    named = set(re.findall(r"\w+", PAGE))
    assert {*FUNCTIONS, *ARRAY_FUNCTIONS} - named == set()


def test_every_function_of_arrays_stands_in_an_example() -> None:
    called = {name for block in slo_blocks() for name in re.findall(r"(\w+)\(", block)}
    assert set(ARRAY_FUNCTIONS) - called == set()


@pytest.mark.filterwarnings("ignore::slomodel.errors.ModelWarning")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_by_element_is_called_by_a_model(name: str) -> None:
    function = FUNCTIONS[name]
    types = function.operand_types or ("real",) * function.arity
    operands = ", ".join("u < v" if kind == "bool" else "u + v" for kind in types)
    slomodel.compile(f"dim n = 2 var u[n], v[n] minimize sum({name}({operands}))")


def test_an_example_shows_a_kink() -> None:
    """What the page says of warnings: the model with norms has some."""
    text = next(block for block in slo_blocks() if "norm2" in block)
    with pytest.warns(ModelWarning):
        slomodel.compile(text)
