"""What a problem holds beside its objective: starts, checks, bounds, warnings, places."""

import numpy as np
import pytest

from slomodel.ir.dims import Dim, literal, named
from slomodel.ir.walk import inputs
from slomodel.problem import NONSMOOTH, Init
from slomodel.reference import evaluate
from tests.front.elaborated import DECLARED, evaluated, problem_of, values_of

STARTS = [
    ("0", Init("number", (0.0,))),
    ("-1.2", Init("number", (-1.2,))),
    ("1/4", Init("number", (0.25,))),
    ("uniform(0, 0.1)", Init("uniform", (0.0, 0.1))),
    ("normal(mu=1, s=2)", Init("normal", (1.0, 2.0))),
    ("zeros", Init("zeros", ())),
    ("ones", Init("ones", ())),
    ("eye", Init("eye", ())),
    ("B0", Init("data", (), "B0")),
]


@pytest.mark.parametrize(("text", "expected"), STARTS)
def test_starts(text: str, expected: Init) -> None:
    problem = problem_of(f"data B0[2, 2] var B[2, 2] init {text} minimize sumsq(B)")
    assert problem.variables[0].init == expected


def test_default_start_is_normal() -> None:
    assert problem_of("var x minimize x^2").variables[0].init == Init("normal", (0.0, 1.0))


def test_declarations_are_kept_in_order() -> None:
    problem = problem_of(
        'model m dim d, h = 16 data X[d, h - 1] mask from "a.npz:K", Y[d, d] symmetric, lam = 1e-3'
        " var W[h, d] maximize score: sum(W) + lam * sum(X) + sum(Y)"
    )
    assert [(d.name, d.default) for d in problem.dims] == [("d", None), ("h", 16)]
    first, second, third = problem.data
    assert first.shape == (named("d"), named("h") - 1)
    assert first.file is not None
    assert (first.file.path, first.file.key) == ("a.npz", "K")
    assert (first.attributes, second.attributes) == ({"mask"}, {"symmetric"})
    assert third.default == 1e-3
    assert (problem.name, problem.sense, problem.objective_name) == ("m", "maximize", "score")


def test_a_check_on_arrays_means_all() -> None:
    problem = problem_of("dim n data a[n], b var x check a > 0 and a < b or b == 1 minimize x")
    nodes = {d.name: d.node for d in problem.data}
    for a, b, expected in [([1, 2], 3, True), ([1, 4], 3, False), ([1, -4], 1, True)]:
        values = {nodes["a"]: np.asarray(a, float), nodes["b"]: np.asarray(float(b))}
        assert bool(evaluate([problem.checks[0].condition], values)[0]) is expected
    assert problem.checks[0].text == "a > 0 and a < b or b == 1"


def bounds_of(text: str) -> list[tuple[str, ...]]:
    problem = problem_of(DECLARED + "minimize " + text)
    return [(str(b.least), str(b.most), str(b.size), str(b.count)) for b in problem.bounds]


def test_what_sizes_decide_is_left_to_bind() -> None:
    assert bounds_of("sum(x[i] for i in range(k))") == [("0", "k - 1", "n", "k")]
    assert bounds_of("x[2] + x[-1]") == [("2", "2", "n", "1"), ("n - 1", "n - 1", "n", "1")]
    assert bounds_of("sum(x[:k])") == [("0", "k - 1", "n", "k")]


def test_what_is_proved_is_not_tested_again() -> None:
    assert bounds_of("sum(x[i+1] * x[n-1-i] for i in range(n-1)) + w[-1]") == []
    assert bounds_of("sum(x[i] for i in n) + sum(x[:])") == []


SIZED = [
    ("mean(x)", 4, True),
    ("mean(x)", 0, False),
    ("sum(reshape(x, 2, 2))", 4, True),
    ("sum(reshape(x, 2, 2))", 5, False),
    ("sum(reshape(X, m, n)) + sum(x)", 4, True),
]


@pytest.mark.parametrize(("text", "size", "expected"), SIZED)
def test_conditions_on_sizes_are_checks(text: str, size: int, expected: bool) -> None:
    problem = problem_of(f"dim m, n var x[n], X[m, n] minimize {text}")
    sizes = {"n": size, "m": 3}
    found = [bool(evaluate([c.condition], {}, sizes)[0]) for c in problem.checks]
    assert all(found) is expected
    assert len(found) == ("X" not in text)


def test_data_under_a_mask_may_be_missing() -> None:
    text = "dim n data M[n], O[n] mask, y[n] var x[n] let R = M - x minimize sumsq(masked(R, O))"
    flags = {d.name: d.may_be_missing for d in problem_of(text + " + sum(y)").data}
    assert flags == {"M": True, "O": False, "y": False}
    flags = {d.name: d.may_be_missing for d in problem_of(text + " + sum(y) + sum(M)").data}
    assert flags["M"] is False


def warnings_of(text: str) -> list[tuple[str, str]]:
    return [(w.code, w.span.text if w.span else "") for w in problem_of(text).warnings]


