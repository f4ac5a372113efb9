"""Models of which a part of the data is used, and reports about their compression."""

import re

import numpy as np
import pytest

import slomodel

NAME = "orthogonal compression"
TARGETS = ("numpy", "numexpr")
M, K, H = 700, 4, 3

DATA = {
    **{"X": "K, M", "y": "M", "Y": "2, M", "c": "M", "m": "K", "d": "K"},
    **{"Z": "8, 5", "A": "6, K", "e": "6"},
}
VARIABLES = {
    **{"w": "K", "v": "H", "W": "H, K", "V": "2, H", "b": "", "u": "M", "t": "8"},
}
SIZES = {"M": M, "K": K, "H": H}


def shape(dims: str) -> tuple[int, ...]:
    return tuple(SIZES.get(dim) or int(dim) for dim in dims.replace(",", " ").split())


def drawn(seed: int = 0) -> dict[str, np.ndarray]:
    """Data of every name; `c` and `d` are not negative, and `c` is 0 here and there."""
    draw = np.random.default_rng(seed)
    data = {name: draw.standard_normal(shape(dims)) for name, dims in DATA.items()}
    return data | {"c": draw.random(M) * (draw.random(M) < 0.7), "d": draw.random(K) + 0.5}


def text_of(objective: str) -> str:
    """The model with the declarations of what its objective uses."""
    used = set(re.findall(r"[A-Za-z]\w*", objective))
    data = [f"{name}[{dims}]" for name, dims in DATA.items() if name in used]
    variables = [f"{name}[{dims}]".replace("[]", "") for name, dims in VARIABLES.items()]
    varied = [one for one in variables if one.split("[")[0] in used]
    dims = ", ".join(f"{name} = {size}" for name, size in SIZES.items())
    return f"dim {dims}\ndata {', '.join(data)}\nvar {', '.join(varied)}\nminimize {objective}"


def compiled(objective: str, **options: object) -> slomodel.Model:
    text = text_of(objective)
    data = {name: array for name, array in drawn().items() if f"{name}[" in text.split("var ")[0]}
    return slomodel.compile(text, data=data, **options)


def told(model: slomodel.Model) -> list[str]:
    """What was compressed, a line each."""
    lines = model.explain().splitlines()
    if not any(f"rewritten  {NAME}" in line for line in lines):
        return []
    return [line.strip() for line in lines if "columns become" in line]


def assert_same(one: slomodel.Model, other: slomodel.Model, scale: float = 1.0) -> None:
    """Value, gradient and Hessian product agree to rounding at three points."""
    for seed in range(3):
        draw = np.random.default_rng(seed)
        x, v = draw.standard_normal((2, one.n))
        value, gradient = one.value_and_gradient(x)
        expected, other_gradient = other.value_and_gradient(x)
        assert value == pytest.approx(expected, rel=1e-13 * scale)
        assert one.value(x) == pytest.approx(expected, rel=1e-13 * scale)
        large = np.abs(other_gradient).max()
        np.testing.assert_allclose(gradient, other_gradient, rtol=0, atol=1e-13 * scale * large)
        product = other.hvp(x, v)
        atol = 1e-12 * scale * np.abs(product).max()
        np.testing.assert_allclose(one.hvp(x, v), product, rtol=0, atol=atol)
