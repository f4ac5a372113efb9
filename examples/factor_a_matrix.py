"""Complete a low-rank matrix from a third of its entries; the mask is part of the model.

python examples/factor_a_matrix.py
"""

import numpy as np

import slomodel

rng = np.random.default_rng(0)
M = rng.standard_normal((60, 3)) @ rng.standard_normal((3, 40))
seen = rng.uniform(size=M.shape) < 0.33

model = slomodel.compile(
    """
    model completion
    dim  m, n, rank = 3
    data M[m, n], seen[m, n] mask
    var  U[m, rank] init normal(0, 0.1), V[n, rank] init normal(0, 0.1)
    minimize sumsq(masked(U @ V' - M, seen))
    """,
    data={"M": np.where(seen, M, np.nan), "seen": seen},
)
print(model.explain())
found = model.solve(seed=1, max_time=30.0)
U, V = found.variables["U"], found.variables["V"]
print(found.status, f"f = {found.fun:.3g} after {found.nfev} values")
print(f"largest error at the {np.sum(~seen)} entries not seen: {np.abs(U @ V.T - M).max():.3g}")
