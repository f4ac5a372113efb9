"""slomodel's kernels in SciPy, its methods through SciPy, and a model from a SymPy expression.

python examples/with_scipy.py
"""

import numpy as np
import scipy.optimize
import sympy as sp

import slomodel

n = 100
x, i = sp.IndexedBase("x", shape=(n,)), sp.Symbol("i", integer=True)
chain = sp.Sum(100 * (x[i + 1] - x[i] ** 2) ** 2 + (1 - x[i]) ** 2, (i, 0, n - 2))
model = slomodel.compile(chain)
start = np.full(n, -1.2)

theirs = scipy.optimize.minimize(**model.scipy(), x0=start, method="trust-krylov")
print("trust-krylov of SciPy, kernels of slomodel:", theirs.fun, theirs.nit, "steps")

ours = scipy.optimize.minimize(
    scipy.optimize.rosen,
    start,
    jac=scipy.optimize.rosen_der,
    method=slomodel.scipy_method("norm-armijo"),
    options={"direction": "lbfgs"},
)
print("norm-armijo of slomodel, functions of SciPy:", ours.fun, ours.nit, "steps")
