"""Random models as text: declarations of every shape, and expressions that fit them."""

from collections.abc import Callable

from hypothesis import strategies as st

DECLARED = """dim m, n
data A[m, n], B[n, n] symmetric, y[m], s = 2
var x[n] in (-9, s + 9), W[m, n], c
fn f(t) = t^2 / (1 + t^2)
"""

_NUMBERS = st.sampled_from(["1", "2.5", ".5", "1e-3", "1_000", "3"])
_SCALARS = st.sampled_from(["c", "s", "pi", "x[0]", "x[-1]", "W[0, 0]", "m"])
_VECTORS = st.sampled_from(["x", "B[0, :]", "W[0, :]", "A[0,:]"])
_MATRICES = st.sampled_from(["A", "W", "W .* A", "(A + W)", "B'[:, :][0, :][None, :] + W"])


def scalars() -> st.SearchStrategy[str]:
    """Texts of expressions that are numbers."""
    return st.recursive(_NUMBERS | _SCALARS | _reductions(), _larger, max_leaves=12)


def _reductions() -> st.SearchStrategy[str]:
    vector = st.builds("sumsq({})".format, _VECTORS)
    matrix = st.builds("sum({} @ x)".format, _MATRICES.filter(lambda text: "None" not in text))
    both = st.builds("dot({}, {})".format, _VECTORS, _VECTORS)
    single = st.builds("sum({} for i in n, j in range(1, n) if i < j or not i >= 2)".format, _TERMS)
    fixed = st.sampled_from(["x' @ B @ x", "norm2(y - A @ x)^2", "mean(W, axis=None)", "fro(W')"])
    return vector | matrix | both | single | fixed


_TERMS = st.sampled_from(["x[i] * x[j]", "B[i, j]^2", "-x[i]", "x[i]^2 / (1 + x[j]^2) - i"])


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operator = st.sampled_from([" + ", "-", " * ", "/ ", " .* ", "./", " - -", "*+"])
    chain = st.builds("{}{}{}".format, inner, operator, inner)
    power = st.builds("({})^{}".format, inner, st.sampled_from(["2", "-2", "2^-1", "(1/2)"]))
    called: st.SearchStrategy[str] = st.builds(
        "{}({})".format, st.sampled_from(["exp", "f", "tanh", "-f", "abs"]), inner
    )
    choice = st.builds("where({} > {} and s<3, {}, c)".format, inner, inner, inner)
    pair = st.builds("max({}, {})".format, inner, inner)
    huber = st.builds("huber( {},delta = 2)".format, inner)
    return chain | power | called | choice | pair | huber | st.builds("({})".format, inner)


def models() -> st.SearchStrategy[str]:
    """Texts of whole models."""
    build: Callable[[str, str, str], str] = (
        "{0}let p = {1}; let q[k in n] = x[k] * ({2})\nminimize sum(q) * p + c".format
    )
    return st.builds(build, st.just(DECLARED), scalars(), scalars())
