"""Every function of the language: a bound over every ball, or a reason with a position."""

import math

import numpy as np
import pytest

import slomodel
from slomodel.front.catalogue import catalogue
from slomodel.functions import FUNCTIONS

pytestmark = [
    pytest.mark.filterwarnings("ignore::slomodel.NonsmoothWarning"),
    pytest.mark.filterwarnings("ignore::slomodel.ModelWarning"),
]

# What is minimised, by the signatures that it asks; x has n elements, n a square.
TERMS = {
    "asin(x)": ["sum(asin(x / 3))"],
    "acos(x)": ["sum(acos(x / 3))"],
    "atanh(x)": ["sum(atanh(x / 3))"],
    "acosh(x)": ["sum(acosh(x + 1))"],
    "logit(x)": ["sum(logit(x / 3))"],
    "normppf(p)": ["sum(normppf(x / 3))"],
    "erfinv(x)": ["sum(erfinv(x / 3))"],
    "log1mexp(x)": ["sum(log1mexp(-x))"],
    "pow(x, p)": ["sum(pow(x, 1.5))", "sum(pow(x, -2))", "pow(x[0], x[1])"],
    "huber(t, delta=1)": ["sum(huber(x, 2))", "huber(x[0], x[1])", "sum(huber(x, 0.1))"],
    "where(condition, a, b)": ["sum(where(x > 2, x^2, x^3))", "sum(where(x > 2, x, x))"],
    "clip(x, lo, hi)": ["sum(clip(x, -1, 2))", "clip(x[0], x[1], x[2])"],
    "max(a, b)": ["max(x[0], x[1])", "sum(max(x, 2))"],
    "min(a, b)": ["min(x[0]^2, x[1])"],
    "sum(x, axis=None)": ["sum(x * exp(x))", "sum(x[i] / x[i+1] for i in range(2))"],
    "mean(x, axis=None)": ["mean(x^3)"],
    "prod(x, axis=None)": ["prod(x)", "prod(1 + x[i] for i in n)"],
    "max(x, axis=None)": ["max(x)", "max(x[i]^2 for i in n)", "sum(max(outer(x, x), axis=0))"],
    "min(x, axis=None)": ["min(x^2)"],
    "cumsum(x, axis=None)": ["sumsq(cumsum(x^2))"],
    "cumprod(x, axis=None)": ["sum(cumprod(x))"],
    "cumlogsumexp(x, axis=None)": ["sum(cumlogsumexp(x))"],
    "logsumexp(x, axis=None)": ["logsumexp(x)", "sum(logsumexp(outer(x, x), axis=1))"],
    "softmax(x, axis=-1)": ["softmax(x)[0]", "sum(softmax(outer(x, x))[0, :])"],
    "log_softmax(x, axis=-1)": ["-log_softmax(2 * x)[0]"],
    "sumsq(x, axis=None)": ["sumsq(x)^2"],
    "norm2(x, axis=None)": ["norm2(x)"],
    "fro(x)": ["fro(outer(x, x))"],
    "norm1(x, axis=None)": ["norm1(x)"],
    "dot(x, y)": ["dot(x, tanh(x))"],
    "outer(x, y)": ["sum(sin(outer(x, x)))"],
    "trace(A)": ["trace(outer(x, x) @ outer(x, x))"],
    "diag(x)": ["sum(exp(diag(x)))"],
    "eye(n, k=0)": ["sumsq(eye(n) - outer(x, x))", "sumsq(eye(n, 1) - outer(x, x))"],
    "cholesky(A)": ["sum(cholesky(outer(x, x) / 99 + 3 * eye(n)))"],
    "logdet(A)": ["logdet(outer(x, x) / 99 + 3 * eye(n))"],
    "det(A)": ["det(outer(x, x) / 99 + eye(n))"],
    "solve(A, b)": ["sum(solve(outer(x, x) / 99 + 3 * eye(n), x))"],
    "inv(A)": ["sum(inv(outer(x, x) / 99 + 3 * eye(n)))"],
    "quad(A, x)": ["quad(outer(x, x), x)"],
    "tril(A, k=0)": ["sum(exp(tril(outer(x, x) / 9)))"],
    "triu(A, k=0)": ["sum(exp(triu(outer(x, x) / 9)))"],
    "kron(A, B)": ["sumsq(kron(outer(x, x), [[1, 2]]))"],
    "diff(x, axis=-1)": ["sum(exp(diff(x)))"],
    "floor(x)": ["sum(exp(floor(m) .* x))"],
    "ceil(x)": ["sum(exp(ceil(m) .* x))"],
    "conv(x, k, mode)": ['sumsq(conv(x, x, "full"))'],
    "zeros(*sizes)": ["sumsq(zeros(n) + x)"],
    "ones(*sizes)": ["sum(ones(n) * x^4)"],
    "reshape(x, *sizes)": ["sum(exp(reshape(x, n, 1)))"],
    "concat(*arrays, axis=0)": ["sumsq(concat(x, x^2))"],
    "masked(E, mask)": ["sum(masked(log(x), m))"],
    "einsum(spec, *arrays)": ['einsum("i,i,i->", x, x, x)'],
}
SCALARS = {function.signature: function.arity for function in FUNCTIONS.values()}
ASKED = {
    signature: [f"sum({name}(x))"]
    if count == 1
    else [f"{name}({', '.join(f'x[{k}]' for k in range(count))})"]
    for signature, count in SCALARS.items()
    for name in [signature.partition("(")[0]]
} | TERMS
CASES = [(signature, term) for signature, terms in ASKED.items() for term in terms]

# Centre and radius: a ball in every domain, one across kinks, one that leaves, a point at an edge.
BALLS = [(1.0, 0.01), (1.0, 3.0), (0.0, 0.0)]
SMOOTH_BALL = BALLS[0]


def test_no_function_is_left_out() -> None:
    assert set(ASKED) == {entry.signature for entry in catalogue() if not entry.text}


@pytest.mark.sampled(20)
@pytest.mark.parametrize(("signature", "term"), CASES, ids=[term for _, term in CASES])
@pytest.mark.parametrize("n", [pytest.param(3, marks=pytest.mark.slow), 8])
def test_a_bound_or_a_reason_with_its_line(signature: str, term: str, n: int) -> None:
    """Of few variables, whose Hessian is seen by entries, and of more."""
    text = f"dim n\nvar x[n]\ndata m[n]\nminimize\n  {term}"
    mask = (np.arange(n) % 2).astype(float)
    model = slomodel.compile(text, data={"m": mask}, dims={"n": n})
    for center, radius in BALLS:
        found = model.bounds(np.full(n, center) + 0.05 * np.arange(n) * center, radius)
        assert not math.isnan(found.L1 + found.L2)
        if (center, radius) == SMOOTH_BALL and "sign" not in term:
            assert math.isfinite(found.L1 + found.L2), found.explain()
        for constant in (found.gradient, found.hessian):
            if math.isinf(constant.best.value):
                assert "in line 5" in constant.reason, found.explain()
                told = constant.reason.split("`")[1]
                assert told in term.replace(" for i in n", "") or told in term, constant.reason
