"""The functions of the language as a list for people: signature, meaning, domain, smoothness."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from slomodel.errors import Diagnostic, DomainError
from slomodel.front.elaboration.array_functions import ARRAY_FUNCTIONS
from slomodel.front.elaboration.calls import scalar_signature
from slomodel.front.elaboration.errors import suggestion
from slomodel.functions import FUNCTIONS
from slomodel.ir.function import ANALYTIC, ScalarFunction

MEANINGS = {
    "exp(x)": "e^x",
    "log(x)": "natural logarithm",
    "log1p(x)": "log(1 + x), accurate near 0",
    "expm1(x)": "exp(x) - 1, accurate near 0",
    "sqrt(x)": "square root; sqrt(t^2) is abs(t), sqrt(sumsq(x)) is norm2(x)",
    "sin(x)": "sine",
    "cos(x)": "cosine",
    "tan(x)": "tangent",
    "sinh(x)": "hyperbolic sine",
    "cosh(x)": "hyperbolic cosine",
    "tanh(x)": "hyperbolic tangent",
    "asinh(x)": "inverse of sinh",
    "atan(x)": "inverse of tan, in (-pi/2, pi/2)",
    "erf(x)": "error function",
    "sigmoid(x)": "1/(1 + exp(-x))",
    "softplus(x)": "log(1 + exp(x))",
    "logcosh(x)": "log(cosh(x))",
    "square(x)": "x^2",
    "pow(x, p)": "x^p",
    "huber(t, delta=1)": "t^2/2 where abs(t) <= delta, delta*(abs(t) - delta/2) elsewhere",
    "abs(x)": "absolute value; its derivative at 0 is taken as 0",
    "sign(x)": "-1, 0 or 1; its derivative is taken as 0",
    "relu(x)": "max(x, 0); its derivative at 0 is taken as 0",
    "where(condition, a, b)": "a where the condition holds, b elsewhere",
    "clip(x, lo, hi)": "min(max(x, lo), hi): the nearest number to x from lo to hi",
    "max(a, b)": "the larger of two, by element",
    "min(a, b)": "the smaller of two, by element",
    "sum(x, axis=None)": "sum of all elements, or along one axis; also sum(… for i in n)",
    "mean(x, axis=None)": "mean of all elements, or along one axis; also mean(… for i in n)",
    "prod(x, axis=None)": "product of all elements, or along one axis; also prod(… for i in n)",
    "max(x, axis=None)": "largest element, or along one axis; also max(… for i in n)",
    "min(x, axis=None)": "smallest element, or along one axis; also min(… for i in n)",
    "logsumexp(x, axis=None)": "log(sum(exp(x))), without overflow",
    "softmax(x, axis=-1)": "exp(x) divided by its sum along an axis",
    "sumsq(x)": "sum of the squares of all elements",
    "norm2(x)": "root of the sum of squares of a vector",
    "fro(x)": "root of the sum of squares of any array",
    "norm1(x)": "sum of the absolute values of all elements",
    "dot(x, y)": "sum of the products of two vectors",
    "outer(x, y)": "matrix of all products of an element of x and one of y",
    "trace(A)": "sum of the diagonal of a square matrix",
    "diag(x)": "the diagonal matrix of a vector, or the diagonal of a square matrix",
    "eye(n)": "identity matrix",
    "zeros(*sizes)": "array of zeros, as in zeros(m, n)",
    "ones(*sizes)": "array of ones, as in ones(m, n)",
    "reshape(x, *sizes)": "the same elements in C order, as in reshape(x, m, n)",
    "concat(a, b, axis=0)": "one array after another along an axis",
    "masked(E, mask)": "E where the mask is 1, 0 elsewhere, whatever E is there",
    "einsum(spec, *arrays)": 'sum of products by labels, as in einsum("ij,jk->ik", A, B)',
}
"""What each function is, by its signature in the table of its kind."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A function as `slomodel functions` shows it; domain and smoothness of scalar ones only."""

    name: str
    signature: str
    meaning: str
    is_scalar: bool
    domain: str = ""
    smoothness: str = ""

    def facts(self) -> dict[str, object]:
        """The entry as data for JSON."""
        kind = "by element" if self.is_scalar else "of arrays"
        return {
            "name": self.name,
            "signature": self.signature,
            "meaning": self.meaning,
            "kind": kind,
            "domain": self.domain or None,
            "smoothness": self.smoothness or None,
        }


def catalogue() -> list[Entry]:
    """Every function of the language: first by element, then of arrays, each in its order."""
    scalars = [_scalar(name, function) for name, function in FUNCTIONS.items()]
    arrays = [
        Entry(name, function.text, MEANINGS[function.text], False)
        for name, function in ARRAY_FUNCTIONS.items()
    ]
    order = list(MEANINGS)
    return sorted(scalars + arrays, key=lambda entry: order.index(entry.signature))


def entries_of(name: str) -> list[Entry]:
    """The functions of one name (`max` is two). Raises DomainError where there is none."""
    every = catalogue()
    found = [entry for entry in every if entry.name == name]
    if not found:
        remedy = suggestion(name, {entry.name for entry in every}) or "see `slomodel functions`"
        message = f"no function is called `{name}`"
        raise DomainError(Diagnostic("E203", message, help=remedy))
    return found


def _scalar(name: str, function: ScalarFunction) -> Entry:
    text = scalar_signature(name).text
    parameters = [one.name for one in scalar_signature(name).parameters]
    smoothness = _smoothness(function, parameters)
    return Entry(name, text, MEANINGS[text], True, _domain(function), smoothness)


def _domain(function: ScalarFunction) -> str:
    """The operands for which the value is finite."""
    if not function.domain or function.domain[0] == (-math.inf, math.inf):
        return "all numbers"
    low, high = function.domain[0]
    with np.errstate(all="ignore"):
        sign = ">=" if math.isfinite(float(function.numpy(low))) else ">"
    assert high == math.inf
    return f"x {sign} {low:g}"


def _smoothness(function: ScalarFunction, parameters: Sequence[str]) -> str:
    """The smoothness class, with the better one where an operand >= 0 gives that."""
    whole = _class(function.smoothness)
    if function.smoothness_above is not None:
        for k, name in enumerate(parameters):
            limits = [0.0 if j == k else -math.inf for j in range(function.arity)]
            better = function.smoothness_above(*limits)
            if better > function.smoothness:
                return f"{_class(better)} for {name} >= 0, else {whole}"
    return whole


def _class(smoothness: int) -> str:
    if smoothness >= ANALYTIC:
        return "derivatives of every order"
    if smoothness < 0:
        return "jumps"
    return f"C{smoothness}" if smoothness else "kinks"
