"""Functions of a + b sqrt(c + d x^2): compiling ends for all signs, and no digits are lost."""

import itertools

import mpmath
import pytest

import slomodel

FUNCTIONS = {
    "log({})": mpmath.log,
    "1/({})": lambda t: 1 / t,
    "asinh({})": mpmath.asinh,
    "({})^3": lambda t: t**3,
}
NUMBERS = list(itertools.product((1, -2), (1, -1), (1, 4), (1, -0.5)))


@pytest.mark.parametrize("form", FUNCTIONS)
def test_sums_with_roots(form: str) -> None:
    sums = [f"{a} + {b}*sqrt({c} + {d}*x[k]^2)" for a, b, c, d in NUMBERS]
    for k, (text, (a, b, c, d)) in enumerate(zip(sums, NUMBERS, strict=True)):
        x = 0.3 + 1e-3 * k
        with mpmath.workdps(40):
            inside = a + b * mpmath.sqrt(c + d * mpmath.mpf(x) ** 2)
            expected = FUNCTIONS[form](inside) if inside > 0 or form != "log({})" else mpmath.nan
        model = slomodel.compile(f"var x[1] minimize {form.format(text.replace('[k]', '[0]'))}")
        assert model.value([x]) == pytest.approx(float(expected), rel=1e-14, nan_ok=True)
