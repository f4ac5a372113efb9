"""The whole text of a warning of each code, and its category."""

import warnings
from collections.abc import Callable

import pytest

import slomodel
from slomodel.errors import ModelWarning

MODELS = {
    "W101": "dim n\nvar x[n]\nlet y = sum\n(x)\nminimize y^2\n",
    "W201": "dim n\ndata y[n]\nvar x[n]\nminimize sum(abs(x - y)) + sumsq(x)\n",
    "W202": "dim n\ndata y[n], lam = 0.1\nvar x[n]\nminimize sumsq(x - y)\n",
    "W203": (
        "dim n, m, r = 5\ndata M[n, m]\nvar U[n, r], V[m, r] init 0\nminimize sumsq(U @ V' - M)\n"
    ),
    "W204": "dim n\nvar x[n]\nminimize sum((x[i] - 1)^2 for i in range(1, n))\n",
    "W205": "data a\nvar x\nminimize (a * x)^2 + log(1 - 2)\n",
    "W206": "dim n, S\ndata y[n], g[n] in S labels\nvar u[S]\nminimize sumsq(y - u[g])\n",
    "W207": "dim n\ndata y[n]\nvar a > 0, b > 0\nmaximize beta_lpdf(y, a, b)\n",
    "W208": "dim n\ndata y[n], w[n]\nvar m\nmaximize sum(w * normal_lpdf(y, m, 1))\n",
}
DATA = {
    "W206": {"y": [1.0, 2.0, 4.0], "g": ["a", "NA", "b"]},
    "W207": {"y": [0.0, 0.5]},
}
KINDS = {"W201": slomodel.NonsmoothWarning}


@pytest.mark.parametrize("code", MODELS)
def test_text_of_each_code(code: str, golden: Callable[[str, str], None]) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        slomodel.compile(MODELS[code], data=DATA.get(code))
    (told,) = caught
    assert told.category is KINDS.get(code, ModelWarning)
    golden(f"messages/{code}.txt", f"{told.message}\n")


@pytest.mark.parametrize(
    ("objective", "count"),
    [
        ("sum(-normal_lpdf(y, m, 1) * w)", 1),
        ("sum(w + y - normal_lpdf(y, m, 1))", 1),
        ("sum(w ./ normal_lpdf(y, 0, 1)) + m^2", 1),
        ("sum(w[i] * normal_lpdf(y[i], m, 1) for i in n)", 0),
        ("sum(w) + normal_lpdf(y, m, 1) + normal_lpdf(m, 0, 1) * sum(y)", 0),
        ("sum(w + normal_lpdf(m, 0, 1)) + sum(y)", 0),
        ("logsumexp(log(k + 1) + normal_lpdf(y - k, m, 1) for k in 3) + sum(w)", 0),
    ],
)
def test_totals_beside_elements(objective: str, count: int) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        slomodel.compile(f"dim n data y[n], w[n] var m maximize {objective}")
    assert [str(told.message)[:13] for told in caught] == ["warning[W208]"] * count


def test_a_label_is_warned_of_once_and_not_if_labels_are_given() -> None:
    text, data = MODELS["W206"], DATA["W206"]
    model = slomodel.compile(text, data=data, labels={"S": ["NA", "a", "b"]}, backend="numpy")
    assert model.bind(y=[3.0, 2.0, 1.0]).labels == {"S": ("NA", "a", "b")}
    with pytest.warns(ModelWarning, match="drop missing"):
        model = slomodel.compile(text, backend="numpy").bind(**data)
    model.bind(y=[3.0, 2.0, 1.0])
    untreated = {**data, "g": ["none", "low", "high"]}
    assert "none" in slomodel.compile(text, data=untreated, backend="numpy").labels["S"]


@pytest.mark.parametrize(
    "objective",
    [
        "gamma_lpdf(y, 1, a)",
        "gamma_lpdf(y, 2, a)",
        "sum(gamma_lpdf(y[i], a, 1) for i in n if y[i] > 0)",
        "sum(where(y[i] > 0, gamma_lpdf(y[i], a, 1), -a) for i in n)",
        "gamma_lpdf(y + 1, a, 1)",
    ],
)
def test_data_at_the_end_of_a_support_may_be_left_out(objective: str) -> None:
    text = f"dim n data y[n] var a > 0 maximize {objective}"
    slomodel.compile(text, data={"y": [0.0, 0.5]}, backend="numpy")


@pytest.mark.parametrize(
    "objective", ["gamma_lpdf(y, a, 1)", "sum(weibull_lpdf(y[i], a, 2) for i in n)"]
)
def test_data_at_the_end_of_a_support_are_named_at_bind(objective: str) -> None:
    model = slomodel.compile(f"dim n data y[n] var a > 0 maximize {objective}", backend="numpy")
    with pytest.warns(ModelWarning, match="this is infinite unless"):
        model.bind(y=[0.0, 2.0])


@pytest.mark.parametrize("number", ["log(-1)", "exp(1000)", "log(0)"])
@pytest.mark.parametrize("form", ["1 / (1 + {} * exp(-x))", "erf(x) - acos({})", "x^{} / {}"])
def test_rules_leave_constants_that_are_not_finite(number: str, form: str) -> None:
    text = f"var x init 0.5\nminimize {form.format(number, number)}"
    with pytest.warns(slomodel.ModelWarning, match="W205"):
        slomodel.compile(text, backend="numpy")
