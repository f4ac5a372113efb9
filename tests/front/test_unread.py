"""Sums that count from 1 skip the first elements, which gives a warning."""

import warnings

import numpy as np
import pytest
import sympy as sp

import slomodel

K, J = sp.symbols("i j", integer=True)
N, D = sp.symbols("N d", integer=True)
A, Y, W = (sp.IndexedBase(name) for name in "Ayw")


def told(source: object, *args: object, **keywords: object) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        slomodel.compile(source, *args, **keywords)
    return [str(one.message) for one in caught if "W204" in str(one.message)]


def test_a_sympy_sum_from_one() -> None:
    residual = sp.Sum(A[K, J] * W[J], (J, 1, D)) - Y[K]
    data = {"A": np.ones((6, 4)), "y": np.ones(6)}
    found = told(sp.Sum(residual**2, (K, 1, N)), [W], data=data)
    assert len(found) == 4
    assert any("variable `w[0]` is never read" in one for one in found)
    assert any("data `A[…, 0]` is never read" in one for one in found)
    zero = sp.Sum(A[K, J] * W[J], (J, 0, D - 1)) - Y[K]
    assert told(sp.Sum(zero**2, (K, 0, N - 1)), [W], data=data) == []


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("dim n var x[n] minimize sum((x[i] - 1)^2 for i in range(1, n))", 1),
        ("dim n var x[n] minimize sumsq(x[1:])", 1),
        ("dim n var x[n] minimize sum((x[i+1] - x[i])^2 for i in range(n - 1))", 0),
        ("dim n var x[n] minimize sum((x[n-1-i] - 1)^2 for i in n)", 0),
        ("dim n var x[n] minimize sum((x[i+1] - 1)^2 for i in range(n - 1)) + x[0]^2", 0),
        ("dim n var x[n] minimize sumsq(x[1:]) + sumsq(x)", 0),
        ("dim n var x[n] minimize x[3]^2", 0),
        ("var x[4] minimize sumsq(x[1:])", 0),
    ],
)
def test_text(text: str, count: int) -> None:
    assert len(told(text)) == count
