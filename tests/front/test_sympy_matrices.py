"""Matrix expressions of SymPy against NumPy, with derivatives that SymPy's own calculus lacks."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import sympy as sp

from slomodel import compile
from slomodel.front.sympy_expressions.elaborate import problem_from_sympy
from slomodel.ir.expr import Einsum
from slomodel.ir.walk import postorder

n, m = sp.symbols("n m", integer=True)
i, j = sp.symbols("i j", integer=True)
s, t = sp.symbols("s t")
M, B = sp.MatrixSymbol("M", 3, 2), sp.MatrixSymbol("B", 2, 2)
v, w = sp.MatrixSymbol("v", 2, 1), sp.MatrixSymbol("w", 3, 1)
RNG = np.random.default_rng(3)
VALUES = {
    "M": RNG.standard_normal((3, 2)),
    "B": RNG.standard_normal((2, 2)),
    "v": RNG.standard_normal((2, 1)),
    "w": RNG.standard_normal((3, 1)),
    "s": np.float64(0.6),
    "t": np.float64(-1.7),
}
CASES = [
    (sp.Trace(M.T * M) + sp.Trace(B.T * B), lambda M, B: (M**2).sum() + (B**2).sum()),
    (sp.Trace(B) + sp.Trace(B**2), lambda B: np.trace(B) + np.trace(B @ B)),
    (v[0, 0] ** 2, lambda v: v[0, 0] ** 2),
    ((v.T * v)[0, 0], lambda v: (v**2).sum()),
    (sp.Trace(sp.HadamardProduct(B, B)), lambda B: (np.diag(B) ** 2).sum()),
    (v.T * B * v, lambda v, B: (v.T @ B @ v).item()),
    ((M * v - w).T * (M * v - w), lambda M, v, w: ((M @ v - w) ** 2).sum()),
    (sp.Trace(3 * M.T * M * B + 2 * B.T), lambda M, B: np.trace(3 * M.T @ M @ B + 2 * B.T)),
    (sp.Trace(B**5), lambda B: np.trace(np.linalg.matrix_power(B, 5))),
    (sp.Trace(s * B + sp.Identity(2)) * t, lambda s, B, t: t * (s * np.trace(B) + 2)),
    (
        sp.Trace(sp.HadamardPower(M, 3).T * sp.OneMatrix(3, 2)),
        lambda M: (M**3).sum(),
    ),
    (sp.Trace(M * sp.ZeroMatrix(2, 3) + M * M.T), lambda M: (M**2).sum()),
    (sp.exp(M[0, 1]) * M[2, 0] + s, lambda M, s: np.exp(M[0, 1]) * M[2, 0] + s),
    (sp.Sum(sp.sin(M[i, j]) * v[j, 0], (i, 0, 2), (j, 0, 1)), lambda M, v: (np.sin(M) @ v).sum()),
    (sp.Sum((M * v)[i, 0] ** 3, (i, 0, 2)), lambda M, v: ((M @ v) ** 3).sum()),
    (
        sp.Trace(sp.Matrix([[s, 2], [s * t, -t]]) * B),
        lambda s, t, B: np.trace(np.array([[s, 2], [s * t, -t]]) @ B),
    ),
    (
        sp.Matrix([s, t]).T * B * sp.Matrix([s, 0]),
        lambda s, t, B: np.array([s, t]) @ B @ np.array([s, 0]),
    ),
    (sp.Matrix([[s * t]]), lambda s, t: s * t),
    (sp.Determinant(B) + s, lambda B, s: np.linalg.det(B) + s),
    (
        s + sp.log(sp.Determinant(B.T * B + sp.Identity(2))),
        lambda B, s: s + np.linalg.slogdet(B.T @ B + np.eye(2))[1],
    ),
    (
        sp.Trace(B.I) + sp.Trace(B**-1 * B.T),
        lambda B: np.trace(np.linalg.inv(B) @ (np.eye(2) + B.T)),
    ),
    (v.T * B.I * v, lambda v, B: (v.T @ np.linalg.solve(B, v)).item()),
    (
        (s * v.T * B.I * B.T.I * t * v),
        lambda v, B, s, t: s * t * (np.linalg.solve(B.T, v) ** 2).sum(),
    ),
    (sp.Trace(M * B.I * M.T), lambda M, B: np.trace(M @ np.linalg.solve(B, M.T))),
    (sp.Sum((B.I * v)[i, 0] ** 2, (i, 0, 1)), lambda v, B: (np.linalg.solve(B, v) ** 2).sum()),
    (sp.Matrix(B).det(), lambda B: B[0, 0] * B[1, 1] - B[0, 1] * B[1, 0]),
]


@pytest.mark.parametrize(("expr", "plain"), CASES, ids=[str(case[0]) for case in CASES])
def test_value_and_gradient(expr: sp.Basic, plain: object) -> None:
    """The gradient by differences of the plain formula, none of slomodel's."""
    model = compile(expr)
    names = plain.__code__.co_varnames
    assert set(model.variables) == set(names)
    at = model.pack({name: VALUES[name] for name in model.variables})

    def value(x: np.ndarray) -> float:
        parts = model.unpack(x)
        return float(plain(*(parts[name] for name in names)))

    assert model.value(at) == pytest.approx(value(at), rel=1e-13)
    step = 1e-5
    slopes = [(value(at + step * u) - value(at - step * u)) / (2 * step) for u in np.eye(model.n)]
    np.testing.assert_allclose(model.gradient(at), slopes, rtol=1e-8, atol=1e-8)


def test_two_frobenius_norms_where_sympy_has_zero() -> None:
    """SymPy 1.14 gives 0 for the derivative by M; the right one is 2 M."""
    model = compile(sp.Trace(M.T * M) + sp.Trace(B.T * B), [M, B])
    gradient = model.unpack(model.gradient({"M": VALUES["M"], "B": VALUES["B"]}))
    np.testing.assert_array_equal(gradient["M"], 2 * VALUES["M"])
    np.testing.assert_array_equal(gradient["B"], 2 * VALUES["B"])


def test_a_trace_of_a_product_makes_no_matrix() -> None:
    A = sp.MatrixSymbol("A", n, m)
    problem = problem_from_sympy(sp.Trace(A.T * A))
    nodes = [node for node in postorder(problem.objective) if isinstance(node, Einsum)]
    assert [node.shape for node in nodes] == [()]


def test_sizes_from_data() -> None:
    A, b, x = sp.MatrixSymbol("A", n, m), sp.MatrixSymbol("b", n, 1), sp.MatrixSymbol("x", m, 1)
    r = A * x - b
    model = compile(r.T * r, [x], data={A: VALUES["M"], b: VALUES["w"]})
    assert model.variables == {"x": (2, 1)}
    want = 2 * VALUES["M"].T @ (VALUES["M"] @ VALUES["v"] - VALUES["w"])
    np.testing.assert_allclose(model.gradient(VALUES["v"].ravel()), want.ravel(), rtol=1e-13)
    other = model.bind(A=np.eye(4), b=np.zeros((4, 1)))
    assert other.value(np.ones(4)) == 4.0
    assert pickle.loads(pickle.dumps(other)).value(np.ones(4)) == 4.0
