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
_LOG_SIGMOID = "write `-softplus(-x)`"
_PENALTY = "declare it, as in `fn hinge(t) = max(0, 1 - t)`"
_ROWS = "write `sum(a .* b, axis=1)`, or `dot(a, b)` of two vectors"
_DISTANCE = "write `norm2(a - b)`, or `sumsq(a - b)` for its square"
JUMP = "a jump has no useful slope: write a smooth step such as `sigmoid(x)`, or use data"
_MEAN = "write it out with `mean`, as in `mean((y - f)^2)`"
_SPREAD = "write it out: `let m = mean(x)`, then `mean((x - m)^2)`"
_CENSORED = (
    "there are `…_lcdf` and `…_lccdf` of the normal, lognormal, logistic, Gumbel, exponential and "
    "Weibull distributions"
)
_CHOICE = "choose values with `a if condition else b`"

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
    "log_sum_exp": "write `logsumexp(x)`, and of two numbers `logsumexp([a, b])`",
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
    "log_sigmoid": _LOG_SIGMOID,
    "logsigmoid": _LOG_SIGMOID,
    "log_expit": _LOG_SIGMOID,
    "log1p_exp": "write `softplus(x)`",
    "log1pexp": "write `softplus(x)`",
    "log1m": "write `log1p(-x)`",
    "logsubexp": "write `log_diff_exp(a, b)`",
    "logmeanexp": "write `logsumexp(x) - log(n)`",
    "log_mean_exp": "write `logsumexp(x) - log(n)`",
    "Phi_approx": "write `normcdf(x)`",
    "normal_cdf": "write `normcdf((y - mu) / sigma)`",
    "dnorm": "write `exp(std_normal_lpdf(x))`, or `normal_lpdf(y, mu, sigma)` for the logarithm",
    "exp2": "write `2^x`",
    "cube": "write `x^3`",
    "sq": "write `x^2` or `square(x)`",
    "rsqrt": "write `1 / sqrt(x)`",
    "inv_sqrt": "write `1 / sqrt(x)`",
    "inv_square": "write `1 / x^2`",
    "reciprocal": "write `1 / x`",
    "fabs": "write `abs(x)`",
    "fmax": "write `max(a, b)`",
    "fmin": "write `min(a, b)`",
    "clamp": "write `clip(x, low, high)`",
    "sgn": "write `sign(x)`",
    "elu": "declare it, as in `fn elu(t) = where(t > 0, t, expm1(t))`",
    "leaky_relu": "declare it, as in `fn leaky_relu(t) = max(t, 0.01 * t)`",
    "relu6": "write `clip(x, 0, 6)`",
    "hardtanh": "write `clip(x, -1, 1)`",
    "gelu": "write `x .* normcdf(x)`",
    "silu": "write `x .* sigmoid(x)`",
    "swish": "write `x .* sigmoid(x)`",
    "mish": "write `x .* tanh(softplus(x))`",
    "softsign": "declare it, as in `fn softsign(t) = t / (1 + abs(t))`",
    "hinge": _PENALTY,
    "soft_threshold": "declare it, as in `fn shrink(t, c) = sign(t) * max(abs(t) - c, 0)`",
    "step": JUMP,
    "heaviside": JUMP,
    "indicator": JUMP,
    "round": "of data, write `floor(x + 0.5)`; elsewhere it jumps",
    "mod": "write `a % b`, for indices and conditions on whole numbers",
    "dot_product": "write `dot(a, b)`",
    "dot_self": _SQUARES,
    "rows_dot_product": _ROWS,
    "columns_dot_product": "write `sum(a .* b, axis=0)`",
    "bmm": 'write `einsum("bij,bjk->bik", A, B)`',
    "mm": _PRODUCT,
    "hadamard": "an elementwise product is written `a .* b`",
    "frobenius": "write `fro(A)`",
    "l1": "write `norm1(x)`",
    "l2": "write `norm2(x)`, or `sumsq(x)` for its square",
    "l2norm": "write `norm2(x)`",
    "norm_2": "write `norm2(x)`",
    "norm_1": "write `norm1(x)`",
    "dist": _DISTANCE,
    "distance": _DISTANCE,
    "squared_distance": "write `sumsq(a - b)`",
    "cdist": "define it by index: `let D[i in m, j in n] = norm2(X[i, :] - Y[j, :])`",
    "pdist": "define it by index: `let D[i in n, j in n] = norm2(X[i, :] - X[j, :])`",
    "cosine_similarity": "write `dot(a, b) / (norm2(a) * norm2(b))`",
    "normalize": "write `x / norm2(x)`",
    "identity": "write `eye(n)`",
    "diagonal": "write `diag(A)`",
    "append_row": _JOINED,
    "append_col": "arrays are joined by `concat(a, b, axis=1)`",
    "ravel": "write `reshape(A, k)`; `sum`, `sumsq` and `norm1` take arrays of any shape",
    "rep_vector": "a number fits any shape: `2 + x`; or write `2 * ones(n)`",
    "rep_matrix": "a number fits any shape: `2 + A`; or write `2 * ones(m, n)`",
    "linspace": "define it by index: `let t[i in n] = i / (n - 1)`",
    "arange": "define it by index: `let t[i in n] = i`",
    "cumulative_sum": "write `cumsum(x)`",
    "conv2d": "write it as a sum: `sum(k[a, b] * X[i + a, j + b] for a in p, b in p)`",
    "laplacian": "write it as a sum over neighbours, as in `x[i + 1] - 2 * x[i] + x[i - 1]`",
    "fft": "write sums with `cos` and `sin`, or give its matrix as data",
    "trapz": "write it as a sum: `sum(h[i] * (f[i] + f[i + 1]) / 2 for i in range(n - 1))`",
    "polyval": "write it as a sum: `sum(c[k] * x^k for k in p)`",
    "eig": "of a symmetric A, `logdet(A)` and `trace(A)` are sums over eigenvalues",
    "svd": "write `U @ V'` for a matrix of low rank",
    "pinv": "write `solve(A' @ A, A' @ b)`",
    "mse": _MEAN,
    "cross_entropy": "write `mean(logsumexp(Z[i, :]) - Z[i, y[i]] for i in n)`",
    "kl_div": "write `sum(xlogy(p, p) - xlogy(p, q))`",
    "kl": "write `sum(xlogy(p, p) - xlogy(p, q))`",
    "entropy": "write `-sum(xlogy(p, p))`",
    "variance": _SPREAD,
    "std": _SPREAD,
    "sd": _SPREAD,
    "gamma": "write `exp(lgamma(x))`",
    "tgamma": "write `exp(lgamma(x))`",
    "factorial": "write `exp(lgamma(n + 1))`",
    "lfactorial": "write `lgamma(n + 1)`",
    "beta": "write `exp(lbeta(a, b))`",
    "choose": "write `exp(lchoose(n, k))`",
    "binomial_coefficient_log": "write `lchoose(n, k)`",
    "log_binomial": "write `lchoose(n, k)`",
    "bessel_i0": "write `exp(log_bessel_i0(x))`",
    "i0": "write `exp(log_bessel_i0(x))`",
    "uniform_lpdf": "it is a constant: declare the set of the variable, as in `var y in [0, 2]`",
    "geometric_lpmf": "write `neg_binomial_lpmf(n, 1, p / (1 - p))`",
    "normal_id_glm_lpdf": "write `normal_lpdf(y, alpha + x @ beta, sigma)`",
    "student_t_lcdf": _CENSORED,
    "student_t_lccdf": _CENSORED,
    "gamma_lcdf": _CENSORED,
    "gamma_lccdf": _CENSORED,
    "beta_lcdf": _CENSORED,
    "beta_lccdf": _CENSORED,
    "poisson_lcdf": _CENSORED,
    "poisson_lccdf": _CENSORED,
}
"""Functions of other languages that a model expresses by other means."""

FOREIGN_FUNCTIONS = _IDIOMS | {
    name: f"write `{function.signature}`"
    for function in FUNCTIONS.values()
    for name in function.foreign_names
}
"""Functions of other languages, with the remedy for each."""

_FINITE = "constants of a model must be finite"
_INFINITE = f"{_FINITE}: in `min`, `max` or `logsumexp` write a huge number, such as `-1e30`"
_NAMES = {
    "end": "the last element is `x[-1]`, and `x[1:]` goes up to it",
    "inf": _INFINITE,
    "Inf": _INFINITE,
    "nan": _FINITE,
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
