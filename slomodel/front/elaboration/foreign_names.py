"""Names from other languages, and their equivalents in a model."""

from __future__ import annotations

from collections.abc import Collection

from slomodel.errors import Span
from slomodel.functions import FUNCTIONS

_SQUARES = "the sum of squares is `sumsq(x)`"
_PRODUCT = "a product of matrices and vectors is written `A @ x`"
_JOINED = "arrays are joined by `concat(a, b, axis=0)`"
_FACTOR = "write `cholesky(A)`, which is lower triangular"
_LOGARITHM = "write `logdet(A)`, the logarithm of the determinant"
_SYSTEM = "write `solve(A, b)`: whether A is triangular or symmetric is seen from its form"
_CHOICE = "choose values with `where(condition, a, b)`"

_IDIOMS = {
    "ln": "the natural logarithm is `log(x)`",
    "transpose": "a transposed matrix is written `A'`",
    "tr": "write `trace(A)`",
    "inner": "write `dot(x, y)`",
    "vdot": "write `dot(x, y)`",
    "matmul": _PRODUCT,
    "mtimes": _PRODUCT,
    "multiply": "an elementwise product is written `a .* b`",
    "times": "an elementwise product is written `a .* b`",
    "sum_squares": _SQUARES,
    "sumsqr": _SQUARES,
    "ssq": _SQUARES,
    "norm2sqr": _SQUARES,
    "norm_squared": _SQUARES,
    "abs2": "write `x^2`",
    "sqr": "write `x^2` or `square(x)`",
    "pos": "the positive part is `relu(x)`",
    "average": "write `mean(x)`",
    "logistic": "log(1 + exp(x)) is `softplus(x)`, and 1/(1 + exp(-x)) is `sigmoid(x)`",
    "sigma": "1/(1 + exp(-x)) is `sigmoid(x)`",
    "log_sum_exp": "write `logsumexp(x)`",
    "lse": "write `logsumexp(x)`",
    "power": "write `x^p` or `pow(x, p)`",
    "quad_form": "write `quad(P, x)`",
    "chol": _FACTOR,
    "cholesky_decompose": _FACTOR,
    "log_det": _LOGARITHM,
    "log_determinant": _LOGARITHM,
    "slogdet": _LOGARITHM,
    "logabsdet": _LOGARITHM,
    "inverse": "write `inv(A)`, or `solve(A, b)` for `inv(A) @ b`",
    "mdivide_left": _SYSTEM,
    "mdivide_left_spd": _SYSTEM,
    "mdivide_left_tri_low": _SYSTEM,
    "solve_triangular": _SYSTEM,
    "cho_solve": _SYSTEM,
    "backsolve": _SYSTEM,
    "forwardsolve": _SYSTEM,
    "crossprod": "write `A' @ A`",
    "tcrossprod": "write `A @ A'`",
    "diag_matrix": "write `diag(x)`",
    "diagm": "write `diag(x)`",
    "add_diag": "write `A + c * eye(n)`",
    "vec": "write `reshape(A, k)`; `sum`, `sumsq` and `norm1` take arrays of any shape",
    "flatten": "write `reshape(A, k)`; `sum`, `sumsq` and `norm1` take arrays of any shape",
    "nuc": "write `U @ V'` for the matrix, and `(sumsq(U) + sumsq(V)) / 2` for its nuclear norm",
    "norm_nuc": "write `U @ V'` for the matrix, and `(sumsq(U) + sumsq(V)) / 2` for its norm",
    "vstack": _JOINED,
    "hstack": _JOINED,
    "stack": _JOINED,
    "cat": _JOINED,
    "concatenate": _JOINED,
    "ifelse": _CHOICE,
    "piecewise": _CHOICE,
    "cond": _CHOICE,
    "rand": "write `uniform(0, 1)`",
    "randn": "write `normal(0, 1)`",
    "inv_logit": "1/(1 + exp(-x)) is `sigmoid(x)`",
    "log_inv_logit": "write `-softplus(-x)`",
}
"""Functions of other languages that a model expresses by other means."""

FOREIGN_FUNCTIONS = _IDIOMS | {
    name: f"write `{function.signature}`"
    for function in FUNCTIONS.values()
    for name in function.foreign_names
}
"""Functions of other languages, with the remedy for each."""

_NAMES = {
    "end": "the last element is `x[-1]`, and `x[1:]` goes up to it",
    "inf": "constants of a model must be finite",
    "Inf": "constants of a model must be finite",
    "nan": "constants of a model must be finite",
    "rand": "write `uniform(0, 1)`",
    "randn": "write `normal(0, 1)`",
}
SIZES = frozenset(("len", "length", "size", "shape", "ndims", "nrow", "ncol", "rows", "cols"))
COUNTS = frozenset(("numel", "count", "nnz"))
_INDICES = frozenset(("i", "j", "k", "l"))


def foreign_name_hint(name: str, span: Span, known: Collection[str]) -> str:
    """The remedy for a name not among the `known`, from its usual meaning; empty if none."""
    before = span.source.text[: span.start].rstrip()[-1:]
    if name in ("T", "H") and before == "^":
        return "a transposed matrix is written `A'`"
    if before == "%":
        return "a comment begins with `#`"
    if name in _NAMES:
        return _NAMES[name]
    if name in _INDICES:
        return f"an index is bound by a sum: `sum(… for {name} in n)`"
    array, underscore, index = name.rpartition("_")
    if underscore and array in known and index in _INDICES:
        return f"an element is written `{array}[{index}]`"
    return ""
