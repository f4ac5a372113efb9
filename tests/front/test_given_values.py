"""User-supplied numbers: read to the last bit, or an error that says what was given."""

import array
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import sympy as sp
from scipy.sparse import coo_array, csr_matrix

import slomodel
from slomodel.errors import DomainError, SlomodelError
from slomodel.front.data.arrays import as_model_array
from slomodel.front.data.points import reals

READERS: dict[str, Callable[[object], np.ndarray]] = {
    "data": lambda value: as_model_array("y", value, ["n"], allow_nonfinite=True),
    "point": lambda value: reals(value, "x"),  # type: ignore[arg-type]
}


class Maker:
    """An object that converts itself to an array by its own code, or fails."""

    def __init__(self, made: object) -> None:
        self.made = made

    def __array__(self, dtype: object = None, copy: object = None) -> object:
        if isinstance(self.made, Exception):
            raise self.made
        return self.made


class Endless:
    """A sequence that reports a huge length."""

    def __len__(self) -> int:
        return 10**12

    def __getitem__(self, k: int) -> int:
        return k


def nested(depth: int) -> object:
    value: object = 1.0
    for _ in range(depth):
        value = [value]
    return value


def itself() -> list[object]:
    value: list[object] = []
    value.append(value)
    return value


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Maker(np.arange(3)), [0, 1, 2]),
        (range(3), [0, 1, 2]),
        (array.array("d", [0.1, 2]), [0.1, 2]),
        ([2**63 + 1025, 1], [9223372036854777856.0, 1]),
        ([2**63, -1], [9223372036854775808.0, -1]),
        ([2**53 + 1], [9007199254740992.0]),
        (np.array([0.1], "f2"), [0.0999755859375]),
        (np.array([0.1], ">f4"), [float(np.float32(0.1))]),
        (np.array([1, 2, 3], ">i8")[::-1], [3, 2, 1]),
        (np.array([1], np.longdouble) / 3, [1 / 3]),
        (np.array(["1e4000"], np.longdouble), [np.inf]),
        (np.array([True, False]), [1, 0]),
        (np.broadcast_to(0.1, (3,)), [0.1] * 3),
        (np.frombuffer(np.arange(2.0).tobytes()), [0, 1]),
        ([], []),
    ],
    ids=range(15),
)
def test_numbers_of_every_kind(reader: str, value: object, expected: list[float]) -> None:
    found = READERS[reader](value)
    assert found.dtype == np.dtype(float)
    assert found.tolist() == expected


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "is None … leave it out"),
        (Maker(ZeroDivisionError("boom")), "is not an array: boom"),
        (Maker(KeyError("boom")), "is not an array"),
        (Maker([1.0]), "is not an array"),
        (Endless(), "does not fit in memory"),
        ([[1.0], [1.0, 2.0]], "its rows have different lengths … give each the same"),
        ([[1.0, 2.0], 3.0], "its rows have different lengths"),
        (nested(100), "nested deeper"),
        (itself(), "nested deeper"),
        ([1.0, None], "holds None at [1] … numpy.nan"),
        ([[1.0, {}]], "holds an object of type dict at [0, 1]"),
        ([2**64], "numbers as objects of Python (of type int)"),
        (10**400, "numbers as objects of Python (of type int)"),
        ([Decimal("0.1"), Fraction(1, 3)], "(of type Decimal, Fraction) … dtype=float"),
        (sp.Rational(1, 3), "(of type Rational)"),
        (sp.Symbol("t"), "of type Symbol is not"),
        (np.array([1.0], object), "(of type float)"),
        (np.array([], object), "(of type none)"),
        ((k for k in range(3)), "of type generator is not"),
        ({1.0, 2.0}, "of type set is not"),
        (np.array([(1.0, 2.0)], [("a", float), ("b", float)]), "structured values … one field"),
        (np.array([1 + 0j]), "complex values … its real part"),
        (np.array(["1.5"]), "text values … .astype(float)"),
        (b"1.5", "text values"),
        ("1.5", "is a text"),
        (np.array([1], "m8[s]"), "duration values … numpy.timedelta64(1, 's')"),
        (np.ma.array([1.0, 2.0]), "masked array … .filled(numpy.nan)"),
        ([np.ma.array([1.0, 2.0], mask=[True, False])], "masked array"),
        ([1.0, np.ma.masked], "masked array"),
        (coo_array(np.eye(2)), "sparse matrix … .toarray()"),
        (csr_matrix(np.eye(2)), "sparse matrix … .toarray()"),
    ],
    ids=range(31),
)
def test_what_is_not_an_array_of_numbers(reader: str, value: object, words: str) -> None:
    with pytest.raises(DomainError) as caught:
        READERS[reader](value)
    message = str(caught.value)
    assert message.startswith(f"error[E306]: {'data `y`' if reader == 'data' else 'x'} ")
    assert "\n help: " in message
    for phrase in words.split(" … "):
        assert phrase in message


def test_an_array_larger_than_memory() -> None:
    with pytest.raises(DomainError, match=r"E707.*shape \(10{15},\) takes 8e\+15 bytes(.|\n)*help"):
        as_model_array("y", np.broadcast_to(1.0, (10**15,)), ["n"])


TEXT = "dim n data y[n], lam = 0.5 var x[n] init 1 minimize lam * sumsq(x - y)"
REFUSED = r"E306.*data `(y|lam)` is None(.|\n)*leave it out"


def test_none_is_not_a_value_of_data() -> None:
    """Silently, None would mean a default, or remove data."""
    model = slomodel.compile(TEXT, data={"y": np.zeros(3)})
    for name in ("y", "lam"):
        with pytest.raises(SlomodelError, match=REFUSED):
            slomodel.compile(TEXT, data={"y": np.zeros(3)} | {name: None})
        with pytest.raises(SlomodelError, match=REFUSED):
            model.bind(**{name: None})
    assert model.bind(lam=2.0).value(np.ones(3)) == 6.0


def test_none_says_of_a_symbol_that_it_is_data() -> None:
    x, y = sp.symbols("x y")
    model = slomodel.compile((x - y) ** 2, data={y: None})
    assert model.missing == ("y",)
    with pytest.raises(SlomodelError, match=REFUSED):
        model.bind(y=None)
    with pytest.raises(SlomodelError, match=r"data `y` is not an array: boom"):
        slomodel.compile((x - y) ** 2, data={y: Maker(ZeroDivisionError("boom"))})
    assert model.bind(y=2.0).value([1.0]) == 1.0
