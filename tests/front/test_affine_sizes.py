"""Sizes in shapes that are affine in several dims: their meaning, and the dims they determine."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import slomodel
from slomodel.errors import ModelSyntaxError, ShapeError, SlomodelError, SourceText
from slomodel.front.data.bind import bind
from slomodel.front.elaboration.elaborate import elaborate
from slomodel.front.text.format import formatted
from slomodel.front.text.parse import parse

BLUR = """dim H, W, k
data Y[H - k + 1, W - k + 1]
var X[H, W], f[k, k]
let Z[i in range(H - k + 1), j in range(W - k + 1)] =
  sum(f[a, b] * X[i + a, j + b] for a in k, b in k)
minimize sumsq(Y - Z)
"""


def test_windows_of_a_filter() -> None:
    rng = np.random.default_rng(0)
    Y, X, f = (rng.standard_normal(shape) for shape in ((4, 5), (6, 7), (3, 3)))
    model = slomodel.compile(BLUR, data={"Y": Y}, dims={"k": 3})
    assert model.variables == {"X": (6, 7), "f": (3, 3)}
    found = model.value({"X": X, "f": f})
    from scipy.signal import correlate2d  # half a second, not for every collection

    want = np.sum((Y - correlate2d(X, f, mode="valid")) ** 2)
    assert found == pytest.approx(want, rel=1e-13)


@settings(max_examples=50)
@given(
    sizes=st.tuples(*[st.integers(1, 6)] * 3),
    factors=st.lists(st.tuples(*[st.integers(0, 3)] * 4), min_size=3, max_size=3),
)
def test_what_data_determine(sizes: tuple[int, ...], factors: list[tuple[int, ...]]) -> None:
    """A dim is found where some axis leaves it alone unknown; and no dim is found wrong."""
    axes = [
        " + ".join(f"{c}*{name}" for c, name in zip(one, "pqr", strict=False)) + f" + {one[3]}"
        for one in factors
    ]
    text = "dim p, q, r\n" + "".join(f"data d{k}[{axis}]\n" for k, axis in enumerate(axes))
    lengths = [sum(c * n for c, n in zip(one, (*sizes, 1), strict=True)) for one in factors]
    data = {f"d{k}": np.ones(length) for k, length in enumerate(lengths)}
    total = " + ".join(f"sum(d{k})" for k in range(3))
    source = SourceText(f"{text}var x\nminimize x^2 + x*({total})")
    found = bind(elaborate(parse(source), source), data, {}, None).sizes
    known: set[int] = set()
    for _ in range(3):
        for one in factors:
            unknown = [k for k in range(3) if one[k] and k not in known]
            known.update(unknown if len(unknown) == 1 else ())
    assert found == {"pqr"[k]: sizes[k] for k in known}


def test_a_default_is_used_where_data_leave_a_choice() -> None:
    text = "dim n, k = 3\ndata y[n - k + 1]\nvar x[n]\nminimize sumsq(x) + sum(y)"
    assert slomodel.compile(text, data={"y": np.ones(4)}).n == 6


def test_lengths_that_no_size_has() -> None:
    text = "dim n\ndata y[2*n]\nvar x\nminimize x^2 + sum(y)"
    with pytest.raises(ShapeError, match=r"E311.* 5 along `2\*n`"):
        slomodel.compile(text, data={"y": np.ones(5)})
    with pytest.raises(ShapeError, match="E311"):
        slomodel.compile(text.replace("2*n", "n + 8"), data={"y": np.ones(5)})


def test_names_of_sizes_that_others_determine() -> None:
    text = "dim n, k, m = n - k + 1, p = 2*m\ndata y[m]\nvar x[n], z[p]\n"
    text += "let s[t in m] = y[t] + 0.5 * s[t-1] first 0\n"
    text += "minimize sum(x[i + k - 1] * s[i] for i in m) / m + sumsq(x) + sumsq(z)"
    y = np.array([1.0, 2.0, 4.0])
    model = slomodel.compile(text, data={"y": y}, dims={"k": 3})
    assert model.variables == {"x": (5,), "z": (6,)}
    s = [0.0, 2.0, 5.0]
    x = np.arange(5.0)
    found = model.value({"x": x, "z": np.zeros(6)})
    assert found == pytest.approx((x[2:] @ s) / 3 + x @ x, rel=1e-14)
    with pytest.raises(SlomodelError, match="E309"):
        slomodel.compile(text, data={"y": y}, dims={"k": 3, "m": 3})
    with pytest.raises(SlomodelError, match="-2"):
        slomodel.compile(
            text.replace("data y[m]", "data y[q]").replace("dim n", "dim q, n"),
            data={"y": y},
            dims={"n": 2, "k": 5},
        )


@pytest.mark.parametrize("size", ["n@n", "n/a", "2/n", "n^9", "a", "1.5", "q + 1", "x"])
def test_what_is_not_a_named_size(size: str) -> None:
    with pytest.raises(SlomodelError, match=r"E201|E209|E217"):
        slomodel.compile(f"dim n\ndata a\nvar x[n]\ndim m = {size}\nvar y[m]\nminimize sumsq(y)")


def test_it_is_written_again_as_it_was() -> None:
    tidy = "dim  n, k\nvar  x[n-2*k+1], y[2*n]\nminimize sumsq(x) + sumsq(y)\n"
    assert (
        formatted(SourceText("dim n,k var x[n-2*k+1],y[ 2*n ] minimize sumsq(x)+sumsq(y)")) == tidy
    )


@pytest.mark.parametrize("size", ["n*n", "2/n", "1.5*n", "2 - 3", "2*q", "n k", "-n", "n .* 2"])
def test_what_is_not_a_size(size: str) -> None:
    with pytest.raises(SlomodelError, match=r"E101|E123|E217"):
        slomodel.compile(f"dim n, k\nvar x[{size}]\nminimize sumsq(x)")


def test_parameters_of_functions() -> None:
    text = "fn f(u[q], v[2*q]) = sum(v) * sum(u)\nvar x[4]\nminimize f(x[:2], x)"
    x = np.arange(1.0, 5.0)
    assert slomodel.compile(text).value(x) == 30.0
    with pytest.raises(SlomodelError, match="E220"):
        slomodel.compile(text.replace("x[:2]", "x[:3]"))
    with pytest.raises(ModelSyntaxError, match="E217"):
        slomodel.compile("fn f(v[2*q]) = sum(v)\nvar x[4]\nminimize f(x)^2")


@pytest.mark.parametrize(
    ("formula", "size"),
    [("m*n", 6), ("n*(n - 1)/2", 3), ("(m + 1)^2 - n", 6), ("2*m*n/3 + k", 9), ("m*h", 10)],
)
def test_sizes_that_are_products_of_others(formula: str, size: int) -> None:
    text = f"dim m, n, k, h = m + n, p = {formula}\ndata A[m, n], y[k]\nvar x[p]\n"
    text += "minimize sumsq(x) / p + sum(A) + sum(y) + sum(i*x[i] for i in p)"
    model = slomodel.compile(text, data={"A": np.ones((2, 3)), "y": np.ones(5)})
    x = np.arange(1.0, size + 1)
    assert model.value(x) == x @ x / size + 11 + x @ np.arange(size)


def test_products_of_sizes_have_to_agree() -> None:
    text = "dim m, n, p = m*n\ndata A[m, n]\nvar x[p]\n"
    text += "minimize sumsq(A @ ones(n)) + sumsq(reshape(x, m, n) - A)"
    model = slomodel.compile(text, data={"A": np.ones((2, 3))})
    assert model.n == 6
    assert model.value(np.ones(6)) == 18
    with pytest.raises(ShapeError, match=r"E311(.|\n)*`p` is 6 by its definition, but 7 in dims="):
        slomodel.compile(text, data={"A": np.ones((2, 3))}, dims={"p": 7})
    odd = "dim n, p = n*n/2\ndata y[n]\nvar x[p]\nminimize sumsq(x) + sum(y)"
    with pytest.raises(ShapeError, match=r"`p` would be 9/2, which is not a size"):
        slomodel.compile(odd, data={"y": np.ones(3)})


PLACES = (
    "minimize sum((x[i+1] - x[i])^2 for i in {})",
    "let d[i in {}] = x[i+1] - x[i]\nminimize sumsq(d)",
    "minimize sumsq(x)\nsubject to x[i] <= x[i+1] for i in {}",
    "fn f(u[n]) = sum((u[i+1] - u[i])^2 for i in {})\nminimize f(x)",
    "minimize sum((x[j] - x[i])^2 for i in n, j in {})",
    "let s[t in {}] = 0.5*s[t-1] + x[t] first x[0]\nminimize sumsq(s)",
)


@pytest.mark.parametrize("text", PLACES)
def test_an_index_over_a_size_that_is_no_name(text: str) -> None:
    x = np.array([1.0, -2.0, 4.0, 3.0])
    size = "i + 1" if "j in" in text else "n - 1"
    models = [
        slomodel.compile(f"dim n\nvar x[n]\n{text.format(domain)}", dims={"n": 4})
        for domain in (size, f"range({size})")
    ]
    assert models[0].value(x) == models[1].value(x)
    assert np.array_equal(models[0].gradient(x), models[1].gradient(x))