KINKS = [
    ("norm2(x) + norm2(x)^2", ["norm2(x)"]),
    ("sum(sqrt(x^2))", ["sqrt(x^2)"]),
    ("norm1(x) + sum(relu(x))", ["norm1(x)", "relu(x)"]),
    ("sum(max(x, 0)) + min(w) + sum(abs(d) * x)", ["max(x, 0)", "min(w)"]),
    ("sum(where(x > 0, x, 2*x))", ["where(x > 0, x, 2*x)"]),
    ("sum(where(d > 0, x, 2*x))", []),
    ("sum(where(x^2 <= 1, x^2/2, sqrt(x^2) - 1/2))", ["sqrt(x^2)"]),
    ("sum(where(abs(x) <= a, x^2/2, a * (abs(x) - a/2)))", ["abs(x)"]),
    (
        "sum(where(abs(x) <= a, x^2/2, a * (abs(x) - a/3)))",
        ["where(abs(x) <= a, x^2/2, a * (abs(x) - a/3))", "abs(x)"],
    ),
    ("sum(where(x > d, (x - d)^2, 0))", []),
    ("sum(where(x > d, (x - d)^2, x - d))", ["where(x > d, (x - d)^2, x - d)"]),
    ("sum(x[i] for i in range(3) if x[i] > 1)", ["x[i] > 1"]),
    ("sum(huber(x)) + sum(softplus(x)) + sumsq(w)", []),
    ("sum(huber(x, 0)) + sum(huber(x, exp(w[0]))) + sum(huber(x, d^2))", []),
    ("sum(huber(x, -1)) + huber(x[0], w[0])", ["huber(x, -1)", "huber(x[0], w[0])"]),
    ("sum(huber(x, a))", []),
]


@pytest.mark.parametrize(("text", "places"), KINKS)
def test_kinks_are_reported_with_their_place(text: str, places: list[str]) -> None:
    model = f"data d[3], a = 1 var x[3], w[2] minimize {text}"
    found = [place for code, place in warnings_of(model) if code == NONSMOOTH]
    assert sorted(found) == sorted(places)


@pytest.mark.parametrize(
    ("check", "kinks"),
    [
        ("check a - d >= 0", 0),
        ("check 0 < a - d", 0),
        ("check d <= 3 and a - d > 0.5", 0),
        ("check a - d > -1", 1),
        ("check a - d <= 0", 1),
        ("check a - d >= 0 or d > 0", 1),
        ("check a >= d", 1),
    ],
)
def test_a_check_shows_that_huber_has_no_kink(check: str, kinks: int) -> None:
    model = f"data a, d var x {check} minimize huber(x, a - d) + d * x^2"
    assert len([code for code, _ in warnings_of(model) if code == NONSMOOTH]) == kinks


@pytest.mark.parametrize(("delta", "kinks"), [("a", 0), ("a = 2", 0), ("a = 0", 0), ("a = -1", 1)])
def test_data_are_the_delta_of_huber(delta: str, kinks: int) -> None:
    model = f"data {delta} var x minimize huber(x, a)"
    assert len([code for code, _ in warnings_of(model) if code == NONSMOOTH]) == kinks


def test_what_is_not_used_is_reported() -> None:
    text = "data a, b, x0 var x init x0, z check a > 0 minimize x^2"
    assert warnings_of(text) == [("W202", "b"), ("W202", "z")]


def test_a_node_knows_the_place_that_made_it() -> None:
    problem = problem_of("dim n data y[n] var x[n] minimize sumsq(exp(x) - y) / 2")
    places = {span.text for span in problem.spans.values()}
    assert {"exp(x)", "exp(x) - y", "sumsq(exp(x) - y)", "sumsq(exp(x) - y) / 2"} <= places


def test_equal_sizes_of_other_names_are_other_dims() -> None:
    problem = problem_of("dim h = 10 var x[h], y[10] minimize sum(x) + sum(y)")
    assert problem.variables[0].shape == (named("h"),)
    assert problem.variables[1].shape == (literal(10),) != (Dim(),)


DEEP = [
    "-" * 4_000 + "x",
    "exp(" * 2_000 + "x" + ")" * 2_000,
    "(" * 3_000 + "x" + " + 1)" * 3_000,
    "+".join(["x"] * 8_000),
    "x" + " * x" * 2_000,
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("text", DEEP, ids=range(len(DEEP)))
def test_deep_and_long_expressions(text: str) -> None:
    problem = problem_of(f"var x minimize {text}")
    assert problem.objective.shape == ()
    assert inputs(problem.objective) == [problem.variables[0].node]


def test_functions_expand_within_functions() -> None:
    lines = ["var x", "fn f0(t) = t + t^2"]
    lines += [f"fn f{k}(t) = f{k - 1}(f{k - 1}(t))" for k in range(1, 12)]
    problem = problem_of("\n".join([*lines, "minimize f3(x)"]))
    values = values_of(problem, {})
    expected = values["x"]
    for _ in range(8):
        expected = expected + expected**2
    assert evaluated(problem, values, {}) == pytest.approx(float(expected))
