"""Lipschitz constants over balls: proved bounds, a formula, and estimates by sampling.

python examples/bounds_over_balls.py
"""

import numpy as np

import slomodel

T = np.random.default_rng(0).standard_normal((4, 4, 4))
model = slomodel.compile(
    """
    dim  d, m = 2
    data T[d, d, d]
    var  X[m, d] init uniform(0, 0.1)
    minimize sumsq(T - einsum("ij,ik,il->jkl", X, X, X))
    """,
    data={"T": T},
)
x = model.x0(seed=0)

print("radius      proved L1   100 random pairs")
proved = model.bounds(x, 0.01)
for radius in (0.01, 0.1, 1.0):
    sampled = model.sample_bounds(x, radius, samples=100, method="pairs")
    print(f"{radius:6g} {proved.at(radius).L1:14.6g} {sampled.L1:18.6g}")

print("\nDerivation of the bound over the ball of radius 0.1:")
print(proved.at(0.1).explain())

print("\nFor any centre, in terms of the norm of X there:")
print("L1(r) =", model.bound_formula("L1"))
