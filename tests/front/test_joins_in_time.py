"""Smoothness of joints is decided at once, even if SymPy could take minutes."""

import warnings

import pytest

import slomodel
from tests.work_counts import counting


@pytest.mark.parametrize(
    "text",
    [
        "var x minimize where(x <= 0.918, 0, tanh((x+2)^0.945))",
        "data c=1 var x minimize where(x <= c, 0.5, sin(cos(x)+2)^0.9)",
        "data c=1,a=2,b=3 var x minimize "
        "where(a*x^2+b*x <= c, x^8*exp(x), x^7*sin(x)+tan(x)*sinh(b*x))",
    ],
)
def test_no_joint_takes_long(text: str) -> None:
    with warnings.catch_warnings(), counting() as calls:
        warnings.simplefilter("ignore")
        assert slomodel.compile(text).n == 1
    # It took over 40 s.
    assert calls.count < 1_000_000
