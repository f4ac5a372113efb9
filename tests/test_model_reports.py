"""Reports about a model: warnings, rejected data, origins of NaN; for texts of any length."""

import warnings

import numpy as np
import pytest

import slomodel

TARGETS = ("numpy", "numexpr", pytest.param("c", marks=pytest.mark.slow))
NAMES = """N S E I Q O C beta gamma zeta lambda_ Lambda re im where sum exp pi e out x0 np λ θ_1
n0 k0 b0 o0 g x v value gradient hvp point direction make_value shapes eval exec NumExpr
symmetric mask uniform zeros eye self print __name__ numpy slomodel"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("backend", TARGETS)
@pytest.mark.parametrize("name", NAMES.split())
def test_any_name_for_anything(name: str, backend: str) -> None:
    other = "w" if name != "w" else "u"
    text = f"var {name}[2], {other} minimize sum(({name} - 1)^4) + {other}^2 * sum({name})"
    model = slomodel.compile(text, backend=backend)
    x = np.array([0.0, 3.0, 2.0])
    assert list(model.variables) == [name, other]
    assert model.value(x) == 1.0 + 16.0 + 4.0 * 3.0
    assert model.gradient(x).tolist() == [-4.0 + 4.0, 32.0 + 4.0, 12.0]
    assert model.hvp(x, [1.0, 0.0, 0.0]).tolist() == [12.0, 0.0, 4.0]
    text = f"dim {name} data a_[{name}] var x_[{name}] minimize sumsq(x_ - a_)"
    assert slomodel.compile(text, data={"a_": [1, 2]}, backend=backend).value([0, 0]) == 5.0
    text = f"data {name}[2] = 3 let q_ = {name} * 2 var x_[2] minimize sumsq(x_ - q_)"
    model = slomodel.compile(text, backend=backend)
    assert model.value([6.0, 7.0]) == 1.0
    assert model.bind(**{name: [3, 3.5]}).value([6.0, 7.0]) == 0.0


@pytest.mark.parametrize("backend", TARGETS)
def test_whole_numbers_do_not_wrap_around(backend: str) -> None:
    text = "data a[2], k var x[2] minimize sum((a + a) * x) + sum((a * a - 60000)^2) + x[0]^k"
    for kind in (np.uint8, np.int16, np.int64, np.uint64):
        data = {"a": np.array([200, 255], kind), "k": np.array(-1, np.int8)}
        model = slomodel.compile(text, data=data, backend=backend)
        expected = 400 * 2.0 + 510.0 + (40000 - 60000) ** 2 + (65025 - 60000) ** 2 + 0.5
        assert model.value([2.0, 1.0]) == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize(
    ("a", "kind", "words"),
    [
        (
            [[1.0], [2.0], [3.0]],
            slomodel.DomainError,
            r"(?s)shape \(3, 1\) was given\n.* help: pass a.rav",
        ),
        ([[1.0, 2.0, 3.0]], slomodel.DomainError, r"pass a.ravel\(\)"),
        (2.0, slomodel.DomainError, r"\[n\], and an array of shape \(\)"),
        (
            [1.0, np.nan, np.inf],
            slomodel.DomainError,
            r"2 values that are not.*`a\[1\]`, which is nan",
        ),
        ([1.0, 2.0, -np.inf], slomodel.DomainError, r"1 value that is not finite, first `a\[2\]`"),
        ([1.0, 2.0j], slomodel.DomainError, "complex"),
        (["1", "2"], slomodel.DomainError, "text values"),
        ("a.npz", slomodel.DomainError, r"pass pathlib.Path\(…\)"),
        ([[1.0], [2.0, 3.0]], slomodel.DomainError, "not an array"),
        ([1.0, None], slomodel.DomainError, r"holds None at \[1\]"),
    ],
)
def test_refused_data(a: object, kind: type[Exception], words: str) -> None:
    text = "dim n data a[n] var x[n] minimize sumsq(x - a)"
    with pytest.raises(kind, match=words):
        slomodel.compile(text, data={"a": a})
    model = slomodel.compile(text, data={"a": [0.0, 1.0, 2.0]})
    with pytest.raises(kind, match=words):
        model.bind(a=a)


@pytest.mark.parametrize("backend", TARGETS)
def test_nan_under_a_mask(backend: str) -> None:
    text = "dim p, q data M[p, q], W[p, q] mask var x, y minimize sumsq(masked(x * y - M, W))"
    W = np.array([[1, 0, 1], [0, 1, 0]])
    M = np.where(W == 1, 2.0, [[np.nan, np.inf, 0.0], [-np.inf, 0.0, np.nan]])
    for mask in (W, W.astype(bool), W.astype(np.float32)):
        model = slomodel.compile(text, data={"M": M, "W": mask}, backend=backend)
        assert model.value([3.0, 1.0]) == 3.0
        assert model.gradient([3.0, 1.0]).tolist() == [6.0, 18.0]
        assert model.hvp([3.0, 1.0], [1.0, 0.0]).tolist() == [6.0, 24.0]
    with pytest.raises(
        slomodel.DomainError, match=r"3 values that are not.*`M\[0, 1\]`, which is inf"
    ):
        slomodel.compile(f"{text} + sum(M) * x", data={"M": M, "W": W})
    with pytest.raises(slomodel.DomainError, match=r"mask `W` holds 2.0"):
        slomodel.compile(text, data={"M": M, "W": 2 * W})


def test_data_whose_attributes_and_checks_fail() -> None:
    text = "dim n data B[n, n] symmetric, lam = 1 check lam >= 0 var x[n] minimize lam * x' @ B @ x"
    model = slomodel.compile(text, data={"B": np.eye(3)})
    with pytest.raises(slomodel.DomainError, match="swapping axes 0 and 1 changes it by 1"):
        model.bind(B=np.triu(np.ones((3, 3))))
    with pytest.raises(slomodel.DomainError, match="the check `lam >= 0` does not hold: lam = -2"):
        model.bind(lam=-2)


KINKED = "var x[2], y\nminimize sumsq(x) +\n  norm1(x - 1) + max(y, 0)"


def test_kinks_warn_where_the_model_is_compiled() -> None:
    with pytest.warns(slomodel.NonsmoothWarning) as caught:
        slomodel.compile(KINKED)
    assert len(caught) == 2
    assert {warning.filename for warning in caught} == {__file__}
    texts = [str(warning.message) for warning in caught]
    assert "<model>:3:3" in texts[0]
    assert "norm1(x - 1)" in texts[0]
    assert "<model>:3:18" in texts[1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        slomodel.compile("var x, w[3] minimize where(x > 0, x^2, -x^2) + huber(x) + norm2(w)^2")


@pytest.mark.filterwarnings("ignore::slomodel.NonsmoothWarning")
@pytest.mark.parametrize(("delta", "told"), [([1.0, 0.0], "C1"), ([1.0, -0.1], "nonsmooth")])
def test_the_numbers_of_data_decide_whether_huber_has_a_kink(delta: list[float], told: str) -> None:
    text = "data d[2] var x[2] minimize sum(huber(x - 3, d)) + sumsq(x)"
    model = slomodel.compile(text, data={"d": delta})
    assert f"smoothness {told}" in model.explain()
    chosen_for = model.solve(max_iter=50).parameters["chosen_for"]
    assert (chosen_for == "an objective with kinks") == (told == "nonsmooth")
    assert "smoothness C1" in slomodel.compile(text).explain()


@pytest.mark.parametrize(("delta", "kinks"), [("3", 0), ("-3", 1)])
def test_numbers_in_a_long_sum_are_not_unknown_data(delta: str, kinks: int) -> None:
    """Terms that were written out are gathered, and their numbers become data."""
    terms = [f"huber(x - {k}.5, {1 + k % 7})" for k in range(300)]
    text = f"var x minimize {' + '.join(terms)} + huber(x, {delta})"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        slomodel.compile(text)
    assert len(caught) == kinks


def test_kinks_are_errors_when_strict() -> None:
    with pytest.raises(slomodel.ModelSyntaxError, match=r"^error\[W201\]") as caught:
        slomodel.compile(KINKED, strict=True)
    assert [one.span.line for one in caught.value.diagnostics] == [3, 3]
    assert slomodel.compile("var x minimize x^2 + huber(x)", strict=True).n == 1


# A model that starts outside its domain, and what the status has to name.
STARTS = [
    ("var x init -1\nminimize log(x)", ["log of x = -1.0 is nan", "in `log(x)` (line 2)"]),
    (
        "var w[3] init 0\nlet z = w - 2\nminimize sumsq(w) +\n  sum(log(z))",
        ["log of -2.0 is nan at element [0]", "in `log(z)` (line 4)", "where w[0] = 0.0"],
    ),
    (
        "data a[3] = 0\nvar x[3] init 1\nminimize sum(x / a)",
        ["the quotient of x[0] = 1.0 and a[0] = 0.0 is inf", "in `x / a` (line 3)"],
    ),
    (
        "var x[3] init 1\nminimize sum(log(x[i+1] - x[i]) for i in range(2))",
        ["is -inf at element [0]", "`log(x[i+1] - x[i])` (line 2), where x[0] = 1.0, x[1] = 1.0"],
    ),
    (
        "var x[3] init 0\nminimize sumsq(x) +\n sum(sqrt(x))",
        ["is inf at element [0]", "in the derivative of `sqrt(x)` (line 3)", "x[0] = 0.0"],
    ),
    (
        "var x[3] init 0\nminimize sumsq(x) + sum(2 * x) + sum(x^0.7)",
        ["the power x^p of x[0] = 0.0", "in the derivative of `x^0.7` (line 2)"],
    ),
    (
        "var x[2] init 1e100\nminimize sumsq(x)^2",
        ["the square of 2e+200 is inf", "in `sumsq(x)^2` (line 2)"],
    ),
    (
        "var x[2] init 1e3 maximize -sum(exp(x))",
        ["exp of x[0] = 1000.0 is inf", "`exp(x)` (line 1)"],
    ),
]


@pytest.mark.parametrize("backend", TARGETS)
@pytest.mark.parametrize(("text", "named"), STARTS, ids=[text for text, _ in STARTS])
def test_a_start_that_is_not_finite(text: str, named: list[str], backend: str) -> None:
    found = slomodel.compile(text, backend=backend).solve()
    assert found.status is slomodel.Status.nonfinite_start
    assert not found.success
    assert [words for words in named if words not in found.message] == []


def test_a_start_with_nan() -> None:
    model = slomodel.compile("var a, b[2] minimize a^2 + sumsq(b)")
    found = model.solve(x0=[1.0, 2.0, np.nan])
    assert found.status is slomodel.Status.nonfinite_start
    assert "variable `b[1]` is nan" in found.message


def test_explain() -> None:
    text = "model fit dim n, k = 2 data a[n] var x[n], B[n, k] maximize gain: sum(a * x) - sumsq(B)"
    assert slomodel.compile(text).explain().splitlines() == [
        "model fit: maximize gain",
        "dims       n = ?, k = 2",
        "variable   x [n]",
        "variable   B [n, k]",
        "data       a [n], missing",
        "unknowns   3*n",
        "smoothness smooth (derivatives of every order on its domain)",
        "backend    numexpr",
    ]
    given = slomodel.compile(text, data={"a": [1, 2, 3]}).explain()
    assert "unknowns   9\n" in given
    assert "a [n], given" in given


def test_a_sum_of_4_500_terms() -> None:
    terms = [f"{(k % 7) - 3}.5 * x[{k % 10}]^2" for k in range(4_500)]
    model = slomodel.compile(f"var x[10] minimize {' + '.join(terms)}")
    x = np.linspace(-1.0, 2.0, 10)
    weights = np.bincount(np.arange(4_500) % 10, np.arange(4_500) % 7 - 3 + 0.0)
    signs = np.where(np.arange(4_500) % 7 < 3, -0.5, 0.5)
    weights += np.bincount(np.arange(4_500) % 10, signs)
    assert model.value(x) == pytest.approx(weights @ x**2, rel=1e-11)
    np.testing.assert_allclose(model.gradient(x), 2.0 * weights * x, rtol=1e-10)


@pytest.mark.parametrize("backend", TARGETS)
def test_nesting_1500_deep(backend: str) -> None:
    depth = 1500
    text = f"var x minimize {'sin(' * depth}x{')' * depth}"
    model = slomodel.compile(text, backend=backend)
    chain = [0.7]
    for _ in range(depth):
        chain.append(float(np.sin(chain[-1])))
    slope = float(np.prod(np.cos(chain[:-1])))
    curve = 0.0
    slopes = np.cumprod([1.0, *np.cos(chain[:-1])])
    for inner, outer, before in zip(chain[:-1], chain[1:], slopes[:-1], strict=True):
        curve += -outer / np.cos(inner) * before
    assert model.value([0.7]) == pytest.approx(chain[-1], rel=1e-12)
    assert model.gradient([0.7]) == pytest.approx([slope], rel=1e-10)
    assert model.hvp([0.7], [1.0]) == pytest.approx([curve * slope], rel=1e-9)


def test_nesting_to_the_limit_and_past_it() -> None:
    model = slomodel.compile(f"var x minimize {'(' * 4900}x^2{')' * 4900}")
    assert model.value([3.0]) == 9.0
    with pytest.raises(slomodel.ModelSyntaxError, match="deeper than 5000 levels"):
        slomodel.compile(f"var x minimize {'(' * 6000}x^2{')' * 6000}")


def test_variables_past_the_limit() -> None:
    with pytest.raises(slomodel.ShapeError, match=r"take 8e\+09 bytes; the limit is 1e9"):
        _ = slomodel.compile("dim n var x[n] minimize sumsq(x)", dims={"n": 10**9}).n


@pytest.mark.parametrize("delta", [1.0, 0.0])
def test_no_warning_of_an_ordinary_delta(delta: float) -> None:
    model = slomodel.compile(HUBER, data={"d": delta}, strict=True)
    model.bind(d=2.0)


def test_a_negative_delta_in_data_is_warned_of() -> None:
    with pytest.warns(slomodel.NonsmoothWarning, match="kink at 0 for delta < 0"):
        model = slomodel.compile(HUBER, data={"d": -1.0})
    with pytest.raises(slomodel.ModelSyntaxError, match="kink at 0 for delta < 0"):
        slomodel.compile(HUBER, data={"d": -1.0}, strict=True)
    with pytest.warns(slomodel.NonsmoothWarning, match="kink at 0 for delta < 0"):
        model.bind(d=-0.5)


HUBER = "data d\nvar x\nminimize huber(x - 3, d) + x^2"
