"""Leave a saddle: a start where the gradient vanishes and most methods stop.

python examples/leave_a_saddle.py
"""

import numpy as np

import slomodel

# Products of two factors have a saddle where both are zero.
M = np.diag([3.0, 2.0, 1.0])
model = slomodel.compile(
    "dim n, k = 2 data M[n, n] var U[n, k], V[n, k] minimize sumsq(U @ V' - M)", data={"M": M}
)
start = np.zeros(model.n)
stays = model.solve(x0=start, method="norm-armijo")
leaves = model.solve(x0=start, method="norm-armijo", second_order=True)
default = model.solve(x0=start)
print("at the saddle  f =", stays.fun, "-", stays.message)
print("second_order   f =", leaves.fun, "-", leaves.message)
print("by default     f =", default.fun, "-", default.message)
print("least value, from the singular values beyond the second: 1.0")
